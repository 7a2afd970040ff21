"""Write bpe/native/text/nfc_classes.cpp: what each code point means for the normal form NFC.

Which characters are in the form by themselves never changes once they are assigned (Unicode's stability policy), so
the table holds for every Python whose `unicodedata` is at least as new; what is unassigned here is left to it.

    python scripts/generate_nfc_classes.py > bpe/native/text/nfc_classes.cpp
"""

from __future__ import annotations

import sys
import unicodedata

CODE_POINTS = 0x110000
DOUBTFUL = 255
# Vowels and final consonants of Hangul, which compose by rule and not by table.
HANGUL_PARTS = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]


def composing() -> set[int]:
    """The characters that may become one with a character before them."""
    found = set(HANGUL_PARTS)
    for code_point in range(CODE_POINTS):
        parts = unicodedata.decomposition(chr(code_point)).split()
        if len(parts) != 2 or parts[0].startswith("<"):
            continue
        if unicodedata.normalize("NFC", "".join(chr(int(part, 16)) for part in parts)) == chr(code_point):
            found.add(int(parts[1], 16))
    return found


def runs() -> list[tuple[int, int]]:
    """(first code point, class) of each run of code points of one class: 0, a combining class, or DOUBTFUL."""
    doubtful = composing()
    found: list[tuple[int, int]] = []
    for code_point in range(CODE_POINTS):
        character = chr(code_point)
        if (
            code_point in doubtful
            or unicodedata.category(character) in ("Cn", "Cs")
            or unicodedata.normalize("NFC", character) != character
        ):
            number = DOUBTFUL
        else:
            number = unicodedata.combining(character)
        if not found or found[-1][1] != number:
            found.append((code_point, number))
    return found


def cpp(found: list[tuple[int, int]]) -> str:
    """The source text: the runs, a start and a class each."""
    lines = [
        "// Written by scripts/generate_nfc_classes.py; do not edit.",
        "//",
        f"// Unicode {unicodedata.unidata_version}.",
        '#include "text/nfc.hpp"',
        "",
        "namespace bpe {",
        "",
        f"const size_t nfc_run_count = {len(found)};",
        "// clang-format off",
        f"const NfcRun nfc_runs[{len(found)}] = {{",
    ]
    for start in range(0, len(found), 8):
        lines.append("".join(f"{{{first},{number}}}," for first, number in found[start : start + 8]))
    return "\n".join([*lines, "};", "// clang-format on", "", "} // namespace bpe", ""])


if __name__ == "__main__":
    sys.stdout.write(cpp(runs()))
