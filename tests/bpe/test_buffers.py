"""Non-text, bad offsets, bad output buffers and bad IDs give a one-line error instead of being read as bytes."""

from __future__ import annotations

import mmap
from collections.abc import Callable
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


class Wrong:
    """Calls with a wrong argument, by the start of their error; each is a function of the tokenizer."""

    def __init__(self, message: str, *calls: Callable[[Any], Any]) -> None:
        self.message, self.calls = message, calls


def texts(text: Any, message: str) -> Wrong:
    return Wrong(message, lambda it: it.encode_documents(text), lambda it: it.encode_ragged(text, [0, 1]))


def outs(out: Any, message: str) -> Wrong:
    return Wrong(
        f"^out: .*{message}",
        lambda it: it.encode_documents(TEXT, out=out),
        lambda it: it.encode_ragged(TEXT, [0, 8], out=out),
    )


def offsets(value: Any) -> Wrong:
    return Wrong(r"^offsets[^\n]*$", lambda it: it.encode_ragged(TEXT, value))


def allowed(value: Any, message: str = "") -> Wrong:
    return Wrong(
        f"^allowed_special: .*{message}",
        lambda it: it.encode("a", allowed_special=value),
        lambda it: it.encode_batch(["a"], allowed_special=value),
    )


def ids(value: Any, message: str) -> Wrong:
    return Wrong(
        message,
        lambda it: it.decode(value),
        lambda it: it.decode_bytes(value),
        lambda it: it.decode_batch([[1], value]),
    )


def rows(tokens: Any, at: Any, message: str) -> Wrong:
    return Wrong(message, lambda it: it.decode_batch(Ragged(tokens, at)))


WRONG = [
    texts("abc", r"^text: .*got str.*text\.encode\(\)"),
    texts(None, "^text: .*got NoneType"),
    texts([97], "^text: .*got list.*encode_batch"),
    texts(np.zeros(4, np.uint16), r"^text: .*got uint16\[4\]"),
    texts(np.zeros(4, np.float64), r"^text: .*got float64\[4\]"),
    texts(np.zeros((2, 2), np.uint8), r"^text: .*got uint8\[2, 2\]"),
    texts(BYTES[::2], r"^text: .*uint8\[4\], not contiguous"),
    outs([1], "list"),
    outs(np.zeros(9000, np.int64), r"int64\[9000\]"),
    outs(np.zeros(9000, ">u4"), r">u4\[9000\]"),
    outs(np.zeros((2, 9000), np.uint32), r"uint32\[2, 9000\]"),
    outs(np.zeros(9000, np.uint32)[::2], "contiguous"),
    outs(np.frombuffer(bytes(36000), np.uint32), "contiguous"),
    *map(offsets, (None, [], "ab", [-1, 2], [0.0, 1.0], [[0, 1]], [[0], [1, 2]], 5, [2, 0], [0, 99], [0.5])),
    *(
        Wrong("^separator: ", lambda it, value=value: it.encode_documents(TEXT, value))  # type: ignore[misc]
        for value in (None, 5, ["a"], "", b"", b"\xff", "\ud800")
    ),
    *(allowed(value) for value in ("none", b"all", 5, None, ["x"], {1})),
    allowed("<s>", "'<s>'"),
    allowed({"<x>"}, "'<x>'"),
    ids(np.zeros((2, 2), np.int64), "ids.*int64"),
    ids(np.zeros(2), "ids.*float64"),
    ids(np.array([1, None], object), "ids.*object"),
    ids("1 2", "^ids: .*'1 2'"),
    ids(5, r"^ids: .*int.*\[5\]"),
    ids(None, "^ids: .*NoneType"),
    ids([1, 1.5], r"^ids\[1\]: .*1\.5"),
    ids([1, None], r"^ids\[1\]: .*None"),
    ids([[5]], r"^ids\[0\]: .*\[5\].*decode_batch"),
    ids(np.array([True]), r"^ids\[0\]: "),
    Wrong("^ids: .*Ragged.*decode_batch", lambda it: it.decode(it.encode_batch(["a"]))),
    rows([1.5], [0, 1], "^tokens: .*list"),
    rows(np.array([97, 2**32 + 97]), [0, 2], r"^tokens\[1\]: .*4294967393"),
    rows(np.array([-1]), [0, 1], r"^tokens\[0\]: .*-1"),
    rows(BYTES, np.zeros((1, 2)), r"^offsets: .*float64\[1, 2\]"),
    rows(BYTES, np.array([0, 9], np.uint64), r"^row 0 is \[0, 9\) of 8 tokens$"),
    rows(BYTES, np.array([5, 3], np.uint64), r"^row 0 is \[5, 3\) of 8 tokens$"),
    Wrong("^rows: .*5.* decode ", lambda it: it.decode_batch(5)),
    *(
        Wrong(
            "errors",
            lambda it, value=value: it.decode([97], value),  # type: ignore[misc]
            lambda it, value=value: it.decode_batch(it.encode_batch(["a"]), value),  # type: ignore[misc]
        )
        for value in (None, 5, b"strict")
    ),
    *(
        Wrong(
            "path",
            lambda it, value=value: Tokenizer.load(value),  # type: ignore[misc]
            lambda it, value=value: it.save(value),  # type: ignore[misc]
        )
        for value in (None, 5, b"t.json", "", {"model": {}})
    ),
    Wrong("^text: .*list.*encode_batch", lambda it: it.encode(["a"])),
    Wrong("^text: .*bytes.*encode_documents", lambda it: it.encode(b"a")),
    Wrong("texts", lambda it: it.encode_batch(b"a"), lambda it: it.encode_batch(None)),
    Wrong("^id: .*'a'", lambda it: it.id_to_token("a")),
    Wrong("^token: .*5", lambda it: it.token_to_id(5)),
]


@pytest.mark.parametrize("index", range(len(WRONG)))
def test_wrong_arguments_are_named_in_one_line(index: int) -> None:
    for call in WRONG[index].calls:
        with pytest.raises((BadArgument, TypeError, ValueError), match=WRONG[index].message) as caught:
            call(TOKENIZER)
        assert str(caught.value).isprintable()
