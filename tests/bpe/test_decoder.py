"""IDs decode to the bytes of their entries and special tokens; an invalid ID is reported with its index."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpe import Tokenizer
from bpe.errors import BadArgument
from bpe.ragged import Ragged

BYTES = {id_: bytes([id_]) for id_ in range(256)}


@pytest.mark.parametrize("largest", [1000, 2**31 - 1], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 2047, 2048, 2049])
def test_sequences_of_every_kind_and_size(size: int, largest: int) -> None:
    tokenizer = Tokenizer(BYTES | {largest: "a long entry, 中文".encode()}, [], {"<s>": largest - 1})
    chosen = random.Random(size).choices(list(tokenizer.vocab.items()), k=size)
    ids, data = [id_ for id_, _ in chosen], b"".join(entry for _, entry in chosen)
    for each in (ids, tuple(ids), iter(ids), np.array(ids, np.uint32), np.array(ids * 2, np.int64)[:size]):
        assert tokenizer.decode_bytes(each) == data
    text = data.decode(errors="replace")
    assert tokenizer.decode(ids) == text
    ragged = Ragged.from_rows([np.array(ids, np.uint32), np.array([97], np.uint32)])
    for rows in (ragged, ragged.tolist(), (row for row in ragged)):
        assert tokenizer.decode_batch(rows) == [text, "a"]


@pytest.mark.parametrize("bad", [-1, 999, 2**31, 2**32 + 97, 2**63, -(2**63) - 1])
@pytest.mark.parametrize("entries", [BYTES, BYTES | {2**31 - 1: b"last"}], ids=["dense", "sparse"])
def test_the_first_unknown_id_is_named(entries: dict[int, bytes], bad: int) -> None:
    tokenizer = Tokenizer(entries, [])
    for call in (tokenizer.decode, tokenizer.decode_bytes, lambda ids: tokenizer.decode_batch([ids])):
        with pytest.raises(BadArgument, match=rf"ids\[1\].*{bad}"):
            call([97, bad, 9999])


def test_parts_of_characters() -> None:
    tokenizer = Tokenizer(BYTES, [])
    assert tokenizer.decode([0xF0, 0x9F]) == "\ufffd"
    for call in (tokenizer.decode, lambda ids, errors: tokenizer.decode_batch([ids], errors)):
        with pytest.raises(UnicodeDecodeError):
            call([0xF0], errors="strict")


def test_an_empty_entry_repeated_at_the_end_was_written_past_the_buffer() -> None:
    tokenizer = Tokenizer(BYTES | {256: b""}, [])
    assert tokenizer.decode_bytes([97, *[256] * 400]) == b"a"
