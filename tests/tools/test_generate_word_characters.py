"""The core's table of word characters is what the project's Unicode tables give."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import generate_word_characters


def test_the_table_is_up_to_date() -> None:
    checked_in = Path(__file__).resolve().parents[2] / "native" / "text" / "word_characters.cpp"
    assert generate_word_characters.cpp() == checked_in.read_text()
