"""Several datasets as one, and selected sequences: equal to a copy, and as cheap to read as one dataset."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flat_tokens
from flat_tokens import ArgumentError, DatasetError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.views import all_trained, concat, first_of_equals, of_sources, selected
from tests.flat_tokens.contract.drawn_datasets import Drawn, check_equal, datasets
from tests.flat_tokens.small_datasets import write_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("concat")


def masks_of(drawn: list[Drawn]) -> list[bool] | None:
    if all(each.trained is None for each in drawn):
        return None
    return [bit for each in drawn for bit in each.trained or [True] * sum(map(len, each.sequences))]


@pytest.mark.promise("concat")
@given(drawn=st.lists(datasets(most=12), min_size=1, max_size=3), data=st.data())
def test_views_equal_a_copy(folder: Path, drawn: list[Drawn], data: st.DataObject) -> None:
    whole = flat_tokens.open([each.write_in(folder) for each in drawn])
    train, sequences = whole.train, [sequence for each in drawn for sequence in each.sequences]
    origins, mask = [origin for each in drawn for origin in each.origins], masks_of(drawn)
    for array in (
        train,
        pickle.loads(pickle.dumps(train)),
        concat([part.train for part in whole.parts] or [train]),
    ):
        check_equal(array, sequences)
        assert array.sources_of(np.arange(len(array))) == origins
        assert (array.loss_mask is None) == (mask is None)
        assert array.loss_mask is None or array.loss_mask[:].tolist() == mask
    assert all_trained(train).loss_mask is None

    numbers = range(len(sequences))
    chosen = sorted(data.draw(st.sets(st.sampled_from(numbers)))) if sequences else []
    view = selected(train, chosen)
    check_equal(view, [sequences[number] for number in chosen])
    assert view.sources_of(np.arange(len(view))) == [origins[number] for number in chosen]
    if view.loss_mask is not None and mask is not None:
        starts = train.seq_starts[:].astype(int)
        bits = [bit for number in chosen for bit in mask[starts[number] : starts[number + 1]]]
        assert view.loss_mask[:].tolist() == bits

    if any(path.startswith("a/") for each in drawn for path, _ in each.sources):
        of_a = [number for number, (path, _) in enumerate(origins) if path.startswith("a/")]
        check_equal(of_sources(train, "a/*"), [sequences[number] for number in of_a])
        paths, counts = of_sources(train, "a/*").sequence_sources.counts()
        assert sum(count for path, count in zip(paths, counts, strict=True) if path.startswith("a/")) == len(
            of_a
        )
    firsts = [number for number in numbers if sequences[number] not in sequences[:number]]
    assert first_of_equals(train).tolist() == firsts


def test_wrong_calls(folder: Path) -> None:
    drawn = Drawn(ArrayLayout(), {"train": [[1], [2], [3]]}, None, [("a.txt", 3)])
    dataset = flat_tokens.open(drawn.write_in(folder))
    for wrong in ([2, 1], [1, 1], [-1], [3]):
        with pytest.raises(ArgumentError):
            selected(dataset.train, wrong)
    with pytest.raises(ArgumentError, match=r"a\.txt"):
        dataset.of_sources("b.txt")
    with pytest.raises(ArgumentError, match="arrays"):
        concat([])
    with pytest.raises(ArgumentError, match="path"):
        flat_tokens.open([])
    other = drawn.write_in(folder)
    (other / "manifest.json").unlink()
    with pytest.raises(DatasetError, match="manifest"):
        flat_tokens.open([dataset.path, other]).train.source_of(5)


@pytest.mark.promise("concat")
def test_datasets_of_other_tokenizers_are_refused(tmp_path: Path) -> None:
    """Their IDs mean other tokens."""
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        write_dataset(path, [[1]], [], ArrayLayout())
    manifest: Any = flat_tokens.open(paths[1]).manifest
    other = {**manifest.tokenizer, "fingerprint": "0", "sha256": "0"}
    (paths[1] / "manifest.json").write_bytes(replace(manifest, tokenizer=other).to_bytes())
    with pytest.raises(DatasetError, match="another tokenizer"):
        flat_tokens.open(paths)
    assert flat_tokens.open([paths[0], paths[0]]).train.seq_count == 2
