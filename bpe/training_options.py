"""Training options with their defaults and ranges, shared by `train`, `train_sizes`, `train_on` and the command line.

`resolve` validates them and loads the tokenizers and presets that they name, before any input is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import BadArgument, UncoveredText, check_choice, check_range, check_whole, shown
from bpe.formats.byte_alphabet import other_text, to_bytes
from bpe.initial_vocabulary import continued_vocabulary, initial_letters
from bpe.like import Like, TextRule, rule_like
from bpe.normalizers import make_normalizer
from bpe.pretoken_counts.counting_options import CountingOptions, ReadingOptions
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import CountsFacts, other_cut
from bpe.pretoken_counts.gathering import counting_options
from bpe.pretokenizer import Pretokenizer
from bpe.threads import check_threads
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import MAX_ID, check_special_texts

if TYPE_CHECKING:
    from bpe.pretoken_counts.counts import CountSet, MinCount

TieBreak = Literal["lexicographic", "huggingface"]
TIE_BREAKS: Final = ("lexicographic", "huggingface")
LIKE_OR_PATTERN: Final = "like: cannot be combined with pattern. Pass one of them."


@dataclass(frozen=True, slots=True)
class TrainingOptions(ReadingOptions):
    """Training options, except inputs and vocabulary size; with the fields of `ReadingOptions`.

    special_tokens: texts that become single tokens and take no part in merging (default: as in the counts files, or
        none). With continue_from, they are added to the tokenizer's own.
    pattern: pre-tokenization pattern: a name such as "gpt2", an expression, or a Pretokenizer (default: as in the
        counts files, or "gpt2"). Excludes like and continue_from.
    tie_break: order of pairs with equal counts: "lexicographic" (default) or "huggingface"; see `bpe.training`.
    min_frequency: lowest count of a pair that is merged, at least 0 (default: 1).
    max_token_bytes: length limit of new entries in bytes, 0 or at least 2 (default: 4,096; None or 0 for no limit).
    counts: counts files, added to the counts of the inputs.
    max_memory_bytes: memory limit of the process in bytes (default: its current use plus four fifths of the free
        memory). Counts beyond it are spilled to temp_dir.
    min_pretoken_count: lowest count of a pretoken that is kept (default: 1). "fit" drops as few as the memory requires.
    sample_bytes: bytes of text to read, sampled evenly from the files, at least 1 (default: None for all).
    seed: seed of the sample (default: 0).
    temp_dir: folder for spilled counts (default: the system's).
    like: preset of `bpe.presets`, or path of a tokenizer. Its normalization and pre-tokenization are used. Excludes
        pattern and continue_from.
    continue_from: tokenizer or its path. Its entries and merges are kept, more are learned, and its text preparation is
        used.
    max_token_length: as in BpeTrainer of Hugging Face: new entries have fewer bytes than this, or characters for
        entries of text; entries of two are always allowed. Prefix and suffix do not count. Excludes max_token_bytes
        (default: None).
    initial_alphabet: as in BpeTrainer: characters that always have entries; bytes are given as characters of the byte
        alphabet, and of a longer string the first character counts (default: None for all bytes, or with limit_alphabet
        for none).
    limit_alphabet: as in BpeTrainer: limit on the characters or bytes that take part in merging, the most frequent
        first (default: None). Other bytes have entries beyond vocab_size, so that no text is lost.
    """

    special_tokens: Sequence[str] | None = None
    pattern: str | Pretokenizer | None = None
    tie_break: TieBreak = "lexicographic"
    min_frequency: int = 1
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

    def __post_init__(self) -> None:
        for name in ("special_tokens", "counts", "initial_alphabet"):
            value = getattr(self, name)
            if isinstance(value, Iterator):  # it is read more than once
                object.__setattr__(self, name, tuple(value))
        if isinstance(self.counts, (str, os.PathLike)):
            object.__setattr__(self, "counts", (self.counts,))

    @property
    def longest_entry(self) -> int:
        """Length limit of new entries in bytes, or in letters with max_token_length. 0: no limit."""
        if self.max_token_length is None:
            return self.max_token_bytes or 0
        return max(2, self.max_token_length - 1)  # BpeTrainer only checks pairs with a new entry

    @property
    def has_alphabet(self) -> bool:
        """Whether the alphabet can lack some bytes."""
        return self.initial_alphabet is not None or self.limit_alphabet is not None

    @property
    def rule(self) -> TextRule:
        """How text is prepared. Only for resolved options."""
        if isinstance(self.continue_from, Tokenizer):
            return TextRule.of(self.continue_from)
        assert isinstance(self.like, TextRule)
        return self.like

    def check(self, vocab_sizes: Sequence[int]) -> None:
        """Raise BadArgument for the first option or vocabulary size out of range.

        Options for counting (invalid, counts, memory, sample) are checked by counting.
        """
        _check_special_tokens(() if self.special_tokens is None else self.special_tokens)
        if not vocab_sizes:
            raise BadArgument("vocab_sizes: must not be empty")
        for index, vocab_size in enumerate(vocab_sizes):
            check_whole("vocab_size", vocab_size)
            if vocab_size in vocab_sizes[:index]:
                raise BadArgument(f"vocab_size: duplicate (got {vocab_size})")
        check_choice("tie_break", self.tie_break, TIE_BREAKS)
        for name in ("min_frequency", "max_token_bytes", "max_token_length", "limit_alphabet"):
            value = getattr(self, name)
            if value is not None or name == "min_frequency":
                check_range(name, value, 0, 2**63 - 1)  # the core counts in 64 bits
        if self.max_token_length is not None and self.max_token_bytes != MAX_TOKEN_BYTES:
            raise BadArgument("max_token_length: cannot be combined with max_token_bytes. Pass one of them.")
        if self.max_token_bytes == 1:
            raise BadArgument("max_token_bytes: must be at least 2, or 0 for no limit (got 1)")
        if self.like is not None and self.pattern is not None:
            raise BadArgument(LIKE_OR_PATTERN)
        for name in ("pattern", "like", "initial_alphabet", "limit_alphabet"):
            if self.continue_from is not None and getattr(self, name) is not None:
                raise BadArgument(
                    f"{name}: cannot be combined with continue_from. Leave it out, since that tokenizer sets the "
                    "normalizer, the pattern and the alphabet."
                )
        check_threads(self.threads)


def resolve(
    options: TrainingOptions, vocab_sizes: Sequence[int], counts: PretokenCounts | None = None
) -> tuple[TrainingOptions, CountingOptions, CountSet | None]:
    """Return resolved options, options to count with, and the counts files; None if there are none.

    Resolved options name no files and have no defaults left: continue_from is a tokenizer, like is a rule unless there
    is one, and special_tokens are those that continue_from lacks. Raise the errors of `train` that are known before
    counting.

    counts: counted text to train on, instead of inputs and counts files.
    """
    options.check(vocab_sizes)
    old, rule, special_tokens = options.continue_from, None, options.special_tokens
    if counts is not None and special_tokens is None:
        special_tokens = counts.facts.special_tokens
    if old is not None:
        old = old if isinstance(old, Tokenizer) else Tokenizer.load(os.fspath(old))
        rule = TextRule.of(old)
        more = [token for token in special_tokens or () if token not in old.special_tokens]
        special_tokens = [*old.special_tokens, *more]
    elif options.like is not None:
        rule = rule_like(options.like)
    counted = None
    if counts is None:
        cut, counted = counting_options(options.counts, special_tokens, options.pattern, rule, options)
    else:
        pattern = options.pattern or counts.facts.pretokenizer or "gpt2"
        cut = CountingOptions(special_tokens or (), pattern, counts.facts.normalizer)
    if rule is None:
        rule = TextRule(Pretokenizer.from_pattern(cut.pattern), make_normalizer(cut.normalizer))
        if options.pattern is None:
            _check_spaces_stay(rule)
    if counts is not None:
        _check_prepared_alike(rule, counts.facts)
    if old is None:
        options = replace(options, counts=(), special_tokens=cut.special_tokens, pattern=None, like=rule)
    else:
        options = replace(options, counts=(), special_tokens=more, continue_from=old)
    smallest = _smallest_size(options)
    for vocab_size in vocab_sizes:
        check_size(vocab_size, smallest)
    return options, cut, counted


def _smallest_size(options: TrainingOptions) -> int:
    """Return the number of initial entries, or of those that are known before counting."""
    special_tokens = options.special_tokens or ()
    if isinstance(options.continue_from, Tokenizer):
        return len(continued_vocabulary(options.continue_from, special_tokens).vocab)
    if options.has_alphabet:
        initial_letters(options.initial_alphabet, options.limit_alphabet, options.rule.of_text)
        return len(special_tokens)
    rules = options.rule.text_rules
    return len(special_tokens) + 256 * (rules is None or rules.byte_fallback)


def check_size(vocab_size: int, smallest: int) -> None:
    """Raise BadArgument if the size is too large, or below the number of initial entries."""
    if not smallest <= vocab_size <= MAX_ID + 1:
        raise BadArgument(
            f"vocab_size: must be at least {smallest} (special tokens and initial entries) and at most {MAX_ID + 1} "
            f"(got {vocab_size})"
        )


def _check_prepared_alike(rule: TextRule, facts: CountsFacts) -> None:
    """Raise BadArgument if counted text was prepared with another rule."""
    if facts.pretokenizer is not None and rule != TextRule(facts.pretokenizer, facts.normalizer):
        raise other_cut(
            "counts",
            "pattern and normalizer",
            f"{shown(facts.pattern)} and {facts.normalizer or 'none'}",
            f"{shown(rule.pretokenizer.description)} and {rule.normalizer or 'none'}",
            "Count the text again, or train with the settings of the counts.",
        )


def _check_spaces_stay(rule: TextRule) -> None:
    """Raise BadArgument if the text preparation changes or drops spaces, since a vocabulary of bytes, the default,
    would decode to text without them."""
    text = b"a b" if rule.normalizer is None else rule.normalizer.apply(b"a b")
    with suppress(UncoveredText):
        if not any(" " in pretoken for pretoken in rule.pretokenizer.pretokens(text.decode())):
            raise BadArgument(
                "counts: text was counted with spaces changed or removed, so decoding would lose them. Pass --like "
                "(like=) as for counting, or --continue-from."
            )


def _check_special_tokens(special_tokens: Sequence[str]) -> None:
    """Raise BadArgument for a special token with the spelling of an entry, since tokenizer.json cannot hold both."""
    for token in check_special_texts(special_tokens, BadArgument):
        if len(token) == 1 and to_bytes(token) is not None:
            raise BadArgument(
                f"special_tokens: same spelling as a byte in tokenizer.json (got {shown(token)}). Use at least two "
                "characters."
            )
        if entry := other_text(token):
            raise BadArgument(
                f"special_tokens: same spelling as the text {shown(entry.decode())} in tokenizer.json (got "
                f"{shown(token)}). Choose another."
            )
