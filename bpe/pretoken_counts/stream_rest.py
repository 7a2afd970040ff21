"""Going on with a stream: what was counted of it is read again and compared, then counting begins behind it.

A pipe has neither a name nor a time of change by which it could be known again. The counts of a run that was stopped
have a digest of the text that was counted; a stream that does not begin with this text is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bpe.errors import Refused
from bpe.pretoken_counts.source_facts import TextDigest
from bpe.pretoken_counts.sources import StreamRest
from tokenmill.inputs import utf8

if TYPE_CHECKING:
    from bpe.pretoken_counts.text_blocks import Reader

_PIECE_BYTES: Final = 1 << 20
_SAME_TEXT: Final = "Pass the same text, or count again without --counts."


def read_again(
    reader: Reader, rest: StreamRest, before_bytes: int, stop: Callable[[], bool] | None
) -> TextDigest | None:
    """The digest of what was counted, with the reader behind it; None if `stop` said so before.

    before_bytes: so many of the last bytes are kept by the reader, to know whether a special token ends there.
    Refused if the stream is shorter, or begins with another text.
    """
    digest = TextDigest()
    held = before = b""
    left = rest.counted_bytes
    while left:
        if stop is not None and stop():
            return None
        piece = bytearray(min(_PIECE_BYTES, left))
        filled = reader.fill(memoryview(piece))
        if filled < len(piece):
            raise Refused(
                f"{reader.where}: ends at byte {reader.read_bytes}, but {rest.counted_bytes} bytes were "
                f"counted before. {_SAME_TEXT}"
            )
        left -= filled
        data = held + piece
        whole = len(data) - (utf8.cut_character_bytes(data[-3:]) if left else 0)
        text, _ = utf8.replace_invalid(data[:whole])
        digest.add(memoryview(text))
        held = data[whole:]
        before = (before + piece)[-max(1, before_bytes) :]
    if reader.file is None and digest.hex() != rest.digest:
        raise Refused(
            f"{reader.where}: first {rest.counted_bytes} bytes are not the text counted before. {_SAME_TEXT}"
        )
    reader.begin_at(rest.counted_bytes, before)
    return digest
