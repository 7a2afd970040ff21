"""Small tokenizers with text entries, built like published ones: tokenizer.json by name."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import cache
from typing import Any

from chinese_texts import text_of
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER

WORDS = (
    "the then there other lower newest widest in on of and été naïve straße слово слова мир миру 中文 文字 字符 かな "
    "x1 10 100 \n \n\n \t a\nb ... ), (( -- <td> </td> café ▁▁ ok"
).split(" ")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BLOCKS = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, BLOCKS]}
UNBLOCK = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
FALLBACK = [UNBLOCK, {"type": "ByteFallback"}, {"type": "Fuse"}]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def corpus(seed: int) -> list[str]:
    """Return texts of a few words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(400)]


@cache
def trained(
    entries: int, suffix: str = "", prefix: str = "", splits: bool = False, byte_level: bool = False
) -> str:
    """Train on text with "▁" for spaces, or on its whitespace-separated pieces, and return the tokenizer.json."""
    options: dict[str, Any] = {"end_of_word_suffix": suffix} if suffix else {}
    tokenizer = Tokenizer(models.BPE(**options))
    if byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", invert=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    elif splits:
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    if prefix:
        options["continuing_subword_prefix"] = prefix
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=["<unk>", "<s>"],
        show_progress=False,
        max_token_length=12,
        **options,
    )
    tokenizer.train_from_iterator(corpus(1), trainer)
    return tokenizer.to_str()


def document(base: str, byte_tokens: list[str] | None = None, **parts: Any) -> dict[str, Any]:
    """Return the base with byte entries first, and with these fields of the root and the model."""
    root: dict[str, Any] = json.loads(base)
    model = root["model"]
    if byte_tokens:
        keys = [*sorted(model["vocab"], key=model["vocab"].get)]
        keys = [*keys[:2], *byte_tokens, *(key for key in keys[2:] if key not in byte_tokens)]
        model["vocab"] = {key: id_ for id_, key in enumerate(keys)}
    for name, value in parts.items():
        if name in root:
            root[name] = value
        else:
            model[name] = value
    known = model["vocab"]
    for token in root["added_tokens"]:
        token["id"] = known.get(token["content"], token["id"])
    return root


def added(text: str, id_: int, **flags: bool) -> dict[str, Any]:
    """Return an added token."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": id_, "content": text, **plain, **flags}


@cache
def text_vocabulary(name: str) -> str:
    """Return the tokenizer.json of one of NAMES."""
    return json.dumps(_BUILDERS[name](), ensure_ascii=False)


def _llama(**parts: Any) -> dict[str, Any]:
    fields = {
        "normalizer": PREPEND,
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [*FALLBACK, STRIP]},
        "byte_fallback": True,
        "unk_token": "<unk>",
        "fuse_unk": True,
    }
    return document(trained(420), BYTES, **(fields | parts))


@cache
def chinese_vocabulary(merges: int, unknown: str, spaces: str) -> str:
    """Train on Chinese and the characters between, without two of its letters and an emoji, and return the
    tokenizer.json.
    """
    tokenizer = Tokenizer(models.BPE())
    blocks = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), blocks]) if spaces == "prepended" else blocks
    )
    rng = random.Random(merges)
    texts = [text_of(rng, 60).translate(dict.fromkeys(map(ord, "龍鳳😀"))) for _ in range(300)]
    trainer = trainers.BpeTrainer(
        vocab_size=2 + len(set("".join(texts) + "▁")) + merges,
        special_tokens=["<unk>", "<s>"],
        show_progress=False,
        max_token_length=6,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fields = {"unk_token": None if unknown == "left out" else "<unk>", "fuse_unk": unknown == "fused"}
    as_bytes = unknown == "as bytes"
    return json.dumps(
        document(tokenizer.to_str(), BYTES if as_bytes else None, byte_fallback=as_bytes, **fields)
    )


def _phi() -> dict[str, Any]:
    root = _llama()
    size = len(root["model"]["vocab"])
    entry = next(key for key in root["model"]["vocab"] if len(key) == 2 and key.isalpha())
    root["added_tokens"] += [
        added("<|user|>", size, rstrip=True),
        added("<|end|>", size + 1, rstrip=True, lstrip=True),
        added(entry, root["model"]["vocab"][entry], normalized=True, special=False),
        added("word x", size + 2, normalized=True, single_word=True),
    ]
    return root


def _gemma() -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    decoder = {"type": "Sequence", "decoders": FALLBACK}
    root = _llama(normalizer=BLOCKS, pre_tokenizer=split, decoder=decoder)
    vocab, merges = root["model"]["vocab"], root["model"]["merges"]
    tokens = []
    for character in "\n\t":
        for size in range(1, 9):
            run = character * size
            if run not in vocab:
                vocab[run] = len(vocab)
            if size > 1:
                merges.insert(0, [character * (size - 1), character])
                tokens.append(added(run, vocab[run], special=False))
    for run in ("▁▁", "<td>", "<bos>"):
        tokens.append(added(run, vocab.setdefault(run, len(vocab)), special=False))
    known = set()
    root["model"]["merges"] = [
        merge
        for merge in merges
        if not (tuple(merge) in known or known.add(tuple(merge)))  # type: ignore[func-returns-value]
    ]
    root["added_tokens"] += tokens
    return root


def _runs(**parts: Any) -> dict[str, Any]:
    """No merge joins a line break or a tab with other characters, and each run of them is an added token."""
    root = _gemma()
    root["added_tokens"] += [
        added(character, root["model"]["vocab"][character], special=False) for character in "\n\t"
    ]
    root["model"]["merges"] = [
        merge
        for merge in root["model"]["merges"]
        if len(set("".join(merge))) == 1 or not {"\n", "\t"} & set("".join(merge))
    ]
    return root | parts


def _byte_merges() -> dict[str, Any]:
    root = _llama()
    vocab = root["model"]["vocab"]
    for left, right in (("<0xE2>", "<0x82>"), ("<0xE2><0x82>", "<0xAC>"), ("<0x0D>", "t"), ("<unk>", "t")):
        vocab[left + right] = len(vocab)
        root["model"]["merges"].insert(3, [left, right])
    return root


def _random_merges() -> dict[str, Any]:
    """Entries of a few characters, made by many different pairs."""
    rng = random.Random(3)
    entries = ["<unk>", "<s>", *BYTES, *"▁abé中\n字𝄞"]
    merges: list[list[str]] = []
    for _ in range(60):
        left, right = rng.choices(entries[258:], k=2)
        if len(left + right) < 9 and [left, right] not in merges:
            merges.append([left, right])
            entries += [left + right] * (left + right not in entries)
    rng.shuffle(merges)
    return _llama(vocab={entry: id_ for id_, entry in enumerate(entries)}, merges=merges)


def _clip() -> dict[str, Any]:
    root = document(trained(700, suffix="</w>", byte_level=True), unk_token="<unk>")
    pieces = root["model"]["vocab"]
    for byte in sorted(pre_tokenizers.ByteLevel.alphabet()):
        for key in (byte, byte + "</w>"):
            pieces.setdefault(key, len(pieces))
    root["normalizer"] = {
        "type": "Sequence",
        "normalizers": [
            {"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
            {"type": "Lowercase"},
        ],
    }
    root["decoder"] = BYTE_LEVEL
    return root


def _split(suffix: str = "", prefix: str = "", **parts: Any) -> dict[str, Any]:
    base = trained(400, suffix=suffix, prefix=prefix, splits=True)
    decoder = {"type": "BPEDecoder", "suffix": suffix or "</w>"}
    return document(base, unk_token="<unk>", decoder=decoder, **parts)


def _metaspace(scheme: str, split: bool) -> dict[str, Any]:
    component = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
    return _llama(normalizer=None, pre_tokenizer=component, decoder=component)


def _few_bytes(alphabet: Iterable[str] = (), **parts: Any) -> dict[str, Any]:
    """Return a byte-level vocabulary with the bytes of its corpus and these, an empty entry, and a raw key."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<unk>", "<s>"],
        show_progress=False,
        initial_alphabet=[*alphabet],
        max_token_length=12,
    )
    tokenizer.train_from_iterator([text.replace("t", "") for text in corpus(1)], trainer)
    root = document(tokenizer.to_str(), decoder=BYTE_LEVEL, **parts)
    vocab = root["model"]["vocab"]
    root["added_tokens"] += [added("<|user|>", len(vocab) + 2, rstrip=True)]
    return root | {"model": root["model"] | {"vocab": vocab | {"": len(vocab), "▁ 日": len(vocab) + 1}}}


_IN_UTF8 = [
    character for byte, character in BYTE_TO_CHARACTER.items() if byte < 0xF5 and byte not in (0xC0, 0xC1)
]
_BUILDERS = {
    "few-bytes": _few_bytes,
    "few-bytes-whole": lambda: _few_bytes(ignore_merges=True),
    "few-bytes-unknown": lambda: _few_bytes(unk_token="<unk>"),
    "few-bytes-fused": lambda: _few_bytes(unk_token="<unk>", fuse_unk=True),
    "all-bytes-of-utf8": lambda: _few_bytes(_IN_UTF8),
    "mistral": lambda: _metaspace("first", False),
    "metaspace": lambda: _metaspace("always", True),
    "metaspace-never": lambda: _metaspace("never", True),
    "metaspace-normalized": lambda: _metaspace("always", False) | {"normalizer": BLOCKS},
    "llama": _llama,
    "phi": _phi,
    "gemma": _gemma,
    "gemma-3": lambda: _gemma() | {"pre_tokenizer": None},
    "runs": _runs,
    "unknown": lambda: _llama(byte_fallback=False, fuse_unk=False),
    "unknown-fused": lambda: _llama(byte_fallback=False),
    "no-unknown": lambda: _llama(byte_fallback=False, unk_token=None, decoder=None),
    "no-fallback-unknown": lambda: _llama(unk_token=None),
    "some-bytes": lambda: document(
        trained(420), BYTES[:0xA0], normalizer=PREPEND, byte_fallback=True, unk_token="<unk>", fuse_unk=True
    ),
    "byte-merges": _byte_merges,
    "random-merges": _random_merges,
    "whole": lambda: _llama(ignore_merges=True),
    "no-normalizer": lambda: _llama(normalizer=None),
    "space-entries": lambda: _llama(normalizer={"type": "NFKC"}),
    "splits": _split,
    "suffix": lambda: _split(suffix="</w>"),
    "prefix": lambda: _split(prefix="##"),
    "clip": _clip,
}
NAMES = tuple(_BUILDERS)
