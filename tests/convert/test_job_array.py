"""Tasks of a job array encode shares of a corpus at the same time, and a run without --task-index merges them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from limits import small
from runs import (
    Inline,
    convert,
    finish,
    rejected,
    run_here,
    sample_text,
    start,
    stopping_at,
    tree,
    words,
)
from strategies import compressed

from convert import ConvertOptions, encode_share

SMALL: dict[str, Any] = {"text_chunk_bytes": 700, "validation_fraction": 0.3, "workers": 1}


@pytest.mark.slow
@pytest.mark.promise("job-array")
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("more", [{}, {"scratch": "scratch"}], ids=str)
def test_a_job_array_gives_the_same_bytes(count: int, more: dict[str, str], here: Path) -> None:
    (here / "en.txt").write_bytes(sample_text(400))
    (here / "scratch").mkdir()
    lines = [words("en.txt", **SMALL, **more, task_index=index, task_count=count) for index in range(count)]
    assert [finish(process)[0] for process in [start(line) for line in lines]] == [0] * count
    assert not (here / "out").exists()
    code, out, _ = run_here(**SMALL, **more)
    assert code == 0
    assert "reused" in out
    assert run_here(**SMALL, output="plain")[0] == 0
    assert tree("out") == tree("plain")
    assert not list((here / "scratch").iterdir())


@pytest.mark.promise("status")
@pytest.mark.promise("job-array")
def test_a_run_encodes_the_share_of_a_missing_task(here: Path) -> None:
    (here / "en.txt").write_bytes(sample_text(400))
    code, out, _ = run_here(**SMALL, task_index=1, task_count=3)
    assert code == 0
    assert "task 1 of 3" in out
    status = json.loads((here / "out.partial/status.1.json").read_text())
    assert status["stage"] == "encode"
    assert 0 <= status["done_bytes"] <= status["total_bytes"]
    assert "reused" in run_here(**SMALL)[1]
    assert run_here(**SMALL, output="plain")[0] == 0
    assert tree("out") == tree("plain")


@pytest.mark.promise("job-array")
def test_a_task_never_discards_work(here: Path) -> None:
    task = {"task_index": 1, "task_count": 3}
    assert run_here(**SMALL, **task)[0] == 0
    assert "--seed" in rejected(6, **SMALL, **task, seed=1)
    assert "--restart" in rejected(2, **SMALL, **task, restart=True)
    assert run_here(**SMALL, **task)[0] == 0
    assert run_here(**SMALL, restart=True, seed=1)[0] == 0


def test_unpacked_blocks_of_a_task_that_stopped_are_unpacked_again(here: Path) -> None:
    (here / "in.txt.gz").write_bytes(compressed(sample_text(100), "gz"))
    options: dict[str, Any] = {
        "inputs": ["in.txt.gz"],
        "tokenizer": "tok.json",
        "progress": "none",
        "workers": 2,
    }
    task = ConvertOptions(**options, output="out", task_index=0, task_count=1, text_chunk_bytes=300)
    with small():
        with pytest.raises(KeyboardInterrupt):
            encode_share(task, stopping_at(1))
        blocks = list(here.glob("out.partial/shards/*/*.block"))
        for block in blocks:
            block.write_bytes(b"z" * block.stat().st_size)
        encode_share(task, Inline())
        convert(Inline(), inputs=["in.txt.gz"], text_chunk_bytes=300)
        convert(Inline(), inputs=["in.txt.gz"], text_chunk_bytes=300, output="plain")
    assert blocks
    assert tree("out") == tree("plain")
