"""Amounts as text: bytes and numbers of things."""

from __future__ import annotations


def bytes_text(count: float) -> str:
    """9323 -> "9.3 kB", 3100654 -> "3.1 MB", 1234500000 -> "1,234.5 MB", 11800000000 -> "11.8 GB"; powers of 1000."""
    for unit, size in (("GB", 1e10), ("MB", 1e6), ("kB", 1e3)):  # GB from 10 GB on
        if count >= size:
            return f"{count / (1e9 if unit == 'GB' else size):,.1f} {unit}"
    return counted(round(count), "byte")


def counted(count: int, word: str) -> str:
    """1, "file" -> "1 file"; 2306, "file" -> "2,306 files"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"
