"""Small tokenizers of every family, each as a file and as the peer library that decides its IDs.

The byte-level vocabulary is trained without a pre-tokenizer. Its merges cross every boundary that a pattern sets, so
that a wrong cut changes the IDs.
"""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import sentencepiece
import sentencepiece_models
import tiktoken
import tokenizers
from family_patterns import FAMILY_PATTERNS
from text_vocabularies import NAMES, WORDS, text_vocabulary
from tokenizers import models, pre_tokenizers, trainers

from bpe.formats.byte_alphabet import to_bytes

SEED = int(os.environ.get("MATRIX_SEED", "0"))
SCALE = int(os.environ.get("MATRIX_SCALE", "1"))  # nightly runs use 20

UNITS = [
    " ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\xa0", "\u2581", "\u2581\u2581", "\u3000",
    "the", " the", "The", "THEN", "there", "ing", "a", "b", "ab", "aab", "x", "it's", "'s", "'LL", "don't",
    "1", "12", "12345", "1000000", "٣٤٥", "½", "1a2", "é", "e\u0301", "\u0301", "a\u0323\u0301", "Straße", "ﬁ",
    "你好世界", "東京都", "の", "，", "한국어", "\u1112\u1161\u11ab", "слово", "Привет", "नमस्ते", "العربية",
    "🙂", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "\u200b", "\u2028", "\x85", "\ufffd", "€", "\U0010ffff", "ǅ", "\x00",
    ".", "...", "!?", "ING É", "--", "/", "_", "=", "(", "\\u00e9", "<0x0A>", "<0xE4>", "</w>", "##", "Ġ", "<", "|>",
]  # fmt: skip
ENDS = ["<s>", "</s>"]


def text(rng: random.Random, tokens: Sequence[str], units: int) -> str:
    """Return about `units` units, some repeated, with added tokens glued to them."""
    parts = []
    for _ in range(units):
        draw = rng.random()
        unit = rng.choice(tokens if tokens and draw < 0.12 else WORDS if draw > 0.8 else UNITS)
        parts.append(unit * (rng.choice([2, 3, 7, 20, 70]) if rng.random() < 0.1 else 1))
    return "".join(parts)


@dataclass(frozen=True)
class Family:
    """file: its name. root: the tokenizer.json, or None. peer: the object of the other library, with its two
    functions. tokens: the added tokens in the texts. load: further arguments of Tokenizer.load. long_units:
    approximate number of units in the long text.
    """

    file: str
    data: bytes
    root: dict[str, Any] | None
    peer: Any
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    tokens: tuple[str, ...] = tuple(ENDS)
    load: dict[str, Any] = field(default_factory=dict)
    long_units: int = 24_000

    @cached_property
    def texts(self) -> list[str]:
        rng = random.Random(f"{SEED} texts")
        edges = ["", " ", "  ", "\n", "\x00", "\x00\x00", "\u2581", " \u2581 ", "a", *self.tokens, "ab" * 40]
        return [*edges, *(text(rng, self.tokens, rng.randint(1, 30)) for _ in range(40 * SCALE))]

    @cached_property
    def long_text(self) -> str:
        """Return a document above the 256 KiB that one thread encodes, with pretokens above 4 KiB."""
        rng = random.Random(f"{SEED} long")
        long = [("ab", 3000), (" ", 3000), ("你好", 2000), ("\n", 2000), ("the", 2000), ("=", 5000)]
        runs = [unit * count for unit, count in [*long, ("e\u0301", 2000)]]
        runs += ["".join(rng.choices(letters, k=3000)) for letters in ("the", "é中t", "𝄞€", "слово文字")]
        parts = [text(rng, self.tokens, 40) for _ in range(self.long_units // 40 * SCALE)]
        return "".join([*parts[:20], *rng.sample(runs, len(runs)), *parts[20:]])

    @cached_property
    def ids(self) -> list[list[int]]:
        """Return the peer's IDs of each text."""
        return [self.encode(each) for each in self.texts]

    @cached_property
    def long_ids(self) -> list[int]:
        return self.encode(self.long_text)


def of_json(root: dict[str, Any]) -> Family:
    data = json.dumps(root).encode()
    peer = tokenizers.Tokenizer.from_buffer(data)
    return Family(
        "tokenizer.json",
        data,
        root,
        peer,
        lambda text: peer.encode(text, add_special_tokens=False).ids,
        lambda ids: peer.decode(ids, skip_special_tokens=False),
        tuple(token["content"] for token in root["added_tokens"]),
    )


def added(content: str, **flags: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"content": content} | plain | flags


FLAGS = [
    *(added("<mask>", lstrip=True), added("<sep>", rstrip=True), added("<both>", lstrip=True, rstrip=True)),
    *(added("there", single_word=True, special=False), added("ing é", normalized=True, special=False)),
    *(added("<|x|>", normalized=True), added("|>", special=False), added("\n\n", special=False)),
    *(added("b<s", special=False), added("of", normalized=True, single_word=True, lstrip=True)),
]
OVERLAPPING = [added("<th", special=False), added("<the>", normalized=True), added("e>", normalized=True)]
SPACES = [added(" " * count, normalized=True, special=False) for count in range(24, 1, -1)]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_REGEX = BYTE_LEVEL | {"use_regex": False}
PREFIXED = BYTE_LEVEL | {"add_prefix_space": True}
DIGITS = {"type": "Digits", "individual_digits": True}


def split(expression: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


def sequence(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(items)}


def by(*expressions: str) -> dict[str, Any]:
    return sequence(*map(split, expressions), NO_REGEX)


def metaspace(scheme: str, is_split: bool = True) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": is_split}


@cache
def _model(prefix: str = "") -> str:
    """Train a model and return it as JSON."""
    rng = random.Random(1)
    left_out = str.maketrans(dict.fromkeys("\x00Ġ<", ""))
    corpus = [text(rng, (), 8).translate(left_out) for _ in range(1500)]
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=bool(prefix))
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        show_progress=False,
        max_token_length=14,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        **({"continuing_subword_prefix": prefix} if prefix else {}),
    )
    made.train_from_iterator(corpus, trainer)
    return json.dumps(json.loads(made.to_str())["model"])


def byte_level(
    pre_tokenizer: dict[str, Any],
    normalizer: dict[str, Any] | None = None,
    tokens: Sequence[dict[str, Any]] = (),
    prefix: str = "",
    post_processor: Callable[[dict[str, int]], dict[str, Any]] | None = None,
    **model: Any,
) -> Family:
    trained = json.loads(_model(prefix)) | model
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        for entry in (letter, prefix + letter):
            trained["vocab"].setdefault(entry, len(trained["vocab"]))
    ids = dict(trained["vocab"])
    tokens = [*map(added, ENDS), *tokens]
    for token in tokens:
        ids.setdefault(token["content"], len(ids))
    return of_json(
        {
            "version": "1.0",
            "added_tokens": [{"id": ids[token["content"]]} | token for token in tokens],
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": (post_processor or _template)(ids),
            "decoder": BYTE_LEVEL,
            "model": trained,
        }
    )


def _template(ids: dict[str, int]) -> dict[str, Any]:
    """Add <s> before a text and </s> after it."""
    first, last = ({"SpecialToken": {"id": end, "type_id": 0}} for end in ENDS)
    return {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}, last],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {end: {"id": end, "ids": [ids[end]], "tokens": [end]} for end in ENDS},
    }


def _roberta(ids: dict[str, int]) -> dict[str, Any]:
    first, last = ([end, ids[end]] for end in ENDS)
    flags = {"trim_offsets": True, "add_prefix_space": False}
    return {"type": "RobertaProcessing", "cls": first, "sep": last, **flags}


def _of_tiktoken(
    file: str, data: bytes, special: dict[str, int], ranks: dict[bytes, int], **load: Any
) -> Family:
    pattern = load.get("pattern", FAMILY_PATTERNS["tekken"])
    peer = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    encode = partial(peer.encode, allowed_special="all")
    return Family(file, data, None, peer, encode, peer.decode, tuple(special), load)


def _ranks(first: int = 0) -> dict[bytes, int]:
    """Return the bytes and rank of each entry."""
    vocab = json.loads(_model())["vocab"]
    return {to_bytes(entry): rank for rank, entry in enumerate(sorted(vocab, key=vocab.get), first)}


def rank_file() -> Family:
    """tiktoken's format, which takes special tokens and the pattern as arguments."""
    ranks = _ranks()
    special = {token: len(ranks) + 5 + place for place, token in enumerate(ENDS)}
    data = b"".join(base64.b64encode(entry) + b" %d\n" % rank for entry, rank in ranks.items())
    pattern = FAMILY_PATTERNS["cl100k of tiktoken"]
    return _of_tiktoken("m.tiktoken", data, special, ranks, pattern=pattern, special_tokens=special)


def tekken() -> Family:
    """Mistral's format, in which special tokens come first."""
    special = {token: id_ for id_, token in enumerate(["<unk>", *ENDS, "[INST]"])}
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(entry).decode(), "token_str": None}
        for entry, rank in _ranks().items()
    ]
    config = {
        "pattern": FAMILY_PATTERNS["tekken"],
        "num_vocab_tokens": len(vocab),
        "default_vocab_size": len(vocab) + len(special),
        "default_num_special_tokens": len(special),
        "version": "v11",
    }
    tokens = [{"rank": id_, "token_str": token, "is_control": True} for token, id_ in special.items()]
    data = json.dumps({"config": config, "vocab": vocab, "special_tokens": tokens}).encode()
    return _of_tiktoken("tekken.json", data, special, _ranks(len(special)))


def sentencepiece_model(name: str) -> Family:
    """sentencepiece never finds control pieces in text, so the texts contain only the other symbols."""
    settings = sentencepiece_models.SETTINGS[name]
    data = sentencepiece_models.train(**settings)
    peer = sentencepiece.SentencePieceProcessor(model_proto=data)
    symbols: Collection[str] = settings.get("user_defined_symbols", ())  # type: ignore[assignment]
    return Family("m.model", data, None, peer, peer.encode, peer.decode, tuple(symbols))


_P = FAMILY_PATTERNS
LOWER = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
NFC = {"type": "NFC"}
NMT = {"type": "Sequence", "normalizers": [{"type": "Nmt"}, NFC]}
PUNCTUATION = {"type": "Punctuation", "behavior": "Contiguous"}
THREE_DIGITS = sequence(
    PUNCTUATION, BYTE_LEVEL, DIGITS | {"individual_digits": False}, split("[0-9][0-9][0-9]")
)

FAMILIES: dict[str, Callable[[], Family]] = {
    "GPT-2": partial(byte_level, BYTE_LEVEL, post_processor=lambda ids: BYTE_LEVEL),
    "RoBERTa": partial(byte_level, BYTE_LEVEL, None, FLAGS, post_processor=_roberta),
    "space first": partial(byte_level, PREFIXED, NMT, FLAGS),
    "words": partial(byte_level, sequence({"type": "WhitespaceSplit"}, PREFIXED)),
    "Pythia": partial(byte_level, BYTE_LEVEL, NFC, SPACES),
    "Llama 3": partial(byte_level, by(_P["cl100k"]), ignore_merges=True),
    "o200k": partial(byte_level, by(_P["o200k"])),
    "Qwen 2": partial(byte_level, by(_P["qwen 2"]), NFC),
    "Qwen 3.5": partial(byte_level, by(_P["qwen 3.5"]), NFC, FLAGS),
    "DeepSeek": partial(byte_level, by(*(_P[f"deepseek v3, {n}"] for n in (1, 2, 3))), None, OVERLAPPING),
    "Tekken": partial(byte_level, by(_P["tekken"])),
    "Kimi": partial(byte_level, by(_P["kimi k2"])),
    "EXAONE": partial(byte_level, by(_P["exaone 4"])),
    "StarCoder": partial(byte_level, sequence(DIGITS, BYTE_LEVEL)),
    "Falcon": partial(byte_level, THREE_DIGITS),
    "nanochat": partial(byte_level, by(_P["nanochat"])),
    "Aya": partial(byte_level, by(_P["aya"], _P["qwen 2"])),
    "two ways": partial(byte_level, by(r"\d{1,3}(?=(?:\d{3})*\b)|\d|\D+")),
    "by regex": lambda: replace(byte_level(by(r"[ab]*a[ab]{12}|(?m:.)")), long_units=2000),
    "NFKC": partial(byte_level, BYTE_LEVEL, {"type": "NFKC"}),
    "lower case": partial(byte_level, BYTE_LEVEL, LOWER, FLAGS),
    "Metaspace of bytes": partial(byte_level, sequence(metaspace("always"), NO_REGEX), None, FLAGS),
    "Metaspace of inputs": partial(byte_level, sequence(metaspace("first", False), BYTE_LEVEL)),
    "Metaspace of pieces": partial(byte_level, sequence(PUNCTUATION, metaspace("first"), PREFIXED)),
    "prefix of bytes": partial(byte_level, BYTE_LEVEL, prefix="##"),
    **{f"text: {name}": lambda name=name: of_json(json.loads(text_vocabulary(name))) for name in NAMES},
    "rank file": rank_file,
    "tekken.json": tekken,
    **{
        f"SentencePiece: {name}": partial(sentencepiece_model, name)
        for name in sentencepiece_models.SETTINGS
        if name not in ("no prefix", "nfkc", "nmt_nfkc_cf")
    },
}  # fmt: skip
