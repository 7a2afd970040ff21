"""Options of reading and counting text, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bpe.errors import BadArgument, check_choice, check_range, shown
from bpe.normalizers import Normalizer, make_normalizer
from bpe.pretokenizer import Pretokenizer
from bpe.threads import check_threads
from bpe.vocabulary import check_special_texts
from tokenmill.inputs import utf8
from tokenmill.inputs.kinds import INPUT_FORMATS
from tokenmill.inputs.rules import DEFAULT_SEPARATOR, IntakeRules, check_separator


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How text is read, for counting and for training.

    threads: threads for counting and merging, at least 1 (default: one per core).
    invalid: handling of bytes that are not UTF-8: "error" (default) or "replace".
    input_format: "auto" (by file extension; default), or a format as for `convert`.
    text_field: field of the text in records (default: "text").
    on_error: handling of bad records: "fail" (default) or "skip".
    separator: text between documents of text files, which is not counted (default: None; text is then cut at special
        tokens only, or at "<|endoftext|>" where on_error skips documents).
    storage_options: options of the stores of URLs.
    """

    threads: int | None = None
    invalid: utf8.Invalid = "error"
    input_format: str = "auto"
    text_field: str = "text"
    on_error: str = "fail"
    separator: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def reading(self) -> dict[str, Any]:
        """The fields of this class, as arguments for other options."""
        return {name: getattr(self, name) for name in ReadingOptions.__dataclass_fields__}

    @property
    def rules(self) -> IntakeRules:
        """The rules for bad records."""
        return IntakeRules(self.text_field, self.on_error, invalid=self.invalid)

    @property
    def text_separator(self) -> bytes:
        """The separator at which text is split into documents, b"" if it is not split."""
        if self.separator is None and self.on_error == "fail":
            return b""
        return (DEFAULT_SEPARATOR if self.separator is None else self.separator).encode()


@dataclass(frozen=True, slots=True)
class CountingOptions(ReadingOptions):
    """Options of counting.

    special_tokens: texts that the text is split at, which are not counted.
    pattern: pre-tokenization pattern: a name, an expression, or a Pretokenizer.
    normalizer: applied to the text between special tokens.
    block_bytes: bytes of text to read and count at a time (default: 2 MiB per thread, at most 256 MiB).
    """

    special_tokens: Sequence[str] = ()
    pattern: str | Pretokenizer = "gpt2"
    normalizer: Normalizer | Literal["NFC"] | None = None
    block_bytes: int | None = None

    def check(self) -> None:
        """Raise BadArgument for the first option that is out of range."""
        check_special_texts(self.special_tokens, BadArgument)
        check_choice("invalid", self.invalid, ("error", "replace"))
        check_choice("input_format", self.input_format, INPUT_FORMATS)
        if not isinstance(self.text_field, str):
            raise BadArgument(f"text_field: must be a name or a JSON pointer (got {shown(self.text_field)})")
        check_choice("on_error", self.on_error, ("fail", "skip"))
        if self.separator is not None:
            check_separator(self.separator, self.invalid)
        check_threads(self.threads)
        make_normalizer(self.normalizer)
        if self.block_bytes is not None:
            check_range("block_bytes", self.block_bytes, 1)
