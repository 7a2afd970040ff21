"""Text chunks cover every source once, whatever their size; a plan's record tells what changed."""

from __future__ import annotations

import copy

import pytest

from convert.inputs.sources import Source
from convert.plan import BLOCK_BYTES, Piece, default_chunk_bytes, differences, make_plan, plan_record, told


def sources(*sizes: int) -> list[Source]:
    return [Source(f"{index}.txt", size, 0) for index, size in enumerate(sizes)]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 8, 9, 10, 100])
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (0, 0, 5), (5, 0, 3, 0), (8, 8), (1,) * 20], ids=repr)
def test_every_byte_is_in_one_chunk(sizes: tuple[int, ...], chunk_bytes: int) -> None:
    plan = make_plan(sources(*sizes), chunk_bytes)
    chunks = list(plan.chunks())
    covered = [
        (piece.source_index, place)
        for chunk in chunks
        for piece in chunk.pieces
        for place in range(piece.start, piece.stop)
    ]
    assert covered == [(index, place) for index, size in enumerate(sizes) for place in range(size)]
    assert [chunk.index for chunk in chunks] == list(range(plan.chunk_count))
    assert all(chunk.text_bytes == chunk_bytes for chunk in chunks[:-1])
    assert all(0 < chunk.text_bytes <= chunk_bytes for chunk in chunks[-1:])


def test_chunks_lie_across_files() -> None:
    plan = make_plan(sources(10, 3, 10), 8)
    assert plan.chunk(1).pieces == (Piece(0, 8, 10), Piece(1, 0, 3), Piece(2, 0, 3))
    assert (
        plan.chunk(1).describe(plan.sources)
        == "text chunk 1 (0.txt, bytes 8 to 10 up to 2.txt, bytes 0 to 3)"
    )
    assert plan.chunk(0).describe(plan.sources) == "text chunk 0 (0.txt, bytes 0 to 8)"


@pytest.mark.parametrize(
    ("total", "blocks"),
    [(0, 1), (1, 1), (64 * BLOCK_BYTES, 1), (64 * BLOCK_BYTES + 1, 2), (12 * 10**9, 8), (12 * 10**12, 8)],
)
def test_default_chunk_size(total: int, blocks: int) -> None:
    assert default_chunk_bytes(total) == blocks * BLOCK_BYTES


def test_a_plan_of_12_terabytes_is_only_arithmetic() -> None:
    plan = make_plan(sources(*[10**12] * 12))
    last = plan.chunk(plan.chunk_count - 1)
    assert plan.chunk_count == -(-12 * 10**12 // plan.chunk_bytes)
    assert last.pieces[-1] == Piece(11, last.pieces[-1].start, 10**12)


RECORD = plan_record(make_plan(sources(3, 4), 10), "abc", {"seed": 0, "separator": "x"})


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("tokenizer_sha256",), "abd", "tokenizer_sha256"),
        (("text_chunk_bytes",), 11, "text_chunk_bytes"),
        (("options", "seed"), 1, "options.seed"),
        (("options", "seed"), False, "options.seed"),
        (("options", "new"), 1, "options.new"),
        (("sources", 1, "mtime_ns"), 5, "sources[1].mtime_ns"),
        (("sources",), [], "number of sources"),
    ],
    ids=str,
)
def test_the_differences_are_named(path: tuple[object, ...], value: object, name: str) -> None:
    changed = copy.deepcopy(RECORD)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]  # type: ignore[index]
    inner[path[-1]] = value  # type: ignore[index]
    assert [field for field, _, _ in differences(RECORD, changed)] == [name]
    assert list(differences(RECORD, copy.deepcopy(RECORD))) == []
    assert next(differences(changed, RECORD), None) is not None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("options.validation_docs", "--validation-docs"),
        ("text_chunk_bytes", "--text-chunk-bytes"),
        ("tokenizer_sha256", "the SHA-256 of the tokenizer"),
        ("number of sources", "the number of input files"),
        ("sources[2].path", "input 3"),
        ("sources[0].kind", "kind of input 1"),
        ("tokenmill_plan", "tokenmill_plan"),
    ],
)
def test_differences_are_told_as_the_command_line_calls_them(name: str, words: str) -> None:
    assert told(name) == words
