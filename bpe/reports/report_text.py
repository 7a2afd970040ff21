"""A report as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tokenmill.inputs.sizes import bytes_text, counted

Table = tuple[str, Sequence[str], list[Sequence[object]]]  # heading, columns, rows


def report_text(report: dict[str, Any]) -> str:
    """Return the report as lines of text."""
    about = report["tokenizer"]
    special = counted(about["special_tokens"], "special token")
    parts = [f"{about['entries']:,} entries, {special}, pattern {about['pattern']}", *_facts(report)]
    for heading, columns, rows in _tables(report):
        if rows:
            parts += ["", heading, *_aligned(columns, rows)]
    return "\n".join(parts) + "\n"


def unused_entries_text(unused: dict[str, Any]) -> str:
    """Return the kinds of entries that do not occur in the text."""
    return (
        f"{unused['bytes_never_in_utf8']} are bytes that never occur in UTF-8, {unused['other_single_bytes']} are "
        f"other bytes, and {unused['cut_by_the_pattern']} are split by the pattern"
    )


def curve_rows(report: dict[str, Any]) -> list[Sequence[object]]:
    """Return entries, bytes per token and tokens of each point of the curve."""
    return [
        (f"{point['vocab_size']:,}", f"{point['bytes_per_token']:.3f}", f"{point['tokens']:,}")
        for point in report["curve"]
    ]


def _facts(report: dict[str, Any]) -> Iterator[str]:
    if text := report.get("text"):
        yield (
            f"{text['bytes_per_token']:.3f} bytes per token on {text['measured_on']}: {bytes_text(text['bytes'])} in "
            f"{text['tokens']:,} tokens"
        )
        yield (
            f"{100 * text['pretokens_in_one_token']:.1f} % of {text['pretokens']:,} pretokens are one token; "
            f"{text['tokens_per_pretoken']:.3f} tokens per pretoken"
        )
        if "note" in text:
            yield text["note"]
        unused = report["unused"]
        yield (
            f"{unused['count']:,} entries ({100 * unused['share']:.1f} %) do not occur in this text; of these, "
            + unused_entries_text(unused)
        )
    yield (
        f"{report['unreachable']['count']:,} entries can never be produced, because merges do not reach them"
    )
    strange = report["strange"]
    reasons = "; ".join(f"{reason} ({number:,})" for reason, number in strange["by_reason"].items())
    yield f"{strange['count']:,} entries are unusual{': ' if reasons else ''}{reasons}"


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    if "curve" in report:
        yield (
            "Bytes per token by vocabulary size",
            ("entries", "bytes per token", "tokens"),
            curve_rows(report),
        )
        scripts = report["scripts"]
        yield (
            f"Scripts ({100 * scripts['covered']:.1f} % of the text examined)",
            ("script", "share", "bytes per token", "characters per token", "entries"),
            [
                (
                    row["script"],
                    f"{100 * row['share']:.2f} %",
                    f"{row['bytes_per_token']:.2f}",
                    f"{row['characters_per_token']:.2f}",
                    f"{row['entries']:,}",
                )
                for row in scripts["rows"]
            ],
        )
    else:
        counts = report["entries_by_script"].items()
        yield "Scripts", ("script", "entries"), [(name, f"{count:,}") for name, count in counts]
    yield _entries("Longest entries", report["longest"])
    strange = report["strange"]["listed"]
    rows: list[Sequence[object]] = [
        (entry["id"], entry["text"], "; ".join(entry["reasons"])) for entry in strange
    ]
    yield "Unusual entries", ("ID", "entry", "reason"), rows
    yield _entries("Never produced", report["unreachable"]["listed"])
    if "unused" in report:
        yield _entries("Longest entries that do not occur in this text", report["unused"]["listed"])


def _entries(heading: str, entries: list[dict[str, Any]]) -> Table:
    return heading, ("ID", "bytes", "entry"), [(each["id"], each["bytes"], each["text"]) for each in entries]


def _aligned(columns: Sequence[str], rows: list[Sequence[object]]) -> list[str]:
    """Align numbers to the right and texts to the left, with two spaces between columns."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [all(_is_number(row[place]) for row in cells) for place in range(len(columns))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [list(columns), *cells]
    ]


def _is_number(cell: str) -> bool:
    return cell.removesuffix(" %").replace(",", "").replace(".", "").isdecimal()
