"""Numbers as text: short, with units, and a dash for an undefined ratio."""

from __future__ import annotations


def ratio(part: int, whole: int) -> str:
    """3, 2 -> "1.50"."""
    return f"{part / whole:.2f}" if whole else "–"


def percent(part: float, whole: float, digits: int = 1) -> str:
    """1, 8 -> "12.5 %"."""
    return f"{100 * part / whole:.{digits}f} %" if whole else "–"


def short(count: int) -> str:
    """12_345_678 -> "12.3 M"; numbers below 10,000 in full."""
    return f"{count:,}" if count < 10_000 else _scaled(count, ("k", "M", "G", "T"))


def storage(size_bytes: int) -> str:
    """3_210_000 -> "3.21 MB"."""
    return f"{size_bytes} B" if size_bytes < 1000 else _scaled(size_bytes, ("kB", "MB", "GB", "TB"))


def _scaled(value: float, units: tuple[str, ...]) -> str:
    for unit in units:
        value /= 1000
        if value < 1000 or unit == units[-1]:
            break
    return f"{f'{value:.3g}' if value < 999.5 else f'{value:,.0f}'} {unit}"
