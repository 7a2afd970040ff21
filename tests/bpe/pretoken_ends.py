"""Cut text with the core, by a named pattern or an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from typing_extensions import Buffer


def automaton_of(pattern: str) -> _core.Automaton:
    automaton = Pretokenizer.from_pattern(pattern).automaton
    assert automaton is not None
    return automaton


def pretoken_ends(text: Buffer, pattern: str) -> NDArray[np.uint64]:
    """Return uint64[pretokens]: the end of each pretoken, the last at the end of the text."""
    starts, dropped = _core.pieces(automaton_of(pattern), text)
    assert not dropped.any()
    size = memoryview(text).nbytes
    return np.append(starts[1:], np.uint64(size)) if len(starts) else starts
