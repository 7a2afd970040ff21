"""Counts equal the reference for any threads, blocks, sources and normalizers; bad sources are named."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from notes import Notes

from bpe import count_pretokens, reference
from bpe.errors import BadArgument, InvalidText, MissingInput, UncoveredText
from bpe.normalizers import Form, Lowercase, Normalizer, Prepend, Replace, Strip
from bpe.patterns import PATTERNS
from bpe.pretoken_counts.counts_facts import CountsFacts

END = "<|endoftext|>"
SPECIALS = [[], [END], [END, "<|", "<|end"], ["aa", "aaa"], ["a", "東"], [END, "e\u0301", "\u0301<"]]
NORMALIZERS = [
    None,
    Normalizer((Form("NFC"),)),
    Normalizer((Form("NFKC"), Lowercase())),
    Normalizer((Strip(),)),
    Normalizer((Prepend("_"),)),
    Normalizer((Replace("[e ]", "x", is_expression=True),)),
]


def counts_of(texts: list[str], specials: list[str], pattern: str, normalizer: Normalizer | None) -> Any:
    """Return (counts, number of documents) as the reference counts them."""
    counts: Counter[bytes] = Counter()
    documents = 0
    for text in texts:
        for part, is_special in reference.cut_at_special_tokens(text, specials):
            if not is_special:
                documents += bool(part)
                normalized = part if normalizer is None else normalizer.apply(part.encode()).decode()
                counts.update(reference.pretokenize(normalized, pattern))
    return dict(counts), documents


@strategies.examples(8)
@given(data=st.data())
def test_counts_equal_the_reference(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = data.draw(st.lists(st.lists(strategies.documents(), max_size=6).map(END.join), max_size=3))
    specials = data.draw(st.sampled_from(SPECIALS))
    pattern = data.draw(st.sampled_from([*PATTERNS, r"\w+|\W", r"\s?\S+|\s"]))
    normalizer = data.draw(st.sampled_from(NORMALIZERS))
    block_bytes = data.draw(st.one_of(st.integers(1, 40), st.sampled_from([100, 10**6])))
    path = tmp_path_factory.getbasetemp() / "in.txt"
    path.write_bytes("".join(texts[:1]).encode())
    found = count_pretokens(
        [path, *(text.encode() for text in texts[1:])],
        specials,
        pattern,
        data.draw(st.integers(1, 3)),
        block_bytes=block_bytes,
        normalizer=normalizer,
    )
    assert (found.as_dict(), found.facts.documents) == counts_of(texts, specials, pattern, normalizer)
    assert CountsFacts.from_json(found.facts.to_json()) == found.facts


@strategies.examples(3)
@given(before=st.sampled_from(["", "a", "aé", "aé日 word "]), bad=st.sampled_from(strategies.INVALID))
def test_invalid_text_is_replaced_or_named(
    before: str, bad: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = before.encode() + bad + b" more <s>te\xef\xbf\xbdxt" + bad[:1]
    replaced = text.decode(errors="replace")
    expected = reference.count_pretokens([replaced], ["<s>"])
    path = tmp_path_factory.getbasetemp() / "bad.txt"
    path.write_bytes(text)
    for block_bytes in (1, 2, 3, 5, 8, 1000):
        counts = count_pretokens([path], ["<s>"], invalid="replace", block_bytes=block_bytes)
        assert (counts.as_dict(), counts.replaced) == (expected, replaced.count("\ufffd") - 1)
        assert counts.text_bytes == len(text)
        for pattern in ("gpt2", r"\w+"):
            with pytest.raises(InvalidText, match=rf"bad\.txt.*{len(before.encode())}"):
                count_pretokens([path], ["<s>"], pattern, block_bytes=block_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("special_tokens", [[END], []], ids=["cut", "uncut"])
def test_threads_change_nothing(special_tokens: list[str]) -> None:
    words = [str(number) for number in range(0, 300_000, 3)] + ["long" * 5 + str(n) for n in range(5_000)]
    random.Random(1).shuffle(words)
    document = " ".join(words) + " end\n" + END
    text = document * 5
    assert len(text.encode()) > 3 << 20  # three pieces
    assert len(words) > 100_000  # more than a thread keeps
    expected = reference.count_pretokens([document if special_tokens else text], special_tokens)
    if special_tokens:
        expected = Counter({key: 5 * count for key, count in expected.items()})
    for threads in (1, 2, 3):
        found = count_pretokens([text.encode()], special_tokens, threads=threads).as_dict()
        assert list(found.items()) == sorted(expected.items())


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257, 70_000])
def test_pretokens_of_any_length(size: int) -> None:
    text = " " + "x" * (size - 1) if size > 1 else "x"
    assert count_pretokens([(text + "\n" + text + "1").encode()]).as_dict() == {
        b"\n": 1,
        b"1": 1,
        text.encode(): 2,
    }


def test_no_pretoken_spans_two_sources() -> None:
    assert count_pretokens([b"ab", b"c\0\0d"]).as_dict() == {b"ab": 1, b"c": 1, b"\0\0": 1, b"d": 1}


def test_uncovered_text_is_named_by_its_original_offset() -> None:
    text = "xe\u0301<s>e\u0301e\u0301!"
    with pytest.raises(UncoveredText, match="byte 13"):
        count_pretokens([text.encode()], ["<s>"], r"\p{L}+", normalizer="NFC")


@pytest.mark.parametrize("after", [0, *range(65_520, 65_545, 3), 400_000])
@pytest.mark.parametrize("tokens", [[END], [END, "doft"], ["<| a b c d |>"]], ids=str)
def test_a_block_ends_after_a_special_token_however_far_back_it_is(tokens: list[str], after: int) -> None:
    text = "some words " * 20_000 + tokens[0] + "x" * after
    counts = count_pretokens([text.encode() + b"y z"], tokens, block_bytes=len(text.encode()) + 1)
    assert counts.as_dict() == reference.count_pretokens([text + "y z"], tokens)


# -- sources, progress


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_bytes(b"x")
    with pytest.raises(MissingInput, match=r"one\.txt: .*two\.txt: ") as raised:
        count_pretokens([tmp_path / "there.txt", tmp_path / "one.txt", str(tmp_path / "two.txt")])
    assert "there.txt" not in str(raised.value)


@pytest.mark.parametrize(
    "more", [{"block_bytes": 0}, {"normalizer": "NFD"}, {"on_error": "quarantine"}], ids=str
)
def test_options_are_checked(more: dict[str, Any]) -> None:
    with pytest.raises(BadArgument, match=next(iter(more))):
        count_pretokens([b"a"], **more)


def test_progress_counts_bytes_up_to_the_total(tmp_path: Path) -> None:
    text = b"some words " * 300
    (tmp_path / "text.txt").write_bytes(text)
    recorder = Notes()
    count_pretokens([tmp_path / "text.txt", text], progress=recorder, block_bytes=100)
    assert recorder.phases == [("counting", 2 * len(text), "bytes")]
    assert recorder.done == sorted(recorder.done)
    assert recorder.done[-1] == 2 * len(text)


@pytest.mark.parametrize("separator", [None, "\n\n"])
def test_a_pipe_is_counted(separator: str | None, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"one\n\ntwo two",))
    writer.start()
    recorder = Notes()
    counts = count_pretokens([path], progress=recorder, block_bytes=4, separator=separator)
    writer.join()
    assert counts.as_dict() == reference.count_pretokens(
        ["one", "two two"] if separator else ["one\n\ntwo two"]
    )
    assert recorder.phases == [("counting", 12 if separator else None, "bytes")]
