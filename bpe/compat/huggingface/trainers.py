"""`BpeTrainer`, with the arguments of `tokenizers.trainers.BpeTrainer`, and training with it.

The tokenizer's normalizer and pre-tokenizer cut the texts, the distinct pretokens are counted, and `bpe_training`
learns the entries and merges from the counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from bpe.added_tokens import AddedToken as CoreToken
from bpe.compat.huggingface.added_tokens import AddedToken, added_token
from bpe.compat.huggingface.alignment import pretokens
from bpe.compat.huggingface.arguments import count, input_text, unsupported, warn_unknown
from bpe.compat.huggingface.bpe_training import learn
from bpe.compat.huggingface.engine import Sections
from bpe.compat.huggingface.models import BPE
from bpe.errors import InvalidText, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.huggingface_components import (
    components_from_json,
    normalizer_from_json,
    pretokenizer_from_json,
)
from bpe.formats.huggingface_envelope import text_rules_of
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts

Json = dict[str, Any] | None

_DEFAULTS: Final = {
    "min_frequency": 0,
    "vocab_size": 30000,
    "show_progress": True,
    "progress_format": "Indicatif",
    "special_tokens": (),
    "limit_alphabet": None,
    "initial_alphabet": (),
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "max_token_length": None,
}


_COUNTS: Final = {"vocab_size", "min_frequency", "limit_alphabet", "max_token_length"}
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Trainer:
    """What a tokenizer is trained with. Only `BpeTrainer` is one here."""


class BpeTrainer(Trainer):
    """The options of a training; special_tokens: texts or AddedTokens."""

    vocab_size: int
    min_frequency: int
    special_tokens: list[AddedToken]
    limit_alphabet: int | None
    initial_alphabet: list[str]
    continuing_subword_prefix: str | None
    end_of_word_suffix: str | None
    max_token_length: int | None

    def __init__(self, **options: Any) -> None:
        warn_unknown(options.keys() - _DEFAULTS)
        for name, default in _DEFAULTS.items():
            setattr(self, name, options.get(name, default))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("special_tokens", "initial_alphabet") and isinstance(value, str):
            raise TypeError(f"{name}: must be a list (got {shown(value)})")
        if name in _COUNTS and not (value is None and _DEFAULTS[name] is None):
            value = count(name, value)
        if name == "special_tokens":
            value = [added_token(token, special=True) for token in value]
        elif name == "initial_alphabet":
            value = [text[0] for text in value if text]
        super().__setattr__(name, value)

    def __getstate__(self) -> bytes:
        values = {name: getattr(self, name) for name in _DEFAULTS}
        values["special_tokens"] = [token.to_json() for token in values["special_tokens"]]
        return json.dumps({"BpeTrainer": values | {"words": {}}}, separators=(",", ":")).encode()

    def __setstate__(self, state: bytes) -> None:
        values = json.loads(state)["BpeTrainer"]
        values["special_tokens"] = [
            added_token(token["content"], special=True) for token in values["special_tokens"]
        ]
        del values["words"]
        self.__init__(**values)  # type: ignore[misc]


UnigramTrainer = unsupported("UnigramTrainer")
WordPieceTrainer = unsupported("WordPieceTrainer")
WordLevelTrainer = unsupported("WordLevelTrainer")


def lines_of(files: Iterable[str]) -> Iterator[str]:
    """The lines of the files, each a text, with their ends, newlines alone. InvalidText for what is no UTF-8."""
    if isinstance(files, str):
        raise TypeError(f"files: must be a list of paths (got {shown(files)})")
    for file in files:
        data = Path(file).read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidText(f"{file}: byte {error.start}: not valid UTF-8") from None
        yield from _LINE.findall(text)


def texts_of(items: Iterable[Any]) -> Iterator[str]:
    """The texts of an iterable of texts, or of iterables of texts."""
    for item in items:
        for text in (item,) if isinstance(item, str) else item:
            yield input_text(text)


def train(
    model: BPE,
    added: tuple[CoreToken, ...],
    ignored: frozenset[str],
    normalizer: Json,
    pre_tokenizer: Json,
    texts: Iterable[str],
    trainer: BpeTrainer | None,
) -> BPE:
    """Return a model that is trained on the texts.

    model: its options are kept. added: added tokens. ignored: texts of those that are ordinary text.
    """
    trainer = BpeTrainer() if trainer is None else trainer
    if not isinstance(trainer, BpeTrainer):
        raise UnsupportedTokenizer(
            f"trainer: must be a {BpeTrainer.__module__}.BpeTrainer (got one of {type(trainer).__module__})"
        )
    affixes = {name: getattr(trainer, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")}
    of_text = (
        text_rules_of({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": {}}) is not None
    )
    sections = Sections(added, ignored, normalizer_from_json(normalizer))
    counts, of_text = _count(sections, pre_tokenizer, of_text, texts)
    return BPE.learned(*learn(counts, of_text, trainer), model.options() | affixes)


def _count(
    sections: Sections, pre_tokenizer: Json, of_text: bool, texts: Iterable[str]
) -> tuple[PretokenCounts, bool]:
    """Count the pretokens; return the counts and whether pretokens are text, else bytes.

    Added tokens are pretokens. Texts that contain one are cut in Python, at about 100 kB per second.
    """
    components = [component for component, _ in components_from_json(pre_tokenizer)]
    in_core: list[bytes] = []
    found: Counter[str] = Counter()
    for text in texts:
        if not sections.has_added_token(text):
            in_core.append(text.encode())
            continue
        for section, id_ in sections.of(text):
            pieces = [section] if id_ is not None else pretokens(section, components)
            found.update(piece.text for piece in pieces)
    pretokenizer = pretokenizer_from_json(pre_tokenizer, of_text)
    counts = PretokenCounts.from_mapping({})
    if in_core:
        counts = count_pretokens(in_core, (), pretokenizer, normalizer=sections.normalizer)
    if not found:
        return counts, of_text
    for pretoken, occurrences in counts.as_dict().items():
        found[pretoken.decode() if of_text else to_characters(pretoken)] += occurrences
    as_bytes = {text.encode(): occurrences for text, occurrences in found.items()}
    return PretokenCounts.from_mapping(as_bytes), True
