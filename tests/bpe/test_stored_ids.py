"""Ids as a dataset stores them: narrowed without loss being hidden, doubled with flags where sequences start."""

from __future__ import annotations

import numpy as np
import pytest

from bpe import _core
from flat_tokens.format import encode_tokens

SIZES = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("highest", [0, 1, 32767, 32768, 65535, 65536, 2**31 - 1, 2**32 - 1])
def test_narrow_ids_tells_the_highest_wherever_it_is(size: int, highest: int) -> None:
    rng = np.random.default_rng(size)
    ids = rng.integers(0, highest, size, dtype=np.uint32, endpoint=True)
    for place in {0, size // 2, size - 1} if size else ():
        ids[place] = highest
        out = np.full(size + 3, 7, dtype=np.uint16)
        assert _core.narrow_ids(ids, out) == highest
        assert np.array_equal(out[:size], ids.astype(np.uint16))
        assert out[size:].tolist() == [7, 7, 7]
    if not size:
        assert _core.narrow_ids(ids, np.empty(0, dtype=np.uint16)) == 0


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("size", SIZES)
def test_flag_ids_is_the_formats_encoding(size: int, dtype: type) -> None:
    rng = np.random.default_rng(size)
    ids = rng.integers(0, 2**16 if dtype is np.uint16 else 2**31, size).astype(dtype)
    starts = np.flatnonzero(rng.random(size) < 0.3).astype(np.uint64)
    starts = np.unique(np.append(starts, np.zeros(min(size, 1), dtype=np.uint64)))
    expected = encode_tokens(ids, np.append(starts, np.uint64(size)))
    for first in (0, 5, 2**40):
        out = np.full(size + 1, 9, dtype=np.uint32)
        _core.flag_ids(ids, starts + np.uint64(first), first, out)
        assert np.array_equal(out[:size], expected)
        assert out[size] == 9


def test_what_does_not_fit_is_refused() -> None:
    ids, out = np.arange(3, dtype=np.uint16), np.empty(3, dtype=np.uint32)
    for start in (9, 13, 2**64 - 1):
        with pytest.raises(ValueError, match=rf"starts\[0\] = {start} is outside \[10, 13\)"):
            _core.flag_ids(ids, np.array([start], dtype=np.uint64), 10, out)
    with pytest.raises(ValueError, match="out has room for 2 ids, 3 are given"):
        _core.flag_ids(ids, np.array([], dtype=np.uint64), 0, out[:2])
    with pytest.raises(ValueError, match="out has room for 0 ids, 3 are given"):
        _core.narrow_ids(np.arange(3, dtype=np.uint32), np.empty(0, dtype=np.uint16))
    with pytest.raises(TypeError):
        _core.narrow_ids(np.arange(3, dtype=np.int64), np.empty(3, dtype=np.uint16))  # type: ignore[arg-type]
