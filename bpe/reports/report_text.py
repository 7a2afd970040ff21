"""A report as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenmill.inputs.sizes import bytes_text, counted

Table = tuple[str, Sequence[str], list[Sequence[object]]]  # heading, columns, rows


def report_text(report: dict[str, Any]) -> str:
    """Return the report as lines of text."""
    parts = [_title(report), *_facts(report)]
    for heading, columns, rows in tables(report):
        parts += ["", heading, *_aligned(columns, rows)]
    return "\n".join(parts) + "\n"


def _title(report: dict[str, Any]) -> str:
    about = report["tokenizer"]
    special = counted(about["special_tokens"], "special token")
    return f"{about['entries']:,} entries, {special}, pattern {about['pattern']}"


def _facts(report: dict[str, Any]) -> list[str]:
    lines = []
    if text := report.get("text"):
        lines = [
            f"{text['bytes_per_token']:.3f} bytes per token on {text['measured_on']}: {bytes_text(text['bytes'])} in "
            f"{text['tokens']:,} tokens",
            f"{100 * text['pretokens_in_one_token']:.1f} % of {text['pretokens']:,} pretokens are one token; "
            f"{text['tokens_per_pretoken']:.3f} tokens per pretoken",
        ]
        lines += [text["note"]] if "note" in text else []
        unused = report["unused"]
        lines.append(
            f"{unused['count']:,} entries ({100 * unused['share']:.1f} %) do not occur in this text; "
            f"{unused['bytes_never_in_utf8']} of them are bytes that never occur in UTF-8, "
            f"{unused['other_single_bytes']} are other bytes, and "
            f"{unused['cut_by_the_pattern']} are split by the pattern"
        )
    unreachable, strange = report["unreachable"], report["strange"]
    lines.append(f"{unreachable['count']:,} entries can never be produced, because merges do not reach them")
    reasons = ", ".join(f"{number:,} {_verb(reason)}" for reason, number in strange["by_reason"].items())
    lines.append(f"{strange['count']:,} entries are unusual{': ' if reasons else ''}{reasons}")
    return lines


def _verb(reason: str) -> str:
    """Return the plural form of a reason: "holds U+FFFD, left by ..." -> "hold U+FFFD"."""
    verb, _, rest = reason.partition(",")[0].partition(" ")
    return f"{verb.removesuffix('es') if verb == 'mixes' else verb.removesuffix('s')} {rest}"


def tables(report: dict[str, Any]) -> list[Table]:
    """Return the tables of the report that are not empty."""
    found: list[Table] = []
    if "curve" in report:
        found.append(
            (
                "Bytes per token by vocabulary size",
                ("entries", "bytes per token", "tokens"),
                [
                    (f"{p['vocab_size']:,}", f"{p['bytes_per_token']:.3f}", f"{p['tokens']:,}")
                    for p in report["curve"]
                ],
            )
        )
        scripts = report["scripts"]
        found.append(
            (
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
        )
    else:
        by_script = report["entries_by_script"]
        found.append(
            ("Scripts", ("script", "entries"), [(name, f"{count:,}") for name, count in by_script.items()])
        )
    found.append(("Longest entries", ("ID", "bytes", "entry"), _entries(report["longest"])))
    strange = report["strange"]["listed"]
    found.append(
        (
            "Unusual entries",
            ("ID", "entry", "reason"),
            [(entry["id"], entry["text"], "; ".join(entry["reasons"])) for entry in strange],
        )
    )
    found.append(("Never produced", ("ID", "bytes", "entry"), _entries(report["unreachable"]["listed"])))
    if "unused" in report:
        found.append(
            (
                "Longest entries that do not occur in this text",
                ("ID", "bytes", "entry"),
                _entries(report["unused"]["listed"]),
            )
        )
    return [table for table in found if table[2]]


def _entries(entries: Iterable[dict[str, Any]]) -> list[Sequence[object]]:
    return [(entry["id"], entry["bytes"], entry["text"]) for entry in entries]


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
