"""Charts with axes: a histogram and a curve. Their labels are HTML, so that they keep their size on narrow screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from tokenmill.html.components import escaped

MAX_TICKS = 5
Y_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


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
    axis = ""
    for place, label in enumerate(labels):
        minor = ' class="minor"' if place // step % 2 else ""
        axis += "<span></span>" if place % step else f"<span{minor}>{escaped(label)}</span>"
    return (
        f'<figure class="{series}"><figcaption><span class="key"></span>{escaped(title)} <small>{escaped(note)}</small>'
        f'</figcaption><div class="frame">{_lines(top, ticks, " %")}<div class="plot" tabindex="0" role="group" '
        f'aria-label="{escaped(title)}: {len(shares)} bars; use the arrow keys">{bars}</div></div>'
        f'<div class="axis" aria-hidden="true">{axis}</div></figure>'
    )


@dataclass(frozen=True)
class Point:
    """A point of a curve with x > 0 and y >= 0. tip: the text of its tooltip."""

    x: int
    y: float
    tip: str


def curve(points: Sequence[Point], x_title: str, y_title: str) -> str:
    """Return a line through points, with its last value. x is logarithmic, with ticks at powers of two."""
    left = min((point.x.bit_length() - 1 for point in points), default=0)  # powers of two around the points
    right = max(left + 1, max(((point.x - 1).bit_length() for point in points), default=1))
    top, y_ticks = _y_axis(max((point.y for point in points), default=0))
    places = [(_percent(point.x, left, right), 100 * (1 - point.y / top)) for point in points]
    line = " ".join(f"{x:.2f},{y:.2f}" for x, y in places)
    dots = "".join(
        f'<div title="{escaped(point.tip)}" style="left:{x:.2f}%;top:{y:.2f}%"></div>'
        for (x, y), point in zip(places, points, strict=True)
    )
    last = ""
    for x, y in places[-1:]:
        last = f'<span class="value" style="top:{y:.2f}%;left:{x:.2f}%">{points[-1].y:.2f}</span>'
    powers = range(left, right + 1, -(-(right - left) // 12) or 1)
    axis = "".join(
        f'<span{" class=minor" if at % 2 else ""} style="left:{_percent(size, left, right):.2f}%">{size:,}</span>'
        for at, size in enumerate(2**power for power in powers)
    )
    return (
        f'<figure class="first"><figcaption><small>{escaped(y_title)}</small></figcaption>'
        f'<div class="frame curve">{_lines(top, y_ticks)}<svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" aria-hidden="true"><polyline points="{line}"/></svg>{last}'
        f'<div class="dots" tabindex="0" role="group" aria-label="{escaped(y_title)} by {escaped(x_title)}: '
        f'{len(points)} points; use the arrow keys">{dots}</div></div>'
        f'<div class="ticks" aria-hidden="true">{axis}</div>'
        f'<p class="x"><small>{escaped(x_title)}</small></p></figure>'
    )


def _lines(top: float, ticks: Sequence[float], unit: str = "") -> str:
    """Return the labeled lines of the y axis."""
    lines = "".join(
        f'<span class="grid" style="bottom:{100 * tick / top:.2f}%"><span>{tick:g}{unit}</span></span>'
        for tick in ticks
    )
    return f'<div class="lines" aria-hidden="true">{lines}</div>'


def _percent(x: int, left: int, right: int) -> float:
    return 100 * (log2(x) - left) / (right - left)


def _y_axis(highest: float) -> tuple[float, list[float]]:
    """Return the end of an axis that includes the value, and its ticks: 3.2 -> 4, [0, 1, 2, 3, 4]."""
    step = next((step for step in Y_STEPS if highest <= step * (MAX_TICKS - 1)), highest)
    count = max(1, -int(-highest // step))
    return count * step or 1, [at * step for at in range(count + 1)]
