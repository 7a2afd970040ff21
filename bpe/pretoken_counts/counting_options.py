"""How text is counted, checked before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bpe.errors import BadArgument, check_choice, check_range, shown
from bpe.normalizers import Normalizer, make_normalizer
from bpe.pretokenizer import Pretokenizer
from bpe.threads import check_threads
from bpe.vocabulary import check_special_texts
from tokenmill.inputs import utf8
from tokenmill.inputs.kinds import INPUT_FORMATS
from tokenmill.inputs.rules import DEFAULT_SEPARATOR, IntakeRules, check_separator


@dataclass(frozen=True, slots=True)
class CountingOptions:
    """How to count; see `count_pretokens`. stop: asked after each block whether to end with what is counted.

    block_bytes: how much text is read and counted at a time; None: 2 MiB for each thread, 256 MiB at most.
    normalizer: what is done to the text between special tokens first. input_format, text_field, on_error: of files, as
    for `convert`: "auto" goes by their names, a record's text is in this field, bad records "fail" or "skip".
    separator: of the documents of text, which is not counted; None: text is cut at special tokens alone, or, where bad
    documents are left out, at DEFAULT_SEPARATOR. storage_options: of the stores that URLs name.
    """

    special_tokens: Sequence[str] = ()
    pattern: str | Pretokenizer = "gpt2"
    threads: int | None = None
    invalid: utf8.Invalid = "error"
    block_bytes: int | None = None
    stop: Callable[[], bool] | None = None
    normalizer: Normalizer | Literal["NFC"] | None = None
    input_format: str = "auto"
    text_field: str = "text"
    on_error: str = "fail"
    separator: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def rules(self) -> IntakeRules:
        """What becomes of records."""
        return IntakeRules(self.text_field, self.on_error, invalid=self.invalid)

    @property
    def text_separator(self) -> bytes:
        """What text is cut at into documents before it is counted; b"": it is not."""
        if self.separator is None and self.on_error == "fail":
            return b""
        return (DEFAULT_SEPARATOR if self.separator is None else self.separator).encode()

    def check(self) -> None:
        """Raise BadArgument for the first option that is out of its range."""
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
