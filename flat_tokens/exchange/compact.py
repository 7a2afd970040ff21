"""Copies a dataset into another layout."""

from __future__ import annotations

from pathlib import Path

from flat_tokens.dataset_writer import TOKENIZER_NAME, Writer, WrittenSplit
from flat_tokens.errors import ArgumentError, damaged, printable
from flat_tokens.exchange.blocks import blocks_of
from flat_tokens.format import LARGEST_TOKEN_ID, SPLITS
from flat_tokens.opening import Dataset
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.unfinished import check_apart


def compact(
    dataset: Dataset, output: Path, layout: ArrayLayout | None = None, overwrite: bool = False
) -> dict[str, WrittenSplit]:
    """Write a verified copy of a dataset, with its tokenizer, sources and options.

    layout: layout of the copy (default: as in `dataset`).

    Raise ArgumentError if sequences are missing because `dataset` is a selection, and DatasetError if it is damaged or
    has no manifest. Nothing is left of a run that fails.
    """
    check_apart(output, [dataset.path])
    manifest = dataset.manifest
    if manifest is None:
        raise damaged(dataset.path, "compacting needs manifest.json, and it is missing")
    for split in SPLITS:
        if dataset[split].seq_count != manifest.splits[split].seq_count:
            raise ArgumentError(
                f"{printable(str(dataset.path))}/{split}: only whole datasets can be compacted, not selected "
                "sequences. Use export for selected sources."
            )
    layout = ArrayLayout(**manifest.layout) if layout is None else layout
    facts = {"zarr_format": layout.zarr_format, "compression": layout.compression}
    with Writer(
        output,
        dataset.tokenizer_path,
        layout=layout,
        has_mask=any(dataset[split].loss_mask is not None for split in SPLITS),
        sources=dataset.sources(),
        options={**manifest.options, **{name: facts[name] for name in facts if name in manifest.options}},
        overwrite=overwrite,
    ) as writer:
        writer.max_token_id = LARGEST_TOKEN_ID
        if manifest.tokenizer is not None:
            writer.tokenizer = {**manifest.tokenizer, "path": TOKENIZER_NAME}
        for split in SPLITS:
            for ids, ends, trained in blocks_of(dataset[split]):
                assert ends is not None
                writer.add_many(split, ids, ends, trained)
    return writer.written
