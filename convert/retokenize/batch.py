"""The task of retokenizing: one batch of documents, from the IDs of the old tokenizer to the IDs of the new one.

    IDs without end tokens -> text (UTF-8) -> old IDs again, which must be equal -> new IDs -> with end tokens

A text encodes to its old IDs either with special tokens recognized or with none. Otherwise the original text differed,
for example because a normalizer changed it, and the error names the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

import flat_tokens
from bpe.end_tokens import EndTokens
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
_ADVICE = "Encode the original text instead."


class Documents(NamedTuple):
    """Documents [first, stop) of a split."""

    split: str
    first: int
    stop: int


class RetokenizeJob(NamedTuple):
    """The facts that all tasks share. old_ends, new_ends: tokens around each document."""

    dataset: str
    storage: Mapping[str, str]
    old: Tokenizer
    new: Tokenizer
    old_ends: EndTokens
    new_ends: EndTokens

    def prepare(self) -> None:
        """Build the encoders. Raise DatasetError if this process cannot open the dataset."""
        self.old.encode_documents(b"")
        self.new.encode_documents(b"")
        _open(self.dataset, tuple(self.storage.items()))

    def encode_again(self, ids: list[int], where: str) -> list[int]:
        """Return the new IDs of a document. Raise BadInput if the old ones do not determine its text."""
        old, new, ends = self.old, self.new, self.old_ends
        content = ids[len(ends.front) : len(ids) - len(ends.back)]
        if ends.front_ids + content + ends.back_ids != ids:
            raise BadInput(f"{where}: lacks tokens of the dataset, where each document {ends}. {_ADVICE}")
        try:
            text = old.decode(content, errors="strict")
        except UnicodeDecodeError:
            raise BadInput(f"{where}: its tokens do not decode to valid UTF-8. {_ADVICE}") from None
        special = new.non_special_added_tokens
        if old.encode(text) == content:
            # A special token of the new tokenizer only was ordinary text.
            special |= frozenset(old.special_tokens) & frozenset(new.special_tokens)
        elif old.encode(text, old.non_special_added_tokens) != content:
            raise BadInput(f"{where}: its text encodes to other tokens. {_ADVICE}")
        return list(chain.from_iterable(self.new_ends.around([new.encode(text, special)])))


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
    old, new, ends = decode_ids(encoded), list[int](), list[int]()
    for number, (start, stop) in enumerate(pairwise(offsets.tolist()), documents.first):
        new += job.encode_again(old[start:stop].tolist(), f"{documents.split}[{number}]")
        ends.append(len(new))
    return Block(np.array(new, np.uint32), np.array(ends, np.int64))


@lru_cache(4)
def _open(path: str, storage: tuple[tuple[str, str], ...]) -> Dataset:
    return flat_tokens.open(path, storage_options=dict(storage))
