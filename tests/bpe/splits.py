"""Splits of a pre-tokenizer by what happens to unmatched text."""

from __future__ import annotations

from typing import Literal

from bpe.patterns import PATTERNS
from bpe.pretokenization.components import Split


def split(pattern: str, unmatched: Literal["error", "keep", "drop"] = "error") -> Split:
    """`pattern` is a key of PATTERNS or an expression in Rust's dialect."""
    behavior: Literal["Removed", "Isolated"] = "Removed" if unmatched == "drop" else "Isolated"
    return Split(
        PATTERNS.get(pattern, pattern),
        "rust",
        behavior,
        unmatched == "drop",
        gaps_are_errors=unmatched == "error",
    )
