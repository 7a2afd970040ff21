"""The task of retokenizing: one batch of documents, from the IDs of the old tokenizer to the IDs of the new one.

    IDs without end tokens -> text (UTF-8) -> old IDs again, which must be equal -> new IDs -> with end tokens

A text encodes to its old IDs either with special tokens recognized or with none. Otherwise the original text differed,
for example because a normalizer changed it, and the error names the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import flat_tokens
from bpe.end_tokens import EndTokens, put_around
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput
from flat_tokens import Dataset
from flat_tokens.dataset_writer import Block
from flat_tokens.errors import CONVERT_AGAIN, damaged
from flat_tokens.format import decode_ids, decode_start_flags
from flat_tokens.reader import FlatTokensArray
from tokenmill.engines.job import JobKey, find_job

BATCH_TOKENS = 1 << 20
MAX_BATCH_DOCUMENTS = 1 << 16


class Documents(NamedTuple):
    """Documents [first, stop) of a split."""

    split: str
    first: int
    stop: int

    def fault(self, number: int, what: str) -> BadInput:
        """Return the error for one of the documents, counted from 0."""
        return BadInput(f"{self.split}[{self.first + number}]: {what}. Encode the original text instead.")


class RetokenizeJob(NamedTuple):
    """The facts that all tasks share. old_ends, new_ends: tokens around each document."""

    dataset: str
    storage: Mapping[str, str]
    old: Tokenizer
    new: Tokenizer
    old_ends: EndTokens
    new_ends: EndTokens

    def prepare(self) -> None:
        """Build the encoders where they are not inherited."""
        self.old.encode_documents(b"")
        self.new.encode_documents(b"")

    def check_sight(self) -> None:
        """Raise DatasetError if this process cannot open the dataset."""
        _open(self.dataset, tuple(self.storage.items()))


def batches_of(split: FlatTokensArray, name: str) -> Iterator[Documents]:
    """Yield batches of whole documents, of about BATCH_TOKENS tokens."""
    first = 0
    while first < split.seq_count:
        starts = split.seq_starts[first : min(first + MAX_BATCH_DOCUMENTS, split.seq_count) + 1]
        count = int(np.searchsorted(starts, starts[0] + np.uint64(BATCH_TOKENS), side="right")) - 1
        yield Documents(name, first, first + max(1, count))
        first += max(1, count)


def retokenize_batch(documents: Documents, key: JobKey) -> Block:
    """Return the new IDs of some documents. Raise BadInput if the IDs of a document do not determine its text."""
    job: RetokenizeJob = find_job(key)
    split = _open(job.dataset, tuple(job.storage.items()))[documents.split]
    starts = split.seq_starts[documents.first : documents.stop + 1].astype(np.int64)
    encoded = split.encoded_tokens[int(starts[0]) : int(starts[-1])]
    offsets = starts - starts[0]
    if not np.array_equal(np.flatnonzero(decode_start_flags(encoded)), offsets[:-1]):
        raise damaged(split.name, "start flags must agree with seq_starts", CONVERT_AGAIN)
    rows = _without_ends(Ragged(decode_ids(encoded), offsets.astype(np.uint64)), job.old_ends, documents)
    texts = _texts(rows, job.old, documents)
    plain = _plain_texts(rows, texts, job.old, documents)
    # A special token of the new tokenizer only was ordinary text.
    shared = frozenset(job.old.special_tokens) & frozenset(job.new.special_tokens)
    new = job.new.encode_batch(texts, 1, shared | job.new.non_special_added_tokens)
    if plain:
        found = job.new.encode_batch([texts[number] for number in plain], 1, job.new.non_special_added_tokens)
        new = Ragged.from_rows(
            list({**dict(enumerate(new)), **dict(zip(plain, found, strict=True))}.values())
        )
    tokens, around, _ = put_around(new.tokens, new.offsets, job.new_ends.front_ids, job.new_ends.back_ids)
    return Block(tokens, around.astype(np.int64)[1:])


@lru_cache(4)
def _open(path: str, storage: tuple[tuple[str, str], ...]) -> Dataset:
    return flat_tokens.open(path, storage_options=dict(storage))


def _without_ends(rows: Ragged, ends: EndTokens, documents: Documents) -> Ragged:
    """Remove the end tokens of each document, which must be there."""
    offsets = rows.offsets.astype(np.int64)
    expected = [(id_, offsets[:-1] + index) for index, id_ in enumerate(ends.front_ids)]
    expected += [(id_, offsets[1:] - len(ends.back) + index) for index, id_ in enumerate(ends.back_ids)]
    too_short = np.flatnonzero(np.diff(offsets) < len(expected))
    is_content = np.ones(len(rows.tokens), np.bool_)
    for id_, indices in expected:
        wrong = too_short if len(too_short) else np.flatnonzero(rows.tokens[indices] != id_)
        if len(wrong):
            what = f"lacks token {id_}, which the dataset adds to each document"
            raise documents.fault(int(wrong[0]), what)
        is_content[indices] = False
    kept_before = np.concatenate([[0], np.cumsum(is_content)])
    return Ragged(rows.tokens[is_content], kept_before[offsets].astype(np.uint64))


def _texts(rows: Ragged, old: Tokenizer, documents: Documents) -> list[str]:
    try:
        return old.decode_batch(rows, errors="strict")
    except UnicodeDecodeError:
        for number, ids in enumerate(rows):
            try:
                old.decode(ids, errors="strict")
            except UnicodeDecodeError:
                raise documents.fault(number, "its tokens do not decode to valid UTF-8") from None
        raise


def _plain_texts(rows: Ragged, texts: list[str], old: Tokenizer, documents: Documents) -> list[int]:
    """Return the numbers of the documents that spell special tokens as ordinary text."""
    again = old.encode_batch(texts, 1)
    if np.array_equal(again.offsets, rows.offsets) and np.array_equal(again.tokens, rows.tokens):
        return []
    pairs = zip(rows, again, strict=True)
    plain = [number for number, (ids, found) in enumerate(pairs) if not np.array_equal(ids, found)]
    encoded = old.encode_batch([texts[number] for number in plain], 1, old.non_special_added_tokens)
    for number, found in zip(plain, encoded, strict=True):
        if not np.array_equal(rows[number], found):
            raise documents.fault(number, "its text encodes to other tokens")
    return plain
