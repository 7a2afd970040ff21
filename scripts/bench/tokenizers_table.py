"""How fast is text encoded with the tokenizers of published models, beside gigatoken, tokenizers and tiktoken?

For each file and text, first all ids are compared with those of tokenizers over the whole text; where they differ,
ours is not timed and the run ends with status 1. Then each contender runs cold, in turns, as cold_runs.py has it. With
one thread a figure is text a second of processor time, with more of them a second by the wall. The ratio is to the
fastest peer that loads the file, whether its ids are right or not: a dagger says that the fastest peer's are not.
tokenizers and tiktoken are measured on the first documents (--slow-mb).

    python scripts/bench/tokenizer_files.py --to files --vocabularies ...
    python scripts/bench/tokenizers_table.py --files files/*.json --corpus en.txt.xz code.txt.xz multi.txt.xz \\
        words.txt.xz --chinese-from multi --threads 1 2 --memory-mb 120

`--chinese-from NAME` adds the Chinese documents of that text as one more, `zh`; --threads 2 says how two threads of
ours stand to one; --memory-mb takes one document of that size and says how much memory it needs beside the text.
--quick takes 2 MB of each text and 3 turns. What tokenizers gave is kept in data/bench/ids, by the content of file and
text, so that a second run need not wait for it. Peers are installed into .bench-venv. The short tables of the page are
written to data/bench/tokenizers_table.md. On a machine that others use, only figures of one run may be compared.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import harness
import peers
import texts
from cold_runs import Loaded

OURS, ORACLE = "tokenmill", "tokenizers"
SLOW = ("tokenizers", "tiktoken")
FAILED = float("inf")
IDS = harness.SAVED / "ids"
Cell = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--corpus", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--chinese-from", metavar="NAME")
    parser.add_argument("--peers", nargs="*", default=["gigatoken", "tokenizers", "tiktoken"], metavar="NAME")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--memory-mb", type=float, help="measure the memory of one document of this size")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--limit-mb", type=float, default=64)
    parser.add_argument(
        "--slow-mb", type=float, default=4, help="text for tokenizers and tiktoken (default 4)"
    )
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    for path in [*options.files, *options.corpus]:
        if not path.is_file():
            parser.error(f"{path}: no such file")
    if options.quick:
        options.turns, options.limit_mb, options.slow_mb = 3, 2, 1
    missing = peers.use()
    corpus = [texts.unpacked(path) for path in options.corpus]
    for path in list(corpus):
        if path.stem == options.chinese_from:
            corpus.append(texts.chinese(path))

    machine = harness.facts()
    described = [harness.describe(path, harness.read_text(path, options.limit_mb * 1e6)) for path in corpus]
    reports = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: stopped; the tables have the files until then"))
    try:
        for path in options.files:
            reports.append(measure(path, corpus, options))
    finally:
        notes = [note for report in reports for note in report.notes] + missing
        harness.save("tokenizers_table", machine, [row for r in reports for row in r.rows], described, notes)
        page = "\n\n".join(readme_tables(reports, [path.stem for path in corpus], options.threads))
        (harness.SAVED / "tokenizers_table.md").write_text(page + "\n")
        print(f"\n{page}")
    if any(report.wrong for report in reports):
        sys.exit("error: ids differ from those of tokenizers; see the notes")


@dataclass
class Report:
    """What came out for one file. rows: one for each text and thread count; memory, in bytes, or why there is none."""

    name: str
    byte_level: bool
    refused: str | None = None
    wrong: bool = False
    rows: list[harness.Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    memory: int | None = None


def measure(path: Path, corpus: Sequence[Path], options: argparse.Namespace) -> Report:
    """All of one file: every contender is loaded once for each thread count."""
    model = json.loads(path.read_text())["model"]
    report = Report(path.stem, not model.get("byte_fallback"))
    harness.progress(report.name)
    loaded = {name: Loaded(name, path, 1) for name in (OURS, *options.peers)}
    report.refused = loaded[OURS].refused
    for name, contender in list(loaded.items()):
        if contender.refused:
            report.notes.append(f"{path.stem}: {name} does not load it: `{contender.refused}`")
            del loaded[name]
    try:
        if options.memory_mb and OURS in loaded:
            ran = loaded[OURS].run("memory", corpus[0], options.memory_mb * 1e6)
            report.memory = ran.get("peak_bytes")
            if "failed" in ran:
                report.notes.append(f"{path.stem}: one document of {options.memory_mb} MB: {ran['failed']}")
        for text in corpus:
            right = same_ids(report, path, loaded, text, options)
            report.rows.append(one_thread(report, path, loaded, text, options, right))
            for threads in options.threads:
                if threads > 1 and right:
                    report.rows.append(more_threads(report, path, loaded[OURS], text, threads, options))
    finally:
        for contender in loaded.values():
            contender.close()
    return report


# -- ids


def same_ids(
    report: Report, path: Path, loaded: dict[str, Loaded], text: Path, options: argparse.Namespace
) -> bool:
    """Whether ours gives the ids of tokenizers over the whole text; a difference is noted with its place."""
    if OURS not in loaded:
        return False
    ours = loaded[OURS].run("digests", text, options.limit_mb * 1e6)
    expected = expected_digests(path, text, options.limit_mb * 1e6)
    if ours == expected:
        return True
    report.wrong = True
    why = ours.get("failed") or expected.get("failed")
    if why is None:
        pairs = enumerate(zip(ours["parts"], expected["parts"], strict=True))
        at = next(number for number, (one, other) in pairs if one != other)
        why = f"ids differ from those of tokenizers first in MiB {at} of the text"
    report.notes.append(f"{path.stem}, {text.stem}: not timed: {why}")
    return False


def expected_digests(path: Path, text: Path, limit_bytes: float) -> harness.Row:
    """Those of tokenizers, from data/bench/ids if it was asked before."""
    version = harness.package_version(ORACLE)
    content = hashlib.sha256(path.read_bytes() + harness.read_text(text, limit_bytes)).hexdigest()
    kept = IDS / f"{content[:32]}-{version}.json"
    if kept.exists():
        known: harness.Row = json.loads(kept.read_text())
        return known
    oracle = Loaded(ORACLE, path, os.cpu_count() or 1)
    found = {"failed": oracle.refused} if oracle.refused else oracle.run("digests", text, limit_bytes)
    oracle.close()
    if "failed" not in found:
        IDS.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found))
    return found


# -- time


def one_thread(
    report: Report,
    path: Path,
    loaded: dict[str, Loaded],
    text: Path,
    options: argparse.Namespace,
    right: bool,
) -> harness.Row:
    """MB of text a second of processor time of all that load the file, and whose ids are not those of tokenizers."""
    limits = {
        name: min(options.slow_mb, options.limit_mb) * 1e6 if name in SLOW else options.limit_mb * 1e6
        for name in loaded
    }
    names = [name for name in loaded if name != OURS or right]
    last: dict[str, harness.Row] = {}
    seconds = turns(
        {n: functools.partial(run, loaded[n], text, limits[n], "cpu", last) for n in names}, options
    )
    row: harness.Row = {
        "tokenizer": report.name,
        "text": text.stem,
        "threads": 1,
        "text_bytes": len(harness.read_text(text, options.limit_mb * 1e6)),
    }
    rates = {}
    for name in (OURS, *options.peers):
        runs = seconds.get(name)
        if runs:
            summary = harness.summary(runs, len(harness.read_text(text, limits[name])))
            rates[name] = summary["mb_per_s"]
            if name == OURS:
                row["spread"] = summary["spread"]
        row[name] = rates.get(name)
    report.notes += [
        f"{path.stem}, {text.stem}: {n}: {r['failed']}" for n, r in last.items() if "failed" in r
    ]
    unlike = []
    for name in rates:
        if name == ORACLE:
            continue
        expected = expected_digests(path, text, limits[name])
        if expected.get("digest") != last[name].get("digest"):
            unlike.append(name)
    beside = {name: rate for name, rate in rates.items() if name != OURS}
    fastest = max(beside, key=lambda name: beside[name], default=None)
    row["ratio"] = rates[OURS] / beside[fastest] if OURS in rates and fastest else None
    row["fastest peer"] = fastest
    row["other ids"] = ", ".join(unlike)
    row["of one thread"] = None
    return row


def more_threads(
    report: Report, path: Path, one: Loaded, text: Path, threads: int, options: argparse.Namespace
) -> harness.Row:
    """Ours by the wall, so many threads beside one."""
    several = Loaded(OURS, path, threads)
    last: dict[str, harness.Row] = {}
    limit = options.limit_mb * 1e6
    both = {"one": one, "several": several}
    seconds = turns({n: functools.partial(run, both[n], text, limit, "wall", last) for n in both}, options)
    several.close()
    if not all(seconds.values()):
        return {"tokenizer": report.name, "text": text.stem, "threads": threads}
    size = len(harness.read_text(text, limit))
    rates = {name: harness.summary(runs, size)["mb_per_s"] for name, runs in seconds.items()}
    return {
        "tokenizer": report.name,
        "text": text.stem,
        "threads": threads,
        "text_bytes": size,
        OURS: rates["several"],
        "of one thread": rates["several"] / rates["one"],
    }


def turns(contenders: dict[str, Callable[[], float]], options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of each, in turns; none for one whose runs fail."""
    seconds = harness.take_turns(contenders, options.turns)
    return {name: [each for each in runs if each < FAILED] for name, runs in seconds.items()}


def run(contender: Loaded, text: Path, limit_bytes: float, clock: str, last: dict[str, harness.Row]) -> float:
    """Seconds of one cold run, FAILED if it failed; what it said is left in `last`."""
    result = contender.run("time", text, limit_bytes)
    last[contender.name] = result
    return float(result.get(clock, FAILED))


# -- tables


def readme_tables(reports: Sequence[Report], names: Sequence[str], threads: Sequence[int]) -> Iterable[str]:
    """Markdown: speed beside the peers, two threads beside one, memory; each with its median and its worst."""
    measured = {(row["tokenizer"], row["text"], row["threads"]): row for r in reports for row in r.rows}

    def column(of: str, name: str, count: int) -> list[float]:
        counted = [measured.get((r.name, name, count), {}).get(of) for r in reports if r.byte_level]
        return [value for value in counted if value is not None]

    loads = [report for report in reports if report.refused is None]
    lines: list[Cell] = []
    for report in reports:
        cells = {name: cell(measured.get((report.name, name, 1), {})) for name in names}
        lines.append({"tokenizer": report.name + ("" if report.byte_level else " *")} | cells)
    for title, best in (("median", statistics.median), ("minimum", min)):
        ratios = {name: column("ratio", name, 1) for name in names}
        lines.append({"tokenizer": title} | {n: f"{best(v):.2f}x" if v else "" for n, v in ratios.items()})
    yield harness.table(lines)
    yield (
        f"{len(loads)} of {len(reports)} files load. MB a second of processor time, one thread, cold, and the"
        " ratio to the fastest peer that loads the file. † that peer gives other ids than tokenizers."
        " * not byte-level, not in median and minimum."
    )
    for count in threads:
        if count < 2:
            continue
        lines = []
        for report in loads:
            row = {name: measured.get((report.name, name, count), {}).get("of one thread") for name in names}
            lines.append({"tokenizer": report.name} | {n: f"{v:.2f}x" if v else "" for n, v in row.items()})
        for title, best in (("median", statistics.median), ("minimum", min)):
            shares = {name: column("of one thread", name, count) for name in names}
            lines.append(
                {"tokenizer": title} | {n: f"{best(v):.2f}x" if v else "" for n, v in shares.items()}
            )
        yield harness.table(lines)
        yield f"{count} threads beside one, by the wall."
    if any(report.memory for report in reports):
        sizes = [{"tokenizer": r.name, "peak_bytes": r.memory} for r in loads]
        yield harness.table(sizes)
        yield "The most memory for one long document, beside the text and the tokenizer."


def cell(row: harness.Row) -> str:
    """ "446 (2.90x)"; what peers reach alone where ours has no figure."""
    peer = row.get("fastest peer")
    dagger = "†" if peer and peer in row.get("other ids", "") else ""
    if row.get(OURS) is None:
        return f"- ({peer} {harness.cell('', row[peer])}{dagger})" if peer else "-"
    ratio = f" ({row['ratio']:.2f}x{dagger})" if row.get("ratio") is not None else ""
    return harness.cell("", row[OURS]) + ratio


if __name__ == "__main__":
    main()
