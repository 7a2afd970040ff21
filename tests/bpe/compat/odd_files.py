"""Random tokenizer.json files and texts: models with all options, overlapping added tokens, all components."""

from __future__ import annotations

import base64
import random
from typing import Any

from normalizer_texts import build_charsmap

from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER, to_characters

Json = dict[str, Any]

SYMBOLS = [
    *"abcdeABté\u0301 ▁\n\r\t.,'12-_\ufeffﬁİß가ש\x00\x1f\x85\u2028\u3000中文ǅ\u0345½²\U0010ffff\u00adΣς\ufb00…\\🏽",
    *("  ", "e\u0301", "\u1100\u1161", "👩\u200d👩\u200d👧", "'s", "<s>", "</s>", "<x>", "x>", " <x>"),
]
ADDED = "<x>|<s>|</s>|x>|a|ab|ab |  | |\n|\n\n|é|A|AB|1|▁|<x><s>|a b|ﬁ".split("|")
_CHARSMAP = {
    "\ufb01": "fi",
    "½": "1",
    "\u0345": "\u0308\u0301",
    "²": " ",
    "\x00": "",
    "e\u0301": "é",
    "\u00ad": "",
}
CHARSMAP = base64.b64encode(build_charsmap(_CHARSMAP)).decode()
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
EXPRESSIONS = r"""\s+ \p{N}{1,3} \w+|[^\w\s]+ \x20?\p{L}+ \s+(?!\S)|\s+ a|b+ (?i:'s|'t) .""".split()


def odd_text(rng: random.Random) -> str:
    """Return a text of symbols that are hard to cut, to normalize or to find again."""
    count = rng.choice([0, 1, 2, 3, 5, 10, 30])
    return "".join(rng.choices(SYMBOLS if rng.random() < 0.8 else rng.sample(SYMBOLS, 3), k=count))


def odd_file(rng: random.Random) -> Json:
    """Return a tokenizer.json."""
    normalizer = _normalizer(rng, 2) if rng.random() < 0.5 else None
    pre_tokenizer = _pre_tokenizer(rng, 2) if rng.random() < 0.8 else None
    if rng.random() < 0.4 and not _has_byte_level(pre_tokenizer):
        steps = [pre_tokenizer] if pre_tokenizer else []
        pre_tokenizer = {"type": "Sequence", "pretokenizers": [*steps, _byte_level(rng)]}
    byte_level = _has_byte_level(pre_tokenizer)
    model = odd_model(rng, byte_level)
    added = _added_tokens(rng, model["vocab"])
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": _post_processor(rng, added) if added and rng.random() < 0.4 else None,
        "decoder": _byte_level(rng) if byte_level else _decoder(rng, model["end_of_word_suffix"]),
        "model": model,
    }


def odd_model(rng: random.Random, byte_level: bool) -> Json:
    """Return a BPE model."""
    prefix = suffix = unk_token = None
    byte_fallback = False
    entries: list[str] = []
    if byte_level:
        entries += rng.sample(list(BYTE_TO_CHARACTER.values()), 256)
    else:
        characters = sorted({character for symbol in SYMBOLS for character in symbol})
        letters = rng.sample(characters, rng.randint(5, len(characters)))
        prefix = rng.choice(["##", "@@", "▁"]) if rng.random() < 0.2 else None
        suffix = rng.choice(["</w>", "x"]) if rng.random() < 0.2 else None
        if rng.random() < 0.5:
            unk_token = rng.choice(["<unk>", "a"])
            entries.append(unk_token)
        for letter in letters:
            entries += [
                (front or "") + letter + (back or "") for front in (None, prefix) for back in (None, suffix)
            ]
        if prefix is None and suffix is None and rng.random() < 0.4:
            byte_fallback = True
            missing = set(rng.sample(range(256), rng.choice([0, 0, 1, 50, 200])))
            entries += [f"<0x{byte:02X}>" for byte in range(256) if byte not in missing]
    entries = list(dict.fromkeys(entries))
    merges = _merges(rng, entries, byte_level, prefix or "", {unk_token})
    if rng.random() < 0.2:
        odd = (odd_text(rng) for _ in range(5))
        entries += [to_characters(text.encode()) if byte_level else text for text in odd if text]
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk_token,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": rng.random() < 0.5,
        "byte_fallback": byte_fallback,
        "ignore_merges": rng.random() < 0.3,
        "vocab": {text: id_ for id_, text in enumerate(dict.fromkeys(entries))},
        "merges": merges,
    }


def _merges(
    rng: random.Random, entries: list[str], byte_level: bool, prefix: str, left_out: set[str | None]
) -> list[list[str]]:
    """Return merges of entries, many of them of adjacent characters in texts, and append their products to entries."""
    merges: list[list[str]] = []
    parts = [text for text in entries if not text.startswith("<0x") and text not in left_out]
    for _ in range(rng.choice([0, 5, 30, 100])):
        text = odd_text(rng)
        if byte_level:
            text = to_characters(text.encode())
        pair = [rng.choice(parts), rng.choice(parts)]
        if len(text) > 1 and not prefix and rng.random() < 0.7:
            at = rng.randrange(len(text) - 1)
            pair = [text[at], text[at + 1]]
        left, right = pair
        made = left + right.removeprefix(prefix)
        if (
            left in parts
            and right in parts
            and right.startswith(prefix)
            and pair not in merges
            and len(made) < 40
        ):
            merges.append(pair)
            parts.append(made)
            entries.append(made)
    return merges


def odd_flags(rng: random.Random) -> Json:
    return {
        "single_word": rng.random() < 0.3,
        "lstrip": rng.random() < 0.3,
        "rstrip": rng.random() < 0.2,
        "normalized": rng.random() < 0.5,
        "special": rng.random() < 0.5,
    }


def odd_added_tokens(rng: random.Random, count: int) -> list[Json]:
    """Return content and flags of added tokens."""
    return [{"content": text, **odd_flags(rng)} for text in rng.sample(ADDED, count)]


def odd_component(rng: random.Random, kind: str) -> Json:
    """Return a component in tokenizer.json's form."""
    match kind:
        case "normalizer":
            return _normalizer(rng, 2)
        case "pre_tokenizer":
            return _pre_tokenizer(rng, 2)
        case "post_processor":
            return _post_processor(rng, [{"content": "<s>", "id": rng.randrange(5)}])
    return _decoder(rng, None) or _byte_level(rng)


def _added_tokens(rng: random.Random, vocab: dict[str, int]) -> list[Json]:
    drawn = odd_added_tokens(rng, rng.choice([0, 0, 1, 2, 4, 8]))
    new = iter(range(len(vocab), len(vocab) + len(drawn)))
    with_ids: list[Json] = [{"id": vocab.get(token["content"]), **token} for token in drawn]
    return sorted(
        ({**token, "id": next(new) if token["id"] is None else token["id"]} for token in with_ids),
        key=lambda token: int(token["id"]),
    )


def _normalizer(rng: random.Random, depth: int) -> Json:
    kinds = "NFC NFD NFKC NFKD Lowercase Strip StripAccents Replace Prepend Nmt BertNormalizer Precompiled Sequence"
    match kind := rng.choice(kinds.split()):
        case "Precompiled":
            return {"type": kind, "precompiled_charsmap": CHARSMAP}
        case "Strip":
            return {"type": kind, "strip_left": rng.random() < 0.5, "strip_right": rng.random() < 0.5}
        case "Replace":
            text, expression = (
                rng.choice([" ", "a", "ab", "é", "\n"]),
                rng.choice([r" {2,}", r"\s+", "[ab]+", r"\p{Mn}"]),
            )
            pattern = {"String": text} if rng.random() < 0.5 else {"Regex": expression}
            return {"type": kind, "pattern": pattern, "content": rng.choice(["▁", "", " ", "b", "aa"])}
        case "Prepend":
            return {"type": kind, "prepend": rng.choice(["▁", " ", "a", "<s>"])}
        case "BertNormalizer":
            names = ("clean_text", "handle_chinese_chars", "lowercase")
            return {
                "type": kind,
                **{name: rng.random() < 0.5 for name in names},
                "strip_accents": rng.choice([None, True, False]),
            }
        case "Sequence":
            return {
                "type": kind,
                "normalizers": [_normalizer(rng, depth - 1) for _ in range(rng.randint(0, depth))],
            }
    return {"type": kind}


def _byte_level(rng: random.Random) -> Json:
    return {
        "type": "ByteLevel",
        "add_prefix_space": rng.random() < 0.4,
        "trim_offsets": True,
        "use_regex": rng.random() < 0.5,
    }


def _has_byte_level(component: Json | None) -> bool:
    if component is None:
        return False
    return component["type"] == "ByteLevel" or any(map(_has_byte_level, component.get("pretokenizers", ())))


def _pre_tokenizer(rng: random.Random, depth: int) -> Json:
    kinds = (
        "Split Digits Punctuation Whitespace WhitespaceSplit BertPreTokenizer CharDelimiterSplit FixedLength "
        "Metaspace ByteLevel Sequence"
    )
    match kind := rng.choice(kinds.split()):
        case "Split":
            text = {"String": rng.choice([" ", "a", "ab", "▁", "\n"])}
            pattern = text if rng.random() < 0.4 else {"Regex": rng.choice(EXPRESSIONS)}
            return {
                "type": kind,
                "pattern": pattern,
                "behavior": rng.choice(BEHAVIORS),
                "invert": rng.random() < 0.4,
            }
        case "Digits":
            return {"type": kind, "individual_digits": rng.random() < 0.5}
        case "Punctuation":
            return {"type": kind, "behavior": rng.choice(BEHAVIORS)}
        case "CharDelimiterSplit":
            return {"type": kind, "delimiter": rng.choice(" a▁é")}
        case "FixedLength":
            return {"type": kind, "length": rng.choice([1, 2, 3, 5])}
        case "Metaspace":
            return _metaspace(rng)
        case "ByteLevel":
            return _byte_level(rng)
        case "Sequence":
            steps = [_pre_tokenizer(rng, depth - 1) for _ in range(rng.randint(0, depth))]
            return {"type": kind, "pretokenizers": steps}
    return {"type": kind}


def _metaspace(rng: random.Random) -> Json:
    scheme = rng.choice(["always", "first", "never"])
    return {
        "type": "Metaspace",
        "replacement": rng.choice("▁▁_é"),
        "prepend_scheme": scheme,
        "split": rng.random() < 0.5,
    }


def _post_processor(rng: random.Random, added: list[Json]) -> Json:
    token = rng.choice(added)
    text, id_ = token["content"], token["id"]
    match kind := rng.choice(["TemplateProcessing", "RobertaProcessing", "BertProcessing", "ByteLevel"]):
        case "TemplateProcessing":
            special = {"SpecialToken": {"id": text, "type_id": 0}}
            first, second = (
                {"Sequence": {"id": name, "type_id": type_id}} for type_id, name in enumerate("AB")
            )
            pair = rng.choice(
                [[special, first, second], [second, special, special, first], [first, special, second, first]]
            )
            tokens = {text: {"id": text, "ids": [id_], "tokens": [text]}}
            return {"type": kind, "single": [special, first], "pair": pair, "special_tokens": tokens}
        case "ByteLevel":
            return _byte_level(rng) | {"trim_offsets": rng.random() < 0.5}
    trims = {"trim_offsets": rng.random() < 0.5, "add_prefix_space": rng.random() < 0.5}
    return {
        "type": kind,
        "sep": [text, id_],
        "cls": [text, id_],
        **(trims if kind == "RobertaProcessing" else {}),
    }


def _decoder(rng: random.Random, suffix: str | None) -> Json | None:
    llama = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    bpe = {"type": "BPEDecoder", "suffix": suffix or "</w>"}
    return rng.choice([None, bpe, {"type": "Fuse"}, _metaspace(rng), {"type": "Sequence", "decoders": llama}])
