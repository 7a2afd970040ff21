"""Train a small language model on a CPU in about a minute, and resume it at any step.

    python docs/examples/train_small_model.py data/demo/dataset.zarr               # 200 steps, a checkpoint every 50
    python docs/examples/train_small_model.py data/demo/dataset.zarr --resume 100  # from step 100, with the same losses
    python docs/examples/train_small_model.py data/demo/dataset.zarr --check       # does both and compares

The checkpoint holds model and optimizer but nothing of the data, because batches depend only on the dataset, the
loader's arguments and the step. With a vocabulary of 8,000 the model has 1.5 million parameters. Attention stays within
each document (segment_ids), and the first token of a document is predicted from a separate start ID.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np

import flat_tokens

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError:
    sys.exit("error: this example needs PyTorch; pip install 'tokenmill[torch]'")


class Block(nn.Module):
    """Attention within each document, then an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """states: float[rows, tokens, width]; mask: bool[rows, 1, tokens, tokens], True where a query may attend."""
        rows, tokens, width = states.shape
        mixed = self.query_key_value(self.before_attention(states))
        query, key, value = mixed.view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        states = states + self.attention_out(seen.transpose(1, 2).reshape(rows, tokens, width))
        return states + self.mlp(self.before_mlp(states))


class Model(nn.Module):
    """A transformer that predicts the next token."""

    def __init__(
        self, vocab_size: int, seq_len: int, width: int = 128, layers: int = 2, heads: int = 4
    ) -> None:
        super().__init__()
        self.entry = nn.Embedding(vocab_size, width)
        self.place = nn.Embedding(seq_len, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        for weight in (self.entry.weight, self.place.weight):
            nn.init.normal_(weight, std=0.02)

    def forward(self, inputs: Tensor, positions: Tensor, segment_ids: Tensor) -> Tensor:
        """int64[rows, tokens] each -> logits float[rows, tokens, vocabulary]."""
        same = segment_ids[:, :, None] == segment_ids[:, None, :]
        mask = (same & torch.ones_like(same[0]).tril())[:, None]
        states = self.entry(inputs) + self.place(positions)
        for block in self.blocks:
            states = block(states, mask)
        return self.last(states) @ self.entry.weight.T


class Run:
    """A model, its optimizer and its data."""

    def __init__(self, dataset: flat_tokens.Dataset, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.start_id = dataset.vocab_size  # an extra ID: the input at the first token of each sequence
        self.train = self._loader(dataset.train)
        self.validation = dataset.validation
        self.model = Model(self.start_id + 1, options.seq_len)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, weight_decay=0.1, betas=(0.9, 0.95)
        )

    def _loader(self, array: flat_tokens.FlatTokensArray) -> flat_tokens.Loader:
        return flat_tokens.Loader(
            array, self.options.seq_len, self.options.batch_size, seed=self.options.seed
        )

    def loss(self, batch: flat_tokens.Batch) -> Tensor:
        """Mean cross entropy of a batch, in nats."""
        inputs = np.where(batch.is_seq_start, self.start_id, batch.inputs)
        given = (
            torch.from_numpy(values.astype(np.int64))
            for values in (inputs, batch.positions, batch.segment_ids)
        )
        targets = torch.from_numpy(batch.targets.astype(np.int64))
        return functional.cross_entropy(self.model(*given).flatten(0, 1), targets.flatten())

    def learning_rate(self, step: int) -> float:
        """Warm up over 20 steps, then decay to a tenth along a cosine."""
        done = min(step / self.options.steps, 1.0)
        return 3e-3 * min((step + 1) / 20, 0.55 + 0.45 * math.cos(math.pi * done))

    def steps(self, first: int) -> list[float]:
        """Train from step `first` to the last. Return the losses."""
        losses = []
        started = time.perf_counter()
        for step, batch in enumerate(self.train.from_step(first, self.options.steps), first):
            if step % self.options.checkpoint_every == 0 and step > first:
                self.save(step)
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate(step)
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            losses.append(loss.item())
            if step % 10 == 0 or step == self.options.steps - 1:
                rate = (step + 1 - first) * batch.targets.size / (time.perf_counter() - started)
                print(f"step {step:4d}  loss {losses[-1]:.6f}  {rate:,.0f} tokens/s", flush=True)
        return losses

    @torch.no_grad()
    def validation_loss(self, most_batches: int = 8) -> float | None:
        """Mean loss of the first validation batches, None if the split fills no batch."""
        rows = self.validation.row_count(self.options.seq_len) if self.validation.token_count else 0
        if rows < self.options.batch_size:
            return None
        loader = self._loader(self.validation)
        batches = [loader.batch(step) for step in range(min(len(loader), most_batches))]
        return sum(self.loss(batch).item() for batch in batches) / len(batches)

    def _checkpoint(self, step: int) -> Path:
        return self.options.checkpoints / f"step-{step}.pt"

    def save(self, step: int) -> None:
        """Write the checkpoint before a step."""
        self.options.checkpoints.mkdir(parents=True, exist_ok=True)
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, self._checkpoint(step))

    def load(self, step: int) -> None:
        """Load the checkpoint before a step."""
        path = self._checkpoint(step)
        if not path.is_file():
            sys.exit(f"error: {path}: no such checkpoint; train first, --checkpoint-every {step}")
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def main() -> None:
    """Train, resume, or check that resuming changes nothing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "dataset", type=Path, help="a dataset such as data/demo/dataset.zarr from scripts/demo"
    )
    parser.add_argument("--steps", type=int, default=200, help="total steps (default: 200)")
    parser.add_argument("--resume", type=int, metavar="STEP", help="resume from the checkpoint before STEP")
    parser.add_argument(
        "--check", action="store_true", help="train, resume from the middle, and compare the losses"
    )
    parser.add_argument("--seq-len", type=int, default=128, help="tokens per row (default: 128)")
    parser.add_argument("--batch-size", type=int, default=16, help="rows per step (default: 16)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    parser.add_argument(
        "--checkpoints", type=Path, metavar="FOLDER", help="(default: checkpoints, next to the dataset)"
    )
    options = parser.parse_args()
    if options.checkpoints is None:
        options.checkpoints = options.dataset.absolute().parent / "checkpoints"
    if options.check:
        options.checkpoint_every = max(options.steps // 2, 1)
    try:
        dataset = flat_tokens.open(options.dataset)
        run = Run(dataset, options)
    except flat_tokens.FlatTokensError as error:
        sys.exit(f"error: {error}")
    if options.resume is not None:
        run.load(options.resume)
    losses = run.steps(options.resume or 0)
    validation = run.validation_loss()
    if validation is not None:
        print(f"validation loss {validation:.6f}")
    if options.check:
        middle = options.checkpoint_every
        again = Run(dataset, options)
        again.load(middle)
        print(f"again from step {middle}")
        if again.steps(middle) != losses[middle:]:
            sys.exit("error: the losses differ")
        print(f"the {len(losses) - middle} losses are the same, to the last bit")


if __name__ == "__main__":
    main()
