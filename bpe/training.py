"""Train a tokenizer: count the pretokens of the inputs, merge the commonest pairs, number the entries.

Ids are those of Hugging Face's BpeTrainer: special tokens first, in the order given; then the 256 bytes in GPT-2's
printable order; then the entries in the order of their merges. Merges equal `reference.train`: the pair with the
highest count is merged next; ties go to the pair whose two byte strings compare greater (`lexicographic`) or to the
lower pair of ids (`huggingface`), whatever the number of threads or the order of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.counting import PretokenCounts, Progress, available_threads, count_pretokens
from bpe.errors import BadArgument, shown
from bpe.patterns import PATTERNS
from bpe.pretokenizer import Pretokenizer
from bpe.reference import printable_bytes
from bpe.tokenizer import Tokenizer
from bpe.utf8 import Invalid
from bpe.vocabulary import MAX_ID, check_special_text

if TYPE_CHECKING:
    from bpe.counting import Source

TieBreak = Literal["lexicographic", "huggingface"]
TIE_BREAKS: Final = ("lexicographic", "huggingface")


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What a training made. pair_counts: uint64[merges], how often each pair occurred when it was merged.
    notes: one line each that the user should read."""

    tokenizer: Tokenizer
    counts: PretokenCounts
    pair_counts: NDArray[np.uint64]
    notes: tuple[str, ...]


def train(
    inputs: Iterable[Source],
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    tie_break: TieBreak = "lexicographic",
    min_frequency: int = 1,
    threads: int | None = None,
    invalid: Invalid = "error",
    progress: Progress | None = None,
) -> Tokenizer:
    """A tokenizer of `vocab_size` entries, special tokens and bytes among them; fewer if no pair is left to merge.

    inputs: a str or path names a file, bytes-like is a text. Special tokens cut the text and take no part in merging.
    min_frequency: pairs that occur less often are not merged. threads None: one a core. invalid: "error" or "replace".
    progress is told when fewer entries could be made; `train_on` gives that and the counts as a value.
    BadArgument for what can't be trained, MissingInput, InvalidText and EnvironmentFailure for the inputs.
    train([b"aab ab"], 257).merges -> [(b"a", b"b")]
    """
    inputs = [inputs] if isinstance(inputs, (str, bytes)) else list(inputs)
    check_options(vocab_size, special_tokens, tie_break, min_frequency)  # before the time-consuming part
    if not inputs:
        raise BadArgument("no input to train on: name at least one file")
    counts = count_pretokens(inputs, special_tokens, pattern, threads, invalid, progress)
    return train_on(
        counts, vocab_size, special_tokens, pattern, tie_break, min_frequency, threads, progress
    ).tokenizer


def train_on(
    counts: PretokenCounts,
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    tie_break: TieBreak = "lexicographic",
    min_frequency: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Training:
    """The training on counted pretokens: merges, tokenizer and notes; special tokens and pattern as they were counted.

    Cost: see bpe/native/trainer.hpp; some 0.3 s for 190,000 distinct pretokens and 32,000 entries.
    """
    check_options(vocab_size, special_tokens, tie_break, min_frequency)
    if len(counts) == 0:
        raise BadArgument(
            "the inputs hold no text to train on: nothing but special tokens, or nothing at all"
            if counts.text_bytes == 0 or Pretokenizer.from_pattern(pattern).core_pattern
            else f"the pattern {shown(str(pattern))} matches nothing in the inputs; "
            f"the named ones are {', '.join(PATTERNS)}"
        )
    new_entries = vocab_size - 256 - len(special_tokens)
    if progress is not None:
        progress.begin("merging", new_entries, "entries")
    pairs, pair_counts = _core.train_merges(
        counts.pretoken_bytes.data,
        counts.ends,
        counts.counts,
        new_entries,
        tie_break,
        min_frequency,
        available_threads() if threads is None else threads,
        None if progress is None else progress.update,
    )
    notes = []
    if len(pairs) < new_entries:
        left = "no pair is left" if min_frequency <= 1 else f"no pair occurs {min_frequency} times or more"
        notes.append(
            f"training stopped at {vocab_size - new_entries + len(pairs)} of {vocab_size} entries: {left}; "
            "train on more text or ask for fewer entries"
        )
    if progress is not None:
        progress.update(len(pairs))
        for note in notes:
            progress.note(note)
    return Training(_tokenizer(pairs, special_tokens, pattern), counts, pair_counts, tuple(notes))


def check_options(vocab_size: int, special_tokens: Sequence[str], tie_break: str, min_frequency: int) -> None:
    """Nothing, or BadArgument for the first option that is out of its range."""
    if isinstance(special_tokens, str):
        raise BadArgument(f"special_tokens must be a list of texts, got the text {shown(special_tokens)}")
    seen: set[str] = set()
    for token in special_tokens:
        check_special_text(token)
        if token in seen:
            raise BadArgument(f"special token {shown(token)} is given twice")
        seen.add(token)
        if len(token) == 1 and token in _BYTE_CHARACTERS:
            raise BadArgument(
                f"special token {shown(token)} is how tokenizer.json writes a single byte; use two or more characters"
            )
    if tie_break not in TIE_BREAKS:
        raise BadArgument(f"tie_break must be one of {', '.join(TIE_BREAKS)}, got {shown(tie_break)}")
    if min_frequency < 0:
        raise BadArgument(f"min_frequency must be at least 0, got {min_frequency}")
    if min_frequency >= 2**63:  # the core counts in 64 bits
        raise BadArgument(f"min_frequency must be below 2^63, got {min_frequency}")
    smallest = 256 + len(special_tokens)
    if not smallest <= vocab_size <= MAX_ID + 1:
        raise BadArgument(
            f"vocab_size must be at least {smallest} (256 bytes and {_special_tokens(len(special_tokens))}) "
            f"and at most {MAX_ID + 1}, got {vocab_size}"
        )


def _special_tokens(count: int) -> str:
    return f"{count} special token{'' if count == 1 else 's'}"


def _tokenizer(
    pairs: NDArray[np.uint32], special_tokens: Sequence[str], pattern: str | Pretokenizer
) -> Tokenizer:
    """Number the entries: special tokens, bytes in printable order, then one for each merge."""
    entries = [bytes([byte]) for byte in range(256)]  # by the ids of the core
    merges = []
    for left, right in pairs.tolist():
        merges.append((entries[left], entries[right]))
        entries.append(entries[left] + entries[right])
    ordered = [entries[byte] for byte in printable_bytes()] + entries[256:]
    specials = {token: id_ for id_, token in enumerate(special_tokens)}
    vocab = {id_: token.encode() for token, id_ in specials.items()}
    vocab |= {len(specials) + place: entry for place, entry in enumerate(ordered)}
    return Tokenizer(vocab, merges, specials, pattern)


def _byte_characters() -> frozenset[str]:
    """The 256 characters by which tokenizer.json writes bytes: printable Latin-1 as it is, the rest from U+0100."""
    printable = printable_bytes()[:188]
    return frozenset([chr(byte) for byte in printable] + [chr(256 + place) for place in range(68)])


_BYTE_CHARACTERS: Final = _byte_characters()
