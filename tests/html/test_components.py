"""The components: hostile text stays text, bars begin at one line, axes hold what is drawn, long entries are folded."""

from __future__ import annotations

import re

import pytest

from tokenmill.html import numbers
from tokenmill.html.chart import Point, curve, histogram
from tokenmill.html.components import FOLDED, bar, entry_html, escaped, heads, table
from tokenmill.html.page import page


def test_hostile_text_stays_text() -> None:
    told = escaped('<b>"\u202e\x00&')
    assert told == r"&lt;b&gt;&quot;\u202e\x00&amp;"
    assert "<script" not in entry_html(5, b"<script>alert(1)</script>")


@pytest.mark.parametrize("share", [0.0, 0.004, 1.0])
def test_a_bar_is_drawn_in_a_track_that_does_not_hang_on_its_figures(share: float) -> None:
    drawn = bar(share, "12.00 %")
    track, text = re.findall(r"<span[^>]*>(<i[^>]*></i>)?</span><span>(.*?)</span>", drawn)[0]
    assert text == "12.00 %"
    assert track == (f'<i style="width:{100 * share:.1f}%"></i>' if share else "")


def test_a_short_entry_is_shown_whole() -> None:
    told = entry_html(7, b" the")
    assert told == '<span class="t one"><i title="id 7, 4 bytes, 20 74 68 65"><s>·</s>the</i></span>'
    assert "<s>×64</s>" in entry_html(7, b"-" * 64)
    assert "<s>×1024</s>" in entry_html(7, b" " * 1024)  # was cut to the first 1,000 bytes
    assert "not in the vocabulary" in entry_html(7, None)


def test_a_long_entry_is_folded() -> None:
    entry = "ÃÂ".encode() * 32
    told = entry_html(7, entry)
    begin, whole = re.findall(r"<i title=[^>]*>(.*?)</i>", told)
    assert told.startswith('<details class="fold"><summary>')
    assert (begin, whole) == ("ÃÂ" * (FOLDED // 2), "ÃÂ" * 32)
    assert "…" in entry_html(7, b"ab" * 600)


def test_tables_and_heads() -> None:
    made = table(["", *heads(["a<b", "c"])], [["x", "1", "2"]])
    assert made.count("<th ") == 4
    assert "a&lt;b" in made
    assert 'class="second legend"' in made


@pytest.mark.parametrize("highest", [0, 0.004, 0.25, 0.316, 0.78, 1])
def test_the_axis_of_a_histogram_holds_its_bars(highest: float) -> None:
    made = histogram("first", "t", "n", [highest, highest / 2], highest, ["a", "b"], ["x", "y"], 1)
    heights = [float(height) for height in re.findall(r'<b style="height:([\d.]+)%', made)]
    lines = [float(place) for place in re.findall(r'class="grid" style="bottom:([\d.]+)%', made)]
    labels = [float(text) for text in re.findall(r"<span>([\d.]+) %</span>", made)]
    assert max(heights) <= 100
    assert (lines[0], lines[-1]) == (0, 100)
    assert 2 <= len(lines) <= 5
    if highest:
        assert heights[0] == pytest.approx(100 * 100 * highest / labels[-1], abs=0.01)


def test_the_axis_of_a_curve_has_one_way_to_write_sizes() -> None:
    points = [Point(size, size**0.1, "tip") for size in (512, 1024, 16_000, 50_257)]
    made = curve(points, "entries", "bytes per token")
    ticks = re.findall(r'style="left:([\d.]+)%">([^<]*)</span>', made)
    assert [text for _, text in ticks] == "512 1,024 2,048 4,096 8,192 16,384 32,768 65,536".split()
    (line,) = re.findall(r'points="([^"]*)"', made)
    places = [tuple(map(float, place.split(","))) for place in line.split()]
    assert all(0 <= x <= 100 and 0 <= y <= 100 for x, y in places)
    assert places[0][0] == float(ticks[0][0]) == 0
    assert places[1][0] == pytest.approx(float(ticks[1][0]), abs=0.01)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)


@pytest.mark.parametrize("points", [[], [Point(300, 0.0, "t")]], ids=["none", "one"])
def test_a_curve_of_next_to_nothing(points: list[Point]) -> None:
    assert curve(points, "x", "y").count("<polyline") == 1


def test_a_page_runs_its_own_scripts_alone() -> None:
    made = page(
        "<t>",
        "sub",
        [],
        [],
        kind="report",
        made_by="x",
        mark="<!-- mark -->",
        scripts=["1;"],
        data=[("d", "text")],
    )
    assert made.startswith("<!doctype html>\n<!-- mark -->\n")
    policy = re.search(r'content="(default-src[^"]*)"', made)
    assert policy
    assert policy[1].count("'sha256-") == made.count("<script>") == 2
    assert '<script type="text/plain" id="d">text</script>' in made
    assert "&lt;t&gt;" in made
    assert not re.search(r"https?:|url\(|@import", made)


@pytest.mark.parametrize(
    ("count", "written"),
    [(9_999, "9,999"), (10_000, "10 k"), (999_499, "999 k"), (999_600, "1,000 k"), (12_345_678, "12.3 M")],
)
def test_numbers(count: int, written: str) -> None:
    assert numbers.short(count) == written
    assert (numbers.many(1, "token"), numbers.many(2_000, "token")) == ("1 token", "2,000 tokens")
    assert (numbers.percent(1, 8), numbers.percent(1, 0), numbers.ratio(3, 2)) == ("12.5 %", "–", "1.50")
    assert (numbers.span(3, 3), numbers.storage(3_210_000)) == ("3", "3.21 MB")
