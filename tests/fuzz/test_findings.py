"""Minimal inputs of faults that the fuzz targets found."""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from targets_corpus import read_documents
from targets_datasets import write_litdata, write_mds, write_megatron
from targets_tokenizers import DOCUMENTS, family

from bpe import BadTokenizer, Tokenizer
from bpe.formats import huggingface
from bpe.normalizers import Charsmap, Normalizer
from bpe.pretokenization import transitions
from bpe.pretokenization.components import Split
from bpe.pretokenizer import Pretokenizer
from flat_tokens.errors import DatasetError
from flat_tokens.exchange.formats import ReadOptions, module_of
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.rules import MarkRules


def blocks(name: str, place: Path) -> Iterator[Any]:
    return module_of(name).read(Path(place), ReadOptions(None, None, []))


@pytest.mark.promise("limits")
def test_components_that_double_a_text_again_and_again() -> None:
    """Forty ByteLevels expand a letter to a terabyte."""
    root = dict(family(DOCUMENTS[0]).root or {})
    doubling = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    root["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [doubling] * 40}
    with pytest.raises(BadTokenizer, match=r"normalizer and pre_tokenizer: .*1e\+12"):
        huggingface.read(json.dumps(root).encode())


@pytest.mark.parametrize("pattern", [{"String": "a"}, {"Regex": "a|b"}])
def test_replacements_that_grow_what_replacements_made(pattern: dict[str, str]) -> None:
    root = dict(family(DOCUMENTS[0]).root or {})
    replace = {"type": "Replace", "pattern": pattern, "content": "a" * 300}
    root["normalizer"] = replace
    Tokenizer.from_parts(huggingface.read(json.dumps(root).encode())).encode("aa")
    root["normalizer"] = {"type": "Sequence", "normalizers": [replace] * 2}
    with pytest.raises(BadTokenizer, match="^normalizer and pre_tokenizer: "):
        huggingface.read(json.dumps(root).encode())


def test_a_charsmap_key_that_ends_within_a_character() -> None:
    """The rest of the character was invalid UTF-8, and was passed to code that expects valid text."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from charsmap import build

    whole = build({"\u4e2d": "m", "abc": "A"})
    units = np.frombuffer(whole[4 : 4 + int.from_bytes(whole[:4], "little")], np.uint32).copy()
    first = np.flatnonzero(units & 0x800000FF == 0xE4)[0]  # lead byte of the three; now a separate key
    second = int(first) ^ (int(units[first]) >> 10 << ((int(units[first]) & 1 << 9) >> 6))
    units[first] |= 1 << 8
    units[second] = 1 << 31
    damaged = whole[:4] + units.tobytes() + whole[4 + units.nbytes :]
    assert Normalizer((Charsmap(whole),)).apply_to_text("\u4e2d abc \u4e8c") == "m A \u4e8c"
    assert Normalizer((Charsmap(damaged),)).apply_to_text("\u4e2d abc \u4e8c") == "m A \u4e8c"


def test_a_charsmap_with_a_key_of_three_letters() -> None:
    """The first letter was treated as unchanged, since no key of one or two letters matched."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from charsmap import build

    normalizer = Normalizer((Charsmap(build({"abc": "A", "d": "D", "efgh\u4e2d": "E"})),))
    assert normalizer.apply_to_text("abcab abcd efgh efgh\u4e2d") == "Aab AD efgh E"


def test_a_pattern_with_many_walks_is_compiled_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The regex package cuts it instead, with the same pieces."""
    expression = r"\p{L}{1,3}(?=a)|\s+(?!\S)|."
    compiled = Pretokenizer((Split(expression, "oniguruma"),)).checked()
    assert compiled.slow_because is None
    monkeypatch.setattr(transitions, "MAX_WALKS", 10)
    other = Pretokenizer((Split(expression + "|b", "oniguruma"),)).checked()
    assert "more than 10 walks" in str(other.slow_because)
    assert other.pretokens("abca  d") == compiled.pretokens("abca  d")


def test_an_npy_header_that_is_not_python(tmp_path: Path) -> None:
    text = b"{'descr': '<u2', (\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text)
    with pytest.raises(DatasetError):
        list(blocks("npy", tmp_path / "a.npy"))


@pytest.mark.parametrize("name", ["mds", "litdata"])
def test_index_answers_are_shown_in_one_line(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a"
    {"mds": write_mds, "litdata": write_litdata}[name](folder, [[1, 2]])
    index = (folder / "index.json").read_text()
    (folder / "index.json").write_text(
        re.sub(r'("samples"|"chunk_size"): 1\b', r'\1: "\\u001b[2J\\n"', index)
    )
    with pytest.raises(DatasetError) as caught:
        list(blocks(name, folder))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("file_name", ["a" * 256, "\ud800"])
@pytest.mark.parametrize("name", ["mds", "litdata"])
def test_an_index_names_a_file_that_cannot_be(tmp_path: Path, name: str, file_name: str) -> None:
    folder = tmp_path / "a"
    {"mds": write_mds, "litdata": write_litdata}[name](folder, [[1, 2]])
    index = (folder / "index.json").read_text()
    changed = re.sub(r'"(shard\.00000\.mds|chunk-0-0\.bin)"', lambda _: json.dumps(file_name), index)
    (folder / "index.json").write_text(changed)
    with pytest.raises(Exception, match="names|does not exist") as caught:
        list(blocks(name, folder))
    assert str(caught.value).isprintable()


def test_ends_of_documents_whose_differences_wrap(tmp_path: Path) -> None:
    """As an unsigned difference, a decrease of more than 2^63 looks like an increase."""
    write_megatron(tmp_path / "a.bin", [[1], [2], [3]])
    index = bytearray((tmp_path / "a.idx").read_bytes())
    index[-24:] = np.array([2**62, -(2**62) - 1, 3], "<i8").tobytes()
    (tmp_path / "a.idx").write_bytes(index)
    with pytest.raises(DatasetError):
        list(blocks("megatron", tmp_path / "a"))


def test_a_separator_in_a_message_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b'"id"x\ttext\n1\ta\n')
    with pytest.raises(BadInput) as caught:
        read_documents(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("marks", [None, MarkRules("text", "text")], ids=["text", "marks"])
def test_levels_that_do_not_fit_their_histograms_ended_the_process(
    marks: MarkRules | None, tmp_path: Path
) -> None:
    """pyarrow aborts the process when Python reads the metadata of such a column."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"]}), path)
    data = path.read_bytes()
    optional, required = b"\x25\x02\x18\x04text", b"\x25\x00\x18\x04text"
    assert data.count(optional) == 1
    path.write_bytes(data.replace(optional, required))
    with pytest.raises(BadInput):
        read_documents(path, marks)
