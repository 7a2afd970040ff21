"""The sections that show text: the commonest and the longest entries, and sequences with their tokens coloured."""

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
    totals = [max(split.sampled_tokens, 1) for split in figures.splits]
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
    usage = "" if figures.entries is None else f" {used:,} of {len(figures.entries):,} entries occur at all."
    body = table(["", "entry", "id", *heads(figures.names)], rows, "entries left shares")
    note = f"Together they are {percent(covered, 1)} of the tokens of {figures.splits[leading].name}.{usage}"
    return section("The commonest entries", body, note)


def longest(figures: Figures) -> str:
    if figures.entries is None:
        return section(
            "The longest entries",
            "",
            "The dataset has no tokenizer at its root, so ids are all that can be shown: give "
            "<code>--tokenizer tokenizer.json</code>.",
        )
    counts = [split.count_of for split in figures.splits]
    ordinary = (item for item in figures.entries.items() if item[0] not in figures.special_ids)
    chosen = sorted(ordinary, key=lambda item: (-len(item[1]), item[0]))[: figures.bounds.entries]
    rows = [
        [f"{len(data):,}", _entry(figures, id_), str(id_), *(f"{count.get(id_, 0):,}" for count in counts)]
        for id_, data in chosen
    ]
    body = table(["bytes", "entry", "id", *heads(figures.names)], rows, "entries left")
    return section(
        "The longest entries",
        body,
        "Of the vocabulary, by bytes, and how often each occurs in what was counted. Long ones that never occur tell "
        "of text that the tokenizer was trained on and the dataset lacks.",
    )


def sequences(figures: Figures) -> str:
    columns = []
    for split, series in zip(figures.splits, SERIES, strict=True):
        shown = "".join(_sequence(figures, split, sequence) for sequence in split.shown)
        nothing = "<p class=note>No sequences.</p>"
        columns.append(f"<div><h3>{legend(split.name, series)}</h3>{shown or nothing}</div>")
    what = (
        "A box is a token; where several make one character, they share a box. Hover, tap, or go along with the "
        "arrow keys for its id. The colours only tell neighbours apart."
        if figures.entries is not None
        else "The ids; there is no tokenizer to show text by."
    )
    spread = (
        "evenly spread over the split"
        if any(len(split.shown) < split.seq_count for split in figures.splits)
        else "all"
    )
    return section("Sequences", pair(columns), f"{what} The sequences are {spread}.")


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
        facts += [f"{size / len(of_text):.2f} bytes a token"] if of_text else []
    rest = shown.token_count - len(shown.ids)
    more = f'<p class="more">and {rest:,} tokens more</p>' if rest else ""
    label = f"{split.name} sequence {shown.index}, {facts[0]}; arrow keys go from token to token"
    return (
        f'<div class="head"><b>{split.name}[{shown.index:,}]</b><small>{", ".join(facts)}</small></div>'
        f'<p class="{kind}" dir="auto" tabindex="0" role="group" aria-label="{escaped(label)}">{body}</p>{more}'
    )


def _entry(figures: Figures, id_: int) -> str:
    if figures.entries is None:
        return ""
    return entry_html(id_, figures.entries.get(id_), id_ in figures.special_ids)
