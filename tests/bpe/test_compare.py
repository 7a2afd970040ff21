"""The command that writes a page comparing two tokenizers, and the contents of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from text_vocabularies import text_vocabulary

from bpe.errors import UnsupportedTokenizer
from bpe.normalizers import Normalizer, StripAccents
from bpe.tokenizer import AddedToken, Tokenizer
from bpe.training import train
from tokenmill.__main__ import main
from tokenmill.compare import page_model as page_models
from tokenmill.compare.page_model import page_model

END = "<|endoftext|>"
TEXT = f"the mill by the river {END} Größe 你好 123\n" * 5


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    train([TEXT.encode()], 300, [END]).save("a.json")
    train([TEXT.encode()], 320, [END], "cl100k").save("b.json")
    train([TEXT.encode()], 290, [], "cl100k").export_tiktoken("c.tiktoken")
    return tmp_path


def test_the_command_writes_a_page(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a.json", "b.json", "--output", "c.html", "--text", "</textarea><b>&"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(r"c\.html: [\d.]+ kB, standalone\n", err)
    page = Path("c.html").read_text()
    assert "a.json and b.json" in page
    assert "\n&lt;/textarea&gt;&lt;b&gt;&amp;</textarea>" in page
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|WebSocket", page)
    policy = re.search(r'content="(default-src[^"]*)"', page)
    assert policy
    assert "connect-src" not in policy[1]  # covered by default-src 'none'
    assert policy[1].count("'sha256-") == page.count("<script>") == 4
    assert main(["compare", "a.json", "b.json", "-o", "-"]) == 0
    assert capfd.readouterr().out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    "words",
    [
        ["a.json", "c.tiktoken", "--pattern", "cl100k"],
        ["c.tiktoken", "a.json", "--pattern", "cl100k", "--special-token", END],
        ["c.tiktoken", "c.tiktoken", "--pattern", "cl100k", "--pattern", "gpt2"],
    ],
    ids=["second", "first", "each"],
)
def test_patterns_of_rank_files(words: list[str], here: Path) -> None:
    assert main(["compare", *words, "--output", "c.html"]) == 0


def test_errors_are_one_line(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("clip.json").write_text(text_vocabulary("clip"))
    for words, message in [
        (["a.json", "no.json"], "no.json"),
        (["a.json", "c.tiktoken"], "--pattern"),
        (
            ["a.json", "b.json", *["--pattern", "gpt2"] * 3],
            "--pattern",
        ),
        (["a.json", "clip.json"], "clip.json: end_of_word_suffix"),
        (["a.json", "b.json", "--text", "\udcff"], "--text"),
    ]:
        assert main(["compare", *words, "--output", "c.html"]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err
        assert not Path("c.html").exists()


def tokenizer_with(**options: Any) -> Tokenizer:
    made = train([TEXT.encode()], 280)
    return Tokenizer(made.ordinary_entries, made.merges, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalizer": Normalizer((StripAccents(),))}, "normalizer StripAccents"),
        ({"special_tokens": [AddedToken("<x>", 999, single_word=True)]}, "added token '<x>'"),
        ({"pattern": r"a(?=[ab]{9}b)|(?s:.)"}, "pattern"),
    ],
    ids=["normalizer", "added token", "slow pattern"],
)
def test_inexact_page_features(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedTokenizer, match=re.escape(message)):
        page_model(tokenizer_with(**options))


def test_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_models, "MOST_BYTES", 100)
    with pytest.raises(UnsupportedTokenizer):
        page_model(tokenizer_with())
