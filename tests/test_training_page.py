"""docs/training.md and docs/packs.md: their Python runs, and so does the example that is named."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bpe
import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens import writer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord

ROOT = Path(__file__).parents[1]
END = "<|endoftext|>"


@pytest.mark.parametrize("name", ["training.md", "packs.md"])
def test_the_python_of_the_page_runs(name: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL)
    assert blocks, "the page has lost its examples"
    for block in blocks:
        exec(compile(block, f"docs/{name}", "exec"), {})


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Sequences that count upwards by one, so that there is something to learn."""
    rng = np.random.default_rng(0)
    path, layout = tmp_path / "d.zarr", ArrayLayout.create()
    path.mkdir()
    splits, records = {}, []
    for name, count in (("train", 400), ("validation", 40)):
        sequences = [((start + np.arange(30)) % 64).tolist() for start in rng.integers(0, 64, count)]
        encoded, starts, max_token_id = flat_format.from_sequences(sequences)
        splits[name] = SplitRecord(len(encoded), len(sequences), max_token_id)
        records += writer.create_split(path, name, len(encoded), len(sequences), max_token_id, layout)
        records += writer.write_tokens(path, name, layout, 0, encoded)
        records += writer.write_starts(path, name, layout, 0, starts)
    writer.write_root(path, splits, records, layout, tokenizer=None, sources=[], options={}, versions={})
    return path


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or not hasattr(flat_tokens, "Loader"),
    reason="needs torch",
)
def test_the_example_learns_and_resumes_with_the_same_losses(dataset: Path) -> None:
    assert flat_tokens.open(dataset).train.token_count == 12_000
    example = ROOT / "docs" / "examples" / "train_small_model.py"
    options = ["--steps", "40", "--seq-len", "32", "--batch-size", "8"]

    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(example), str(dataset), *options, *more]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300, env=environment
        )

    checked = run("--check")
    assert checked.returncode == 0, checked.stderr
    assert "the 20 losses are the same, to the last bit" in checked.stdout
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss ([0-9.]+)", checked.stdout, re.MULTILINE)]
    assert losses[4] < losses[0] / 2
    resumed = run("--resume", "20")
    assert re.findall("loss [0-9.]+", resumed.stdout) == re.findall("loss [0-9.]+", checked.stdout)[2:6]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_model_stops_where_documents_have_end_tokens() -> None:
    example = ROOT / "docs" / "examples" / "learn_to_stop.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(example), "--steps", "60"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    stopped = re.findall(r"^(with|without) end tokens: (\d+) of 20 documents end", done.stdout, re.MULTILINE)
    assert stopped[1] == ("without", "0")
    assert stopped[0][0] == "with"
    assert int(stopped[0][1]) >= 15


def test_an_evaluation_is_the_same_over_any_number_of_ranks(tmp_path: Path) -> None:
    """From text to bits a byte; the example itself checks that no token is missing."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    sample, tokenizer, output = ROOT / "data" / "sample.txt", tmp_path / "t.json", tmp_path / "d.zarr"
    commands = [
        [
            "-m",
            "bpe",
            "train",
            str(sample),
            "--vocab-size",
            "300",
            "--special-token",
            END,
            "--output",
            str(tokenizer),
        ],
        [
            "-m",
            "convert",
            str(sample),
            "--tokenizer",
            str(tokenizer),
            "--output",
            str(output),
            "--append-token",
            END,
        ],
        *(
            ["docs/examples/evaluate.py", str(output), "--split", "train", "--ranks", str(ranks)]
            for ranks in (1, 3, 40)
        ),
    ]
    said = []
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert re.fullmatch(r"train: [\d,]+ tokens, [\d.]+ bits a token, [\d.]+ bits a byte\n", said[-1])
    assert said[-3:] == [said[-1]] * 3
    # The end tokens are no text: neither their loss nor their name.
    documents = [ids.tolist() for ids in flat_tokens.open(output).train]
    known = bpe.Tokenizer.load(str(tokenizer))
    counts = Counter(id_ for ids in documents for id_ in ids)
    id_count = flat_tokens.open(output).vocab_size
    total = sum(counts.values()) + id_count
    bits = sum(-math.log2((counts[id_] + 1) / total) for ids in documents for id_ in ids[:-1])
    size = sum(len(known.decode_bytes(ids[:-1])) for ids in documents)
    assert said[-1].endswith(f", {bits / size:.4f} bits a byte\n")
