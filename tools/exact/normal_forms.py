"""Compare every normalizer with tokenizers, on all scalar values in five contexts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exact.cuts import SCALARS
from exact.steps import Step

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "bpe"))
from normalizer_texts import realistic_charsmap

from bpe.formats.huggingface_components import normalizer_to_json
from bpe.normalizers import (
    Bert,
    ByteLevel,
    Form,
    Lowercase,
    Nmt,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    Strip,
    StripAccents,
)

# Bare, after a letter, before a mark, between marks, and between Hangul letters with a repetition.
CONTEXTS = ("{0}", "e{0}", "{0}\u0301", "a\u0323{0}\u0345b", "\u1112{0}\u11ab{0}{0}")
SCALARS_A_TEXT = 128


def normalizers() -> dict[str, Normalizer]:
    """Return the normalizers of tokenizer.json, alone and in the combinations of real files."""
    parts: dict[str, tuple[Any, ...]] = {name: (Form(name),) for name in ("NFC", "NFD", "NFKC", "NFKD")}
    parts |= {type(each).__name__: (each,) for each in (Lowercase(), Nmt(), StripAccents(), ByteLevel())}
    parts |= {
        "Strip": (Strip(True, True),),
        "Precompiled": (Precompiled(realistic_charsmap()),),
        "Bert uncased": (Bert(True, True, None, True),),
        "Bert cased": (Bert(True, False, None, False),),
        "like llama": (Prepend("▁"), Replace(" ", "▁")),
        "like clip": (Form("NFC"), Replace(r"\s+", " ", True), Lowercase()),
        "like albert": (Form("NFKD"), StripAccents(), Lowercase()),
    }
    return {name: Normalizer(components) for name, components in parts.items()}


def scalars(_: int, start: int) -> Iterator[Step]:
    """Compare all scalar values. A step is a text of one normalizer and counts the characters of the result."""
    import tokenizers

    known = normalizers()
    texts = range(0, len(SCALARS), SCALARS_A_TEXT)
    for number in range(start, len(known) * len(texts)):
        name = list(known)[number // len(texts)]
        if number == start or number % len(texts) == 0:
            root = {
                "normalizer": normalizer_to_json(known[name]),
                "model": {"type": "BPE", "vocab": {}, "merges": []},
            }
            theirs: Any = tokenizers.Tokenizer.from_str(
                json.dumps({"version": "1.0", "added_tokens": [], **root})
            ).normalizer
        first = texts[number % len(texts)]
        drawn = [chr(code) for code in SCALARS[first : first + SCALARS_A_TEXT]]
        made = [context.format(each) for each in drawn for context in CONTEXTS]
        text = "\n.\n".join(made)
        ours, expected = known[name].apply_to_text(text), theirs.normalize_str(text)
        if ours != expected:
            at = next(
                i
                for i, pair in enumerate(zip(ours + "\0", expected + "\0", strict=False))
                if pair[0] != pair[1]
            )
            around = slice(max(0, at - 5), at + 5)
            yield Step(
                number, at, f"{name}: {ours[around]!a} here, {expected[around]!a} there, of {text[:40]!a}"
            )
        yield Step(number + 1, len(expected))
