"""A report's figures equal the tokenizer's behaviour, and every kind of useless or strange entry is listed."""

from __future__ import annotations

import html.parser
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe import reference
from bpe.__main__ import main
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.reports.entry_use import measure_use, unreachable_ids
from bpe.reports.measuring_encoder import prefix_encoder, whole_encoder
from bpe.reports.report import entry_text, make_report, strangeness
from bpe.reports.report_page import report_page
from bpe.reports.report_text import report_text
from bpe.reports.scripts import script_of, script_of_bytes, script_of_text, scripts_in
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_sizes
from bpe.training_options import TrainingOptions

END = "<|endoftext|>"
TEXT = f"It's a test: naïve café, 你好 {END}123\n\nthe the then — Привет, मिल, the lazy dogs of Größe\n" * 3


# -- use -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["listed", "ranked"])
@pytest.mark.parametrize("seed", range(3))
def test_use_equals_encoding(kind: str, seed: int, request: Any, random_texts: Any) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(kind)()
    text = next(iter(random_texts(seed=seed, count=1, size=3000))) + TEXT
    counts = count_pretokens([text.encode()], list(tokenizer.special_tokens))
    use = measure_use(whole_encoder(tokenizer), counts)
    ids = Counter(id_ for id_ in tokenizer.encode(text) if id_ not in tokenizer.special_tokens.values())
    assert {int(id_): int(use.by_id[id_]) for id_ in np.flatnonzero(use.by_id)} == ids
    assert use.tokens_total == sum(ids.values())
    assert use.bytes_total == len(text.replace(END, "").encode())
    for (pretoken, _), tokens in zip(counts.as_dict().items(), use.tokens.tolist(), strict=True):
        text_of = pretoken.decode()
        assert tokens == len(tokenizer.encode(text_of))


def test_no_text_has_no_use(listed: Any) -> None:
    use = measure_use(whole_encoder(listed()), PretokenCounts.from_mapping({}))
    assert (use.tokens_total, use.bytes_per_token) == (0, 0)


def test_points_of_the_curve_are_trainings_of_that_size() -> None:
    counts = count_pretokens([TEXT.encode()], [END])
    sizes = [257, 258, 300, 320]
    trained = train_sizes([TEXT.encode()], sizes, TrainingOptions([END]))
    report = make_report(trained[320], counts, "x", sizes)
    points = {point["vocab_size"]: point for point in report["curve"]}
    assert list(points) == sizes
    for size, tokenizer in trained.items():
        tokens = sum(len(tokenizer.encode(part)) for part in TEXT.split(END))
        assert points[size]["tokens"] == tokens
        assert points[size]["bytes_per_token"] == round(len(TEXT.replace(END, "").encode()) / tokens, 4)


def test_prefixes_of_a_rank_file(ranked: Any) -> None:
    tokenizer = ranked()
    encoder = prefix_encoder(tokenizer, 300)
    assert encoder.core.entries() == dict(list(tokenizer.ordinary_entries.items())[:300])


def test_prefixes_of_what_was_a_rank_file() -> None:
    """In o200k the entry of eight spaces ranks before the one of six, although six and two also make eight."""
    entries = {byte: bytes([byte]) for byte in range(256)}
    entries |= {256: b"  ", 257: b"    ", 258: b"        ", 259: b"      "}
    merges = [(b" ", b" "), (b"  ", b"  "), (b"  ", b"      "), (b"    ", b"    "), (b"  ", b"    ")]
    encoder = prefix_encoder(Tokenizer(entries, merges), 259)
    assert list(encoder.core.entries()) == list(range(259))


def test_unreachable_entries(listed: Any, ranked: Any) -> None:
    entries, merges = listed().ordinary_entries, listed().merges
    assert unreachable_ids(listed()) == []
    more = {1000: b" lazy dogs", 1001: b"xyzzy"}
    assert unreachable_ids(Tokenizer(entries | more, merges)) == [1000, 1001]
    # The first is emitted as a whole pretoken. The other one spans two pretokens, and no merges reach it.
    assert unreachable_ids(Tokenizer(entries | more, merges, ignore_merges=True)) == [1000]
    tokenizer = ranked()
    found = {tokenizer.ordinary_entries[id_] for id_ in unreachable_ids(tokenizer)}
    by_reference = {
        entry
        for entry in tokenizer.ordinary_entries.values()
        if len(reference.encode_pretoken(entry, {e: i for i, e in tokenizer.ordinary_entries.items()}, None))
        != 1
        and not _is_pretoken(entry)
    }
    assert found == by_reference != set()


def _is_pretoken(entry: bytes) -> bool:
    try:
        return len(reference.pretokenize(entry.decode())) == 1
    except UnicodeDecodeError:
        return False


# -- kinds of entries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b" the", None),
        (b"\xc3", None),
        (b"\xe4\xbd", None),
        (b"\xa9", None),
        ("日本の".encode(), None),
        ("한국어 文字".encode(), None),
        (b"\n\n\t", None),
        ("क्\u200dष".encode(), None),
        (b" caf\xc3", "joins parts of characters to whole ones"),
        (b"\xa9 ", "joins parts of characters to whole ones"),
        (b"\xa9\xc3", "joins parts of two characters"),
        (b"\x00", None),
        (b"a\x00", "holds control characters"),
        ("\ue000".encode(), "holds unassigned or private characters"),
        ("\u200b".encode(), "holds invisible format characters"),
        ("�".encode(), "holds U+FFFD, left by text that was decoded wrongly"),
        ("aП".encode(), "mixes scripts: Latin and Cyrillic"),
        (b"-" * 8, "repeats one character: 8 times"),
        (b" " + b"=" * 9, "repeats one character: 9 times"),
        (b" " * 16, "repeats one character: 16 times"),
        (b"-" * 7, None),
    ],
    ids=repr,
)
def test_strange_entries(entry: bytes, reason: str | None) -> None:
    assert strangeness(entry) == ([] if reason is None else [reason])


def test_entries_are_shown_on_one_line() -> None:
    assert entry_text(b" caf\xc3") == "' caf\\xc3'"
    assert entry_text(b"-" * 50) == "'-' x 50"
    assert entry_text(b"\n" * 8) == "'\\n' x 8"
    assert "\n" not in entry_text(b"a\n" * 100)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (" Haus", "Latin"),
        ("ß", "Latin"),
        ("\u0301e", "Latin"),
        ("Привет", "Cyrillic"),
        ("、日本", "Han"),
        ("मि", "Devanagari"),
        ("ि", "Devanagari"),
        ("𐌰", "Gothic"),
        ("𞤀", "other scripts"),
        (" 12", "digits"),
        ("½", "digits"),
        ("...", "punctuation"),
        (" €", "symbols"),
        ("🙂", "symbols"),
        ("\n ", "white space"),
        ("", "white space"),
        ("\x00", "control"),
        ("\ue000", "unassigned"),
    ],
)
def test_scripts(text: str, script: str) -> None:
    assert script_of_text(text) == script
    assert script_of_bytes(text.encode()) == script


def test_bytes_have_no_script() -> None:
    assert script_of_bytes(b"a\xff") == "bytes"
    assert script_of("\u0301") == "marks"
    assert scripts_in("aб日のc") == ["Latin", "Cyrillic", "Han"]


# -- as text, page and JSON ----------------------------------------------------------------------------------


@pytest.fixture
def tokenizer() -> Tokenizer:
    return train([TEXT.encode()], 320, [END])


@pytest.fixture
def report(tokenizer: Tokenizer) -> dict[str, Any]:
    return make_report(tokenizer, count_pretokens(["the Größe 你好 test".encode()], [END]), "<b>held & out")


def test_text(report: dict[str, Any]) -> None:
    text = report_text(report)
    lines = text.splitlines()
    assert lines[0] == "320 entries, 1 special token, pattern gpt2"
    assert lines[1].startswith(
        f"{report['text']['bytes_per_token']:.3f} bytes per token on <b>held & out: 23 bytes in "
    )
    for heading in (
        "Bytes per token by vocabulary size",
        "Scripts (100.0 %",
        "Longest entries",
        "Unusual entries",
        "Longest entries that do not occur",
    ):
        assert any(line.startswith(heading) for line in lines), heading
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    assert report["unused"]["bytes_never_in_utf8"] == 13
    rows = {row["script"]: row for row in report["scripts"]["rows"]}
    assert rows["Latin"]["bytes"] + rows["Han"]["bytes"] == 23 == report["text"]["bytes"]
    assert (rows["Han"]["bytes"], rows["Han"]["characters"]) == (7, 3)
    assert rows["Latin"]["share"] == round(16 / 23, 6)


def test_page(report: dict[str, Any], tokenizer: Tokenizer) -> None:
    page = report_page(report, tokenizer.ordinary_entries, "folder/<script>alert(1)<script>")
    assert page.count("<script") == 1
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;held &amp; out" in page
    assert "http:" not in page
    headings = re.findall(r"<h[12]>(.*?)</h[12]>", page)
    assert len(headings) == len(set(headings))
    opened: list[str] = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag != "meta":
                opened.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Parser().feed(page)
    assert opened == []


def test_a_page_without_a_text(tokenizer: Tokenizer) -> None:
    page = report_page(make_report(tokenizer, None, ""), tokenizer.ordinary_entries, "t.json")
    assert "bytes per token" not in page
    assert "Longest entries" in page


def test_the_curve_of_the_page_matches_its_points(report: dict[str, Any], tokenizer: Tokenizer) -> None:
    """From the left edge of the plot to the right, bottom up, in hundredths."""
    point = report["curve"][0]
    report["curve"] = [
        point | {"vocab_size": 1 << size, "bytes_per_token": size - 7.0} for size in (8, 9, 10)
    ]
    (line,) = re.findall(r'<polyline points="([^"]*)"', report_page(report, tokenizer.ordinary_entries, "t"))
    assert line == "0.00,66.67 50.00,33.33 100.00,0.00"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    try:
        code = main(list(map(str, arguments)))
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, *capfd.readouterr()


def test_command(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(TEXT)
    path = tmp_path / "t.json"
    code, _, err = run(
        capfd,
        *[
            "train",
            text,
            "--vocab-size",
            "300,320",
            "--special-token",
            END,
            "--output",
            tmp_path / "{vocab_size}",
        ],
        *["--report", tmp_path / "r.json", "--held-out", text, "--keep-counts", tmp_path / "c"],
    )
    assert code == 0
    assert re.search(r"r\.json: \d\.\d{3} bytes per token on .*text\n$", err)
    made = json.loads((tmp_path / "r.json").read_text())
    assert [point["vocab_size"] for point in made["curve"]] == [300, 320]
    (tmp_path / "320").rename(path)
    code, out, err = run(capfd, "report", path, text, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["text"] == made["text"]
    code, out, _ = run(capfd, "report", path, "--counts", tmp_path / "c", "--json")
    assert json.loads(out)["text"]["tokens"] == made["text"]["tokens"]
    code, out, _ = run(capfd, "report", path)
    assert code == 0
    assert "entries can never be produced" in out
    assert "bytes per token" not in out
    code, out, _ = run(capfd, "report", path, text, "--output", tmp_path / "r.html")
    assert (code, out) == (0, "")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    code, _, err = run(
        capfd, "train", text, "--vocab-size", 300, "--output", path, "--report", tmp_path / "r.txt"
    )
    assert "bytes per token on the training text" in err
    code, out, _ = run(capfd, "info", tmp_path / "c", "--json")
    assert json.loads(out)["documents"] == 4
    assert run(capfd, "info", tmp_path / "c")[1].startswith("distinct pretokens  ")


def test_command_refuses(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, path = tmp_path / "text", tmp_path / "t.json"
    text.write_text(TEXT)
    train([text], 300, [END]).save(path)
    (tmp_path / "empty").write_text("")
    run(capfd, "count", text, "--pattern", "qwen2", "--output", tmp_path / "c")
    for code, message, arguments in [
        (2, "error: ", ["report", path, tmp_path / "empty"]),
        (2, "/no: ", ["report", path, tmp_path / "no"]),
        (2, "--counts: ", ["report", path, text, "--counts", tmp_path / "c"]),
        (
            2,
            f"{tmp_path / 'c'}: .*'qwen2'.*'gpt2'",
            ["report", path, "--counts", tmp_path / "c"],
        ),
        (2, f"--output {tmp_path / 'no/r'}: ", ["report", path, "--output", tmp_path / "no/r"]),
        (3, f"{text}: ", ["report", path, "--counts", text]),
        (
            2,
            "--held-out: ",
            ["train", text, "--vocab-size", 300, "--output", path, "--held-out", text],
        ),
        (
            2,
            "no: ",
            ["train", text, *"--vocab-size 300 --report r --held-out no --output".split(), path],
        ),
    ]:
        got, out, err = run(capfd, *arguments)
        assert (got, out, err.count("\n")) == (code, "", 1), err
        assert re.search(message, err), err
