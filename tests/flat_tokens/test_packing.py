"""Packs read from a dataset: what is in them, against a naive packer with the rules of torchtune's PackedDataset."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, DatasetError, Loader, PackedSequences, RangeError
from flat_tokens.storage.layout import ArrayLayout

EXAMPLE = [[1, 2], [3, 4, 5], [6, 7, 8]]


def pack_naively(
    sequences: list[list[int]], max_seq_len: int, padding_id: int, max_packs: int | None, split: bool
) -> list[dict[str, list[int]]]:
    """torchtune's rules in plain words: append each sequence to the open pack; while that is too long, close it at its
    end (split) or in front of the sequence."""
    packs: list[dict[str, list[int]]] = []

    def close(tokens: list[int], positions: list[int], lengths: list[int]) -> None:
        pads = max_seq_len - len(tokens)
        counting_on = [min(positions[-1] + 1 + pad, max_seq_len - 1) for pad in range(pads)]
        packs.append(
            {
                "tokens": tokens + [padding_id] * pads,
                "labels": tokens + [-100] * pads,
                "input_pos": positions + counting_on,
                "seq_lens": lengths + [pads] * (pads > 0),
            }
        )

    tokens: list[int] = []
    positions: list[int] = []
    lengths: list[int] = []
    for sequence in sequences:
        if not split and len(tokens) + len(sequence) > max_seq_len:
            close(tokens, positions, lengths)
            tokens, positions, lengths = [], [], []
        tokens = tokens + sequence
        positions = positions + [place % max_seq_len for place in range(len(sequence))]
        lengths = [*lengths, len(sequence)]
        while len(tokens) > max_seq_len:
            in_front = sum(lengths[:-1])
            cut = [max_seq_len - in_front] if in_front < max_seq_len else []
            close(tokens[:max_seq_len], positions[:max_seq_len], lengths[:-1] + cut)
            tokens, positions = tokens[max_seq_len:], positions[max_seq_len:]
            lengths = [len(tokens)]
    if tokens:
        close(tokens, positions, lengths)
    return packs[:max_packs]


def as_lists(packed: PackedSequences) -> list[dict[str, list[int]]]:
    return [{field: pack[field].tolist() for field in pack} for pack in packed]


@pytest.fixture
def array(make_dataset: Callable[..., Any]) -> Callable[..., flat_tokens.FlatTokensArray]:
    def make(sequences: list[list[int]], **options: Any) -> flat_tokens.FlatTokensArray:
        return flat_tokens.open(make_dataset(sequences, **options)).train

    return make


def test_the_example_of_the_page(array: Any) -> None:
    packed = PackedSequences(array([[5, 6, 7], [8, 9], [1, 2, 3, 4]]), max_seq_len=6, padding_id=0)
    assert len(packed) == 2
    pack = packed[0]
    assert pack.tokens.tolist() == [5, 6, 7, 8, 9, 0]
    assert pack.labels.tolist() == [5, 6, 7, 8, 9, -100]
    assert pack.input_pos.tolist() == [0, 1, 2, 0, 1, 2]
    assert pack.seq_lens.tolist() == [3, 2, 1]
    assert pack.token_count == 5
    assert pack.segment_ids.tolist() == [1, 1, 1, 2, 2, 0]
    assert pack.cu_seqlens.tolist() == [0, 3, 5, 6]
    assert pack.max_seqlen == 3
    assert pack.mask().astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    assert packed[1].mask().astype(int)[3:].tolist() == [
        [1, 1, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    assert {name: getattr(pack, name).dtype for name in pack} == dict.fromkeys(
        pack.keys(), np.dtype(np.int32)
    )
    assert {pack.segment_ids.dtype, pack.cu_seqlens.dtype} == {np.dtype(np.int32)}
    assert pack.mask().dtype == np.bool_


@pytest.mark.parametrize("max_packs", [None, 1, 7])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("max_seq_len", [9, 10, 16, 33, 1000])
@pytest.mark.parametrize("seed", [0, 1])
def test_packs_are_those_of_the_naive_packer(
    seed: int, max_seq_len: int, split: bool, max_packs: int | None, array: Any, random_sequences: Any
) -> None:
    sequences = random_sequences(seed, 120, longest=40 if split else 9)
    packed = PackedSequences(
        array(sequences, layout=ArrayLayout.create(chunk_tokens=64)), max_seq_len, 99, max_packs, split
    )
    expected = pack_naively(sequences, max_seq_len, 99, max_packs, split)
    assert len(packed) == len(expected)
    assert as_lists(packed) == expected
    used = sum(int(label != -100) for pack in expected for label in pack["labels"])
    total = sum(map(len, sequences))
    report = packed.report
    assert (report.tokens_used, report.tokens_lost) == (used, total - used)
    assert report.tokens_padded == len(expected) * max_seq_len - used
    ends = np.cumsum([len(sequence) for sequence in sequences]).tolist()
    starts = [0, *ends[:-1]]
    begun = [(start, end) for start, end in zip(starts, ends, strict=True) if start < used]
    assert (report.seqs_used, report.seqs_lost) == (len(begun), len(sequences) - len(begun))
    assert (
        report.seqs_split
        == sum(start // max_seq_len != (end - 1) // max_seq_len for start, end in begun) * split
    )


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
def test_best_fit_packs_hold_every_sequence_once(split: bool, array: Any, random_sequences: Any) -> None:
    sequences = random_sequences(3, 500, longest=40 if split else 16)
    packed = PackedSequences(array(sequences), 16, 27, None, split, strategy="best-fit", window_seqs=100)
    pieces = []
    for pack in packed:
        at = 0
        for length in pack.seq_lens.tolist()[: pack.segment_ids.max()]:
            pieces.append(tuple(pack.tokens[at : at + length].tolist()))
            assert pack.input_pos[at : at + length].tolist() == list(range(length))
            at += length
        assert at == pack.token_count
        assert (pack.labels[at:] == -100).all()
    cut = [tuple(sequence[at : at + 16]) for sequence in sequences for at in range(0, len(sequence), 16)]
    assert sorted(pieces) == sorted(cut)
    assert packed.report.tokens_used == sum(map(len, sequences))


def test_positions_of_a_cut_sequence(array: Any) -> None:
    whole = array([[1, 2, 3], list(range(10, 20))])
    goes_on = PackedSequences(whole, 5, split_across_pack=True)
    assert [pack.input_pos.tolist() for pack in goes_on] == [
        [0, 1, 2, 0, 1],
        [2, 3, 4, 0, 1],
        [2, 3, 4, 4, 4],
    ]
    restarts = PackedSequences(whole, 5, split_across_pack=True, restart_positions=True)
    assert [pack.input_pos.tolist() for pack in restarts] == [
        [0, 1, 2, 0, 1],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4],
    ]
    assert [pack.seq_lens.tolist() for pack in restarts] == [[3, 2], [5], [3, 2]]


def test_labels_of_first_tokens_can_be_ignored(array: Any) -> None:
    pack = PackedSequences(array([[5, 6, 7], [8, 9]]), 6, ignore_first_labels=True)[0]
    assert pack.labels.tolist() == [-100, 6, 7, -100, 9, -100]
    assert pack.tokens.tolist() == [5, 6, 7, 8, 9, 0]


def test_a_batch_is_its_packs(array: Any, random_sequences: Any) -> None:
    packed = PackedSequences(array(random_sequences(4, 50)), 12)
    batch = packed.batch([3, 0, -1])
    packs = [packed[3], packed[0], packed[-1]]
    assert batch.tokens.shape == batch.labels.shape == batch.input_pos.shape == (3, 12)
    for row, pack in enumerate(packs):
        for name in ("tokens", "labels", "input_pos", "segment_ids"):
            assert (getattr(batch, name)[row] == getattr(pack, name)).all()
        assert (batch.mask()[row] == pack.mask()).all()
        assert (batch.seq_lens[row] == pack.seq_lens).all()
    assert batch.cu_seqlens.dtype == np.int32
    assert batch.cu_seqlens[[0, -1]].tolist() == [0, 36]
    assert np.diff(batch.cu_seqlens).tolist() == [n for pack in packs for n in pack.seq_lens.tolist()]
    assert batch.max_seqlen == max(pack.max_seqlen for pack in packs)
    empty = packed.batch([])
    assert (empty.tokens.shape, empty.mask().shape, empty.cu_seqlens.tolist()) == ((0, 12), (0, 12, 12), [0])


def test_no_sequences_are_no_packs(array: Any) -> None:
    for options in ({}, {"split_across_pack": True}, {"strategy": "best-fit"}):
        packed = PackedSequences(array([]), 6, **options)
        assert (len(packed), list(packed), packed.report.pack_count) == (0, [], 0)
        assert packed.report.padded_fraction == 0


def test_packs_after_pickling_and_from_threads(array: Any, random_sequences: Any) -> None:
    sequences = random_sequences(5, 300)
    for options in ({}, {"split_across_pack": True}, {"strategy": "best-fit", "window_seqs": 50}):
        packed = PackedSequences(array(sequences), 9, **options)
        expected = as_lists(packed)
        assert as_lists(pickle.loads(pickle.dumps(packed))) == expected
        with ThreadPoolExecutor(4) as executor:
            read = list(executor.map(packed.__getitem__, range(len(packed))))
        assert [{field: pack[field].tolist() for field in pack} for pack in read] == expected


def test_a_pack_reads_as_a_mapping(array: Any) -> None:
    pack = PackedSequences(array(EXAMPLE), 6)[0]
    assert list(dict(pack)) == ["tokens", "labels", "input_pos", "seq_lens"]
    assert len(pack) == 4
    with pytest.raises(KeyError, match="input_pos.*seq_lens"):
        pack["mask"]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"max_seq_len": 0}, "max_seq_len: "),
        ({"max_seq_len": 2**31}, "max_seq_len: "),
        ({"max_seq_len": 2.5}, "max_seq_len: "),
        ({"max_seq_len": True}, "max_seq_len: "),
        ({"padding_id": -1}, "padding_id: "),
        ({"padding_id": 2**31}, "padding_id: "),
        ({"max_packs": 0}, "max_packs: "),
        ({"strategy": "worst-fit"}, "strategy: "),
        ({"window_seqs": 5}, "window_seqs: "),
        ({"strategy": "best-fit", "window_seqs": 0}, "window_seqs: "),
        ({"strategy": "best-fit", "max_seq_len": 2**23}, "max_seq_len of best-fit packs: "),
        ({"max_seq_len": 2}, "train: sequence 1 .*max_seq_len"),
    ],
)
def test_bad_arguments_are_told(arguments: dict[str, Any], where: str, array: Any) -> None:
    with pytest.raises(ArgumentError, match=where):
        PackedSequences(array(EXAMPLE), **({"max_seq_len": 6} | arguments))


@pytest.mark.parametrize("index", [2, -3, 10**20])
def test_a_pack_out_of_range_is_told(index: int, array: Any) -> None:
    packed = PackedSequences(array(EXAMPLE), 6)
    with pytest.raises(RangeError, match=rf"train: index of a pack .*{index}"):
        packed[index]


@pytest.mark.parametrize("index", [slice(0, 2), "0", 1.0, None])
def test_a_pack_is_asked_for_by_an_integer(index: Any, array: Any) -> None:
    with pytest.raises(ArgumentError):
        PackedSequences(array(EXAMPLE), 6)[index]
    assert PackedSequences(array(EXAMPLE), 6)[np.int64(1)].tokens[0] == 6


def test_tokens_that_do_not_begin_where_seq_starts_says(make_dataset: Any) -> None:
    path = make_dataset(EXAMPLE, layout=ArrayLayout.create(compression="none"))
    file = path / "train" / "encoded_tokens" / "0"
    data = bytearray(file.read_bytes())
    data[20] &= 0xFE  # token 5, the first of the third sequence
    file.write_bytes(data)
    packed = PackedSequences(flat_tokens.open(path).train, 6)
    assert packed[0].token_count == 5
    with pytest.raises(DatasetError, match=r"train/encoded_tokens\[5\].*seq_starts"):
        packed[1]
    with pytest.raises(DatasetError, match=r"train/encoded_tokens\[5\]"):
        Loader(packed, 6, 2, shuffle=False).batch(0)


def test_the_report_is_a_line(array: Any) -> None:
    assert str(PackedSequences(array(EXAMPLE), 6, max_packs=1).report) == (
        "1 packs of 6: 5 tokens used, 1 padded (16.667%), 3 lost; 2 sequences used, 0 split, 1 lost"
    )


@pytest.mark.parametrize("split_across_pack", [False, True])
def test_a_loader_of_packs_gives_their_batches(
    make_dataset: Any, random_sequences: Any, split_across_pack: bool
) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(3, 60, longest=12))).train
    packed = PackedSequences(train, 16, split_across_pack=split_across_pack)
    loader = Loader(packed, 16, 4, shuffle=False)
    for step in range(3):
        ours, theirs = loader.batch(step), packed.batch(range(4 * step, 4 * step + 4))
        assert np.array_equal(ours.segment_ids, theirs.segment_ids)
