"""Byte-level BPE: train a tokenizer on raw text, encode and decode with it.

    tok = bpe.train(["corpus.txt"], vocab_size=32_000, special_tokens=["<|endoftext|>"])
    tok.save("tokenizer.json")
    bpe.Tokenizer.load("tokenizer.json").encode("Hello")

The names below are imported when first used, so that `tokenmill train --help` waits neither for numpy nor for the core.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpe.added_tokens import AddedToken
    from bpe.errors import (
        BadArgument,
        BadCounts,
        BadTokenizer,
        BpeError,
        EnvironmentFailure,
        InvalidText,
        MissingInput,
        NotEnoughMemory,
        Refused,
        UncoveredText,
        UnsupportedTokenizer,
    )
    from bpe.patterns import PATTERNS
    from bpe.pretoken_counts.counting import count_pretokens
    from bpe.pretoken_counts.counts import CountSet, PretokenCounts
    from bpe.pretoken_counts.on_engine import count_files
    from bpe.ragged import Ragged
    from bpe.tokenizer import Tokenizer
    from bpe.training import Training, train, train_on, train_sizes
    from bpe.training_options import TrainingOptions

_NAMES_IN = {
    "added_tokens": "AddedToken",
    "errors": "BadArgument BadCounts BadTokenizer BpeError EnvironmentFailure InvalidText MissingInput NotEnoughMemory "
    "Refused UncoveredText UnsupportedTokenizer",
    "patterns": "PATTERNS",
    "pretoken_counts.counting": "count_pretokens",
    "pretoken_counts.counts": "CountSet PretokenCounts",
    "pretoken_counts.on_engine": "count_files",
    "ragged": "Ragged",
    "tokenizer": "Tokenizer",
    "training": "Training train train_on train_sizes",
    "training_options": "TrainingOptions",
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names.split()}

__all__ = [
    "PATTERNS",
    "AddedToken",
    "BadArgument",
    "BadCounts",
    "BadTokenizer",
    "BpeError",
    "CountSet",
    "EnvironmentFailure",
    "InvalidText",
    "MissingInput",
    "NotEnoughMemory",
    "PretokenCounts",
    "Ragged",
    "Refused",
    "Tokenizer",
    "Training",
    "TrainingOptions",
    "UncoveredText",
    "UnsupportedTokenizer",
    "count_files",
    "count_pretokens",
    "train",
    "train_on",
    "train_sizes",
]


if not TYPE_CHECKING:  # type checkers see the imports above and report other names

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"bpe.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
