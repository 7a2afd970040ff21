"""What a dataset remembers of its making: the tokenizer itself, the sources with their digests, the options.

Nothing here may depend on workers, text chunks, machine or time: the manifest's bytes follow from inputs, tokenizer,
options and version alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from bpe import _core
from bpe.errors import EnvironmentFailure
from bpe.tokenizer import Tokenizer
from convert.errors import naming
from convert.intake import QUARANTINE_NAME, quarantine_lines, total_intake
from convert.plan import Plan
from convert.shards.shard import SPLITS, ShardRecord
from convert.summary import total_counts
from corpus.digest import BLOCK_BYTES, DIGEST_NAME, each_digest, source_digest
from corpus.sources import recorded_path
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, Manifest, SplitRecord
from flat_tokens.writer import write_root

TOKENIZER_NAME = "tokenizer.json"


def save_tokenizer(
    tokenizer: Tokenizer, dataset: Path, source: Mapping[str, str]
) -> tuple[FileRecord, dict[str, str]]:
    """Put the tokenizer beside the data, as tokenizer.json; the file's record, and what the manifest says of it.

    source: what `load_tokenizer` says of where it is from.
    """
    path = dataset / TOKENIZER_NAME
    try:
        tokenizer.save(path)
    except EnvironmentFailure as failure:
        error = failure.__context__
        if isinstance(error, OSError) and error.errno:  # told like all others, with what to do about it
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    data = path.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    facts = {
        "path": TOKENIZER_NAME,
        "sha256": sha256,
        "fingerprint": sha256,  # which is that of the bytes that `save` writes
        **source,
    }
    return FileRecord(TOKENIZER_NAME, len(data), file_digest((data,))), facts


def write_quarantine(dataset: Path, shards: Path, plan: Plan, records: list[ShardRecord]) -> list[FileRecord]:
    """Put the quarantined records of all chunks beside the data, as quarantine.jsonl; its record, none without any."""
    if not any(record.intake.quarantine_bytes >= 0 for record in records):
        return []
    path = dataset / QUARANTINE_NAME
    size = 0
    counts = ((record.id, record.intake) for record in records)

    def written() -> Iterator[bytes]:
        nonlocal size
        for line in quarantine_lines(shards, plan.sources, counts):
            size += file.write(line)
            yield line

    with naming(path), path.open("wb") as file:
        digits = file_digest(written())
    return [FileRecord(QUARANTINE_NAME, size, digits)]


def write_manifest(
    dataset: Path,
    plan: Plan,
    records: list[ShardRecord],
    files: list[FileRecord],
    layout: ArrayLayout,
    tokenizer: Mapping[str, str],
    options: Mapping[str, Any],
) -> Manifest:
    """Write the dataset's root and manifest, the last files of all: what it holds and what it was made from.

    tokenizer: what `save_tokenizer` says of it. options: of the conversion, as the manifest keeps them.
    """
    intake = total_intake(record.intake for record in records)
    splits = {}
    for split in SPLITS:
        counts = total_counts(records, split)
        splits[split] = SplitRecord(counts.tokens, counts.sequences, counts.max_token_id)
    return write_root(
        dataset,
        splits,
        files,
        layout,
        tokenizer=tokenizer,
        sources=_source_facts(plan, records),
        options={
            **options,
            "documents": {split: total_counts(records, split).documents for split in SPLITS},
            "empty_documents": {split: total_counts(records, split).empty for split in SPLITS},
            "replaced": sum(record.replaced for record in records),
            "skipped": intake.skipped,
            "blank_lines": intake.blank,
            "with_special_tokens": intake.with_special,
        },
        versions={"tokenmill": _core.__version__},
    )


def _source_facts(plan: Plan, records: list[ShardRecord]) -> Iterator[dict[str, Any]]:
    """What the manifest says of each source; one at a time, since there may be a million."""
    # In the order of the blocks, as the records are in that of the text chunks.
    digests = chain.from_iterable(each_digest(record.digests) for record in records)
    for source in plan.sources:
        content = {"version": source.version}
        if not source.version:
            own = b"".join(islice(digests, -(-source.size_bytes // BLOCK_BYTES)))
            content = {"digest": source_digest(own), "digest_of": DIGEST_NAME}
        yield {
            "path": recorded_path(source.name),
            "bytes": source.size_bytes,
            **content,
            "split": source.split or "by hash",
            "kind": source.kind.name,
        }
