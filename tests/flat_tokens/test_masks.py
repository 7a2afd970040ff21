"""Loss masks against a naive reading: each token's ID is its position, so a batch implies its mask bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from small_datasets import numbered, write_dataset

import flat_tokens
from flat_tokens import ArgumentError, DatasetError, FlatTokensArray, Loader, Mixture, PackedSequences, writer
from flat_tokens.__main__ import main
from flat_tokens.rows.batch import IGNORED_LABEL, Batch
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.views import all_trained

Bits = npt.NDArray[np.bool_]
LAYOUTS = {
    "zstd": ArrayLayout.create(2, 64),
    "sharded": ArrayLayout.create(3, 16, 64),
    "raw": ArrayLayout.create(2, 64, compression="none"),
    "lz4": ArrayLayout.create(3, 8, 8, "lz4-bitshuffle"),
}


def masked(
    root: Path, layout: ArrayLayout, seed: int = 0, first: int = 0, count: int = 40
) -> tuple[FlatTokensArray, Bits]:
    rng = np.random.default_rng(seed)
    sequences = numbered(rng.integers(1, 31, count).tolist(), first)
    bits = rng.random(sum(map(len, sequences))) < 0.4
    held_out = numbered([3, 1])
    write_dataset(root, sequences, held_out, layout, {"train": bits.tolist(), "validation": [True] * 4})
    assert flat_tokens.verify_dataset(root).problems == ()
    return flat_tokens.open(root).train, bits


def check(batch: Batch, bits: Bits) -> None:
    wanted = bits[batch.ids] & ~batch.is_padding
    assert np.array_equal(batch.loss_mask, wanted)
    assert np.array_equal(batch.targets, np.where(wanted, batch.ids, IGNORED_LABEL))
    assert batch.targets.dtype == batch.ids.dtype


def test_steps_of_padding_alone(tmp_path: Path) -> None:
    """On ranks that have no rows, such steps raised a ValueError in numpy."""
    array, bits = masked(tmp_path / "d", LAYOUTS["zstd"], count=1)
    found: list[Batch] = []
    for rows, seq_len in ((array, 7), (PackedSequences(array, 32, strategy="best-fit"), 32)):
        ranks = [Loader(rows, seq_len, 8, drop_last=False, rank=rank, world_size=4) for rank in range(4)]
        found += [batch for rank in ranks for batch in rank.from_step(0, len(rank))]
        found += [rank.batch(len(rank) - 1) for rank in ranks]
    assert any(batch.is_padding.all() for batch in found)
    for batch in found:
        check(batch, bits)


def test_unsigned_ids_have_no_ignored_label(tmp_path: Path) -> None:
    array, _ = masked(tmp_path / "d", LAYOUTS["raw"])
    for dtype in ("uint16", "uint32"):
        with pytest.raises(ArgumentError, match=f"dtype: .*{dtype}"):
            Loader(array, 7, 8, dtype=dtype)
        with pytest.raises(ArgumentError):
            Mixture([all_trained(array), array], [1, 1], 7, 8, dtype=dtype)


def written(root: Path, bits: Bits, count: int | None, layout: ArrayLayout) -> None:
    """Write a dataset with a mask that may differ from its manifest."""
    tokens = np.array([1, *range(2, 40, 2)], dtype=np.uint32)
    records = []
    for split in ("train", "validation"):
        has_mask = count is not None
        records += writer.create_split(root, split, 20, 1, 19, layout, has_mask=has_mask)
        records += writer.write_run(root, split, layout, "encoded_tokens", 0, tokens)
        records += writer.write_run(root, split, layout, "seq_starts", 0, np.array([0, 20], dtype=np.uint64))
        if len(bits):
            records += writer.write_run(root, split, layout, "loss_mask", 0, bits)
    record = writer.SplitRecord(20, 1, 19, count)
    writer.write_root(root, {"train": record, "validation": record}, records, layout)


def test_invalid_masks_are_refused_by_verify_and_open(tmp_path: Path) -> None:
    layout = ArrayLayout.create(2, 32)
    bits = np.arange(20) % 3 == 0
    written(tmp_path / "good", bits, int(bits.sum()), layout)
    assert flat_tokens.verify_dataset(tmp_path / "good").ok
    written(tmp_path / "count", bits, 3, layout)
    problem = flat_tokens.verify_dataset(tmp_path / "count").problems[0]
    assert problem.startswith("loss_mask/train: ")
    written(tmp_path / "behind", np.append(bits, [True]), 8, layout)
    problem = flat_tokens.verify_dataset(tmp_path / "behind").problems[0]
    assert problem.startswith("loss_mask/train: ")
    array = tmp_path / "good/loss_mask/train/.zarray"
    facts = json.loads(array.read_bytes())
    array.write_text(json.dumps(facts | {"shape": [4]}))
    with pytest.raises(DatasetError) as error:
        flat_tokens.open(tmp_path / "good")
    assert "\n" not in str(error.value)
    array.unlink()
    with pytest.raises(DatasetError, match="loss_mask"):
        flat_tokens.open(tmp_path / "good")


def test_head_shows_the_trained_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bits = [False, True, True, False, True, False, False, False]
    mask = {"train": bits, "validation": [True]}
    write_dataset(tmp_path / "d", [[5, 6, 7, 8, 9], [1, 2, 3]], [[4]], LAYOUTS["zstd"], mask)
    assert main(["head", str(tmp_path / "d")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "trained" in line] == ["  trained: gh | j", "  trained: nothing"]
    assert main(["head", "--tokens", "2", str(tmp_path / "d")]) == 0
    assert "  trained: g ...\n" in capsys.readouterr().out
    assert main(["head", "--json", "-n", "1", "--tokens", "3", str(tmp_path / "d")]) == 0
    assert json.loads(capsys.readouterr().out)["loss_mask"] == [0, 1, 1]
