"""PackedSequences for PyTorch's DataLoader; importing this module imports torch.

    dataset = PackDataset(PackedSequences(train, max_seq_len=2048))
    for batch in DataLoader(dataset, batch_size=8, shuffle=True, collate_fn=collate_packs): ...

Tensors are int64. Labels are not shifted (flat_tokens/packs/pack.py): right for models that shift by themselves, as
those of transformers and torchtune's recipes do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flat_tokens.arguments import choice, shown
from flat_tokens.errors import ArgumentError
from flat_tokens.packing import PackedSequences
from flat_tokens.packs.pack import FIELDS, Pack, block_causal_mask, cumulative_lengths

try:
    import torch
    from torch import Tensor
    from torch.utils.data import Dataset
except ImportError as error:
    raise ImportError("flat_tokens.torch_packs needs PyTorch: pip install 'tokenmill[torch]'") from error

NAMES = {
    "transformers": ("input_ids", "labels", "position_ids", "seq_lens"),
    "torchtune": FIELDS,
}

Tensors = dict[str, Tensor]


class PackDataset(Dataset[Tensors]):
    """Pack i as item i: tokens, labels, positions and segment_ids int64[max_seq_len], seq_lens int64[segments].

    names: "transformers" for the keys input_ids, labels, position_ids, seq_lens; "torchtune" for tokens, labels,
    input_pos, seq_lens; segment_ids in both. Picklable, so workers may be forked or spawned; IndexError outside."""

    def __init__(self, packed: PackedSequences, names: str = "transformers") -> None:
        if not isinstance(packed, PackedSequences):
            raise ArgumentError(f"packed must be PackedSequences, got {shown(packed)}")
        self.packed = packed
        self.names = NAMES[choice("names", names, NAMES)]

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> Tensors:
        return self._item(self.packed[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Tensors]:
        return [self._item(pack) for pack in self.packed.__getitems__(indices)]

    def _item(self, pack: Pack) -> Tensors:
        arrays = {name: pack[field] for name, field in zip(self.names, FIELDS, strict=True)}
        arrays["segment_ids"] = pack.segment_ids
        return {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}


def collate_packs(items: Sequence[Tensors]) -> Tensors:
    """A batch of items: int64[packs, max_seq_len] of each but seq_lens, and in its place what attention wants.

    mask: bool[packs, max_seq_len, max_seq_len], true where a query may look; for kernels of variable length,
    of the flattened batch, cu_seqlens: int32[segments + 1] and max_seqlen: int64, a scalar. The mask takes
    packs * max_seq_len^2 bytes; such kernels do without, so take `collate_flat` for them."""
    batch = collate_flat(items)
    batch["mask"] = torch.from_numpy(block_causal_mask(batch["segment_ids"].numpy().astype(np.int32)))
    return batch


def collate_flat(items: Sequence[Tensors]) -> Tensors:
    """The same without the mask."""
    batch = {name: torch.stack([item[name] for item in items]) for name in items[0] if name != "seq_lens"}
    lengths = np.concatenate([item["seq_lens"].numpy() for item in items]).astype(np.int32)
    batch["cu_seqlens"] = torch.from_numpy(cumulative_lengths(lengths))
    batch["max_seqlen"] = torch.tensor(int(lengths.max()))
    return batch
