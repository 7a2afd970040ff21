"""The page of a dataset report. It computes shares and bins, and reads nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flat_tokens.format import SPLITS
from flat_tokens.report.figures import Figures, Shown, SplitFigures
from flat_tokens.statistics import value_text
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
from tokenmill.inputs.sizes import counted

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
    all_tokens = figures.sum("token_count")

    def columns(split: SplitFigures) -> dict[str, str]:
        facts, lengths = split.facts, split.lengths
        found = {
            "sequences": f"{facts['seq_count']:,}",
            "tokens": f"{facts['token_count']:,}",
            "share of all tokens": numbers.percent(facts["token_count"], all_tokens),
        }
        if any(each.facts["trained_tokens"] is not None for each in figures.splits):
            found["trained"] = f"{facts['trained_tokens'] or 0:,}"
        found["mean tokens per sequence"] = f"{lengths.sum / lengths.total:,.1f}" if lengths.total else "–"
        for percent, label in PERCENTILES.items():
            found[label] = f"{lengths.percentile(percent):,}" if lengths.total else "–"
        if figures.entries is not None:
            found["bytes of text per token"] = _rate(split)
        return found | {
            "distinct IDs": f"{len(split.ids.values):,}",
            "largest ID": f"{facts['max_token_id']:,}",
            "on disk": numbers.storage(facts["disk_bytes"]),
            "bytes on disk per token": numbers.ratio(facts["disk_bytes"], facts["token_count"]),
            "compression": escaped(str(facts["compression"])),
        }

    splits = [columns(split) for split in figures.splits]
    rows = [[label, *(split[label] for split in splits)] for label in splits[0]]
    return section("Train and validation", table(["", *heads(SPLITS)], rows), _sample_note(figures))


def _lengths(figures: Figures) -> str:
    longest = max((split.lengths.values[-1] for split in figures.splits if split.lengths.total), default=1)
    edges = length_edges(longest)
    seqs: list[Counted] = []
    tokens: list[Counted] = []
    for split in figures.splits:
        lengths, counts = split.lengths.values, split.lengths.counts
        for found, weights in ((seqs, counts), (tokens, counts * lengths)):
            found.append(np.histogram(lengths, edges, weights=weights)[0].astype(np.int64))
    used = np.flatnonzero(sum(seqs))
    shown = slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 1)
    seqs, tokens = ([counts[shown] for counts in each] for each in (seqs, tokens))
    lows, highs = edges[:-1][shown].tolist(), (edges[1:] - 1)[shown].tolist()
    spans = [
        f"{low:,}" if low == high else f"{low:,} to {high:,}" for low, high in zip(lows, highs, strict=True)
    ]
    tips = [
        [
            f"{span} tokens: {count:,} sequences ({numbers.percent(count, split.lengths.total)}), "
            f"{numbers.percent(held, split.lengths.sum)} of the tokens"
            for span, count, held in zip(spans, *(each.tolist() for each in both), strict=True)
        ]
        for split, *both in zip(figures.splits, seqs, tokens, strict=True)
    ]
    columns = {
        f"{head}: {what}": [f"{count:,}" for count in counts.tolist()]
        for head, *both in zip(heads(SPLITS), seqs, tokens, strict=True)
        for what, counts in zip(("sequences", "tokens"), both, strict=True)
    }
    return section(
        "Sequence lengths",
        _plots(
            figures,
            seqs,
            [counted(split.facts["seq_count"], "sequence") for split in figures.splits],
            [f"{low:,}" if low < 10_000 else numbers.short(low) for low in lows],
            tips,
        )
        + _folded({"tokens per sequence": spans} | columns),
        "Tokens per sequence, in bins that grow by a third to a half. The height is the share of the split's "
        "sequences, on the same scale for both splits.",
    )


def _bytes_per_token(figures: Figures) -> str:
    if figures.entries is None:
        return ""
    labels = [*map(str, range(1, LARGEST_BYTES_BAR)), f"{LARGEST_BYTES_BAR}+"]
    columns, shares, tips, notes = [], [], [], []
    for split in figures.splits:
        sizes = np.minimum(split.text.values, LARGEST_BYTES_BAR)
        columns.append(np.bincount(sizes, split.text.counts, LARGEST_BYTES_BAR + 1)[1:].astype(np.int64))
        shares.append([numbers.percent(int(count), int(columns[-1].sum())) for count in columns[-1]])
        texts = [f"{label} byte{'s' if label != '1' else ''}: " for label in labels]
        tips.append([f"{text}{share} of the tokens" for text, share in zip(texts, shares[-1], strict=True)])
        notes.append(f"{_rate(split)} on average" if columns[-1].any() else "no tokens")
    return section(
        "Bytes per token",
        _plots(figures, columns, notes, labels, tips)
        + _folded({"bytes": labels} | dict(zip(heads(SPLITS), shares, strict=True))),
        "Bytes of text per token. The height is the share of the split's tokens, without special tokens.",
    )


def _folded(columns: dict[str, list[str]]) -> str:
    return folded("The numbers", table(list(columns), zip(*columns.values(), strict=True)))


def _plots(
    figures: Figures,
    columns: Sequence[Counted],
    notes: Sequence[str],
    labels: Sequence[str],
    tips: Sequence[Sequence[str]],
) -> str:
    """Return a histogram per split, on one scale. columns: the counts of each split."""
    shares = [column / max(column.sum(), 1) for column in columns]
    top = max(float(share.max()) or 1.0 for share in shares)
    step = max(
        -(-len(labels) * max(map(len, labels), default=0) // 48), 1
    )  # about 48 characters fit below the bars
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
    facts = [counted(shown.token_count, "token")]
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
        [f"{title}: {escaped(str(key))}", f'<span class="wrap">{escaped(value_text(key, value))}</span>']
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
