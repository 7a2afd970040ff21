"""`BpeTrainer`, with the arguments of `tokenizers.trainers.BpeTrainer`, and training with it.

The tokenizer's normalizer and pre-tokenizer cut the texts, the distinct pretokens are counted, and `bpe_training`
learns the entries and merges from the counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bpe.compat.huggingface.added_token import AddedToken, added_token
from bpe.compat.huggingface.arguments import count, warn_unknown
from bpe.compat.huggingface.bpe_training import learn
from bpe.compat.huggingface.elsewhere import elsewhere
from bpe.compat.huggingface.engine import Preparation
from bpe.compat.huggingface.ignored_tokens import with_ignored
from bpe.compat.huggingface.inputs import check_text
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.state import added_tokens
from bpe.errors import BadTokenizer, InvalidText, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.huggingface_components import (
    components_from_json,
    normalizer_from_json,
    pretokenizer_from_json,
)
from bpe.formats.huggingface_envelope import text_rules_of
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts

if TYPE_CHECKING:
    from bpe.compat.huggingface.settings import Settings

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


UnigramTrainer = elsewhere("UnigramTrainer")
WordPieceTrainer = elsewhere("WordPieceTrainer")
WordLevelTrainer = elsewhere("WordLevelTrainer")


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
            yield check_text(text)


def train(tokenizer: Settings, texts: Iterable[str], trainer: BpeTrainer | None) -> None:
    """Give the tokenizer a model that is trained on the texts."""
    trainer = BpeTrainer() if trainer is None else trainer
    if not isinstance(trainer, BpeTrainer):
        raise UnsupportedTokenizer(
            f"trainer: must be a {BpeTrainer.__module__}.BpeTrainer (got one of {type(trainer).__module__})"
        )
    affixes = {name: getattr(trainer, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")}
    vocab, merges = learn(*_count(tokenizer, texts), trainer)
    tokenizer.model = BPE.learned(vocab, merges, tokenizer.model.options() | affixes)
    tokenizer.add_special_tokens(trainer.special_tokens)


def _count(tokenizer: Settings, texts: Iterable[str]) -> tuple[PretokenCounts, bool]:
    """Count the pretokens of the texts; return the counts and whether pretokens are text, else bytes.

    Added tokens that the tokenizer already has are pretokens. Texts that contain one, and all texts if the core does
    not execute the pre-tokenizer, are cut in Python, at about 100 kB per second.
    """
    normalizer, pre_tokenizer = tokenizer._json("normalizer"), tokenizer._json("pre_tokenizer")
    change = normalizer_from_json(normalizer)
    components = tuple(component for component, _ in components_from_json(pre_tokenizer))
    preparation = Preparation(
        *with_ignored(added_tokens(tokenizer._added.tokens), tokenizer.ignored_tokens, change),
        change,
        components,
    )
    pretokenizer = None
    of_text = True
    with suppress(BadTokenizer):  # the core does not execute it
        of_text = (
            text_rules_of({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": {}}) is not None
        )
        pretokenizer = pretokenizer_from_json(pre_tokenizer, of_text)
    in_core: list[bytes] = []
    found: Counter[str] = Counter()
    for text in texts:
        if pretokenizer is None or preparation.holds_added_token(text):
            found.update(preparation.pretokens(text))
        else:
            in_core.append(text.encode())
    counts = PretokenCounts.from_mapping({})
    if pretokenizer is not None and in_core:
        counts = count_pretokens(in_core, (), pretokenizer, normalizer=change)
    if not found:
        return counts, of_text
    for pretoken, occurrences in counts.as_dict().items():
        found[pretoken.decode() if of_text else to_characters(pretoken)] += occurrences
    return PretokenCounts.from_mapping(
        {text.encode(): occurrences for text, occurrences in found.items()}
    ), True
