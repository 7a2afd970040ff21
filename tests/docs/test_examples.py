"""Run the programs of docs/examples that no page runs."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from stand_ins import small_dataset

import bpe
import flat_tokens
from tokenmill.__main__ import main

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def run(name: str, *arguments: str) -> str:
    """Return the output of an example."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.slow
def test_small_model_learns_and_resumes_with_the_same_losses() -> None:
    pytest.importorskip("torch")
    starts = np.random.default_rng(0).integers(0, 64, 440)
    sequences = (starts[:, None] + np.arange(30)) % 64  # each counts up by one
    np.save("ids.npy", sequences.astype(np.uint16).ravel())
    np.save("ids.offsets.npy", np.arange(0, 440 * 30 + 1, 30))
    assert main(["import", "ids.npy", "--from", "npy", "--vocabulary", "64", "--output", "d.zarr"]) == 0
    options = ("--steps", "40", "--seq-len", "32", "--batch-size", "8", "--check")
    printed = run("train_small_model.py", "d.zarr", *options)
    losses = dict(re.findall(r"^step +(\d+)  loss ([0-9.]+)", printed, re.MULTILINE))
    assert float(losses["39"]) < float(losses["0"]) / 2
    assert "the same, to the last bit" in printed


@pytest.mark.slow
def test_model_stops_only_where_documents_have_end_tokens() -> None:
    pytest.importorskip("torch")
    printed = run("learn_to_stop.py", "--steps", "60")
    stopped = dict(re.findall(r"^(with|without) end tokens: (\d+) of 20 ", printed, re.MULTILINE))
    assert int(stopped["with"]) >= 15
    assert int(stopped["without"]) == 0


@pytest.mark.long
def test_evaluation_does_not_depend_on_the_number_of_ranks() -> None:
    small_dataset()
    printed = {
        run("evaluate.py", "corpus.zarr", "--split", "train", "--ranks", ranks) for ranks in ("1", "3", "40")
    }
    assert len(printed) == 1
    dataset = flat_tokens.open("corpus.zarr")
    tokenizer = bpe.Tokenizer.load("tokenizer.json")
    documents = [ids.tolist() for ids in dataset.train]
    counts = Counter(id_ for ids in documents for id_ in ids)
    total = counts.total() + dataset.vocab_size
    # The loss and the bytes exclude end tokens.
    bits = sum(-math.log2((counts[id_] + 1) / total) for ids in documents for id_ in ids[:-1])
    size = sum(len(tokenizer.decode_bytes(ids[:-1])) for ids in documents)
    assert f" {bits / size:.4f} bits" in printed.pop()
