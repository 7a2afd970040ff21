"""Text chunks cover every source once, whatever their size."""

from __future__ import annotations

import pytest

from convert.planning.plan import default_chunk_bytes, make_plan
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import Piece, Source, SourceList

STEP = 4 << 20


def sources(*sizes: int) -> SourceList:
    return SourceList(Source(f"{index}.txt", size, 0) for index, size in enumerate(sizes))


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 8, 9, 10, 100])
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (0, 0, 5), (5, 0, 3, 0), (8, 8), (1,) * 20], ids=repr)
def test_every_byte_is_in_one_chunk(sizes: tuple[int, ...], chunk_bytes: int) -> None:
    plan = make_plan(sources(*sizes), chunk_bytes)
    chunks = list(plan.chunks())
    covered = [
        (piece.source_index, place)
        for chunk in chunks
        for piece in plan.pieces(chunk)
        for place in range(piece.start, piece.stop)
    ]
    assert covered == [(index, place) for index, size in enumerate(sizes) for place in range(size)]
    assert [chunk.index for chunk in chunks] == list(range(plan.chunk_count))
    assert all(chunk.text_bytes == chunk_bytes for chunk in chunks[:-1])
    assert all(0 < chunk.text_bytes <= chunk_bytes for chunk in chunks[-1:])


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 10, 100])
def test_a_compressed_file_is_the_work_of_the_chunk_it_begins_in(chunk_bytes: int) -> None:
    """All chunks but its first were done at once, and 97 % of the bar with them."""
    packed = Kind("text", "gz")
    files = SourceList(
        [
            Source("a", 5, 0),
            Source("b.gz", 21, 0, kind=packed),
            Source("c", 3, 0),
            Source("d.gz", 0, 0, kind=packed),
        ]
    )
    plan = make_plan(files, chunk_bytes)
    for chunk in plan.chunks():
        places = range(chunk.start, chunk.stop)
        assert plan.work_bytes(chunk) == sum(place < 5 or place >= 26 for place in places) + 21 * (
            5 in places
        )
    assert sum(map(plan.work_bytes, plan.chunks())) == plan.total_bytes == 29
    plain = make_plan(sources(5, 21, 3), chunk_bytes)
    assert [plain.work_bytes(chunk) for chunk in plain.chunks()] == [
        chunk.text_bytes for chunk in plain.chunks()
    ]


def test_chunks_lie_across_files() -> None:
    plan = make_plan(sources(10, 3, 10), 8)
    assert [*plan.pieces(plan.chunk(1))] == [Piece(0, 8, 10), Piece(1, 0, 3), Piece(2, 0, 3)]
    assert plan.describe(plan.chunk(1)) == "text chunk 1 (0.txt, bytes 8 to 10 up to 2.txt, bytes 0 to 3)"
    assert plan.describe(plan.chunk(0)) == "text chunk 0 (0.txt, bytes 0 to 8)"
    assert plan.describe(plan.chunk(2)) == "text chunk 2 (2.txt, bytes 3 to 10)"


@pytest.mark.parametrize(
    ("total", "blocks"),
    [(0, 1), (1, 1), (64 * STEP, 1), (64 * STEP + 1, 2), (12 * 10**9, 8), (12 * 10**12, 8)],
)
def test_default_chunk_size(total: int, blocks: int) -> None:
    assert default_chunk_bytes(total) == blocks * STEP


def test_a_plan_of_12_terabytes_is_only_arithmetic() -> None:
    plan = make_plan(sources(*[10**12] * 12))
    *_, last = plan.pieces(plan.chunk(plan.chunk_count - 1))
    assert plan.chunk_count == -(-12 * 10**12 // plan.chunk_bytes)
    assert last == Piece(11, last.start, 10**12)


def test_a_large_compressed_file_is_a_chunk_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convert.planning.plan.LARGE_FILE_BYTES", 20)
    packed = [
        Source(name, 21, 0, kind=Kind(kind, "gz")) for name, kind in (("b.gz", "text"), ("d.gz", "csv"))
    ]
    files = SourceList([Source("a", 5, 0), packed[0], Source("c", 30, 0), packed[1], Source("e.gz", 0, 0)])
    plan = make_plan(files, 8)
    chunks = [(chunk.start, chunk.stop) for chunk in plan.chunks()]
    assert chunks == [(0, 5), (5, 26), (26, 34), (34, 42), (42, 50), (50, 56), (56, 77)]
    assert [plan.can_unpack(chunk) for chunk in plan.chunks()] == [False, True, *[False] * 5]
    assert [list(plan.chunks_of(number)) for number in range(4)] == [[0], [1], [2, 3, 4, 5], [6]]
    assert sum(map(plan.work_bytes, plan.chunks())) == plan.total_bytes == 77
