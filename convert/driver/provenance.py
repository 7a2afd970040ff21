"""What a dataset remembers of its making: the tokenizer itself, the sources with their digests, the options.

Nothing here may depend on workers, text chunks, machine or time: the manifest's bytes follow from inputs, tokenizer,
options and version alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bpe import _core
from bpe.errors import EnvironmentFailure
from bpe.tokenizer import Tokenizer
from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.planning.plan import Plan
from convert.shards.intake import QUARANTINE_NAME, quarantine_lines
from flat_tokens.sources import SOURCE_COUNTS
from flat_tokens.storage.manifest import FileRecord, Manifest, SplitRecord
from flat_tokens.writer import Destination, write_file, write_root
from tokenmill.inputs.digest import BLOCK_BYTES, DIGEST_BYTES, DIGEST_NAME, source_digest
from tokenmill.inputs.kinds import FORMATS
from tokenmill.inputs.sources import recorded_path

TOKENIZER_NAME = "tokenizer.json"


def save_tokenizer(
    tokenizer: Tokenizer, dataset: Destination, folder: Path, source: Mapping[str, str]
) -> tuple[FileRecord, dict[str, str]]:
    """Put the tokenizer beside the data, as tokenizer.json; the file's record, and what the manifest says of it.

    folder: of this machine, where it is written first. source: what `load_tokenizer` says of where it is from.
    """
    path = folder / TOKENIZER_NAME
    try:
        tokenizer.save(path)
    except EnvironmentFailure as failure:
        error = failure.__context__
        if isinstance(error, OSError) and error.errno:  # told like all others, with what to do about it
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    data = path.read_bytes()
    path.unlink(missing_ok=True)
    sha256 = hashlib.sha256(data).hexdigest()
    facts = {
        "path": TOKENIZER_NAME,
        "sha256": sha256,
        "fingerprint": sha256,  # which is that of the bytes that `save` writes
        **source,
    }
    return write_file(dataset, TOKENIZER_NAME, data), facts


def write_quarantine(context: Context, ledger: Ledger) -> list[FileRecord]:
    """Put the quarantined records of all chunks beside the data, as quarantine.jsonl; its record, none without any."""
    if not any(intake.quarantine_bytes >= 0 for _, intake in ledger.intakes):
        return []
    workspace = context.workspace
    lines = quarantine_lines(workspace.shard_store, context.plan.sources, ledger.intakes)
    return [write_file(workspace.dataset, QUARANTINE_NAME, lines)]


def write_manifest(
    context: Context, ledger: Ledger, files: list[FileRecord], tokenizer: Mapping[str, str]
) -> Manifest:
    """Write the dataset's root and manifest, the last files of all: what it holds and what it was made from.

    tokenizer: what `save_tokenizer` says of it.
    """
    intake, counts, has_mask = ledger.intake, ledger.counts, context.options.has_mask
    return write_root(
        context.workspace.dataset,
        {
            split: SplitRecord(
                own.tokens,
                own.sequences,
                own.max_token_id,
                own.tokens - own.not_trained if has_mask else None,
            )
            for split, own in counts.items()
        },
        files,
        context.layout,
        tokenizer=tokenizer,
        sources=_source_facts(context.plan, ledger),
        options={
            **context.recorded,
            "on_error": context.options.on_error,
            "documents": {split: own.documents for split, own in counts.items()},
            "empty_documents": {split: own.empty for split, own in counts.items()},
            "replaced": ledger.replaced,
            "skipped": intake.skipped,
            **({"unreadable_files": len(ledger.unreadable)} if ledger.unreadable else {}),
            "blank_lines": intake.blank,
            "with_special_tokens": intake.with_special,
            **({"messages": intake.messages, "dropped_messages": intake.dropped} if intake.messages else {}),
        },
        versions={"tokenmill": _core.__version__},
    )


def _source_facts(plan: Plan, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """What the manifest says of each source; one at a time, since there may be a million."""
    digests = ledger.digests
    stop = 0
    for number, (source, counts) in enumerate(zip(plan.sources, ledger.sources, strict=True)):
        content = {} if source.digest else {"version": source.version}
        if not source.version:
            start, stop = stop, stop + -(-source.size_bytes // BLOCK_BYTES) * DIGEST_BYTES
            own = bytes(digests[start:stop])
            content = {"digest": source_digest(own), "digest_of": DIGEST_NAME}
            if source.size_bytes and not any(own):  # of a file that could not be opened
                content = {}
        if source.is_left_out:
            continue
        if number in ledger.unreadable:
            content["unreadable"] = ledger.unreadable[number]
        yield {
            "path": recorded_path(source.name),
            "bytes": source.size_bytes,
            **content,
            "split": source.split or "by hash",
            "kind": source.kind.name,
            "place": "row" if FORMATS[source.kind.format].has_rows else "byte",
            **dict(zip(SOURCE_COUNTS, counts.tolist(), strict=True)),
        }
