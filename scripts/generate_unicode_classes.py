"""Write bpe/native/text/unicode_classes.cpp: the class of every code point, as tiktoken sees it.

Vocabularies are trained and served with tiktoken and Hugging Face tokenizers, so their Unicode version counts, not
Python's nor that of the `regex` package. Each class is read off tiktoken itself: text that a pattern does not match
is dropped, so encoding all scalars with the class as pattern leaves its members.

    python scripts/generate_unicode_classes.py > bpe/native/text/unicode_classes.cpp
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import tiktoken

# Number in the table -> expression; a code point in none of them is 0, other. The order is that of enum CharClass.
CLASSES = [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"[\p{Lm}\p{Lo}]", r"\p{M}", r"\p{N}", r"\s"]
CODE_POINTS = 0x110000
# Starts of the ranges of 512 that the vector lookup of three-byte characters holds, commonest first: punctuation,
# kana, full-width forms, the scripts of India, Thai and Lao, Latin and Greek with two diacritics, Ethiopic, Georgian,
# Khmer, Cree.
COMMON_RANGES = [
    0x2000,
    0x3000,
    0xFE00,
    0x0800,
    0x0E00,
    0x0A00,
    0x0C00,
    0x1E00,
    0x1200,
    0x1000,
    0x1600,
    0x1400,
]
PAGE = 64  # code points: what the last byte of a UTF-8 sequence tells apart


def classes() -> bytearray:
    """The class of each code point: uint8[0x110000], surrogates are other."""
    table = bytearray(CODE_POINTS)
    scalars = "".join(chr(c) for c in range(CODE_POINTS) if not 0xD800 <= c < 0xE000)
    ranks = {bytes([byte]): byte for byte in range(256)}
    for number, expression in enumerate(CLASSES, 1):
        encoding = tiktoken.Encoding("class", pat_str=expression, mergeable_ranks=ranks, special_tokens={})
        for character in bytes(encoding.encode_ordinary(scalars)).decode():
            table[ord(character)] = number
    return table


def cpp(table: bytes) -> str:
    """The source text: a page number for each 64 code points, the distinct pages, and bits for vector lookups."""
    page_numbers: dict[bytes, int] = {}
    index = [
        page_numbers.setdefault(bytes(table[start : start + PAGE]), len(page_numbers))
        for start in range(0, CODE_POINTS, PAGE)
    ]
    lines = [
        f"// Written by scripts/generate_unicode_classes.py with tiktoken {version('tiktoken')}; do not edit.",
        "//",
        "// Unicode 16.0. Hugging Face tokenizers 0.23.3 (Oniguruma) agrees on every scalar. The regex package,",
        "// once it knows Unicode 17 or later, puts characters that are new since then in their classes (here: other,",
        "// for they are unassigned) and U+0295 among the letters without case (here: lower case).",
        '#include "text/unicode_classes.hpp"',
        "",
        "namespace bpe {",
        "",
        "// clang-format off",
        f"const uint16_t unicode_page_numbers[{len(index)}] = {{",
    ]
    for start in range(0, len(index), 32):
        lines.append(",".join(map(str, index[start : start + 32])) + ",")
    lines += ["};", "", f"const uint8_t unicode_pages[{len(page_numbers)}][{PAGE}] = {{"]
    for page in page_numbers:
        lines.append("{" + ",".join(map(str, page)) + "},")
    lines += ["};", "", "const uint8_t unicode_two_byte_bits[3][256] = {", *bit_rows(table[:0x800]), "};", ""]
    lines.append(f"const UnicodeRange unicode_three_byte_ranges[{len(COMMON_RANGES)}] = {{")
    for start in COMMON_RANGES:
        lead, second, _ = chr(start).encode()
        lines += [f"{{{lead}, {second}, {{", *bit_rows(table[start : start + 512]), "}},"]
    lines += ["};", "// clang-format on", "", "} // namespace bpe", ""]
    return "\n".join(lines)


def bit_rows(part: bytes) -> list[str]:
    """Three rows: bit i of each class, eight classes a byte, the first lowest."""
    rows = []
    for bit in range(3):
        eighths = (part[start : start + 8] for start in range(0, len(part), 8))
        row = (sum((number >> bit & 1) << place for place, number in enumerate(eight)) for eight in eighths)
        rows.append("{" + ",".join(map(str, row)) + "},")
    return rows


if __name__ == "__main__":
    sys.stdout.write(cpp(bytes(classes())))
