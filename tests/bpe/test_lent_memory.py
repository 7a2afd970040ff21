"""Tokens are written to a buffer lent by the caller: all of them, within bounds, and the buffer is not retained."""

from __future__ import annotations

import numpy as np
import pytest
from small_encoder import SEPARATOR, core, text_of


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 1 << 10, 3 << 20])
def test_lent_memory_holds_the_tokens(threads: int, size: int) -> None:
    encoder = core("ranks")
    text = (SEPARATOR.join(text_of(seed, 40).encode() for seed in range(20)) * 200)[:size]
    text = text.decode(errors="ignore").encode()
    want = encoder.encode_documents(text, SEPARATOR, 1)
    out = np.zeros(encoder.out_tokens(len(text)), np.uint32)
    for _ in range(2):
        tokens, offsets = encoder.encode_documents(text, SEPARATOR, threads, out=out)
        assert len(tokens) == 0 or np.shares_memory(tokens, out)
        assert np.array_equal(tokens, want[0])
        assert np.array_equal(offsets, want[1])
    with pytest.raises(ValueError, match=f"out.*{len(out) - 1}.*{len(text)}"):
        encoder.encode_documents(text, SEPARATOR, threads, out=out[:-1])
    # The buffer is not retained.
    out[:] = 7
    assert np.array_equal(encoder.encode_documents(text, SEPARATOR, threads)[0], want[0])
    assert (out == 7).all()


def test_lent_memory_of_another_kind_is_refused() -> None:
    readonly = np.zeros(2000, np.uint32)
    readonly.flags.writeable = False
    for out in [np.zeros(2000, np.int64), np.zeros(4000, np.uint32)[::2], readonly]:
        with pytest.raises(TypeError):
            core("ranks").encode_documents(b"abc", SEPARATOR, 1, out=out)  # type: ignore[arg-type]
