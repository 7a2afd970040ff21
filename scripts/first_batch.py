"""From an installed tokenmill to a first batch: train, convert, verify, load. Says what took how long.

    python scripts/first_batch.py TEXT        TEXT has documents with <|endoftext|> between them

Run with a Python that has the wheel and nothing of the checkout; each step is a process, as a user has it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

END = "<|endoftext|>"
BATCH = (
    "import tokenmill; batch = tokenmill.Loader(tokenmill.open('text.zarr').train, seq_len=64, batch_size=8).batch(0);"
    "assert batch.inputs.shape == batch.targets.shape == (8, 64); print(tokenmill.__version__, batch.inputs[0, :8])"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    text = str(parser.parse_args().text.resolve())
    tokenmill = ["-P", "-m", "tokenmill"]
    steps = [
        [
            *tokenmill,
            "train",
            text,
            "--vocab-size",
            "1000",
            "--special-token",
            END,
            "--output",
            "t.json",
            "--quiet",
        ],
        [
            *tokenmill,
            "convert",
            text,
            "--tokenizer",
            "t.json",
            "--output",
            "text.zarr",
            "--append-token",
            END,
        ],
        [*tokenmill, "verify", "text.zarr"],
        ["-P", "-c", BATCH],
    ]
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            started = time.monotonic()
            done = subprocess.run(
                [sys.executable, *step], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                sys.exit(f"error: {' '.join(step)} ended with {done.returncode}: {done.stderr}")
            print(
                f"{time.monotonic() - started:5.2f} s  {done.stdout.splitlines()[-1] if done.stdout else 'trained'}"
            )


if __name__ == "__main__":
    main()
