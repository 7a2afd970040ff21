"""Rows of a tokenmill dataset for torchtitan's own Grain pipeline, which shuffles, mixes and shards them.

    config.dataloader = dataloader_of("corpus.zarr", row_len=2048)

Needs a torchtitan with torchtitan.components.data; 0.3.0 lacks it.
"""

from dataclasses import dataclass

import numpy as np
from torchtitan.components.data import (
    ConcatThenSplitPackingConfig,
    GrainDataLoader,
    SingleDatasetConfig,
    TextSequence,
)

import flat_tokens
from flat_tokens.grain import RowSource


class TokenRows(RowSource):
    """Row i of a split as a TextSequence."""

    def __getitem__(self, index):
        row = {name: values.astype(np.int64) for name, values in super().__getitem__(index).items()}
        return TextSequence(input_ids=row["inputs"], labels=row["targets"], positions=row["positions"])


@dataclass(frozen=True, kw_only=True)
class TokenRowsConfig:
    """A SourceConfig of torchtitan. row_len: tokens per row, at most its max_context_length."""

    path: str
    row_len: int

    def build(self, *, dataset_iteration_policy):
        train = flat_tokens.open(self.path).train
        return TokenRows(train, self.row_len, fields=("inputs", "targets", "positions"))


def dataloader_of(path, row_len):
    """The configuration of a data loader that joins rows into microbatches."""
    rows = SingleDatasetConfig(source=TokenRowsConfig(path=path, row_len=row_len))
    return GrainDataLoader.Config(dataset=ConcatThenSplitPackingConfig(dataset=rows))
