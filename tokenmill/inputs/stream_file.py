"""A decompressed stream as a binary file of Python, for modules that read one."""

from __future__ import annotations

import io

from tokenmill.inputs.blocks import ByteStream

_BUFFER_BYTES = 1 << 20


class _Raw(io.RawIOBase):
    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._stream.readinto(memoryview(buffer).cast("B"))


def stream_file(stream: ByteStream) -> io.BufferedReader:
    """Return a file that reads the stream."""
    return io.BufferedReader(_Raw(stream), _BUFFER_BYTES)
