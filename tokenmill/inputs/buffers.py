"""Memory that is used again and again: its pages are touched once.

What belongs to a thread does not belong to the module, so tasks may run in any number of threads of one process.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingBuffer:
    """memory: some bytes, kept from use to use."""

    def __init__(self) -> None:
        self.memory = bytearray()

    def grow(self, size: int, kept: int = 0) -> bytearray:
        """`memory` of at least `size` bytes; its first `kept` bytes stay as they were.

        Views stay with the memory that they are of. A bytearray that has some could not grow itself, and there may be
        more than this package knows of: a profiler holds the frames of calls that have returned.
        """
        if size > len(self.memory):
            memory = bytearray(size)
            memory[:kept] = self.memory[:kept]
            self.memory = memory
        return self.memory


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_purpose: dict[str, NDArray[np.uint8]] = {}


_buffers = _Buffers()


def thread_buffer(purpose: str, count: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of `count` items with arbitrary content, valid until this thread's next call for the same purpose."""
    item_type = np.dtype(dtype)
    size = count * item_type.itemsize
    memory = _buffers.by_purpose.get(purpose)
    if memory is None or len(memory) < size:
        memory = _buffers.by_purpose[purpose] = np.empty(size + size // 4, dtype=np.uint8)
    return memory[:size].view(item_type)
