"""A report for people: plain text for a terminal, or one HTML page that needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from corpus.sizes import bytes_text

Table = tuple[str, Sequence[str], list[Sequence[object]]]  # heading, columns, rows


def report_text(report: dict[str, Any]) -> str:
    """The report as lines of text."""
    parts = [_title(report), *_facts(report)]
    for heading, columns, rows in tables(report):
        parts += ["", heading, *_aligned(columns, rows)]
    return "\n".join(parts) + "\n"


def _title(report: dict[str, Any]) -> str:
    about = report["tokenizer"]
    return (
        f"{about['entries']:,} entries, {about['special_tokens']} special tokens, pattern {about['pattern']}"
    )


def _facts(report: dict[str, Any]) -> list[str]:
    lines = []
    if text := report.get("text"):
        lines = [
            f"{text['bytes_per_token']:.3f} bytes a token on {text['measured_on']}: {bytes_text(text['bytes'])} in "
            f"{text['tokens']:,} tokens",
            f"{100 * text['pretokens_in_one_token']:.1f} % of {text['pretokens']:,} pretokens are one token; "
            f"{text['tokens_per_pretoken']:.3f} tokens a pretoken",
        ]
        lines += [text["note"]] if "note" in text else []
        unused = report["unused"]
        lines.append(
            f"{unused['count']:,} entries ({100 * unused['share']:.1f} %) do not occur in this text; "
            f"{unused['bytes_never_in_utf8']} are bytes that no UTF-8 text has, {unused['other_single_bytes']} other "
            f"bytes, {unused['cut_by_the_pattern']} the pattern cuts where they stand alone"
        )
    unreachable, strange = report["unreachable"], report["strange"]
    lines.append(
        f"{unreachable['count']:,} entries are never produced, whatever the text: merges do not reach them"
    )
    reasons = ", ".join(f"{number:,} {_verb(reason)}" for reason, number in strange["by_reason"].items())
    lines.append(f"{strange['count']:,} entries are strange{': ' if reasons else ''}{reasons}")
    return lines


def _verb(reason: str) -> str:
    """ "holds U+FFFD, left by ..." -> "hold U+FFFD": of many."""
    verb, _, rest = reason.partition(",")[0].partition(" ")
    return f"{verb.removesuffix('es') if verb == 'mixes' else verb.removesuffix('s')} {rest}"


def tables(report: dict[str, Any]) -> list[Table]:
    """The tables of the report, those of no rows left out."""
    found: list[Table] = []
    if "curve" in report:
        found.append(
            (
                "Bytes a token by size of the vocabulary",
                ("entries", "bytes a token", "tokens"),
                [
                    (f"{p['vocab_size']:,}", f"{p['bytes_per_token']:.3f}", f"{p['tokens']:,}")
                    for p in report["curve"]
                ],
            )
        )
        scripts = report["scripts"]
        found.append(
            (
                f"Scripts ({100 * scripts['covered']:.1f} % of the text looked at)",
                ("script", "share", "bytes a token", "characters a token", "entries"),
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
    found.append(("Longest entries", ("id", "bytes", "entry"), _entries(report["longest"])))
    strange = report["strange"]["listed"]
    found.append(
        (
            "Strangest entries",
            ("id", "entry", "why"),
            [(entry["id"], entry["text"], "; ".join(entry["reasons"])) for entry in strange],
        )
    )
    found.append(("Never produced", ("id", "bytes", "entry"), _entries(report["unreachable"]["listed"])))
    if "unused" in report:
        found.append(
            (
                "Not in this text, longest first",
                ("id", "bytes", "entry"),
                _entries(report["unused"]["listed"]),
            )
        )
    return [table for table in found if table[2]]


def _entries(entries: Iterable[dict[str, Any]]) -> list[Sequence[object]]:
    return [(entry["id"], entry["bytes"], entry["text"]) for entry in entries]


def _aligned(columns: Sequence[str], rows: list[Sequence[object]]) -> list[str]:
    """Numbers to the right, texts to the left, two spaces between."""
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


# -- HTML ------------------------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --mark: light-dark(#0b62a8, #6cb8f5); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.entry { font-family: ui-monospace, monospace; white-space: pre; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: currentColor; }
""".strip()


def report_page(report: dict[str, Any], title: str) -> str:
    """The report as one HTML page: nothing is loaded, no script runs, text of the vocabulary is escaped."""
    body = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(_title(report))}</p>"]
    body += [f"<p>{html.escape(line)}</p>" for line in _facts(report)]
    for heading, columns, rows in tables(report):
        body.append(f"<h2>{html.escape(heading)}</h2>")
        if heading.startswith("Bytes a token"):
            body.append(_curve(report["curve"]))
        body.append(_table(columns, rows))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _table(columns: Sequence[str], rows: list[Sequence[object]]) -> str:
    kinds = []
    for place, column in enumerate(columns):
        is_number = all(_is_number(str(row[place])) for row in rows)
        kinds.append(' class="number"' if is_number else ' class="entry"' if column == "entry" else "")
    head = "".join(
        f'<th scope="col"{kind if "number" in kind else ""}>{html.escape(name)}</th>'
        for name, kind in zip(columns, kinds, strict=True)
    )
    lines = [
        "<tr>"
        + "".join(f"<td{kind}>{html.escape(str(cell))}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    ]
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _curve(points: list[dict[str, Any]]) -> str:
    """Bytes a token over the logarithm of the size, as a line with its points named."""
    from math import log2

    width, height, left, bottom = 720, 280, 40, 30
    sizes = [log2(point["vocab_size"]) for point in points]
    values = [point["bytes_per_token"] for point in points]
    top = max(values) * 1.1 or 1
    span = max(sizes) - min(sizes) or 1

    def place(size: float, value: float) -> tuple[float, float]:
        x = left + (width - left - 50) * (size - min(sizes)) / span
        return round(x, 1), round((height - bottom) * (1 - value / top), 1)

    places = [place(size, value) for size, value in zip(sizes, values, strict=True)]
    line = " ".join(f"{x},{y}" for x, y in places)
    parts = [
        f'<line x1="{left}" y1="{height - bottom}" x2="{width}" y2="{height - bottom}" stroke="var(--line)"/>',
        f'<polyline points="{line}" fill="none" stroke="var(--mark)" stroke-width="2"/>',
    ]
    for (x, y), point in zip(places, points, strict=True):
        name = point["vocab_size"]
        short = f"{name / 1024:g}Ki" if name >= 1024 and name % 1024 == 0 else f"{name:,}"
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="4" fill="var(--mark)"/>'
            f'<text x="{x}" y="{max(12, y - 10)}" text-anchor="middle">{point["bytes_per_token"]:.2f}</text>'
            f'<text x="{x}" y="{height - 10}" text-anchor="middle">{short}</text>'
        )
    words = ", ".join(f"{point['vocab_size']:,}: {point['bytes_per_token']:.2f}" for point in points)
    return (
        f'<svg viewBox="0 0 {width + 20} {height}" role="img" aria-label="bytes a token by entries: {words}">'
        f"{''.join(parts)}</svg>"
    )
