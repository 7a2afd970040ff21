"""Pieces of HTML that the page is made of. Whatever comes from a dataset passes through `escaped`, here and
nowhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from flat_tokens.report.token_boxes import Box, parts

LINE_RUNS = re.compile(r"((.)\2*)", re.DOTALL)
SHORTENED_RUN = 13  # characters


def escaped(text: str) -> str:
    """Text as HTML, in elements and attributes; what does not print is spelled out, direction marks above all."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return html.escape(shown)


def box_html(box: Box, tip: str, is_special: bool = False, in_a_line: bool = False) -> str:
    """A token as an element whose title says what it is. Line ends stay line ends behind a sign; `in_a_line` leaves the
    sign alone, puts one in the place of each space, too, and shortens runs of one character."""
    text = "<s>?</s>" if box.data is None else ""
    for part in parts(box.data or b""):
        if part.is_spelled:
            text += f"<s>{part.text}</s>"
        elif in_a_line:
            text += "".join(map(_run_html, LINE_RUNS.findall(part.text.strip("\n\t"))))
        else:
            text += html.escape(part.text)
    kind = ' class="special"' if is_special else ""
    return f'<i{kind} title="{escaped(tip)}">{text}</i>'


def _run_html(run: tuple[str, str]) -> str:
    """("-----", "-") -> the run, or "-×384" if it is long; spaces as dots."""
    whole, char = run
    sign = "<s>·</s>" if char == " " else html.escape(char)
    return sign * len(whole) if len(whole) < SHORTENED_RUN else f"{sign}<s>×{len(whole)}</s>"


def ids_html(ids: Iterable[int]) -> str:
    """Boxes of ids, where there is no text."""
    return "".join(f'<i title="id {id_}">{id_}</i> ' for id_ in ids)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are HTML already; the first column heads its row."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def histogram(
    kind: str,
    title: str,
    note: str,
    heights: Sequence[float],
    labels: Sequence[str],
    tips: Sequence[str],
    step: int,
) -> str:
    """Bars of heights in [0, 1]; every `step`-th has its label under it, every second of those on wide screens
    only.

    The plot is one stop of the Tab key; the arrow keys go from bar to bar."""
    bars = "".join(
        f'<div title="{escaped(tip)}"><b style="height:{100 * height:.2f}%"></b></div>'
        for height, tip in zip(heights, tips, strict=True)
    )
    axis = ""
    for place, label in enumerate(labels):
        minor = ' class="minor"' if place // step % 2 else ""
        axis += "<span></span>" if place % step else f"<span{minor}>{escaped(label)}</span>"
    return (
        f'<figure class="{kind}"><figcaption><span class="key"></span>{escaped(title)} <small>{escaped(note)}</small>'
        f'</figcaption><div class="plot" tabindex="0" role="group" aria-label="{escaped(title)}: {len(heights)} bars, '
        f'by the arrow keys">{bars}</div><div class="axis" aria-hidden="true">{axis}</div></figure>'
    )


def meter(kind: str, part: float, text: str) -> str:
    """A share as a bar in [0, 1] of its greatest, and in figures."""
    return (
        f'<span class="{kind}"><span class="meter" aria-hidden="true"><i style="width:{100 * part:.1f}%"></i></span>'
        f"{text}</span>"
    )


def heads(names: Iterable[str]) -> list[str]:
    """The names of splits as heads of columns, each with the sign of its plots."""
    return [f'<span class="{name}"><span class="key"></span>{name}</span>' for name in names]
