"""What the tests of bpe share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # cli_calls.py, json_rows.py, small_encoder.py


@pytest.fixture
def tokenizer_file(listed, tmp_path):
    """The path of a tokenizer.json with a list of merges for gpt2 and <|endoftext|>."""
    path = tmp_path / "tokenizer.json"
    listed().save(path)
    return str(path)


@pytest.fixture
def text_file(tmp_path):
    """The path of a file of cli_calls.TEXT."""
    from cli_calls import TEXT

    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return str(path)
