"""A report as an HTML page: the sentences and tables of `report_text`, key figures and a curve."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.reports.report_text import Table, facts, tables
from tokenmill.html.chart import Point, curve
from tokenmill.html.components import bar, entry_html, escaped, folded, section, table
from tokenmill.html.numbers import percent
from tokenmill.html.page import page


def report_page(report: dict[str, Any], entries: Mapping[int, bytes], name: str) -> str:
    """Return the page of a report. entries: the text of each entry by ID. name: the file or repository."""
    where = f", {escaped(name)}" if Path(name).name != name else ""
    items = "".join(f"<li>{escaped(fact)}</li>" for fact in facts(report))
    return page(
        Path(name).name,
        f"tokenizer{where}, pattern {escaped(report['tokenizer']['pattern'])}",
        _cards(report),
        [
            section("Summary", f"<ul>{items}</ul>"),
            *(_section(each, report, entries) for each in tables(report)),
        ],
        kind="tokenizer report",
        made_by="tokenmill report",
    )


def _cards(report: dict[str, Any]) -> list[tuple[str, str]]:
    about = report["tokenizer"]
    cards = [(f"{about['entries']:,}", "entries"), (f"{about['special_tokens']:,}", "special tokens")]
    if text := report.get("text"):
        return [
            *cards,
            (f"{text['bytes_per_token']:.3f}", "bytes of text per token"),
            (percent(text["pretokens_in_one_token"], 1), "of pretokens are one token"),
            (percent(report["unused"]["share"], 1), "of entries do not occur in the text"),
        ]
    return [
        *cards,
        (f"{report['strange']['count']:,}", "unusual entries"),
        (f"{report['unreachable']['count']:,}", "entries that are never produced"),
    ]


def _section(made: Table, report: dict[str, Any], entries: Mapping[int, bytes]) -> str:
    most = {column: max(_number(row[column]) for row in made.rows) or 1 for column in made.bars}

    def cell(column: int, value: Any) -> str:
        if isinstance(value, dict):
            return entry_html(value["id"], entries[value["id"]])
        return bar(_number(value) / most[column], value) if column in most else escaped(value)

    rows = [[cell(column, value) for column, value in enumerate(row)] for row in made.rows]
    kind = "bars" if made.bars else "entries left why" if "reason" in made.columns else "entries left"
    if "entry" in made.columns or made.bars:
        return section(made.heading, table(made.columns, rows, kind))
    points = [
        Point(
            point["vocab_size"],
            point["bytes_per_token"],
            f"{entries_} entries: {rate} bytes per token, {tokens} tokens",
        )
        for point, (entries_, rate, tokens) in zip(report["curve"], made.rows, strict=True)
    ]
    drawn = curve(points, "vocabulary size, including special tokens", "bytes per token")
    note = "Each point encodes the text with the first merges only, as a smaller vocabulary would."
    return section(made.heading, drawn + folded("The numbers", table(made.columns, rows)), note)


def _number(cell: str) -> float:
    return float(cell.removesuffix(" %").replace(",", ""))
