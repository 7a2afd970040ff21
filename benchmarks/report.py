"""Write the tables of docs/reference/benchmarks.md and README.md from benchmarks/results: `scripts/bench report`.

A table replaces the text between `<!-- table: NAME -->` and `<!-- /table -->`; TABLES has the names. Figures are
medians with (min-max). Spread is (max - min) / median. A row is left out, and named below its table, if the spread of
tokenmill or of the fastest competitor exceeds 30 %. All tables must come from one machine and one commit.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import MAX_SPREAD, OURS, RESULTS, ROOT, Row, is_ours

PAGES = (ROOT / "docs" / "reference" / "benchmarks.md", ROOT / "README.md")
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)
SLOW = ("tokenizers", "tiktoken")
README_TURNS = 7
LOAD_NOTE = (
    "tiktoken has its ranks in memory, quicktok loads a converted file, and splintr parses JSON in memory."
)
Column = Callable[[Row], float] | str
README_CELLS = (
    ("gpt2", "en"),
    ("gpt2", "multi"),
    ("llama-3.1", "en"),
    ("llama-3.1", "multi"),
    ("gpt-oss", "en"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument(
        "--pages", nargs="+", type=Path, default=PAGES, metavar="FILE", help="Markdown files to update"
    )
    options = parser.parse_args()
    results = {path.stem: Result.read(path) for path in sorted(options.results.glob("*.json"))}
    if len(runs := {(r.facts["cpu"], r.facts["build"]) for r in results.values()}) > 1:
        sys.exit(f"error: the results come from different machines or commits: {sorted(runs)}")

    def table(found: re.Match[str]) -> str:
        needs, make = TABLES[found[2]]
        if needs not in results:
            return found[0]
        return f"{found[1]}{make(results[needs], results)}\n{found[3]}"

    for page in options.pages:
        if page.exists():
            page.write_text(MARKED.sub(table, page.read_text(encoding="utf-8")), encoding="utf-8")
            print(f"wrote the tables of {page.name}")


@dataclass(frozen=True)
class Result:
    """The results of a table: `content` of its JSON file and the runs of its CSV file."""

    content: Row
    runs: list[Row]

    @staticmethod
    def read(path: Path) -> Result:
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            runs = [{name: number(value) for name, value in row.items()} for row in csv.DictReader(file)]
        return Result(json.loads(path.read_text(encoding="utf-8")), runs)

    @property
    def facts(self) -> Row:
        facts: Row = self.content["facts"]
        return facts

    def groups(self, *keys: str) -> dict[tuple[str, ...], list[Row]]:
        """Group runs by the values of columns, in the order of the file."""
        found: dict[tuple[str, ...], list[Row]] = {}
        for row in self.runs:
            found.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
        return found


@dataclass(frozen=True)
class Figure:
    """The values of one engine in one cell."""

    engine: str
    values: list[float]
    wrong_ids: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        return (max(self.values) - min(self.values)) / self.median

    def __str__(self) -> str:
        """154 (150-159)"""
        low, high = short(min(self.values)), short(max(self.values))
        return f"{short(self.median)} ({low}\N{EN DASH}{high})"

    @property
    def name(self) -> str:
        return self.engine + ("†" if self.wrong_ids else "")


def figures(runs: Sequence[Row], value: Callable[[Row], float]) -> dict[str, Figure]:
    engines = dict.fromkeys(row["engine"] for row in runs)
    chosen = {engine: [row for row in runs if row["engine"] == engine] for engine in engines}
    return {
        engine: Figure(engine, list(map(value, rows)), any(row.get("ids") == "differ" for row in rows))
        for engine, rows in chosen.items()
    }


def competitors(cell: dict[str, Figure]) -> list[Figure]:
    return [figure for name, figure in cell.items() if not is_ours(name)]


# -- encoding


def rate(row: Row) -> float:
    """Return MB of text per second: of processor time for one thread, of wall clock for several."""
    return float(row["text_bytes"] / 1e6 / (row["cold_cpu_s"] if row["threads"] == 1 else row["cold_s"]))


def wall_rate(row: Row) -> float:
    return float(row["text_bytes"] / 1e6 / row["cold_s"])


@dataclass(frozen=True)
class Cell:
    """A configuration on a text, with the figures of all engines."""

    configuration: str
    text: str
    runs: list[Row]
    figures: dict[str, Figure]

    @property
    def fastest(self) -> Figure:
        return max(competitors(self.figures), key=lambda figure: figure.median)

    @property
    def ratio(self) -> float:
        return self.figures[OURS].median / self.fastest.median

    @property
    def only_slow(self) -> bool:
        return all(figure.engine in SLOW for figure in competitors(self.figures))

    @property
    def noisy(self) -> bool:
        return max(self.figures[OURS].spread, self.fastest.spread) > MAX_SPREAD


def cells(result: Result, threads: int) -> list[Cell]:
    return [
        Cell(configuration, text, runs, figures(runs, rate))
        for (configuration, text, count), runs in result.groups("configuration", "text", "threads").items()
        if int(count) == threads and {OURS} < {row["engine"] for row in runs}
    ]


HEAD = [
    "tokenizer",
    "vocabulary",
    "text",
    "tokenmill, MB/s",
    "by wall",
    "fastest competitor",
    "its MB/s",
    "by wall",
]


def encoding(result: Result) -> str:
    """Return each cell with the fastest competitor, the medians per text, and the rows that are listed separately."""
    measured = cells(result, 1)
    kept = [cell for cell in measured if not cell.noisy]
    fast = [cell for cell in kept if not cell.only_slow]
    slow = [cell for cell in kept if cell.only_slow]
    parts = [table([*HEAD, "ratio"], [encoding_row(result, cell) for cell in fast])]
    for text in dict.fromkeys(cell.text for cell in fast):
        ratios = [cell.ratio for cell in fast if cell.text == text]
        parts.append(f"Median ratio on {text}: {statistics.median(ratios):.2f}x ({len(ratios)} rows).")
    sizes: dict[str, list[str]] = {}
    for row in result.runs:
        engines = sizes.setdefault(f"{row['text_bytes'] / 1e6:.1f}", [])
        engines += [] if row["engine"] in engines else [row["engine"]]
    parts.append("; ".join(f"{size} MB of text: {', '.join(names)}" for size, names in sizes.items()) + ".")
    if slow:
        parts.append(f"Only {' and '.join(SLOW)} load these files, so they are not in the medians:")
        parts.append(table([*HEAD, "ratio"], [encoding_row(result, cell) for cell in slow]))
    if dropped := [f"{cell.configuration} on {cell.text}" for cell in measured if cell.noisy]:
        parts.append(f"Left out for a spread above {MAX_SPREAD:.0%}: {'; '.join(dropped)}.")
    return "\n\n".join(parts)


def encoding_row(result: Result, cell: Cell) -> list[str]:
    title = next(each for each in result.content["configurations"] if each["name"] == cell.configuration)
    ours, fastest, wall = cell.figures[OURS], cell.fastest, figures(cell.runs, wall_rate)
    return [
        title["title"],
        f"{title['vocabulary']} ({title['origin']})",
        cell.text,
        str(ours),
        short(wall[OURS].median),
        fastest.name,
        str(fastest),
        short(wall[fastest.engine].median),
        f"{cell.ratio:.2f}x",
    ]


def all_engines(result: Result) -> str:
    """Return the MB/s of every engine with one thread."""
    measured = cells(result, 1)
    engines = list(dict.fromkeys(name for cell in measured for name in cell.figures))
    rows = []
    for cell in measured:
        found = [cell.figures.get(name) for name in engines]
        shown = [figure_or_dash(figure) for figure in found]
        rows.append([cell.configuration, cell.text, *shown])
    failed = result.content["failed"]
    refused = [
        f"- {name}: {engine}: {reason[:120]}"
        for name, why in failed.items()
        for engine, reason in why.items()
    ]
    head = ["configuration", "text", *engines]
    return "\n\n".join(
        [table(head, rows), "Files that an engine does not load:", "\n".join(refused) or "- none"]
    )


def figure_or_dash(figure: Figure | None) -> str:
    if figure is None:
        return "\N{EN DASH}"
    noisy = "~" if figure.spread > MAX_SPREAD else ""
    return f"{noisy}{short(figure.median)}{'†' if figure.wrong_ids else ''}"


def load_times(result: Result) -> str:
    """Return the milliseconds to load a file and of the first call, over all runs with one thread."""
    runs = [row for row in result.runs if row["threads"] == 1]
    engines = list(dict.fromkeys(row["engine"] for row in runs))
    rows = []
    for name in dict.fromkeys(row["configuration"] for row in runs):
        here = [row for row in runs if row["configuration"] == name]
        loads = figures(here, lambda row: float(1000 * row["load_s"]))
        firsts = figures(here, lambda row: float(1000 * row["first_call_s"]))
        shown = [
            f"{short(loads[e].median)} / {short(firsts[e].median)}" if e in loads else "\N{EN DASH}"
            for e in engines
        ]
        rows.append([name, *shown])
    return table(["load / first call, ms", *engines], rows) + f"\n\n{LOAD_NOTE}"


# -- training, conversion, loading


def contest(
    groups: dict[tuple[str, ...], list[Row]],
    heads: Sequence[str],
    value: tuple[str, Callable[[Row], float], bool],
    others: Sequence[tuple[str, Column]],
) -> str:
    """Return one line per group and engine, best first, with the ratio to tokenmill and the fastest competitor in bold.

    A group is left out as a whole if tokenmill or its fastest competitor is noisy, so no fast competitor is hidden.
    value: heading, function and whether more is better. others: columns of medians, or of a text column.
    """
    unit, of, more_is_better = value
    lines, dropped = [], []
    for key, runs in groups.items():
        cell = figures(runs, of)
        ranked = sorted(cell.values(), key=lambda figure: figure.median, reverse=more_is_better)
        fastest = next(figure for figure in ranked if not is_ours(figure.engine))
        if max(cell[OURS].spread, fastest.spread) > MAX_SPREAD:
            dropped.append(f"{' '.join(key)} (tokenmill or {fastest.engine})")
            continue
        for figure in ranked:
            if figure.spread > MAX_SPREAD:
                dropped.append(" ".join((*key, figure.engine)))
                continue
            here = [row for row in runs if row["engine"] == figure.engine]
            ratio = cell[OURS].median / figure.median
            name = f"**{figure.name}**" if figure is fastest else figure.name
            extra = [
                str(here[0][column])
                if isinstance(column, str)
                else short(statistics.median(map(column, here)))
                for _, column in others
            ]
            compared = f"{ratio if more_is_better else 1 / ratio:.2f}x"
            lines.append([*key, name, str(figure), compared, *extra, str(len(here))])
    head = [*heads, "engine", unit, "tokenmill is faster by", *(name for name, _ in others), "turns"]
    note = f"\n\nLeft out for a spread above {MAX_SPREAD:.0%}: {'; '.join(dropped)}." if dropped else ""
    return table(head, lines) + note


def training(result: Result) -> str:
    columns: list[tuple[str, Column]] = [
        ("CPU, s", lambda row: float(row["train_cpu_s"])),
        ("peak, MB", lambda row: float(row["peak_bytes"] / 1e6)),
        ("merges", "merges"),
    ]
    return contest(
        result.groups("text"), ["text"], ("seconds", lambda row: float(row["train_s"]), False), columns
    )


def conversion(result: Result) -> str:
    seconds = ("seconds", lambda row: float(row["process_s"]), False)
    return contest(result.groups("configuration"), ["tokenizer"], seconds, [])


def loading(result: Result) -> str:
    speed = ("M tokens/s", lambda row: float(row["tokens"] / row["load_cpu_s"] / 1e6), True)
    first = ("first batch, ms", lambda row: float(1000 * row["first_batch_s"]))
    return contest({(): result.runs}, [], speed, [first])


def driver(result: Result) -> str:
    """Return the processor time of the parent: fixed, and per GB in addition."""
    rows = []
    for (zarr_format,), runs in result.groups("zarr_format").items():
        small, large = ([row for row in runs if (row["files"] > 1) == many] for many in (False, True))
        fixed = statistics.median(row["parent_cpu_s"] for row in small)
        gigabytes = (large[0]["text_bytes"] - small[0]["text_bytes"]) / 1e9
        parent = Figure("", [(row["parent_cpu_s"] - fixed) / gigabytes for row in large])
        workers = Figure("", [row["workers_cpu_s"] / gigabytes for row in large])
        total = Figure("", [row["process_s"] for row in large])
        rows.append([zarr_format, f"{gigabytes:.1f}", str(total), short(fixed), str(parent), str(workers)])
    head = [
        "Zarr format",
        "text, GB",
        "seconds",
        "parent CPU, fixed, s",
        "parent CPU, s/GB",
        "workers' CPU, s/GB",
    ]
    return table(head, rows)


# -- the rest


def machine(results: dict[str, Result]) -> str:
    """Return the facts that all tables share, and the load at the start of each."""
    facts = next(iter(results.values())).facts
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    lines = [f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB; {facts['system']}"]
    lines += [f"Python {facts['python']}; commit {facts['build']}; {facts['date']}", versions]
    loads = (f"{name} {result.facts['load_at_start']}" for name, result in results.items())
    lines.append(f"load average at the start: {', '.join(loads)}")
    lines += [f"not installed: {name}: {reason}" for name, reason in facts["not_installed"].items()]
    return "\n".join(f"- {line}" for line in lines)


TEXTS = {"en": "English", "multi": "several languages"}  # README's words for the texts


def readme(results: dict[str, Result]) -> str:
    """Return a few rows, each from at least README_TURNS turns."""
    rows = []
    if "training" in results:
        for (text,), runs in results["training"].groups("text").items():
            cell = figures(runs, lambda row: float(row["train_s"]))
            size = runs[0]["text_bytes"] / 1e6
            fastest = min(competitors(cell), key=lambda figure: figure.median)
            task = f"train {runs[0]['entries']:,.0f} entries on {size:.0f} MB, {TEXTS[text]}, s"
            rows.append(readme_row(task, cell, fastest))
    for one in cells(results["encoding"], 1):
        if (one.configuration, one.text) in README_CELLS:
            title = encoding_row(results["encoding"], one)[0]
            rows.append(readme_row(f"encode with {title}, {TEXTS[one.text]}, MB/s", one.figures, one.fastest))
    shown = [row for row in rows if row]
    return table(["", "tokenmill", "fastest competitor", "tokenizers 0.23"], shown)


def readme_row(task: str, cell: dict[str, Figure], fastest: Figure) -> list[str]:
    ours, oracle = cell[OURS], cell.get("tokenizers")
    if (
        min(len(ours.values), len(fastest.values)) < README_TURNS
        or max(ours.spread, fastest.spread) > MAX_SPREAD
    ):
        return []
    last = short(oracle.median) if oracle else ""
    return [task, str(ours), f"{fastest} {fastest.name}", last]


TABLES: dict[str, tuple[str, Callable[[Result, dict[str, Result]], str]]] = {
    "machine": ("encoding", lambda result, results: machine(results)),
    "readme": ("encoding", lambda result, results: readme(results)),
    "encoding": ("encoding", lambda result, results: encoding(result)),
    "encoding-engines": ("encoding", lambda result, results: all_engines(result)),
    "first-call": ("encoding", lambda result, results: load_times(result)),
    "training": ("training", lambda result, results: training(result)),
    "conversion": ("conversion", lambda result, results: conversion(result)),
    "driver": ("driver", lambda result, results: driver(result)),
    "batches": ("loading", lambda result, results: loading(result)),
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def short(value: float) -> str:
    """1234.5 -> 1,234; 154.3 -> 154; 12.34 -> 12.3; 1.234 -> 1.23; 0.01234 -> 0.012"""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def number(value: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return value


if __name__ == "__main__":
    main()
