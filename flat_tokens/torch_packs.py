"""PackedSequences for PyTorch's DataLoader; importing this module imports torch.

    dataset = PackDataset(PackedSequences(train, max_seq_len=2048))
    for batch in DataLoader(dataset, batch_size=8, shuffle=True, collate_fn=collate_packs): ...

For those who bring a sampler. Shuffled, sharded over ranks and resumed without one, packs come from a Loader:
flat_tokens.torch.BatchDataset(Loader(packed, 2048, batch_size=8, rank=rank, world_size=world_size)).
Tensors are int64, is_seq_start is bool. Their names mean what they mean in flat_tokens/fields.py: labels are unshifted,
for models that shift by themselves, as those of transformers and torchtune's recipes do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flat_tokens.arguments import choice, shown
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import Fields, checked_names
from flat_tokens.packs.pack import PackBatch
from flat_tokens.packs.packed_sequences import PackedSequences

try:
    import torch
    from torch.utils.data import Dataset
except ImportError as error:
    raise ImportError("flat_tokens.torch_packs needs PyTorch: pip install 'tokenmill[torch]'") from error

from flat_tokens.torch import OF_A_ROW, Rows, Tensors

NAMES = {
    "transformers": ("input_ids", "labels", "position_ids", "seq_lens", "segment_ids"),
    "torchtune": ("tokens", "labels", "input_pos", "seq_lens", "segment_ids"),
}
OF_TORCHTUNE = {"tokens": "input_ids", "input_pos": "position_ids"}


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
        default = NAMES[choice("names", names, NAMES)]
        known = (*OF_A_ROW, *OF_TORCHTUNE, "seq_lens")
        self.fields = default if fields is None else checked_names(fields, known)
        made = [OF_TORCHTUNE.get(name, name) for name in self.fields if name != "seq_lens"]
        self._fields = Fields(tuple(dict.fromkeys(made)) or ("input_ids",), ignore_first_labels)
        self._ignores = self._fields.ignore_first_labels or packed.ignore_first_labels

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> Tensors:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Rows:
        return Rows(self._made(self.packed.batch(indices)))

    def _made(self, packs: PackBatch) -> Tensors:
        made = Fields(self._fields.names, self._ignores).make(packs, np.int64)
        tensors: Tensors = {}
        for name in self.fields:
            if name == "seq_lens":
                tensors[name] = [torch.from_numpy(lengths.astype(np.int64)) for lengths in packs.seq_lens]
            else:
                tensors[name] = torch.from_numpy(made[OF_TORCHTUNE.get(name, name)])
        return tensors


def collate_packs(items: Sequence[Tensors]) -> Tensors:
    """A batch of items: [packs, max_seq_len] of each but seq_lens, and in its place what kernels of variable length
    take, of the flattened batch: cu_seqlens, int32[segments + 1], and max_seqlen, an int. Nothing is made of
    max_seq_len^2 elements unless "mask" is among the fields."""
    lists = (
        items.batch
        if isinstance(items, Rows)
        else {name: [item[name] for item in items] for name in items[0]}
    )
    batch: Tensors = {}
    for name, values in lists.items():
        if name != "seq_lens":
            batch[name] = values if isinstance(values, torch.Tensor) else torch.stack(values)
    if "seq_lens" in lists:
        lengths = torch.cat(lists["seq_lens"])
        batch["cu_seqlens"] = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
        batch["max_seqlen"] = int(lengths.max())
    return batch


collate_flat = collate_packs
