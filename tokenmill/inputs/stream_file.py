"""A decompressed stream as a binary file of Python, for modules that read one.

Reads return what one call of the stream gives, so no data before an error of the stream is lost.
"""

from __future__ import annotations

import io

from tokenmill.inputs.blocks import ByteStream

_BUFFER_BYTES = 1 << 20


class StreamFile(io.RawIOBase):
    """An unbuffered file: `read` returns the next piece of the stream."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See io.RawIOBase."""
        return self._stream.readinto(memoryview(buffer).cast("B"))


def stream_file(stream: ByteStream) -> io.BufferedReader:
    """Return a file that reads lines of the stream."""
    return io.BufferedReader(StreamFile(stream), _BUFFER_BYTES)
