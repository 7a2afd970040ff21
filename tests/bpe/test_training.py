"""Training equals the reference, keeps its documented behaviour and errors, and can be stopped."""

from __future__ import annotations

import io
import random
import re
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from notes import Notes
from skewed_texts import skewed_text

from bpe import reference
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import (
    BadArgument,
    BadTokenizer,
    BpeError,
    InvalidText,
    MissingInput,
    NotEnoughMemory,
)
from bpe.pretoken_counts.counting import PretokenCounts, count_pretokens
from bpe.pretoken_counts.memory import MemoryBudget, used_bytes
from bpe.training import Training, train, train_on, train_sizes
from bpe.training_options import TrainingOptions

TIE_BREAKS = ["lexicographic", "huggingface"]
END = "<|endoftext|>"


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_entries_have_a_length_limit_by_default(tie_break: Any) -> None:
    text = b" ".join(unit * (9000 // len(unit)) for unit in [b"a", b"ab", "日本".encode()])
    tokenizer = train([text], 2000, tie_break=tie_break)
    counts = reference.count_pretokens([text.decode()])
    assert tokenizer.merges == reference.train(counts, 2000 - 256, tie_break)
    assert max(map(len, tokenizer.vocab.values())) == MAX_TOKEN_BYTES
    free = train([text], 2000, tie_break=tie_break, max_token_bytes=None)
    assert free == train([text], 2000, tie_break=tie_break, max_token_bytes=0)
    assert max(map(len, free.vocab.values())) > MAX_TOKEN_BYTES


def test_entries_that_do_not_fit_are_refused_before_they_are_made() -> None:
    counts = PretokenCounts.from_mapping({random.Random(6).randbytes(200_000): 1})
    training = train_on(counts, 60_000, TrainingOptions(max_token_bytes=2000))
    with pytest.raises(NotEnoughMemory):
        replace(training, budget=MemoryBudget(used_bytes() + (20 << 20))).prefix(60_000)
    assert training.prefix(60_000).vocab_size == 60_000


# -- train() -------------------------------------------------------------------------------------------------


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


@pytest.mark.promise("merges")
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", r"\w+|\W"])
def test_merges_equal_the_reference(pattern: str, tie_break: Any) -> None:
    texts = [skewed_text(7, 500) + END + skewed_text(8, 500), skewed_text(9, 100)]
    expected = reference.train(reference.count_pretokens(texts, [END], pattern), 200, tie_break)
    tokenizer = train([text.encode() for text in texts], 457, [END], pattern, tie_break)
    assert list(tokenizer.merges) == expected


@pytest.mark.promise("merges")
def test_threads_and_file_order_change_nothing(tmp_path: Path) -> None:
    paths = []
    for seed in range(3):
        paths.append(tmp_path / f"{seed}.txt")
        text = END.join(skewed_text(seed * 10 + document, 300) for document in range(8))
        paths[-1].write_text((text + END) * 60, encoding="utf-8")
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


def test_progress_of_both_phases_and_the_early_stop() -> None:
    recorder = Notes()
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


def test_invalid_text_is_named_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"abc\xff\xffabc")
    with pytest.raises(InvalidText, match=r"bad\.txt.*byte 3"):
        train([path], 300)
    recorder = Notes()
    replaced = train([path], 300, invalid="replace", progress=recorder)
    assert list(replaced.merges) == list(train(["abc��abc".encode()], 300).merges)
    assert re.search(r" 2 .*U\+FFFD", recorder.notes[0])


@pytest.mark.parametrize(
    ("arguments", "error", "where"),
    [
        ({"inputs": []}, BadArgument, "inputs"),
        ({"inputs": [b""]}, BadArgument, "inputs"),
        ({"inputs": [b"<s><s>"], "special_tokens": ["<s>"]}, BadArgument, "inputs"),
        ({"inputs": io.StringIO("ab")}, BadArgument, "inputs"),
        ({"inputs": ["no/such/file.txt"]}, MissingInput, "no/such/file.txt"),
        ({"vocab_size": 257, "special_tokens": ["<s>", "<t>"]}, BadArgument, "vocab_size"),
        *(({"vocab_size": size}, BadArgument, "vocab_size") for size in (255, 2**31 + 1, "300", 300.5)),
        *(
            ({"special_tokens": tokens}, BadArgument, "special_tokens")
            for tokens in (["<s>", "<s>"], [""], ["\ud800"], "<s>", {"<s>"}, ["a"], ["Ġ"])
        ),
        ({"text_field": 3}, BadArgument, "text_field"),
        ({"max_memory_bytes": "1GB"}, BadArgument, "max_memory"),
        ({"tie_break": "first"}, BadArgument, "tie_break"),
        ({"min_frequency": -1}, BadArgument, "min_frequency"),
        ({"min_frequency": 2**63}, BadArgument, "min_frequency"),
        *(({"threads": threads}, BadArgument, "threads") for threads in (0, 10**20, "2")),
        ({"pattern": "gpt3"}, BadArgument, "pattern"),
        ({"invalid": "skip"}, BadArgument, "invalid"),
        ({"pattern": "("}, BadTokenizer, "pattern, character 0"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(arguments: dict[str, Any], error: type, where: str) -> None:
    defaults: dict[str, Any] = {"inputs": [b"ab"], "vocab_size": 300}
    with pytest.raises(error, match=f"^{where}: ") as raised:
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


# -- interruption --------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def many_pretokens() -> PretokenCounts:
    rng = random.Random(11)
    return PretokenCounts.from_mapping({rng.randbytes(12): rng.randint(1, 9) for _ in range(100_000)})


def test_errors_of_progress_end_the_merging() -> None:
    class Stopping(Notes):
        def update(self, done: int) -> None:
            raise StoppedError

    with pytest.raises(StoppedError):
        train_on(many_pretokens(), 100_000, progress=Stopping())


def test_a_signal_ends_the_merging_within_a_second() -> None:
    counts = many_pretokens()

    def stop(*_: object) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        start = time.monotonic()
        with pytest.raises(StoppedError):
            [train_on(counts, 100_000) for _ in range(1000)]
        assert time.monotonic() - start < 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
