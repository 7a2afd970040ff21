"""The components of pages. All text of a dataset or vocabulary is escaped here.

Two things that are compared, such as splits or tokenizers, are the `SERIES`. Each has a color and a pattern.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from tokenmill.errors import printable
from tokenmill.html.token_boxes import Box, parts

SERIES: Final = ("first", "second")
FOLDED: Final = 24  # characters of an entry that are shown before it is unfolded
MAX_PIECES: Final = 1000  # characters of an entry that are shown
TIP_BYTES: Final = 16  # bytes in a tooltip
MAX_TICKS: Final = 5
Y_STEPS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def escaped(text: str) -> str:
    """Return text as HTML for elements and attributes. Characters that are not printable are spelled out."""
    return html.escape(printable(text))


def box_html(box: Box, tip: str, is_special: bool = False) -> str:
    """Return a token as an element with a tooltip."""
    text = "<s>?</s>" if box.data is None else ""
    for part in parts(box.data or b""):
        text += f"<s>{part.text}</s>" if part.is_spelled else html.escape(part.text)
    return _box(text, tip, is_special)


def _box(text: str, tip: str, is_special: bool) -> str:
    kind = ' class="special"' if is_special else ""
    return f'<i{kind} title="{escaped(tip)}">{text}</i>'


def box_tip(box: Box, place: int | None = None) -> str:
    """Return the tooltip of a box: (262,), b" the", 5 -> "token 5: id 262, 4 bytes, 20 74 68 65"."""
    several = len(box.ids) > 1
    last = f" to {(place or 0) + len(box.ids) - 1}" if several else ""
    start = "" if place is None else f"token {place}{last}: "
    ids = f"{start}id{'s' if several else ''} {' '.join(map(str, box.ids))}"
    if box.data is None:
        return f"{ids}, not in the vocabulary"
    data = box.data[:TIP_BYTES].hex(" ") + (" ..." if len(box.data) > TIP_BYTES else "")
    return f"{ids}, {len(box.data):,} byte{'s' * (len(box.data) != 1)}, {data}"


def entry_html(id_: int, data: bytes | None, is_special: bool = False) -> str:
    """Return an entry on one line, folded if it has more than FOLDED characters."""
    box = Box((id_,), data)
    pieces = ["<s>?</s>"] if data is None else list(_line_pieces(data))
    whole = _box("".join(pieces[:MAX_PIECES]), box_tip(box), is_special)
    if len(pieces) <= FOLDED:
        return f'<span class="t one">{whole}</span>'
    begin = _box("".join(pieces[:FOLDED]), box_tip(box), is_special)
    more = "…" if len(pieces) > MAX_PIECES else ""
    return (
        f'<details class="fold"><summary><span class="t one">{begin}</span></summary>'
        f'<span class="t one">{whole}{more}</span></details>'
    )


def _line_pieces(data: bytes) -> Iterable[str]:
    """Yield HTML for each character of an entry, with a sign for spaces and names for line breaks and tabs."""
    for part in parts(data):
        if part.is_spelled:
            yield f"<s>{part.text}</s>"
        else:
            yield from ("<s>·</s>" if char == " " else html.escape(char) for char in part.text.strip("\n\t"))


def ids_html(ids: Iterable[int]) -> str:
    """Return boxes with IDs, for tokens without text."""
    return "".join(f'<i title="id {id_}">{id_}</i> ' for id_ in ids)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table. Cells are HTML; the first column has the row headers."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    head = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f'<table class="{kind}">{head}<tbody>{body}</tbody></table>'


def bar(share: float, text: str, series: str = SERIES[0]) -> str:
    """Return a bar of a share in [0, 1], followed by text. All bars of a column start at the left edge."""
    drawn = f'<i style="width:{100 * share:.1f}%"></i>' if share else ""
    return f'<span class="bar {series}"><span class="track" aria-hidden="true">{drawn}</span><span>{text}</span></span>'


def heads(names: Iterable[str]) -> list[str]:
    """Return the names of the series as column headers, which are also the legend."""
    return [legend(name, series) for name, series in zip(names, SERIES, strict=False)]


def legend(name: str, series: str) -> str:
    """Return a name with the color of its series."""
    return f'<span class="{series} legend"><span class="key"></span>{escaped(name)}</span>'


def cards(values: Iterable[tuple[str, str]]) -> str:
    """Return the key figures, given as (value, label)."""
    items = "".join(f"<li><b>{value}</b><span>{label}</span></li>" for value, label in values)
    return f'<ul class="cards">{items}</ul>'


def section(heading: str, body: str, note: str = "") -> str:
    """Return a section of a page. note: HTML before the body."""
    said = f"<p class=note>{note}</p>" if note else ""
    return f"<section><h2>{escaped(heading)}</h2>{said}{body}</section>"


def folded(summary: str, body: str) -> str:
    """Return a section that the reader can unfold."""
    return f'<details><summary>{escaped(summary)}</summary><div class="scroll">{body}</div></details>'


def pair(parts: Iterable[str]) -> str:
    """Return parts next to each other, or in one column on narrow screens."""
    return f'<div class="pair">{"".join(parts)}</div>'


def histogram(
    series: str,
    title: str,
    note: str,
    shares: Sequence[float],
    highest: float,
    labels: Sequence[str],
    tips: Sequence[str],
    step: int,
) -> str:
    """Return bars of shares in [0, 1], on an axis from 0 that includes `highest`.

    step: every step-th bar has a label, half of them only on wide screens. The arrow keys move between bars.
    """
    top, ticks = _y_axis(100 * highest)
    bars = "".join(
        f'<div title="{escaped(tip)}"><b style="height:{100 * 100 * share / top:.2f}%"></b></div>'
        for share, tip in zip(shares, tips, strict=True)
    )
    lines = "".join(
        f'<span class="grid" style="bottom:{100 * tick / top:.2f}%"><span>{tick:g} %</span></span>'
        for tick in ticks
    )
    axis = ""
    for place, label in enumerate(labels):
        minor = ' class="minor"' if place // step % 2 else ""
        axis += "<span></span>" if place % step else f"<span{minor}>{escaped(label)}</span>"
    return (
        f'<figure class="{series}"><figcaption><span class="key"></span>{escaped(title)} <small>{escaped(note)}</small>'
        f'</figcaption><div class="frame"><div aria-hidden="true">{lines}</div><div class="plot" tabindex="0" '
        f'role="group" aria-label="{escaped(title)}: {len(shares)} bars; use the arrow keys">{bars}</div></div>'
        f'<div class="axis" aria-hidden="true">{axis}</div></figure>'
    )


def _y_axis(highest: float) -> tuple[float, list[float]]:
    """Return the end of an axis that includes the value, and its ticks: 3.2 -> 4, [0, 1, 2, 3, 4]."""
    step = next((step for step in Y_STEPS if highest <= step * (MAX_TICKS - 1)), highest)
    count = max(1, -int(-highest // step))
    return count * step or 1, [at * step for at in range(count + 1)]
