"""The report of the benchmarks: the page has every table, the README the short one between its marks."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
import harness
import report


def saved(question: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    machine = {"cpu": "A processor", "cores": 2, "system": "Linux", "python": "3.11.7", "date": "2026-11-25"}
    machine |= {"versions": {"numpy": "2"}, "commit": "abc", "load_at_start": 0.1}
    return {"question": question, "rows": rows, "machine": machine, "texts": [], "notes": ["a note"]}


def model(name: str, text: str, ours: float, theirs: float | None, other_ids: str = "") -> dict[str, Any]:
    row = {"tokenizer": name, "text": text, "threads": 1, "tokenmill": ours, "gigatoken": theirs}
    return row | {"other ids": other_ids}


SAVED = [
    saved(
        "train",
        [
            {
                "text": "en",
                "trainer": "tokenmill",
                "threads": 2,
                "text_bytes": 64e6,
                "entries": 32000,
                "seconds": 0.5,
            },
            {
                "text": "en",
                "trainer": "rustbpe",
                "threads": 2,
                "text_bytes": 64e6,
                "entries": 32000,
                "seconds": 5.0,
            },
        ],
    ),
    saved(
        "encode",
        [{"text": "en", "threads": 1, "encoder": "tokenmill", "cold, MB/s": 500.0, "warm, MB/s": 700.0}],
    ),
    saved(
        "tokenizers_table",
        [
            model("gpt2", "en", 213.4, 85.5),
            model("gpt2", "multi", 135.2, 38.2, "gigatoken"),
            model("gpt2", "zh", 1.0, 1.0),
            model("falcon", "en", 1.0, None),
        ],
    ),
    saved(
        "conversion",
        [
            {"text": "en4", "what": "tokenmill, all", "workers": 2, "text_bytes": 256e6, "seconds": 0.9},
            {"text": "en4", "what": "gigatoken, ids", "workers": 2, "text_bytes": 256e6, "seconds": 1.1},
            {"text": "multi5", "what": "tokenmill, all", "workers": 2, "text_bytes": 240e6, "seconds": 1.5},
        ],
    ),
]


def test_page_and_readme_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in SAVED:
        (tmp_path / f"{one['question']}.json").write_text(json.dumps(one))
    (tmp_path / "tokenizers_table.md").write_text("short tables of tokenizers\n")
    readme = tmp_path / "README.md"
    mark = "<!-- speed: from docs/performance.md -->\n"
    readme.write_text(f"before\n\n{mark}old\n<!-- /speed -->\n\nafter\n")
    page = tmp_path / "performance.md"
    for module, name, value in (
        (harness, "SAVED", tmp_path),
        (harness, "ROOT", tmp_path),
        (report, "PAGE", page),
        (report, "README", readme),
        (report, "TOKENIZERS", tmp_path / "tokenizers_table.md"),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["report.py", "--from-saved"])
    report.main()

    before, _, rest = readme.read_text().partition(mark)
    table, _, after = rest.partition("<!-- /speed -->")
    assert (before, after) == ("before\n\n", "\n\nafter\n")
    assert table.splitlines()[2:] == [
        "| task | tokenmill | gigatoken | rustbpe | tiktoken | tokenizers |",
        "|---|---|---|---|---|---|",
        "| train 32,000 entries on en, 64 MB, 2 threads | 0.5 s |  | 5.0 s |  |  |",
        "| encode as gpt2, MB/s: English / many languages | 213 / 135 | 85.5 / 38.2† |  |  |  |",
        "| convert en4, 256 MB, to a verified dataset, 2 workers | 0.9 s | 1.1 s (ids) |  |  |  |",
        "",
        "† gives other ids than tokenizers.",
    ]
    text = page.read_text()
    assert "| encode en, 1 thread, cold / warm | 500 / 700 MB/s |" in text
    assert "| convert multi5, 240 MB, to a verified dataset, 2 workers | 1.5 s |" in text
    assert text.index("short tables of tokenizers") < text.index("| falcon | en |")

    # Elsewhere, with other figures of one question: those of the others stay.
    for one in SAVED:
        (tmp_path / f"{one['question']}.json").unlink()
    again = saved("tokenizers_table", [model("gpt2", "en", 300.0, None), model("gpt2", "multi", 150.0, None)])
    (tmp_path / "tokenizers_table.json").write_text(json.dumps(again))
    report.main()
    changed = readme.read_text().partition(mark)[2].splitlines()
    assert changed[4:7] == [
        table.splitlines()[4],
        "| encode as gpt2, MB/s: English / many languages | 300 / 150 |  |  |  |  |",
        table.splitlines()[6],
    ]
    short = page.read_text().partition("## Training")[0]
    assert short == text.partition("## Training")[0], "nothing of it was measured"


def test_the_readme_has_its_marks() -> None:
    text = report.README.read_text(encoding="utf-8")
    assert text.count("<!-- speed: from docs/performance.md -->\n") == text.count("<!-- /speed -->") == 1
    assert all(f"encode as {name}, MB/s: " in text for name in report.MODELS)
