"""A report's figures equal the tokenizer's behaviour, and every kind of useless or strange entry is listed."""

from __future__ import annotations

import html.parser
import random
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from text_vocabularies import NAMES, WORDS, corpus, text_vocabulary

from bpe import reference
from bpe.errors import UnsupportedTokenizer
from bpe.formats import huggingface
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretokenizer import Pretokenizer
from bpe.reports.measuring_encoder import (
    counts_for,
    is_measurable,
    measure_use,
    texts_of_entries,
    unreachable_ids,
    whole_encoder,
)
from bpe.reports.report import describe_entries, entry_text, make_report, strangeness
from bpe.reports.report_text import report_page, report_text
from bpe.reports.scripts import script_of_bytes
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_sizes
from bpe.training_options import TrainingOptions

END = "<|endoftext|>"
TEXT = f"It's a test: naïve café, 你好 {END}123\n\nthe the then — Привет, मिल, the lazy dogs of Größe\n" * 3
PARTS = [*WORDS, " ", "  ", "▁", "\n", "\r", "€", "𝄞", "中", "<0x0A>", "<unk>", "th", "\u00a0", "###", "ÿ"]


def named(name: str) -> Tokenizer:
    return Tokenizer.from_parts(huggingface.read(text_vocabulary(name).encode()))


MEASURABLE = [name for name in NAMES if is_measurable(named(name).text_rules)]


def counted(tokenizer: Tokenizer, texts: list[str]) -> Any:
    data = [text.encode() for text in texts]
    specials = list(tokenizer.special_tokens) if tokenizer.text_rules is None else []
    return count_pretokens(data, specials, tokenizer.pretokenizer, normalizer=tokenizer.normalizer)


# -- figures


@pytest.mark.parametrize("name", ["listed", "ranked", *MEASURABLE])
def test_use_equals_encoding(name: str, request: pytest.FixtureRequest) -> None:
    tokenizer = named(name) if name in NAMES else request.getfixturevalue(name)()
    rng = random.Random(3)
    texts = ["".join(rng.choices(PARTS, k=rng.randint(1, 14))) for _ in range(60)]
    tokens = [token.text for token in tokenizer.added_tokens]
    texts = [TEXT.replace(END, ""), *(text for text in texts if not any(each in text for each in tokens))]
    counts = counts_for(tokenizer, counted(tokenizer, texts))
    use = measure_use(whole_encoder(tokenizer), counts)
    ids = Counter(id_ for text in texts for id_ in tokenizer.encode(text, ()))
    if tokenizer.pretokenizer.changes is None:
        assert {int(id_): int(use.by_id[id_]) for id_ in np.flatnonzero(use.by_id)} == ids
        assert use.tokens_total == sum(ids.values())
    assert use.tokens_total == int((use.tokens * counts.counts).sum())
    if tokenizer.text_rules is None:
        assert use.bytes_total == sum(len(text.encode()) for text in texts)
        for pretoken, number in zip(counts.as_dict(), use.tokens.tolist(), strict=True):
            assert number == len(tokenizer.encode(pretoken.decode()))


@pytest.mark.parametrize(
    ("text", "special", "like", "sizes"),
    [(TEXT, END, None, [257, 258, 300, 320]), ("\n".join(corpus(5)), "<unk>", "llama-2", [330, 350, 380])],
)
def test_points_of_the_curve_are_trainings_of_that_size(
    text: str, special: str, like: str | None, sizes: list[int]
) -> None:
    trained = train_sizes([text.encode()], sizes, TrainingOptions([special], like=like))
    largest = trained[sizes[-1]]
    counts = count_pretokens([text.encode()], [special], largest.pretokenizer, normalizer=largest.normalizer)
    points = {point["vocab_size"]: point for point in make_report(largest, counts, "x", sizes)["curve"]}
    assert list(points) == sizes
    for size, tokenizer in trained.items():
        tokens = sum(len(tokenizer.encode(part)) for part in text.split(special))
        assert points[size]["tokens"] == tokens
        if like is None:
            size_in_bytes = len(text.replace(special, "").encode())
            assert points[size]["bytes_per_token"] == round(size_in_bytes / tokens, 4)


def test_unreachable_entries(listed: Any, ranked: Any) -> None:
    entries, merges = listed().ordinary_entries, listed().merges
    assert unreachable_ids(listed()) == []
    more = entries | {1000: b" lazy dogs", 1001: b"xyzzy"}
    assert unreachable_ids(Tokenizer(more, merges)) == [1000, 1001]
    # The first is emitted as a whole pretoken. The other one spans two pretokens, and no merges reach it.
    assert unreachable_ids(Tokenizer(more, merges, ignore_merges=True)) == [1000]
    ids = {entry: id_ for id_, entry in ranked().ordinary_entries.items()}
    by_reference = {
        id_
        for entry, id_ in ids.items()
        if len(reference.encode_pretoken(entry, ids, None)) != 1
        and list(reference.pretokenize(entry.decode("utf-8", "replace"))) != [entry]
    }
    assert {*unreachable_ids(ranked())} == by_reference != set()


def test_unreachable_entries_of_text() -> None:
    """The byte entry of a character with its own entry is unused, and an entry without merges is never emitted."""
    tokenizer = named("llama")
    entries = tokenizer.ordinary_entries
    characters = {entry for entry in entries.values() if len(entry) == 1}
    spelled = {entries[id_] for id_ in unreachable_ids(tokenizer)}
    assert spelled == {b"<0x%02X>" % ord(each) for each in characters | {b" "}}  # spaces are U+2581
    more = Tokenizer(
        entries | {5000: b"xyzzy"},
        tokenizer.merges,
        ["<unk>"],
        tokenizer.pretokenizer,
        normalizer=tokenizer.normalizer,
        text_rules=tokenizer.text_rules,
    )
    assert {*unreachable_ids(more)} - {*unreachable_ids(tokenizer)} == {5000}
    texts = set(texts_of_entries(tokenizer).values())
    assert {b" the", b"\n", b"\xff"} <= texts
    assert not any("\u2581" in text.decode(errors="replace") for text in texts)


def test_ends_of_words_are_refused() -> None:
    with pytest.raises(UnsupportedTokenizer, match="end_of_word_suffix"):
        make_report(named("clip"), None, "")
    assert describe_entries(named("clip"))["unreachable"]["count"] == 0


# -- kinds of entries

STRANGE: dict[bytes, str | None] = {
    **dict.fromkeys((b" the", b"\xc3", b"\xe4\xbd", b"\xa9", b"\n\n\t", b"\x00", b"-" * 7)),
    **dict.fromkeys(text.encode() for text in ("日本の", "한국어 文字", "क्\u200dष")),
    b" caf\xc3": "joins parts of characters to whole ones",
    b"\xa9\xc3": "joins parts of two characters",
    b"a\x00": "holds control characters",
    "\ue000".encode(): "holds unassigned or private characters",
    "\u200b".encode(): "holds invisible format characters",
    "�".encode(): "holds U+FFFD, left by text that was decoded wrongly",
    "aП".encode(): "mixes scripts: Latin and Cyrillic",
    b"-" * 8: "repeats one character: 8 times",
    b" " * 16: "repeats one character: 16 times",
}
SCRIPTS = {
    "Latin": [" Haus", "ß", "\u0301e"],
    "Han": ["、日本"],
    "Devanagari": ["मि", "ि"],
    "digits": [" 12", "½"],
    "punctuation": ["..."],
    "symbols": [" €", "🙂"],
    "white space": ["\n ", ""],
    "marks": ["\u0301"],
}


def test_kinds_of_entries() -> None:
    for entry, reason in STRANGE.items():
        assert strangeness(entry) == ([] if reason is None else [reason]), entry
    found = {script: [script_of_bytes(text.encode()) for text in texts] for script, texts in SCRIPTS.items()}
    assert found == {script: [script] * len(texts) for script, texts in SCRIPTS.items()}
    assert script_of_bytes(b"a\xff") == "bytes"
    shown = {b" caf\xc3": "' caf\\xc3'", b"-" * 50: "'-' x 50", b"\n" * 8: "'\\n' x 8"}
    assert {entry: entry_text(entry) for entry in shown} == shown
    assert entry_text(b"a\n" * 100).isprintable()


# -- text and page


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train([TEXT.encode()], 320, [END])


@pytest.fixture
def report(tokenizer: Tokenizer) -> dict[str, Any]:
    return make_report(tokenizer, counted(tokenizer, ["the Größe 你好 test"]), "<b>held & out")


def test_text(report: dict[str, Any]) -> None:
    lines = report_text(report).splitlines()
    assert lines[0] == "320 entries, 1 special token, pattern gpt2"
    figure = f"{report['text']['bytes_per_token']:.3f} bytes per token"
    assert lines[1].startswith(f"{figure} on <b>held & out: 23 bytes in ")
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    assert report["unused"]["bytes_never_in_utf8"] == 13
    rows = {row["script"]: row for row in report["scripts"]["rows"]}
    assert rows["Latin"]["bytes"] + rows["Han"]["bytes"] == 23 == report["text"]["bytes"]
    assert (rows["Han"]["bytes"], rows["Han"]["characters"]) == (7, 3)
    assert rows["Latin"]["share"] == round(16 / 23, 6)


def test_page(report: dict[str, Any], tokenizer: Tokenizer) -> None:
    page = report_page(report, tokenizer.ordinary_entries, "folder/<script>alert(1)<script>")
    assert page.count("<script") == 1
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;held &amp; out" in page
    assert "http:" not in page
    headings = re.findall(r"<h[12]>(.*?)</h[12]>", page)
    assert len(headings) == len(set(headings))
    opened: list[str] = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag != "meta":
                opened.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Parser().feed(page)
    assert opened == []
    entries_alone = report_page(make_report(tokenizer, None, ""), tokenizer.ordinary_entries, "t.json")
    assert "bytes per token" not in entries_alone
    assert "Longest entries" in entries_alone


def test_characters_that_become_nothing() -> None:
    """Without an unknown token they are dropped: a text may have no tokens at all."""
    tokenizer = named("no-unknown")
    report = make_report(tokenizer, count_pretokens(["€€".encode()], [], Pretokenizer(())), "x")
    assert (report["text"]["tokens"], report["text"]["bytes_per_token"]) == (0, 0)
    assert report["scripts"]["rows"][0]["bytes_per_token"] == 0
    assert "Scripts" in report_page(report, texts_of_entries(tokenizer), "x")
