"""torchtitan's training loop in small, on the CPU: what its Trainer does with a TokenDataLoader and its state.

    torchrun --standalone --nproc-per-node 2 docs/examples/torchtitan_loop.py corpus.zarr
    torchrun --standalone --nproc-per-node 1 docs/examples/torchtitan_loop.py corpus.zarr --resume

The checkpoint is a distributed one, in the folder checkpoint. The resumed run may have another number of processes.
"""

import argparse

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchtitan_data import BaseDataLoader, TokenDataLoader

import flat_tokens

SEQ_LEN, BATCH_SIZE, STEPS = 64, 8, 10

parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

rows = BATCH_SIZE // world_size
if BaseDataLoader.__module__ == "torchtitan.components.dataloader":  # 0.3.0
    sizes = {"seq_len": SEQ_LEN, "local_batch_size": rows}
else:
    sizes = {"max_context_length": SEQ_LEN, "num_tokens_per_batch": SEQ_LEN * rows}
config = TokenDataLoader.Config(path=options.dataset)
dataloader = config.build(dp_rank=rank, dp_world_size=world_size, tokenizer=None, **sizes)

vocab_size = flat_tokens.open(options.dataset).vocab_size
model = nn.Sequential(nn.Embedding(vocab_size, 32), nn.Linear(32, vocab_size))
optimizer = torch.optim.SGD(model.parameters(), lr=10)
state = {"model": model.state_dict(), "dataloader": dataloader}
first = 0
if options.resume:
    dcp.load(state, checkpoint_id="checkpoint")
    model.load_state_dict(state["model"])
    first = 5

parallel = DistributedDataParallel(model)
for step, (inputs, labels) in zip(range(first, STEPS), dataloader, strict=False):
    logits = parallel(inputs["input"])
    loss = nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_loss = loss.detach() / world_size
    dist.all_reduce(mean_loss)
    if rank == 0:
        print(f"step {step} tokens {labels.numel()} loss {mean_loss.item():.6f}", flush=True)
    if step == 4:
        dcp.save(state, checkpoint_id="checkpoint")

dist.barrier()
dist.destroy_process_group()
