"""Write bpe/native/normalize/unicode_tables.inc: how the normalizers of Hugging Face tokenizers map each character.

tokenizers mixes Unicode versions: its normal forms use 9.0, its lower case 17.0. The tool therefore normalizes every
character with the installed library. `unicodedata` only supplies one sample mark per combining class. The tool measures
the classes of all other marks against these samples.

    python tools/generate_normalization_tables.py > bpe/native/normalize/unicode_tables.inc
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

from tokenizers import normalizers

sys.path.insert(0, str(Path(__file__).parent))
import charsmap

Map = dict[int, str]
SCALARS = [code_point for code_point in range(0x110000) if not 0xD800 <= code_point < 0xE000]
HANGUL = range(0xAC00, 0xAC00 + 11172)
CLUSTER_CLASSES = [
    "other", "cr", "lf", "control", "extend", "linker", "other_extend", "zwj", "spacing_mark", "prepend",
    "l", "v", "t", "lv", "lvt", "pictographic", "consonant",
]  # fmt: skip


def changes(normalize: Callable[[str], str]) -> Map:
    """Return the characters that change when normalized alone, with their results."""
    return {c: text for c in SCALARS if (text := normalize(chr(c))) != chr(c)}


def bert(**options: bool) -> Callable[[str], str]:
    """BertNormalizer with only these options."""
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    normalize: Callable[[str], str] = normalizers.BertNormalizer(**{**off, **options}).normalize_str
    return normalize


def combining_classes() -> dict[int, int]:
    """Return the canonical combining class of each mark. Normalization sorts adjacent marks by class."""
    nfd = normalizers.NFD().normalize_str
    lowest, highest = "\u0334", "\u0345"  # 1 and 240

    def is_mark(c: str) -> bool:
        return nfd(c) == c and (nfd(c + lowest) != c + lowest or nfd(highest + c) != highest + c)

    sample: dict[int, str] = {}
    for c in SCALARS:
        if (number := unicodedata.combining(chr(c))) and is_mark(chr(c)):
            sample.setdefault(number, chr(c))
    found = {}
    for c in SCALARS:
        mark = chr(c)
        if not is_mark(mark):
            continue
        for number, other in sample.items():
            if nfd(mark + other) == mark + other and nfd(other + mark) == other + mark:
                found[c] = number
                break
        else:
            raise SystemExit(f"U+{c:04X} has a combining class that no known mark has")
    return found


def composing_pairs(canonical: Map) -> list[tuple[int, int, int]]:
    """Return (first, second, composition) of the pairs that compose, without Hangul."""
    nfc = normalizers.NFC().normalize_str
    pairs = []
    for c, parts in canonical.items():
        if nfc(parts) == chr(c) and len(parts) > 1 and c not in HANGUL:
            first = nfc(parts[:-1])
            assert len(first) == 1
            assert nfc(first + parts[-1]) == chr(c)
            pairs.append((ord(first), ord(parts[-1]), c))
    return pairs


def cluster_classes() -> dict[int, str]:
    """Return the class of each character in the rules of extended grapheme clusters (UAX 29), if it has one.

    Precompiled looks up a cluster of less than six bytes as a whole and drops the text after the match. If every
    character maps to "X", the output has one "X" per short cluster, and one "X" per character of other clusters.
    """
    every = {chr(c): "X" for c in SCALARS if c}
    count = normalizers.Precompiled(charsmap.build(every)).normalize_str
    zwj, mark, smile, first, last, linker = "\u200d", "\u0300", "\u263a", "\u0915", "\u0937", "\u094d"
    only_a = normalizers.Precompiled(charsmap.build({"a": "X"})).normalize_str

    found = {0: "control", 0x0D: "cr", 0x0A: "lf"}
    for code_point in SCALARS:
        c = chr(code_point)
        if code_point in found:
            continue
        short = len(c.encode()) < 4  # short enough for a short cluster with a mark
        before_v, before_t = count(c + "\u1161" + mark) == "XXX", count(c + "\u11a8" + mark) == "XXX"
        if count(c + mark + mark) == "XX":
            found[code_point] = "control"
        elif c == zwj:
            found[code_point] = "zwj"
        elif only_a("a" + c) == "X":
            if count("\u00a9" + c + zwj + smile + mark) != "XXXXX":
                found[code_point] = "spacing_mark"
            elif count(first + c + last + mark) == "XXXX":
                found[code_point] = "linker"
            elif count(first + linker + c + last + mark) == "XXXXX":
                found[code_point] = "extend"
            else:
                found[code_point] = "other_extend"
        elif only_a(c + "a" + mark) == c + "X" + mark:
            found[code_point] = "prepend"
        elif before_v and before_t:
            is_v = not short or count("\u1161" + c + mark) == "XXX"
            found[code_point] = "v" if is_v else "lv"
        elif before_v:
            found[code_point] = "l"
        elif before_t:
            is_t = short and count("\u11a8" + c + mark) == "XXX"
            found[code_point] = "t" if is_t else "lvt"
        elif count("\u00a9" + zwj + c + (mark if short else "")) == "XXXX"[: 4 if short else 3]:
            found[code_point] = "pictographic"
        elif count(c + linker + last + mark) == "XXXX":
            found[code_point] = "consonant"
    return found


def ranges(code_points: Iterable[int]) -> list[tuple[int, int]]:
    """Return (first, last) of each run of consecutive code points."""
    found: list[tuple[int, int]] = []
    for c in sorted(code_points):
        if found and found[-1][1] == c - 1:
            found[-1] = (found[-1][0], c)
        else:
            found.append((c, c))
    return found


def class_runs(classes: dict[int, int]) -> list[int]:
    """Return first << 8 | class of each run of code points with one class, starting at 0."""
    runs: list[int] = []
    before = -1
    for c in range(0x110000):
        if classes.get(c, 0) != before:
            before = classes.get(c, 0)
            runs.append(c << 8 | before)
    return runs


def mapping(changed: Map) -> list[int]:
    """Return code point | length << 21, followed by that many code points, for each entry."""
    return [
        number
        for c, text in changed.items()
        for number in (c | len(text) << 21, *(ord(each) for each in text))
    ]


def arrays_of_cpp() -> str:
    """Return the text of unicode_tables.inc."""
    nfd, nfkd = changes(normalizers.NFD().normalize_str), changes(normalizers.NFKD().normalize_str)
    no_hangul = {c: text for c, text in nfd.items() if c not in HANGUL}
    clean, nmt = changes(bert(clean_text=True)), changes(normalizers.Nmt().normalize_str)
    numbered = {c: CLUSTER_CLASSES.index(name) for c, name in cluster_classes().items()}
    arrays = {
        "combining_class_runs": class_runs(combining_classes()),
        "cluster_class_runs": class_runs(numbered),
        "canonical_decompositions": mapping(no_hangul),
        "other_compatibility_decompositions": mapping({c: t for c, t in nfkd.items() if nfd.get(c) != t}),
        "composing_pairs": [number for pair in composing_pairs(nfd) for number in pair],
        "lower_case": mapping(changes(normalizers.Lowercase().normalize_str)),
    }
    sets = {
        "combining_marks": changes(normalizers.StripAccents().normalize_str),
        "nonspacing_marks": [c for c, text in changes(bert(strip_accents=True)).items() if not text],
        "white_space": changes(normalizers.Strip().normalize_str),
        "bert_removed": [c for c, text in clean.items() if not text],
        "bert_spaces": [c for c, text in clean.items() if text == " "],
        "bert_ideographs": changes(bert(handle_chinese_chars=True)),
        "nmt_removed": [c for c, text in nmt.items() if not text],
        "nmt_spaces": [c for c, text in nmt.items() if text == " "],
    }
    for name, code_points in sets.items():
        arrays[name] = [number for pair in ranges(code_points) for number in pair]
    lines = [
        "// Written by tools/generate_normalization_tables.py; do not edit.",
        f"// Source: tokenizers {version('tokenizers')}.",
    ]
    for name, numbers in arrays.items():
        lines.append(f"static const uint32_t {name}_numbers[] = {{")
        line = ""
        for number in numbers:
            if len(line) + len(str(number)) > 108:
                lines.append(line)
                line = ""
            line += f"{number},"
        lines += [line, "};", f"const std::span<const uint32_t> {name}{{{name}_numbers}};"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(arrays_of_cpp())
