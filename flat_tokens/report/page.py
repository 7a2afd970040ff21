"""The page of a dataset report. It computes shares and bins, and reads nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.format import SPLITS
from flat_tokens.report.figures import Figures, Shown, SplitFigures
from tokenmill.html import numbers
from tokenmill.html.components import (
    SERIES,
    bar,
    box_html,
    box_tip,
    entry_html,
    escaped,
    folded,
    heads,
    histogram,
    ids_html,
    legend,
    pair,
    section,
    table,
)
from tokenmill.html.page import page
from tokenmill.html.token_boxes import boxes

MARK = "<!-- flat_tokens report -->"  # files with this mark may be replaced
LARGEST_BYTES_BAR = 16  # the last bar also counts longer tokens
PERCENTILES = {
    1: "1st percentile",
    10: "10th percentile",
    50: "median",
    90: "90th percentile",
    99: "99th percentile",
    100: "longest",
}
SOURCE_FIGURES = {"bytes": "bytes", "train_tokens": "tokens in train", "validation_tokens": "in validation"}

Counted = npt.NDArray[np.int64]


def render(figures: Figures, name: str) -> str:
    """Return the page."""
    sections = [
        _comparison(figures),
        _lengths(figures),
        _bytes_per_token(figures),
        _commonest(figures),
        _longest(figures),
        _sequences(figures),
        _origin(figures),
    ]
    where = f"flat-tokens dataset, Zarr format {figures.facts['zarr_format']}, {escaped(str(figures.facts['path']))}"
    return page(
        name, where, _cards(figures), sections, kind="dataset report", made_by="tokenmill report", mark=MARK
    )


def _cards(figures: Figures) -> list[tuple[str, str]]:
    tokens, seqs = figures.sum("token_count"), figures.sum("seq_count")
    cards = [
        (numbers.short(tokens), "token" if tokens == 1 else "tokens"),
        (numbers.short(seqs), "sequence" if seqs == 1 else "sequences"),
        (numbers.storage(figures.sum("disk_bytes")), "on disk"),
    ]
    if figures.entries is not None:
        cards.append((f"{len(figures.entries):,}", "entries in the vocabulary"))
        if figures.splits[0].text.total:
            cards.append((_rate(figures.splits[0]), "bytes of text per token"))
    return cards


def _comparison(figures: Figures) -> str:
    rows: list[list[str]] = []

    def row(label: str, of: Callable[[SplitFigures], str]) -> None:
        rows.append([label, *map(of, figures.splits)])

    row("sequences", lambda split: f"{split.facts['seq_count']:,}")
    row("tokens", lambda split: f"{split.facts['token_count']:,}")
    all_tokens = figures.sum("token_count")
    row("share of all tokens", lambda split: numbers.percent(split.facts["token_count"], all_tokens))
    if any(split.facts["trained_tokens"] is not None for split in figures.splits):
        row("trained", lambda split: f"{split.facts['trained_tokens'] or 0:,}")
    row("mean tokens per sequence", _mean)
    for percent, label in PERCENTILES.items():
        rows.append([label, *(_percentile(split, percent) for split in figures.splits)])
    if figures.entries is not None:
        row("bytes of text per token", _rate)
    row("distinct IDs", lambda split: f"{len(split.ids.values):,}")
    row("largest ID", lambda split: f"{split.facts['max_token_id']:,}")
    row("on disk", lambda split: numbers.storage(split.facts["disk_bytes"]))
    row(
        "bytes on disk per token",
        lambda split: numbers.ratio(split.facts["disk_bytes"], split.facts["token_count"]),
    )
    row("compression", lambda split: escaped(str(split.facts["compression"])))
    return section("Train and validation", table(["", *heads(SPLITS)], rows), _sample_note(figures))


def _lengths(figures: Figures) -> str:
    longest = max((split.lengths.values[-1] for split in figures.splits if split.lengths.total), default=1)
    edges = length_edges(longest)
    binned: list[list[Counted]] = []
    for split in figures.splits:
        bins = np.searchsorted(edges, split.lengths.values, "right") - 1
        weights = split.lengths.counts, split.lengths.counts * split.lengths.values
        binned.append([np.bincount(bins, each, len(edges) - 1).astype(np.int64) for each in weights])
    used = np.flatnonzero(sum(seqs for seqs, _ in binned))
    low, high = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    spans = [numbers.span(int(edges[at]), int(edges[at + 1]) - 1) for at in range(low, high)]
    labels = [f"{edge:,}" if edge < 10_000 else numbers.short(edge) for edge in edges[low:high].tolist()]
    binned = [[counts[low:high] for counts in both] for both in binned]
    tips = [
        [
            f"{span} tokens: {count:,} sequences ({numbers.percent(count, split.lengths.total)}), "
            f"{numbers.percent(held, split.lengths.sum)} of the tokens"
            for span, count, held in zip(spans, seqs.tolist(), tokens.tolist(), strict=True)
        ]
        for split, (seqs, tokens) in zip(figures.splits, binned, strict=True)
    ]
    notes = [numbers.many(split.facts["seq_count"], "sequence") for split in figures.splits]
    plots = _plots(figures, [seqs for seqs, _ in binned], notes, labels, tips, max(-(-(high - low) // 9), 1))
    columns = [counts.tolist() for both in binned for counts in both]
    rows = [
        [span, *(f"{count:,}" for count in counts)] for span, *counts in zip(spans, *columns, strict=True)
    ]
    titles = [f"{head}: {what}" for head in heads(SPLITS) for what in ("sequences", "tokens")]
    return section(
        "Sequence lengths",
        plots + folded("The numbers", table(["tokens per sequence", *titles], rows)),
        "Tokens per sequence, in bins that grow by a third to a half. The height is the share of the split's "
        "sequences, on the same scale for both splits.",
    )


def _bytes_per_token(figures: Figures) -> str:
    if figures.entries is None:
        return ""
    columns = [
        np.bincount(
            np.minimum(split.text.values, LARGEST_BYTES_BAR), split.text.counts, LARGEST_BYTES_BAR + 1
        )[1:].astype(np.int64)
        for split in figures.splits
    ]
    labels = [str(size) for size in range(1, LARGEST_BYTES_BAR)] + [f"{LARGEST_BYTES_BAR}+"]
    shares = [[numbers.percent(int(count), int(column.sum())) for count in column] for column in columns]
    tips = [
        [
            f"{label} byte{'s' if label != '1' else ''}: {share} of the tokens"
            for label, share in zip(labels, column, strict=True)
        ]
        for column in shares
    ]
    notes = [
        f"{_rate(split)} on average" if column.any() else "no tokens"
        for split, column in zip(figures.splits, columns, strict=True)
    ]
    numbers_table = table(["bytes", *heads(SPLITS)], zip(labels, *shares, strict=True))
    return section(
        "Bytes per token",
        _plots(figures, columns, notes, labels, tips, 1) + folded("The numbers", numbers_table),
        "Bytes of text per token. The height is the share of the split's tokens, without special tokens.",
    )


def _plots(
    figures: Figures,
    columns: Sequence[Counted],
    notes: Sequence[str],
    labels: Sequence[str],
    tips: Sequence[Sequence[str]],
    step: int,
) -> str:
    """Return a histogram per split, on one scale. columns: the counts of each split."""
    shares = [column / max(column.sum(), 1) for column in columns]
    top = max(float(share.max()) or 1.0 for share in shares)
    plots = []
    for split, series, share, note, tip in zip(figures.splits, SERIES, shares, notes, tips, strict=True):
        highest = f"; the highest bar is {numbers.percent(share.max(), 1)}" if share.any() else ""
        plots.append(histogram(series, split.name, note + highest, share.tolist(), top, labels, tip, step))
    return pair(plots)


def _commonest(figures: Figures) -> str:
    shares = [
        {id_: count / split.ids.total for id_, count in split.count_of.items()} for split in figures.splits
    ]
    leading = 0 if shares[0] else 1
    chosen = sorted(shares[leading], key=lambda id_: (-shares[leading][id_], id_))[: figures.bounds.entries]
    if not chosen:
        return ""
    top = max(share.get(id_, 0) for id_ in chosen for share in shares)
    rows = []
    for rank, id_ in enumerate(chosen, 1):
        found = [share.get(id_, 0) for share in shares]
        bars = [
            bar(share / top, numbers.percent(share, 1, 2), series)
            for series, share in zip(SERIES, found, strict=True)
        ]
        rows.append([f'<span class="rank">{rank}</span>', _entry(figures, id_), str(id_), *bars])
    covered = numbers.percent(sum(shares[leading][id_] for id_ in chosen), 1)
    note = f"Together they make up {covered} of the tokens of {SPLITS[leading]}."
    if figures.entries is not None:
        note += f" {len({*shares[0], *shares[1]}):,} of {len(figures.entries):,} entries occur."
    head = ["", "entry", "ID", *heads(SPLITS)]
    return section("Most frequent entries", table(head, rows, "entries left shares"), note)


def _longest(figures: Figures) -> str:
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
    body = table(["bytes", "entry", "ID", *heads(SPLITS)], rows, "entries left")
    return section(
        "Longest entries",
        body,
        "The longest entries of the vocabulary, with their counts in the splits. Long entries that never occur hint at "
        "training text of the tokenizer that the dataset lacks.",
    )


def _sequences(figures: Figures) -> str:
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
        if any(len(split.shown) < split.facts["seq_count"] for split in figures.splits)
        else "All sequences are shown."
    )
    return section("Sequences", pair(columns), f"{what} {spread}")


def _sequence(figures: Figures, split: SplitFigures, shown: Shown) -> str:
    facts = [numbers.many(shown.token_count, "token")]
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


def _origin(figures: Figures) -> str:
    facts, sources = figures.facts, figures.facts["sources"]
    rows = [
        [f"{title}: {escaped(str(key))}", _value(value)]
        for title in ("tokenizer", "options", "versions")
        for key, value in (facts[title] or {}).items()
    ]
    listed = [
        [
            escaped(str(source.get("path", ""))),
            *(f"{source[name]:,}" if isinstance(source.get(name), int) else "" for name in SOURCE_FIGURES),
        ]
        for source in sources
    ]
    left_out = facts["source_count"] - len(sources)
    more = f"<p class=more>and {left_out:,} more</p>" if left_out else ""
    made = table(["", ""], rows, "origin") if rows else "<p class=note>The dataset has no manifest.</p>"
    files = f"{table(['source', *SOURCE_FIGURES.values()], listed, 'origin')}{more}" if listed else ""
    return section("Provenance", made + files)


def _value(value: Any) -> str:
    """Return a JSON value for people: None -> none; {"train": 3} -> train 3; 4294967296 -> 4,294,967,296."""
    if value is None or value == {}:
        text = "none"
    elif isinstance(value, dict):
        text = ", ".join(f"{key} {part}" for key, part in value.items())
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:,}"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f'<span class="wrap">{escaped(text)}</span>'


def _sample_note(figures: Figures) -> str:
    said = []
    for split in figures.splits:
        if split.ids.total < split.facts["token_count"]:
            said.append(f"{split.ids.total:,} of {split.facts['token_count']:,} tokens of {split.name}")
        if split.lengths.total < split.facts["seq_count"]:
            said.append(
                f"the lengths of {split.lengths.total:,} of {split.facts['seq_count']:,} sequences of {split.name}"
            )
    if not said:
        return "All tokens and sequences were counted."
    return (
        f"Counted in an evenly spaced sample: {'; '.join(said)}. The numbers of sequences and tokens "
        "and the sizes are for the whole dataset."
    )


def length_edges(longest: int) -> npt.NDArray[np.int64]:
    """Return edges of bins that grow by a half and a third in turn, up to `longest`: 1, 2, 3, 4, 6, 8, 12 ..."""
    edges = [1, 2, 3]
    while edges[-1] <= longest:
        edges.append(edges[-2] * 2)
    return np.array(edges, np.int64)


def _rate(split: SplitFigures) -> str:
    return numbers.ratio(split.text.sum, split.text.total)


def _mean(split: SplitFigures) -> str:
    return f"{split.lengths.sum / split.lengths.total:,.1f}" if split.lengths.total else "–"


def _percentile(split: SplitFigures, percent: int) -> str:
    return f"{split.lengths.percentile(percent):,}" if split.lengths.total else "–"
