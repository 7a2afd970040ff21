"""The page of a dataset report. It computes shares and bins, and reads nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.report.figures import PERCENTILES, Figures, SplitFigures
from flat_tokens.report.page_tokens import commonest, longest, sequences
from tokenmill.html import numbers
from tokenmill.html.chart import histogram
from tokenmill.html.components import SERIES, escaped, folded, heads, pair, section, table
from tokenmill.html.page import page

MARK = "<!-- flat_tokens report -->"  # files with this mark may be replaced
LARGEST_BYTES_BAR = 16  # the last bar also counts longer tokens

SOURCE_FIGURES = {"bytes": "bytes", "train_tokens": "tokens in train", "validation_tokens": "in validation"}


def render(figures: Figures, name: str) -> str:
    """Return the page."""
    sections = [
        _comparison(figures),
        _lengths(figures),
        _bytes_per_token(figures),
        commonest(figures),
        longest(figures),
        sequences(figures),
        _origin(figures),
    ]
    where = f"flat-tokens dataset, Zarr format {figures.facts['zarr_format']}, {escaped(str(figures.facts['path']))}"
    return page(
        name, where, _cards(figures), sections, kind="dataset report", made_by="tokenmill report", mark=MARK
    )


def _cards(figures: Figures) -> list[tuple[str, str]]:
    tokens, seqs = _all_tokens(figures), sum(split.seq_count for split in figures.splits)
    cards = [
        (numbers.short(tokens), "token" if tokens == 1 else "tokens"),
        (numbers.short(seqs), "sequence" if seqs == 1 else "sequences"),
        (numbers.storage(sum(split.facts["disk_bytes"] for split in figures.splits)), "on disk"),
    ]
    if figures.entries is not None:
        cards.append((f"{len(figures.entries):,}", "entries in the vocabulary"))
        text, counted = _text_bytes(figures.splits[0], figures)
        if counted:
            cards.append((f"{text / counted:.2f}", "bytes of text per token"))
    return cards


def _comparison(figures: Figures) -> str:
    splits = figures.splits

    def row(label: str, of: Callable[[SplitFigures], str]) -> list[str]:
        return [label, *map(of, splits)]

    def length(percent: int) -> Callable[[SplitFigures], str]:
        return lambda split: f"{split.lengths.percentile(percent):,}" if split.lengths.total else "–"

    all_tokens = _all_tokens(figures)
    rows = [
        row("sequences", lambda split: f"{split.seq_count:,}"),
        row("tokens", lambda split: f"{split.token_count:,}"),
        row("share of all tokens", lambda split: numbers.percent(split.token_count, all_tokens)),
    ]
    if any(split.facts["trained_tokens"] is not None for split in splits):
        rows.append(row("trained", lambda split: f"{split.facts['trained_tokens'] or 0:,}"))
    rows.append(row("mean tokens per sequence", _mean))
    for percent in PERCENTILES:
        label = "median" if percent == 50 else f"{percent}{'st' if percent == 1 else 'th'} percentile"
        rows.append(row(label, length(percent)))
    rows.append(row("longest", length(100)))
    if figures.entries is not None:
        rows.append(row("bytes of text per token", lambda split: _rate(split, figures)))
    rows += [
        row("distinct IDs", lambda split: f"{len(split.ids.values):,}"),
        row("largest ID", lambda split: f"{split.facts['max_token_id']:,}"),
        row("on disk", lambda split: numbers.storage(split.facts["disk_bytes"])),
        row(
            "bytes on disk per token",
            lambda split: numbers.ratio(split.facts["disk_bytes"], split.token_count),
        ),
        row("compression", lambda split: escaped(str(split.facts["compression"]))),
    ]
    return section("Train and validation", table(["", *heads(figures.names)], rows), _sample_note(figures))


def _lengths(figures: Figures) -> str:
    edges = length_edges(
        max((split.lengths.values[-1] for split in figures.splits if split.seq_count), default=1)
    )
    binned = []
    for split in figures.splits:
        bins = np.searchsorted(edges, split.lengths.values, "right") - 1
        seqs, tokens = (
            np.bincount(bins, weights, len(edges) - 1).astype(np.int64)
            for weights in (split.lengths.counts, split.lengths.counts * split.lengths.values)
        )
        binned.append((seqs, tokens))
    used = np.flatnonzero(sum(seqs for seqs, _ in binned))
    low, high = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    ranges = [numbers.span(int(edges[at]), int(edges[at + 1]) - 1) for at in range(low, high)]
    labels = [f"{edge:,}" if edge < 10_000 else numbers.short(edge) for edge in edges[low:high].tolist()]
    top = max((_largest_share(seqs) for seqs, _ in binned), default=1.0)
    plots, columns = [], []
    for split, series, (seqs, tokens) in zip(figures.splits, SERIES, binned, strict=True):
        columns += [seqs[low:high].tolist(), tokens[low:high].tolist()]
        tips = [
            f"{span} tokens: {count:,} sequences ({numbers.percent(count, split.lengths.total)}), "
            f"{numbers.percent(held, split.lengths.sum)} of the tokens"
            for span, count, held in zip(ranges, *columns[-2:], strict=True)
        ]
        note = f"{numbers.many(split.seq_count, 'sequence')}{_highest_bar(seqs)}"
        shares = (seqs[low:high] / max(split.lengths.total, 1)).tolist()
        step = max(-(-(high - low) // 9), 1)
        plots.append(histogram(series, split.name, note, shares, top, labels, tips, step))
    names = [f"{head}: {what}" for head in heads(figures.names) for what in ("sequences", "tokens")]
    rows = [
        [span, *(f"{count:,}" for count in counts)] for span, *counts in zip(ranges, *columns, strict=True)
    ]
    return section(
        "Sequence lengths",
        pair(plots) + folded("The numbers", table(["tokens per sequence", *names], rows)),
        "Tokens per sequence, in bins that grow by a third to a half. The height is the share of the split's "
        "sequences, on the same scale for both splits.",
    )


def _bytes_per_token(figures: Figures) -> str:
    if figures.entries is None:
        return ""
    plots, columns = [], []
    for split in figures.splits:
        sizes, times = _entry_bytes(split, figures)
        counts = np.bincount(np.minimum(sizes, LARGEST_BYTES_BAR), times, LARGEST_BYTES_BAR + 1)[1:]
        columns.append(counts.astype(np.int64))
    labels = [str(size) for size in range(1, LARGEST_BYTES_BAR)] + [f"{LARGEST_BYTES_BAR}+"]
    top = max(_largest_share(column) for column in columns)
    for split, series, column in zip(figures.splits, SERIES, columns, strict=True):
        total = max(int(column.sum()), 1)
        tips = [
            f"{label} byte{'s' if label != '1' else ''}: {numbers.percent(count, total)} of the tokens"
            for label, count in zip(labels, column.tolist(), strict=True)
        ]
        note = f"{_rate(split, figures)} on average{_highest_bar(column)}" if column.any() else "no tokens"
        plots.append(histogram(series, split.name, note, (column / total).tolist(), top, labels, tips, 1))
    rows = [
        [label, *(numbers.percent(int(column[at]), int(column.sum())) for column in columns)]
        for at, label in enumerate(labels)
    ]
    return section(
        "Bytes per token",
        pair(plots) + folded("The numbers", table(["bytes", *heads(figures.names)], rows)),
        "Bytes of text per token. The height is the share of the split's tokens, without special tokens.",
    )


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
        if split.ids.total < split.token_count:
            said.append(f"{split.ids.total:,} of {split.token_count:,} tokens of {split.name}")
        if split.lengths.total < split.seq_count:
            said.append(
                f"the lengths of {split.lengths.total:,} of {split.seq_count:,} sequences of {split.name}"
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


def _entry_bytes(
    split: SplitFigures, figures: Figures
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes of each ID of the sample, 0 for an unknown one, and its occurrences. Special tokens are left
    out, because they are not text."""
    ids, entries = split.ids.values.tolist(), figures.entries or {}
    ordinary = np.array([id_ not in figures.special_ids for id_ in ids], bool)
    sizes = np.array([len(entries.get(id_, b"")) for id_ in ids], np.int64)
    return sizes[ordinary], split.ids.counts[ordinary]


def _text_bytes(split: SplitFigures, figures: Figures) -> tuple[int, int]:
    """Return the bytes of text of the sampled tokens, and the number of these tokens."""
    sizes, times = _entry_bytes(split, figures)
    return int((sizes * times).sum()), int(times.sum())


def _rate(split: SplitFigures, figures: Figures) -> str:
    return numbers.ratio(*_text_bytes(split, figures))


def _mean(split: SplitFigures) -> str:
    return f"{split.lengths.sum / split.lengths.total:,.1f}" if split.lengths.total else "–"


def _highest_bar(counts: npt.NDArray[np.int64]) -> str:
    return f"; the highest bar is {numbers.percent(_largest_share(counts), 1)}" if counts.any() else ""


def _largest_share(counts: npt.NDArray[np.int64]) -> float:
    return float(counts.max() / counts.sum()) if counts.sum() else 1.0


def _all_tokens(figures: Figures) -> int:
    return sum(split.token_count for split in figures.splits)
