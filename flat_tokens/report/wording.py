"""How figures are written: short, with units, or a dash where there is nothing to tell."""

from __future__ import annotations


def ratio(part: int, whole: int) -> str:
    """3, 2 -> "1.50"."""
    return f"{part / whole:.2f}" if whole else "–"


def percent(part: int, whole: int) -> str:
    """1, 8 -> "12.5%"."""
    return f"{part / whole:.1%}" if whole else "–"


def span(first: int, last: int) -> str:
    """Both ends included: 3, 5 -> "3 to 5"; 3, 3 -> "3"."""
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def short(count: int) -> str:
    """12_345_678 -> "12.3 M"; below 10,000 in full."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size or (count >= size and size > 1000):
            return f"{count / size:.3g} {unit}" if count < 1000 * size else f"{count / size:,.0f} {unit}"
    return f"{count:,}"


def storage(size_bytes: int) -> str:
    """3_210_000 -> "3.21 MB"."""
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= size:
            return (
                f"{size_bytes / size:.3g} {unit}"
                if size_bytes < 1000 * size
                else f"{size_bytes / size:,.0f} {unit}"
            )
    return f"{size_bytes} B"
