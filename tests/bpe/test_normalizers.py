"""Every normalizer equals its counterpart in Hugging Face tokenizers, for every character and on difficult text."""

from __future__ import annotations

import json
import pickle
import random
import unicodedata
from functools import cache

import pytest
from normalizer_texts import (
    EVERY,
    OTHERS,
    PARTS,
    SCALARS,
    SOME,
    build_charsmap,
    nasty_texts,
    realistic_charsmap,
)
from tokenizers import Regex, normalizers

from bpe.errors import BadArgument
from bpe.formats.huggingface_components import normalizer_from_json, normalizer_to_json
from bpe.normalizers import Form, Normalizer, make_normalizer

SOME_RULES = {
    "a": "X", "é": "", "e\u0301": "É", "ab": "Q", "\r": "<r>", "\u0600": "", "ﷺ": "صلى الله", "\U0001f600": "\u0301",
    "\u0915": "k", "\u00a9": "(c)", "\u0301": "'", "한": "\u1112\u1161\u11ab",
}  # fmt: skip


@cache
def both(name: str) -> tuple[Normalizer, normalizers.Normalizer]:
    """Return (ours, theirs) by name."""
    theirs = THEIRS[name]()
    value = json.loads(theirs.__getstate__())
    ours = normalizer_from_json(value)
    assert ours is not None
    assert normalizer_from_json(normalizer_to_json(ours)) == ours
    return ours, theirs


def bert(**options: bool | None) -> normalizers.Normalizer:
    return normalizers.BertNormalizer(**options)


THEIRS = {
    **{
        name: getattr(normalizers, name)
        for name in "NFC NFD NFKC NFKD Lowercase StripAccents Nmt ByteLevel Strip".split()
    },
    "left": lambda: normalizers.Strip(left=True, right=False),
    "right": lambda: normalizers.Strip(left=False, right=True),
    "neither": lambda: normalizers.Strip(left=False, right=False),
    "Prepend": lambda: normalizers.Prepend("▁\u0301"),
    "Prepend nothing": lambda: normalizers.Prepend(""),
    "Replace": lambda: normalizers.Replace(" ", "▁"),
    "Replace ab": lambda: normalizers.Replace("aa", "a\u0301"),
    "Replace marked": lambda: normalizers.Replace("e\u0301", ""),
    "Replace special": lambda: normalizers.Replace("a.|-\n&#~ ", "x"),
    "Replace nothing": lambda: normalizers.Replace("", "-"),
    "Replace spaces": lambda: normalizers.Replace(Regex(r" {2,}|\n+"), " "),
    "Replace empty": lambda: normalizers.Replace(Regex("b*"), "<>"),
    "Bert": normalizers.BertNormalizer,
    "Bert clean": lambda: bert(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    ),
    "Bert accents": lambda: bert(
        clean_text=False, handle_chinese_chars=True, strip_accents=True, lowercase=False
    ),
    "Precompiled": lambda: normalizers.Precompiled(realistic_charsmap()),
    "Precompiled odd": lambda: normalizers.Precompiled(build_charsmap(SOME_RULES)),
}
SEQUENCES = {
    "Llama": lambda: [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")],
    "Bert apart": lambda: [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()],
    "Albert": lambda: [
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
        normalizers.NFKD(),
        normalizers.StripAccents(),
        normalizers.Lowercase(),
        normalizers.Precompiled(realistic_charsmap()),
    ],
    "T5": lambda: [
        normalizers.Precompiled(realistic_charsmap()),
        normalizers.Replace(Regex(" {2,}"), "▁"),
        normalizers.Strip(),
    ],
    "empty in the end": lambda: [normalizers.StripAccents(), normalizers.Strip(), normalizers.Prepend("_")],
    "composed and replaced": lambda: [
        normalizers.NFC(),
        normalizers.Replace("xé", "e"),
        normalizers.NFC(),
        normalizers.Replace("é", ""),
        normalizers.NFD(),
    ],
    "NFKC lower": lambda: [normalizers.NFKC(), normalizers.Lowercase(), normalizers.ByteLevel()],
}
THEIRS |= {name: (lambda parts=parts: normalizers.Sequence(parts())) for name, parts in SEQUENCES.items()}


def check(name: str, text: str) -> None:
    ours, theirs = both(name)
    found, expected = ours.apply(text.encode()).decode(), theirs.normalize_str(text)
    if found != expected:
        place = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), -1)
        pytest.fail(f"{name}: {found[place - 9 : place + 9]!a}, not {expected[place - 9 : place + 9]!a}")


CHARACTER_BY_CHARACTER = [*"NFC NFD NFKC NFKD Lowercase StripAccents Nmt ByteLevel".split(), "Bert clean"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHARACTER_BY_CHARACTER, "Bert accents", "Precompiled"])
def test_every_character(name: str) -> None:
    """Characters are separated by letters, in texts of about 100 kB."""
    for start in range(0, len(SCALARS), 1 << 15):
        check(name, "".join(f"x{chr(c)}" for c in SCALARS[start : start + (1 << 15)]))


@pytest.mark.parametrize(("before", "after"), [("a", "\u0323"), ("\u1100", "\u11a8"), ("\u0301", "\u0301")])
@pytest.mark.parametrize("name", ["NFC", "NFD", "NFKC", "NFKD", "Precompiled", "Precompiled odd"])
def test_every_nasty_character_in_company(name: str, before: str, after: str) -> None:
    """After a letter it may compose with, and between marks."""
    for start in range(0, len(EVERY), 1 << 14):
        check(name, "".join(f"x{before}{c}{after}" for c in EVERY[start : start + (1 << 14)]))


@pytest.mark.parametrize("name", ["NFC", "NFKC"])
def test_every_pair_that_composes(name: str) -> None:
    """The pairs of all Unicode versions: this Python's decompositions, and each part with each of its marks."""

    pairs = {
        unicodedata.normalize("NFC", parts[:-1]) + parts[-1]
        for c in SOME
        if len(parts := unicodedata.normalize("NFD", chr(c))) > 1
    }
    seconds = sorted({pair[-1] for pair in pairs})
    letters = random.Random(1).sample(PARTS, 300)
    check(name, "|".join(sorted(pairs)))
    check(name, "|".join(first + second for first in letters for second in seconds))


@pytest.mark.parametrize("name", THEIRS)
def test_random_nasty_texts(name: str) -> None:
    for text in ["", " ", "  \u0301", *nasty_texts(400, seed=len(name))]:
        check(name, text)


@pytest.mark.parametrize("name", ["Precompiled", "Precompiled odd"])
def test_short_clusters(name: str) -> None:
    """All cases that decide where a grapheme cluster of less than six bytes starts and ends."""
    drawn = random.Random(5)
    few = [*OTHERS, *"ae\u0300\u0301\u0903\u094d\u1112\u1161\u11abᇂ\r\n"]
    for _ in range(4000):
        check(name, "".join(drawn.choices(few, k=drawn.choice([2, 3, 4, 6]))))


@pytest.mark.parametrize("name", ["NFC", "NFD", "NFKC", "NFKD", "StripAccents"])
def test_changed_characters_are_found_at_any_offset(name: str, variant: str) -> None:
    for neighbour in [*"a\u0437\u5b57\u3057\u0915\U00020000\U0001d15e", "\u0915\u094d"]:
        for changed in ("\u0301", "\u0344", "\u0958", "\u3099", "\uf900", "\U0001d160"):
            for before in (*range(33), *range(55, 70), *range(125, 133)):
                check(name, f"{neighbour * before}{changed}{neighbour * (before % 7)}")


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f73", "\u0f81\u0f71", "\u3099\u0345\u05b0"])
@pytest.mark.parametrize("name", ["NFC", "NFKD", "Precompiled", "Bert", "StripAccents", "Replace marked"])
def test_many_marks_after_one_letter_take_a_moment(name: str, marks: str) -> None:
    """Swapping them one by one would take minutes."""
    text = ("a" + marks * (500_000 // len(marks))).encode()
    changed = both(name)[0].apply(text)
    assert both(name)[0].apply(changed) == changed or name == "Replace marked"


# -- errors ----------------------------------------------------------------------------------------------------


def test_arguments() -> None:
    assert make_normalizer(None) is None
    assert make_normalizer("NFC") == Normalizer((Form("NFC"),))
    assert make_normalizer(Normalizer(())) is None
    used = both("Llama")[0]
    assert used.apply(b"a b") == "▁a▁b".encode()
    assert pickle.loads(pickle.dumps(used)) == used
    with pytest.raises(BadArgument, match="normalizer"):
        make_normalizer("NFD")
