"""Targets of convert: a damaged working folder of an earlier run, and the run that resumes.

The dataset equals the result of an undisturbed run, or an error of one line names the problem. Lines of the log are
damaged, lost, doubled, reordered and taken from another run. Forged lines are not tried, because writers are trusted.
"""

from __future__ import annotations

import json
import random
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from bounded_run import Target
from mutations import change_bytes, change_json

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "convert" / "contract"))
from inline_engine import InlineEngine
from runs import sample_text, tokenizer_bytes, tree

import convert.driver.schedule
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.errors import BadInput
from convert.shards.merge import merge
from tokenmill.errors import TokenmillError

_kept = TemporaryDirectory(prefix="fuzz-corpus-")  # plans contain its path and times
STAGES = (0, 1, 2)  # runs that are merged


def options(output: Path) -> ConvertOptions:
    """Return the options of all runs; some runs have several Zarr chunks per split and several shards."""
    folder = Path(_kept.name)
    return ConvertOptions(
        inputs=[str(folder / "en.txt")],
        tokenizer=str(folder / "tok.json"),
        output=str(output),
        progress="none",
        text_chunk_bytes=600,
        chunk_tokens=64,
        validation_fraction=0.2,
    )


@cache
def sound(stage: int, attempt: int) -> dict[str, bytes]:
    """Return the files of the working folder of a run that stopped after merging `stage` runs."""
    left = Path(_kept.name) / f"stopped-{stage}-{attempt}"
    merged = []

    def merge_a_few(*task: object) -> object:
        if len(merged) == stage:
            raise BadInput("no more")
        merged.append(task)
        return merge(*task)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert.driver.schedule, "merge", merge_a_few)
        with pytest.raises(BadInput):
            run_conversion(options(left), InlineEngine())
    return tree(left.with_name(f"{left.name}.partial"))


@cache
def expected() -> dict[str, bytes]:
    """Return the dataset; also creates the corpus."""
    folder = Path(_kept.name)
    (folder / "tok.json").write_bytes(tokenizer_bytes())
    (folder / "en.txt").write_bytes(sample_text(40))
    run_conversion(options(folder / "clean"), InlineEngine())
    return tree(folder / "clean")


def make_folder(rng: random.Random, folder: Path) -> Path:
    """Return a working folder with some files changed."""
    expected()
    folders = {stage: sound(stage, 0) for stage in STAGES}
    others = {stage: sound(stage, 1) for stage in STAGES}  # from another run
    stage = rng.choice(STAGES)
    files = dict(folders[stage])
    for _ in range(rng.choice([1, 1, 2, 4])):
        name = rng.choice([rng.choice(sorted(files)), "plan.json", "journal"])
        if name not in files:
            continue
        data = files[name]
        match rng.randrange(7):
            case 0:
                del files[name]
            case 1:
                files[name] = data[: rng.randrange(len(data) + 1)].ljust(rng.choice([0, len(data)]), b"\0")
            case 2:
                other = rng.choice(sorted(files))
                files[name], files[other] = files[other], files[name]
            case 3 if name == "plan.json":
                lines = folders[stage][name].splitlines()
                number = rng.randrange(len(lines))
                lines[number] = change_json(rng, json.loads(lines[number]))
                files[name] = b"\n".join([*lines, b""])
            case 3 | 4 if name == "journal":
                lines = data.split(b"\n") + rng.choice([[], others[stage][name].split(b"\n")])
                rng.shuffle(lines)
                files[name] = b"\n".join(rng.sample(lines, rng.randint(0, len(lines))))
            case 5:
                files[name] = others[rng.choice(STAGES)].get(name, b"")
            case _:
                files[name] = change_bytes(rng, data)
    root = folder / "out.partial"
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return folder


def go_on(folder: Path) -> None:
    """Resume. Raise AssertionError if the dataset differs from an undisturbed run."""
    run_conversion(options(folder / "out"), InlineEngine())
    found, wanted = tree(folder / "out"), expected()
    other = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    assert not other, f"another dataset, in {other[:4]}"


TARGETS = [
    Target(
        "working folder",
        make_folder,
        go_on,
        (TokenmillError,),
        base_bytes=1 << 29,
        base_seconds=30.0,
        may_write=True,
    )
]
