"""A torchtitan data loader for tokenmill datasets, for torchtitan 0.3.0 and for its Grain-based successor.

    config.dataloader = TokenDataLoader.Config(path="corpus.zarr")
    config.validator.dataloader = TokenDataLoader.Config(path="corpus.zarr", split="validation")

The state is the same on every rank, so a run can resume with another data-parallel degree. The global batch of a
microstep must keep its size: twice the ranks with half the rows each.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

import flat_tokens
from flat_tokens.torch import BatchDataset

try:  # torchtitan with Grain
    from torchtitan.components.data.loader import BaseDataLoader
except ImportError:  # torchtitan 0.3.0
    from torchtitan.components.dataloader import BaseDataLoader


class TokenDataLoader(BaseDataLoader):
    """Shuffled rows of one split, as ({"input": ..., "positions": ...}, labels) with the labels already shifted."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        path: str
        split: str = "train"
        seed: int = 0
        infinite: bool = True
        """False ends after one epoch, with every token once; for validation."""

    def __init__(self, config: Config, *, dp_rank: int, dp_world_size: int, **sizes: Any) -> None:
        self._is_flat = "num_tokens_per_batch" in sizes  # Grain-based torchtitan: one row of many tokens
        if self._is_flat:
            seq_len = sizes["max_context_length"]
            rows, rest = divmod(sizes["num_tokens_per_batch"], seq_len)
            if rest:
                raise ValueError(
                    f"tokens per microbatch must be a multiple of max_context_length = {seq_len}"
                )
        else:
            seq_len, rows = sizes["seq_len"], sizes["local_batch_size"]
        loader = flat_tokens.Loader(
            flat_tokens.open(config.path)[config.split],
            seq_len,
            rows * dp_world_size,
            config.seed,
            rank=dp_rank,
            world_size=dp_world_size,
            drop_last=config.infinite,
        )
        self._batches = BatchDataset(loader, fields=("inputs", "positions", "targets"))

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        for batch in self._batches:
            if self._is_flat:
                batch = {name: values.flatten() for name, values in batch.items()}
            yield {"input": batch["inputs"], "positions": batch["positions"]}, batch["targets"]

    def state_dict(self) -> dict[str, Any]:
        return {"data": json.dumps(self._batches.state_dict())}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if state_dict:
            self._batches.load_state_dict(json.loads(state_dict["data"]))
