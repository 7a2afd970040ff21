"""The components of pages: hostile text stays text, axes contain the data, and boxes keep all IDs and bytes."""

from __future__ import annotations

import random
import re

import pytest

from tokenmill.html.components import entry_html, escaped, heads, histogram, table
from tokenmill.html.page import page
from tokenmill.html.token_boxes import boxes, parts


@pytest.mark.promise("untrusted")
def test_hostile_text_stays_text() -> None:
    assert escaped('<b>"\u202e\x00&') == r"&lt;b&gt;&quot;\u202e\x00&amp;"
    assert "<script" not in entry_html(5, b"<script>alert(1)</script>")
    assert "a&lt;b" in table(["", *heads(["a<b", "c"])], [["x", "1", "2"]])


@pytest.mark.parametrize("highest", [0, 0.004, 0.25, 0.316, 0.78, 1])
def test_the_axis_of_a_histogram_contains_its_bars(highest: float) -> None:
    made = histogram("first", "t", "n", [highest, highest / 2], highest, ["a", "b"], ["x", "y"], 1)
    heights = [float(height) for height in re.findall(r'<b style="height:([\d.]+)%', made)]
    lines = [float(place) for place in re.findall(r'class="grid" style="bottom:([\d.]+)%', made)]
    labels = [float(text) for text in re.findall(r"<span>([\d.]+) %</span>", made)]
    assert max(heights) <= 100
    assert (lines[0], lines[-1]) == (0, 100)
    assert 2 <= len(lines) <= 5
    if highest:
        assert heights[0] == pytest.approx(100 * 100 * highest / labels[-1], abs=0.01)


def test_a_page_runs_its_own_scripts_only() -> None:
    made = page(
        "<t>",
        "sub",
        [],
        [],
        kind="report",
        made_by="x",
        mark="<!-- m -->",
        scripts=["1;"],
        data=[("d", "text")],
    )
    assert made.startswith("<!doctype html>\n<!-- m -->\n")
    policy = re.search(r'content="(default-src[^"]*)"', made)
    assert policy
    assert policy[1].count("'sha256-") == made.count("<script>") == 2
    assert '<script type="text/plain" id="d">text</script>' in made
    assert "&lt;t&gt;" in made
    assert not re.search(r"https?:|url\(|@import", made)


def test_boxes_keep_the_ids_and_the_bytes() -> None:
    rng = random.Random(0)
    pieces = [*(bytes([byte]) for byte in range(256)), b" the", "€".encode(), "é🙂".encode()[:-1], b""]
    entries = dict(enumerate(pieces))
    text = list("wörld 世界 🙂\n".encode())
    for _ in range(200):
        ids = rng.choices([*range(262), *text * 3], k=rng.randrange(40))
        made = list(boxes(ids, entries))
        assert [id_ for box in made for id_ in box.ids] == ids
        for box in made:
            known = [entries.get(id_) for id_ in box.ids]
            assert box.data == (None if None in known else b"".join(map(bytes, known)))  # type: ignore[arg-type]


def test_tokens_that_make_one_character_share_a_box() -> None:
    entries = {0: b"a", 1: b"\xe2", 2: b"\x82\xac", 3: b"\xff"}
    for ids, expected in (
        ([0, 1, 2, 0], [(0,), (1, 2), (0,)]),
        ([1, 3, 0], [(1,), (3,), (0,)]),
        ([1, 9, 2], [(1,), (9,), (2,)]),
    ):
        assert [box.ids for box in boxes(ids, entries)] == expected


def test_characters_that_do_not_print_are_spelled_out() -> None:
    found = parts("a\n\u202e\x00".encode() + b"\xff b")
    expected = ["a", "<↵>", "\n", "<U+202E>", "<U+0000>", "<FF>", " b"]
    assert [f"<{part.text}>" if part.is_spelled else part.text for part in found] == expected
    assert [part.text for part in parts("\u0301a\u0301".encode())] == ["\u25cc\u0301a\u0301"]
