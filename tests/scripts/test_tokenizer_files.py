"""The benchmark's tokenizer files: tokenizers loads each, and rank files become merges that give the same ids."""

import base64
import json
import lzma
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tokenizers import Tokenizer

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
import published
import tokenizer_files

TEXT = "Hello hello,  THE then 12345 it's\n\n the 中文 é e\u0301 <mask>  x\t\tthe   the"


def entries() -> list[bytes]:
    """All bytes, then entries that merges of earlier ones make."""
    words = [b" the", b"hello", b" then", b"12345", "中文".encode(), b"\t\t", b"   "]
    parts = [word[:end] for word in words for end in range(2, len(word) + 1)]
    parts += [left + right for left, right in pairwise(words)]
    return list(dict.fromkeys([bytes([byte]) for byte in range(256)] + parts))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each family, all from one small vocabulary."""
    folder = tmp_path_factory.mktemp("files")
    ranks = b"".join(base64.b64encode(entry) + b" %d\n" % rank for rank, entry in enumerate(entries()))
    packed = folder / "small.tiktoken.xz"
    packed.write_bytes(lzma.compress(ranks))
    names = {name for family in published.FAMILIES for name in family.vocabularies}
    written = tokenizer_files.write_all(dict.fromkeys(names, packed), folder / "out", None, ["cl100k"])
    (folder / "out").mkdir()
    return {path.stem: path for path in written}


def test_every_family_has_a_file(files: dict[str, Path]) -> None:
    assert set(files) == {family.name for family in published.FAMILIES}
    assert len(files) >= 30


@pytest.mark.parametrize("family", published.FAMILIES, ids=lambda family: str(family.name))
def test_tokenizers_loads_it_with_the_ids_that_it_lists(
    files: dict[str, Path], family: published.Published
) -> None:
    content: dict[str, Any] = json.loads(files[family.name].read_text())
    tokenizer = Tokenizer.from_file(str(files[family.name]))
    for token in content["added_tokens"]:
        assert tokenizer.token_to_id(token["content"]) == token["id"]
    assert tokenizer.get_vocab_size() == len(
        {*content["model"]["vocab"]} | {token["content"] for token in content["added_tokens"]}
    )
    ids = tokenizer.encode(TEXT, add_special_tokens=False).ids
    with_special = tokenizer.encode(TEXT).ids
    adds = isinstance(family.post_processor, (published.Template, published.Roberta))
    assert (len(with_special) > len(ids)) == adds
    if family.name not in ("phi-4", "roberta", "roberta-prefix-space", "modernbert", "claude"):
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        composed = TEXT.replace("e\u0301", "é") if family.normalizer == published.NFC else TEXT
        if not family.name.startswith("bloom"):
            assert decoded == composed


@pytest.mark.parametrize("one_merge", [False, True])
def test_merges_of_a_rank_file_give_the_ids_of_tiktoken(one_merge: bool) -> None:
    by_rank = {entry: rank for rank, entry in enumerate(entries())}
    encoding = tiktoken.Encoding(
        "small", pat_str=published.CL100K, mergeable_ranks=by_rank, special_tokens={}
    )
    family = next(family for family in published.FAMILIES if family.name == "olmo-2")
    content = tokenizer_files.tokenizer_json(family, tokenizer_files.from_ranks(entries(), one_merge))
    ids = Tokenizer.from_str(json.dumps(content)).encode(TEXT, add_special_tokens=False).ids
    assert ids == encoding.encode_ordinary(TEXT)
    assert max(ids) >= 256


def test_every_way_to_make_an_entry_or_the_one_of_its_bytes() -> None:
    small = [b"a", b"b", b"c", b"ab", b"bc", b"abc"]
    ways = tokenizer_files.from_ranks(small, False).merges
    assert ways == [("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")]
    assert tokenizer_files.from_ranks(small, True).merges == [("a", "b"), ("b", "c"), ("ab", "c")]
