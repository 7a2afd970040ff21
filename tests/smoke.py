"""Train, convert, verify and load with an installed tokenmill, and print how long each step took.

    python tests/smoke.py TEXT        TEXT has documents separated by <|endoftext|>

Every step is a process of its own and imports nothing from the checkout.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOAD = """
import tokenmill
batch = tokenmill.Loader(tokenmill.open("text.zarr").train, seq_len=64, batch_size=8).batch(0)
assert batch.inputs.shape == batch.targets.shape == (8, 64)
"""


def main() -> None:
    text = str(Path(sys.argv[1]).resolve())
    steps = {
        "train": f"train {text} --vocab-size 1000 --special-token <|endoftext|> --output t.json",
        "convert": f"convert {text} --tokenizer t.json --append-token <|endoftext|> --output text.zarr",
        "verify": "verify text.zarr",
    }
    commands = {name: ["-P", "-m", "tokenmill", *words.split()] for name, words in steps.items()}
    with tempfile.TemporaryDirectory() as folder:
        for name, command in (commands | {"load": ["-P", "-c", LOAD]}).items():
            started = time.monotonic()
            done = subprocess.run(
                [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                sys.exit(f"{name} failed with exit code {done.returncode}: {done.stderr}")
            print(f"{name:7} {time.monotonic() - started:5.2f} s")


if __name__ == "__main__":
    main()
