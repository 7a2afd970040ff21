"""A dataset from the IDs of another one: batches of its documents are tasks, and their results are written in order.

    IDs without end tokens -> text (UTF-8) -> old IDs again, which must be equal -> new IDs -> with end tokens

A text encodes to its old IDs either with special tokens recognized or with none. Otherwise the original text differed,
for example because a normalizer changed it, and the error names the document.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import flat_tokens
from bpe.end_tokens import EndToken, EndTokens, end_tokens, post_processor_ends
from bpe.threads import available_threads
from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds, recorded_ends
from convert.driver.tokenizers import load_tokenizer
from convert.errors import BadInput, UsageError, printable
from flat_tokens import ArrayLayout, Dataset
from flat_tokens.format import SPLITS
from flat_tokens.reader import FlatTokensArray
from flat_tokens.split_writer import WrittenSplit
from tokenmill.engines.choose import engine_of, open_engine
from tokenmill.engines.job import JobKey, find_job, hand_out
from tokenmill.engines.tasks import TaskPool
from tokenmill.stores import is_url
from tokenmill.stores.apart import check_apart

BATCH_TOKENS = 1 << 20
MAX_BATCH_DOCUMENTS = 1 << 16
_ADVICE = "Encode the original text instead."
Batch = tuple[NDArray[np.uint32], list[int]]  # IDs, and where documents end among them
Documents = tuple[str, int, int]  # split, first and stop


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
        yield name, first, first + max(1, count)
        first += max(1, count)


def retokenize_batch(documents: Documents, key: JobKey) -> Batch:
    """Encode some documents again. Raise BadInput if the IDs of a document do not determine its text."""
    job: RetokenizeJob = find_job(key)
    name, first, stop = documents
    split = _open(job.dataset, tuple(job.storage.items()))[name]
    ids, ends = list[int](), list[int]()
    for number in range(first, stop):
        ids += job.encode_again(split.sequence(number).tolist(), f"{name}[{number}]")
        ends.append(len(ids))
    return np.array(ids, np.uint32), ends


@lru_cache(4)
def _open(path: str, storage: tuple[tuple[str, str], ...]) -> Dataset:
    return flat_tokens.open(path, storage_options=dict(storage))


def retokenize(options: Namespace) -> dict[str, WrittenSplit]:
    """Write the new dataset and return its splits. Nothing is left of a run that fails.

    options: the parsed arguments of the command.
    """
    storage = dict(options.storage_option)
    layout = ArrayLayout.create(options.zarr_format, compression=options.compression)
    check_apart(options.output, [options.dataset, options.tokenizer, options.from_tokenizer])
    path = options.dataset
    if not is_url(path):
        if not Path(path).exists():
            raise UsageError(f"{printable(path)}: does not exist")
        path = str(Path(path).absolute())
    dataset = flat_tokens.open(options.dataset, storage_options=storage)
    name = printable(str(dataset.path))
    if any(dataset[split].loss_mask is not None for split in SPLITS):
        raise UsageError(f"{name}: has a loss mask, which cannot be mapped. Convert the original text again.")
    old = _old_tokenizer(dataset, options.from_tokenizer, storage)
    new, source = load_tokenizer(options.tokenizer, storage)
    recorded = {} if dataset.manifest is None else dict(dataset.manifest.options)
    old_ends = recorded_ends(recorded)
    new_ends, has_template = _new_ends(new, bool(recorded.get("template")), old_ends, options)
    job = RetokenizeJob(path, storage, old, new, old_ends, new_ends.added)
    with ExitStack() as opened:
        writer = opened.enter_context(
            flat_tokens.Writer(options.output, new, layout=layout, overwrite=options.overwrite)
        )
        pool = opened.enter_context(
            TaskPool(open_engine(engine_of(options, available_threads()), lambda _: None))
        )

        def put(data: bytes) -> str:
            prefix, folder = f"{options.output.name}.job-", options.output.absolute().parent
            file = opened.enter_context(tempfile.NamedTemporaryFile(prefix=prefix, dir=folder))
            file.write(data)
            file.flush()
            return file.name

        writer.tokenizer = {**(writer.tokenizer or {}), **source}
        writer.sources = [{"path": name, "kind": "dataset", "tokenizer": dataset.tokenizer_record}]
        writer.options = {**new_ends.added.recorded(), **new_ends.recorded()}
        writer.options |= {"template": True} if has_template else {}
        documents = sum(dataset[split].seq_count for split in SPLITS)  # more workers would have no work
        key = hand_out(pool.engine, max(1, documents), job, put, storage)
        for split in SPLITS:
            for ids, ends in _in_order(batches_of(dataset[split], split), pool, key):
                writer.add_many(split, ids, ends)
    return writer.written


def _in_order(batches: Iterator[Documents], pool: TaskPool, key: JobKey) -> Iterator[Batch]:
    """Yield the result of each batch, in order. At most `window` batches are in flight or wait for their turn."""
    window = 2 * pool.engine.worker_count
    numbered, finished = zip(count(), batches, strict=False), dict[int, Batch]()
    for following in count():
        while following not in finished:
            for number, batch in islice(numbered, window - len(pool) - len(finished)):
                pool.submit(number, partial(str, batch), retokenize_batch, batch, key)
            if not len(pool):
                return
            finished.update(pool.done())
        yield finished.pop(following)


def _old_tokenizer(dataset: Dataset, given: str | None, storage: Mapping[str, str]) -> Tokenizer:
    """Return the tokenizer of the old IDs. Raise BadInput if it is not the one that the manifest names.

    given: its path, None for the tokenizer that the dataset includes.
    """
    known, name = dataset.tokenizer_record or {}, printable(str(dataset.path))
    if given is None:
        if dataset.tokenizer_path is None:
            raise UsageError(f"{name}: does not include its tokenizer. Pass it as --from-tokenizer.")
        return load_tokenizer(str(dataset.tokenizer_path), storage, known.get("sha256"))[0]
    tokenizer, source = load_tokenizer(given, storage)
    expected = known.get("fingerprint"), known.get("source_sha256")
    if known and expected[0] != tokenizer.fingerprint() and expected[1] != source["source_sha256"]:
        raise BadInput(
            f"{printable(given)}: not the tokenizer of {name} (fingerprint "
            f"{printable(str(expected[0]))}). Leave --from-tokenizer out to use the dataset's own."
        )
    return tokenizer


def _new_ends(
    new: Tokenizer, has_template: bool, old: EndTokens, options: Namespace
) -> tuple[DocumentEnds, bool]:
    """Return the new end tokens, and whether they come from the new tokenizer's template.

    Without options, a dataset with the tokens of its template gets the tokens of the new template, and any other
    dataset keeps the texts of its end tokens.
    """
    template, given = post_processor_ends(new), (options.prepend_token, options.append_token)
    if has_template and given == (None, None):
        return DocumentEnds(template, template), True
    chosen = list(end_tokens(new, *(None if token == "none" else token for token in given)))
    for side, name in enumerate(("prepend", "append")):
        if given[side] is None:
            for end in old[side]:
                if end.text not in new.special_tokens:
                    raise UsageError(
                        f"--{name}-token: must be given, because {printable(repr(end.text))} ({end.id}), which the "
                        f"dataset adds to each document, is not a special token of {printable(options.tokenizer)}. "
                        "Pass another token or none."
                    )
            chosen[side] = tuple(EndToken(new.special_tokens[end.text], end.text) for end in old[side])
    return DocumentEnds(EndTokens(*chosen), template), False
