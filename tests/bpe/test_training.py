"""Training equals Hugging Face's BpeTrainer, keeps its documented behaviour and errors, and can be stopped."""

from __future__ import annotations

import functools
import io
import random
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from pretoken_ends import automaton_of
from tokenizers import models, pre_tokenizers, trainers

import bpe
from bpe import _core, reference
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import (
    BadArgument,
    BadTokenizer,
    BpeError,
    InvalidText,
    MissingInput,
    NotEnoughMemory,
)
from bpe.formats.huggingface import json_pieces
from bpe.pretoken_counts.counting import PretokenCounts, count_pretokens
from bpe.pretoken_counts.memory import MemoryBudget, used_bytes
from bpe.tokenizer import Tokenizer
from bpe.training import Training, train, train_on, train_sizes
from bpe.training_options import TrainingOptions

TIE_BREAKS = ["lexicographic", "huggingface"]
END = "<|endoftext|>"

# -- Hugging Face --------------------------------------------------------------------------------------------


def sample_text(seed: int, words: int) -> str:
    """Return words of skewed frequency from a few scripts, with ties and characters of every length."""
    rng = random.Random(seed)
    letters = [
        "aeinorst",
        "abcdefghijklmnopqrstuvwxyz",
        "äöüß",
        "авеино",
        "日本語中文",
        "👍🏽🎉",
        "0123456789",
        "-_.,;!?",
    ]
    vocabulary = ["".join(rng.choices(rng.choice(letters), k=rng.randint(1, 9))) for _ in range(600)]
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    return "".join(
        word + rng.choice([" ", " ", " ", " ", "\n", "  ", "'s "])
        for word in rng.choices(vocabulary, weights, k=words)
    )


def train_by_huggingface(
    texts: list[str],
    vocab_size: int,
    special_tokens: list[str],
    min_frequency: int = 0,
    max_token_length: int | None = None,
) -> Any:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        min_frequency=min_frequency,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        max_token_length=max_token_length,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def as_huggingface_has_it(ours: Any, special_tokens: list[str]) -> dict[str, int]:
    """Return our vocabulary in the form of Hugging Face's get_vocab()."""
    characters = dict(
        zip(reference.printable_bytes(), sorted(pre_tokenizers.ByteLevel.alphabet()), strict=True)
    )
    written = {
        "".join(characters[byte] for byte in entry): id_
        for id_, entry in ours.vocab.items()
        if id_ >= len(special_tokens)
    }
    return written | {token: id_ for id_, token in enumerate(special_tokens)}


@pytest.mark.parametrize("min_frequency", [0, 3])
@pytest.mark.parametrize("special_tokens", [[], [END, "<pad>"]], ids=["plain", "special"])
@pytest.mark.parametrize("seed", range(3))
def test_vocabulary_equals_huggingface(seed: int, special_tokens: list[str], min_frequency: int) -> None:
    text = sample_text(seed, 4000)
    theirs = train_by_huggingface([text], 2000, special_tokens, min_frequency).get_vocab()
    ours = train([text.encode()], 2000, special_tokens, tie_break="huggingface", min_frequency=min_frequency)
    assert as_huggingface_has_it(ours, special_tokens) == theirs


# Text with entries that grow long: runs, repeated spans, multi-byte characters.
NASTY = [
    "a" * 5000,
    "ab" * 3000 + "a",
    ("-" * 300 + " | ") * 40,
    "日本語のテキスト" * 200,
    "abcabcabd" * 100 + " " * 1000,
]


@pytest.mark.parametrize("most", [2, 3, 4, 7, 16, 128, 1024, None])
def test_a_length_limit_equals_huggingface(most: int | None) -> None:
    """Their max_token_length counts bytes, and their entries stay below it."""
    text = "\n".join([*NASTY, sample_text(9, 1500)])
    theirs = train_by_huggingface([text], 1500, [END], max_token_length=None if most is None else most + 1)
    ours = train([text.encode()], 1500, [END], tie_break="huggingface", max_token_bytes=most)
    assert as_huggingface_has_it(ours, [END]) == theirs.get_vocab()
    longest = max(len(entry) for id_, entry in ours.vocab.items() if id_)
    assert longest > 1024 if most is None else longest <= most


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_entries_have_a_length_limit_by_default(tie_break: Any) -> None:
    text = b" ".join(unit * (9000 // len(unit)) for unit in [b"a", b"ab", "日本".encode()])
    tokenizer = train([text], 2000, tie_break=tie_break)
    counts = reference.count_pretokens([text.decode()])
    assert tokenizer.merges == reference.train(counts, 2000 - 256, tie_break)
    assert max(map(len, tokenizer.vocab.values())) == MAX_TOKEN_BYTES
    for no_limit in (None, 0):
        free = train([text], 2000, tie_break=tie_break, max_token_bytes=no_limit)
        assert free.merges == reference.train(counts, 2000 - 256, tie_break, max_token_bytes=None)
        assert max(map(len, free.vocab.values())) > MAX_TOKEN_BYTES


@pytest.mark.parametrize("special_tokens", [[], [END, "aab", "é\n"]], ids=len)
def test_a_trained_tokenizer_is_the_one_of_its_entries_and_merges(
    special_tokens: list[str], tmp_path: Path
) -> None:
    trained = train([sample_text(4, 3000).encode()], 1000, special_tokens, "o200k")
    made = Tokenizer(trained.vocab, trained.merges, trained.special_tokens, "o200k")
    assert trained == made
    assert trained.fingerprint() == made.fingerprint()
    for legacy in (False, True):
        trained.save(tmp_path / "a.json", legacy)
        made.save(tmp_path / "b.json", legacy)
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert Tokenizer.load(tmp_path / "a.json") == made


def test_a_vocabulary_is_written_in_pieces() -> None:
    """The text is never in memory as a whole: a piece is 1 MiB, plus at most one entry or merge."""
    counts = PretokenCounts.from_mapping({random.Random(5).randbytes(4000) * 2: 1})
    tokenizer = train_on(counts, 6000, TrainingOptions(max_token_bytes=2000)).tokenizer
    pieces = list(json_pieces(tokenizer))
    assert b"".join(pieces) == tokenizer.canonical_json
    assert len(pieces) > 6
    assert max(map(len, pieces)) < (1 << 20) + 3 * 2000 * 2


def test_entries_that_do_not_fit_are_refused_before_they_are_made() -> None:
    counts = PretokenCounts.from_mapping({random.Random(6).randbytes(200_000): 1})
    training = train_on(counts, 60_000, TrainingOptions(max_token_bytes=2000))
    with pytest.raises(NotEnoughMemory):
        replace(training, budget=MemoryBudget(used_bytes() + (20 << 20))).prefix(60_000)
    assert training.prefix(60_000).vocab_size == 60_000


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([[256, 97]], "merge 0 joins the entry of merge 0, which is not made yet"),
        ([[97, 98], [97, 300]], "merge 1 joins the entry of merge 44"),
        ([[97, 98], [97, 98]], r"vocab\[256\]: same bytes as vocab\[257\]"),
    ],
    ids=str,
)
def test_merges_that_make_no_vocabulary(merges: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.TokenizerCore.from_merges(
            np.array(merges, np.uint32), bytes(range(256)), 0, {}, automaton_of("gpt2")
        )


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_entries_that_the_memory_does_not_hold_are_refused_before_they_are_made() -> None:
    merges = np.array([[97, 97], *([number, number] for number in range(256, 277))], np.uint32)

    def make(more_bytes: int) -> _core.TokenizerCore:
        """The entries have 8 MiB together."""
        limit = used_bytes() + more_bytes
        return _core.TokenizerCore.from_merges(
            merges, bytes(range(256)), 0, {}, automaton_of("gpt2"), memory_limit=limit
        )

    with pytest.raises(MemoryError):
        make(12 << 20)
    assert make(100 << 20).max_id == 277


def test_ids_that_pass_the_highest_are_refused() -> None:
    merges = np.array([[97, 98]], np.uint32)
    highest = 2**31 - 1
    for first_id in (highest - 256, highest - 255):
        make = functools.partial(
            _core.TokenizerCore.from_merges, merges, bytes(range(256)), first_id, {}, automaton_of("gpt2")
        )
        if first_id + 256 <= highest:
            assert make().max_id == highest
        else:
            with pytest.raises(ValueError, match=f"{first_id}"):
                make()


# -- train() -------------------------------------------------------------------------------------------------


class Recorder:
    """Record the progress reports."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None, str]] = []
        self.done: list[int] = []
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        self.phases.append((phase, total, unit))

    def update(self, done: int) -> None:
        self.done.append(done)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_ids_are_special_tokens_then_bytes_then_merges() -> None:
    tokenizer = train([b"aab ab<s>aab"], 261, ["<s>", END])
    assert tokenizer.vocab[0] == b"<s>"
    assert tokenizer.vocab[1] == END.encode()
    assert [tokenizer.vocab[id_] for id_ in range(2, 258)] == [
        bytes([b]) for b in reference.printable_bytes()
    ]
    assert [tokenizer.vocab[id_] for id_ in range(258, 261)] == [
        left + right for left, right in tokenizer.merges
    ]
    assert dict(tokenizer.special_tokens) == {"<s>": 0, END: 1}
    assert tokenizer.vocab_size == 261


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", r"\w+|\W"])
def test_merges_equal_the_reference(pattern: str, tie_break: Any) -> None:
    texts = [sample_text(7, 500) + END + sample_text(8, 500), sample_text(9, 100)]
    expected = reference.train(reference.count_pretokens(texts, [END], pattern), 200, tie_break)
    tokenizer = train([text.encode() for text in texts], 457, [END], pattern, tie_break)
    assert list(tokenizer.merges) == expected


def test_threads_and_file_order_change_nothing(tmp_path: Path) -> None:
    paths = []
    for seed in range(3):
        paths.append(tmp_path / f"{seed}.txt")
        text = END.join(sample_text(seed * 10 + document, 300) for document in range(8))
        paths[-1].write_text((text + END) * 42, encoding="utf-8")
    assert sum(path.stat().st_size for path in paths) > 3 << 20  # enough for three threads
    first = train(paths, 800, [END], threads=1)
    for threads, order in [(2, paths), (3, paths[::-1]), (2, [paths[1], paths[2], paths[0]])]:
        other = train(order, 800, [END], threads=threads)
        assert (list(other.merges), dict(other.vocab)) == (list(first.merges), dict(first.vocab))


@pytest.mark.parametrize("special", [END, "aab", "ab", "\n\n"])
def test_special_tokens_never_leak_into_merges(special: str) -> None:
    text = (f"{special}aab ab\n\n{special}{special}x aabab" * 5).encode()
    tokenizer = train([text], 256 + 1 + 40, [special])
    assert all(special.encode() not in entry for id_, entry in tokenizer.vocab.items() if id_ != 0)
    assert list(tokenizer.merges) == reference.train(
        reference.count_pretokens([text.decode()], [special]), 40
    )


def test_special_token_of_one_character_has_its_own_id() -> None:
    tokenizer = train(["ab\nab日".encode()], 259, ["\n", "日"])
    assert tokenizer.vocab[0] == b"\n"
    assert list(tokenizer.vocab.values()).count(b"\n") == 2  # the byte has its own entry
    assert list(tokenizer.merges) == [(b"a", b"b")]


def test_progress_of_both_phases_and_the_early_stop() -> None:
    recorder = Recorder()
    tokenizer = train([b"aab ab"], 1000, [END], progress=recorder)
    assert recorder.phases == [("counting", 6, "bytes"), ("merging", 743, "entries")]
    assert recorder.done[0] == 6
    assert recorder.done[-1] == len(tokenizer.merges) == 3
    (note,) = recorder.notes
    assert note.startswith("training: ")
    assert "260 of 1000" in note


def test_min_frequency_is_named_when_it_stops_the_training() -> None:
    training = train_on(
        PretokenCounts.from_mapping({b"ab": 5, b"cd": 4}), 300, TrainingOptions(min_frequency=5)
    )
    assert isinstance(training, Training)
    assert list(training.tokenizer.merges) == [(b"a", b"b")]
    assert training.pair_counts.tolist() == [5]
    assert "5 times" in training.notes[0]


def test_a_full_vocabulary_has_no_notes() -> None:
    assert train_on(PretokenCounts.from_mapping({b"ab": 5}), 257).notes == ()


def test_invalid_text_is_named_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"abc\xff\xffabc")
    with pytest.raises(InvalidText, match=r"bad\.txt.*byte 3"):
        train([path], 300)
    recorder = Recorder()
    replaced = train([path], 300, invalid="replace", progress=recorder)
    assert list(replaced.merges) == list(train(["abc��abc".encode()], 300).merges)
    assert re.search(r" 2 .*U\+FFFD", recorder.notes[0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"inputs": []}, BadArgument, "^inputs: "),
        ({"inputs": [b""]}, BadArgument, "^inputs: "),
        ({"inputs": [b"<s><s>"], "special_tokens": ["<s>"]}, BadArgument, "^inputs: "),
        ({"inputs": ["no/such/file.txt"]}, MissingInput, "no/such/file.txt"),
        ({"vocab_size": 255}, BadArgument, "^vocab_size: .*256.*255"),
        ({"vocab_size": 257, "special_tokens": ["<s>", "<t>"]}, BadArgument, "^vocab_size: .*258"),
        ({"vocab_size": 2**31 + 1}, BadArgument, "^vocab_size: .*2147483648"),
        ({"special_tokens": ["<s>", "<s>"]}, BadArgument, "^special_tokens: .*'<s>'"),
        ({"special_tokens": [""]}, BadArgument, "^special_tokens: "),
        ({"special_tokens": ["\ud800"]}, BadArgument, "^special_tokens: "),
        ({"special_tokens": "<s>"}, BadArgument, "^special_tokens: "),
        ({"special_tokens": {"<s>"}}, BadArgument, "^special_tokens: "),
        (
            {"inputs": io.StringIO("ab")},
            BadArgument,
            "^inputs: .*rb",
        ),
        ({"text_field": 3}, BadArgument, "^text_field: .*3"),
        ({"max_memory_bytes": "1GB"}, BadArgument, "^max_memory: .*'1GB'"),
        ({"special_tokens": ["a"]}, BadArgument, "^special_tokens: "),
        ({"special_tokens": ["Ġ"]}, BadArgument, "^special_tokens: "),
        ({"tie_break": "first"}, BadArgument, "^tie_break: .*'first'"),
        ({"min_frequency": -1}, BadArgument, "^min_frequency: .*-1"),
        ({"min_frequency": 2**63}, BadArgument, "^min_frequency: "),
        ({"threads": 10**20}, BadArgument, "^threads: .*4096"),
        ({"vocab_size": "300"}, BadArgument, "^vocab_size: .*'300'"),
        ({"vocab_size": 300.5}, BadArgument, "^vocab_size: .*300.5"),
        ({"threads": "2"}, BadArgument, "^threads: .*'2'"),
        ({"pattern": "gpt3"}, BadArgument, "^pattern: .*'gpt3'"),
        ({"threads": 0}, BadArgument, "^threads: .*0"),
        ({"invalid": "skip"}, BadArgument, "^invalid: "),
        ({"pattern": "("}, BadTokenizer, "^pattern, character 0: "),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: dict[str, Any], error: type, message: str
) -> None:
    defaults: dict[str, Any] = {"inputs": [b"ab"], "vocab_size": 300}
    with pytest.raises(error, match=message) as raised:
        train(**(defaults | arguments))
    assert isinstance(raised.value, BpeError)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


def test_inputs_and_lists_may_be_one_or_be_read_once(tmp_path: Path) -> None:
    """A path was read as the names of its letters, an open file as its lines, and an iterator was empty on the second
    read.
    """
    path, counts = tmp_path / "a.txt", tmp_path / "a.counts"
    path.write_bytes(b"the mill\n the mill\n<s>the")
    expected = count_pretokens([path])
    expected.save(counts)
    for given in (str(path), path, path.read_bytes(), io.BytesIO(path.read_bytes()), iter([path])):
        assert count_pretokens(given).as_dict() == expected.as_dict()
    trained = train([path], 265)
    with path.open("rb") as file:
        assert train(file, 265) == trained
    for given in (str(counts), counts, iter([counts])):
        assert train([], 265, counts=given) == trained
    options: dict[str, Any] = {"special_tokens": ["<s>"], "initial_alphabet": list("the")}
    again = {name: iter(values) for name, values in options.items()}
    assert train([path], 20, **again) == train([path], 20, **options)
    sizes: Any = iter([270, 265])
    assert train_sizes([path], sizes)[265] == trained


def test_counts_and_trainings_are_shown_in_a_line() -> None:
    counts = count_pretokens([b"the mill, the mill " * 50])
    assert repr(counts) == "<PretokenCounts 5 pretokens, 251 occurrences>"
    training = train_on(counts, 260)
    assert repr(training) == f"<Training 4 merges of {counts!r}, vocab_size 260>"
    rows = training.tokenizer.encode_batch(["the mill " * 900, "the"])
    assert repr(rows) == f"<Ragged 2 rows, {len(rows.tokens):,} tokens>"


def test_256_bytes_are_a_vocabulary() -> None:
    assert list(train([b"ab"], 256).merges) == []


def test_trained_tokenizer_encodes_as_the_reference_does() -> None:
    text = sample_text(3, 400)
    tokenizer = bpe.train([text.encode()], 500, [END])
    expected = reference.encode(text + END, tokenizer.vocab, tokenizer.merges, tokenizer.special_tokens)
    assert tokenizer.encode(text + END) == expected


# -- interruption --------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def many_pretokens() -> PretokenCounts:
    rng = random.Random(11)
    return PretokenCounts.from_mapping({rng.randbytes(12): rng.randint(1, 9) for _ in range(100_000)})


def test_errors_of_progress_end_the_merging() -> None:
    class Stopping(Recorder):
        def update(self, done: int) -> None:
            raise StoppedError

    with pytest.raises(StoppedError):
        train_on(many_pretokens(), 100_000, progress=Stopping())


def test_a_signal_ends_the_merging_within_a_second() -> None:
    counts = many_pretokens()

    def stop(*_: object) -> None:
        raise StoppedError

    def train_again_and_again() -> None:
        while True:
            _core.train_merges(
                counts.pretoken_bytes.data, counts.ends, counts.counts, 100_000, "lexicographic", 1, 1, None
            )

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        start = time.monotonic()
        with pytest.raises(StoppedError):
            train_again_and_again()
        assert time.monotonic() - start < 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_counts_of_files_and_texts_agree(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"aab ab")
    assert count_pretokens([tmp_path / "a.txt"]).as_dict() == count_pretokens([b"aab ab"]).as_dict()
