"""Run one target with libFuzzer, with limits on memory and time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from native_fuzz.build import ROOT
from native_fuzz.seeds import write_dictionary, write_seeds

MOST_MEGABYTES: Final = 2048  # mostly memory of the address sanitizer
MOST_SECONDS: Final = 20  # per input
LONGEST: Final = 512  # bytes of one input, unless the target is named below
LONGEST_OF: Final = {"json_lines": 1024, "model_json": 1024}


@dataclass(frozen=True)
class Outcome:
    """finding: file with the failing input, if there is one. what: its last output."""

    target: str
    executions: int
    seconds: float
    corpus: int
    finding: Path | None = None
    what: str = ""


def write_tables(path: Path) -> None:
    """Write the tables of the patterns, unless they are newer than their generator."""
    script = ROOT / "tools/native/write_tables.py"
    makers = [script, *(ROOT / "bpe/pretokenization").glob("*.py"), ROOT / "bpe/patterns.py"]
    if not path.exists() or path.stat().st_mtime_ns < max(maker.stat().st_mtime_ns for maker in makers):
        subprocess.run([sys.executable, str(script), str(path), "--more"], cwd=ROOT, check=True)


def run_target(
    target: str,
    program: Path,
    folder: Path,
    findings: Path,
    seed: int,
    executions: int | None,
    seconds: float | None,
) -> Outcome:
    """Run a target. folder: for the tables and the corpus, which the next run continues."""
    corpus = folder / "corpus" / target
    write_seeds(target, corpus)
    write_dictionary(target, folder / f"{target}.dict")
    findings.mkdir(parents=True, exist_ok=True)
    bounds = [f"-rss_limit_mb={MOST_MEGABYTES}", f"-timeout={MOST_SECONDS}"]
    bounds += [f"-max_len={LONGEST_OF.get(target, LONGEST)}", "-len_control=0"]
    bounds += [] if executions is None else [f"-runs={executions}"]
    bounds += [] if seconds is None else [f"-max_total_time={max(1, round(seconds))}"]
    files = [f"-dict={folder / f'{target}.dict'}", f"-artifact_prefix={findings}/{target}-{seed}-"]
    done = subprocess.run(
        [
            str(program),
            *bounds,
            *files,
            f"-seed={seed or 1}",
            "-print_final_stats=1",
            "-verbosity=1",
            str(corpus),
        ],
        env={**os.environ, "FUZZ_TABLES": str(folder / "tables.txt"), "ASAN_OPTIONS": "detect_leaks=1"},
        capture_output=True,
        check=False,
    )
    told = done.stderr.decode(errors="replace")
    known = {name: int(value) for name, value in re.findall(r"stat::(\w+):\s+(\d+)", told)}
    speed = re.findall(r"Done \d+ runs in (\d+) second", told)
    written = re.findall(r"Test unit written to (\S+)", told)
    count = len([path for path in corpus.iterdir() if path.is_file()])
    ran = known.get("number_of_executed_units", 0)
    took = float(speed[-1]) if speed else 0.0
    if done.returncode == 0:
        return Outcome(target, ran, took, count)
    words = re.findall(r"^(broken rule: .*|.*runtime error: .*|SUMMARY: .*)$", told, re.M)
    what = words[0] if words else told.strip()[-300:]
    return Outcome(target, ran, took, count, Path(written[-1]) if written else program, what)
