"""The bytes of a dataset do not depend on the number of workers, the engine or where the output is."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import (
    ENVIRONMENT,
    Inline,
    command,
    convert,
    convert_by,
    sample_documents,
    sample_text,
    tree,
    workplace,
)
from strategies import FORMS, Corpus, record_files

SLOW = pytest.mark.stress
OPTIONS: dict[str, Any] = {
    "text_chunk_bytes": 700,
    "chunk_tokens": 64,
    "validation_fraction": 0.2,
    "on_error": "quarantine",
    "append_token": "<|endoftext|>",
}


def mixed_corpus() -> Corpus:
    """Two files of each kind, half of them with faults, a longer text, and an archive that is cut off."""
    found: list[Corpus] = []

    @settings(max_examples=1, database=None, derandomize=True)
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        for number, form in enumerate(FORMS[1:] * 2):
            records = [{"id": at, "text": text} for at, text in enumerate(sample_documents(15, seed=number))]
            found.append(data.draw(record_files(f"{number:02}", records, form, faults=number % 2 == 1)))

    draw()
    files = {name: data for each in found for name, data in each.files.items()}
    more = {"long.txt": sample_text(300), "cut.txt.gz": gzip.compress(sample_text(99), mtime=0)[:-99]}
    return Corpus(files | more, [*more, *(name for each in found for name in each.inputs)])


@pytest.fixture(scope="module")
def corpus() -> Iterator[tuple[list[str], dict[int, dict[str, bytes]]]]:
    """The inputs and, by Zarr format, the dataset of one worker."""
    with workplace() as root:
        drawn = mixed_corpus()
        drawn.write()
        inputs = [str(root / name) for name in drawn.inputs]  # a cluster runs elsewhere
        for zarr_format in (2, 3):
            convert(
                Inline(),
                workers=1,
                inputs=inputs,
                output=f"{zarr_format}",
                zarr_format=zarr_format,
                **OPTIONS,
            )
        yield inputs, {zarr_format: tree(f"{zarr_format}") for zarr_format in (2, 3)}


@pytest.mark.slow
@pytest.mark.promise("deterministic")
@pytest.mark.parametrize(
    ("engine", "workers"),
    [
        ("fork", 2),
        ("threads", 3),
        ("pool", 2),
        *(pytest.param(*one, marks=SLOW) for one in [("fork", 1), ("fork", 8), ("spawn", 2), ("inline", 8)]),
    ],
)
def test_engines_of_this_machine(engine: str, workers: int, corpus: Any, tmp_path: Path) -> None:
    inputs, expected = corpus
    convert_by(engine, workers, inputs=inputs, output=str(tmp_path / "out"), zarr_format=2, **OPTIONS)
    assert tree(tmp_path / "out") == expected[2]


@pytest.mark.parametrize("text_chunk_bytes", [pytest.param(97, marks=SLOW), 5000, None])
def test_text_chunks(text_chunk_bytes: int | None, corpus: Any, tmp_path: Path) -> None:
    inputs, expected = corpus
    more = OPTIONS | {"text_chunk_bytes": text_chunk_bytes}
    convert(Inline(), inputs=inputs, output=str(tmp_path / "out"), zarr_format=2, **more)
    assert tree(tmp_path / "out") == expected[2]


@pytest.mark.long
@pytest.mark.promise("deterministic")
def test_the_command_and_other_environments(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, expected = corpus
    for name, value in {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "TZ": "Asia/Kathmandu",
        "PYTHONHASHSEED": "7",
    }.items():
        monkeypatch.setitem(ENVIRONMENT, name, value)
    code, _, err = command(*inputs, output=str(tmp_path / "out"), zarr_format=3, progress="none", **OPTIONS)
    assert (code, err) == (0, "")
    assert tree(tmp_path / "out") == expected[3]
