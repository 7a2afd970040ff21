"""Non-text, bad offsets, bad output buffers and bad IDs give a one-line error instead of being read as bytes."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bpe.errors import BadArgument
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer

TEXT = b"the mill"
BYTES = np.frombuffer(TEXT, dtype=np.uint8)
TOKENIZER = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], {"<s>": 256})
MAPPED = mmap.mmap(-1, mmap.PAGESIZE)
MAPPED[: len(TEXT)] = TEXT


def test_any_contiguous_bytes_are_text() -> None:
    for text in (bytearray(TEXT), memoryview(TEXT), BYTES, BYTES.view(np.int8)):
        assert TOKENIZER.encode_documents(text).tokens.tolist() == list(TEXT)
        assert TOKENIZER.encode_ragged(text, [0, 3, 8]).tokens.tolist() == list(TEXT)
    assert TOKENIZER.encode_ragged(MAPPED, [0, len(TEXT)]).tokens.tolist() == list(TEXT)


def test_offsets_and_ids_are_any_integers() -> None:
    strided = np.array([0, 1, 3, 1, 8], np.uint64)[::2]
    for offsets in ([0, 3, 8], (0, 3, 8), np.array([0, 3, 8]), np.array([0, 3, 8], ">u2"), strided):
        assert TOKENIZER.encode_ragged(TEXT, offsets).offsets.tolist() == [0, 3, 8]
    for dtype in ("u1", "i1", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", "<u8", ">u8"):
        ids = BYTES.astype(dtype)
        assert TOKENIZER.decode_bytes(ids) == TEXT
        assert TOKENIZER.decode(np.repeat(ids, 2)[::2]) == TEXT.decode()
        rows = Ragged(ids, np.array([0, len(ids)], dtype))  # type: ignore[arg-type]
        assert TOKENIZER.decode_batch(rows) == [TEXT.decode()]


Call = Callable[[Any], Any]


def each(values: Iterable[Any], *calls: Callable[[Any, Any], Any]) -> list[Call]:
    """Return the calls of a tokenizer with each of the values."""
    return [
        partial(lambda call, value, it: call(it, value), call, value) for value in values for call in calls
    ]


# Start of the error -> calls with a wrong argument.
WRONG: dict[str, list[Call]] = {
    "text: ": each(
        ["abc", None, [97], np.zeros(4, np.uint16), np.zeros((2, 2), np.uint8), BYTES[::2]],
        lambda it, text: it.encode_documents(text),
        lambda it, text: it.encode_ragged(text, [0, 1]),
    )
    + each([["a"], b"a"], lambda it, text: it.encode(text)),
    "out: ": each(
        [
            *([1], np.zeros(9000, np.int64), np.zeros(9000, ">u4"), np.zeros((2, 9000), np.uint32)),
            *(np.zeros(9000, np.uint32)[::2], np.frombuffer(bytes(36000), np.uint32)),
        ],
        lambda it, out: it.encode_documents(TEXT, out=out),
        lambda it, out: it.encode_ragged(TEXT, [0, 8], out=out),
    ),
    "offsets": each(
        [None, [], "ab", [-1, 2], [0.0, 1.0], [[0, 1]], [[0], [1, 2]], 5, [2, 0], [0, 99], [0.5]],
        lambda it, offsets: it.encode_ragged(TEXT, offsets),
    )
    + each([np.zeros((1, 2))], lambda it, offsets: it.decode_batch(Ragged(BYTES, offsets))),
    "separator: ": each(
        [None, 5, ["a"], "", b"", b"\xff", "\ud800"], lambda it, value: it.encode_documents(TEXT, value)
    ),
    "allowed_special: ": each(
        ["none", b"all", 5, None, ["x"], {1}, "<s>", {"<x>"}],
        lambda it, allowed: it.encode("a", allowed_special=allowed),
        lambda it, allowed: it.encode_batch(["a"], allowed_special=allowed),
    ),
    "ids": each(
        [
            *(np.zeros((2, 2), np.int64), np.zeros(2), np.array([1, None], object), np.array([True])),
            *("1 2", 5, None, [1, 1.5], [1, None], [[5]]),
        ],
        lambda it, ids: it.decode(ids),
        lambda it, ids: it.decode_bytes(ids),
        lambda it, ids: it.decode_batch([[1], ids]),
    ),
    "ids: .*Ragged": [lambda it: it.decode(it.encode_batch(["a"]))],
    "tokens": each(
        [[1.5], np.array([2**32 + 97]), np.array([-1])],
        lambda it, tokens: it.decode_batch(Ragged(tokens, [0, 1])),
    ),
    "row 0 is ": each(
        [[0, 9], [5, 3]], lambda it, at: it.decode_batch(Ragged(BYTES, np.array(at, np.uint64)))
    ),
    "rows: ": [lambda it: it.decode_batch(5)],
    "errors": each(
        [None, 5, b"strict"],
        lambda it, errors: it.decode([97], errors),
        lambda it, errors: it.decode_batch(it.encode_batch(["a"]), errors),
    ),
    "path": each(
        [None, 5, b"t.json", "", {"model": {}}],
        lambda _, path: Tokenizer.load(path),
        lambda it, path: it.save(path),
    ),
    "texts": each([b"a", None], lambda it, texts: it.encode_batch(texts)),
    "id: ": [lambda it: it.id_to_token("a")],
    "token: ": [lambda it: it.token_to_id(5)],
}


@pytest.mark.parametrize("start", WRONG)
def test_wrong_arguments_are_named_in_one_line(start: str) -> None:
    for call in WRONG[start]:
        with pytest.raises((BadArgument, TypeError, ValueError), match=start) as caught:
            call(TOKENIZER)
        assert str(caught.value).isprintable()
