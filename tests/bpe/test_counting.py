"""Counts equal the reference for any thread count, block size and source order; bad sources are named."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pretoken_ends import automaton_of

from bpe import _core, reference
from bpe.errors import BadArgument, InvalidText, MissingInput
from bpe.patterns import PATTERNS
from bpe.pretoken_counts.counting import PretokenCounts, count_pretokens

END = "<|endoftext|>"


def nasty_text(seed: int, pieces: int) -> str:
    """Return letters, digits, spaces, punctuation of several scripts, contractions, long runs and text like special
    tokens.
    """
    rng = random.Random(seed)
    parts = [
        "a",
        "Hello",
        " world",
        "'s",
        "'LL",
        "  ",
        "\n\n",
        "\t",
        "123",
        "4567",
        "é",
        "日本",
        "\u00a0",
        "\u3000",
    ]
    parts += [
        "🎉",
        "👩‍👩‍👧",
        "<|",
        "|>",
        "<|end",
        "oftext|>",
        "a" * 15,
        "b" * 16,
        "c" * 17,
        "d" * 40,
        "\r\n",
        "\u0300",
        "ǅ",
    ]
    return "".join(rng.choices(parts, k=pieces))


def counted(*sources: bytes | Path, **options: object) -> dict[bytes, int]:
    return count_pretokens(sources, **options).as_dict()  # type: ignore[arg-type]


# -- counts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [*PATTERNS, r"\w+|\W+", r"\s?\S+|\s"])
@pytest.mark.parametrize("seed", range(4))
def test_counts_equal_the_reference(seed: int, pattern: str) -> None:
    text = END.join(nasty_text(seed * 10 + document, 80) for document in range(4))
    for special_tokens in ([], [END], [END, "<|", "<|end"], ["a", "日本"]):
        expected = reference.count_pretokens([text], special_tokens, pattern)
        assert counted(text.encode(), special_tokens=special_tokens, pattern=pattern) == expected


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", r"\w+|\W"])
@pytest.mark.parametrize("special_tokens", [[END], [END, "<|", "<|end"], ["aa", "aaa"], []], ids=str)
def test_size_of_blocks_changes_nothing(special_tokens: list[str], pattern: str) -> None:
    text = END + nasty_text(3, 60) + END + END + "aaaaa" + nasty_text(4, 60) + "aaaa" + END
    expected = reference.count_pretokens([text], special_tokens, pattern)
    size = len(text.encode())
    for block_bytes in [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, size - 1, size, size + 1]:
        got = counted(text.encode(), special_tokens=special_tokens, pattern=pattern, block_bytes=block_bytes)
        assert got == expected, block_bytes


def test_special_token_cut_at_every_offset(tmp_path: Path) -> None:
    special_tokens = ["<s>", "<s><s>x"]
    for before in range(12):
        text = "ab " * before + "<s>cd<s><s>x ef" + "<s>" * (before % 4)
        path = tmp_path / "text.txt"
        path.write_text(text, encoding="utf-8")
        expected = reference.count_pretokens([text], special_tokens)
        for block_bytes in range(1, 12):
            assert counted(path, special_tokens=special_tokens, block_bytes=block_bytes) == expected


@pytest.mark.parametrize("special_tokens", [[END], []], ids=["cut", "uncut"])
def test_threads_change_nothing(special_tokens: list[str]) -> None:
    document = nasty_text(5, 30_000) + " end\n" + END
    text = document * 17
    assert len(text.encode()) > 3 << 20  # three pieces
    if special_tokens:
        expected = Counter(
            {key: 17 * n for key, n in reference.count_pretokens([document], special_tokens).items()}
        )
    else:
        expected = reference.count_pretokens([text])
    items = [count_pretokens([text.encode()], special_tokens, threads=threads) for threads in (1, 2, 3)]
    assert items[0].as_dict() == expected
    for other in items[1:]:
        for name in ("pretoken_bytes", "ends", "counts"):
            assert np.array_equal(getattr(other, name), getattr(items[0], name))


def test_more_distinct_pretokens_than_a_thread_keeps() -> None:
    numbers = [str(number) for number in range(0, 600_000, 3)] + ["long" * 5 + str(n) for n in range(5_000)]
    rng = random.Random(1)
    words = numbers + rng.choices(numbers, k=50_000)
    rng.shuffle(words)
    text = " " + " ".join(words)
    expected = reference.count_pretokens([text])
    assert len(expected) > 190_000
    assert counted(text.encode(), threads=2) == expected


def test_order_of_sources_changes_nothing() -> None:
    texts = [nasty_text(seed, 50).encode() for seed in range(5)]
    assert counted(*texts) == counted(*texts[::-1])


def test_no_pretoken_spans_two_sources(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_bytes(b"ab")
    assert counted(tmp_path / "one.txt", b"cd") == {b"ab": 1, b"cd": 1}


@pytest.mark.parametrize("size", [1, 7, 8, 9, 14, 15, 16, 17, 31, 32, 33, 255, 256, 257, 70_000])
def test_pretokens_of_any_length(size: int) -> None:
    text = " " + "x" * (size - 1) if size > 1 else "x"
    assert counted((text + "\n" + text + "1").encode()) == {b"\n": 1, b"1": 1, text.encode(): 2}


def test_zero_bytes_count() -> None:
    assert counted(b"a\x00\x00b") == {b"a": 1, b"b": 1, b"\x00\x00": 1}


def test_nothing_to_count() -> None:
    for counts in (count_pretokens([]), count_pretokens([b""]), count_pretokens([END.encode()], [END])):
        assert len(counts) == counts.total == 0
        assert counts.as_dict() == {}


# -- the core's counter --------------------------------------------------------------------------------------


def test_items_are_sorted_and_counts_are_64_bit() -> None:
    rng = random.Random(2)
    expected = {rng.randbytes(rng.randint(1, 20)): rng.randint(1, 2**60) for _ in range(2000)}
    expected |= {b"\x00" * size: size for size in range(1, 20)}
    expected |= {b"prefix56" + b"\x00" * size: size for size in range(1, 20)}
    counts = PretokenCounts.from_mapping(expected)
    assert list(counts.as_dict().items()) == sorted(expected.items())
    assert counts.pretoken_bytes.dtype == np.uint8
    assert counts.ends.dtype == counts.counts.dtype == np.uint64


def test_added_counts_add_up() -> None:
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    counter.count(b"ab ab", [], 1)
    counter.add(b"ababc", np.array([2, 2, 5], np.uint64), np.array([2**40, 5, 0], np.uint64))
    assert len(counter) == 2
    pretokens, ends, counts = counter.items()
    assert (pretokens.tobytes(), ends.tolist(), counts.tolist()) == (b" abab", [3, 5], [1, 2**40 + 1])


def test_a_drained_counter_is_empty_and_counts_on() -> None:
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    empty_bytes = counter.memory_bytes()
    pretokens = [str(number) for number in range(100_000)] + ["long" * 10 + str(n) for n in range(3_000)]
    text = " ".join(pretokens).encode()
    for times in (1, 2):
        for _ in range(times):
            counter.count(text, [], 2)
        assert counter.memory_bytes() > 100_000 * 24
        expected = counter.items()
        drained = counter.drain()
        for kept, given in zip(expected, drained, strict=True):
            assert np.array_equal(kept, given)
        assert PretokenCounts(*drained).total == times * 106_000
        assert len(counter) == 0
        assert counter.memory_bytes() <= empty_bytes + 2 * (4 << 20)  # buffers of the threads


def test_core_refuses() -> None:
    with pytest.raises(ValueError, match="no pattern"):
        _core.PretokenCounter(None).count(b"ab", [], 1)
    with pytest.raises(ValueError, match="byte 2"):
        _core.PretokenCounter(automaton_of("gpt2")).count(b"ab\xff", [], 1)
    with pytest.raises(ValueError, match=r"ends\[0\]"):
        _core.PretokenCounter(None).add(b"ab", np.array([4], np.uint64), np.array([1], np.uint64))


def test_lowest_invalid_byte_is_named_whatever_the_threads() -> None:
    text = bytearray(b"word " * 800_000)
    text[3_000_001] = text[1_500_000] = 0xFF
    for threads in (1, 2, 3):
        with pytest.raises(ValueError, match="byte 1500000"):
            _core.PretokenCounter(automaton_of("gpt2")).count(text, [], threads)


def test_last_cut_is_after_a_special_token_that_no_longer_one_extends() -> None:
    counter = _core.PretokenCounter(None)
    assert counter.last_cut(b"ab<s>cd", [b"<s>"]) == 5
    assert counter.last_cut(b"ab<s>", [b"<s>"]) == 5
    assert counter.last_cut(b"ab<s>", [b"<s>", b"<s>x"]) == 0
    assert counter.last_cut(b"ab<s>y", [b"<s>", b"<s>x"]) == 5
    assert counter.last_cut(b"aaaaa", [b"aa"]) == 4
    assert counter.last_cut(b"", [b"aa"]) == 0


@pytest.mark.parametrize("after", [0, 5, 65_530, 65_536, 65_545, 70_000, 400_000])
@pytest.mark.parametrize("pattern", ["gpt2", None])
def test_last_cut_does_not_depend_on_how_far_back_it_is(pattern: str | None, after: int) -> None:
    counter = _core.PretokenCounter(automaton_of(pattern) if pattern else None)
    text = b"some words " * 20_000 + END.encode() + b"x" * after
    assert counter.last_cut(text, [END.encode()]) == len(text) - after
    # "x" starts no token here, but tokens of the second list can contain each other: the search runs from the start.
    assert counter.last_cut(text, [END.encode(), b"xyz"]) == len(text) - after
    assert counter.last_cut(text, [END.encode(), b"doft"]) == len(text) - after


@pytest.mark.parametrize("shift", range(16))
def test_last_cut_is_not_within_a_special_token_where_the_search_begins(shift: int) -> None:
    counter = _core.PretokenCounter(automaton_of("gpt2"))
    token = b"<| a b c d |>"
    text = b"some words " * 20_000 + token + b"x" * (65_536 - 13 + shift)
    assert counter.last_cut(text, [token]) == text.index(b"<|") + 13


@pytest.mark.parametrize("in_document", [False, True], ids=["between", "within"])
@pytest.mark.parametrize(
    ("text", "started", "ends_within"),
    [
        ("", 0, None),
        ("a", 1, True),
        (END, 0, False),
        (END + END, 0, False),
        ("a" + END, 1, False),
        (END + "a", 1, True),
        ("a" + END + "b" + END + END + "c", 3, True),
        ("word " * 300_000 + END + "word " * 300_000, 2, True),
    ],
    ids=["nothing", "text", "token", "tokens", "ends", "starts", "three", "in pieces"],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_documents_that_start_in_a_block(
    text: str, started: int, ends_within: bool | None, in_document: bool, threads: int
) -> None:
    counted = _core.PretokenCounter(automaton_of("gpt2")).count(
        text.encode(), [END.encode()], threads, in_document
    )
    started -= in_document and text != "" and not text.startswith(END)
    assert counted == (started, in_document if ends_within is None else ends_within)


@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W"], ids=["core", "expression"])
@pytest.mark.parametrize("block_bytes", [1, 7, 1000])
def test_documents_are_counted_by_expressions_too(pattern: str, block_bytes: int) -> None:
    """A special token ends a document, and non-empty text after it is a new one."""
    for text, documents in (
        ("", 0),
        ("a b", 1),
        (END + END, 0),
        ("a" + END + "b c" + END + END + "d", 3),
        (END + "a b" + END, 1),
        ("word " * 300 + END + "word " * 300, 2),
    ):
        counts = count_pretokens([text.encode()], [END], pattern, block_bytes=block_bytes)
        assert counts.facts.documents == documents, text[:40]


# -- invalid input ---------------------------------------------------------------------------------------------

INVALID = [
    b"\xff",
    b"a\x80b",
    b"\xc3",
    b"\xe2\x82",
    b"\xf0\x9f\x8e",
    b"\xe2\x82\xe2\x82\xac",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
]
INVALID += [
    b"\xf4\x90\x80\x80",
    b"\xf0\x9f<s>",
    b"ok \xe2\x82",
    b"\xef\xbf\xbd\xff\xef\xbf\xbd",
    b"\xf5\x80",
    b"\xe0\x80\x80",
]


@pytest.mark.parametrize("bad", INVALID, ids=bytes.hex)
def test_invalid_text_at_every_offset_of_a_block(bad: bytes, tmp_path: Path) -> None:
    for before in range(9):
        text = "aé日"[: before % 4].encode() + b"word " * before + bad + b" more <s>text"
        replaced_text = text.decode(errors="replace")
        replaced = replaced_text.count("�") - text.count("�".encode())
        with pytest.raises(UnicodeDecodeError) as decoding:
            text.decode()
        offset = decoding.value.start
        expected = reference.count_pretokens([replaced_text], ["<s>"])
        path = tmp_path / "bad.txt"
        path.write_bytes(text)
        for block_bytes in [1, 2, 3, 4, 5, 8, 13, 1000]:
            counts = count_pretokens([path], ["<s>"], invalid="replace", block_bytes=block_bytes)
            assert (counts.as_dict(), counts.replaced) == (expected, replaced)
            assert counts.text_bytes == len(text)
            for pattern in ("gpt2", r"\w+"):
                with pytest.raises(InvalidText, match=rf"bad\.txt.*{offset}"):
                    count_pretokens([path], ["<s>"], pattern, block_bytes=block_bytes)


def test_cut_character_at_the_end_is_invalid() -> None:
    with pytest.raises(InvalidText, match="text.*byte 2"):
        counted(b"ab\xe2\x82")
    assert counted(b"ab\xe2\x82", invalid="replace") == {b"ab": 1, "�".encode(): 1}


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_bytes(b"x")
    sources: list[Path | str] = [
        tmp_path / "there.txt",
        tmp_path / "one.txt",
        str(tmp_path / "two.txt"),
    ]
    with pytest.raises(MissingInput) as raised:
        count_pretokens(sources)
    message = str(raised.value)
    assert "one.txt: " in message
    assert "two.txt: " in message
    assert "there.txt" not in message


def test_block_bytes_are_checked() -> None:
    with pytest.raises(BadArgument, match="block_bytes"):
        count_pretokens([b"a"], block_bytes=0)


# -- progress, pipes -----------------------------------------------------------------------------------------


class Recorder:
    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None, str]] = []
        self.done: list[int] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        self.phases.append((phase, total, unit))

    def update(self, done: int) -> None:
        self.done.append(done)

    def note(self, text: str) -> None:
        raise AssertionError(text)


def test_progress_counts_bytes_up_to_the_total(tmp_path: Path) -> None:
    text = nasty_text(1, 300).encode()
    (tmp_path / "text.txt").write_bytes(text)
    recorder = Recorder()
    count_pretokens([tmp_path / "text.txt", text], progress=recorder, block_bytes=100)
    assert recorder.phases == [("counting", 2 * len(text), "bytes")]
    assert recorder.done == sorted(recorder.done)
    assert recorder.done[-1] == 2 * len(text)


def test_a_pipe_is_counted_without_a_total(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = nasty_text(2, 200)
    writer = threading.Thread(target=path.write_bytes, args=(text.encode(),))
    writer.start()
    recorder = Recorder()
    counts = count_pretokens([path], progress=recorder, block_bytes=64)
    writer.join()
    assert counts.as_dict() == reference.count_pretokens([text])
    assert recorder.phases == [("counting", None, "bytes")]
