"""BlockMask for flex_attention from segment IDs, without an array of n * n elements."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def block_mask(segment_ids: Tensor, block_size: int = 128) -> Any:
    """The BlockMask for torch.nn.attention.flex_attention of segment IDs [rows, n], on their device.

    A query attends to the keys of its segment up to itself. At padding, ID 0, it attends to itself alone. Cost: a table
    of blocks.
    """
    from torch.nn.attention.flex_attention import BlockMask

    rows, count = segment_ids.shape
    blocks = -(-count // block_size)
    positions = torch.arange(count, device=segment_ids.device)
    begins = torch.ones_like(segment_ids, dtype=torch.bool)
    begins[:, 1:] = (segment_ids[:, 1:] != segment_ids[:, :-1]) | (segment_ids[:, 1:] == 0)
    starts = torch.where(begins, positions, 0).cummax(dim=1).values  # of the segment of each token
    own = torch.arange(blocks, device=segment_ids.device)
    first = starts[:, ::block_size] // block_size  # the first block that a query of a block attends to
    last_start = starts[:, (own * block_size + block_size - 1).clamp(max=count - 1)]
    # A block before the diagonal is full if it begins within the segment of all queries.
    first_full = torch.minimum(torch.maximum(-(-last_start // block_size), first), own)
    is_short = (own + 1) * block_size > count
    first_full = torch.where(is_short, own, first_full)
    part_counts, full_counts = first_full - first + 1, own - first_full
    order = own.expand(rows, blocks, blocks)
    part = torch.where(order < (part_counts - 1)[..., None], first[..., None] + order, own[:, None])
    part = torch.where(order < part_counts[..., None], part, 0)
    full = torch.where(order < full_counts[..., None], first_full[..., None] + order, 0)

    def attends(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = (segment_ids[row, query] == segment_ids[row, key]) & (segment_ids[row, key] != 0)
        return (same & (query >= key)) | (query == key)

    return BlockMask.from_kv_blocks(
        part_counts[:, None].int(),
        part[:, None].int(),
        full_counts[:, None].int(),
        full[:, None].int(),
        BLOCK_SIZE=block_size,
        mask_mod=attends,
        seq_lengths=(count, count),
    )
