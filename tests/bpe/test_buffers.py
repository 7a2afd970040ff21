"""Non-text, bad offsets, bad output buffers and bad IDs give a one-line error instead of being read as bytes."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from bpe.errors import BadArgument
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer

TEXT = b"the mill"
BYTES = np.frombuffer(TEXT, dtype=np.uint8)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], {"<s>": 256})


@pytest.mark.parametrize("text", [bytearray(TEXT), memoryview(TEXT), BYTES, BYTES.view(np.int8)])
def test_any_contiguous_bytes_are_text(tokenizer, text):
    assert tokenizer.encode_documents(text).tokens.tolist() == list(TEXT)
    assert tokenizer.encode_ragged(text, [0, 3, 8]).tokens.tolist() == list(TEXT)


def test_mapped_memory_is_text(tokenizer):
    with mmap.mmap(-1, mmap.PAGESIZE) as mapped:
        mapped[: len(TEXT)] = TEXT
        assert tokenizer.encode_ragged(mapped, [0, len(TEXT)]).tokens.tolist() == list(TEXT)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("abc", "got str"),
        (None, "got NoneType"),
        ([97], "got list"),
        (np.zeros(4, np.uint16), r"got uint16\[4\]"),
        (np.zeros(4, np.float64), r"got float64\[4\]"),
        (np.zeros((2, 2), np.uint8), r"got uint8\[2, 2\]"),
        (BYTES[::2], r"^text: .*uint8\[4\], not contiguous"),
    ],
)
def test_other_memory_is_not_text(tokenizer, text, named):
    with pytest.raises(BadArgument, match=named):
        tokenizer.encode_documents(text)
    with pytest.raises(BadArgument, match=named):
        tokenizer.encode_ragged(text, [0, 1])


@pytest.mark.parametrize(
    ("out", "named"),
    [
        ([1], "list"),
        (np.zeros(9000, np.int64), r"int64\[9000\]"),
        (np.zeros(9000, ">u4"), r">u4\[9000\]"),
        (np.zeros((2, 9000), np.uint32), r"uint32\[2, 9000\]"),
        (np.zeros(9000, np.uint32)[::2], "contiguous"),
        (np.frombuffer(bytes(36000), np.uint32), "contiguous"),
    ],
)
def test_room_for_ids_is_checked(tokenizer, out, named):
    with pytest.raises(BadArgument, match=f"out.*{named}"):
        tokenizer.encode_documents(TEXT, out=out)
    with pytest.raises(BadArgument, match=f"out.*{named}"):
        tokenizer.encode_ragged(TEXT, [0, 8], out=out)


@pytest.mark.parametrize(
    "offsets",
    [
        [0, 3, 8],
        (0, 3, 8),
        np.array([0, 3, 8]),
        np.array([0, 3, 8], ">u2"),
        np.array([0, 1, 3, 1, 8], np.uint64)[::2],
    ],
)
def test_offsets_are_any_whole_numbers(tokenizer, offsets):
    assert tokenizer.encode_ragged(TEXT, offsets).offsets.tolist() == [0, 3, 8]


@pytest.mark.parametrize(
    "offsets", [None, [], "ab", [-1, 2], [0.0, 1.0], [[0, 1]], [[0], [1, 2]], 5, [2, 0], [0, 99]]
)
def test_other_offsets_are_refused(tokenizer, offsets):
    with pytest.raises(ValueError, match=r"^offsets[^\n]*$"):
        tokenizer.encode_ragged(TEXT, offsets)


@pytest.mark.parametrize("separator", [None, 5, ["a"], "", b"", "\ud800"])
def test_a_separator_is_text_or_bytes(tokenizer, separator):
    with pytest.raises(BadArgument, match="^separator: "):
        tokenizer.encode_documents(TEXT, separator)


@pytest.mark.parametrize("allowed", ["none", b"all", 5, None, ["x"], {1}])
def test_allowed_special_is_all_or_a_collection_of_them(tokenizer, allowed):
    for encode in (
        tokenizer.encode,
        lambda text, special: tokenizer.encode_batch([text], allowed_special=special),
    ):
        with pytest.raises(BadArgument, match="^allowed_special: "):
            encode("a", allowed)


@pytest.mark.parametrize("ids", [np.zeros((2, 2), np.int64), np.zeros(2), np.array([1, None], object)])
def test_arrays_that_are_not_ids_are_named(tokenizer, ids):
    with pytest.raises(BadArgument, match=f"ids.*{ids.dtype.name}"):
        tokenizer.decode(ids)
    with pytest.raises(BadArgument, match="ids"):
        tokenizer.decode_bytes(ids)


@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", "<u8", ">u8"])
def test_ids_are_any_whole_numbers(tokenizer, dtype):
    ids = np.frombuffer(TEXT, np.uint8).astype(dtype)
    assert tokenizer.decode_bytes(ids) == TEXT
    assert tokenizer.decode(np.repeat(ids, 2)[::2]) == TEXT.decode()
    rows = Ragged(ids, np.array([0, len(ids)], dtype))
    assert tokenizer.decode_batch(rows) == [TEXT.decode()]


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (Ragged([1.5], [0, 1]), "^tokens: .*list"),
        (Ragged(np.array([97, 2**32 + 97]), [0, 2]), r"^tokens\[1\]: .*4294967393"),
        (Ragged(np.array([-1]), [0, 1]), r"^tokens\[0\]: .*-1"),
        (Ragged(BYTES, np.zeros((1, 2))), r"^offsets: .*float64\[1, 2\]"),
        (Ragged(BYTES, np.array([0, 9], np.uint64)), r"^row 0 is \[0, 9\) of 8 tokens$"),
        (Ragged(BYTES, np.array([5, 3], np.uint64)), r"^row 0 is \[5, 3\) of 8 tokens$"),
    ],
)
def test_invalid_rows_are_named(tokenizer, rows, named):
    with pytest.raises(BadArgument, match=named):
        tokenizer.decode_batch(rows)


@pytest.mark.parametrize("errors", [None, 5, b"strict"])
def test_an_error_handler_is_a_name(tokenizer, errors):
    rows = tokenizer.encode_batch(["a"])
    for decode in (lambda: tokenizer.decode([97], errors), lambda: tokenizer.decode_batch(rows, errors)):
        with pytest.raises(BadArgument, match="errors"):
            decode()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("1 2", "^ids: .*'1 2'"),
        (5, "^ids: .*int"),
        (None, "^ids: .*NoneType"),
        ([1, 1.5], r"^ids\[1\]: .*1\.5"),
        ([1, None], r"^ids\[1\]: .*None"),
        ([[1]], r"^ids\[0\]: .*\[1\]"),
        (np.array([True]), r"^ids\[0\]: "),
    ],
)
def test_invalid_ids_are_reported(tokenizer, ids, message):
    with pytest.raises(BadArgument, match=message):
        tokenizer.decode(ids)
    with pytest.raises(BadArgument, match=message):
        tokenizer.decode_batch([[1], ids])


@pytest.mark.parametrize("path", [None, 5, b"t.json", "", {"model": {}}])
def test_invalid_paths_are_reported(tokenizer, path):
    with pytest.raises(BadArgument, match="path"):
        Tokenizer.load(path)
    with pytest.raises(BadArgument, match="path"):
        tokenizer.save(path)


def test_texts_are_a_list(tokenizer):
    with pytest.raises(BadArgument):
        tokenizer.encode_batch(None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: it.encode_documents(["a", "b"]), "^text: .*list.*encode_batch"),
        (lambda it: it.encode_documents("a"), r"^text: .*str.*text\.encode\(\)"),
        (lambda it: it.encode_ragged(["a"], [0, 1]), "^text: .*list.*encode_batch"),
        (
            lambda it: it.encode_ragged(b"abc", [0.5]),
            "^offsets: .*list",
        ),
        (lambda it: it.encode(["a"]), "^text: .*list.*encode_batch"),
        (
            lambda it: it.encode(b"a"),
            "^text: .*bytes.*encode_documents",
        ),
        (lambda it: it.encode_batch(b"a"), "^texts: "),
        (lambda it: it.encode("a", allowed_special="<s>"), "^allowed_special: .*'<s>'"),
        (lambda it: it.encode("a", allowed_special={"<x>"}), "^allowed_special: .*'<x>'"),
        (lambda it: it.decode(5), r"^ids: .*int.*\[5\]"),
        (lambda it: it.decode([[5]]), r"^ids\[0\]: .*\[5\].*decode_batch"),
        (lambda it: it.decode(it.encode_batch(["a"])), "^ids: .*Ragged.*decode_batch"),
        (lambda it: it.decode_batch(5), "^rows: .*5.* decode "),
        (lambda it: it.id_to_token("a"), "^id: .*'a'"),
        (lambda it: it.token_to_id(5), "^token: .*5"),
    ],
)
def test_errors_name_a_fix(tokenizer, call, message):
    with pytest.raises((BadArgument, TypeError), match=message):
        call(tokenizer)
