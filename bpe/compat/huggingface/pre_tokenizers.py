"""Pre-tokenizers, by the names and arguments of `tokenizers.pre_tokenizers`."""

from __future__ import annotations

from typing import Any, Final

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.compat.huggingface.columns import Offsets
from bpe.compat.huggingface.component import REQUIRED, Component, Field, SequenceOf
from bpe.compat.huggingface.pretokenize import pretokens
from bpe.compat.huggingface.regex import pattern, pattern_from_json, pattern_to_json
from bpe.errors import BadArgument, shown
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER
from bpe.formats.huggingface_components import components_from_json


class PreTokenizer(Component):
    """How a text is cut into pretokens."""

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, Offsets]]:
        """(pretoken, [start, stop) in characters) of a text. BadTokenizer for fields that can't be."""
        components = [component for component, _ in components_from_json(self.to_json())]
        if not components:
            return [(sequence, (0, len(sequence)))]  # an empty one, too
        return [
            (piece.text, (piece.starts[0], piece.stops[-1]))
            for piece in pretokens(AlignedText.original(sequence), components)
        ]


_BEHAVIORS: Final = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
_SCHEMES: Final = ("first", "never", "always")


def behavior(name: str, value: Any) -> str:
    """What becomes of a match."""
    return arguments.one_of(name, value, _BEHAVIORS)


def scheme(name: str, value: Any) -> str:
    """Where a Metaspace puts its sign."""
    return arguments.one_of(name, value, _SCHEMES)


def _to_camel(behavior: str) -> str:
    return "".join(word.capitalize() for word in behavior.split("_"))


def _to_snake(behavior: str) -> str:
    return "".join("_" * (place > 0 and each.isupper()) + each.lower() for place, each in enumerate(behavior))


def _behavior(default: Any) -> Field:
    return Field(default, to_json=_to_camel, from_json=_to_snake, check=behavior)


class ByteLevel(PreTokenizer, add_prefix_space=Field(True), trim_offsets=Field(True), use_regex=Field(True)):
    """GPT-2's expression, then bytes in the byte alphabet."""

    def __init__(
        self, add_prefix_space: bool = True, trim_offsets: bool = True, use_regex: bool = True, **_: Any
    ) -> None:
        super().__init__(add_prefix_space, trim_offsets, use_regex)

    @staticmethod
    def alphabet() -> list[str]:
        """The 256 characters that stand for bytes."""
        return list(BYTE_TO_CHARACTER.values())


class Split(
    PreTokenizer,
    pattern=Field(to_json=pattern_to_json, from_json=pattern_from_json, hidden=True, check=pattern),
    behavior=_behavior(REQUIRED),
    invert=Field(False),
):
    """Cuts at the matches of a text or `Regex`; behavior: removed, isolated, merged_with_previous, …"""


class Digits(PreTokenizer, individual_digits=Field(False)):
    """Digits, each by itself or as runs."""


class Punctuation(PreTokenizer, behavior=_behavior("isolated")):
    """Punctuation."""


class Whitespace(PreTokenizer):
    r"""The matches of `\w+|[^\w\s]+`."""


class WhitespaceSplit(PreTokenizer):
    """What lies between white space."""


class BertPreTokenizer(PreTokenizer):
    """What lies between white space, punctuation apart."""


class UnicodeScripts(PreTokenizer):
    """Runs of one script; texts are not cut by it here."""


class FixedLength(PreTokenizer, length=Field(5)):
    """So many characters each."""


def one_character(name: str, value: Any) -> Any:
    """The value, or BadArgument, a ValueError, if it is no character."""
    if not isinstance(value, str) or len(value) != 1:
        raise BadArgument(f"{name} is {shown(value)}: expected a string of length 1")
    return value


class CharDelimiterSplit(PreTokenizer, delimiter=Field()):
    """What lies between a delimiter."""

    def checked(self, name: str, value: Any) -> Any:
        return one_character(name, value)


class Metaspace(
    PreTokenizer,
    replacement=Field("\u2581"),
    prepend_scheme=Field("always", check=scheme),
    split=Field(True),
):
    """Spaces become a sign that begins each piece."""

    def checked(self, name: str, value: Any) -> Any:
        return one_character(name, value) if name == "replacement" else value


class Sequence(SequenceOf, PreTokenizer):
    """Pre-tokenizers, one after the other."""

    list_key = "pretokenizers"
