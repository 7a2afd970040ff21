"""The pretokens that the caches of a compiled tokenizer start with: the commonest of a text, or of what was counted.

A cache copies them before it looks at its first pretoken, so they must be few: 21,000 fill a table of 65,536 slots to
a third and come to 2 MiB. Of the pretokens of English they are 99 %, of several languages 87 %. Rarer ones would each
save the merging of a pretoken, some 50 ns, which their share of copying and checking takes as well. They change no ids:
a pretoken's are those that the encoder itself gave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bpe import _core
from bpe.description import Parts
from bpe.errors import BadArgument, shown
from bpe.normalization import to_nfc
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.utf8 import check

if TYPE_CHECKING:
    from typing_extensions import Buffer

COMMONEST: Final = 21_000


def warm_cache(parts: Parts, known: Buffer | PretokenCounts) -> bytes:
    """The image of a cache (`Encoder.cache_image`) that holds the commonest pretokens; b"" if there are none.

    known: UTF-8 text in which they are counted, or counts, of this tokenizer's pattern or of none.
    Cost: that of counting the text, and some 10 ms. InvalidText for text that is not UTF-8.
    """
    counts = known if isinstance(known, PretokenCounts) else _counted(parts, known)
    if counts.facts.pretokenizer not in (None, parts.pretokenizer):
        raise BadArgument(
            f"warm_with was counted with the pattern {shown(counts.facts.pattern)}, the tokenizer's is "
            f"{shown(parts.pretokenizer.description)}; give counts of the same pattern, or text"
        )
    pretokens = commonest(counts, COMMONEST)
    if not pretokens:
        return b""
    encoder = _core.Encoder.from_image(parts.encoder.image(), {}, None, parts.vocabulary.whole_pretokens)
    encoder.encode_pretokens(
        b"".join(pretokens), np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
    )
    return encoder.cache_image()


def commonest(counts: PretokenCounts, most: int) -> list[bytes]:
    """At most so many pretokens (1 or more), the commonest first, equally common ones ascending.

    {b"a": 2, b"b": 3, b"c": 2}, 2 -> [b"b", b"a"]
    """
    if len(counts) == 0:
        return []
    chosen = np.arange(len(counts))
    if len(counts) > most:  # millions need not be sorted
        least = np.partition(counts.counts, len(counts) - most)[len(counts) - most]
        chosen = np.flatnonzero(counts.counts >= least)
    order = np.lexsort((chosen, ~counts.counts[chosen]))  # the complement descends
    chosen = chosen[order][:most]
    starts = np.concatenate((np.zeros(1, np.uint64), counts.ends[:-1]))[chosen]
    text = counts.pretoken_bytes.data
    return [
        bytes(text[start:stop])
        for start, stop in zip(starts.tolist(), counts.ends[chosen].tolist(), strict=True)
    ]


def _counted(parts: Parts, text: Buffer) -> PretokenCounts:
    data = bytes(text)
    if parts.normalizer is not None:
        check(data)
        data = to_nfc(data)
    return count_pretokens([data], tuple(parts.vocabulary.special_tokens), parts.pretokenizer)
