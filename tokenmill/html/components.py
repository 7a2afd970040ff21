"""Pieces of HTML that pages are made of. Whatever comes from a dataset or a vocabulary passes through `escaped`, here
and nowhere else.

Two things that are compared, such as splits or tokenizers, are the `SERIES`: each has a colour and a hatching."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

from tokenmill.html.numbers import many
from tokenmill.html.token_boxes import Box, parts

SERIES: Final = ("first", "second")
LINE_RUNS: Final = re.compile(r"((.)\2*)", re.DOTALL)
SHORTENED_RUN: Final = 13  # characters
FOLDED: Final = 24  # characters of an entry that are shown before it is unfolded
MAX_PIECES: Final = 1000  # characters and shortened runs of an entry that are shown at all
TIP_BYTES: Final = 16  # that a tip spells


def escaped(text: str) -> str:
    """Text as HTML, in elements and attributes; what does not print is spelled out, direction marks above all."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return html.escape(shown)


# -- tokens ----------------------------------------------------------------------------------------------------


def box_html(box: Box, tip: str, is_special: bool = False) -> str:
    """A token as an element whose title says what it is. Line ends stay line ends behind a sign."""
    text = "<s>?</s>" if box.data is None else ""
    for part in parts(box.data or b""):
        text += f"<s>{part.text}</s>" if part.is_spelled else html.escape(part.text)
    return _box(text, tip, is_special)


def _box(text: str, tip: str, is_special: bool) -> str:
    kind = ' class="special"' if is_special else ""
    return f'<i{kind} title="{escaped(tip)}">{text}</i>'


def box_tip(box: Box, place: int | None = None) -> str:
    """What a box tells: (262,), b" the", 5 -> "token 5: id 262, 4 bytes, 20 74 68 65"."""
    start = ""
    if place is not None:
        start = f"token {place}{f' to {place + len(box.ids) - 1}' if len(box.ids) > 1 else ''}: "
    ids = f"id{'s' if len(box.ids) > 1 else ''} {' '.join(map(str, box.ids))}"
    if box.data is None:
        return f"{start}{ids}, not in the vocabulary"
    data = box.data[:TIP_BYTES].hex(" ") + (" ..." if len(box.data) > TIP_BYTES else "")
    return f"{start}{ids}, {many(len(box.data), 'byte')}, {data}"


def entry_html(id_: int, data: bytes | None, is_special: bool = False) -> str:
    """An entry in a line: signs for spaces and line ends, long runs of one character shortened, and folded where that
    is more than `FOLDED` characters."""
    box = Box((id_,), data)
    pieces = ["<s>?</s>"] if data is None else list(_line_pieces(data))
    whole = _box("".join(pieces[:MAX_PIECES]), box_tip(box), is_special)
    more = "…" if len(pieces) > MAX_PIECES else ""
    if len(pieces) <= FOLDED:
        return f'<span class="t one">{whole}</span>'
    begin = _box("".join(pieces[:FOLDED]), box_tip(box), is_special)
    return (
        f'<details class="fold"><summary><span class="t one">{begin}</span></summary>'
        f'<span class="t one">{whole}{more}</span></details>'
    )


def _line_pieces(data: bytes) -> Iterable[str]:
    """A piece of HTML for each character of an entry, or for a long run of one: ("-" 384 times) -> "-×384"."""
    for part in parts(data):
        if part.is_spelled:
            yield f"<s>{part.text}</s>"
            continue
        for whole, char in LINE_RUNS.findall(part.text.strip("\n\t")):
            sign = "<s>·</s>" if char == " " else html.escape(char)
            if len(whole) < SHORTENED_RUN:
                yield from [sign] * len(whole)
            else:
                yield f"{sign}<s>×{len(whole)}</s>"


def ids_html(ids: Iterable[int]) -> str:
    """Boxes of ids, where there is no text."""
    return "".join(f'<i title="id {id_}">{id_}</i> ' for id_ in ids)


# -- tables, bars, cards -----------------------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are HTML already; the first column heads its row."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    head = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f'<table class="{kind}">{head}<tbody>{body}</tbody></table>'


def bar(share: float, text: str, series: str = SERIES[0]) -> str:
    """A share in [0, 1] of the column's greatest, as a bar and in figures. All bars of a column begin at one line: that
    of its cells' left edge."""
    drawn = f'<i style="width:{100 * share:.1f}%"></i>' if share else ""
    return f'<span class="bar {series}"><span class="track" aria-hidden="true">{drawn}</span><span>{text}</span></span>'


def heads(names: Iterable[str]) -> list[str]:
    """The names of the series as heads of columns, each with its sign: the legend."""
    return [legend(name, series) for name, series in zip(names, SERIES, strict=False)]


def legend(name: str, series: str) -> str:
    """A name with the sign of its series."""
    return f'<span class="{series} legend"><span class="key"></span>{escaped(name)}</span>'


def cards(values: Iterable[tuple[str, str]]) -> str:
    """The chief figures, (value, what it is) each."""
    items = "".join(f"<li><b>{value}</b><span>{label}</span></li>" for value, label in values)
    return f'<ul class="cards">{items}</ul>'


def section(heading: str, body: str, note: str = "") -> str:
    """A section of a page; note: HTML of what a reader has to know first."""
    said = f"<p class=note>{note}</p>" if note else ""
    return f"<section><h2>{escaped(heading)}</h2>{said}{body}</section>"


def folded(summary: str, body: str) -> str:
    """What is shown when it is asked for."""
    return f'<details><summary>{escaped(summary)}</summary><div class="scroll">{body}</div></details>'


def pair(parts: Iterable[str]) -> str:
    """Two things side by side, one below the other on narrow screens."""
    return f'<div class="pair">{"".join(parts)}</div>'
