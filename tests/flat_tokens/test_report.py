"""The report: its figures, its page on hostile datasets, and the command that writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import flat_tokens
from flat_tokens.__main__ import main
from flat_tokens.report import Bounds, report_html
from flat_tokens.storage.layout import ArrayLayout

HOSTILE = [
    b"<script>alert(1)</script>",
    b'"><img src=x onerror=alert(1)>',
    b"</style></script><!--",
    "\u202eevil\u2066".encode(),
    b"\x00\x07\x1b[2J",
    b"\xff\xfe",
    b"&lt;",
]


class Parsed(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def byte_level(data: bytes) -> str:
    alone = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in alone]
    return "".join(chr(byte) if byte in alone else chr(256 + others.index(byte)) for byte in data)


@pytest.fixture
def with_entries(make_dataset: Callable[..., Path]) -> Callable[..., flat_tokens.Dataset]:
    """with_entries(entries, train, validation) writes a dataset and a tokenizer with these entries, with IDs in
    order.
    """

    def make(
        entries: list[bytes], train: Any, validation: Any = (), special: bytes | None = None
    ) -> flat_tokens.Dataset:
        path = make_dataset(train, validation, ArrayLayout.create(chunk_tokens=64))
        (path / "manifest.json").unlink()
        added = (
            [] if special is None else [{"id": len(entries), "content": special.decode(), "special": True}]
        )
        vocabulary = {byte_level(entry): id_ for id_, entry in enumerate(entries)}
        tokenizer = {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "added_tokens": added}
        (path / "tokenizer.json").write_text(json.dumps(tokenizer))
        return flat_tokens.open(path)

    return make


def test_the_page_has_the_figures(make_dataset: Callable[..., Path]) -> None:
    text = Parsed(report_html(flat_tokens.open(make_dataset([[1, 2], [3, 4, 5], [6, 7, 2]], [[2]])))).text
    for row in (
        "sequences31",
        "tokens81",
        "mean tokens per sequence2.71.0",
        "median31",
        "distinct IDs71",
        "largest ID72",
    ):
        assert row in text
    assert "All tokens and sequences were counted." in text
    assert "options: seed0" in text


def test_a_large_dataset_is_sampled_and_the_page_says_so(
    make_dataset: Callable[..., Path], random_sequences: Callable[..., Any]
) -> None:
    dataset = flat_tokens.open(
        make_dataset(random_sequences(0, 2000), [[1]], ArrayLayout.create(chunk_tokens=256))
    )
    page = report_html(dataset, Bounds(tokens=1000, lengths=300, sequences=3, shown_tokens=2))
    sample = re.search(
        r"([\d,]+) of ([\d,]+) tokens of train; the lengths of ([\d,]+) of 2,000 sequences", page
    )
    assert sample
    tokens, total, lengths = (int(number.replace(",", "")) for number in sample.groups())
    assert 500 < tokens <= 1000
    assert total == dataset.train.token_count
    assert 150 < lengths <= 300
    assert [int(index.replace(",", "")) for index in re.findall(r"<b>train\[([\d,]+)\]</b>", page)] == [
        0,
        999,
        1999,
    ]


def test_an_empty_split_has_no_highest_bar(with_entries: Callable[..., flat_tokens.Dataset]) -> None:
    text = Parsed(report_html(with_entries([b"a", b"b"], [[0, 1]]))).text
    assert text.count("the highest bar is") == 2  # charts of lengths and bytes, for train only


def test_special_tokens_have_no_bytes_of_text(with_entries: Callable[..., flat_tokens.Dataset]) -> None:
    dataset = with_entries([b"the", b"m"], [[0, 1, 2], [1, 2]], special=b"<|endoftext|>")
    text = Parsed(report_html(dataset)).text
    assert "bytes of text per token1.67" in text  # (3 + 1 + 1) / 3
    assert "1.67 on average" in text
    assert "2.00 bytes per token" in text  # for train[0]


@pytest.mark.promise("untrusted")
def test_hostile_entries_stay_text(with_entries: Callable[..., flat_tokens.Dataset]) -> None:
    ids = list(range(len(HOSTILE)))
    dataset = with_entries(HOSTILE, [ids * 2, [len(HOSTILE)]], [ids], special=b"<|<b>|>")
    name = '<img src=x>"\u202e'
    page = report_html(dataset, name=name)
    parsed = Parsed(page)
    assert parsed.open == []
    assert parsed.tags["script"] == parsed.tags["style"] == 1
    assert parsed.tags["img"] == parsed.tags["b"] - page.count("<b>") - page.count("<b style") == 0
    assert not {name for name, _ in parsed.attributes} & {"src", "href", "onerror", "srcset", "action"}
    assert "<script>alert(1)</script>" in parsed.text
    assert '"><img src=x onerror=alert(1)>' in parsed.text
    assert "<|<b>|>" in parsed.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page)


def test_the_page_is_standalone(make_dataset: Callable[..., Path]) -> None:
    dataset = flat_tokens.open(make_dataset(validation=[[3, 28]]))
    page = report_html(dataset)
    assert not re.search(r"https?:|url\(|@import", page)
    script = re.search("<script>(.*)</script>", page, re.DOTALL)
    assert script
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert page == report_html(flat_tokens.open(dataset.path))
    assert 'name="viewport"' in page


def test_ids_are_shown_without_a_tokenizer(make_dataset: Callable[..., Path]) -> None:
    path = make_dataset([[7, 2**31 - 1]])
    (path / "manifest.json").unlink()
    (path / "tokenizer.json").unlink()
    page = report_html(flat_tokens.open(path))
    assert "no tokenizer" in page
    assert '<i title="id 2147483647">2147483647</i>' in page


@pytest.mark.parametrize("train", [[], [[1]]], ids=["empty", "one token"])
def test_tiny_datasets(train: Any, make_dataset: Callable[..., Path]) -> None:
    Parsed(report_html(flat_tokens.open(make_dataset(train))))


def test_the_command_writes_a_page(
    make_dataset: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = make_dataset(name="owt.zarr")
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out == "owt.report.html\n"
    assert "owt.zarr: dataset report" in Path("owt.report.html").read_text()
    assert main(["report", str(path), "--tokens", "1"]) == 0  # replaces an earlier report
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["owt.report.html", "owt.zarr"]
    assert main(["verify", str(path), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["report", str(path), "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_the_command_refuses_other_outputs(
    make_dataset: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mine = make_dataset(), tmp_path / "mine.html"
    mine.write_text("mine")
    assert main(["report", str(path), "-o", str(mine)]) == 6
    assert mine.read_text() == "mine"
    assert "mine.html: " in capsys.readouterr().err
    assert main(["report", str(path), "-o", str(mine), "--overwrite"]) == 0


@pytest.mark.parametrize(
    "output",
    ["{d}/report.html", "{d}/train/x.html", "{d}/..", "{d}/no/x.html"],
)
def test_paths_that_cannot_hold_a_report(
    output: str, make_dataset: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_dataset()
    before = sorted(path.rglob("*"))
    assert main(["report", str(path), "-o", output.format(d=path)]) == 2
    assert "--output" in capsys.readouterr().err
    assert sorted(path.rglob("*")) == before
