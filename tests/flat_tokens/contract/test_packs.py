"""The contract of packing: packs equal those built naively, and contain every sequence."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_datasets import EXAMPLE, numbered

import flat_tokens
from flat_tokens import ArgumentError, ArrayLayout, DatasetError, Loader, PackedSequences

KINDS = ("equal", "short", "full", "long tail", "in turns", "uniform")
STRATEGIES: list[dict[str, Any]] = [
    {},
    {"split_across_pack": True},
    {"strategy": "best-fit", "window_seqs": 50},
]


def pack_naively(
    sequences: list[list[int]], max_seq_len: int, padding_id: int, max_packs: int | None, split: bool
) -> list[dict[str, list[int]]]:
    """Pack by torchtune's rules: append each sequence to the open pack. If the pack is then too long, close it at
    max_seq_len (split) or before the sequence.
    """
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
            before = sum(lengths[:-1])
            cut = [max_seq_len - before] if before < max_seq_len else []
            close(tokens[:max_seq_len], positions[:max_seq_len], lengths[:-1] + cut)
            tokens, positions = tokens[max_seq_len:], positions[max_seq_len:]
            lengths = [len(tokens)]
    if tokens:
        close(tokens, positions, lengths)
    return packs[:max_packs]


def best_fit_naively(lengths: list[int], max_seq_len: int) -> list[int]:
    """Return the tokens per pack of a window: put each sequence, longest first, into the fullest pack with enough
    room.
    """
    packs: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [i for i, tokens in enumerate(packs) if tokens + length <= max_seq_len]
        if fitting:
            packs[max(fitting, key=packs.__getitem__)] += length
        else:
            packs.append(length)
    return packs


def lengths_of(kind: str, seed: int, count: int, limit: int) -> list[int]:
    rng = random.Random(seed)
    if kind == "equal":
        return [max(limit // 3, 1)] * count
    if kind == "short":
        return [1] * count
    if kind == "full":
        return [limit] * count
    if kind == "long tail":
        return [min(limit, max(1, int(rng.lognormvariate(2, 1.5)))) for _ in range(count)]
    if kind == "in turns":
        return [1 if index // 700 % 2 else rng.randint(1, limit) for index in range(count)]
    return [rng.randint(1, limit) for _ in range(count)]


def as_lists(packs: Any) -> list[dict[str, list[int]]]:
    return [{field: pack[field].tolist() for field in pack} for pack in packs]


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
    assert list(dict(pack)) == ["tokens", "labels", "input_pos", "seq_lens"]
    assert {array.dtype for array in dict(pack).values()} == {np.dtype(np.int32)}
    with pytest.raises(KeyError, match="input_pos.*seq_lens"):
        pack["mask"]


@pytest.mark.promise("packs")
@pytest.mark.parametrize("max_packs", [None, 1, 7])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("max_seq_len", [9, 10, 33, 1000])
def test_packs_equal_the_naive_packer(
    max_seq_len: int, split: bool, max_packs: int | None, array: Any, random_sequences: Any
) -> None:
    sequences = random_sequences(max_seq_len, 120, longest=40 if split else 9)
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
    begun = [(start, end) for start, end in itertools.pairwise([0, *ends]) if start < used]
    assert (report.seqs_used, report.seqs_lost) == (len(begun), len(sequences) - len(begun))
    cut = sum(start // max_seq_len != (end - 1) // max_seq_len for start, end in begun)
    assert report.seqs_split == cut * split


@pytest.mark.promise("packs")
@pytest.mark.parametrize("limit", [7, 64, 300])
@pytest.mark.parametrize("count", [1, 2, 900])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_of_every_kind(kind: str, count: int, limit: int, array: Any) -> None:
    lengths = lengths_of(kind, 1, count, limit)
    train = array(numbered(lengths))
    packed = PackedSequences(train, limit)
    expected = pack_naively(numbered(lengths), limit, 0, None, False)
    assert packed.batch(range(len(packed))).ids.tolist() == [pack["tokens"] for pack in expected]
    best = PackedSequences(train, limit, strategy="best-fit", window_seqs=400)
    windows = [lengths[at : at + 400] for at in range(0, count, 400)]
    sums = [tokens for window in windows for tokens in best_fit_naively(window, limit)]
    batch = best.batch(range(len(best)))
    assert sorted(batch.lengths.tolist()) == sorted(sums)
    assert sorted(batch.targets[batch.targets != -100].tolist()) == list(range(sum(lengths)))


def test_more_sequences_than_are_planned_at_a_time(array: Any) -> None:
    lengths = [1 + (index % 7 == 0) for index in range(2**18 + 1000)]
    train = array([[1] * length for length in lengths])
    for max_packs in (None, 100, 4600):
        packed = PackedSequences(train, 64, max_packs=max_packs)
        sums = [0]
        for length in lengths:
            sums[-1] += length
            if sums[-1] > 64:
                sums[-1] -= length
                sums.append(length)
        assert packed.batch(range(len(packed))).lengths.tolist() == sums[:max_packs]
        assert packed.report.tokens_used == sum(sums[:max_packs])
    positions = PackedSequences(train, 3, split_across_pack=True)
    for index in (0, 4095, len(positions) // 2, len(positions) - 1):
        first = positions[index].input_pos[0]
        assert first == (0 if train.encoded_tokens[3 * index] & 1 else 1)


# Arguments of lengths_of; max_seq_len and options; digests of the packs, and of two orders.
GOLDEN: list[tuple[Any, ...]] = [
    (("long tail", 6, 900, 100), 100, {}, ("109c2482637fb19f", "e1659d905d911761", "bb32469d06a6a534")),
    (("uniform", 7, 300, 64), 64, {}, ("8d4963189d342cea", "292964472294e2ea", "835ad595943c39ff")),
    (
        ("in turns", 9, 900, 90),
        90,
        {"window_seqs": 200},
        ("31cc1d2db407905a", "5a0408ca3d529db1", "2d8dda6ba7b9c701"),
    ),
    (("equal", 0, 200, 300), 300, {}, ("1c0a0730df6fd368", "dc34b9f24521f689", "6b8d9af92d41e7d8")),
    (
        ("uniform", 3, 200, 150),
        64,
        {"split_across_pack": True},
        ("ab6a1dcc11d4780e", "2b830a09eed8db02", "8594f1215ae037dd"),
    ),
]


@pytest.mark.parametrize(("lengths", "max_seq_len", "options", "digests"), GOLDEN)
def test_golden_packs(
    lengths: Any, max_seq_len: int, options: Any, digests: tuple[str, ...], array: Any
) -> None:
    """The composition and the order of packs are the same in every version, so that runs resume."""

    def digest(*arrays: np.ndarray) -> str:
        return hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()[:16]

    train = array(numbered(lengths_of(*lengths)), layout=ArrayLayout.create(2, 4096))
    packed = PackedSequences(train, max_seq_len, strategy="best-fit", **options)
    batch = packed.batch(range(len(packed)))
    assert batch.lengths is not None
    assert digests == (
        digest(batch.ids.astype("<i8"), batch.lengths.astype("<i8"), batch.is_seq_start),
        digest(packed.shuffled().astype("<i8")),
        digest(packed.shuffled(7, 1).astype("<i8")),
    )


@pytest.mark.promise("packs")
@pytest.mark.parametrize("max_packs", [1, 10, 77, 10**6])
def test_best_fit_of_cut_sequences(array: Any, max_packs: int) -> None:
    rng = random.Random(9)
    lengths = [rng.choice([rng.randint(1, 50), 20, 21, 40]) for _ in range(300)] + [20, 41]
    train = array(numbered(lengths))
    packed = PackedSequences(train, 20, 0, max_packs, True, strategy="best-fit", window_seqs=64)
    pieces = []
    for pack in packed:
        bounds = pack.cu_seqlens.tolist()
        for start, end in itertools.pairwise(bounds[: pack.segment_ids.max() + 1]):
            pieces.append(pack.tokens[start:end].tolist())
            assert pack.input_pos[start:end].tolist() == list(range(end - start))
    cut = [sequence[at : at + 20] for sequence in numbered(lengths) for at in range(0, len(sequence), 20)]
    if max_packs == 10**6:
        assert sorted(pieces) == sorted(cut)
    assert all(piece in cut for piece in pieces)
    report, total = packed.report, sum(lengths)
    sequences = np.searchsorted(np.cumsum(lengths), [piece[0] for piece in pieces], "right")
    assert report.pack_count == len(packed) <= max_packs
    assert (report.tokens_used, report.tokens_lost) == (sum(map(len, pieces)), total - sum(map(len, pieces)))
    assert report.seqs_used == len(set(sequences.tolist())) == len(lengths) - report.seqs_lost
    assert report.seqs_split == sum(lengths[index] > 20 for index in set(sequences.tolist()))


def test_padding_of_a_usual_corpus_is_below_a_thousandth(array: Any) -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(2.5, 1, 40_000), 1, 64).astype(int)
    packed = PackedSequences(array([[1] * length for length in lengths.tolist()]), 64, strategy="best-fit")
    assert packed.report.padded_fraction < 0.001


def test_positions_of_a_cut_sequence(array: Any) -> None:
    whole = array([[1, 2, 3], list(range(10, 20))])
    continued = PackedSequences(whole, 5, split_across_pack=True)
    assert [pack.input_pos.tolist() for pack in continued] == [
        [0, 1, 2, 0, 1],
        [2, 3, 4, 0, 1],
        [2, 3, 4, 4, 4],
    ]
    restarted = PackedSequences(whole, 5, split_across_pack=True, restart_positions=True)
    expected = [[0, 1, 2, 0, 1], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert [pack.input_pos.tolist() for pack in restarted] == expected
    assert continued.batch(range(3)).positions.tolist() == expected
    assert [pack.seq_lens.tolist() for pack in restarted] == [[3, 2], [5], [3, 2]]


def test_labels_of_first_tokens_can_be_ignored(array: Any) -> None:
    pack = PackedSequences(array([[5, 6, 7], [8, 9]]), 6, ignore_first_labels=True)[0]
    assert pack.labels.tolist() == [-100, 6, 7, -100, 9, -100]
    assert pack.tokens.tolist() == [5, 6, 7, 8, 9, 0]


@pytest.mark.parametrize("options", STRATEGIES, ids=str)
def test_batches_copies_threads_and_orders(options: Any, array: Any, random_sequences: Any) -> None:
    train = array(random_sequences(5, 300))
    packed = PackedSequences(train, 9, restart_positions=True, **options)
    expected = as_lists(packed)
    assert as_lists(pickle.loads(pickle.dumps(packed))) == expected
    with ThreadPoolExecutor(4) as executor:
        assert as_lists(executor.map(packed.__getitem__, range(len(packed)))) == expected
    batch = packed.batch([3, 0, -1])
    for row, pack in enumerate([expected[3], expected[0], expected[-1]]):
        assert batch.ids[row].tolist() == pack["tokens"]
        assert batch.targets[row].tolist() == pack["labels"]
        assert batch.positions[row].tolist() == pack["input_pos"]
    assert packed.batch([]).ids.shape == (0, 9)
    order = packed.shuffled(5)
    assert sorted(order.tolist()) == list(range(len(packed)))
    assert np.array_equal(order, packed.shuffled(5, 0))
    assert not np.array_equal(order, packed.shuffled(5, 1))
    assert sorted(PackedSequences(train, 9, max_packs=7, **options).shuffled().tolist()) == list(range(7))
    for arguments in ((-1, 0), (0, -1), (2**64, 0)):
        with pytest.raises(ArgumentError):
            packed.shuffled(*arguments)


@pytest.mark.parametrize("options", STRATEGIES, ids=str)
def test_no_sequences_give_no_packs(array: Any, options: Any) -> None:
    packed = PackedSequences(array([]), 6, **options)
    assert (len(packed), list(packed), packed.report.pack_count) == (0, [], 0)
    assert packed.report.padded_fraction == 0


@pytest.mark.parametrize("options", [{}, {"max_packs": 2}, {"strategy": "best-fit"}], ids=str)
def test_a_sequence_that_fits_no_pack(options: Any, array: Any) -> None:
    with pytest.raises(ArgumentError, match="train: sequence 1 .*max_seq_len"):
        PackedSequences(array(EXAMPLE), 2, **options)
    assert len(PackedSequences(array(EXAMPLE, name="e"), 2, max_packs=1)) == 1  # before the long sequence


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


def test_starts_that_fall(make_dataset: Any) -> None:
    path: Path = make_dataset(EXAMPLE, layout=ArrayLayout.create(2, 20, compression="none"))
    file = path / "train/seq_starts/0"
    starts = np.frombuffer(file.read_bytes(), dtype="<u8").copy()
    starts[2] = 1
    file.write_bytes(starts.tobytes())
    for options in STRATEGIES:
        with pytest.raises(DatasetError, match=r"train/seq_starts\[2\]: .*train/seq_starts\[1\]"):
            print(PackedSequences(flat_tokens.open(path).train, 8, **options).report)
