"""A report as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.reports.report_text import curve_rows, unused_entries_text
from tokenmill.html.chart import Point, curve
from tokenmill.html.components import bar, entry_html, escaped, folded, section, table
from tokenmill.html.numbers import many, percent
from tokenmill.html.page import page
from tokenmill.inputs.sizes import bytes_text


def report_page(report: dict[str, Any], entries: Mapping[int, bytes], name: str) -> str:
    """Return the page of a report. entries: the text of each entry by ID. name: the file or repository."""
    measured = _measured(report) if "text" in report else [_entries_by_script(report)]
    listed = [
        _longest(report, entries),
        _strange(report, entries),
        _never_produced(report, entries),
        _unused(report, entries) if "unused" in report else "",
    ]
    where = f", {escaped(name)}" if Path(name).name != name else ""
    return page(
        Path(name).name,
        f"tokenizer{where}{_pattern(report['tokenizer']['pattern'])}",
        _cards(report),
        [*measured, *listed],
        kind="tokenizer report",
        made_by="tokenmill report",
    )


def _pattern(pattern: str) -> str:
    """Return the pattern; a long expression is folded."""
    if len(pattern) <= 60:
        return f", pattern {escaped(pattern)}"
    return (
        f'<details class="fold"><summary><span class="t one">pattern {escaped(pattern[:40])}</span></summary>'
        f'<span class="t one">pattern {escaped(pattern)}</span></details>'
    )


def _cards(report: dict[str, Any]) -> list[tuple[str, str]]:
    about = report["tokenizer"]
    cards = [
        (f"{about['entries']:,}", "entries"),
        (
            f"{about['special_tokens']:,}",
            f"special token{'s' if about['special_tokens'] != 1 else ''}",
        ),
    ]
    if text := report.get("text"):
        cards += [
            (f"{text['bytes_per_token']:.3f}", "bytes of text per token"),
            (percent(text["pretokens_in_one_token"], 1), "of pretokens are one token"),
            (percent(report["unused"]["share"], 1), "of entries do not occur in the text"),
        ]
    else:
        cards += [
            (f"{report['strange']['count']:,}", "unusual entries"),
            (f"{report['unreachable']['count']:,}", "entries that are never produced"),
        ]
    return cards


def _measured(report: dict[str, Any]) -> list[str]:
    text, points = report["text"], report["curve"]
    facts = [
        ["size", f"{bytes_text(text['bytes'])} in {many(text['documents'], 'document')}"],
        ["tokens", f"{text['tokens']:,}"],
        ["pretokens", f"{text['pretokens']:,}, {text['distinct_pretokens']:,} distinct"],
        ["tokens per pretoken", f"{text['tokens_per_pretoken']:.3f}"],
    ]
    note = f"Measured on {escaped(text['measured_on'])}"
    note += f": {escaped(text['note'])}." if "note" in text else "."
    drawn = curve(
        [
            Point(
                point["vocab_size"],
                point["bytes_per_token"],
                f"{point['vocab_size']:,} entries: {point['bytes_per_token']:.3f} bytes per token, "
                f"{point['tokens']:,} tokens",
            )
            for point in points
        ],
        "vocabulary size, including special tokens",
        "bytes per token",
    )
    rows = [list(map(str, row)) for row in curve_rows(report)]
    numbers = folded("The numbers", table(["entries", "bytes per token", "tokens"], rows))
    return [
        section("The text", table(["", ""], facts), note),
        section(
            "Compression by vocabulary size",
            drawn + numbers,
            "Each point encodes the text with the first merges only, as a smaller vocabulary would.",
        ),
        _scripts(report["scripts"]),
    ]


def _scripts(scripts: dict[str, Any]) -> str:
    rows = scripts["rows"]
    share = max(row["share"] for row in rows)
    rate = max(row["bytes_per_token"] for row in rows) or 1
    cells = [
        [
            escaped(row["script"])
            .replace("punctuation", "punc&shy;tuation")
            .replace("unassigned", "unas&shy;signed"),
            bar(row["share"] / share, percent(row["share"], 1, 2)),
            bar(row["bytes_per_token"] / rate, f"{row['bytes_per_token']:.2f}"),
            f"{row['characters_per_token']:.2f}",
            f"{row['entries']:,}",
        ]
        for row in rows
    ]
    note = f"By the first letter of each pretoken, in {percent(scripts['covered'], 1)} of the text."
    heads = ["script", "share of bytes", "bytes per token", "charac&shy;ters per token", "entries"]
    return section("Scripts", table(heads, cells, "bars"), note)


def _entries_by_script(report: dict[str, Any]) -> str:
    counts: dict[str, int] = report["entries_by_script"]
    most = max(counts.values(), default=1)
    rows = [[escaped(name), bar(count / most, f"{count:,}")] for name, count in counts.items()]
    return section(
        "Scripts", table(["script", "entries"], rows, "bars"), "By the first letter of each entry."
    )


def _longest(report: dict[str, Any], entries: Mapping[int, bytes]) -> str:
    return section("Longest entries", _entry_table(report["longest"], entries))


def _strange(report: dict[str, Any], entries: Mapping[int, bytes]) -> str:
    strange = report["strange"]
    if not strange["count"]:
        return ""
    most = max(strange["by_reason"].values())
    reasons = table(
        ["reason", "entries"],
        [[escaped(what), bar(count / most, f"{count:,}")] for what, count in strange["by_reason"].items()],
        "bars",
    )
    rows = [
        [str(each["id"]), entry_html(each["id"], entries[each["id"]]), escaped("; ".join(each["reasons"]))]
        for each in strange["listed"]
    ]
    listed = table(["ID", "entry", "reason"], rows, "entries left why")
    share = percent(strange["count"], report["tokenizer"]["entries"])
    note = f"{strange['count']:,} entries, {share} of the vocabulary."
    return section("Unusual entries", reasons + listed, note)


def _never_produced(report: dict[str, Any], entries: Mapping[int, bytes]) -> str:
    unreachable = report["unreachable"]
    if not unreachable["count"]:
        return section("Never produced", "", "Merges reach every entry, so some text produces each of them.")
    note = (
        f"{unreachable['count']:,} of the entries are never produced: their text is encoded as other tokens."
    )
    return section("Never produced", _entry_table(unreachable["listed"], entries), note)


def _unused(report: dict[str, Any], entries: Mapping[int, bytes]) -> str:
    unused = report["unused"]
    note = f"{unused['count']:,} entries. {unused_entries_text(unused)}. The table lists the longest ones."
    return section("Entries that do not occur in this text", _entry_table(unused["listed"], entries), note)


def _entry_table(listed: list[dict[str, Any]], entries: Mapping[int, bytes]) -> str:
    if not listed:
        return ""
    rows = [
        [f"{each['bytes']:,}", entry_html(each["id"], entries[each["id"]]), str(each["id"])]
        for each in listed
    ]
    return table(["bytes", "entry", "ID"], rows, "entries left")
