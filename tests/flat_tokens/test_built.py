"""The native module is optional: its loops equal their Python fallbacks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flat_tokens
from flat_tokens.built import find_core
from flat_tokens.packs.greedy import next_fit

CODE = """
import sys
import flat_tokens
from flat_tokens.built import core
loader = flat_tokens.Loader(flat_tokens.open(sys.argv[1]).train, 4, 8, 3, block_tokens=40)
print(core is None, [loader.batch(step).inputs.tolist() for step in (0, 1, len(loader) + 1)])
"""


def test_the_core_is_found_unless_disabled_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("flat_tokens._core")
    assert find_core() is core
    monkeypatch.setenv("FLAT_TOKENS_CORE", "0")
    assert find_core() is None
    monkeypatch.delenv("FLAT_TOKENS_CORE")
    monkeypatch.setitem(sys.modules, "flat_tokens._core", None)
    monkeypatch.delattr(flat_tokens, "_core")
    assert find_core() is None


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1024])
def test_tokens_are_decoded_and_the_largest_is_found(size: int) -> None:
    core = pytest.importorskip("flat_tokens._core")
    encoded = np.random.default_rng(size).integers(0, 2**32, size, dtype=np.uint32)
    ids, flags = np.full(size, 7, np.uint32), np.ones(size, np.bool_)
    assert (
        core.decode_ids(encoded, ids, None) == core.decode_ids(encoded, ids, flags) == encoded.max(initial=0)
    )
    assert np.array_equal(ids, encoded >> np.uint32(1))
    assert np.array_equal(flags, encoded & 1)
    for outputs in ((np.empty(size + 1, np.uint32), None), (ids, np.empty(size + 1, np.bool_))):
        with pytest.raises(ValueError, match="must have"):
            core.decode_ids(encoded, *outputs)


@given(st.lists(st.integers(1, 12)), st.integers(1, 11), st.integers(0, 9))
def test_packs_are_planned_as_in_python(lengths: list[int], max_seq_len: int, open_tokens: int) -> None:
    core = pytest.importorskip("flat_tokens._core")
    begin = 100 - min(open_tokens, max_seq_len)
    starts = np.cumsum([100, *lengths])
    bounds, expected = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    found = core.next_fit(starts, begin, max_seq_len, bounds)
    assert found == next_fit(starts, begin, max_seq_len, expected)
    assert np.array_equal(bounds, expected)
    with pytest.raises(ValueError, match="bounds"):
        core.next_fit(starts, begin, max_seq_len, np.zeros(len(lengths) + 1, np.int64))


def test_batches_are_the_same_without_it(make_dataset: Any, random_sequences: Any) -> None:
    pytest.importorskip("flat_tokens._core")
    root = make_dataset(random_sequences(3, 150, longest=12, largest_id=27))
    with_core, without = (
        subprocess.run(
            [sys.executable, "-c", CODE, str(root)],
            env={**os.environ, "FLAT_TOKENS_CORE": use},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for use in ("1", "0")
    )
    assert with_core.startswith("False [[[")
    assert without == with_core.replace("False", "True", 1)
