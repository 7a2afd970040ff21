"""The limit on how much longer the components of a file may make a text.

Growth factors of components multiply: forty ByteLevels would turn one letter into a terabyte. Idempotent components,
such as NFKC, are not counted. They make a text at most about ten times longer. Published tokenizers stay below 200.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bpe import normalizers
from bpe.errors import UnsupportedTokenizer
from bpe.pretokenization import components

MOST_GROWTH: Final = 1 << 16


def growth(made: Iterable[object]) -> int:
    """Return an upper bound on the bytes that a sequence of normalizers and pre-tokenizers makes of one byte."""
    times = 1
    for component in made:
        match component:
            case normalizers.ByteLevel() | components.ByteLevel():
                times *= 2
            case normalizers.Replace(pattern, content, is_expression):
                # An expression may match a byte, or the empty text on both sides of it.
                replaced = len(content.encode())
                times *= (
                    1 + 2 * replaced if is_expression else -(-replaced // max(1, len(pattern.encode()))) or 1
                )
            case normalizers.Precompiled(charsmap):
                texts = charsmap[
                    4 + int.from_bytes(charsmap[:4], "little") :
                ]  # the values follow the double array of the keys
                times *= max(map(len, texts.split(b"\0"))) or 1
    return times


def check_growth(made: Iterable[object]) -> None:
    """Raise UnsupportedTokenizer if text could become more than MOST_GROWTH times longer."""
    if (found := growth(made)) > MOST_GROWTH:
        raise UnsupportedTokenizer(
            f"normalizer and pre_tokenizer: must not make text more than {MOST_GROWTH:,} times longer (got {found:.0e})"
        )
