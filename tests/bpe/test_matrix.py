"""Every tokenizer family through every entry point, compared with `tokenizers`, tiktoken and sentencepiece.

The texts are seeded. MATRIX_SEED draws others, and MATRIX_SCALE=20 draws 20 times as many.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from inline_engine import InlineEngine
from matrix_families import ENDS, FAMILIES, SCALE, SEED, Family
from tokenizers import Tokenizer as Peer

from bpe import Tokenizer
from bpe.__main__ import main
from bpe.cli.ids_file import write_ids
from bpe.compat import huggingface
from bpe.compat import tiktoken as our_tiktoken
from bpe.formats.byte_alphabet import to_bytes
from bpe.pretoken_counts.counting import count_pretokens
from bpe.ragged import Ragged
from convert import ConvertOptions, convert
from flat_tokens.storage import entries

SEPARATOR = "\ue0f0"
pytestmark = pytest.mark.filterwarnings("ignore:.*no entries for the bytes:UserWarning")


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    print(f"MATRIX_SEED={SEED} MATRIX_SCALE={SCALE}")
    return FAMILIES[request.param]()


@pytest.fixture(scope="module")
def path(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("family") / family.file
    made.write_bytes(family.data)
    return made


@pytest.fixture(scope="module")
def tokenizer(family: Family, path: Path) -> Tokenizer:
    return Tokenizer.load(path, **family.load)


def rows_of(rows: Ragged) -> list[list[int]]:
    return [row.tolist() for row in rows]


def documents(tokenizer: Tokenizer, texts: list[str], threads: int) -> list[list[int]]:
    return rows_of(tokenizer.encode_documents(SEPARATOR.join(texts).encode(), SEPARATOR, threads))


def ragged(tokenizer: Tokenizer, texts: list[str], threads: int) -> list[list[int]]:
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.uint64)
    return rows_of(tokenizer.encode_ragged(b"".join(data), offsets, threads))


def parts_of(text: str, longest: int) -> Iterator[str]:
    """Cut the text at random offsets."""
    rng = random.Random(f"{SEED} {longest}")
    start = 0
    while start < len(text):
        stop = start + rng.randint(1, longest)
        yield text[start:stop]
        start = stop


def in_pieces(
    tokenizer: Tokenizer, text: str, longest: int, block_bytes: int, allowed: Any = "all"
) -> list[int]:
    """Return the IDs of a document fed in pieces of up to `longest` characters."""
    pieces = (part.encode() for part in parts_of(text, longest))
    return [id_ for ids in tokenizer.encode_blocks(pieces, allowed, block_bytes) for id_ in ids.tolist()]


def each(made: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [made.encode(text) for text in texts]


ENTRY_POINTS: dict[str, Callable[[Tokenizer, list[str]], list[list[int]]]] = {
    "encode": each,
    "batch": lambda tokenizer, texts: rows_of(tokenizer.encode_batch(texts, 2)),
    **{f"documents, {count} threads": partial(documents, threads=count) for count in (1, 2, 4)},
    **{f"ragged, {count} threads": partial(ragged, threads=count) for count in (1, 2, 4)},
    "iterable, odd cuts": lambda tokenizer, texts: [
        list(tokenizer.encode_iterable(parts_of(text, 999))) for text in texts
    ],
    "iterable, characters": lambda tokenizer, texts: [
        list(tokenizer.encode_iterable(text)) for text in texts
    ],
    "pickled": lambda tokenizer, texts: each(pickle.loads(pickle.dumps(tokenizer)), texts),
    "copied": lambda tokenizer, texts: each(copy.deepcopy(tokenizer), texts),
}
BLOCKS = [(1, 1), (40, 50), (400, 300), (5000, 1 << 12)]  # characters per piece, bytes gathered before a cut


@pytest.mark.slow
@pytest.mark.promise("token-ids")
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_ids(family: Family, tokenizer: Tokenizer, entry_point: str) -> None:
    found = ENTRY_POINTS[entry_point](tokenizer, [*family.texts, family.long_text])
    assert_equal(family, found[:-1])
    assert_ids(found[-1], family.long_ids)


@pytest.mark.slow
@pytest.mark.parametrize(("longest", "block_bytes"), BLOCKS)
def test_long_documents(family: Family, tokenizer: Tokenizer, longest: int, block_bytes: int) -> None:
    if block_bytes < 1000:
        assert_equal(family, [in_pieces(tokenizer, text, longest, block_bytes) for text in family.texts])
    else:
        assert_ids(in_pieces(tokenizer, family.long_text, longest, block_bytes), family.long_ids)


def assert_equal(family: Family, found: list[list[int]]) -> None:
    for text, ids, expected in zip(family.texts, found, family.ids, strict=True):
        assert ids == expected, text


def assert_ids(found: list[int], expected: list[int]) -> None:
    """Compare long lists. pytest would take minutes to show the difference."""
    if found != expected:
        place = next((at for at, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), None)
        pytest.fail(f"{len(found)} ids instead of {len(expected)}; the first that differs is number {place}")


@pytest.mark.promise("saved-files")
def test_saved(family: Family, tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == tokenizer
    assert_equal(family, each(again, family.texts))
    if family.root is not None:
        theirs = Peer.from_file(str(tmp_path / "tokenizer.json"))
        assert [theirs.encode(text, add_special_tokens=False).ids for text in family.texts] == family.ids


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_first_use_by_threads_and_after_fork(family: Family, tmp_path: Path) -> None:
    (tmp_path / family.file).write_bytes(family.data)
    long = family.long_text[:20_000]
    case = {"texts": [*family.texts, long], "ids": [*family.ids, family.encode(long)]}
    (tmp_path / "case.json").write_text(json.dumps(case | {"name": family.file, "load": family.load}))
    script = Path(__file__).with_name("first_use.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-400:]


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["none", "some"])
def test_allowed_special(family: Family, tokenizer: Tokenizer, chosen: str) -> None:
    if family.root is None:
        pytest.skip("tokenizer.json only")
    tokens = family.root["added_tokens"][1::2] if chosen == "some" else []
    allowed = [token["content"] for token in tokens]
    model = family.root["model"]
    if model.get("ignore_merges"):  # tokenizers would emit the entries of the other tokens whole
        names = {text: text + SEPARATOR * (text not in allowed) for text in family.tokens}
        vocab = {names.get(entry, entry): id_ for entry, id_ in model["vocab"].items()}
        unknown = names.get(model.get("unk_token"), model.get("unk_token"))
        model = model | {"vocab": vocab, "unk_token": unknown}
    theirs = Peer.from_str(json.dumps(family.root | {"added_tokens": tokens, "model": model}))
    id_of = {theirs.token_to_id(token["content"]): token["id"] for token in tokens}  # it renumbers them
    for text in family.texts:
        expected = [id_of.get(id_, id_) for id_ in theirs.encode(text, add_special_tokens=False).ids]
        assert tokenizer.encode(text, allowed) == expected, text
        assert tokenizer.encode_batch([text], 1, allowed)[0].tolist() == expected, text
        assert list(tokenizer.encode_iterable(parts_of(text, 9), allowed)) == expected, text
        for block_bytes in (8, 300):
            assert in_pieces(tokenizer, text, 9, block_bytes, allowed) == expected, text


def decoded_rows(family: Family) -> list[list[int]]:
    """Return the IDs of the texts, except for sentencepiece, which decodes <unk> and leading spaces differently."""
    rows = zip(family.texts, family.ids, strict=True)
    return [ids for text, ids in rows if family.file != "m.model" or not (0 in ids or text[:1] in " \u2581")]


@pytest.mark.slow
def test_decode(family: Family, tokenizer: Tokenizer) -> None:
    rng = random.Random(f"{SEED} decode")
    known = list(tokenizer.vocab)
    drawn = [rng.choices(known, k=rng.randint(1, 40)) for _ in range(100 * SCALE)]
    lists = [*family.ids, *drawn, *([id_] for id_ in known), known, family.long_ids]
    if family.file == "m.model":  # sentencepiece decodes invalid UTF-8 differently
        lists = decoded_rows(family)
    expected = [family.decode(ids) for ids in lists]
    for ids, text in zip(lists, expected, strict=True):
        assert tokenizer.decode(ids) == text, ids[:50]
    assert tokenizer.decode_batch(lists) == expected


def test_text_of_a_dataset(family: Family, path: Path) -> None:
    """`tokenmill head` and exports to JSON Lines decode without importing bpe."""
    if family.root is None or family.root["decoder"] is None:
        pytest.skip("tokenizer.json with a decoder only")
    known = entries.load_entries(path)
    normalized = {token["id"] for token in family.root["added_tokens"] if token["normalized"]}
    for ids in family.ids:
        if normalized.isdisjoint(ids):  # `tokenizers` decodes those to their normalized text
            assert entries.decode(ids, known) == family.decode(ids), ids


@pytest.mark.slow
@pytest.mark.parametrize(("form", "block"), [("bin", 1), ("npy", 64), ("txt", 500)])
def test_decode_command(
    family: Family, as_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, block: int
) -> None:
    """Each block of 2^20 IDs was decoded separately, which lost a space or a character at each boundary."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", block)
    ids = [id_ for row in decoded_rows(family) for id_ in row]
    source, output = tmp_path / f"ids.{form}", tmp_path / "text"
    with source.open("wb") as file:
        write_ids(file, [[ids]], "text" if form == "txt" else form, None)
    assert main(["decode", "--tokenizer", str(as_json), str(source), "--output", str(output)]) == 0
    assert output.read_bytes().decode(errors="replace") == family.decode(ids)


@pytest.fixture(scope="module")
def as_json(
    family: Family, path: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the file, or a tokenizer.json if a command cannot read the file alone."""
    if family.load:
        path = tmp_path_factory.mktemp("json") / "tokenizer.json"
        tokenizer.save(path)
    return path


@pytest.mark.slow
def test_encode_command(
    family: Family, as_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe.cli.text_input._BLOCK_BYTES", 5000)
    (tmp_path / "text").write_text(family.long_text, newline="")
    output = tmp_path / "ids.bin"
    assert main(["encode", str(tmp_path / "text"), "--tokenizer", str(as_json), "--output", str(output)]) == 0
    assert_ids(np.fromfile(output, "<u4").tolist(), family.long_ids)


@pytest.mark.slow
@pytest.mark.promise("token-ids")
@pytest.mark.parametrize(("block_bytes", "kind"), [(50, "txt"), (300, "jsonl"), (1 << 12, "txt")])
def test_convert(
    family: Family,
    as_json: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block_bytes: int,
    kind: str,
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", block_bytes)
    monkeypatch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", 2 * block_bytes)
    texts, ids = (family.texts, family.ids) if block_bytes < 1000 else ([family.long_text], [family.long_ids])
    source = tmp_path / f"a.{kind}"
    if kind == "txt":
        source.write_text(SEPARATOR.join([*texts, "a"]), newline="")
        ids = [*ids, family.encode("a")]
    else:
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    options = ConvertOptions(
        [str(source)],
        str(as_json),
        str(tmp_path / "out"),
        separator=SEPARATOR,
        special_in_text="text" if family.file == "m.model" else "encode",
        validation_fraction=0,
        text_chunk_bytes=1000,
        progress="none",
    )
    convert(options, InlineEngine())
    train: Any = zarr.open_group(tmp_path / "out", mode="r")["train"]
    tokens, starts = train["encoded_tokens"][:] >> 1, train["seq_starts"][:]
    rows = [tokens[start:stop].tolist() for start, stop in pairwise(starts)]
    expected = [row for row in ids if row]
    assert len(rows) == len(expected)
    for found, row in zip(rows, expected, strict=True):
        assert_ids(found, row)


@pytest.mark.parametrize("block_bytes", [1, 40, 1 << 20])
def test_counts(family: Family, tokenizer: Tokenizer, block_bytes: int) -> None:
    if family.root is None:
        pytest.skip("tokenizer.json only")
    theirs = family.peer
    texts = [text for text in family.texts if not any(token in text for token in family.tokens)]
    expected: Counter[bytes] = Counter()
    for text in texts:
        if theirs.normalizer is not None:
            text = theirs.normalizer.normalize_str(text)
        pieces = (
            [(text, None)] if theirs.pre_tokenizer is None else theirs.pre_tokenizer.pre_tokenize_str(text)
        )
        expected.update(
            to_bytes(piece) if "ByteLevel" in str(family.root["pre_tokenizer"]) else piece.encode()
            for piece, _ in pieces
            if piece
        )
    counted = count_pretokens(
        [text.encode() for text in texts],
        ENDS,
        tokenizer.pretokenizer,
        threads=2,
        block_bytes=block_bytes,
        normalizer=tokenizer.normalizer,
    )
    assert counted.as_dict() == expected


@pytest.mark.slow
@pytest.mark.promise("compat-huggingface")
def test_huggingface_interface(family: Family, tokenizer: Tokenizer) -> None:
    if family.root is None:
        pytest.skip("tokenizer.json only")
    ours, theirs = huggingface.Tokenizer.from_str(family.data.decode()), family.peer
    for add in (False, True):
        rows = ours.encode_batch(family.texts, add_special_tokens=add)
        for text, row in zip(family.texts, rows, strict=True):
            expected = theirs.encode(text, add_special_tokens=add)
            assert tokenizer.encode(text, add_special_tokens=add) == expected.ids, text
            for encoding in (row, ours.encode(text, add_special_tokens=add)):
                assert encoding.ids == expected.ids, text
                assert encoding.tokens == expected.tokens, text
                assert encoding.offsets == expected.offsets, text
            for skip in (False, True):
                assert ours.decode(row.ids, skip) == theirs.decode(row.ids, skip), text
    assert_ids(ours.encode(family.long_text, add_special_tokens=False).ids, family.long_ids)


@pytest.mark.promise("compat-tiktoken")
def test_tiktoken_interface(family: Family, tokenizer: Tokenizer) -> None:
    if family.file not in ("m.tiktoken", "tekken.json"):
        pytest.skip("ranks only")
    theirs = family.peer
    ours = our_tiktoken.Encoding(
        "t",
        pat_str=theirs._pat_str,
        mergeable_ranks=theirs._mergeable_ranks,
        special_tokens=theirs._special_tokens,
    )
    texts = [*family.texts, family.long_text]
    assert ours.encode_batch(texts, allowed_special="all") == [*family.ids, family.long_ids]
    for text, ids in zip(texts, [*family.ids, family.long_ids], strict=True):
        assert_ids(ours.encode(text, allowed_special="all"), ids)
        assert_ids(ours.encode_ordinary(text), theirs.encode_ordinary(text))
        assert ours.decode(ids) == theirs.decode(ids)
        assert ours.decode_bytes(ids) == theirs.decode_bytes(ids)
