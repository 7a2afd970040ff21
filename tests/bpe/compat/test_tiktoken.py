"""bpe.compat.tiktoken has the IDs, errors and names of tiktoken."""

from __future__ import annotations

import copy
import hashlib
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiktoken as theirs
import tiktoken.load as their_load
from compared import answer
from drawn import encodings_of_tiktoken
from family_patterns import FAMILY_PATTERNS

import bpe
from bpe.compat import tiktoken as ours
from bpe.compat.tiktoken import core, load, registry
from bpe.errors import BadArgument, BadTokenizer, MissingInput
from bpe.formats.tiktoken import to_ranks

PATTERN = FAMILY_PATTERNS["cl100k of tiktoken"]
TEXT = "The mill is where the river bends.\n\n It's  1234! Die Mühle; 水車 \U0001f44d\n " * 20
SPECIAL = {"<|endoftext|>": 800, "<|fim|>": 801, "<|end|>": 810}


@cache
def ranks() -> dict[bytes, int]:
    trained = bpe.train([TEXT.encode()], 400, pattern="cl100k")
    return {entry: id_ for id_, entry in trained.vocab.items()}


@cache
def pair() -> tuple[ours.Encoding, theirs.Encoding]:
    made = [
        package.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks(), special_tokens=SPECIAL)
        for package in (ours, theirs)
    ]
    return made[0], made[1]


@pytest.mark.slow
@pytest.mark.promise("compat-tiktoken")
@pytest.mark.parametrize("start", range(0, 60, 20))
def test_drawn_encodings(start: int) -> None:
    for seed in range(start, start + 20):
        encodings_of_tiktoken(seed)


@pytest.mark.parametrize("text", ["\ud83d\udc4d", "\ud83d", "a\udc4db", "<|fim|>\ud83d"])
def test_surrogates(text: str) -> None:
    mine, other = pair()
    assert mine.encode_ordinary(text) == other.encode_ordinary(text)
    for arguments in ({"disallowed_special": ()}, {"allowed_special": "all"}):
        assert mine.encode(text, **arguments) == other.encode(text, **arguments)
        assert mine.encode_batch(["a", text], **arguments) == other.encode_batch(["a", text], **arguments)


def test_pickled_and_copied() -> None:
    mine, _ = pair()
    for again in (pickle.loads(pickle.dumps(mine)), copy.copy(mine), copy.deepcopy(mine)):
        assert again.encode("the mill<|fim|>", allowed_special="all") == mine.encode(
            "the mill<|fim|>", allowed_special="all"
        )
        assert again.name == "small"
        assert again._mergeable_ranks == ranks()


def test_any_tokenizer() -> None:
    listed = bpe.train([TEXT.encode()], 300, ["<|endoftext|>"])
    mine = ours.Encoding.from_tokenizer(listed, "listed")
    assert mine.encode("the mill") == listed.encode("the mill")
    assert mine.eot_token == listed.special_tokens["<|endoftext|>"]
    assert theirs.Encoding(
        "x",
        pat_str=mine._pat_str.replace(r"\Z", "$"),
        mergeable_ranks=mine._mergeable_ranks,
        special_tokens={},
    ).encode(TEXT) == mine.encode(TEXT)


def test_wrong_arguments() -> None:
    arguments = {"pat_str": PATTERN, "mergeable_ranks": ranks(), "special_tokens": {}}
    ours.Encoding("x", **arguments, explicit_n_vocab=len(ranks()))
    with pytest.raises(BadArgument, match="^explicit_n_vocab: "):
        ours.Encoding("x", **arguments, explicit_n_vocab=len(ranks()) + 1)
    with pytest.raises(BadTokenizer):
        ours.Encoding("x", **arguments | {"pat_str": "("})
    with pytest.raises(BadTokenizer):
        ours.Encoding("x", **arguments | {"mergeable_ranks": {b"a": 0}})


def test_encodings_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = to_ranks(bpe.Tokenizer({id_: entry for entry, id_ in ranks().items()}, None))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(registry, "ENCODINGS", {})
    monkeypatch.setattr(core, "ENCODINGS", registry.ENCODINGS)
    with pytest.raises(MissingInput, match="cl100k_base.tiktoken"):
        ours.get_encoding("cl100k_base")
    (tmp_path / "cl100k_base.tiktoken").write_bytes(data)
    with pytest.raises(MissingInput):  # another file
        ours.get_encoding("cl100k_base")
    monkeypatch.setitem(registry._SHA256, "cl100k_base", hashlib.sha256(data).hexdigest())
    encoding = ours.get_encoding("cl100k_base")
    assert encoding is ours.get_encoding("cl100k_base")
    assert pickle.dumps(encoding) == pickle.dumps(encoding)
    assert len(pickle.dumps(encoding)) < 200  # by name
    assert encoding.encode("the mill") == pair()[0].encode("the mill")
    assert encoding.eot_token == 100257
    with pytest.raises(ValueError, match="^encoding_name: .*'other'"):
        ours.get_encoding("other")
    with pytest.raises(KeyError, match="model"):
        ours.encoding_for_model("other")


def test_encodings_of_models() -> None:
    from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING
    from tiktoken_ext import openai_public

    assert set(ours.list_encoding_names()) == set(openai_public.ENCODING_CONSTRUCTORS)
    for name in (*MODEL_TO_ENCODING, *(prefix + "x" for prefix in MODEL_PREFIX_TO_ENCODING)):
        assert ours.encoding_name_for_model(name) == theirs.encoding_name_for_model(name), name


BAD_IDS: list[Any] = [[-1], [1 << 40], [1 << 20], ["a"], [None], [1.0], "abc", 5, None]
METHODS = ["decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"]


@pytest.mark.promise("compat-tiktoken")
@pytest.mark.parametrize(
    "question",
    [
        *(
            lambda encoding, method=method, ids=ids: getattr(encoding, method)(ids)
            for method in METHODS
            for ids in BAD_IDS
        ),
        lambda encoding: encoding.decode_single_token_bytes(-1),
        lambda encoding: encoding.decode_single_token_bytes(1 << 40),
        lambda encoding: encoding.decode_single_token_bytes(None),
        lambda encoding: encoding.decode_batch([[1], [1.0]]),
        lambda encoding: encoding.decode_bytes_batch([[1], 5]),
        lambda encoding: encoding.encode_single_token(None),
        lambda encoding: encoding.encode_to_numpy(1),
        lambda encoding: encoding.encode("a", allowed_special=None),
    ],
)
def test_errors_of_arguments_have_the_class_of_those_of_tiktoken(question: Any) -> None:
    ours, theirs = pair()
    wanted = answer(question, theirs)
    assert isinstance(wanted, Exception)
    with pytest.raises(type(wanted)):
        question(ours)


def test_special_tokens_and_rank_files(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    files: list[tuple[str, str]] = []

    def load_tiktoken_bpe(path: str, expected_hash: str) -> dict[bytes, int]:
        files.append((path, expected_hash))
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load_tiktoken_bpe)
    for name, known in registry._KNOWN.items():
        if name == "gpt2":  # a pair of files in tiktoken
            continue
        made = openai_public.ENCODING_CONSTRUCTORS[name]()
        expected = made["special_tokens"]
        if name == "o200k_harmony":  # two texts for one ID
            assert expected.pop("<|reserved_200018|>") == expected["<|endofprompt|>"]
        assert known.special_tokens == expected, name
        file = f"{registry._ADDRESS}{known.rank_file}.tiktoken", registry._SHA256[known.rank_file]
        assert files.pop() == file, name


def test_rank_files_are_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # tiktoken then does not cache files
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b" \n": 257}
    path = str(tmp_path / "x.tiktoken")
    load.dump_tiktoken_bpe(ranks, path)
    data = (tmp_path / "x.tiktoken").read_bytes()
    good, bad = hashlib.sha256(data).hexdigest(), "0" * 64
    assert load.load_tiktoken_bpe(path, good) == ranks
    with pytest.raises(ValueError, match="SHA-256"):
        load.load_tiktoken_bpe(path, bad)
    (tmp_path / "bad.tiktoken").write_text("YQ== 0\nYg==\n")
    with pytest.raises(ValueError, match="line 'Yg=='|line b'Yg=='"):
        load.load_tiktoken_bpe(str(tmp_path / "bad.tiktoken"))

    assert their_load.load_tiktoken_bpe(path) == ranks


def test_functions_that_are_not_supported() -> None:
    mine, _ = pair()
    with pytest.raises(NotImplementedError):
        mine.encode_with_unstable("a")
    with pytest.raises(NotImplementedError):
        load.data_gym_to_mergeable_bpe_ranks("vocab.bpe", "encoder.json")
    with pytest.raises(ValueError, match="tiktoken_ext"):
        ours.get_encoding("of a plug-in")


def test_urls_are_read_from_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    address = "https://example.org/a/x.tiktoken"
    with pytest.raises(MissingInput, match=f"{address}"):
        load.read_file_cached(address)
    (tmp_path / "x.tiktoken").write_bytes(b"YQ== 0\n")
    assert load.load_tiktoken_bpe(address) == {b"a": 0}
    with pytest.raises(MissingInput, match="with SHA-256 000000000000"):
        load.read_file_cached(address, "0" * 64)
