"""Characters and texts that trip normalizers, and charsmaps for Precompiled."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

from tokenizers import normalizers

ROOT = Path(__file__).resolve().parent.parent.parent


def _charsmap_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("charsmap", ROOT / "tools/charsmap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_charsmap = _charsmap_module().build

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# All characters of the planes with assigned characters, and some of the others.
SOME = [c for c in SCALARS if (c < 0x33400 or 0xE0000 <= c < 0xE0200 or c % 61 == 0 or c & 0xFFFF > 0xFFF0)]
_NFD, _NFC = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str

MARKS = [
    chr(c)
    for c in SOME
    if (_NFD("\u0334" + chr(c) + "\u0345") != "\u0334" + chr(c) + "\u0345")
    or _NFD(chr(c) + "\u0334") != chr(c) + "\u0334"
]
TAKEN_APART = [chr(c) for c in SOME if not 0xAC00 <= c < 0xD7A4 and _NFD(chr(c)) != chr(c)]
PARTS = sorted({part for c in TAKEN_APART for part in _NFD(c)})
COMPATIBLE = [
    chr(c)
    for first, stop in ((0x2000, 0x3400), (0xF900, 0x10000), (0x1D400, 0x1D800), (0x1F100, 0x1F300))
    for c in range(first, stop)
]
OTHERS = [
    *"abcEAOxyz \n\t\r.<>|\0\x01\x7f\x85",
    *"가각ᄀ가각ᅡᆨᆨ你の漢ハ゛ばéΣΑΣİıßǅŸ",
    *"\u00a9\u200d\u200c\u263a\U0001f600\U0001f1e6\U0001f1e7\u0600\u0915\u094d\u0937\u0903\u0e33",
    *"\ud7ff\ue000\ufffd\ufeff\uffff\u2581\u3000\u00a0\u0378\U000e0fff\U0010ffff\U00016d63\U00011f02",
]
EVERY = [*MARKS, *TAKEN_APART, *PARTS, *COMPATIBLE, *OTHERS]


def nasty_texts(count: int, seed: int) -> list[str]:
    """Return random texts of characters that compose, decompose, join or are marks, with some long runs of marks."""
    drawn = random.Random(seed)
    kinds = [EVERY, MARKS, OTHERS, [*PARTS, *MARKS[:200]], [*OTHERS[:14], "\u0301", "\u0323", "\u0308"]]
    texts = []
    for _ in range(count):
        kind = drawn.choice(kinds)
        texts.append("".join(drawn.choices(kind, k=drawn.choice([1, 2, 3, 5, 8, 40]))))
    texts += [
        "a" + "".join(drawn.choices(MARKS, k=length)) + "b" for length in (31, 32, 33, 34, 64, 300, 1000)
    ]
    return texts


def realistic_charsmap() -> bytes:
    """Return rules like SentencePiece's nmt_nfkc: NFKC changes, compositions, whitespace."""
    nfkc = normalizers.NFKC().normalize_str
    rules = {chr(c): nfkc(chr(c)) for c in SOME if 0 < c < 0x2FA20 and nfkc(chr(c)) != chr(c)}
    rules |= {_NFD(c): c for c in TAKEN_APART if _NFC(c) == c and len(_NFD(c)) == 2}
    rules |= {chr(c): " " for c in (9, 10, 13, 0xA0, 0x3000, 0x2581, 0xFEFF, 0x200B)}
    rules |= {chr(c): "" for c in [*range(1, 9), 0x7F, 0x300, 0x200D]}
    return build_charsmap(rules)
