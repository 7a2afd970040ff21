"""How to train: every option of a training with its default and its range, whoever asks.

`train`, `train_sizes`, `train_on` and the command line take the same options; they check themselves before anything is
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import BadArgument, check_whole, shown
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.threads import check_threads
from bpe.vocabulary import MAX_ID, check_special_texts

if TYPE_CHECKING:
    from bpe.like import Like
    from bpe.pretoken_counts.count_set import MinCount
    from bpe.pretokenizer import Pretokenizer
    from bpe.tokenizer import Tokenizer
    from tokenmill.inputs.utf8 import Invalid

TieBreak = Literal["lexicographic", "huggingface"]
TIE_BREAKS: Final = ("lexicographic", "huggingface")
LIKE_OR_PATTERN: Final = "like and pattern exclude each other: like says the pattern, and the normalizer too"


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training is asked for beside its inputs and its size.

    special_tokens: cut the text and take no part in merging; None: those of the counts files, or none. With
    continue_from those that are added to the tokenizer's.
    pattern: a name or an expression; None: that of the counts files, or gpt2.
    tie_break: which of equally frequent pairs is merged first; see `bpe.training`.
    min_frequency: pairs that occur less often are not merged.
    threads: to count and to merge with; None: one a core.
    invalid: what to do with bytes that are not UTF-8, "error" or "replace".
    max_token_bytes: longer entries are not made; None or 0: no limit.
    counts: counts files, added to what the inputs have.
    max_memory_bytes: None: four fifths of what is free. Counts that outgrow it are spilled to temp_dir.
    min_pretoken_count: rarer pretokens are left out; "fit": as few as must be.
    sample_bytes: so much of the files, evenly, by the seed; None: all.
    like: in place of a pattern, a preset of `bpe.presets` by name, or the path of a tokenizer.json: text is normalized
    and pretokenized as there.
    continue_from: a tokenizer or its path; all its entries and merges are kept and more are learned, and text is
    prepared as there.
    max_token_length: as in BpeTrainer, entries of so many bytes, of text characters, or more are not made, but for
    those of two; prefix and suffix are not counted. None: max_token_bytes says it.
    initial_alphabet, limit_alphabet: as in BpeTrainer, bytes have entries that are initial (characters of the byte
    alphabet, of a text the first) or in the text, at most limit_alphabet of them, the commonest; others are left out of
    the text. Here these others have entries behind all that vocab_size counts, so that no text is lost. None: all bytes
    are initial, or with limit_alphabet, as in BpeTrainer, none; no limit.
    input_format, text_field, on_error: of files, as for `convert`: "auto" goes by their names, a record has its text in
    this field, bad records "fail" or are left out ("skip").
    separator: of the documents of text, as for `convert`; None: text is cut at special tokens alone, or, where bad
    documents are left out, at `<|endoftext|>`.
    storage_options: of the stores that URLs among the inputs and counts name.
    """

    special_tokens: Sequence[str] | None = None
    pattern: str | Pretokenizer | None = None
    tie_break: TieBreak = "lexicographic"
    min_frequency: int = 1
    threads: int | None = None
    invalid: Invalid = "error"
    max_token_bytes: int | None = MAX_TOKEN_BYTES
    counts: Iterable[str | os.PathLike[str]] = ()
    max_memory_bytes: int | None = None
    min_pretoken_count: MinCount = 1
    sample_bytes: int | None = None
    seed: int = 0
    temp_dir: str | Path | None = None
    like: Like | None = None
    continue_from: str | os.PathLike[str] | Tokenizer | None = None
    max_token_length: int | None = None
    initial_alphabet: Iterable[str] | None = None
    limit_alphabet: int | None = None
    input_format: str = "auto"
    text_field: str = "text"
    on_error: str = "fail"
    separator: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("special_tokens", "counts", "initial_alphabet"):
            value = getattr(self, name)
            if isinstance(value, Iterator):  # it is read more than once
                object.__setattr__(self, name, tuple(value))
        if isinstance(self.counts, (str, os.PathLike)):
            object.__setattr__(self, "counts", (self.counts,))

    @property
    def longest_entry(self) -> int:
        """The most bytes of a new entry, with max_token_length the most letters; 0: no limit."""
        if self.max_token_length is None:
            return self.max_token_bytes or 0
        return max(2, self.max_token_length - 1)  # BpeTrainer looks at pairs with a new entry only

    @property
    def has_alphabet(self) -> bool:
        """Whether the alphabet may be less than all bytes."""
        return self.initial_alphabet is not None or self.limit_alphabet is not None

    def check(self, vocab_sizes: Sequence[int]) -> None:
        """Nothing, or BadArgument for the first option, or size to train for, that is out of its range.

        What only counting knows of (invalid, counts, memory, sample) is checked there.
        """
        special_tokens = () if self.special_tokens is None else self.special_tokens
        _check_special_tokens(special_tokens)
        if not vocab_sizes:
            raise BadArgument("vocab_sizes must have at least one size")
        for place, vocab_size in enumerate(vocab_sizes):
            check_whole("vocab_size", vocab_size)
            if vocab_size in vocab_sizes[:place]:
                raise BadArgument(f"vocab_size {vocab_size} is given twice")
        if self.tie_break not in TIE_BREAKS:
            raise BadArgument(
                f"tie_break must be one of {', '.join(TIE_BREAKS)}, got {shown(self.tie_break)}"
            )
        for name in ("min_frequency", "max_token_bytes", "max_token_length", "limit_alphabet"):
            value = getattr(self, name)
            if value is None and name != "min_frequency":
                continue
            check_whole(name, value)
            if value < 0:
                raise BadArgument(f"{name} must be at least 0, got {value}")
            if value >= 2**63:  # the core counts in 64 bits
                raise BadArgument(f"{name} must be below 2^63, got {value}")
        if self.max_token_length is not None and self.max_token_bytes != MAX_TOKEN_BYTES:
            raise BadArgument(
                "max_token_length and max_token_bytes are two ways to say one limit; give one of them"
            )
        self._check_start()
        if self.max_token_bytes == 1:
            raise BadArgument(
                "max_token_bytes must be at least 2, as merges make entries of two bytes, or 0: no limit"
            )
        check_threads(self.threads)

    def _check_start(self) -> None:
        """Nothing, or BadArgument for options that say different things of what a training starts from."""
        if self.like is not None and self.pattern is not None:
            raise BadArgument(LIKE_OR_PATTERN)
        if self.continue_from is not None:
            for name in ("pattern", "like", "initial_alphabet", "limit_alphabet"):
                if getattr(self, name) is not None:
                    raise BadArgument(
                        f"{name} and continue_from exclude each other: that tokenizer says how text is prepared and "
                        "which bytes have entries"
                    )


def _check_special_tokens(special_tokens: Sequence[str]) -> None:
    """Refuse what could be spelled as an entry is: tokenizer.json, which holds both, could not be written."""
    for token in check_special_texts(special_tokens, BadArgument):
        if len(token) == 1 and to_bytes(token) is not None:
            raise BadArgument(
                f"special token {shown(token)} is how tokenizer.json writes a single byte; use two or more characters"
            )
        if entry := other_text(token):
            raise BadArgument(
                f"special token {shown(token)} is how tokenizer.json writes the text {shown(entry.decode())}; use "
                "another"
            )


def check_size(vocab_size: int, smallest: int, holds: str) -> None:
    """Nothing, or BadArgument for a size below that of what it starts from, which `holds` names, or too large."""
    if not smallest <= vocab_size <= MAX_ID + 1:
        raise BadArgument(
            f"vocab_size must be at least {smallest} ({holds}) and at most {MAX_ID + 1}, got {vocab_size}"
        )
