"""`BpeTrainer`, by the arguments of `tokenizers.trainers.BpeTrainer`, and how a tokenizer is trained with it.

Texts are prepared as the tokenizer says and merged by `bpe.train` with the ties of tokenizers. Where entries are bytes
all 256 have one in the end, those that neither the texts nor initial_alphabet have behind all that vocab_size counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bpe.compat.huggingface.added_token import AddedToken, added_token
from bpe.compat.huggingface.arguments import count, warn_unknown
from bpe.compat.huggingface.elsewhere import elsewhere
from bpe.compat.huggingface.inputs import check_text
from bpe.compat.huggingface.models import BPE
from bpe.errors import InvalidText, UnsupportedTokenizer, shown
from bpe.formats.huggingface_envelope import text_rules_of
from bpe.formats.huggingface_normalizer import normalizer_from_json
from bpe.formats.huggingface_pretokenizer import pretokenizer_from_json
from bpe.like import TextRule
from bpe.training import train as train_bpe
from bpe.vocabulary import TextRules

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
            raise TypeError(f"{name} must be a list, got {shown(value)}")
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
        raise TypeError(f"files must be a list of paths, got {shown(files)}")
    for file in files:
        data = Path(file).read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidText(f"{file}: byte {error.start} is no UTF-8") from None
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
        raise UnsupportedTokenizer(f"a BPE is trained with a BpeTrainer, got {shown(trainer)}")
    affixes = {name: getattr(trainer, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")}
    options = tokenizer.model.options() | affixes
    root = {name: tokenizer._json(name) for name in ("normalizer", "pre_tokenizer")}
    # Byte fallback is not part of it: the trainer makes no entries of bytes.
    text_rules = text_rules_of(root | {"model": options | {"byte_fallback": False}})
    rule = TextRule(
        pretokenizer_from_json(root["pre_tokenizer"], TextRules.of_text(text_rules)),
        normalizer_from_json(root["normalizer"]),
        text_rules,
    )
    special = trainer.special_tokens
    made = train_bpe(
        [text.encode() for text in texts],
        trainer.vocab_size,
        [token.content for token in special],
        tie_break="huggingface",
        min_frequency=max(1, trainer.min_frequency),
        like=rule,
        max_token_length=trainer.max_token_length,
        initial_alphabet=trainer.initial_alphabet,
        limit_alphabet=trainer.limit_alphabet,
    )
    model = BPE.of_core(made, frozenset(made.special_tokens), options)
    if options["byte_fallback"]:
        model = BPE(model.vocab, model.merges, **{name: options[name] for name in BPE.fields})
    tokenizer.model = model
    tokenizer.add_special_tokens(special)
