"""The ids of one pretoken of any length, in bounded memory: given out while it still comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe.tokenizer import Tokenizer
from tokenmill.inputs.errors import BadInput

if TYPE_CHECKING:
    from typing_extensions import Buffer


class LongPretoken:
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
                f"text: merges span more than {self._encoded} bytes of one pretoken, too many to encode it in parts. "
                "Split it with spaces or line breaks."
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
