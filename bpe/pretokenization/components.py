"""The components of a pre-tokenizer as data: what tokenizer.json names, without its spelling.

Each cuts the pieces that those before it left. `Split` is the general one; the others are shorthands that
`tokenizers` defines. From `ByteLevel` on, pieces are seen byte by byte in the byte alphabet ("é" as "Ã©").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# What becomes of the matches; with `invert`, of what lies between them.
Behavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
# How an expression is read: as tiktoken reads it (fancy-regex), as tokenizers does, or as the text it is.
Dialect = Literal["rust", "oniguruma", "text"]


@dataclass(frozen=True)
class Split:
    """The matches of an expression and what lies between them.

    gaps_are_errors: the format drops text between the matches in silence (tiktoken's does); here that is an error.
    """

    expression: str
    dialect: Dialect
    behavior: Behavior = "Isolated"
    invert: bool = False
    gaps_are_errors: bool = False


@dataclass(frozen=True)
class ByteLevel:
    """A space before a piece that starts with none, GPT-2's expression (use_regex), then the byte alphabet.

    trim_offsets is of no consequence to ids; it is kept to be written back.
    """

    add_prefix_space: bool = True
    use_regex: bool = True
    trim_offsets: bool = True


@dataclass(frozen=True)
class Digits:
    """Numeric characters (category N), each by itself or as runs."""

    individual_digits: bool = False


@dataclass(frozen=True)
class Punctuation:
    """ASCII punctuation and category P."""

    behavior: Behavior = "Isolated"


@dataclass(frozen=True)
class Whitespace:
    r"""The matches of `\w+|[^\w\s]+`; what lies between them is dropped."""


@dataclass(frozen=True)
class WhitespaceSplit:
    """What lies between whitespace; the whitespace is dropped."""


@dataclass(frozen=True)
class BertPreTokenizer:
    """WhitespaceSplit, then each punctuation character by itself."""


@dataclass(frozen=True)
class CharDelimiterSplit:
    """What lies between the delimiters, which are dropped."""

    delimiter: str


@dataclass(frozen=True)
class UnicodeScripts:
    """Runs of one script, as `tokenizers` groups scripts."""


@dataclass(frozen=True)
class FixedLength:
    """So many characters each."""

    length: int


@dataclass(frozen=True)
class Metaspace:
    """Spaces become `replacement`, which starts each piece (split); prepend_scheme: where one is put before a text."""

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
