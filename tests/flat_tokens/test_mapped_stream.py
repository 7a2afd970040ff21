"""Rows gathered from mapped files: they equal those that are decoded, damage is told, a fork finds no lock held."""

from __future__ import annotations

import errno
import mmap
import multiprocessing
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.loading.loader import Loader
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.storage import mapped_stream
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.mapped_stream import MappedStream

CHUNK = mmap.PAGESIZE // 4
OPTIONS: Any = {"block_tokens": 2 * CHUNK, "shuffle_blocks": 4}


def raw(make_dataset: Any, random_sequences: Any, count: int = 3000) -> Path:
    sequences = random_sequences(3, count, longest=12, largest_id=27)
    path: Path = make_dataset(sequences, layout=ArrayLayout.create(2, CHUNK, compression="none"), name="raw")
    return path


@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("seq_len", [7, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_gathered_batches_equal_decoded_ones(
    make_dataset: Any, random_sequences: Any, seq_len: int, dtype: str
) -> None:
    gathered = flat_tokens.open(raw(make_dataset, random_sequences)).train
    sequences = random_sequences(3, 3000, longest=12, largest_id=27)
    decoded = flat_tokens.open(make_dataset(sequences, layout=ArrayLayout.create(2, CHUNK), name="z")).train
    assert gathered.encoded_tokens.stream() is not None
    assert decoded.encoded_tokens.stream() is None
    one, other = (Loader(array, seq_len, 4, 5, dtype=dtype, **OPTIONS) for array in (gathered, decoded))
    for start in (0, len(one) - 1, len(one)):
        for prefetch in (True, False):
            batches = one.from_step(start, start + 12, prefetch=prefetch)
            for batch, expected in zip(batches, other.from_step(start, start + 12), strict=True):
                same_batch(batch, expected, dtype)
    for step in (len(one), 0, 1, 3 * len(one)):
        same_batch(
            Loader(gathered, seq_len, 4, 5, dtype=dtype, **OPTIONS).batch(step), other.batch(step), dtype
        )


def same_batch(batch: Any, expected: Any, dtype: str) -> None:
    assert batch.inputs.dtype == batch.targets.dtype == np.dtype(dtype)
    for name, array in expected.as_dict().items():
        assert np.array_equal(getattr(batch, name), array), name


def test_batches_that_are_held_do_not_change(make_dataset: Any, random_sequences: Any) -> None:
    loader = Loader(flat_tokens.open(raw(make_dataset, random_sequences)).train, 16, 4, 5, **OPTIONS)
    held, copies = [], []
    for batch in loader.from_step(0, 40):
        held.append(batch)
        copies.append([array.copy() for array in (batch.inputs, batch.targets, batch.is_seq_start)])
    for batch, kept in zip(held, copies, strict=True):
        for array, copy in zip((batch.inputs, batch.targets, batch.is_seq_start), kept, strict=True):
            assert np.array_equal(array, copy)


def test_only_what_lies_so_is_mapped(make_dataset: Any) -> None:
    layouts = {
        "small": ArrayLayout.create(2, CHUNK // 2, compression="none"),
        "shards": ArrayLayout.create(3, CHUNK, 2 * CHUNK, "none"),
        "packed": ArrayLayout.create(2, CHUNK),
    }
    for name, layout in layouts.items():
        stored = flat_tokens.open(make_dataset(layout=layout, name=name)).train.encoded_tokens.stored
        assert stored is not None
        assert not MappedStream.fits(stored)


def lost(file: Path) -> None:
    file.unlink()


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4])


def too_great(file: Path) -> None:
    values = np.frombuffer(file.read_bytes(), "<u4").copy()
    values[5] = 99
    file.write_bytes(values.tobytes())


@pytest.mark.parametrize(
    ("harm", "where"),
    [(lost, "encoded_tokens/7: "), (torn, "encoded_tokens/7: "), (too_great, r"ID of token \d+")],
    ids=["lost", "torn", "too-great"],
)
@pytest.mark.parametrize("has_manifest", [True, False], ids=["manifest", "bare"])
def test_damage_is_told(
    make_dataset: Any, random_sequences: Any, harm: Any, where: str, has_manifest: bool
) -> None:
    root = raw(make_dataset, random_sequences)
    harm(root / "train/encoded_tokens/7")
    if not has_manifest:
        (root / "manifest.json").unlink()
    train = flat_tokens.open(root).train
    for prefetch in (True, False):
        with pytest.raises(DatasetError, match=where):
            list(
                Loader(train, 16, 4, 5, **OPTIONS).from_step(0, len(Loader(train, 16, 4)), prefetch=prefetch)
            )


def test_without_a_manifest_a_lost_file_is_told_by_every_reader(
    make_dataset: Any, random_sequences: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from flat_tokens.__main__ import main

    for name, compression in (("raw", "none"), ("zstd", "zstd")):
        layout = ArrayLayout.create(2, CHUNK, compression=compression)
        root = make_dataset(random_sequences(3, 3000, longest=12, largest_id=27), layout=layout, name=name)
        (root / "manifest.json").unlink()
        whole = shutil.copytree(root, root.with_name(f"{name}-whole"))
        assert len(flat_tokens.open(whole).train.sequence(0)) > 0
        (root / "train/encoded_tokens/0").unlink()
        train = flat_tokens.open(root).train
        packs = PackedSequences(train, 16, split_across_pack=True)
        reads: list[Any] = [lambda t=train: t.sequence(0), lambda p=packs: p[0], lambda t=train: t.row(0, 8)]
        for read in reads:
            with pytest.raises(DatasetError, match="encoded_tokens/0"):
                read()
        for command in (
            ["head", str(root)],
            ["report", str(root), "-o", str(root.with_name(f"{name}.html"))],
        ):
            assert main(command) == 3
            assert "encoded_tokens/0: " in capsys.readouterr().err


def _first_inputs(loader: Loader, answers: Any) -> None:
    answers.put(loader.batch(0).inputs.tolist())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_holds_the_lock(make_dataset: Any, random_sequences: Any) -> None:
    loader = Loader(flat_tokens.open(raw(make_dataset, random_sequences)).train, 16, 4, 5, **OPTIONS)
    expected = loader.batch(0).inputs.tolist()
    context = multiprocessing.get_context("fork")
    answers: Any = context.SimpleQueue()
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with loader._lock:
            is_held.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    child = context.Process(target=_first_inputs, args=(loader, answers))
    child.start()
    child.join(20)
    blocked = child.is_alive()
    if blocked:
        child.kill()
    may_end.set()
    thread.join()
    assert not blocked
    assert answers.get() == expected


def test_without_addresses_for_all_of_it_batches_are_the_same(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on address space (ulimit -v), or an array that claims more than there is."""
    root = raw(make_dataset, random_sequences)
    expected = list(Loader(flat_tokens.open(root).train, 7, 4, 5, **OPTIONS).from_step(0, 9))

    def refused(size: int) -> Any:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mapped_stream, "reserve", refused)
    train = flat_tokens.open(root).train
    assert train.encoded_tokens.stream() is None
    for batch, other in zip(Loader(train, 7, 4, 5, **OPTIONS).from_step(0, 9), expected, strict=True):
        same_batch(batch, other, "int32")
