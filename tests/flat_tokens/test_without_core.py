"""Without the native core, datasets are written, verified and read; orders, batches and packs raise one error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flat_tokens

ROOT = Path(__file__).resolve().parents[2]
USE = """
import json, sys
import flat_tokens
from flat_tokens.__main__ import main

sequences, outputs = json.load(sys.stdin)
for zarr_format, output in outputs.items():
    layout = flat_tokens.ArrayLayout.create(int(zarr_format), 64)
    with flat_tokens.Writer(output, layout=layout, has_mask=True) as writer:
        for ids in sequences:
            writer.add("train", ids, [id % 3 == 0 for id in ids])
    assert flat_tokens.verify_dataset(output).ok
    train = flat_tokens.open(output).train
    assert [ids.tolist() for ids in train] == sequences
    assert train.row(1, 50).ids.tolist() == sum(sequences, [])[50:100]
    assert main(["info", output]) == main(["verify", "--workers=1", output]) == 0
    for use in (
        lambda: flat_tokens.Loader(train, 8, 2).batch(0),
        lambda: flat_tokens.Loader(train, 8, 2, shuffle=False).batch(0),
        lambda: flat_tokens.Mixture([train], [1], 8, 2).batch(0),
        lambda: flat_tokens.PackedSequences(train, 40)[0],
    ):
        try:
            use()
        except ImportError as error:
            assert "_core is not built; reinstall" in str(error)
        else:
            raise AssertionError("no error")
"""


@pytest.mark.promise("format")
def test_datasets_are_the_same_without_the_core(tmp_path: Path, random_sequences: Any) -> None:
    sequences = random_sequences(4, 90, 30)
    outputs = {zarr_format: str(tmp_path / f"{zarr_format}") for zarr_format in (2, 3)}
    done = subprocess.run(
        [sys.executable, "-c", USE],
        input=json.dumps([sequences, outputs]),
        cwd=ROOT,
        env={**os.environ, "FLAT_TOKENS_CORE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for output in outputs.values():
        assert flat_tokens.verify_dataset(output).ok
        train = flat_tokens.open(output).train
        assert [ids.tolist() for ids in train] == sequences
        assert train.loss_mask is not None
        assert train.loss_mask[:].tolist() == [id_ % 3 == 0 for ids in sequences for id_ in ids]
