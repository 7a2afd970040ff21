"""The sections that show text: the most frequent and the longest entries, and sequences with colored tokens."""

from __future__ import annotations

from flat_tokens.report.figures import Figures, Shown, SplitFigures
from tokenmill.html.components import (
    SERIES,
    bar,
    box_html,
    box_tip,
    entry_html,
    escaped,
    heads,
    ids_html,
    legend,
    pair,
    section,
    table,
)
from tokenmill.html.numbers import many, percent
from tokenmill.html.token_boxes import boxes


def commonest(figures: Figures) -> str:
    counts = [split.count_of for split in figures.splits]
    leading = 0 if counts[0] else 1
    chosen = sorted(counts[leading].items(), key=lambda item: (-item[1], item[0]))[: figures.bounds.entries]
    if not chosen:
        return ""
    totals = [max(split.ids.total, 1) for split in figures.splits]
    top = max(
        count.get(id_, 0) / total for id_, _ in chosen for count, total in zip(counts, totals, strict=True)
    )
    rows = []
    for rank, (id_, _) in enumerate(chosen, 1):
        shares = [count.get(id_, 0) / total for count, total in zip(counts, totals, strict=True)]
        rows.append(
            [
                f'<span class="rank">{rank}</span>',
                _entry(figures, id_),
                str(id_),
                *(
                    bar(share / top, percent(share, 1, 2), series)
                    for series, share in zip(SERIES, shares, strict=True)
                ),
            ]
        )
    covered = sum(count for _, count in chosen) / totals[leading]
    used = len(set(counts[0]) | set(counts[1]))
    usage = "" if figures.entries is None else f" {used:,} of {len(figures.entries):,} entries occur."
    body = table(["", "entry", "ID", *heads(figures.names)], rows, "entries left shares")
    note = (
        f"Together they make up {percent(covered, 1)} of the tokens of {figures.splits[leading].name}.{usage}"
    )
    return section("Most frequent entries", body, note)


def longest(figures: Figures) -> str:
    if figures.entries is None:
        return section(
            "Longest entries",
            "",
            "The dataset has no tokenizer, so only IDs are shown. Give one with "
            "<code>--tokenizer tokenizer.json</code>.",
        )
    counts = [split.count_of for split in figures.splits]
    ordinary = (item for item in figures.entries.items() if item[0] not in figures.special_ids)
    chosen = sorted(ordinary, key=lambda item: (-len(item[1]), item[0]))[: figures.bounds.entries]
    rows = [
        [f"{len(data):,}", _entry(figures, id_), str(id_), *(f"{count.get(id_, 0):,}" for count in counts)]
        for id_, data in chosen
    ]
    body = table(["bytes", "entry", "ID", *heads(figures.names)], rows, "entries left")
    return section(
        "Longest entries",
        body,
        "The longest entries of the vocabulary, with their counts in the splits. Long entries that never occur hint at "
        "training text of the tokenizer that the dataset lacks.",
    )


def sequences(figures: Figures) -> str:
    columns = []
    for split, series in zip(figures.splits, SERIES, strict=True):
        shown = "".join(_sequence(figures, split, sequence) for sequence in split.shown)
        nothing = "<p class=note>No sequences.</p>"
        columns.append(f"<div><h3>{legend(split.name, series)}</h3>{shown or nothing}</div>")
    what = (
        "Each box is a token. Tokens that form one character together share a box. Hover, tap, or use the arrow keys "
        "to see IDs and bytes. Colors only separate neighbors."
        if figures.entries is not None
        else "IDs only, because there is no tokenizer to decode them."
    )
    spread = (
        "The sequences are spaced evenly over the split."
        if any(len(split.shown) < split.seq_count for split in figures.splits)
        else "All sequences are shown."
    )
    return section("Sequences", pair(columns), f"{what} {spread}")


def _sequence(figures: Figures, split: SplitFigures, shown: Shown) -> str:
    facts = [many(shown.token_count, "token")]
    if figures.entries is None:
        body, kind = ids_html(shown.ids), "t bare"
    else:
        body, kind, place = "", "t", 0
        for box in boxes(shown.ids, figures.entries):
            body += box_html(box, box_tip(box, place), box.ids[0] in figures.special_ids)
            place += len(box.ids)
        of_text = [id_ for id_ in shown.ids if id_ not in figures.special_ids]
        size = sum(len(figures.entries.get(id_, b"")) for id_ in of_text)
        facts += [f"{size / len(of_text):.2f} bytes per token"] if of_text else []
    rest = shown.token_count - len(shown.ids)
    more = f'<p class="more">and {rest:,} more tokens</p>' if rest else ""
    label = f"{split.name} sequence {shown.index}, {facts[0]}; arrow keys move between tokens"
    return (
        f'<div class="head"><b>{split.name}[{shown.index:,}]</b><small>{", ".join(facts)}</small></div>'
        f'<p class="{kind}" dir="auto" tabindex="0" role="group" aria-label="{escaped(label)}">{body}</p>{more}'
    )


def _entry(figures: Figures, id_: int) -> str:
    if figures.entries is None:
        return ""
    return entry_html(id_, figures.entries.get(id_), id_ in figures.special_ids)
