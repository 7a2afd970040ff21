"""Preparation before training: load the tokenizers that options name, and choose the pre-tokenizer and the start.

Contradictions that are known before counting are reported here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from bpe.continued_tokenizer import FromTokenizer
from bpe.errors import BadArgument, UncoveredText, shown
from bpe.like import TextRule, rule_like
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import other_cut
from bpe.pretoken_counts.gathering import Cut, cut_of_files
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import Tokenizer
from bpe.training_alphabet import FromAlphabet, initial_letters
from bpe.training_options import TrainingOptions, check_size
from bpe.training_start import FromBytes, Start
from tokenmill.inputs.sizes import counted


def prepared(options: TrainingOptions, vocab_sizes: Sequence[int]) -> tuple[TrainingOptions, Cut]:
    """Return validated options, completed from the files that they name, and how text is cut.

    Raise the errors of `train` that are known before counting.
    """
    options.check(vocab_sizes)
    options = with_tokenizer(options)
    old, special_tokens = options.continue_from, options.special_tokens
    rule = None
    if isinstance(old, Tokenizer):
        rule = TextRule.of(old)
        more = [token for token in special_tokens or () if token not in old.special_tokens]
        special_tokens = [*old.special_tokens, *more]
    elif options.like is not None:
        rule = rule_like(options.like)
        options = replace(options, like=rule)
    cut = cut_of_files(options.counts, special_tokens, options.pattern, rule, options.storage_options)
    if old is None and rule is None and options.pattern is None:
        _check_spaces_stay(TextRule(Pretokenizer.from_pattern(cut.pattern), cut.normalizer))
    special_tokens = more if isinstance(old, Tokenizer) else cut.special_tokens
    options = replace(options, special_tokens=special_tokens)
    smallest = 256 + len(special_tokens)
    holds = f"256 bytes and {counted(len(special_tokens), 'special token')}"
    if isinstance(old, Tokenizer):
        start = FromTokenizer(old, tuple(more))
        smallest, holds = start.size, "entries of the continued tokenizer and new special tokens"
    elif options.has_alphabet:  # other checks need the counts
        initial_letters(options.initial_alphabet, options.limit_alphabet, rule is not None and rule.of_text)
        smallest, holds = len(special_tokens), counted(len(special_tokens), "special token")
    elif rule is not None and rule.text_rules is not None:
        bytes_count = 256 * rule.text_rules.byte_fallback
        smallest, holds = len(special_tokens) + bytes_count, "special tokens and byte entries"
    for vocab_size in vocab_sizes:
        check_size(vocab_size, smallest, holds)
    return options, cut


def with_tokenizer(options: TrainingOptions) -> TrainingOptions:
    """Return the options with continue_from loaded. Raise the errors of `Tokenizer.load`."""
    old = options.continue_from
    if old is None or isinstance(old, Tokenizer):
        return options
    return replace(options, continue_from=Tokenizer.load(os.fspath(old)))


def start_of(counts: PretokenCounts, options: TrainingOptions, vocab_size: int) -> Start:
    """Return the start that the options describe. Raise BadArgument if the counted text was prepared differently."""
    facts = counts.facts
    special_tokens = tuple(options.special_tokens or ())
    if isinstance(options.continue_from, Tokenizer):
        start: Start = FromTokenizer(options.continue_from, special_tokens)
        rule = TextRule.of(options.continue_from)
    else:
        if options.like is not None:
            rule = rule_like(options.like)
        else:
            pattern = options.pattern or facts.pretokenizer or "gpt2"
            rule = TextRule(Pretokenizer.from_pattern(pattern), facts.normalizer)
            if options.pattern is None:
                _check_spaces_stay(rule)
        start = FromBytes(special_tokens, rule)
        if rule.text_rules is not None or options.has_alphabet:
            alphabet = options.initial_alphabet, options.limit_alphabet
            start = FromAlphabet.of(counts, special_tokens, rule, *alphabet)
            letters = "bytes and characters of the text" if rule.of_text else "symbols of the alphabet"
            check_size(vocab_size, start.size, f"special tokens and {letters}")
    if facts.pretokenizer is not None and rule != TextRule(facts.pretokenizer, facts.normalizer):
        raise other_cut(
            "counts",
            "pattern and normalizer",
            f"{shown(facts.pattern)} and {facts.normalizer or 'none'}",
            f"{shown(rule.pretokenizer.description)} and {rule.normalizer or 'none'}",
            "Count the text again, or train with the settings of the counts.",
        )
    return start


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
