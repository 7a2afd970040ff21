"""What every benchmark shares: taking turns, medians, and the facts without which a figure says nothing.

Contenders run turn by turn (A B C A B C ...), so that a slow moment of the machine falls on all of them; the
median of the turns is the figure, the spread (max - min) / median says how far to trust it. Differences below
the spread are not resolved. Rows are plain dictionaries; `save` puts them beside the facts of the machine
into data/bench/<question>.json, from which report.py makes docs/performance.md.

Pin the run for steadier figures, e.g. `taskset -c 0,1 python scripts/bench/encode.py`.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import hashlib
import importlib.metadata
import json
import mmap
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The packages of this checkout, whichever are installed: these scripts lie in a folder of their own.
sys.path.insert(0, str(ROOT))
SAVED = ROOT / "data" / "bench"
SEPARATOR = b"<|endoftext|>"
Row = dict[str, Any]

# Slow contenders get fewer turns: five of 2 s are better than one of 60 s, and a minute is long enough.
FEWER_TURNS = ((60.0, 1), (15.0, 3))


def take_turns(contenders: Mapping[str, Callable[[], float]], turns: int) -> dict[str, list[float]]:
    """Seconds per contender, in the order of the turns; each function runs once and returns its own seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(turns):
        for name, run in contenders.items():
            slowest = max(seconds[name], default=0.0)
            if any(slowest > limit and turn >= allowed for limit, allowed in FEWER_TURNS):
                continue
            gc.collect()
            seconds[name].append(run())
            progress(f"turn {turn + 1}/{turns}  {name}  {seconds[name][-1]:.3f} s")
    return seconds


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and what it returned."""
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def summary(seconds: Sequence[float], text_bytes: int) -> Row:
    """Median, spread and rate. [2.0, 1.0, 1.5], 3_000_000 -> 1.5 s, spread 0.67, 2.0 MB/s (1 MB = 10^6 bytes)."""
    median = statistics.median(seconds)
    return {
        "seconds": median,
        "spread": (max(seconds) - min(seconds)) / median,
        "turns": len(seconds),
        "text_bytes": text_bytes,
        "mb_per_s": text_bytes / median / 1e6,
    }


def pin(cores: int) -> None:
    """Keep this process to so many cores from here on, threads started later too, where the system can do that.

    A peer told to use one thread may have others at work beside it: with two cores fastokens encodes code at 243 MB/s
    "with one thread", on one core at 119.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[-cores:])


def peak_bytes() -> int:
    """The most memory this process has held; from /proc, as getrusage's figure outlives an exec."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_bytes() -> int:
    """The memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run_child(script: str, arguments: Sequence[str], threads: int) -> Any:
    """What the script prints as its last line, as JSON; a process of its own with `threads` threads in its pools."""
    environment = os.environ | {
        "RAYON_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
    }
    done = subprocess.run(
        [sys.executable, script, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"error: {Path(script).name} {' '.join(arguments)} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


# -- what was measured, on what


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    demo = ROOT / "data" / "demo"
    parser.add_argument("--corpus", nargs="+", type=Path, default=[demo / "corpus.txt"], metavar="FILE")
    parser.add_argument("--tokenizer", type=Path, default=demo / "tokenizer.json", metavar="FILE")
    parser.add_argument("--turns", type=int, default=5, help="runs of each contender (default 5)")
    parser.add_argument(
        "--limit-mb", type=float, default=64, help="measure at most so much of a file (default 64)"
    )
    return parser


def parse(parser: argparse.ArgumentParser, needs_tokenizer: bool = True) -> argparse.Namespace:
    options = parser.parse_args()
    for path in [*options.corpus, *([options.tokenizer] if needs_tokenizer else [])]:
        if not path.is_file():
            parser.error(
                f"{path}: no such file; scripts/demo makes a corpus and a tokenizer, or name your own"
            )
    return options


def read_text(path: Path, limit_bytes: float) -> bytes:
    """The file, cut after the last whole document within the limit."""
    with path.open("rb") as file:
        text = file.read(int(limit_bytes) + 1)
    if len(text) <= limit_bytes:
        return text
    end = text.rfind(SEPARATOR)
    return (
        text[: end + len(SEPARATOR)]
        if end >= 0
        else text[: int(limit_bytes)].decode(errors="ignore").encode()
    )


def facts() -> Row:
    """Machine, versions and commit."""
    packages = ["numpy", "zarr", "numcodecs", "tiktoken", "tokenizers", "rustbpe", "gigatoken", "fastokens"]
    packages += ["tokie", "splintr-rs", "riptoken", "kitoken", "gigabpe", "ffbpe", "sentencepiece"]
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version for name in packages if (version := package_version(name))},
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "load_at_start": round(os.getloadavg()[0], 1),
    }


def describe(path: Path, text: bytes | mmap.mmap) -> Row:
    """What a figure's text was, so that another can say whether it is the same."""
    return {
        "name": path.stem,
        "text_bytes": len(text),
        "documents": sum(1 for _ in re.finditer(re.escape(SEPARATOR), text)) + 1,
        "sha256": hashlib.sha256(text).hexdigest()[:16],
    }


def package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    def git(*command: str) -> str:
        return subprocess.run(
            ["git", *command], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    return f"{git('rev-parse', '--short', 'HEAD') or 'unknown'}{' with changes' if git('status', '-s', '-uno') else ''}"


# -- what came out


def save(
    question: str, machine: Row, rows: Sequence[Row], texts: Sequence[Row], notes: Sequence[str]
) -> None:
    """Writes data/bench/<question>.json and prints the rows as a table."""
    SAVED.mkdir(parents=True, exist_ok=True)
    content = {"question": question, "machine": machine, "texts": texts, "rows": rows, "notes": notes}
    path = SAVED / f"{question}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, commit {machine['commit']}"
    )
    print(", ".join(f"{name} {version}" for name, version in machine["versions"].items()))
    for text in texts:
        print(
            f"{text['name']}: {text['text_bytes']:,} bytes, {text['documents']:,} documents, sha256 {text['sha256']}"
        )
    print(table(rows))
    for note in notes:
        print(note)
    print(f"saved in {path.relative_to(ROOT)}")


def table(rows: Sequence[Row]) -> str:
    """A Markdown table; the columns are the keys of the first row.

    [{"encoder": "a", "mb_per_s": 12.5}] -> "| encoder | MB/s |\\n|---|---|\\n| a | 12.5 |"
    """
    if not rows:
        return "nothing was measured"
    lines = ["| " + " | ".join(HEADINGS.get(key, key) for key in rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(cell(key, row.get(key)) for key in rows[0]) + " |" for row in rows]
    return "\n".join(lines)


HEADINGS = {
    "seconds": "seconds",
    "spread": "spread",
    "text_bytes": "text, MB",
    "mb_per_s": "MB/s",
    "peak_bytes": "peak, MB",
    "bytes_per_token": "bytes/token",
}


def cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "spread":
        return f"{value:.0%}"
    if key in ("text_bytes", "peak_bytes"):
        return f"{value / 1e6:,.1f}" if value < 10e6 else f"{value / 1e6:,.0f}"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def progress(message: str) -> None:
    print(f"   {message}", file=sys.stderr, flush=True)
