"""A decompressed stream as a binary file of Python, for modules that read one."""

from __future__ import annotations

import io

from tokenmill.inputs.blocks import ByteStream


class StreamFile(io.RawIOBase):
    """An unbuffered file: `read` returns the next piece of the stream, so no data before an error is lost."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See io.RawIOBase."""
        return self._stream.readinto(memoryview(buffer).cast("B"))
