"""`BpeTrainer`, with the arguments of `tokenizers.trainers.BpeTrainer`, and training with it.

The tokenizer's normalizer and pre-tokenizer cut the texts, and the distinct pretokens are counted. `learn` returns the
entries and merges of the counts.

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
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken as CoreToken
from bpe.compat.huggingface.added_tokens import AddedToken, added_token
from bpe.compat.huggingface.alignment import pretokens
from bpe.compat.huggingface.arguments import count, input_text, unsupported, warn_unknown
from bpe.compat.huggingface.engine import Sections
from bpe.compat.huggingface.models import BPE
from bpe.errors import InvalidText, UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER, to_characters
from bpe.formats.huggingface import text_rules_of
from bpe.formats.huggingface_components import (
    components_from_json,
    normalizer_from_json,
    pretokenizer_from_json,
)
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.threads import available_threads

Json = dict[str, Any] | None

_DEFAULTS: Final = {
    "min_frequency": 0,
    "vocab_size": 30000,
    "show_progress": True,
    "progress_format": "Indicatif",
    "special_tokens": (),
    "limit_alphabet": None,
    "initial_alphabet": (),
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "max_token_length": None,
}


_COUNTS: Final = {"vocab_size", "min_frequency", "limit_alphabet", "max_token_length"}
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Trainer:
    """What a tokenizer is trained with. Only `BpeTrainer` is one here."""


class BpeTrainer(Trainer):
    """The options of a training; special_tokens: texts or AddedTokens."""

    vocab_size: int
    min_frequency: int
    special_tokens: list[AddedToken]
    limit_alphabet: int | None
    initial_alphabet: list[str]
    continuing_subword_prefix: str | None
    end_of_word_suffix: str | None
    max_token_length: int | None

    def __init__(self, **options: Any) -> None:
        warn_unknown(options.keys() - _DEFAULTS)
        for name, default in _DEFAULTS.items():
            setattr(self, name, options.get(name, default))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("special_tokens", "initial_alphabet") and isinstance(value, str):
            raise TypeError(f"{name}: must be a list (got {shown(value)})")
        if name in _COUNTS and not (value is None and _DEFAULTS[name] is None):
            value = count(name, value)
        if name == "special_tokens":
            value = [added_token(token, special=True) for token in value]
        elif name == "initial_alphabet":
            value = [text[0] for text in value if text]
        super().__setattr__(name, value)

    def __getstate__(self) -> bytes:
        values = {name: getattr(self, name) for name in _DEFAULTS}
        values["special_tokens"] = [token.to_json() for token in values["special_tokens"]]
        return json.dumps({"BpeTrainer": values | {"words": {}}}, separators=(",", ":")).encode()

    def __setstate__(self, state: bytes) -> None:
        values = json.loads(state)["BpeTrainer"]
        values["special_tokens"] = [
            added_token(token["content"], special=True) for token in values["special_tokens"]
        ]
        del values["words"]
        self.__init__(**values)  # type: ignore[misc]


UnigramTrainer = unsupported("UnigramTrainer")
WordPieceTrainer = unsupported("WordPieceTrainer")
WordLevelTrainer = unsupported("WordLevelTrainer")


def lines_of(files: Iterable[str]) -> Iterator[str]:
    """The lines of the files, each a text, with their ends, newlines alone. InvalidText for what is no UTF-8."""
    if isinstance(files, str):
        raise TypeError(f"files: must be a list of paths (got {shown(files)})")
    for file in files:
        data = Path(file).read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidText(f"{file}: byte {error.start}: not valid UTF-8") from None
        yield from _LINE.findall(text)


def texts_of(items: Iterable[Any]) -> Iterator[str]:
    """The texts of an iterable of texts, or of iterables of texts."""
    for item in items:
        for text in (item,) if isinstance(item, str) else item:
            yield input_text(text)


def train(
    model: BPE,
    added: tuple[CoreToken, ...],
    ignored: frozenset[str],
    normalizer: Json,
    pre_tokenizer: Json,
    texts: Iterable[str],
    trainer: BpeTrainer | None,
) -> BPE:
    """Return a model that is trained on the texts.

    model: its options are kept. added: added tokens. ignored: texts of those that are ordinary text.
    """
    trainer = BpeTrainer() if trainer is None else trainer
    if not isinstance(trainer, BpeTrainer):
        raise UnsupportedTokenizer(
            f"trainer: must be a {BpeTrainer.__module__}.BpeTrainer (got one of {type(trainer).__module__})"
        )
    affixes = {name: getattr(trainer, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")}
    of_text = (
        text_rules_of({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": {}}) is not None
    )
    sections = Sections(added, ignored, normalizer_from_json(normalizer))
    counts, of_text = _count(sections, pre_tokenizer, of_text, texts)
    return BPE.learned(*learn(counts, of_text, trainer), model.options() | affixes)


def _count(
    sections: Sections, pre_tokenizer: Json, of_text: bool, texts: Iterable[str]
) -> tuple[PretokenCounts, bool]:
    """Count the pretokens; return the counts and whether pretokens are text, else bytes.

    Added tokens are pretokens. Texts that contain one are cut in Python, at about 100 kB per second.
    """
    components = [component for component, _ in components_from_json(pre_tokenizer)]
    in_core: list[bytes] = []
    found: Counter[str] = Counter()
    for text in texts:
        if not sections.has_added_token(text):
            in_core.append(text.encode())
            continue
        for section, id_ in sections.of(text):
            pieces = [section] if id_ is not None else pretokens(section, components)
            found.update(piece.text for piece in pieces)
    pretokenizer = pretokenizer_from_json(pre_tokenizer, of_text)
    counts = PretokenCounts.from_mapping({})
    if in_core:
        counts = count_pretokens(in_core, (), pretokenizer, normalizer=sections.normalizer)
    if not found:
        return counts, of_text
    for pretoken, occurrences in counts.as_dict().items():
        found[pretoken.decode() if of_text else to_characters(pretoken)] += occurrences
    as_bytes = {text.encode(): occurrences for text, occurrences in found.items()}
    return PretokenCounts.from_mapping(as_bytes), True


# -- the algorithm of BpeTrainer ---------------------------------------------------------------------------------------


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
