"""One pretoken of any length in bounded memory: the ids of the whole, given out while it still comes.

Two questions are open while only its beginning is known. Where does it end? The core says how much of it is settled
whatever follows, and which few characters stand for that to find the rest (`_core.open_pretoken`). And what are its
ids? Those of the beginning, but for the last ones, found by encoding it a window at a time (`_Windows`).

Of some texts the first question stays open for long: spaces after a line break belong to it if another one follows
them. What has to wait so goes to a file without a name, in `folder`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput, naming

if TYPE_CHECKING:
    from typing_extensions import Buffer

WINDOW_BYTES = 1 << 20
WAITING_BYTES = 4 << 20  # more of what waits goes to the file
_KEPT_BYTES = 16  # of what waits, to see how it goes on


class LongPretoken:
    """Takes a pretoken from the front of a text that grows. `taken`: so many bytes of it stand for what was encoded.

    pattern: a named one. When it is `over`, it is gone from the text, and `waiting` is text that belongs before the
    rest: pieces of it, or None.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        pattern: str,
        folder: Path | None = None,
        window_bytes: int = WINDOW_BYTES,
        waiting_bytes: int = WAITING_BYTES,
    ) -> None:
        self._pattern = pattern
        self._windows = _Windows(tokenizer, window_bytes)
        self._folder, self._waiting_bytes = folder, waiting_bytes
        self._file: IO[bytes] | None = None
        self.taken = 0
        self.over = False
        self.waiting: Iterator[bytes] | None = None

    def take(self, text: bytearray, stop: int) -> Iterator[NDArray[np.uint32]]:
        """Take what is settled of text[:stop], which other text follows; `text` is shortened."""
        with memoryview(text) as view, view[:stop] as part:
            start, settled, head = _core.open_pretoken(part, self._pattern)
        if start > 0:
            yield from self.end(text, stop)
            return
        if settled > self.taken:
            yield from self._take_waiting()
            yield from self._windows.take(text[self.taken : settled])
            last = settled - 1
            while text[last] & 0xC0 == 0x80:
                last -= 1
            self.taken = settled
            if last > 0:
                text[:last] = head
                self.taken += len(head) - last
        elif 0 < settled == self.taken and stop - settled > self._waiting_bytes + 2 * _KEPT_BYTES:
            self._set_aside(text, stop)

    def end(self, text: bytearray, stop: int) -> Iterator[NDArray[np.uint32]]:
        """The pretoken ends within text[:stop], or with it; what is left of `text` is what follows."""
        with memoryview(text) as view, view[:stop] as part:
            end = int(_core.pretokenize(part, self._pattern)[0])
        if end > self.taken:
            yield from self._take_waiting()
            yield from self._windows.take(text[self.taken : end])
        yield self._windows.finish()
        del text[:end]
        self.over = True
        if self._file is not None:
            self.waiting = self._read_back()

    def _set_aside(self, text: bytearray, stop: int) -> None:
        """Put what waits into the file, but for its last characters: it is a run of one kind, however long."""
        kept = stop - _KEPT_BYTES
        while text[kept] & 0xC0 == 0x80:
            kept -= 1
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - until it is read back
        with naming(self._folder), memoryview(text) as view, view[self.taken : kept] as rest:
            written = 0
            while written < len(rest):
                written += self._file.write(rest[written:])
        del text[self.taken : kept]

    def _take_waiting(self) -> Iterator[NDArray[np.uint32]]:
        if self._file is not None:
            for piece in self._read_back():
                yield from self._windows.take(piece)

    def _read_back(self) -> Iterator[bytes]:
        file, self._file = self._file, None
        assert file is not None
        with file, naming(self._folder):
            file.seek(0)
            rest = b""
            while piece := file.read(WINDOW_BYTES):
                piece = rest + piece
                whole = len(piece)
                while whole and piece[whole - 1] & 0xC0 == 0x80:
                    whole -= 1
                whole = max(whole - 1, 0)  # the last character may be cut
                rest = piece[whole:]
                yield piece[:whole]
            yield rest


class _Windows:
    """The ids of a pretoken that comes bit by bit, those that are settled as they are.

    Let A be the tokens of the beginning, p a border between two of them, and B those of a window from p to beyond the
    beginning. If A and B have a border in common behind p, the tokens of all are A up to there and B from there
    (bpe/native/merge/merge_by_windows.hpp says why). Neighbours meet after a few tokens; where they do not, the window
    begins earlier, at last with all that was not given out.
    """

    def __init__(self, tokenizer: Tokenizer, window_bytes: int) -> None:
        self._encode, self._lengths = tokenizer.encode_pretokens, tokenizer.entry_lengths
        # A window longer than every entry is not one of those that a whole pretoken may be at once.
        self._overlap_bytes = int(self._lengths.max()) + 1
        self._window_bytes = max(window_bytes, self._overlap_bytes)
        self._kept_bytes = max(window_bytes // 4, 2 * self._overlap_bytes)
        self._text = bytearray()  # from the first byte whose token was not given out
        self._tokens = np.empty(0, np.uint32)  # of text[:_encoded]
        self._encoded = 0
        self._gave = False

    def take(self, data: Buffer) -> Iterator[NDArray[np.uint32]]:
        """More of the pretoken; tokens that are settled."""
        with memoryview(data) as view:
            for place in range(0, len(view), self._window_bytes):
                self._text += view[place : place + self._window_bytes]
                if len(self._text) - self._encoded >= self._window_bytes:
                    self._go_on()
                    yield self._settled()

    def finish(self) -> NDArray[np.uint32]:
        """The tokens that were not given out; that was all of it."""
        if self._encoded < len(self._text):
            self._go_on()
        return self._tokens

    def _settled(self) -> NDArray[np.uint32]:
        kept = self._tokens[-self._kept_bytes :]
        places = len(self._text) - np.cumsum(self._lengths[kept[::-1]], dtype=np.int64)[::-1]
        first = int(np.searchsorted(places, len(self._text) - self._kept_bytes))
        settled, self._tokens = np.split(self._tokens, [len(self._tokens) - len(kept) + first])
        if len(settled):
            self._gave = True
            del self._text[: int(places[first])]
            self._encoded = len(self._text)
        return settled

    def _go_on(self) -> None:
        """Encode the text that came."""
        overlap = self._overlap_bytes
        while overlap < self._encoded:
            tail = self._tokens[-overlap:]
            ends = self._encoded - np.cumsum(self._lengths[tail[::-1]], dtype=np.int64)[::-1]
            first = int(np.searchsorted(ends, self._encoded - overlap, side="right")) - 1
            if first >= 0 and self._join(len(self._tokens) - len(tail) + first, int(ends[first])):
                return
            overlap *= 4
        if self._gave:
            if not self._encoded or self._join(0, 0):
                return
            raise BadInput(
                f"a run of many MiB in which the tokenizer's merges reach over more than {self._encoded} bytes; it "
                f"can't be encoded a part at a time, cut it by spaces or line breaks"
            )
        self._tokens = self._merged(0)
        self._encoded = len(self._text)

    def _join(self, index: int, place: int) -> bool:
        """Go on from token number `index`, which begins at `place`; False if no border is met."""
        window = self._merged(place)
        reach = self._encoded - place
        old = place + np.cumsum(self._lengths[self._tokens[index : index + reach]], dtype=np.int64)
        new = place + np.cumsum(self._lengths[window[:reach]], dtype=np.int64)
        _, in_old, in_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
        if not len(in_old):
            return False
        self._tokens = np.concatenate(
            [self._tokens[: index + int(in_old[0]) + 1], window[int(in_new[0]) + 1 :]]
        )
        self._encoded = len(self._text)
        return True

    def _merged(self, place: int) -> NDArray[np.uint32]:
        part = self._text[place:]
        return self._encode(part, np.array([len(part)], np.uint64))
