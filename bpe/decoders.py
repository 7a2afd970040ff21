"""The decoders of a tokenizer.json, which turn the texts of entries into decoded text.

A `Decoder` is a sequence of components with the names and the results of Hugging Face tokenizers. Each maps a list of
texts, at first one per ID, to another list. The last list is joined. The core runs the usual sequence for entries with
byte fallback (`core_rule`). All others run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from bpe.buffers import unknown_id
from bpe.formats.byte_alphabet import to_bytes, to_characters
from bpe.normalizers import Replace as NormalizerReplace
from tokenmill.stores.system import cached_property

_REPLACEMENT: Final = "\ufffd"


@dataclass(frozen=True)
class ByteLevel:
    """Decode the byte alphabet. A text with other characters is kept."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def apply(self, texts: list[str]) -> list[str]:
        parts = []
        for text in texts:
            entry = to_bytes(text)
            parts.append(text.encode() if entry is None else entry)
        return [b"".join(parts).decode(errors="replace")]


@dataclass(frozen=True)
class ByteFallback:
    """Decode adjacent byte entries, such as <0x0A>, as UTF-8, or each as U+FFFD if they are not valid together."""

    def apply(self, texts: list[str]) -> list[str]:
        out: list[str] = []
        held = bytearray()

        def release() -> None:
            try:
                out.append(held.decode())
            except UnicodeDecodeError:
                out.extend(_REPLACEMENT * len(held))
            held.clear()

        for text in texts:
            byte = byte_of(text)
            if byte is not None:
                held.append(byte)
                continue
            if held:
                release()
            out.append(text)
        if held:
            release()
        return out


def byte_of(text: str) -> int | None:
    """Return the byte of a byte entry, as `tokenizers` reads it, or None: "<0x0a>" and "<0x0A>" -> 10."""
    if len(text) != 6 or not text.startswith("<0x") or text[5] != ">" or not text.isascii():
        return None
    digits = text[3:5].removeprefix("+")
    return int(digits, 16) if all(digit in "0123456789abcdefABCDEF" for digit in digits) else None


@dataclass(frozen=True)
class Fuse:
    """Join all texts."""

    def apply(self, texts: list[str]) -> list[str]:
        return ["".join(texts)]


@dataclass(frozen=True)
class Strip:
    """Remove up to `start` copies of a character from the start of each text and up to `stop` from its end."""

    content: str
    start: int = 0
    stop: int = 0

    def apply(self, texts: list[str]) -> list[str]:
        return [self._stripped(text) for text in texts]

    def _stripped(self, text: str) -> str:
        start = len(text) - len(text.lstrip(self.content))
        text = text[min(start, self.start) :]
        stop = len(text) - len(text.rstrip(self.content))
        return text[: len(text) - min(stop, self.stop)]


@dataclass(frozen=True)
class Replace:
    """Replace each occurrence of a text, or each match of an expression, in each text."""

    pattern: str
    content: str
    is_expression: bool = False
    _replace: NormalizerReplace = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_replace", NormalizerReplace(self.pattern, self.content, self.is_expression)
        )

    def apply(self, texts: list[str]) -> list[str]:
        if self.pattern and not self.is_expression:
            return [text.replace(self.pattern, self.content) for text in texts]
        return [self._replace.apply(text) for text in texts]


@dataclass(frozen=True)
class Metaspace:
    """Turn the replacement into a space. Remove it from the first text unless prepend_scheme is "never"."""

    replacement: str = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True

    def apply(self, texts: list[str]) -> list[str]:
        first = " " if self.prepend_scheme == "never" else ""
        return [text.replace(self.replacement, " " if number else first) for number, text in enumerate(texts)]


@dataclass(frozen=True)
class BPEDecoder:
    """Turn the suffix into a space. Remove it from the last text."""

    suffix: str = "</w>"

    def apply(self, texts: list[str]) -> list[str]:
        return [
            text.replace(self.suffix, " " if number < len(texts) else "")
            for number, text in enumerate(texts, 1)
        ]


Component: TypeAlias = ByteLevel | ByteFallback | Fuse | Strip | Replace | Metaspace | BPEDecoder


class CoreRule(NamedTuple):
    """The decoding that the core supports: replacements in each entry, then ByteFallback, then removal of up to
    `strip_count` copies of `stripped` from the start of the joined text."""

    replaced: list[tuple[bytes, bytes]]
    stripped: bytes
    strip_count: int


@dataclass(frozen=True)
class Decoder:
    """A sequence of components. Without components, texts are joined by spaces."""

    components: tuple[Component, ...] = ()

    def apply(self, texts: Sequence[str]) -> str:
        """Return the decoded text of the entries."""
        if not self.components:
            return " ".join(texts)
        made = list(texts)
        for component in self.components if made else ():
            made = component.apply(made)
        return "".join(made)

    def decode(
        self,
        ids: Iterable[Any],
        added: Mapping[int, str],
        entry_of: Callable[[int], bytes | None],
        is_text: bool,
    ) -> str:
        """Return the text of IDs. Raise BadArgument for an ID without an entry.

        added: ID -> text of the added tokens. entry_of: ID -> bytes. is_text: whether entries are text, else bytes.
        """
        texts = []
        for index, id_ in enumerate(np.asarray(ids).tolist()):
            entry = entry_of(id_) if isinstance(id_, int) else None
            if entry is None:
                raise unknown_id(f"ids[{index}]", id_)
            spelled = entry.decode(errors="replace") if is_text else to_characters(entry)
            texts.append(added.get(id_, spelled))
        return self.apply(texts)

    @cached_property
    def core_rule(self) -> CoreRule | None:
        """The equivalent rule of the core, or None."""
        components = list(self.components)
        replaced = []
        while components and isinstance(first := components[0], Replace) and not first.is_expression:
            if not first.pattern:
                return None
            replaced.append((first.pattern.encode(), first.content.encode()))
            del components[0]
        match components:
            case [ByteFallback(), Fuse()]:
                return CoreRule(replaced, b" ", 0)
            case [ByteFallback(), Fuse(), Strip(content, start, 0)]:
                return CoreRule(replaced, content.encode(), start)
        return None

    @property
    def is_additive(self) -> bool:
        """Whether decode_bytes(a + b) == decode_bytes(a) + decode_bytes(b) for all lists of IDs.

        Strip, Metaspace and BPEDecoder change only the first or the last entry, so they are not additive.
        """
        return self.core_rule is not None and self.core_rule.strip_count == 0
