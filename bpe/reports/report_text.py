"""A report as sentences and tables: as plain text for a terminal, and as an HTML page with key figures and bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tokenmill.html.components import bar, entry_html, escaped, section, table
from tokenmill.html.numbers import percent
from tokenmill.html.page import page
from tokenmill.inputs.sizes import bytes_text, counted


class Table(NamedTuple):
    """A table of texts. An entry is a dict with its ID and text. bars: columns that a page draws as bars."""

    heading: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    bars: tuple[int, ...] = ()


def report_text(report: dict[str, Any]) -> str:
    """Return the report as lines of text."""
    about = report["tokenizer"]
    special = counted(about["special_tokens"], "special token")
    parts = [f"{about['entries']:,} entries, {special}, pattern {about['pattern']}", *facts(report)]
    for made in tables(report):
        parts += ["", made.heading, *_aligned(made)]
    return "\n".join(parts) + "\n"


def facts(report: dict[str, Any]) -> Iterator[str]:
    """Yield the sentences of a report."""
    if text := report.get("text"):
        yield (
            f"{text['bytes_per_token']:.3f} bytes per token on {text['measured_on']}: {bytes_text(text['bytes'])} in "
            f"{text['tokens']:,} tokens"
        )
        yield (
            f"{percent(text['pretokens_in_one_token'], 1)} of {text['pretokens']:,} pretokens are one token; "
            f"{text['tokens_per_pretoken']:.3f} tokens per pretoken"
        )
        if "note" in text:
            yield text["note"]
        unused = report["unused"]
        yield (
            f"{unused['count']:,} entries ({percent(unused['share'], 1)}) do not occur in this text; of these, "
            f"{unused['bytes_never_in_utf8']} are bytes that never occur in UTF-8, {unused['other_single_bytes']} are "
            f"other bytes, and {unused['cut_by_the_pattern']} are split by the pattern"
        )
    yield (
        f"{report['unreachable']['count']:,} entries can never be produced, because merges do not reach them"
    )
    strange = report["strange"]
    reasons = "; ".join(f"{reason} ({number:,})" for reason, number in strange["by_reason"].items())
    yield f"{strange['count']:,} entries are unusual{': ' if reasons else ''}{reasons}"


def tables(report: dict[str, Any]) -> list[Table]:
    """Return the tables of a report that have rows."""
    made = []
    if "curve" in report:
        points = [
            (f"{point['vocab_size']:,}", f"{point['bytes_per_token']:.3f}", f"{point['tokens']:,}")
            for point in report["curve"]
        ]
        columns: tuple[str, ...] = ("entries", "bytes per token", "tokens")
        made.append(Table("Bytes per token by vocabulary size", columns, points, (1,)))
        rows: list[tuple[Any, ...]] = [
            (
                row["script"],
                percent(row["share"], 1, 2),
                f"{row['bytes_per_token']:.2f}",
                f"{row['characters_per_token']:.2f}",
                f"{row['entries']:,}",
            )
            for row in report["scripts"]["rows"]
        ]
        heading = f"Scripts ({percent(report['scripts']['covered'], 1)} of the text examined)"
        columns = ("script", "share", "bytes per token", "characters per token", "entries")
        made.append(Table(heading, columns, rows, (1, 2)))
    else:
        rows = [(name, f"{count:,}") for name, count in report["entries_by_script"].items()]
        made.append(Table("Scripts", ("script", "entries"), rows, (1,)))
    made.append(_entries("Longest entries", report["longest"]))
    rows = [(str(each["id"]), each, "; ".join(each["reasons"])) for each in report["strange"]["listed"]]
    made.append(Table("Unusual entries", ("ID", "entry", "reason"), rows))
    made.append(_entries("Never produced", report["unreachable"]["listed"]))
    if "unused" in report:
        made.append(_entries("Longest entries that do not occur in this text", report["unused"]["listed"]))
    return [each for each in made if each.rows]


def _entries(heading: str, entries: list[dict[str, Any]]) -> Table:
    rows = [(f"{each['bytes']:,}", each, str(each["id"])) for each in entries]
    return Table(heading, ("bytes", "entry", "ID"), rows)


def _aligned(made: Table) -> list[str]:
    """Align numbers to the right and texts to the left, with two spaces between columns."""
    cells = [[cell["text"] if isinstance(cell, dict) else cell for cell in row] for row in made.rows]
    widths = [max(map(len, column)) for column in zip(made.columns, *cells, strict=True)]
    right = [all(_is_number(row[place]) for row in cells) for place in range(len(widths))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [made.columns, *cells]
    ]


def _is_number(cell: str) -> bool:
    return cell.removesuffix(" %").replace(",", "").replace(".", "").isdecimal()


# -- the page ----------------------------------------------------------------------------------------------------------


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
            *(_section(each, entries) for each in tables(report)),
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


def _section(made: Table, entries: Mapping[int, bytes]) -> str:
    most = {column: max(_number(row[column]) for row in made.rows) or 1 for column in made.bars}

    def cell(column: int, value: Any) -> str:
        if isinstance(value, dict):
            return entry_html(value["id"], entries[value["id"]])
        return bar(_number(value) / most[column], value) if column in most else escaped(value)

    rows = [[cell(column, value) for column, value in enumerate(row)] for row in made.rows]
    kind = "bars" if made.bars else "entries left why" if "reason" in made.columns else "entries left"
    return section(made.heading, table(made.columns, rows, kind))


def _number(cell: str) -> float:
    return float(cell.removesuffix(" %").replace(",", ""))
