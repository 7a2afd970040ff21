"""Train two small models on the same documents, with and without end tokens, and compare how their output ends.

    python docs/examples/learn_to_stop.py          # a minute on a CPU; writes to a temporary folder

The documents count, as in "Count to 3: 1 2 3". `tokenmill convert` writes both datasets, one with --append-token. Each
model then completes "Count to N:" for every N by choosing the most likely token, up to a limit. With end tokens, the
model predicts one after the last number and stops. Without them it can only run into the limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from train_small_model import Run

import bpe
import flat_tokens

END = "<|endoftext|>"
LARGEST = 20  # number that the documents count to
LIMIT = 64  # tokens per generated document, more than any document needs


def document(number: int) -> str:
    """3 -> "Count to 3: 1 2 3"."""
    return f"Count to {number}: " + " ".join(str(i) for i in range(1, number + 1))


def prepare(folder: Path) -> bpe.Tokenizer:
    """Write a corpus, its tokenizer, and the datasets "with" and "without" to the folder."""
    numbers = np.random.default_rng(0).integers(1, LARGEST + 1, 4000)
    corpus, tokenizer = folder / "corpus.txt", folder / "tokenizer.json"
    corpus.write_text(END.join(document(number) for number in numbers.tolist()))
    bpe.train([corpus], vocab_size=320, special_tokens=[END]).save(tokenizer)
    for name, options in (("with", ["--append-token", END]), ("without", [])):
        command = [
            sys.executable,
            "-m",
            "convert",
            str(corpus),
            "--tokenizer",
            str(tokenizer),
            "--workers",
            "1",
        ]
        command += ["--output", str(folder / name), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return bpe.Tokenizer.load(tokenizer)


@torch.no_grad()
def generate(run: Run, prompt: list[int], end: int) -> tuple[list[int], bool]:
    """(prompt and completion without the end token, whether the model predicted an end token)."""
    ids = list(prompt)
    while len(ids) < LIMIT:
        inputs = torch.tensor([[run.start_id, *ids]])
        positions = torch.arange(inputs.shape[1])[None]
        following = int(run.model(inputs, positions, torch.ones_like(inputs))[0, -1].argmax())
        if following == end:
            return ids, True
        ids.append(following)
    return ids, False


def main() -> None:
    """Train both models and print how their documents end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="training steps per model (default: 100)")
    steps = parser.parse_args().steps
    options = argparse.Namespace(
        seed=0, seq_len=LIMIT + 1, batch_size=16, steps=steps, checkpoint_every=steps
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = prepare(folder)
        end = tokenizer.special_tokens[END]
        for dataset in ("with", "without"):
            print(f"{dataset} end tokens")
            run = Run(flat_tokens.open(folder / dataset), options)
            run.steps(0)
            stopped = exact = 0
            for number in range(1, LARGEST + 1):
                expected = document(number)
                prompt = tokenizer.encode(expected[: expected.index(":") + 1])
                ids, is_stopped = generate(run, prompt, end)
                stopped += is_stopped
                exact += is_stopped and tokenizer.decode(ids) == expected
            print(f"{dataset} end tokens: {stopped} of {LARGEST} documents end, {exact} where they should")
            print(f"the last of them: {tokenizer.decode(ids)}\n")


if __name__ == "__main__":
    main()
