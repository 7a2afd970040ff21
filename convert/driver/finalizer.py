"""The end of a conversion: metadata and manifest, all files read back, and what it came to.

Imported while the workers encode, as all that the beginning does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import BrokenExecutor
from itertools import chain
from pathlib import Path

from bpe.end_tokens import usual_end
from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds
from convert.driver.context import Context
from convert.driver.provenance import save_tokenizer, write_manifest, write_quarantine
from convert.driver.schedule import EncodeAndMerge
from convert.errors import BrokenInvariant, StorageError, WorkerLost, with_sentence
from convert.shards.intake import QUARANTINE_NAME
from convert.shown.remarks import remarks
from convert.shown.summary import Summary
from flat_tokens.errors import DatasetError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import MANIFEST_NAME, FileRecord
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.verify import verify_dataset
from flat_tokens.writer import create_split

# Of the files whose content is known from when they were written, one in so many is decoded all the same: so the
# codec is not taken at its word alone.
DECODED_SHARE = 32
DECODED_TOKENS = 1 << 23  # about, or more; all, where there are not twice as many


class Finalizer:
    """What is left to do of one conversion: `write`, `verify`, and when the dataset has its name, `summary`.

    Made while the workers encode: the tokenizer is put beside the data then. source: what the manifest says of
    where it is from.
    """

    def __init__(
        self, context: Context, tokenizer: Tokenizer, ends: DocumentEnds, source: Mapping[str, str]
    ) -> None:
        self._context, self._tokenizer, self._ends = context, tokenizer, ends
        self._tokenizer_file, self._tokenizer_facts = save_tokenizer(
            tokenizer, context.workspace.dataset, context.workspace.shards, source
        )
        self._quarantine: list[FileRecord] = []
        self._files: list[FileRecord] = []

    def write(self, work: EncodeAndMerge) -> None:
        """Write all but the arrays' data, the manifest last, when documents in are documents out."""
        context, ledger = self._context, work.ledger
        workspace = context.workspace
        ledger.check_whole()
        self._quarantine = write_quarantine(context, ledger)
        arrays = [record for files in ledger.files for record in files.records()]
        self._files = [self._tokenizer_file, *self._quarantine, *arrays]
        for split, counts in ledger.counts.items():  # how large the arrays are is known by now
            self._files += create_split(
                workspace.dataset,
                split,
                counts.tokens,
                counts.sequences,
                counts.max_token_id,
                context.layout,
                has_mask=context.options.has_mask,
            )
        # Of the sources, perhaps a million, nothing is kept.
        listed = write_manifest(context, ledger, self._files, self._tokenizer_facts).files
        # The arrays are on disk already, and the others go there while they are read back from memory.
        merged = {file.path for file in arrays}
        rest = [file.path for file in listed if file.path not in merged]
        context.syncer.add(workspace.on_disk([*rest, MANIFEST_NAME]))

    def verify(self, work: EncodeAndMerge) -> None:
        """State of the dataset what `flat_tokens verify` states, and wait until the disk has it; StorageError."""
        context, dataset = self._context, self._context.workspace.dataset
        stage = context.progress.stage("verify", sum(file.bytes for file in self._files))

        def advance(done_bytes: int, _: int) -> None:
            # The manifest is read too but not counted in the total; a bar beyond its end would lose its shape.
            stage.advance(min(done_bytes, stage.total_bytes) - stage.done_bytes)

        with stage:
            try:
                whole = dataset.absolute() if isinstance(dataset, Path) else dataset
                facts = known_facts(dict(chain.from_iterable(files.facts() for files in work.ledger.files)))
                report = verify_dataset(whole, context.engine, advance, facts)
            except BrokenExecutor as error:
                raise WorkerLost(
                    with_sentence(f"verification: {error}", "Run the same command to resume.")
                ) from error
            except DatasetError as error:  # not even to be opened: no fault of the input
                raise StorageError(
                    with_sentence(
                        f"{context.workspace.root}: verification failed: {error}",
                        "Run the same command again.",
                    )
                ) from error
        context.syncer.wait()  # a file that the disk did not take is gone, and this says why
        if not report.ok:
            raise StorageError(
                with_sentence(
                    f"{context.workspace.root}: verification failed: {report.problems[0]}",
                    "Check the disk, then run the same command again.",
                )
            )
        counts = work.ledger.counts.values()
        tokens, sequences = sum(own.tokens for own in counts), sum(own.sequences for own in counts)
        if (report.token_count, report.seq_count) != (tokens, sequences):
            raise BrokenInvariant(
                f"verification: read {report.token_count} tokens in {report.seq_count} sequences, but encoded "
                f"{tokens} in {sequences}"
            )

    def summary(self, work: EncodeAndMerge, seconds: dict[str, float]) -> Summary:
        """What it came to, and what a person should know of it. seconds: by stage."""
        context, ledger = self._context, work.ledger
        intake = ledger.intake
        summary = Summary(
            output=context.options.output,
            source_count=context.plan.source_count,
            source_bytes=context.plan.total_bytes - context.plan.sources.left_out()[1],
            disk_bytes=sum(file.bytes for file in self._files),
            array_bytes=sum(files.byte_count for files in ledger.files),
            splits=ledger.counts,
            has_mask=context.options.has_mask,
            replaced=intake.replaced,
            intake=intake,
            unreadable=tuple(error for _, error in sorted(ledger.unreadable.items())),
            first_words=self._tokenizer.decode(list(intake.first_ids)),
            quarantine=QUARANTINE_NAME if self._quarantine else "",
            ends=self._ends,
            without_checksums=_without_checksums(context.layout),
            usual_end=usual_end(self._tokenizer),
            of_chats=context.options.messages_field is not None,
            text_chunks=context.plan.chunk_count,
            shards=ledger.shard_count,
            reused_shards=work.reused,
            workers=context.engine.worker_count,
            seconds=seconds,
            worker_seconds=work.seconds,
        )
        sources = context.plan.sources
        for remark in remarks(context.options, sources, summary, self._tokenizer.special_tokens):
            context.progress.note(remark)
        return summary


def _without_checksums(layout: ArrayLayout) -> str:
    """What the summary calls a layout without checksums; nothing for others."""
    if layout.has_checksums:
        return ""
    return f"zarr format {layout.zarr_format} with compression {layout.compression}"


def known_facts(facts: Mapping[str, TokenFacts]) -> dict[str, TokenFacts]:
    """Those of the files that need not be decoded to be verified; the others are spread over all."""
    tokens = sum(known.token_count for known in facts.values())
    step = min(DECODED_SHARE, max(1, tokens // DECODED_TOKENS))
    return {path: known for number, (path, known) in enumerate(facts.items()) if number % step}
