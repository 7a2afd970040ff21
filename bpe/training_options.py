"""How to train: every option of a training with its default and its range, whoever asks.

`train`, `train_sizes`, `train_on` and the command line take the same options; they check themselves before anything is
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import BadArgument, check_whole, shown
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.threads import check_threads
from bpe.vocabulary import MAX_ID, check_special_texts

if TYPE_CHECKING:
    from bpe.pretoken_counts.count_set import MinCount
    from bpe.pretokenizer import Pretokenizer
    from bpe.utf8 import Invalid

TieBreak = Literal["lexicographic", "huggingface"]
TIE_BREAKS: Final = ("lexicographic", "huggingface")


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training is asked for beside its inputs and its size.

    special_tokens: cut the text and take no part in merging; None: those of the counts files, or none.
    pattern: a name or an expression; None: that of the counts files, or gpt2.
    tie_break: which of equally frequent pairs is merged first; see `bpe.training`.
    min_frequency: pairs that occur less often are not merged.
    threads: to count and to merge with; None: one a core.
    invalid: what to do with bytes that are not UTF-8, "error" or "replace".
    max_token_bytes: longer entries are not made; None or 0: no limit. Hugging Face's BpeTrainer makes the same merges
    with max_token_length = max_token_bytes + 1: it counts bytes too, and its entries stay below that.
    counts: counts files, added to what the inputs have.
    max_memory_bytes: None: four fifths of what is free. Counts that outgrow it are spilled to temp_dir.
    min_pretoken_count: rarer pretokens are left out; "fit": as few as must be.
    sample_bytes: so much of the files, evenly, by the seed; None: all.
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

    def check(self, vocab_sizes: Sequence[int]) -> None:
        """Nothing, or BadArgument for the first option, or size to train for, that is out of its range.

        What only counting knows of (invalid, counts, memory, sample) is checked there.
        """
        special_tokens = () if self.special_tokens is None else self.special_tokens
        _check_special_tokens(special_tokens)
        if not vocab_sizes:
            raise BadArgument("vocab_sizes must have at least one size")
        for place, vocab_size in enumerate(vocab_sizes):
            _check_size(vocab_size, len(special_tokens))
            if vocab_size in vocab_sizes[:place]:
                raise BadArgument(f"vocab_size {vocab_size} is given twice")
        if self.tie_break not in TIE_BREAKS:
            raise BadArgument(
                f"tie_break must be one of {', '.join(TIE_BREAKS)}, got {shown(self.tie_break)}"
            )
        for name in ("min_frequency", "max_token_bytes"):
            value = getattr(self, name)
            if value is None and name == "max_token_bytes":
                continue
            check_whole(name, value)
            if value < 0:
                raise BadArgument(f"{name} must be at least 0, got {value}")
            if value >= 2**63:  # the core counts in 64 bits
                raise BadArgument(f"{name} must be below 2^63, got {value}")
        if self.max_token_bytes == 1:
            raise BadArgument(
                "max_token_bytes must be at least 2, as merges make entries of two bytes, or 0: no limit"
            )
        check_threads(self.threads)


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


def _check_size(vocab_size: int, special_count: int) -> None:
    check_whole("vocab_size", vocab_size)
    smallest = 256 + special_count
    if not smallest <= vocab_size <= MAX_ID + 1:
        tokens = f"{special_count} special token{'' if special_count == 1 else 's'}"
        raise BadArgument(
            f"vocab_size must be at least {smallest} (256 bytes and {tokens}) and at most {MAX_ID + 1}, "
            f"got {vocab_size}"
        )
