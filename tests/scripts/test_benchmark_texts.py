"""The benchmarks' texts: which documents are Chinese, what one long document is, and that batches lose nothing."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
import cold_runs
import texts

SEPARATOR = b"<|endoftext|>"


@pytest.mark.parametrize(
    ("document", "chinese"),
    [
        ("大家好，今天是星期一。", True),
        ("大家好 hi 1234", True),
        ("this is 中文 inside English", False),
        ("今日は良い天気ですね。散歩しましょう", False),
        ("1234, ...", False),
        ("", False),
    ],
)
def test_more_than_half_of_the_letters_are_han(document: str, chinese: bool) -> None:
    assert texts.is_chinese(document) == chinese


def test_one_document_has_the_size_and_no_separator() -> None:
    document = cold_runs.one_document(SEPARATOR.join([b"a b", "é中".encode(), b"c"]), 1000)
    assert SEPARATOR not in document
    assert 997 <= len(document) <= 1000
    document.decode()


def test_batches_hold_whole_documents_and_all_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_runs, "BATCH_BYTES", 10)
    text = SEPARATOR.join([b"first document", b"", b"x", b"the last one, without a separator"])
    parts = list(cold_runs.batches(text))
    assert b"".join(parts) == text
    assert len(parts) > 1
    assert all(part.endswith(SEPARATOR) for part in parts[:-1])
    assert list(cold_runs.batches(b"")) == []
