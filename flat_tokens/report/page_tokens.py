"""The sections that show text: the commonest and the longest entries, and sequences with their tokens coloured."""

from __future__ import annotations

from flat_tokens.report.figures import Figures, Shown, SplitFigures
from flat_tokens.report.html import box_html, escaped, heads, ids_html, meter, table
from flat_tokens.report.token_boxes import Box, boxes


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
                    meter(split.name, share / top, f"{share:.2%}")
                    for split, share in zip(figures.splits, shares, strict=True)
                ),
            ]
        )
    covered = sum(count for _, count in chosen) / totals[leading]
    used = len(set(counts[0]) | set(counts[1]))
    usage = "" if figures.entries is None else f" {used:,} of {len(figures.entries):,} entries occur at all."
    body = table(["", "entry", "id", *heads(figures.names)], rows, "entries shares")
    return (
        f"<section><h2>The commonest entries</h2><p class=note>Together they are {covered:.1%} of the tokens of "
        f"{figures.splits[leading].name}.{usage}</p>{body}</section>"
    )


def longest(figures: Figures) -> str:
    if figures.entries is None:
        return (
            "<section><h2>The longest entries</h2><p class=note>The dataset has no tokenizer at its root, so ids are "
            "all that can be shown: give <code>--tokenizer tokenizer.json</code>.</p></section>"
        )
    counts = [split.count_of for split in figures.splits]
    ordinary = (item for item in figures.entries.items() if item[0] not in figures.special_ids)
    chosen = sorted(ordinary, key=lambda item: (-len(item[1]), item[0]))[: figures.bounds.entries]
    rows = [
        [f"{len(data):,}", _entry(figures, id_), str(id_), *(f"{count.get(id_, 0):,}" for count in counts)]
        for id_, data in chosen
    ]
    body = table(["bytes", "entry", "id", *heads(figures.names)], rows, "entries")
    return (
        "<section><h2>The longest entries</h2><p class=note>Of the vocabulary, by bytes, and how often each occurs "
        "in what was counted. Long ones that never occur tell of text that the tokenizer was trained on and the "
        f"dataset lacks.</p>{body}</section>"
    )


def sequences(figures: Figures) -> str:
    columns = []
    for split in figures.splits:
        shown = "".join(_sequence(figures, split, sequence) for sequence in split.shown)
        nothing = "<p class=note>No sequences.</p>"
        columns.append(
            f'<div class="{split.name}"><h3><span class="key"></span>{split.name}</h3>{shown or nothing}</div>'
        )
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
    return (
        f"<section><h2>Sequences</h2><p class=note>{what} The sequences are {spread}.</p>"
        f'<div class="pair">{"".join(columns)}</div></section>'
    )


def _sequence(figures: Figures, split: SplitFigures, shown: Shown) -> str:
    facts = [f"{shown.token_count:,} token{'s' if shown.token_count != 1 else ''}"]
    if figures.entries is None:
        body, kind = ids_html(shown.ids), "t bare"
    else:
        body, kind, place = "", "t", 0
        for box in boxes(shown.ids, figures.entries):
            body += box_html(box, _tip(box, place), box.ids[0] in figures.special_ids)
            place += len(box.ids)
        size = sum(len(figures.entries.get(id_, b"")) for id_ in shown.ids)
        facts.append(f"{size / len(shown.ids):.2f} bytes a token" if shown.ids else "")
    rest = shown.token_count - len(shown.ids)
    more = f'<p class="more">and {rest:,} tokens more</p>' if rest else ""
    label = f"{split.name} sequence {shown.index}, {facts[0]}; arrow keys go from token to token"
    return (
        f'<div class="head"><b>{split.name}[{shown.index:,}]</b><small>{", ".join(facts)}</small></div>'
        f'<p class="{kind}" dir="auto" tabindex="0" role="group" aria-label="{escaped(label)}">{body}</p>{more}'
    )


def _tip(box: Box, place: int | None = None) -> str:
    """What a box tells: (262,), b" the", 5 -> "token 5: id 262, 4 bytes, 20 74 68 65"."""
    start = (
        ""
        if place is None
        else f"token {place}{f' to {place + len(box.ids) - 1}' if len(box.ids) > 1 else ''}: "
    )
    ids = f"id{'s' if len(box.ids) > 1 else ''} {' '.join(map(str, box.ids))}"
    if box.data is None:
        return f"{start}{ids}, not in the vocabulary"
    data = box.data[:16].hex(" ") + (" ..." if len(box.data) > 16 else "")
    return f"{start}{ids}, {len(box.data)} byte{'s' if len(box.data) != 1 else ''}, {data}"


def _entry(figures: Figures, id_: int) -> str:
    if figures.entries is None:
        return ""
    data = figures.entries.get(id_)
    shown = data if data is None or len(data) <= 1000 else data[:1000]
    box = box_html(Box((id_,), shown), _tip(Box((id_,), data)), id_ in figures.special_ids, in_a_line=True)
    return f'<span class="t one">{box}{"…" if data is not None and len(data) > 1000 else ""}</span>'
