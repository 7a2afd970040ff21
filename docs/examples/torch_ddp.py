"""Data-parallel training with PyTorch: resume on any number of processes.

    torchrun --standalone --nproc-per-node 2 docs/examples/torch_ddp.py corpus.zarr
    torchrun --standalone --nproc-per-node 1 docs/examples/torch_ddp.py corpus.zarr --resume

Trains a tiny model for 10 steps on the CPU and saves checkpoint.pt after 5. Rank 0 prints the mean loss of each global
batch. The global batches do not depend on the number of processes, so a resumed run sees the same data.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import flat_tokens
from flat_tokens.torch import BatchDataset

SEQ_LEN, BATCH_SIZE, STEPS = 64, 8, 10

parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()

dist.init_process_group("gloo")  # "nccl" on GPUs
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

dataset = flat_tokens.open(options.dataset)
loader = flat_tokens.Loader(dataset.train, SEQ_LEN, BATCH_SIZE, seed=0, rank=rank, world_size=world_size)
batches = BatchDataset(loader, stop=STEPS, fields=("inputs", "targets"))

model = nn.Sequential(nn.Embedding(dataset.vocab_size, 32), nn.Linear(32, dataset.vocab_size))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
if options.resume:
    checkpoint = torch.load("checkpoint.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    batches.load_state_dict(checkpoint["data"])

parallel = DistributedDataParallel(model)
first = batches.state_dict()["step"]
for step, batch in enumerate(DataLoader(batches, batch_size=None), first):
    logits = parallel(batch["inputs"])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_loss = loss.detach() / world_size
    dist.all_reduce(mean_loss)
    if rank == 0:
        print(f"step {step} rows {len(batch['inputs'])} loss {mean_loss.item():.6f}", flush=True)
    if rank == 0 and step == 4:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state["data"] = batches.state_dict()  # the same on every rank
        torch.save(state, "checkpoint.pt")

dist.barrier()  # gloo aborts a process that exits while another one still communicates
dist.destroy_process_group()
