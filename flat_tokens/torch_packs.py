"""PackedSequences for PyTorch's DataLoader; importing this module imports torch.

    dataset = PackDataset(PackedSequences(train, max_seq_len=2048))
    for batch in DataLoader(dataset, batch_size=8, shuffle=True, collate_fn=collate_packs): ...

Tensors are int64, is_seq_start is bool. Their names mean what they mean in flat_tokens/fields.py: labels are unshifted,
for models that shift by themselves, as those of transformers and torchtune's recipes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, flag, shown
from flat_tokens.batch import IGNORED_LABEL
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import NAMES as NAMES_OF_ROWS
from flat_tokens.fields import checked_names
from flat_tokens.packing import PackedSequences
from flat_tokens.packs.pack import Pack, block_causal_mask, cumulative_lengths

try:
    import torch
    from torch import Tensor
    from torch.utils.data import Dataset
except ImportError as error:
    raise ImportError("flat_tokens.torch_packs needs PyTorch: pip install 'tokenmill[torch]'") from error

NAMES = {
    "transformers": ("input_ids", "labels", "position_ids", "seq_lens", "segment_ids"),
    "torchtune": ("tokens", "labels", "input_pos", "seq_lens", "segment_ids"),
}
OF_A_PACK = {
    "tokens": "tokens",
    "input_ids": "tokens",
    "input_pos": "input_pos",
    "position_ids": "input_pos",
    "positions": "input_pos",
    "seq_lens": "seq_lens",
    "segment_ids": "segment_ids",
}

Tensors = dict[str, Tensor]


class PackDataset(Dataset[Tensors]):
    """Pack i as item i: int64[max_seq_len] each, is_seq_start bool, seq_lens int64[segments].

    names: "transformers" for input_ids, labels, position_ids, seq_lens and segment_ids; "torchtune" for the same as
    tokens, labels, input_pos, seq_lens and segment_ids. fields: others, or fewer, in their place; inputs, targets and
    is_seq_start are among them. ignore_first_labels: False keeps the labels of the first tokens of sequences, or of the
    parts of one that is cut, as far as `packed` has them. Picklable, so workers may be forked or spawned; IndexError
    outside."""

    def __init__(
        self,
        packed: PackedSequences,
        names: str = "transformers",
        *,
        fields: Sequence[str] | None = None,
        ignore_first_labels: bool = True,
    ) -> None:
        if not isinstance(packed, PackedSequences):
            raise ArgumentError(f"packed must be PackedSequences, got {shown(packed)}")
        self.packed = packed
        known = dict.fromkeys((*NAMES_OF_ROWS, *OF_A_PACK))
        default = NAMES[choice("names", names, NAMES)]
        self.fields = default if fields is None else checked_names(fields, tuple(known))
        self.ignore_first_labels = flag("ignore_first_labels", ignore_first_labels)

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> Tensors:
        return self._item(self.packed[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Tensors]:
        return [self._item(pack) for pack in self.packed.__getitems__(indices)]

    def _item(self, pack: Pack) -> Tensors:
        return {name: torch.from_numpy(self._made(name, pack)) for name in self.fields}

    def _made(self, name: str, pack: Pack) -> npt.NDArray[Any]:
        if name in OF_A_PACK:
            values: npt.NDArray[Any] = getattr(pack, OF_A_PACK[name])
            return values.astype(np.int64)
        firsts = cumulative_lengths(pack.seq_lens)[:-1]
        firsts = firsts[firsts < pack.token_count]
        if name == "is_seq_start":
            is_start = np.zeros(len(pack.tokens), np.bool_)
            is_start[firsts] = True
            return is_start
        if name == "inputs":
            inputs = np.zeros(len(pack.tokens), np.int64)
            inputs[1:] = pack.tokens[:-1]
            inputs[firsts] = 0
            return inputs
        if name == "targets":
            targets = pack.tokens.astype(np.int64)
            targets[pack.token_count :] = IGNORED_LABEL
            return targets
        labels = pack.labels.astype(np.int64)
        if self.ignore_first_labels:
            labels[firsts] = IGNORED_LABEL
        return labels


def collate_packs(items: Sequence[Tensors]) -> Tensors:
    """A batch of items: [packs, max_seq_len] of each but seq_lens, and in its place what attention wants.

    mask: bool[packs, max_seq_len, max_seq_len], true where a query may look, for which segment_ids must be among the
    fields; for kernels of variable length, where seq_lens is among them, of the flattened batch, cu_seqlens:
    int32[segments + 1] and max_seqlen: int64, a scalar. The mask takes packs * max_seq_len^2 bytes; such kernels do
    without, so take `collate_flat` for them."""
    batch = collate_flat(items)
    if "segment_ids" not in batch:
        raise ArgumentError(
            "collate_packs makes a mask of segment_ids; add it to fields, or take collate_flat"
        )
    batch["mask"] = torch.from_numpy(block_causal_mask(batch["segment_ids"].numpy().astype(np.int32)))
    return batch


def collate_flat(items: Sequence[Tensors]) -> Tensors:
    """The same without the mask."""
    batch = {name: torch.stack([item[name] for item in items]) for name in items[0] if name != "seq_lens"}
    if "seq_lens" in items[0]:
        lengths = np.concatenate([item["seq_lens"].numpy() for item in items]).astype(np.int32)
        batch["cu_seqlens"] = torch.from_numpy(cumulative_lengths(lengths))
        batch["max_seqlen"] = torch.tensor(int(lengths.max()))
    return batch
