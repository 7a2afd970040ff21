"""Bits per token and bits per byte of a split with NumPy, counting every token once on any number of ranks.

    python docs/examples/evaluate.py data/demo/dataset.zarr --ranks 3

The model is the frequency of each ID in `train`; replace its losses with the losses of a real model. Each rank sums
losses and counts over its batches, then the sums of all ranks are added, as torch.distributed's all_reduce does. All
ranks have the same number of batches, and targets are -100 at padding and where the dataset has a loss mask. Special
tokens contain no text, so their loss counts per token but not per byte.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import bpe
import flat_tokens
from flat_tokens.fields import Fields

SEQ_LEN, BATCH_SIZE = 256, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--split", default="validation", choices=("train", "validation"))
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    dataset = flat_tokens.open(options.dataset)
    split = dataset[options.split]
    bits = bits_of_ids(dataset.train, dataset.vocab_size)
    token_bytes = bytes_of_ids(bpe.Tokenizer.load(str(dataset.tokenizer_path)), len(bits))
    sums = [evaluate(split, bits, token_bytes, rank, options.ranks) for rank in range(options.ranks)]
    loss, text_loss, tokens, size = np.sum(sums, axis=0)
    print(
        f"{options.split}: {int(tokens):,} tokens, {loss / max(tokens, 1):.4f} bits a token, "
        f"{text_loss / max(size, 1):.4f} bits a byte"
    )
    assert split.loss_mask is not None or tokens == split.token_count


def evaluate(
    split: Any, bits: Any, token_bytes: Any, rank: int, world_size: int
) -> tuple[float, float, int, int]:
    """(bits, bits of text tokens, tokens, bytes) in the batches of one rank."""
    loader = flat_tokens.Loader(
        split, SEQ_LEN, BATCH_SIZE, shuffle=False, drop_last=False, rank=rank, world_size=world_size
    )
    fields = Fields(("inputs", "targets"))
    loss, text_loss, tokens, size = 0.0, 0.0, 0, 0
    for batch in loader:
        targets = fields.make(batch, np.int64)["targets"]
        targets = targets[targets != -100]
        loss += float(bits[targets].sum())
        text_loss += float(bits[targets][token_bytes[targets] > 0].sum())
        tokens += len(targets)
        size += int(token_bytes[targets].sum())
    return loss, text_loss, tokens, size


def bytes_of_ids(tokenizer: bpe.Tokenizer, id_count: int) -> Any:
    """int64[id_count]: bytes of text of each ID, 0 for special tokens."""
    special = set(tokenizer.special_tokens.values())
    return np.array([0 if id in special else len(tokenizer.vocab.get(id, b"")) for id in range(id_count)])


def bits_of_ids(train: Any, id_count: int) -> Any:
    """float64[id_count]: bits of each ID by its frequency, with add-one smoothing."""
    counts = np.ones(id_count)
    for _, encoded in train.encoded_tokens.blocks(0, train.token_count):
        counts += np.bincount(encoded >> np.uint32(1), minlength=id_count)
    return -np.log2(counts / counts.sum())


if __name__ == "__main__":
    main()
