"""`python -m convert` within the process of a test."""

from __future__ import annotations

import pytest

from convert.__main__ import main


def command(*arguments: str, tokenizer: str = "tok.json", output: str = "out.zarr") -> list[str]:
    inputs = () if any(not argument.startswith("-") for argument in arguments[:1]) else ("en.txt",)
    return [*inputs, *arguments, "--tokenizer", tokenizer, "--output", output]


def fails(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, *parts: str) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if line.startswith("tokenmill: error: ")]
    assert len(lines) == 1
    assert "Traceback" not in captured.err
    for part in parts:
        assert part in lines[0]
    return lines[0]
