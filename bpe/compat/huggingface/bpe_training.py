"""Entries and merges as `tokenizers.trainers.BpeTrainer` learns them from counted pretokens.

IDs are those of BpeTrainer: the special tokens, the alphabet by code point, the letters with a prefix or suffix in the
order in which the sorted pretokens show them, then what the merges make. BpeTrainer takes pretokens in the order of a
randomly seeded hash map, so with an affix, or with a limit that equally rare letters compete for, its result varies
from run to run; this one is always one of those results.

The core merges symbols, each spelled by a code of its own. A merge may also spell an entry that exists already, such as
a special token that the text contains. BpeTrainer then reuses that entry's ID, which the core does not do; such
trainings are repeated in Python.
"""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER
from bpe.threads import available_threads

if TYPE_CHECKING:
    from bpe.compat.huggingface.trainers import BpeTrainer
    from bpe.pretoken_counts.counts import PretokenCounts

_CODE_BYTES: Final = 4
_PLACES: Final = 4  # of a letter in a pretoken: 1 at its end, 2 not at its start, 3 both, 0 neither

Pair = tuple[int, int]
Merges = list[tuple[str, str]]


class Pretokens(NamedTuple):
    """Symbol IDs end to end (uint32); the end offset and the count of each pretoken (uint64)."""

    ids: NDArray[np.uint32]
    ends: NDArray[np.uint64]
    counts: NDArray[np.uint64]


def learn(counts: PretokenCounts, of_text: bool, trainer: BpeTrainer) -> tuple[dict[str, int], Merges]:
    """Return the vocabulary by ascending ID and the merges by rank.

    of_text: whether pretokens are text, else bytes that tokenizer.json spells in the byte alphabet.
    """
    vocab: dict[str, int] = {}
    for token in trainer.special_tokens:
        vocab.setdefault(token.content, len(vocab))
    occurrences, _ = _core.count_letters(*counts.arrays, of_text)
    found = np.flatnonzero(occurrences).tolist()
    spelled = {letter: chr(letter) if of_text else BYTE_TO_CHARACTER[letter] for letter in found}
    alphabet = {spelled[letter]: int(occurrences[letter]) for letter in found}
    for letter in _alphabet(alphabet, trainer):
        vocab.setdefault(letter, len(vocab))
    letters = {letter: text for letter, text in spelled.items() if text in vocab}
    pretokens = _symbols(counts, of_text, letters, trainer, vocab)
    texts = list(vocab)
    merges = _merge_in_core(pretokens, trainer, vocab)
    if merges is None:
        vocab = {text: id_ for id_, text in enumerate(texts)}
        merges = _merge_in_python(pretokens, trainer, vocab)
    return vocab, merges


def _alphabet(occurrences: dict[str, int], trainer: BpeTrainer) -> list[str]:
    """The letters that get an entry, by code point: the initial and the most frequent ones."""
    kept = occurrences | dict.fromkeys(trainer.initial_alphabet, sys.maxsize)
    letters = sorted(kept)
    if trainer.limit_alphabet is not None and trainer.limit_alphabet < len(letters):
        letters.sort(key=kept.__getitem__)
        letters = sorted(letters[len(letters) - trainer.limit_alphabet :])
    return letters


def _symbols(
    counts: PretokenCounts, of_text: bool, letters: dict[int, str], trainer: BpeTrainer, vocab: dict[str, int]
) -> Pretokens:
    """Spell the pretokens in letters, without those that have no entry. Adds letters with affixes to the vocabulary."""
    prefix, suffix = trainer.continuing_subword_prefix or "", trainer.end_of_word_suffix or ""
    codes = [np.full(0x110000 if of_text else 256, -1, np.int32) for _ in range(_PLACES)]
    for letter in letters:
        for place in range(_PLACES):
            codes[place][letter] = letter * _PLACES + place
    ids, ends = _core.letter_ids(*counts.arrays, codes)
    first = np.full(int(ids.max(initial=0)) + 1, len(ids))
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    used = np.flatnonzero(first < len(ids))
    id_of_code = np.zeros(len(first), np.uint32)
    for code in used[np.argsort(first[used])].tolist():
        letter, place = divmod(code, _PLACES)
        text = prefix * (place >> 1) + letters[letter] + suffix * (place & 1)
        id_of_code[code] = vocab.setdefault(text, len(vocab))
    return Pretokens(id_of_code[ids], ends, counts.counts)


def _joined(left: str, right: str, trainer: BpeTrainer) -> str:
    return left + right.removeprefix(trainer.continuing_subword_prefix or "")


def _merge_in_core(pretokens: Pretokens, trainer: BpeTrainer, vocab: dict[str, int]) -> Merges | None:
    """Extend the vocabulary and return the merges, or None as soon as one of them spells an entry that exists."""
    longest = trainer.max_token_length
    pairs, _ = _core.train_merges(
        *pretokens,
        max(0, trainer.vocab_size - len(vocab)),
        "huggingface",
        max(1, trainer.min_frequency),
        available_threads(),
        None,
        [id_.to_bytes(_CODE_BYTES, "big") for id_ in range(len(vocab))],
        # BpeTrainer applies the limit to pairs with a merged part only, and an entry must be shorter than it.
        max_token_bytes=0 if longest is None else _CODE_BYTES * max(2, longest - 1),
    )
    texts = list(vocab)
    merges = []
    for left, right in pairs.tolist():
        merges.append((texts[left], texts[right]))
        text = _joined(*merges[-1], trainer)
        if text in vocab:
            return None
        vocab[text] = len(texts)
        texts.append(text)
    return merges


class _Word:
    """A pretoken while it is merged: IDs of symbols, and how many letters each has."""

    def __init__(self, ids: list[int], count: int) -> None:
        self.ids = ids
        self.sizes = [1] * len(ids)
        self.count = count

    def merge(self, pair: Pair, product: int, max_size: int) -> list[tuple[Pair, int]]:
        """Merge the pair wherever it occurs, from the left; return which pairs became more or fewer by one."""
        ids, sizes = self.ids, self.sizes
        changes: list[tuple[Pair, int]] = []
        at = 0
        while at < len(ids) - 1:
            if (ids[at], ids[at + 1]) == pair:
                size = sizes[at] + sizes[at + 1]
                ids[at : at + 2] = [product]
                sizes[at : at + 2] = [size]
                if at > 0:
                    changes.append(((ids[at - 1], pair[0]), -1))
                    if sizes[at - 1] + size < max_size:
                        changes.append(((ids[at - 1], product), 1))
                if at + 1 < len(ids):
                    changes.append(((pair[1], ids[at + 1]), -1))
                    if size + sizes[at + 1] < max_size:
                        changes.append(((product, ids[at + 1]), 1))
            at += 1
        return changes


def _merge_in_python(pretokens: Pretokens, trainer: BpeTrainer, vocab: dict[str, int]) -> Merges:
    """Extend the vocabulary and return the merges: BpeTrainer's algorithm step by step.

    Takes about 10 seconds per million letters of distinct pretokens.
    """
    max_size = sys.maxsize if trainer.max_token_length is None else trainer.max_token_length
    ends = pretokens.ends.tolist()
    words = [
        _Word(pretokens.ids[start:stop].tolist(), count)
        for start, stop, count in zip([0, *ends[:-1]], ends, pretokens.counts.tolist(), strict=True)
    ]
    pair_counts: dict[Pair, int] = defaultdict(int)
    places: dict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in zip(word.ids, word.ids[1:], strict=False):
            pair_counts[pair] += word.count
            places[pair].add(number)
    # The serial number keeps the sets of words from being compared.
    queue = [(-pair_counts[pair], pair, serial, where) for serial, (pair, where) in enumerate(places.items())]
    heapq.heapify(queue)
    serial = len(queue)
    texts = list(vocab)
    merges: dict[tuple[str, str], None] = {}
    while queue and len(vocab) < trainer.vocab_size:
        negative, pair, _, where = heapq.heappop(queue)
        if -negative != pair_counts[pair]:
            heapq.heappush(queue, (-pair_counts[pair], pair, serial, where))
            serial += 1
            continue
        if -negative < max(1, trainer.min_frequency):
            break
        merge = texts[pair[0]], texts[pair[1]]
        text = _joined(*merge, trainer)
        if text not in vocab:
            vocab[text] = len(texts)
            texts.append(text)
        merges.pop(merge, None)  # a merge that recurs has the later rank
        merges[merge] = None
        grown: dict[Pair, set[int]] = defaultdict(set)
        for number in where:
            for changed, change in words[number].merge(pair, vocab[text], max_size):
                pair_counts[changed] += change * words[number].count
                if change > 0:
                    grown[changed].add(number)
        for changed, numbers in grown.items():
            if pair_counts[changed] > 0:
                heapq.heappush(queue, (-pair_counts[changed], changed, serial, numbers))
                serial += 1
    return list(merges)
