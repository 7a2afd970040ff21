"""Sizes as people write them become whole numbers, or one line gives examples."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from tokenmill.cli.words import size, sizes
from tokenmill.inputs.sizes import bytes_text

SIZES = {
    **{"0": 0, "5": 5, "32k": 32_000, "32K": 32_000, "1_000": 1000, "32,000": 32_000, " 7 ": 7, "12B": 12},
    **{"1,234,567.5k": 1_234_567_500, "100MB": 100_000_000, "1.5GB": 1_500_000_000, "64KiB": 65_536},
    **{
        "64ki": 65_536,
        "2g": 2 * 10**9,
        "1T": 10**12,
        "1e9": 10**9,
        "1.5e3": 1500,
        "2E+2": 200,
        "1e18": 10**18,
    },
}
NO_SIZES = ["", "many", "-1", "1.5", "0.0001k", "1e-3", "k", "1 k k", "1e19", "1x", "1ib", "٣", "nan", "0x10"]
NO_SIZES += ["1" * 41, "1,5", "1,0000", ",100"]


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text: str) -> None:
    assert size(text) == SIZES[text]


@pytest.mark.parametrize("text", NO_SIZES)
def test_no_sizes(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be an integer such as"):
        size(text)


def test_lists_of_sizes() -> None:
    assert sizes("8k,16k,32_000") == [8000, 16_000, 32_000]
    for text in ("", "8k,", ",8k", "8k,,16k", "8k;16k"):
        with pytest.raises(ArgumentTypeError):
            sizes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (9323, "9.3 kB"), (9.9999e9, "9,999.9 MB"), (11.8e9, "11.8 GB")],
)
def test_small_amounts_were_0_0_mb(count: float, text: str) -> None:
    assert bytes_text(count) == text
