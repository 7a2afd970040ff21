"""One run: batches of the old dataset are tasks, and their results are written in order, verified and published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path

import flat_tokens
from bpe import _core
from bpe.end_tokens import EndToken, EndTokens, end_tokens, post_processor_ends
from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds, recorded_ends
from convert.driver.finish import save_tokenizer
from convert.driver.tokenizers import load_tokenizer
from convert.errors import BadInput, UsageError, printable
from convert.retokenize.batch import Documents, RetokenizeJob, batches_of, retokenize_batch
from flat_tokens import ArrayLayout, Dataset
from flat_tokens.dataset_writer import Block, SplitWriter, WrittenSplit
from flat_tokens.format import SPLITS
from flat_tokens.storage.existing_output import not_ours
from flat_tokens.unfinished import Unfinished, check_apart
from flat_tokens.verify import verify_dataset
from flat_tokens.writer import write_root
from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.job import JobKey, hand_out
from tokenmill.engines.tasks import TaskPool
from tokenmill.stores import is_url

MAX_TASKS = 4096  # workers beyond this number would be of no use


@dataclass(frozen=True)
class RetokenizeOptions:
    """The options of one run.

    dataset: path or URL of the old dataset.
    from_tokenizer: the tokenizer of its IDs; None: the one that it includes.
    append, prepend: the new end tokens by text or ID, "none" for no token; None: the same texts as in the dataset.
    engine: where the batches are encoded.
    """

    dataset: str
    tokenizer: str
    output: Path
    from_tokenizer: str | None = None
    append: str | None = None
    prepend: str | None = None
    engine: EngineOptions = field(default_factory=EngineOptions)
    layout: ArrayLayout = field(default_factory=ArrayLayout)
    overwrite: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)


def retokenize(options: RetokenizeOptions) -> dict[str, WrittenSplit]:
    """Write the new dataset and return its splits. Nothing is left of a run that fails."""
    check_apart(options.output, [options.dataset, options.tokenizer, options.from_tokenizer])
    if not is_url(options.dataset) and Path(options.dataset).resolve() in options.output.resolve().parents:
        raise UsageError(
            f"--output: must not be inside the input {printable(options.dataset)} "
            f"(got {printable(str(options.output))}). Choose another path."
        )
    dataset = flat_tokens.open(options.dataset, storage_options=options.storage)
    name = printable(str(dataset.path))
    if any(dataset[split].loss_mask is not None for split in SPLITS):
        raise UsageError(f"{name}: has a loss mask, which cannot be mapped. Convert the original text again.")
    old = _old_tokenizer(dataset, options)
    new, source = load_tokenizer(options.tokenizer, options.storage)
    manifest = dataset.manifest
    recorded = {} if manifest is None else dict(manifest.options)
    old_ends = recorded_ends(recorded)
    new_ends, has_template = _new_ends(new, bool(recorded.get("template")), old_ends, options)
    path = options.dataset if is_url(options.dataset) else str(Path(options.dataset).absolute())
    job = RetokenizeJob(path, dict(options.storage), old, new, old_ends, new_ends.added)
    with ExitStack() as opened:
        unfinished = opened.enter_context(Unfinished(options.output, options.overwrite, not_ours))
        engine = open_engine(options.engine, lambda _: None)
        pool = opened.enter_context(TaskPool(engine))
        root, job_file = unfinished.folder, unfinished.folder / "job"
        record, facts = save_tokenizer(new, root, source)

        def put(data: bytes) -> str:
            job_file.write_bytes(data)
            return str(job_file.absolute())

        batches = (batch for split in SPLITS for batch in batches_of(dataset[split], split))
        key = hand_out(engine, max(1, sum(1 for _ in islice(batches, MAX_TASKS))), job, put, options.storage)
        written: dict[str, WrittenSplit] = {}
        for split in SPLITS:
            writer = SplitWriter(root, split, options.layout)
            for block in _in_order(batches_of(dataset[split], split), pool, key):
                writer.add(block)
            written[split] = writer.end()
        job_file.unlink(missing_ok=True)
        empty = {split: found.empty_documents for split, found in written.items()}
        write_root(
            root,
            {split: found.record for split, found in written.items()},
            [record, *(file for found in written.values() for file in found.files)],
            options.layout,
            tokenizer=facts,
            sources=[{"path": name, "kind": "dataset", "tokenizer": dataset.tokenizer_record}],
            options={
                **new_ends.added.recorded(),
                **new_ends.recorded(),
                **({"template": True} if has_template else {}),
                "documents": {
                    split: found.record.seq_count + empty[split] for split, found in written.items()
                },
                "empty_documents": empty,
            },
            versions={"tokenmill": _core.__version__},
        )
        verify_dataset(root.absolute(), engine).require_ok()
        unfinished.publish()
    return written


def _in_order(batches: Iterator[Documents], pool: TaskPool, key: JobKey) -> Iterator[Block]:
    """Yield the result of each batch, in order. At most `window` batches are in flight or wait for their turn."""
    window = 2 * pool.engine.worker_count
    numbered, finished = zip(count(), batches, strict=False), dict[int, Block]()
    for following in count():
        while following not in finished:
            for number, batch in islice(numbered, window - len(pool) - len(finished)):
                pool.submit(number, partial(str, batch), retokenize_batch, batch, key)
            if not len(pool):
                return
            finished.update(pool.done())
        yield finished.pop(following)


def _old_tokenizer(dataset: Dataset, options: RetokenizeOptions) -> Tokenizer:
    """Return the tokenizer of the old IDs. Raise BadInput if it is not the one that the manifest names."""
    known, name = dataset.tokenizer_record or {}, printable(str(dataset.path))
    if options.from_tokenizer is None:
        if dataset.tokenizer_path is None:
            raise UsageError(f"{name}: does not include its tokenizer. Pass it as --from-tokenizer.")
        return load_tokenizer(str(dataset.tokenizer_path), options.storage, known.get("sha256"))[0]
    tokenizer, source = load_tokenizer(options.from_tokenizer, options.storage)
    digests = tokenizer.fingerprint(), source["source_sha256"]
    if known and digests[0] != known.get("fingerprint") and digests[1] != known.get("source_sha256"):
        given, digest = printable(options.from_tokenizer), printable(str(known.get("fingerprint")))
        raise BadInput(
            f"{given}: not the tokenizer of {name} (fingerprint {digest}). Leave --from-tokenizer out to use the "
            "dataset's own."
        )
    return tokenizer


def _new_ends(
    new: Tokenizer, has_template: bool, old: EndTokens, options: RetokenizeOptions
) -> tuple[DocumentEnds, bool]:
    """Return the new end tokens, and whether they come from the new tokenizer's template.

    Without options, a dataset with the tokens of its template gets the tokens of the new template, and any other
    dataset keeps the texts of its end tokens.
    """
    template = post_processor_ends(new)
    given = (options.prepend, options.append)
    if has_template and given == (None, None):
        return DocumentEnds(template, template), True
    chosen = list(end_tokens(new, *(None if token == "none" else token for token in given)))
    for side, name in enumerate(("prepend", "append")):
        if given[side] is not None:
            continue
        for end in old[side]:
            if end.text not in new.special_tokens:
                raise UsageError(
                    f"--{name}-token: must be given, because {printable(repr(end.text))} ({end.id}), which the dataset "
                    f"adds to each document, is not a special token of {printable(options.tokenizer)}. Pass another "
                    "token or none."
                )
        chosen[side] = tuple(EndToken(new.special_tokens[end.text], end.text) for end in old[side])
    return DocumentEnds(EndTokens(*chosen), template), False
