"""The components of a pre-tokenizer, as in a tokenizer.json.

Each component splits the pieces of the previous one. `Split` is the general component, and the others are
shorthands of `tokenizers`. After `ByteLevel`, pieces are in the byte alphabet ("é" is "Ã©").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# What happens to the matches; with `invert`, to the gaps between them.
Behavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
# The syntax of an expression: tiktoken's (fancy-regex), tokenizers', or literal text.
Dialect = Literal["rust", "oniguruma", "text"]


@dataclass(frozen=True)
class Split:
    """Split at the matches of an expression.

    gaps_are_errors: text between the matches is an error. tiktoken drops it silently.
    """

    expression: str
    dialect: Dialect
    behavior: Behavior = "Isolated"
    invert: bool = False
    gaps_are_errors: bool = False


@dataclass(frozen=True)
class ByteLevel:
    """Add a missing space before a piece, split by GPT-2's expression (use_regex), then use the byte alphabet.

    trim_offsets: does not affect IDs; kept for saving.
    """

    add_prefix_space: bool = True
    use_regex: bool = True
    trim_offsets: bool = True


@dataclass(frozen=True)
class Digits:
    """Numeric characters (category N), individually or as runs."""

    individual_digits: bool = False


@dataclass(frozen=True)
class Punctuation:
    """ASCII punctuation and category P."""

    behavior: Behavior = "Isolated"


@dataclass(frozen=True)
class Whitespace:
    r"""Keep the matches of `\w+|[^\w\s]+` and drop the gaps."""


@dataclass(frozen=True)
class WhitespaceSplit:
    """Split at whitespace and drop it."""


@dataclass(frozen=True)
class BertPreTokenizer:
    """WhitespaceSplit, then isolate each punctuation character."""


@dataclass(frozen=True)
class CharDelimiterSplit:
    """Split at a delimiter and drop it."""

    delimiter: str


@dataclass(frozen=True)
class UnicodeScripts:
    """Runs of one script, as `tokenizers` groups scripts."""


@dataclass(frozen=True)
class FixedLength:
    """Pieces of `length` characters."""

    length: int


@dataclass(frozen=True)
class Metaspace:
    """Replace spaces by `replacement` and start a piece at each (split). prepend_scheme: where to prepend one."""

    replacement: str = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True


Component: TypeAlias = (
    Split
    | ByteLevel
    | Digits
    | Punctuation
    | Whitespace
    | WhitespaceSplit
    | BertPreTokenizer
    | CharDelimiterSplit
    | UnicodeScripts
    | FixedLength
    | Metaspace
)
