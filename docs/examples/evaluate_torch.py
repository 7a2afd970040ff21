"""Bits per byte of a PyTorch model, over any number of processes; every token counts exactly once.

    torchrun --standalone --nproc-per-node 3 docs/examples/evaluate_torch.py corpus.zarr

The model has random weights. Replace it with one that was trained on the dataset's tokenizer.
"""

import argparse
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

import bpe
import flat_tokens
from flat_tokens.torch import BatchDataset

SEQ_LEN, BATCH_SIZE = 64, 8


def bytes_per_id(tokenizer, id_count):
    """int64[id_count]: bytes of text of each ID, 0 for special tokens."""
    special = set(tokenizer.special_tokens.values())
    sizes = [0 if i in special else len(tokenizer.vocab.get(i, b"")) for i in range(id_count)]
    return torch.tensor(sizes)


@torch.no_grad()
def evaluate(model, split, token_bytes, rank, world_size):
    """(bits per byte, tokens, bytes) of the whole split."""
    loader = flat_tokens.Loader(
        split, SEQ_LEN, BATCH_SIZE, shuffle=False, drop_last=False, rank=rank, world_size=world_size
    )
    sums = torch.zeros(3, dtype=torch.float64)  # nats, tokens, bytes
    for batch in DataLoader(BatchDataset(loader, fields=("inputs", "targets")), batch_size=None):
        targets = batch["targets"].flatten()
        loss = nn.functional.cross_entropy(model(batch["inputs"]).flatten(0, 1), targets, reduction="none")
        is_token = targets != -100  # False at padding
        sizes = torch.where(is_token, token_bytes[targets.clamp(min=0)], 0)
        sums += torch.stack([(loss * (sizes > 0)).sum(), is_token.sum(), sizes.sum()])
    dist.all_reduce(sums)
    nats, token_count, byte_count = sums.tolist()
    return nats / math.log(2) / byte_count, int(token_count), int(byte_count)


parser = argparse.ArgumentParser()
parser.add_argument("dataset")
dataset = flat_tokens.open(parser.parse_args().dataset)
dist.init_process_group("gloo")
tokenizer = bpe.Tokenizer.load(str(dataset.tokenizer_path))
id_count = dataset.vocab_size
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(id_count, 32), nn.Linear(32, id_count))

rank, world_size = dist.get_rank(), dist.get_world_size()
bits, tokens, size = evaluate(model, dataset.validation, bytes_per_id(tokenizer, id_count), rank, world_size)
if rank == 0:
    assert tokens == dataset.validation.token_count
    print(f"{bits:.6f} bits per byte, {tokens} tokens, {size} bytes")
dist.barrier()  # gloo aborts a process that exits while another one still communicates
dist.destroy_process_group()
