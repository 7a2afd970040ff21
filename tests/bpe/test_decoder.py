"""IDs decode to the bytes of their entries and special tokens; an invalid ID is reported with its index."""

from __future__ import annotations

import numpy as np
import pytest
from pretoken_ends import automaton_of

from bpe import Tokenizer, _core

BYTES = {id_: bytes([id_]) for id_ in range(256)}


def encoder(entries: dict[int, bytes], special_tokens: dict[bytes, int] | None = None) -> _core.TokenizerCore:
    return _core.EntryFile.from_entries(entries, []).encoder(
        special_tokens or {}, automaton_of("gpt2"), False
    )


def test_round_trip_with_special_tokens() -> None:
    enc = encoder(BYTES | {300: b"never reached"}, {b"<s>": 256})
    text = "naïve <s>\x00 漢字 <s>"
    ids = enc.encode(text)
    assert ids.count(256) == 2
    assert enc.decode(ids) == text.encode()
    assert enc.decode([300, 256]) == b"never reached<s>"


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"])
def test_arrays_of_every_integer_type(dtype: str) -> None:
    assert encoder(BYTES).decode(np.arange(97, 107).astype(dtype)) == b"abcdefghij"
    assert encoder(BYTES).decode(np.arange(97, 107).astype(dtype)[::3]) == b"adgj"


def test_other_sequences() -> None:
    enc = encoder(BYTES)
    assert enc.decode([]) == b""
    assert enc.decode((97, 98)) == b"ab"
    assert enc.decode(list(np.array([97, 98], np.uint16))) == b"ab"
    assert enc.decode(np.array([], np.uint32)) == b""


@pytest.mark.parametrize("largest", [1000, 2**31 - 1], ids=["dense", "sparse"])
def test_dense_and_sparse_ids(largest: int) -> None:
    enc = encoder(BYTES | {largest: b"last"}, {b"<s>": largest - 1})
    assert enc.decode([largest, 0, largest - 1]) == b"last\x00<s>"
    assert enc.encode("<s>") == [largest - 1]
    with pytest.raises(ValueError, match=rf"ids\[2\].*{largest - 2}"):
        enc.decode([97, 97, largest - 2])


@pytest.mark.parametrize("bad", [-1, 256, 2**31, 2**40, 2**63, -(2**63) - 1])
def test_the_first_unknown_id_is_named(bad: int) -> None:
    with pytest.raises(ValueError, match=rf"ids\[1\].*{bad}"):
        encoder(BYTES).decode([97, bad, 9999])


@pytest.mark.parametrize("ids", [["a"], 3, [1.5], np.array([1.5]), np.zeros((2, 2), np.uint32)])
def test_other_types_than_id_sequences_are_type_errors(ids: object) -> None:
    with pytest.raises(TypeError):
        encoder(BYTES).decode(ids)  # type: ignore[arg-type]


def test_an_id_has_one_meaning() -> None:
    with pytest.raises(ValueError, match="id 256 is both"):
        encoder(BYTES, {b"<s>": 256, b"<t>": 256})


def test_an_empty_entry_repeated_at_the_end_was_written_past_the_buffer() -> None:
    tokenizer = Tokenizer(BYTES | {256: b""}, [])
    assert tokenizer.decode_bytes([97, *[256] * 400]) == b"a"
