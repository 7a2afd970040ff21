"""Counts files return the counts written; damaged, truncated or foreign files give a one-line error."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from splits import split

from bpe.errors import BadCounts, EnvironmentFailure, MissingInput
from bpe.pretoken_counts import counts_writer
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountedSource, CountsFacts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretoken_counts.counts_writer import CountsWriter, write_counts_file
from bpe.pretoken_counts.merge_counts import joined
from bpe.pretokenizer import Pretokenizer
from tokenmill.inputs import _core

FACTS = CountsFacts(
    Pretokenizer((split(r"\w+", "keep"), split("gpt2"))),
    ("<|endoftext|>", "é\n"),
    text_bytes=2**40,
    documents=17,
    replaced=3,
    sample="sampled 1 of 2",
    sources=(
        CountedSource("/a\udcff", 10, 5, 123),
        CountedSource("stdin", 4, 4),
        CountedSource("/b", 4, 4, 1),
    ),
)


def random_counts(seed: int, size: int, longest: int = 20) -> dict[bytes, int]:
    rng = random.Random(seed)
    counts = {rng.randbytes(rng.randint(1, longest)): 2 ** rng.randint(0, 52) for _ in range(size)}
    return (
        counts
        | {b"\x00" * n: n for n in range(1, 12)}
        | {b"same bytes" + b"\x00" * n: n + 1 for n in range(9)}
    )


def written(path: Path, counts: dict[bytes, int], facts: CountsFacts = FACTS) -> Path:
    PretokenCounts.from_mapping(counts, facts).save(path)
    return path


@pytest.mark.parametrize("block", [1, 2, 3, 7, 8, 9, 10**6], ids=lambda size: f"block={size}")
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 300])
def test_round_trip(size: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts_writer, "BLOCK_PRETOKENS", block)
    monkeypatch.setattr(counts_writer, "BLOCK_BYTES", 40)
    counts = random_counts(size, size) if size > 1 else dict.fromkeys([b"x"] * size, 5)
    file = CountsFile(written(tmp_path / "a.counts", counts))
    assert file.facts == FACTS
    assert (len(file), file.total) == (len(counts), sum(counts.values()))
    assert file.pretoken_bytes == sum(map(len, counts))
    arrays = joined(file.blocks())
    assert [array.dtype for array in arrays] == [np.uint8, np.uint64, np.uint64]
    assert list(PretokenCounts(*arrays).as_dict().items()) == sorted(counts.items())
    assert list(PretokenCounts.load(tmp_path / "a.counts").as_dict().items()) == sorted(counts.items())
    assert list(tmp_path.iterdir()) == [tmp_path / "a.counts"]


@pytest.mark.parametrize("highest", [255, 256, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**63 - 2])
def test_numbers_of_any_width(highest: int, tmp_path: Path) -> None:
    counts = {b"a": highest, b"b" * min(highest, 70_000): 1}
    file = CountsFile(written(tmp_path / "a.counts", counts))
    assert PretokenCounts(*joined(file.blocks())).as_dict() == counts


def test_the_bytes_of_the_format_are_as_documented(tmp_path: Path) -> None:
    data = written(tmp_path / "a.counts", {b"a": 2, b"bc": 300}, CountsFacts()).read_bytes()
    assert data[:16] == b"tmcounts\x01\0\0\0\0\0\0\0"
    block = struct.pack("<IBBHQ", 2, 1, 2, 0, 3) + bytes([1, 2]) + struct.pack("<2H", 2, 300) + b"abc"
    assert data[16 : 16 + len(block)] == block
    at = 16 + len(block)
    assert data[at : at + 8] == _core.xxh64(block, 0).to_bytes(8, "little")
    start, digest, end = struct.unpack("<QQ8s", data[-24:])
    assert (start, end) == (at + 8, b"tmcntend")
    assert digest == _core.xxh64(data[:16] + data[start:-16])
    assert data[start:-24].startswith(b'{"pattern":[]')


def small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.setattr(counts_writer, "BLOCK_PRETOKENS", 2)
    counts = {b"a": 2, b"bc": 300, b"d": 1, b"efg": 5, b"h": 70_000}
    return written(
        tmp_path / "good.counts", counts, CountsFacts(Pretokenizer.from_pattern("gpt2"))
    ).read_bytes()


def read_all(path: Path) -> None:
    for _ in CountsFile(path).blocks():
        pass


def test_every_flipped_bit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_file(tmp_path, monkeypatch)
    path = tmp_path / "bad.counts"
    for place in range(len(data)):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        path.write_bytes(bad)
        with pytest.raises(BadCounts, match=r"bad\.counts: ") as raised:
            read_all(path)
        assert raised.value.exit_code == 3
        assert "\n" not in str(raised.value)


def test_every_truncation_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_file(tmp_path, monkeypatch)
    path = tmp_path / "bad.counts"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(BadCounts, match=r"bad\.counts: "):
            read_all(path)
    path.write_bytes(data + b"x")
    with pytest.raises(BadCounts):
        read_all(path)


def test_swapped_blocks_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts_writer, "BLOCK_PRETOKENS", 1)
    data = written(tmp_path / "a.counts", {b"a": 1, b"b": 1}).read_bytes()
    size = 16 + 3 + 8
    swapped = data[:16] + data[16 + size : 16 + 2 * size] + data[16 : 16 + size] + data[16 + 2 * size :]
    (tmp_path / "a.counts").write_bytes(swapped)
    with pytest.raises(BadCounts, match="byte 16"):
        read_all(tmp_path / "a.counts")


@pytest.mark.parametrize(
    "order",
    [[b"b", b"a"], [b"a", b"a"], [b"ab", b"a"], [b"12345678b", b"12345678a"], [b"12345678", b"12345678"]],
    ids=str,
)
@pytest.mark.parametrize("block", [1, 2], ids=["blocks", "within"])
def test_unsorted_pretokens_are_refused(
    order: list[bytes], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts_writer, "BLOCK_PRETOKENS", block)
    ends = np.cumsum([len(pretoken) for pretoken in order], dtype=np.uint64)
    arrays = np.frombuffer(b"".join(order), np.uint8), ends, np.ones(2, np.uint64)
    write_counts_file(tmp_path / "a.counts", [arrays], CountsFacts(), temporary=True)
    with pytest.raises(BadCounts):
        read_all(tmp_path / "a.counts")


def test_sums_that_do_not_fit_are_found(tmp_path: Path) -> None:
    class Wrong(CountsWriter):
        def finish(self, facts: CountsFacts) -> None:
            self._total += 1
            super().finish(facts)

    with (tmp_path / "a.counts").open("wb") as file:
        writer = Wrong(file)
        writer.write(PretokenCounts.from_mapping({b"a": 1}).arrays)
        writer.finish(CountsFacts())
    with pytest.raises(BadCounts):
        read_all(tmp_path / "a.counts")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"x\.counts: "),
        (b"{}", r"x\.counts: "),
        (b"some text that is long enough to be read as a header", r"x\.counts: "),
        (b"tmcounts", r"x\.counts: .*8 bytes"),
        (b"tmcounts\x02\0\0\0" + b"\0" * 50, r"x\.counts: .*version.*2"),
    ],
    ids=["empty", "json", "text", "magic alone", "future"],
)
def test_other_files(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.counts").write_bytes(data)
    with pytest.raises(BadCounts, match=message):
        CountsFile(tmp_path / "x.counts")


def with_footer(data: bytes, footer: bytes) -> bytes:
    start = struct.unpack("<Q", data[-24:-16])[0]
    digest = _core.xxh64(data[:16] + footer + data[-24:-16]).to_bytes(8, "little")
    return data[:start] + footer + data[-24:-16] + digest + data[-8:]


@pytest.mark.parametrize(
    "footer",
    [b"", b"[]", b"{}", b'{"pattern":[{"expression":"("}]}', b"[" * 100_000],
    ids=lambda text: str(text[:9]),
)
def test_foreign_footers(footer: bytes, tmp_path: Path) -> None:
    data = written(tmp_path / "a.counts", {b"a": 1}).read_bytes()
    (tmp_path / "a.counts").write_bytes(with_footer(data, footer))
    with pytest.raises(BadCounts):
        CountsFile(tmp_path / "a.counts")


def test_a_pattern_that_does_not_compile(tmp_path: Path) -> None:
    written(tmp_path / "a.counts", {b"a": 1}, CountsFacts(Pretokenizer((split("(", "keep"),))))
    with pytest.raises(BadCounts):
        CountsFile(tmp_path / "a.counts")


def test_missing_and_unwritable(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match=r"no\.counts"):
        CountsFile(tmp_path / "no.counts")
    with pytest.raises(MissingInput):
        CountsFile(tmp_path)
    for temporary, hint in ((False, ""), (True, "--temp-dir")):
        with pytest.raises(EnvironmentFailure, match=f"/dev/full.*{hint}"):
            write_counts_file("/dev/full", [], CountsFacts(), temporary)
