"""The end of a conversion: metadata and manifest are written, all files are read back, and the counts summed up.

The bytes of the manifest follow from inputs, tokenizer, options and version alone. Workers, text chunks, machine and
time have no influence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

from bpe import _core
from bpe.end_tokens import usual_end
from bpe.tokenizer import Tokenizer
from convert.cli.summary import Summary, warnings_of
from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.driver.schedule import EncodeAndMerge
from convert.errors import BrokenInvariant, StorageError, WorkerLost, with_sentence
from convert.shards.intake import QUARANTINE_NAME, quarantine_lines
from flat_tokens.errors import DatasetError
from flat_tokens.sources import SOURCE_COUNTS
from flat_tokens.storage.manifest import MANIFEST_NAME, FileRecord, SplitRecord, read_manifest
from flat_tokens.verify import verify_dataset
from flat_tokens.writer import Destination, create_split, write_file, write_root
from tokenmill.cli.progress import Stage
from tokenmill.inputs.sources import recorded_path
from tokenmill.stores.durability import sync_in_background

TOKENIZER_NAME = "tokenizer.json"


def save_tokenizer(
    tokenizer: Tokenizer, dataset: Destination, source: Mapping[str, str]
) -> tuple[FileRecord, dict[str, str]]:
    """Write tokenizer.json into the dataset. Return the record of the file, and the manifest's facts about it.

    source: facts on the origin of the tokenizer.
    """
    data = tokenizer.canonical_json
    sha256 = hashlib.sha256(data).hexdigest()
    facts = {"path": TOKENIZER_NAME, "sha256": sha256, "fingerprint": sha256, **source}
    return write_file(dataset, TOKENIZER_NAME, data), facts


def write_metadata(
    context: Context, ledger: Ledger, tokenizer: tuple[FileRecord, Mapping[str, str]]
) -> list[FileRecord]:
    """Write all files except the arrays' data, the manifest last. Return the records of all files.

    tokenizer: the result of `save_tokenizer`.
    """
    ledger.check_whole()
    workspace, layout, has_mask = context.workspace, context.layout, context.options.has_mask
    files, splits = [tokenizer[0]], {}
    if any(file.size for file, _ in ledger.quarantine):
        lines = quarantine_lines(workspace.shard_store, context.plan.sources, ledger.quarantine)
        files.append(write_file(workspace.dataset, QUARANTINE_NAME, lines))
    for split, counts in ledger.counts.items():
        sizes = counts.tokens, counts.sequences, counts.max_token_id
        files += create_split(workspace.dataset, split, *sizes, layout, has_mask=has_mask)
        splits[split] = SplitRecord(*sizes, counts.tokens - counts.not_trained if has_mask else None)
    arrays = [record for written in ledger.files for record in written.records()]
    write_root(
        workspace.dataset,
        splits,
        [*files, *arrays],
        layout,
        tokenizer=tokenizer[1],
        sources=_source_facts(context, ledger),
        options=_recorded_options(context, ledger),
        versions={"tokenmill": _core.__version__},
    )
    return [*files, *arrays]


def _recorded_options(context: Context, ledger: Ledger) -> dict[str, Any]:
    intake, counts = ledger.intake, ledger.counts
    facts = {
        **context.recorded,
        **context.ends.recorded(),
        "on_error": context.options.on_error,
        "documents": {split: own.documents for split, own in counts.items()},
        "empty_documents": {split: own.empty for split, own in counts.items()},
        "replaced": intake.replaced,
        "skipped": intake.skipped,
        "blank_lines": intake.blank,
        "with_special_tokens": intake.with_special,
    }
    if ledger.unreadable:
        facts["unreadable_files"] = len(ledger.unreadable)
    if intake.messages:
        facts |= {"messages": intake.messages, "dropped_messages": intake.dropped}
    return facts


def _source_facts(context: Context, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield the manifest's facts about each source, one at a time: there may be a million."""
    for number, (source, counts) in enumerate(zip(context.plan.sources, ledger.sources, strict=True)):
        facts = {"path": recorded_path(source.name), "bytes": source.size_bytes}
        if source.version:
            facts["version"] = source.version
        if number in ledger.unreadable:
            facts["unreadable"] = ledger.unreadable[number]
        yield facts | {
            "split": source.split or "by hash",
            "kind": source.kind.name,
            **dict(zip(SOURCE_COUNTS, counts.tolist(), strict=True)),
        }


def verify(context: Context, ledger: Ledger, files: list[FileRecord], watch: Callable[[Stage], None]) -> None:
    """Read the dataset back, wait until the disk has it, and compare the counts. Raise StorageError for damage."""
    dataset, failed = context.workspace.dataset, f"{context.workspace.root}: verification failed"
    stage = context.progress.stage("verify", sum(file.bytes for file in files), watch)

    def advance(done_bytes: int, _: int) -> None:
        # The total does not include the manifest.
        stage.advance(min(done_bytes, stage.total_bytes) - stage.done_bytes)

    syncing = sync_in_background(dataset)  # while verification reads the files from memory
    with stage:
        try:
            whole = dataset.absolute() if isinstance(dataset, Path) else dataset
            report = verify_dataset(whole, context.engine, advance)
            # Once more, because verification read it first. On a store, `publish` requires the object that was written.
            if isinstance(dataset, Path) and read_manifest(dataset) is None:
                raise DatasetError(f"{MANIFEST_NAME}: missing")
        except BrokenExecutor as error:
            message = with_sentence(f"verification: {error}", "Run the same command to resume.")
            raise WorkerLost(message) from error
        except DatasetError as error:  # not an error of the input, which DatasetError would report
            raise StorageError(with_sentence(f"{failed}: {error}", "Run the same command again.")) from error
    syncing.result()
    if not report.ok:
        advice = "Check the disk, then run the same command again."
        raise StorageError(with_sentence(f"{failed}: {report.problems[0]}", advice))
    tokens = sum(counts.tokens for counts in ledger.counts.values())
    sequences = sum(counts.sequences for counts in ledger.counts.values())
    if (report.token_count, report.seq_count) != (tokens, sequences):
        raise BrokenInvariant(
            f"verification: read {report.token_count} tokens in {report.seq_count} sequences, but encoded "
            f"{tokens} in {sequences}"
        )


def summarize(context: Context, work: EncodeAndMerge, files: list[FileRecord]) -> Summary:
    """Return the summary, and show warnings about the result."""
    ledger, sources = work.ledger, context.plan.sources
    summary = Summary(
        output=context.options.output,
        source_count=len(sources),
        source_bytes=context.plan.total_bytes,
        disk_bytes=sum(file.bytes for file in files),
        array_bytes=sum(file.bytes for written in ledger.files for file in written.records()),
        splits=ledger.counts,
        intake=ledger.intake,
        text_chunks=context.plan.chunk_count,
        shards=ledger.shard_count,
        reused_shards=work.reused,
        workers=context.engine.worker_count,
        seconds=context.clock.seconds,
        worker_seconds=work.seconds,
        first_words=context.tokenizer.decode(list(ledger.intake.first_ids)),
        unreadable=tuple(error for _, error in sorted(ledger.unreadable.items())),
        quarantine=QUARANTINE_NAME if any(file.path == QUARANTINE_NAME for file in files) else "",
        ends=context.ends,
        has_mask=context.options.has_mask,
        usual_end=usual_end(context.tokenizer),
        of_chats=context.options.messages_field is not None,
    )
    for warning in warnings_of(context.options, sources, summary, context.tokenizer.special_tokens):
        context.progress.note(f"warning: {warning}")
    return summary
