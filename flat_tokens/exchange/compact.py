"""The parts of a version written as one dataset, for plain zarr readers and for another layout."""

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
from flat_tokens.sources import open_places
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
    """Write the sequences that `dataset` shows, in its order, as one dataset at `output`, verified.

    layout: None for that of the dataset, or of its first part. Tokenizer and options are those of the first part,
    sources and counts those of all; it is told where sequences begin in their sources if each part tells it. One
    thread; memory for two units of writing. ArgumentError, for a view too, RefusedError; DatasetError for a dataset
    that is damaged or has no manifest. Nothing is left of a run that fails."""
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
    places = {split: [open_places(part.path, split, part.opened) for part in parts] for split in SPLITS}
    has_places = not any(found is None for of_split in places.values() for found in of_split)
    with Unfinished(output, overwrite, not_ours) as unfinished:
        root, written = unfinished.folder, {}
        files = list(_tokenizer(dataset, root))
        for split in SPLITS:
            writer = SplitWriter(root, split, layout, dataset[split].loss_mask is not None, has_places)
            for block in blocks_of(dataset[split]):
                writer.add(block)
            for elements in places[split] if has_places else ():
                assert elements is not None
                for _, values in elements.blocks(0, len(elements)):
                    writer.add_places(values)
            written[split] = writer.end()
            files += written[split].files
        write_root(
            root,
            {split: found.record for split, found in written.items()},
            files,
            layout,
            tokenizer=first.tokenizer,
            sources=(source for manifest in manifests for source in manifest.sources),
            options={**first.options, **_counts(manifests), **_facts(first, layout, has_places)},
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


def _facts(manifest: Manifest, layout: ArrayLayout, has_places: bool) -> Mapping[str, Any]:
    """What the arrays are now, where the options say it."""
    said = {
        "zarr_format": layout.zarr_format,
        "compression": layout.compression,
        "source_places": "yes" if has_places else "no",
    }
    return {name: value for name, value in said.items() if name in manifest.options}
