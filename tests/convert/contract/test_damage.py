"""Damage in the partial folder never gives a wrong dataset: it is repaired, or the run ends with one line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import limits, small
from runs import (
    Inline,
    convert,
    error_of,
    exit_code,
    sample_documents,
    sample_text,
    stopping_at,
    tree,
    workplace,
)
from strategies import examples

DATA_LOST, MACHINE, REFUSED = 1, 4, 6
OPTIONS = st.fixed_dictionaries(
    {
        "inputs": st.sampled_from([["in.txt"], ["in.jsonl"]]),
        "zarr_format": st.sampled_from([2, 3]),
        "compression": st.sampled_from(["zstd", "none"]),
        "chunk_tokens": st.sampled_from([8, 64, 512]),
        "text_chunk_bytes": st.sampled_from([200, 500]),
        "validation_fraction": st.sampled_from([0.0, 0.3]),
        "on_error": st.sampled_from(["skip", "quarantine"]),
    }
)


def complete(options: dict[str, Any]) -> dict[str, Any]:
    """Write the inputs and return all options. JSON Lines get a loss mask."""
    Path("in.txt").write_bytes(sample_text(30) + b"<|endoftext|>bad \xff")
    records = [{"prompt": text[:9], "completion": text[9:]} for text in sample_documents(30)]
    Path("in.jsonl").write_text("\n".join(map(json.dumps, records)))
    mask = {"prompt_field": "prompt", "completion_field": "completion"}
    return options | (mask if options["inputs"] == ["in.jsonl"] else {})


def damage(draw: Any) -> None:
    """Flip a bit of a file in out.partial, truncate, remove or swap it, or lose, double and reorder lines of its log.

    Mostly a shard or a file of the dataset.
    """
    root = Path("out.partial")
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.stat().st_size]
    below = [path for path in files if path.parent != root]
    files = draw(st.sampled_from([below] * 5 + [files])) or files
    if not files:
        return
    path = files[draw(st.integers(0, len(files) - 1))]
    data = bytearray(path.read_bytes())
    place = draw(st.integers(0, len(data) - 1))
    kind = draw(st.sampled_from(["flip"] * 4 + ["cut", "remove", "swap"]))
    if path.name == "journal":
        lines = bytes(data).split(b"\n")
        path.write_bytes(b"\n".join(draw(st.lists(st.sampled_from(lines), max_size=2 * len(lines)))))
    elif kind == "flip":
        data[place] ^= 1 << draw(st.integers(0, 7))
        path.write_bytes(data)
    elif path in below:  # the plan is on the disk before anything is encoded
        if kind == "swap":
            other = draw(st.sampled_from(below))
            path.write_bytes(other.read_bytes())
            other.write_bytes(data)
        else:
            path.unlink() if kind == "remove" else os.truncate(path, place)


def resume(options: dict[str, Any]) -> None:
    """Run the same call again until the dataset is complete, or start over if it is refused."""
    codes: list[int] = []
    while code := exit_code(Inline(), **options, restart=codes[-1:] == [REFUSED]):
        assert code in (DATA_LOST, MACHINE, REFUSED)
        assert not Path("out").exists()
        codes.append(code)
        assert len(codes) < 3, codes


@pytest.mark.slow
@pytest.mark.promise("resume-checks")
@given(OPTIONS, st.integers(1, 20), limits(), st.data())
@examples(0.5)
def test_damage_between_two_runs(
    options: dict[str, Any], stop: int, sizes: dict[str, Any], data: st.DataObject
) -> None:
    with workplace(), small(sizes):
        options = complete(options)
        convert(Inline(), output="clean", **options)
        try:
            convert(stopping_at(stop), **options)
        except KeyboardInterrupt:
            damage(data.draw)
            resume(options)
        assert tree("out") == tree("clean")
        assert not Path("out.partial").exists()


@pytest.mark.slow
@pytest.mark.promise("resume-checks")
@given(OPTIONS, st.integers(1, 30), limits(), st.data())
@examples(0.5)
def test_damage_during_a_run(
    options: dict[str, Any], task: int, sizes: dict[str, Any], data: st.DataObject
) -> None:
    def before(number: int) -> None:
        # A file that is damaged after verification has read it is not read again.
        if number == task and not Path("out.partial/dataset/manifest.json").exists():
            damage(data.draw)

    with workplace(), small(sizes):
        options = complete(options)
        convert(Inline(), output="clean", **options)
        code = exit_code(Inline(before), **options)
        assert code in (0, DATA_LOST, MACHINE)
        if code:
            assert not Path("out").exists()
            resume(options)
        assert tree("out") == tree("clean")


@pytest.mark.usefixtures("folder")
def test_a_manifest_that_is_damaged_before_it_is_published() -> None:
    def flip(number: int) -> None:
        for path in Path("out.partial").rglob("manifest.json"):
            path.write_bytes(b"z" + path.read_bytes()[1:])

    Path("in.txt").write_bytes(sample_text(30))
    assert exit_code(Inline(flip), inputs=["in.txt"], text_chunk_bytes=200) in (DATA_LOST, MACHINE)


@pytest.mark.long
@pytest.mark.promise("power-failure")
@pytest.mark.usefixtures("folder")
def test_files_from_before_a_start_of_the_machine_are_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure leaves files that have their size but not their bytes."""
    Path("in.txt").write_bytes(sample_text(200))
    options: dict[str, Any] = {
        "inputs": ["in.txt"],
        "text_chunk_bytes": 500,
        "zarr_format": 2,
        "chunk_tokens": 8,
    }
    with small():
        convert(Inline(), output="clean", **options)
        with pytest.raises(KeyboardInterrupt):
            convert(stopping_at(30), **options)
        files = list(Path("out.partial").glob("dataset/train/encoded_tokens/[0-9]*"))
        for path in files:
            path.write_bytes(bytes(path.stat().st_size))
        monkeypatch.setattr("convert.driver.schedule.boot_id", lambda: "another start")
        convert(Inline(), **options)
    assert files
    assert tree("out") == tree("clean")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "task"),
    [("dataset/tokenizer.json", 46), ("dataset/*/encoded_tokens/0", 14), ("shards/*/*.seq_starts", 14)],
)
def test_a_folder_with_the_name_of_a_file_is_replaced(name: str, task: int) -> None:
    Path("in.txt").write_bytes(sample_text(60))
    options: dict[str, Any] = {"inputs": ["in.txt"], "text_chunk_bytes": 500, "chunk_tokens": 8}
    with small():
        convert(Inline(), output="clean", **options)
        with pytest.raises(KeyboardInterrupt):
            convert(stopping_at(task), **options)
        path = next(Path("out.partial").glob(name))
        path.unlink()
        (path / "inside").mkdir(parents=True)
        (path / "file").write_bytes(b"")
        convert(Inline(), **options)
    assert tree("out") == tree("clean")
    assert not Path("out.partial").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["plan.json", "journal", "lock", "status.json"])
def test_a_folder_with_the_name_of_a_file_of_the_run_is_named(name: str) -> None:
    Path("in.txt").write_bytes(sample_text(60))
    Path("out.partial", name).mkdir(parents=True)
    error = error_of(Inline(), inputs=["in.txt"], restart=True)
    assert error.exit_code == REFUSED
    assert str(error).startswith(f"out.partial/{name}: ")
