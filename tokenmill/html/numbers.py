"""How figures are written: short, with units, or a dash where there is nothing to tell."""

from __future__ import annotations


def ratio(part: int, whole: int) -> str:
    """3, 2 -> "1.50"."""
    return f"{part / whole:.2f}" if whole else "–"


def percent(part: float, whole: float, digits: int = 1) -> str:
    """1, 8 -> "12.5 %"."""
    return f"{100 * part / whole:.{digits}f} %" if whole else "–"


def span(first: int, last: int) -> str:
    """Both ends included: 3, 5 -> "3 to 5"; 3, 3 -> "3"."""
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def many(count: int, noun: str) -> str:
    """1, "token" -> "1 token"; 2,000 -> "2,000 tokens"."""
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def short(count: int) -> str:
    """12_345_678 -> "12.3 M"; below 10,000 in full."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size or (count >= size and size > 1000):
            return f"{_three_digits(count / size)} {unit}"
    return f"{count:,}"


def storage(size_bytes: int) -> str:
    """3_210_000 -> "3.21 MB"."""
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= size:
            return f"{_three_digits(size_bytes / size)} {unit}"
    return f"{size_bytes} B"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
