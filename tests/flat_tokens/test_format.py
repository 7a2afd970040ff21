"""The example of the format page, public names, and printable text."""

from __future__ import annotations

import numpy as np
import pytest
from small_datasets import from_sequences

import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens.errors import printable


@pytest.mark.promise("format")
def test_the_example_by_hand() -> None:
    encoded, starts, max_token_id = from_sequences([[1, 2], [3, 4, 5], [6, 7, 8]])
    assert encoded.tolist() == [3, 4, 7, 8, 10, 13, 14, 16]
    assert starts.tolist() == [0, 2, 5, 8]
    assert max_token_id == 8
    assert (encoded.dtype, starts.dtype) == (np.dtype("<u4"), np.dtype("<u8"))
    inputs, targets = flat_format.inputs_and_targets(encoded)
    assert inputs.tolist() == [0, 1, 0, 3, 4, 0, 6, 7]
    assert targets.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert np.flatnonzero(flat_format.decode_start_flags(encoded)).tolist() == [0, 2, 5]


def test_public_names() -> None:
    assert flat_tokens.__all__ == sorted(flat_tokens.__all__)
    assert all(hasattr(flat_tokens, name) for name in flat_tokens.__all__)
    assert {*flat_tokens.__all__, "open"} <= set(dir(flat_tokens))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = flat_tokens.nothing


def test_a_star_import_replaced_the_built_in_open() -> None:
    for package in ("flat_tokens", "tokenmill"):
        names: dict[str, object] = {}
        exec(f"from {package} import *\nimport {package}", names)
        assert "open" not in names
        assert callable(names[package].open)  # type: ignore[attr-defined]


def test_rows_include_the_preceding_token() -> None:
    encoded = np.array([[4, 6, 9], [8, 10, 12]], dtype=np.uint32)
    inputs, targets = flat_format.inputs_and_targets(encoded, before=np.array([14, 9]))
    assert targets.tolist() == [[2, 3, 4], [4, 5, 6]]
    assert inputs.tolist() == [[7, 2, 0], [4, 4, 5]]
    empty = np.zeros(0, dtype=np.uint32)
    assert [part.tolist() for part in flat_format.inputs_and_targets(empty)] == [[], []]


def test_printable_escapes_terminal_controls() -> None:
    assert printable("a\x1b[2J\n\x9b\u202e\udcff Ж") == "a\\x1b[2J\\n\\x9b\\u202e\\udcff Ж"
    assert printable("x" * 300) == "x" * 197 + "..."
