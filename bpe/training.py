"""Train a tokenizer: count the pretokens of the inputs, merge the most frequent pairs, and number the entries.

IDs follow Hugging Face's BpeTrainer: special tokens in the given order, the 256 bytes in GPT-2's printable order, then
entries in the order of their merges. Merges equal `reference.train`: the pair with the highest count is merged next.
The tie break selects the pair with the greater byte strings (`lexicographic`) or with the lower IDs (`huggingface`).
Merges do not depend on the number of threads or the order of the inputs.

A smaller vocabulary is a prefix of a larger one, so one training run yields many sizes (`train_sizes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import BadArgument, NotEnoughMemory, shown
from bpe.initial_vocabulary import InitialVocabulary, alphabet_vocabulary, continued_vocabulary
from bpe.patterns import PATTERNS
from bpe.pretoken_counts.count_sums import check_weighted
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.gathering import gather_counts
from bpe.pretoken_counts.memory import MemoryBudget, enough_limit, training_bytes, used_bytes, ways_out
from bpe.pretoken_counts.sources import list_of
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress
from bpe.threads import available_threads
from bpe.tokenizer import Tokenizer
from bpe.training_options import TrainingOptions, check_size, resolve
from tokenmill.inputs.sizes import counted
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Input
    from bpe.training_options import TieBreak


@dataclass(frozen=True, eq=False)
class Training:
    """Result of a training run.

    pairs: uint32[merges, 2], indices of entries. Merge k makes entry len(initial.entries) + k.
    pair_counts: uint64[merges], the count of each pair when it was merged.
    vocab_size: the requested size.
    initial: the entries before the first merge.
    notes: lines that the user should read.
    budget: memory limit for building tokenizers.
    """

    pairs: NDArray[np.uint32]
    pair_counts: NDArray[np.uint64]
    counts: PretokenCounts
    vocab_size: int
    initial: InitialVocabulary
    notes: tuple[str, ...]
    budget: MemoryBudget | None = None

    def __repr__(self) -> str:
        return f"<Training {counted(len(self.pairs), 'merge')} of {self.counts!r}, vocab_size {self.vocab_size:,}>"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer with all merges."""
        return self.prefix(self.vocab_size)

    def prefix(self, vocab_size: int) -> Tokenizer:
        """Return the tokenizer of the first `vocab_size` entries, equal to training for that size.

        Raise BadArgument for a larger size than was trained, and NotEnoughMemory if the entries do not fit. Time and
        memory are linear in the bytes of the entries.
        """
        merge_count = vocab_size - len(self.initial.vocab)
        if merge_count < 0 or vocab_size > self.vocab_size:
            raise BadArgument(
                f"vocab_size: must be at most {self.vocab_size}, as in the training (got {vocab_size})"
            )
        return self.initial.tokenizer(self.pairs[:merge_count], self.budget)


def train(
    inputs: Iterable[Input],
    vocab_size: int,
    special_tokens: Sequence[str] | None = None,
    pattern: str | Pretokenizer | None = None,
    tie_break: TieBreak = "lexicographic",
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Tokenizer:
    """Train a tokenizer of `vocab_size` entries, or of fewer if no pair is left to merge.

    inputs: texts and files. A str or path is a file, folder, glob or URL of a kind that `convert` reads. Bytes are a
        text.
    vocab_size: number of entries, including special tokens and the 256 bytes; at most 2^31.
    progress: object that is called with the phases, their progress and notes (default: None).

    All other parameters are the fields of `TrainingOptions`. `train_on` also returns counts and notes.

    Raise BadArgument for invalid options and sizes, MissingInput, InvalidText or EnvironmentFailure for inputs that
    cannot be read, BadCounts for invalid counts files, and NotEnoughMemory if merging does not fit into memory.

    train([b"aab ab"], 257).merges -> [(b"a", b"b")]
    """
    training = TrainingOptions(special_tokens, pattern, tie_break, **options)
    return train_sizes(inputs, [vocab_size], training, progress)[vocab_size]


def train_sizes(
    inputs: Iterable[Input],
    vocab_sizes: Sequence[int],
    options: TrainingOptions | None = None,
    progress: Progress | None = None,
) -> dict[int, Tokenizer]:
    """Return {vocab_size: tokenizer}, in the given order, from one training run. Each equals the result of `train`.

    Cost: one `train` for the largest size, and about 2 µs per entry for every other size. Raise the errors of `train`.
    """
    inputs = list_of(inputs)
    vocab_sizes = list(vocab_sizes)
    options, counting, counts = resolve(options or TrainingOptions(), vocab_sizes)
    budget = MemoryBudget.of(options.max_memory_bytes)
    with Workspace(options.temp_dir) as workspace:
        sample = options.sample_bytes, options.seed
        gathered = gather_counts(inputs, counts, counting, progress, budget, workspace, *sample)
        loaded = gathered.load(budget, workspace, options.min_pretoken_count, progress, max(vocab_sizes))
        del gathered
        training = learn_merges(loaded, max(vocab_sizes), options, progress, budget)
    return {vocab_size: training.prefix(vocab_size) for vocab_size in vocab_sizes}


def train_on(
    counts: PretokenCounts,
    vocab_size: int,
    options: TrainingOptions | None = None,
    progress: Progress | None = None,
    budget: MemoryBudget | None = None,
) -> Training:
    """Train on counted pretokens.

    options: only the options for merging apply. special_tokens may add to the tokens of the counts. pattern must be
        None or the pattern of the counts.
    budget: memory limit. Raise NotEnoughMemory as soon as the process exceeds it.

    Cost: see bpe/native/train/trainer.hpp. About 0.3 s for 300,000 distinct pretokens and 32,000 entries.
    """
    options, _, _ = resolve(options or TrainingOptions(), [vocab_size], counts)
    return learn_merges(counts, vocab_size, options, progress, budget)


def learn_merges(
    counts: PretokenCounts,
    vocab_size: int,
    options: TrainingOptions,
    progress: Progress | None = None,
    budget: MemoryBudget | None = None,
) -> Training:
    """Train on counted pretokens with resolved options, as `train_on` does."""
    if len(counts) == 0:
        facts = counts.facts
        where = "sample of the inputs" if facts.sample else "inputs"
        raise BadArgument(
            f"{where}: no text to train on (empty, or special tokens only)"
            if counts.text_bytes == 0 or facts.pretokenizer is None or facts.pretokenizer.automaton
            else f"pattern: matches nothing in the inputs (got {shown(facts.pattern)}). Use an expression that "
            f"matches all text, or one of {', '.join(PATTERNS)}."
        )
    initial = _initial_vocabulary(counts, options)
    check_size(vocab_size, len(initial.vocab))
    new_entries = vocab_size - len(initial.vocab)
    if progress is not None:
        progress.begin("merging", new_entries, "entries")
    check_weighted(counts.ends, counts.counts)
    used = used_bytes()
    rules = initial.rule.text_rules
    counts_letters = rules is not None and options.max_token_length is not None
    try:
        pairs, pair_counts = _core.train_merges(
            *initial.pretokens(counts, budget),
            new_entries,
            options.tie_break,
            options.min_frequency,
            available_threads() if options.threads is None else options.threads,
            _watching(progress, budget),
            initial.entries,
            initial.reserved,
            max_token_bytes=0 if counts_letters else options.longest_entry,
            memory_limit=0 if budget is None else budget.limit_bytes,
            prefix="" if rules is None else rules.continuing_subword_prefix,
            suffix="" if rules is None else rules.end_of_word_suffix,
            max_token_letters=options.longest_entry if counts_letters else 0,
            letters_are_characters=initial.rule.of_text,
        )
    except MemoryError as error:
        if budget is None or isinstance(error, NotEnoughMemory):
            raise
        raise _outgrown(counts, vocab_size, options, budget, used) from None
    notes = [initial.note] if initial.note else []
    if len(pairs) < new_entries:
        notes.append(
            _stopped_early(initial, pairs, vocab_size - new_entries + len(pairs), vocab_size, options)
        )
    if progress is not None:
        progress.update(len(pairs))
        for note in notes:
            progress.note(note)
    return Training(pairs, pair_counts, counts, vocab_size, initial, tuple(notes), budget)


def _stopped_early(
    initial: InitialVocabulary,
    pairs: NDArray[np.uint32],
    made: int,
    vocab_size: int,
    options: TrainingOptions,
) -> str:
    """Return the note for a vocabulary of fewer entries than requested."""
    reasons = [f"occurs at least {options.min_frequency} times"] if options.min_frequency > 1 else []
    longest, rules = options.longest_entry, initial.rule.text_rules
    prefix_bytes = 0 if rules is None else len(rules.affixes[0])
    lengths = list(map(len, initial.entries))
    for left, right in pairs.tolist():
        lengths.append(lengths[left] + max(lengths[right] - prefix_bytes, 0))
    if longest and 2 * max(lengths) > longest:  # otherwise no entry can be too long
        in_characters = options.max_token_length is not None and initial.rule.of_text
        reasons.append(f"makes an entry of at most {longest} {'characters' if in_characters else 'bytes'}")
    left_over = f"no pair {' and '.join(reasons)}" if reasons else "no pair is left"
    why = f"{left_over} after {counted(len(pairs), 'merge')}" if len(pairs) else left_over
    return (
        f"training: stopped at {made} of {vocab_size} entries ({why}). Train on more text, or choose a smaller "
        "vocabulary."
    )


def _initial_vocabulary(counts: PretokenCounts, options: TrainingOptions) -> InitialVocabulary:
    """Return the initial vocabulary that resolved options describe."""
    special_tokens = options.special_tokens or ()
    if isinstance(options.continue_from, Tokenizer):
        return continued_vocabulary(options.continue_from, special_tokens)
    return alphabet_vocabulary(
        counts, special_tokens, options.rule, options.initial_alphabet, options.limit_alphabet
    )


def _outgrown(
    counts: PretokenCounts, vocab_size: int, options: TrainingOptions, budget: MemoryBudget, used: int
) -> NotEnoughMemory:
    """Return the error for merging beyond the memory limit. used: memory of the process before merging."""

    def most(distinct: int, pretoken_bytes: int) -> int:
        return used + training_bytes(distinct, pretoken_bytes, vocab_size, at_most=True)

    enough = most(len(counts), counts.pretoken_bytes.nbytes) - counts.memory_bytes
    often = counts.counts > 1
    kept = int(np.diff(counts.ends, prepend=np.uint64(0))[often].sum())
    helps = 0 < kept < counts.pretoken_bytes.nbytes and most(int(often.sum()), kept) <= budget.limit_bytes
    if enough > budget.limit_bytes and options.longest_entry:
        fix = f"Allow {enough_limit(enough)} or more"
    else:  # long entries or rare pairs; their number is unbounded
        fix = f"Allow more than {enough_limit(max(enough, budget.limit_bytes * 5 // 4))}"
    entries = "" if options.longest_entry else f", pass --max-token-bytes (default: {MAX_TOKEN_BYTES})"
    return NotEnoughMemory(
        f"merging: needs more than {budget.words}. {fix}{entries}, {ways_out(helps, len(counts))}."
    )


def _watching(progress: Progress | None, budget: MemoryBudget | None) -> Callable[[int], None] | None:
    """Return the callback that the core calls every 0.1 s."""
    update = None if progress is None else progress.update
    if budget is None:
        return update

    def watch(done: int) -> None:
        if budget.free_bytes == 0:
            raise MemoryError
        if update is not None:
            update(done)

    return watch
