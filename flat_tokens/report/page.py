"""The page of a dataset report. Only shares and bins are computed here, and nothing is read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.report.figures import PERCENTILES, Figures, Lengths, SplitFigures
from flat_tokens.report.page_tokens import commonest, longest, sequences
from tokenmill.html import numbers
from tokenmill.html.chart import histogram
from tokenmill.html.components import SERIES, escaped, folded, heads, pair, section, table
from tokenmill.html.page import page

MARK = "<!-- flat_tokens report -->"  # by which a later report knows that it may replace the file
LARGEST_BYTES_BAR = 16  # the last bar also counts longer tokens

SOURCE_FIGURES = {"bytes": "bytes", "train_tokens": "tokens in train", "validation_tokens": "in validation"}


def render(figures: Figures, name: str) -> str:
    """The whole page as text."""
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


def _trained(split: SplitFigures) -> str:
    """The number of trained tokens of a split with a loss mask."""
    count = split.facts["trained_tokens"]
    return "" if count is None else f"{count:,}"


def _comparison(figures: Figures) -> str:
    rows = [
        ["sequences", *(f"{split.seq_count:,}" for split in figures.splits)],
        ["tokens", *(f"{split.token_count:,}" for split in figures.splits)],
        [
            "share of all tokens",
            *(numbers.percent(split.token_count, _all_tokens(figures)) for split in figures.splits),
        ],
        *([["trained", *map(_trained, figures.splits)]] if any(map(_trained, figures.splits)) else []),
        ["mean tokens per sequence", *(_mean(split.lengths) for split in figures.splits)],
    ]
    for percent in PERCENTILES:
        label = "median" if percent == 50 else f"{percent}{'st' if percent == 1 else 'th'} percentile"
        rows.append([label, *(_percentile(split.lengths, percent) for split in figures.splits)])
    rows.append(["longest", *(_percentile(split.lengths, 100) for split in figures.splits)])
    if figures.entries is not None:
        rows.append(["bytes of text per token", *(_rate(split, figures) for split in figures.splits)])
    rows += [
        ["distinct IDs", *(f"{len(split.ids):,}" for split in figures.splits)],
        ["largest ID", *(f"{split.facts['max_token_id']:,}" for split in figures.splits)],
        ["on disk", *(numbers.storage(split.facts["disk_bytes"]) for split in figures.splits)],
        [
            "bytes on disk per token",
            *(numbers.ratio(split.facts["disk_bytes"], split.token_count) for split in figures.splits),
        ],
        ["compression", *(escaped(str(split.facts["compression"])) for split in figures.splits)],
    ]
    return section("Train and validation", table(["", *heads(figures.names)], rows), _sample_note(figures))


def _lengths(figures: Figures) -> str:
    edges = length_edges(
        max((int(split.lengths.values[-1]) for split in figures.splits if split.seq_count), default=1)
    )
    labels = [f"{edge:,}" if edge < 10_000 else numbers.short(edge) for edge in edges[:-1].tolist()]
    plots, counted = [], []
    binned = [split.lengths.binned(edges) for split in figures.splits]
    used = np.flatnonzero(sum(seqs for seqs, _ in binned))
    low, high = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    ranges = [numbers.span(int(edges[at]), int(edges[at + 1]) - 1) for at in range(low, high)]
    top = max((_largest_share(seqs) for seqs, _ in binned), default=1.0)
    for split, series, (seqs, tokens) in zip(figures.splits, SERIES, binned, strict=True):
        shares = seqs[low:high] / max(int(seqs.sum()), 1)
        tips = [
            f"{span} tokens: {count:,} sequences ({numbers.percent(count, int(seqs.sum()))}), "
            f"{numbers.percent(held, int(tokens.sum()))} of the tokens"
            for span, count, held in zip(
                ranges, seqs[low:high].tolist(), tokens[low:high].tolist(), strict=True
            )
        ]
        note = f"{numbers.many(split.seq_count, 'sequence')}{_highest_bar(seqs)}"
        step = max(-(-(high - low) // 9), 1)
        plots.append(histogram(series, split.name, note, shares.tolist(), top, labels[low:high], tips, step))
        counted.append((seqs[low:high].tolist(), tokens[low:high].tolist()))
    columns = ["tokens per sequence"]
    columns += [f"{head}: {what}" for head in heads(figures.names) for what in ("sequences", "tokens")]
    rows = [
        [span, *(f"{column[at]:,}" for both in counted for column in both)] for at, span in enumerate(ranges)
    ]
    return section(
        "Sequence lengths",
        pair(plots) + folded("The numbers", table(columns, rows)),
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
    facts = figures.facts
    rows: list[list[str]] = []
    of_first = " of the first part" if facts["parts"] else ""
    for title, group in (
        ("tokenizer", facts["tokenizer"]),
        (f"options{of_first}", facts["options"]),
        ("versions", facts["versions"]),
    ):
        rows += [[f"{title}: {escaped(str(key))}", _value(value)] for key, value in (group or {}).items()]
    sources = facts["sources"]
    listed = [
        [
            escaped(str(source.get("path", ""))),
            *(f"{source[name]:,}" if isinstance(source.get(name), int) else "" for name in SOURCE_FIGURES),
        ]
        for source in sources
    ]
    more = (
        f"<p class=more>and {facts['source_count'] - len(sources):,} more</p>"
        if facts["source_count"] > len(sources)
        else ""
    )
    made = table(["", ""], rows, "origin") if rows else "<p class=note>The dataset has no manifest.</p>"
    files = f"{table(['source', *SOURCE_FIGURES.values()], listed, 'origin')}{more}" if listed else ""
    return section("Provenance", made + files)


def _value(value: Any) -> str:
    """As a person writes it: None -> none; {"train": 3} -> train 3; 4294967296 -> 4,294,967,296."""
    if isinstance(value, dict):
        text = ", ".join(f"{key} {part}" for key, part in value.items()) or "none"
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:,}"
    else:
        text = (
            "none"
            if value is None
            else value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False)
        )
    return f'<span class="wrap">{escaped(text)}</span>'


def _sample_note(figures: Figures) -> str:
    said = []
    for split in figures.splits:
        if split.sampled_tokens < split.token_count:
            said.append(f"{split.sampled_tokens:,} of {split.token_count:,} tokens of {split.name}")
        if split.lengths.seq_count < split.seq_count:
            said.append(
                f"the lengths of {split.lengths.seq_count:,} of {split.seq_count:,} sequences of {split.name}"
            )
    if not said:
        return "All tokens and sequences were counted."
    return (
        f"Counted in an evenly spaced sample: {'; '.join(said)}. The numbers of sequences and tokens "
        "and the sizes are for the whole dataset."
    )


def length_edges(longest: int) -> npt.NDArray[np.int64]:
    """Edges of bins that grow by a half and a third in turn, 1, 2, 3, 4, 6, 8, 12 ..., until `longest` is
    inside."""
    edges = [1, 2, 3]
    while edges[-1] <= longest:
        edges.append(edges[-2] * 2)
    return np.array(edges, np.int64)


def _entry_bytes(
    split: SplitFigures, figures: Figures
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Bytes of each of split.ids, 0 for ids that no entry has, and how often it occurs; without special tokens, which
    stand for no text."""
    ordinary = np.array([id_ not in figures.special_ids for id_ in split.ids.tolist()], bool)
    entries = figures.entries or {}
    sizes = np.array([len(entries.get(id_, b"")) for id_ in split.ids[ordinary].tolist()], np.int64)
    return sizes, split.id_counts[ordinary]


def _text_bytes(split: SplitFigures, figures: Figures) -> tuple[int, int]:
    """Bytes of text of the sampled tokens, and how many tokens those are."""
    sizes, times = _entry_bytes(split, figures)
    return int((sizes * times).sum()), int(times.sum())


def _rate(split: SplitFigures, figures: Figures) -> str:
    return numbers.ratio(*_text_bytes(split, figures))


def _mean(lengths: Lengths) -> str:
    return f"{lengths.token_count / lengths.seq_count:,.1f}" if len(lengths.values) else "–"


def _percentile(lengths: Lengths, percent: int) -> str:
    return f"{lengths.percentile(percent):,}" if len(lengths.values) else "–"


def _highest_bar(counts: npt.NDArray[np.int64]) -> str:
    return f"; the highest bar is {numbers.percent(_largest_share(counts), 1)}" if counts.any() else ""


def _largest_share(counts: npt.NDArray[np.int64]) -> float:
    return float(counts.max() / counts.sum()) if counts.sum() else 1.0


def _all_tokens(figures: Figures) -> int:
    return sum(split.token_count for split in figures.splits)
