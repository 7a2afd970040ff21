"""Sizes such as 32k, 100MB, 1.5GiB and 1e9, parsed to integers and printed.

k, M, G and T are powers of 1000; Ki, Mi, Gi and Ti are powers of 1024. A B may follow. Case does not matter.
"""

from __future__ import annotations

import re
from typing import Final

from tokenmill.errors import BadArgument, shown

# A comma separates thousands only, since "1,5" is one and a half to many people.
_SIZE: Final = re.compile(
    r"((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]+)?)(?:e\+?([0-9]{1,2}))?(?:([kmgt])(i?))?b?",
    re.IGNORECASE,
)
_POWERS: Final = {"k": 1, "m": 2, "g": 3, "t": 4}
_MAX_SIZE: Final = 10**18  # larger than any machine, and below 2^63


def parse_size(text: str, name: str = "size") -> int:
    """Parse a size: "32k" -> 32000, "64KiB" -> 65536, "1e9" -> 10**9, "1.5GB" -> 1_500_000_000.

    name: of the option in errors, such as "--vocab-size". BadArgument for anything that is not an integer.
    """
    match = _SIZE.fullmatch(text.strip()) if len(text) <= 40 else None
    if match is not None:
        from decimal import Decimal  # slow to import, and rarely needed

        digits, exponent, unit, binary = match.groups()
        scale = (1024 if binary else 1000) ** _POWERS[unit.lower()] if unit else 1
        value = Decimal(re.sub("[_,]", "", digits)) * Decimal(10) ** int(exponent or 0) * scale
        if value == value.to_integral_value() and value <= _MAX_SIZE:
            return int(value)
    where = f"{name}: " if name else ""
    raise BadArgument(f"{where}must be an integer such as 32000, 32k, 100MB or 1e9 (got {shown(text)})")


def parse_sizes(text: str, name: str = "size") -> list[int]:
    """Parse a list of sizes: "8k,16k,32k" -> [8000, 16000, 32000]. BadArgument as for `parse_size`."""
    return [parse_size(part, name) for part in text.split(",")]


def bytes_text(count: float) -> str:
    """9323 -> "9.3 kB", 3100654 -> "3.1 MB", 1234500000 -> "1,234.5 MB", 11800000000 -> "11.8 GB"; powers of 1000."""
    for unit, size in (("GB", 1e10), ("MB", 1e6), ("kB", 1e3)):  # GB from 10 GB on
        if count >= size:
            return f"{count / (1e9 if unit == 'GB' else size):,.1f} {unit}"
    return counted(round(count), "byte")


def counted(count: int, word: str) -> str:
    """1, "file" -> "1 file"; 2306, "file" -> "2,306 files"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"
