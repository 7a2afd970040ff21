"""How much longer components may make a text, and the most that is honoured of a file.

Each that can put several bytes in the place of one does so to what the ones before made: forty ByteLevels would make a
terabyte of a letter. Those whose result they leave alone a second time, such as NFKC, count as nothing here; they make
a text at most some ten times as long. Published tokenizers stay below 200.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bpe import normalizers
from bpe.errors import UnsupportedTokenizer
from bpe.pretokenization import components

MOST_GROWTH: Final = 1 << 16


def growth(made: Iterable[object]) -> int:
    """At most how many bytes become of one, by components of normalizers and pre-tokenizers one after the other."""
    times = 1
    for component in made:
        match component:
            case normalizers.ByteLevel() | components.ByteLevel():
                times *= 2
            case normalizers.Replace(pattern, content, is_expression):
                # An expression may match a byte, or nothing on both sides of one.
                replaced = len(content.encode())
                times *= (
                    1 + 2 * replaced if is_expression else -(-replaced // max(1, len(pattern.encode()))) or 1
                )
            case normalizers.Precompiled(charsmap):
                texts = charsmap[
                    4 + int.from_bytes(charsmap[:4], "little") :
                ]  # behind the double array of the keys
                times *= max(map(len, texts.split(b"\0"))) or 1
    return times


def check_growth(made: Iterable[object]) -> None:
    """Raise UnsupportedTokenizer if text could become more than MOST_GROWTH times longer."""
    if (found := growth(made)) > MOST_GROWTH:
        raise UnsupportedTokenizer(
            f"normalizer and pre_tokenizer: must not make text more than {MOST_GROWTH:,} times longer (got {found:.0e})"
        )
