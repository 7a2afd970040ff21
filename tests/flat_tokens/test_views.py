"""Views: parts joined and sequences selected read as the copy does that they stand for."""

from __future__ import annotations

import json
import pickle
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from small_datasets import Sequences, write_dataset

import flat_tokens
from flat_tokens import ArgumentError, DatasetError, FlatTokensArray, Loader, writer
from flat_tokens.__main__ import main
from flat_tokens.format import from_sequences
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.views import first_of_equals, joined, of_sources, selected

LAYOUTS = [
    ArrayLayout.create(zarr_format=3, chunk_tokens=8, shard_tokens=32),
    ArrayLayout.create(zarr_format=2, chunk_tokens=16),
    ArrayLayout.create(zarr_format=2, chunk_tokens=16, compression="none"),
]


def sequences(rng: np.random.Generator, count: int, largest: int = 500) -> list[list[int]]:
    lengths = rng.integers(1, 30, count)
    return [rng.integers(0, largest, length).tolist() for length in lengths]


def split_of(root: Path, train: Sequences, layout: ArrayLayout) -> FlatTokensArray:
    write_dataset(root, train, [], layout)
    return flat_tokens.open(root).train


def check_equal(array: FlatTokensArray, wanted: Sequences) -> None:
    encoded, starts, _ = from_sequences(wanted)
    assert [array.sequence(index).tolist() for index in range(len(array))] == list(wanted)
    assert array.encoded_tokens[:].tolist() == encoded.tolist()
    assert array.seq_starts[:].tolist() == starts.tolist()
    rng = np.random.default_rng(1)
    for start, stop in np.sort(rng.integers(0, len(encoded) + 1, (20, 2))).tolist():
        assert array.encoded_tokens[start:stop].tolist() == encoded[start:stop].tolist()
    rows = rng.permutation(array.row_count(5))
    assert array.rows(rows, 5).ids.tolist() == [array.row(row, 5).ids.tolist() for row in rows]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["sharded", "zstd", "raw"])
@pytest.mark.parametrize("counts", [(20, 0, 31), (0, 0), (0, 7), (5,), (1, 1, 1, 1)])
def test_joined_reads_as_one_array(tmp_path: Path, layout: ArrayLayout, counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(counts))
    parts = [sequences(rng, count) for count in counts]
    arrays = [split_of(tmp_path / f"{at}", part, LAYOUTS[at % 3]) for at, part in enumerate(parts)]
    view = joined(tmp_path, "train", arrays)
    whole = [sequence for part in parts for sequence in part]
    check_equal(view, whole)
    check_equal(pickle.loads(pickle.dumps(view)), whole)
    if len(whole) > 20:
        copy = split_of(tmp_path / "copy", whole, layout)
        batches = [
            [(batch.inputs.tolist(), batch.targets.tolist()) for batch in Loader(own, 2, 12, seed=3)]
            for own in (view, copy)
        ]
        assert batches[0] == batches[1]
        packs = [[pack.tokens.tolist() for pack in PackedSequences(own, 40)] for own in (view, copy)]
        assert packs[0] == packs[1]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_selected_reads_as_its_copy(tmp_path: Path, share: float) -> None:
    rng = np.random.default_rng(7)
    whole = sequences(rng, 80)
    array = split_of(tmp_path / "a", whole, LAYOUTS[0])
    chosen = np.flatnonzero(rng.random(80) < share)
    view = selected(array, chosen)
    check_equal(view, [whole[at] for at in chosen])
    again = np.flatnonzero(rng.random(len(chosen)) < 0.5)  # a view of a view
    check_equal(selected(view, again), [whole[at] for at in chosen[again]])


@pytest.mark.parametrize(
    ("chosen", "where"),
    [
        ([1, 1], r"sequences\[1\]: .*\(got 1\)"),
        ([2, 1], r"sequences\[1\]: .*\(got 1\)"),
        ([-1, 2], r"train: sequences .*\(got -1\)"),
        ([4, 5], r"train: sequences .*\(got 5\)"),
        ([0.5], "indices: "),
    ],
)
def test_what_cannot_be_selected(tmp_path: Path, chosen: list[float], where: str) -> None:
    array = split_of(tmp_path / "a", sequences(np.random.default_rng(0), 5), LAYOUTS[1])
    with pytest.raises(ArgumentError, match=where):
        selected(array, chosen)


def test_starts_that_do_not_rise(tmp_path: Path) -> None:
    root, layout = tmp_path / "a", LAYOUTS[1]
    write_dataset(root, [[1, 2]] * 4, [], layout)
    writer.write_starts(root, "train", layout, 0, np.array([0, 2, 2, 6, 8], dtype=np.uint64))
    (root / "manifest.json").unlink()
    with pytest.raises(DatasetError):
        selected(flat_tokens.open(root).train, [1])


def test_without_exact_duplicates(tmp_path: Path) -> None:
    whole = [[1, 2], [3], [1, 2], [1], [2], [3], [1, 2, 3]]
    array = split_of(tmp_path / "a", whole, LAYOUTS[0])
    assert first_of_equals(array).tolist() == [0, 1, 3, 4, 6]
    check_equal(selected(array, first_of_equals(array)), [[1, 2], [3], [1], [2], [1, 2, 3]])
    assert first_of_equals(selected(array, [])).tolist() == []


def test_near_and_far_and_beyond_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flat_tokens.views._STARTS_AT_A_TIME", 7)
    monkeypatch.setattr("flat_tokens.views._TOKENS_AT_A_TIME", 5)
    drawn = np.random.default_rng(3)
    whole = [drawn.integers(0, 2, drawn.integers(1, 9)).tolist() for _ in range(200)]
    array = split_of(tmp_path / "a", whole, LAYOUTS[1])
    chosen = [0, 1, 17, 18, 40, 57, 75, 199]  # starts that are read as one range, and ones that are not
    check_equal(selected(array, chosen), [whole[number] for number in chosen])
    found = first_of_equals(array)
    firsts = {tuple(sequence): number for number, sequence in reversed(list(enumerate(whole)))}
    assert found.tolist() == sorted(firsts.values())


NAMES = ["en/a.txt", "en/b.txt", "de/a.txt", "x[1].txt", "fr.txt", "en/c.txt", "none.txt"]
COUNTS = [3, 5, 0, 4, 6, 2, 0]


def with_sources(
    root: Path, seed: int, layout: ArrayLayout = LAYOUTS[0]
) -> tuple[flat_tokens.Dataset, list[tuple[str, list[int]]]]:
    """A dataset, and the source and ids of each sequence of train; the last source has the only one of validation."""
    own = sequences(np.random.default_rng(seed), sum(COUNTS))
    of = [name for name, count in zip(NAMES, COUNTS, strict=True) for _ in range(count)]
    sources = [
        {"path": name, "train_sequences": count, "validation_sequences": int(name == "none.txt")}
        for name, count in zip(NAMES, COUNTS, strict=True)
    ]
    write_dataset(root, own, [[7, 8]], layout, sources=sources)
    return flat_tokens.open(root), list(zip(of, own, strict=True))


PATTERNS = [
    ("en/a.txt",),
    ("en/*",),
    ("*a.txt",),
    ("x[1].txt",),
    ("*",),
    ("none.txt",),
    ("de/*",),
    ("en/b.txt", "fr*"),
    ("fr.txt", "en/a.txt", "fr.txt"),
]


@pytest.mark.parametrize("patterns", PATTERNS, ids=" ".join)
@pytest.mark.parametrize("layout", LAYOUTS, ids=["sharded", "zstd", "raw"])
def test_of_sources_reads_as_its_copy(tmp_path: Path, layout: ArrayLayout, patterns: tuple[str, ...]) -> None:
    def wanted(whole: list[tuple[str, list[int]]]) -> list[list[int]]:
        return [ids for name, ids in whole if any(name == p or fnmatchcase(name, p) for p in patterns)]

    dataset, own = with_sources(tmp_path / "d", 1, layout)
    found = dataset.of_sources(*patterns)
    check_equal(found.train, wanted(own))
    check_equal(pickle.loads(pickle.dumps(found)).train, wanted(own))
    has_validation = bool({"none.txt", "*"} & set(patterns))
    assert [ids.tolist() for ids in found.validation] == [[7, 8]] * has_validation
    # Of parts one after the other, and of some sequences of them.
    other, more = with_sources(tmp_path / "other", 2)
    both, whole = joined(tmp_path, "train", [dataset.train, other.train]), own + more
    check_equal(of_sources(both, *patterns), wanted(whole))
    for chosen in ([], [0], [2, 3, 4, 19, 20, 23], np.flatnonzero(np.arange(40) % 3)):
        view = selected(both, np.array(chosen, dtype=np.int64))
        check_equal(of_sources(view, *patterns), wanted([whole[at] for at in chosen]))
        again = of_sources(of_sources(view, "*"), *patterns)
        assert [ids.tolist() for ids in again] == wanted([whole[at] for at in chosen])


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    dataset, _ = with_sources(tmp_path / "d", 1)
    with pytest.raises(ArgumentError, match=r"source: .*en/a.txt.*en/b.txt.*'it/\*'"):
        dataset.of_sources("en/*", "it/*")
    with pytest.raises(ArgumentError):
        dataset.of_sources("")
    plain = split_of(tmp_path / "plain", [[1, 2]], LAYOUTS[0])
    with pytest.raises(DatasetError, match="'train_sequences'"):
        of_sources(plain, "a.txt")
    counted = [{"path": "a.txt", "train_sequences": 1, "validation_sequences": 0}]
    write_dataset(tmp_path / "less", [[1], [2]], [], LAYOUTS[0], sources=counted)
    with pytest.raises(DatasetError):
        flat_tokens.open(tmp_path / "less").of_sources("a.txt")


def test_commands_with_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, own = with_sources(tmp_path / "d", 1)
    wanted = [ids for name, ids in own if name.startswith("en/")]
    root = str(tmp_path / "d")
    assert main(["info", root, "--source", "en/*"]) == 0
    shown = capsys.readouterr().out
    assert "d: 3 of 7 sources\n" in shown
    assert f"train: {sum(map(len, wanted))} tokens in 10 sequences\n" in shown
    assert "  en/c.txt: train sequences 2, validation sequences 0\n" in shown
    assert main(["info", root, "--source", "en/*", "--source", "fr.txt", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [source["path"] for source in facts["sources"]] == ["en/a.txt", "en/b.txt", "fr.txt", "en/c.txt"]
    assert facts["splits"]["train"]["seq_count"] == 16
    assert main(["head", root, "--source", "en/*", "-n", "100", "--tokens", "100", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["ids"] for line in lines] == wanted
    assert main(["head", root, "--source", "it/*"]) == 2
    assert "error: source: " in capsys.readouterr().err
    out = str(tmp_path / "out")
    assert main(["export", root, "--to", "jsonl", "--source", "en/*", "-o", out]) == 0
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line)["tokens"] for line in lines] == wanted
