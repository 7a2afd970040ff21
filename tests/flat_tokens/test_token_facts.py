"""What a writer knows of its files stands for their content, and nothing else does."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from flat_tokens import format as flat_format
from flat_tokens import writer
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord
from flat_tokens.storage.token_facts import TokenFacts, content_digest, facts_with_python, token_facts
from flat_tokens.storage.written_metadata import write_chain
from flat_tokens.verify import VerifyReport, verify_dataset

Tokens = npt.NDArray[np.uint32]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 128, 129, 5000])
def test_the_core_finds_what_its_specification_does(count: int, share: float) -> None:
    rng = np.random.default_rng([count, int(share * 100)])
    tokens = rng.integers(0, 2**31, count, dtype=np.uint32) * 2 + (rng.random(count) < share)
    tokens = tokens.astype(np.uint32)
    expected = facts_with_python(tokens)
    assert token_facts(tokens) == expected
    assert expected[:2] == (count, int((tokens & 1).sum()))
    assert expected.largest == int(tokens.max())


def test_starts_are_those_positions_and_no_others() -> None:
    facts = token_facts(np.array([7, 4, 9, 6], dtype=np.uint32))
    assert facts == (4, 2, facts.starts_digest, 9)
    for positions in ([], [0], [0, 1], [0, 3], [1, 2], [0, 2, 3]):
        assert not facts.has_starts(np.array(positions, dtype=np.uint64))
    assert facts.has_starts(np.array([0, 2], dtype=np.uint64))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_facts_need_a_checksum_of_the_content(compression: str, zarr_format: int, tmp_path: Path) -> None:
    layout = ArrayLayout.create(zarr_format, 16, compression=compression)
    writer.create_arrays(tmp_path, "train", layout)
    tokens = np.arange(40, dtype=np.uint32)
    written = writer.write_tokens_with_facts(tmp_path, "train", layout, 0, tokens)
    assert [record for record, _ in written] == writer.write_tokens(tmp_path, "train", layout, 0, tokens)
    units = [tokens[at : at + layout.write_unit_tokens] for at in range(0, 40, layout.write_unit_tokens)]
    expected = [token_facts(unit) if compression == "zstd" else None for unit in units]
    assert [facts for _, facts in written] == expected


def test_bytes_that_hold_something_else_have_no_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = ArrayLayout.create(2, 16)
    writer.create_arrays(tmp_path, "train", layout)
    tokens = np.arange(16, dtype=np.uint32)
    encode = CodecChain.encode
    monkeypatch.setattr(CodecChain, "encode", lambda chain, values: encode(chain, values + np.uint32(2)))
    assert [facts for _, facts in writer.write_tokens_with_facts(tmp_path, "train", layout, 0, tokens)] == [
        None
    ]


def test_a_frame_is_its_content_only_whole(tmp_path: Path) -> None:
    chain = write_chain(ArrayLayout.create(2, 16))
    values = np.arange(16, dtype=np.uint32)
    payload = chain.encode(values)
    assert chain.is_content(payload, content_digest(values))
    assert not chain.is_content(payload, content_digest(values[::-1].copy()))
    for damaged in (b"", payload[:3], payload[:-1], payload + b"\0", payload + payload):
        assert not chain.is_content(damaged, content_digest(values))


Facts = dict[str, TokenFacts]


def written_dataset(
    root: Path, zarr_format: int, change: Callable[[Tokens], None] = lambda tokens: None
) -> Facts:
    """A dataset with the facts of its files; change(tokens): after seq_starts and max_token_id were taken."""
    rng = random.Random(4)
    layout = ArrayLayout.create(zarr_format, 16)
    splits, files, known = {}, [], {}
    for split in ("train", "validation"):
        rows = [[rng.randrange(500) for _ in range(rng.randint(1, 30))] for _ in range(40)]
        encoded, starts, max_token_id = flat_format.from_sequences(rows)
        if split == "train":
            change(encoded)
        files += writer.create_split(root, split, len(encoded), len(rows), max_token_id, layout)
        for record, facts in writer.write_tokens_with_facts(root, split, layout, 0, encoded):
            files.append(record)
            assert facts is not None
            known[record.path] = facts
        files += writer.write_starts(root, split, layout, 0, starts)
        splits[split] = SplitRecord(len(encoded), len(rows), max_token_id)
    writer.write_root(root, splits, files, layout)
    return known


def told(report: VerifyReport) -> list[str]:
    return sorted({problem.split(":")[0] for problem in report.problems})


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_sound_dataset_is_sound_by_facts_and_decoded(zarr_format: int, tmp_path: Path) -> None:
    known = written_dataset(tmp_path, zarr_format)
    decoded = verify_dataset(tmp_path)
    assert decoded.ok
    assert verify_dataset(tmp_path, facts=known) == decoded
    some = dict(list(known.items())[::2])
    assert verify_dataset(tmp_path, facts=some) == decoded


def start_moved(tokens: Tokens) -> None:
    at = int(np.flatnonzero(tokens & 1)[7])
    tokens[at] ^= 1
    tokens[at + 1] ^= 1


def start_gone(tokens: Tokens) -> None:
    tokens[int(np.flatnonzero(tokens & 1)[-1])] ^= 1


def start_added(tokens: Tokens) -> None:
    tokens[int(np.flatnonzero(tokens & 1 == 0)[0])] ^= 1


def id_too_high(tokens: Tokens) -> None:
    tokens[len(tokens) // 2] = 2000


def id_not_attained(tokens: Tokens) -> None:
    tokens[tokens >> 1 == tokens.max() >> 1] &= 1


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("change", [start_moved, start_gone, start_added, id_too_high, id_not_attained])
def test_facts_find_what_decoding_finds(
    change: Callable[[Tokens], None], zarr_format: int, tmp_path: Path
) -> None:
    known = written_dataset(tmp_path, zarr_format, change)
    assert told(verify_dataset(tmp_path)) == ["train/encoded_tokens"]
    assert told(verify_dataset(tmp_path, facts=known)) == ["train/encoded_tokens"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_facts_do_not_stand_for_changed_swapped_or_lost_files(zarr_format: int, tmp_path: Path) -> None:
    known = written_dataset(tmp_path, zarr_format)
    first, second = list(known)[:2] if zarr_format == 2 else list(known)
    data = (tmp_path / first).read_bytes(), (tmp_path / second).read_bytes()
    (tmp_path / first).write_bytes(data[0][:-1] + bytes([data[0][-1] ^ 1]))
    assert told(verify_dataset(tmp_path, facts=known)) == [first]
    (tmp_path / first).unlink()
    assert told(verify_dataset(tmp_path, facts=known)) == [first]
    (tmp_path / first).write_bytes(data[1])
    (tmp_path / second).write_bytes(data[0])
    assert told(verify_dataset(tmp_path, facts=known)) == [first, second]


def test_facts_of_another_place_or_length_are_found_out(tmp_path: Path) -> None:
    known = written_dataset(tmp_path, 2)
    paths = [path for path in known if path.startswith("train/")]
    swapped = {**known, paths[0]: known[paths[3]], paths[3]: known[paths[0]]}
    assert told(verify_dataset(tmp_path, facts=swapped)) == ["train/encoded_tokens"]
    short = {**known, paths[2]: known[paths[2]]._replace(token_count=15)}
    assert told(verify_dataset(tmp_path, facts=short)) == [paths[2]]


def test_without_a_manifest_files_are_decoded(tmp_path: Path) -> None:
    known = written_dataset(tmp_path, 2, start_moved)
    (tmp_path / "manifest.json").unlink()
    sound = {path: token_facts(np.array([1], dtype=np.uint32)) for path in known}
    assert "train/encoded_tokens" in told(verify_dataset(tmp_path, facts=sound))
