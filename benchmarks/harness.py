"""Shared by all benchmarks: processes, alternation, samples of text, and the facts recorded with each result.

Every run is a new process, so it starts with empty caches and has separate memory and processor time.
Contenders alternate (A B C A B C), so a slow moment of the machine affects all of them. A run is one line of
results/<table>.csv; results/<table>.json records the machine, the commit, the versions and the texts.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import json
import lzma
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import environments

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SEPARATOR = b"<|endoftext|>"
OURS = "tokenmill"
MAX_SPREAD = 0.30
CHILD_SECONDS = 900
Row = dict[str, Any]

# Slow contenders get fewer turns: (seconds of one run, turns).
FEWER_TURNS = ((30.0, 1), (8.0, 2))
QUALIFYING_TURNS = 3


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark."""
    result = argparse.ArgumentParser(description=description.partition("\n")[0])
    folders = {
        "--texts": "*.txt or *.txt.xz, documents separated by <|endoftext|>",
        "--vocabularies": "rank files and tokenizer.json files",
        "--scratch": "for unpacked texts and datasets, on a real disk",
    }
    for name, meaning in folders.items():
        result.add_argument(name, type=Path, required=True, metavar="FOLDER", help=meaning)
    result.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FOLDER", help="(default: benchmarks/results)"
    )
    result.add_argument("--turns", type=int, default=7, help="runs per contender (default: 7)")
    result.add_argument("--only", nargs="+", metavar="ENGINE", help="measure these contenders only")
    result.add_argument(
        "--quick", action="store_true", help="little text and 2 turns, to try the benchmark out"
    )
    return result


def parse(options: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parsed = options.parse_args(arguments)
    for folder in (parsed.texts, parsed.vocabularies):
        if not folder.is_dir():
            options.error(f"{folder}: no such folder")
    parsed.scratch.mkdir(parents=True, exist_ok=True)
    parsed.scratch = parsed.scratch.resolve()
    if parsed.quick:
        parsed.turns = 2
    return parsed


# -- runs


def run_child(
    job: Row, environment: str = environments.MAIN, threads: int = 1, script: str = "contenders.py"
) -> Row:
    """Run a script of this folder with `job` in a new process pinned to `threads` cores; return its answer.

    {"failed": reason} if the contender raised, crashed or ran longer than CHILD_SECONDS. "process_s" is the duration
    of the whole process.
    """
    variables = os.environ | {
        "RAYON_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
    }
    command = [str(environments.python(environment)), str(Path(__file__).with_name(script))]
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, json.dumps(job | {"threads": threads}, default=str)],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=CHILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"ran longer than {CHILD_SECONDS} s"}
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        return {"failed": f"the process ended with status {done.returncode}"}
    answer: Row = json.loads(done.stdout.splitlines()[-1])
    return answer | {"process_s": seconds}


def take_turns(
    contenders: Mapping[str, Callable[[], Row]], turns: int, key: str, label: str
) -> tuple[list[Row], dict[str, str]]:
    """Run the contenders in turn and return all runs, and the reason for each contender that failed.

    key: the column with the seconds that are compared, of the same amount of work; with "per_mb" if amounts differ.
    A contender that is slower than half the speed of the fastest competitor stops after QUALIFYING_TURNS turns.
    """
    runs: list[Row] = []
    failed: dict[str, str] = {}
    for turn in range(turns):
        medians = {name: median for name in contenders if (median := median_of(runs, name, key)) is not None}
        best = min((median for name, median in medians.items() if not is_ours(name)), default=0.0)
        for name, run in contenders.items():
            slow = not is_ours(name) and turn >= QUALIFYING_TURNS and medians.get(name, 0.0) > 2 * best
            slowest = max((row["process_s"] for row in runs if row["engine"] == name), default=0.0)
            if name in failed or slow or any(slowest > s and turn >= limit for s, limit in FEWER_TURNS):
                continue
            row = run()
            if "failed" in row:
                failed[name] = row["failed"]
                progress(f"{label}  {name}: {row['failed']}")
                continue
            runs.append({"engine": name, "turn": turn + 1} | row)
            progress(f"{label}  turn {turn + 1}/{turns}  {name}  {row[key]:.4g}")
    return [row for row in runs if row["engine"] not in failed], failed


def measure(
    contenders: Mapping[str, Callable[[], Row]], turns: int, key: str, label: str
) -> tuple[list[Row], dict[str, str]]:
    """`take_turns`, repeated once if the spread of our runs or of the fastest competitor exceeds MAX_SPREAD."""
    runs, failed = take_turns(contenders, turns, key, label)
    if (
        turns >= QUALIFYING_TURNS
        and max(spread_of(runs, name, key) for name in leaders(runs, key)) > MAX_SPREAD
    ):
        progress(f"{label}  spread above {MAX_SPREAD:.0%}: measured again")
        remaining = {name: run for name, run in contenders.items() if name not in failed}
        runs, again = take_turns(remaining, turns, key, label)
        failed |= again
    return runs, failed


def is_ours(engine: str) -> bool:
    """Whether an engine is tokenmill, such as "tokenmill, zstd"."""
    return engine.partition(",")[0] == OURS


def values_of(runs: Sequence[Row], engine: str, key: str) -> list[float]:
    return [row[key] for row in runs if row["engine"] == engine]


def median_of(runs: Sequence[Row], engine: str, key: str) -> float | None:
    values = values_of(runs, engine, key)
    return statistics.median(values) if values else None


def spread_of(runs: Sequence[Row], engine: str, key: str) -> float:
    """(max - min) / median."""
    values = values_of(runs, engine, key)
    return (max(values) - min(values)) / statistics.median(values) if values else 0.0


def leaders(runs: Sequence[Row], key: str) -> list[str]:
    """Return ourselves and the fastest competitor."""
    medians = {row["engine"]: median_of(runs, row["engine"], key) or 0.0 for row in runs}
    others = [name for name in medians if not is_ours(name)]
    return [OURS, *([min(others, key=medians.__getitem__)] if others else [])]


# -- texts


def unpack(folder: Path, scratch: Path) -> dict[str, Path]:
    """Return the texts of a folder by name, unpacked into `scratch` if compressed."""
    texts = {}
    for path in sorted(folder.iterdir()):
        name = path.name.partition(".")[0]
        if path.name.endswith(".txt"):
            texts[name] = path
        elif path.name.endswith(".txt.xz"):
            texts[name] = scratch / f"{name}.txt"
            if is_outdated(texts[name], path):
                texts[name].write_bytes(lzma.decompress(path.read_bytes()))
    return texts


def sample(text: Path, limit_bytes: float, scratch: Path) -> Path:
    """Write whole documents of `text`, spread evenly over the file, up to `limit_bytes`."""
    if text.stat().st_size <= limit_bytes:
        return text
    path = scratch / f"{text.stem}-{limit_bytes / 1e6:g}.txt"
    if not is_outdated(path, text):
        return path
    content = text.read_bytes()
    chosen, taken, seen = [], 0, 0
    for document in content.split(SEPARATOR):
        size = len(document) + len(SEPARATOR)
        seen += size
        if taken + size <= limit_bytes * seen / len(content):
            chosen.append(document)
            taken += size
    path.write_bytes(SEPARATOR.join(chosen))
    return path


def is_outdated(path: Path, source: Path) -> bool:
    return not path.exists() or path.stat().st_mtime < source.stat().st_mtime


def describe(name: str, path: Path) -> Row:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:16]
    documents = content.count(SEPARATOR) + 1
    return {"name": name, "bytes": len(content), "documents": documents, "sha256": digest}


# -- results


def facts(options: argparse.Namespace) -> Row:
    """Return the facts to repeat the run: machine, versions, commit, date, load, arguments."""
    hidden = ("texts", "vocabularies", "scratch", "results")
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "build": environments.build(),
        "date": datetime.date.today().isoformat(),
        "load_at_start": round(os.getloadavg()[0], 1),
        "versions": environments.versions(),
        "not_installed": environments.missing(),
        "options": {name: value for name, value in vars(options).items() if name not in hidden},
    }


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def save(table: str, folder: Path, content: Row, runs: Sequence[Row], columns: Sequence[str]) -> None:
    """Write <table>.json and <table>.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
    (folder / f"{table}.json").write_text(text + "\n", encoding="utf-8")
    with (folder / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in runs:
            writer.writerow({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()})
    progress(f"{len(runs)} runs in {folder / table}.csv")


def progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
