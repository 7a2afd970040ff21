"""Memory that is reused, so that its pages are touched once.

Buffers belong to a thread or an object, never to a module, so tasks may run in any number of threads.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingBuffer:
    """A bytearray, `memory`, that only grows."""

    def __init__(self) -> None:
        self.memory = bytearray()

    def grow(self, size: int) -> bytearray:
        """Return `memory` with at least `size` bytes, of arbitrary content.

        A larger buffer is new memory, because a bytearray with views cannot grow, and a profiler may hold views of
        calls that have returned.
        """
        if size > len(self.memory):
            self.memory = bytearray(size)
        return self.memory


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_purpose: dict[str, NDArray[np.uint8]] = {}


_buffers = _Buffers()


def thread_buffer(purpose: str, count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return `count` items of arbitrary content, valid until this thread's next call for the same purpose."""
    item_type = np.dtype(dtype)
    size = count * item_type.itemsize
    memory = _buffers.by_purpose.get(purpose)
    if memory is None or len(memory) < size:
        memory = _buffers.by_purpose[purpose] = np.empty(size + size // 4, dtype=np.uint8)
    return memory[:size].view(item_type)
