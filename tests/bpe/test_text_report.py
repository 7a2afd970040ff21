"""Reports on tokenizers with text entries: figures equal actual encoding, for any handling of unknown
characters.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from text_vocabularies import NAMES, WORDS, corpus, text_vocabulary

from bpe.errors import UnsupportedTokenizer
from bpe.formats import huggingface
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretokenizer import Pretokenizer
from bpe.reports.entry_use import measure_use, unreachable_ids
from bpe.reports.measuring_encoder import (
    check_measurable,
    counts_for,
    is_measurable,
    texts_of_entries,
    whole_encoder,
)
from bpe.reports.report import describe_entries, make_report
from bpe.reports.report_page import report_page
from bpe.tokenizer import Tokenizer
from bpe.training import train_sizes
from bpe.training_options import TrainingOptions

PARTS = [*WORDS, " ", "  ", "▁", "\n", "\r", "€", "𝄞", "中", "<0x0A>", "<unk>", "th", "\u00a0", "###", "ÿ"]


def tokenizer_named(name: str) -> Tokenizer:
    return Tokenizer.from_parts(huggingface.read(text_vocabulary(name).encode()))


MEASURABLE = [name for name in NAMES if is_measurable(tokenizer_named(name).text_rules)]


def test_both_kinds_are_there() -> None:
    assert {"llama", "gemma", "mistral"} <= set(MEASURABLE) < set(NAMES)


@pytest.mark.parametrize("name", MEASURABLE)
def test_use_equals_encoding(name: str) -> None:
    tokenizer = tokenizer_named(name)
    rng = random.Random(3)
    texts = ["".join(rng.choices(PARTS, k=rng.randint(1, 14))) for _ in range(60)]
    plain = [token.text for token in tokenizer.added_tokens]
    texts = [text for text in texts if not any(token in text for token in plain)]
    counts = count_pretokens(
        [text.encode() for text in texts], [], tokenizer.pretokenizer, normalizer=tokenizer.normalizer
    )
    counts = counts_for(tokenizer, counts)
    use = measure_use(whole_encoder(tokenizer), counts)
    ids = Counter(id_ for text in texts for id_ in tokenizer.encode(text, ()))
    if tokenizer.pretokenizer.changes is None:
        assert {int(id_): int(use.by_id[id_]) for id_ in np.flatnonzero(use.by_id)} == ids
        assert use.tokens_total == sum(ids.values())
    assert use.tokens_total == int((use.tokens * counts.counts).sum())


def test_points_of_the_curve_are_trainings_of_that_size() -> None:
    text = "\n".join(corpus(5)).encode()
    trained = train_sizes([text], [330, 350, 380], TrainingOptions(["<unk>"], like="llama-2"))
    largest = trained[380]
    counts = count_pretokens([text], ["<unk>"], largest.pretokenizer, normalizer=largest.normalizer)
    points = {point["vocab_size"]: point for point in make_report(largest, counts, "x", [330, 350])["curve"]}
    assert list(points) == [330, 350, 380]
    for size, tokenizer in trained.items():
        assert points[size]["tokens"] == len(tokenizer.encode(text.decode()))


def test_entries_are_text() -> None:
    texts = texts_of_entries(tokenizer_named("llama"))
    found = set(texts.values())
    assert {b" the", b"\n", b"\xff"} <= found
    assert not any("\u2581" in text.decode(errors="replace") for text in found)


def test_unreachable_entries() -> None:
    """The byte entry of a character with its own entry is unused, and an entry without merges is never emitted."""
    tokenizer = tokenizer_named("llama")
    entries = tokenizer.ordinary_entries
    spelled = {entries[id_] for id_ in unreachable_ids(tokenizer)}
    characters = {entry for entry in entries.values() if len(entry) == 1}
    assert spelled == {b"<0x%02X>" % ord(each) for each in characters | {b" "}}  # spaces are U+2581
    more = Tokenizer(
        entries | {5000: b"xyzzy"},
        tokenizer.merges,
        ["<unk>"],
        tokenizer.pretokenizer,
        normalizer=tokenizer.normalizer,
        text_rules=tokenizer.text_rules,
    )
    assert set(unreachable_ids(more)) - set(unreachable_ids(tokenizer)) == {5000}


@pytest.mark.parametrize("name", MEASURABLE)
def test_a_page(name: str) -> None:
    tokenizer = tokenizer_named(name)
    counts = count_pretokens(
        ["the other wörld € 𝄞".encode()], [], tokenizer.pretokenizer, normalizer=tokenizer.normalizer
    )
    page = report_page(make_report(tokenizer, counts, "x"), texts_of_entries(tokenizer), name)
    assert "Compression by vocabulary size" in page


def test_characters_that_become_nothing() -> None:
    """Without an unknown token they are dropped: a text may have no tokens at all."""
    tokenizer = tokenizer_named("no-unknown")
    counts = count_pretokens(["€€".encode()], [], Pretokenizer(()))
    report = make_report(tokenizer, counts, "x")
    assert (report["text"]["tokens"], report["text"]["bytes_per_token"]) == (0, 0)
    assert report["scripts"]["rows"][0]["bytes_per_token"] == 0
    assert "Scripts" in report_page(report, texts_of_entries(tokenizer), "x")


def test_ends_of_words_are_refused() -> None:
    tokenizer = tokenizer_named("clip")
    with pytest.raises(UnsupportedTokenizer, match="end_of_word_suffix"):
        make_report(tokenizer, None, "")
    with pytest.raises(UnsupportedTokenizer):
        check_measurable(tokenizer.text_rules)
    assert describe_entries(tokenizer)["unreachable"]["count"] == 0
