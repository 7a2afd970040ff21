"""The documents of all parts of a file, put together, are those of `bytes.split` on the whole of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.overlapping import overlaps_itself
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.stretches import STRETCH_BYTES, Stretch, own_stretches
from tokenmill.inputs.text_window import TextWindow

SEPARATORS = [b"|", b"<s>", b"\n\n", b"aa", b"aaa", b"aba", b"abaab", b"abab", b"<|endoftext|>", "…".encode()]


def documents_of(text: bytes, separator: bytes) -> list[bytes]:
    """The specification: no document after a separator that ends the file, none in an empty file."""
    documents = text.split(separator)
    return documents if documents[-1] else documents[:-1]


def documents_by_parts(
    path: Path,
    separator: bytes,
    part_bytes: int,
    buffer: GrowingBuffer | None = None,
    stretch_bytes: int = STRETCH_BYTES,
) -> list[bytes]:
    size = path.stat().st_size
    found: list[bytes] = []
    for start in range(0, size, part_bytes):
        pieces: list[bytes] = []
        with TextWindow(Source(str(path), size, 0), buffer) as window:
            for stretch in own_stretches(window, separator, start, start + part_bytes, stretch_bytes):
                assert stretch.is_piece or stretch.stop - stretch.start <= stretch_bytes
                assert stretch.stop - stretch.start <= stretch_bytes + len(separator)
                with window.view(stretch.start, stretch.stop) as view:
                    text = bytes(view)
                if not stretch.is_piece:
                    assert not pieces
                    found.extend(text.split(separator))
                    continue
                pieces.append(text)
                if stretch.final:
                    found.append(b"".join(pieces))
                    pieces = []
        assert not pieces
    return found


@pytest.mark.parametrize("part_bytes", [1, 2, 3, 4, 7, 8, 9, 64, 1000])
@pytest.mark.parametrize("separator", SEPARATORS, ids=repr)
def test_parts_equal_a_scan_of_the_whole(separator: bytes, part_bytes: int, tmp_path: Path) -> None:
    """For stretches of any length too."""
    rng = random.Random(f"{separator!r} {part_bytes}")
    alphabet = [bytes([byte]) for byte in set(separator)] + [separator, separator[:-1], b"x"]
    path = tmp_path / "text"
    buffer = GrowingBuffer()
    for length in (*range(6), 8, 13, 21, 34, 55):
        text = b"".join(rng.choice(alphabet) for _ in range(length))
        path.write_bytes(text)
        for stretch_bytes in (1, 2, 3, 8, 20, 1000):
            found = documents_by_parts(path, separator, part_bytes, buffer, stretch_bytes)
            assert found == documents_of(text, separator), (text, stretch_bytes)


@pytest.mark.parametrize("separator", [b"\n\n", b"aa", b"aba", b"<s>"], ids=repr)
def test_every_offset_of_a_border_in_a_run_of_separators(separator: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    for run in (separator * 5, separator[:1] * 11, (separator + separator[1:]) * 3):
        text = b"one" + run + b"two" + run
        path.write_bytes(text)
        for border in range(1, len(text)):
            assert documents_by_parts(path, separator, border) == documents_of(text, separator), (
                text,
                border,
            )


@pytest.mark.parametrize("repeated", [b"a", b"ab", b"aab", b"aaba", b"abaabaaab"], ids=repr)
@pytest.mark.parametrize("separator", [b"aa", b"aba", b"abab", b"aabaa"], ids=repr)
def test_runs_longer_than_a_block_are_walked_back(
    separator: bytes, repeated: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenmill.inputs.overlapping.COMPARED_BYTES", 16)
    path = tmp_path / "text"
    for times in (15, 16, 17, 33):
        run = repeated * times
        text = b"first" + run + run[1:] + b"second" + separator + run[::-1] + b"third"
        path.write_bytes(text)
        for part_bytes in (1, 7, 50):
            assert documents_by_parts(path, separator, part_bytes) == documents_of(text, separator)


def test_a_file_of_newlines_is_walked_back_in_big_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = 0
    cover = TextWindow.cover

    def counting(window: TextWindow, start: int, stop: int) -> None:
        nonlocal moves
        moves += 1
        cover(window, start, stop)

    monkeypatch.setattr(TextWindow, "cover", counting)
    path = tmp_path / "text"
    size = 5_000_001
    path.write_bytes(b"\n" * size)
    with TextWindow(Source(str(path), size, 0)) as window:
        stretches = list(own_stretches(window, b"\n\n", 3_000_001, 4_000_001))
    assert stretches == [Stretch(3_000_002, 4_000_000)]
    assert moves < 50


def test_memory_is_that_of_a_stretch_whatever_the_document(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"short<s>" + b"long " * 100_000 + b"<s>short")
    buffer = GrowingBuffer()
    documents = documents_by_parts(path, b"<s>", 600_000, buffer, 1000)
    assert [len(document) for document in documents] == [5, 500_000, 5]
    assert len(buffer.memory) < 1200


def test_a_document_longer_than_many_parts_belongs_to_the_part_it_starts_in(tmp_path: Path) -> None:
    text = b"a" * 300_000 + b"<s>" + b"b" * 300_000
    path = tmp_path / "text"
    path.write_bytes(text)
    spans = []
    for start in range(0, len(text), 100_000):
        with TextWindow(Source(str(path), len(text), 0)) as window:
            spans.append(list(own_stretches(window, b"<s>", start, start + 100_000)))
    assert spans == [[Stretch(0, 300_000)], [], [], [Stretch(300_003, 600_003)], [], [], []]


@pytest.mark.parametrize(
    ("separator", "expected"),
    [(b"a", False), (b"aa", True), (b"aba", True), (b"ab", False), (b"<|endoftext|>", False)],
)
def test_overlaps_itself(separator: bytes, expected: bool) -> None:
    assert overlaps_itself(separator) is expected


def test_a_file_that_shrank_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"abc")
    with (
        TextWindow(Source(str(path), 10, 0)) as window,
        pytest.raises(BadInput, match="byte 3"),
    ):
        list(own_stretches(window, b"|", 0, 10))


def test_what_is_read_is_shown_to_whoever_wants_to_see(tmp_path: Path) -> None:
    path = tmp_path / "text"
    data = random.Random(3).randbytes(50)
    path.write_bytes(data)
    seen: list[tuple[int, bytes]] = []
    with TextWindow(
        Source(str(path), 50, 0), None, lambda offset, new: seen.append((offset, bytes(new)))
    ) as window:
        for start, stop in [(10, 20), (12, 30), (25, 41), (0, 5), (49, 50)]:
            with window.view(start, stop) as view:
                assert bytes(view) == data[start:stop]
    assert [(offset, len(new)) for offset, new in seen] == [(10, 10), (20, 10), (30, 11), (0, 5), (49, 1)]
    assert all(data[offset : offset + len(new)] == new for offset, new in seen)
