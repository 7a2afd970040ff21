"""Several datasets written as one, or a dataset in another layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from flat_tokens.errors import ArgumentError, damaged, printable
from flat_tokens.exchange.blocks import blocks_of
from flat_tokens.exchange.dataset_writer import SplitWriter, WrittenSplit
from flat_tokens.exchange.unfinished import Unfinished, check_apart
from flat_tokens.format import SPLITS
from flat_tokens.opening import Dataset
from flat_tokens.storage.entries import LARGEST_TOKENIZER_BYTES
from flat_tokens.storage.existing_output import not_ours
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, Manifest
from flat_tokens.storage.places import read_whole
from flat_tokens.verify import verify_dataset
from flat_tokens.writer import write_file, write_root

# Of the options of parts, those that count what is in them.
_COUNTS = ("documents", "empty_documents", "replaced", "skipped", "blank_lines", "with_special_tokens")


def compact(
    dataset: Dataset, output: Path, layout: ArrayLayout | None = None, overwrite: bool = False
) -> dict[str, WrittenSplit]:
    """Write the sequences of `dataset`, in order, as one verified dataset at `output`.

    layout: None for the one of the (first) dataset. Tokenizer and options are those of the first dataset, sources and
    counts those of all. One thread; memory for two units of writing. Raise ArgumentError, also for a view,
    RefusedError, and DatasetError for a dataset that is damaged or has no manifest. A failed run leaves nothing."""
    parts = dataset.parts or (dataset,)
    check_apart(output, [dataset.path])
    manifests = [found for part in parts if (found := part.manifest) is not None]
    if len(manifests) < len(parts):
        raise damaged(dataset.path, "compacting needs manifest.json, and it is missing")
    first = manifests[0]
    for split in SPLITS:
        if dataset[split].seq_count != sum(manifest.splits[split].seq_count for manifest in manifests):
            raise ArgumentError(
                f"{printable(str(dataset.path))}/{split}: only whole datasets can be compacted, not selected "
                "sequences. Use export for selected sources."
            )
    layout = ArrayLayout(**first.layout) if layout is None else layout
    with Unfinished(output, overwrite, not_ours) as unfinished:
        root, written = unfinished.folder, {}
        files = list(_tokenizer(dataset, root))
        for split in SPLITS:
            writer = SplitWriter(root, split, layout, dataset[split].loss_mask is not None)
            for block in blocks_of(dataset[split]):
                writer.add(block)
            written[split] = writer.end()
            files += written[split].files
        write_root(
            root,
            {split: found.record for split, found in written.items()},
            files,
            layout,
            tokenizer=first.tokenizer,
            sources=dataset.sources(),
            options={**first.options, **_counts(manifests), **_facts(first, layout)},
            versions=first.versions,
        )
        verify_dataset(root).require_ok()
        unfinished.publish()
    return written


def _tokenizer(dataset: Dataset, root: Path) -> Iterator[FileRecord]:
    path = dataset.tokenizer_path
    if path is not None:
        yield write_file(root, path.name, read_whole(path, LARGEST_TOKENIZER_BYTES))


def _counts(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """{"documents": {"train": 3}} and {"documents": {"train": 4}} -> {"documents": {"train": 7}}."""
    total: dict[str, Any] = {}
    for manifest in manifests:
        for name in _COUNTS:
            value = manifest.options.get(name)
            if isinstance(value, int):
                total[name] = total.get(name, 0) + value
            elif isinstance(value, dict):
                sums = total.setdefault(name, {})
                for key, count in value.items():
                    sums[key] = sums.get(key, 0) + count
    return total


def _facts(manifest: Manifest, layout: ArrayLayout) -> Mapping[str, Any]:
    """What the arrays are now, where the options say it."""
    said = {
        "zarr_format": layout.zarr_format,
        "compression": layout.compression,
    }
    return {name: value for name, value in said.items() if name in manifest.options}
