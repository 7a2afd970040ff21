"""Conversion of text files to a dataset: the whole command, encoding scripts, and the cost of the parent process.

Table "conversion": a file of all texts, once each. tokenmill runs as its command, from the start of the process to a
verified dataset on the disk. A competitor is a script that reads the file, encodes it, and forgets the IDs ("IDs in
memory"), or writes them with zarr, unverified ("zarr arrays"). The IDs of all must be equal.

Table "driver": files of --driver-gb GB on the disk. The parent plans the work, hands it to the workers, records what
they report and writes the manifest; its processor time limits how many workers it can serve. The time of a command on
1 MB is the fixed cost. Before each run the disk is synced and the machine rests, so no run pays for the previous one.

    scripts/bench conversion --texts FOLDER --vocabularies FOLDER --scratch FOLDER
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import harness
import numpy as np
from environments import MAIN, RC, python
from harness import OURS, Row
from tokenizer_files import build_files

REST_SECONDS = 2.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PEERS = {
    "gigatoken, IDs in memory": ("gigatoken", False),
    "gigatoken, zarr arrays": ("gigatoken", True),
    "fastokens, IDs in memory": ("fastokens", False),
    "fastokens, zarr arrays": ("fastokens", True),
    "tokenizers-rc, IDs in memory": ("tokenizers-rc", False),
}
COLUMNS = "configuration engine turn text_bytes workers process_s parent_cpu_s workers_cpu_s ids".split()
DRIVER_COLUMNS = "zarr_format turn text_bytes files workers process_s parent_cpu_s workers_cpu_s".split()


def main() -> None:
    parser = harness.parser(__doc__ or "")
    parser.add_argument(
        "--configurations", nargs="+", default=["gpt2"], metavar="NAME", help="(default: gpt2)"
    )
    parser.add_argument("--driver-gb", type=float, default=5, help="text for the driver table (default: 5)")
    parser.add_argument("--driver-turns", type=int, default=3, help="(default: 3)")
    options = harness.parse(parser)
    facts = harness.facts(options)
    texts = harness.unpack(options.texts, options.scratch)
    if options.quick:
        texts = {name: harness.sample(path, 2e6, options.scratch) for name, path in texts.items()}
        options.driver_gb, options.driver_turns = 0.05, 1
    files = {
        f.path.stem: f
        for f in build_files(options.vocabularies, options.scratch / "tokenizers", options.configurations)
    }
    mixed = options.scratch / "mixed.txt"
    mixed.write_bytes(harness.SEPARATOR.join(path.read_bytes() for path in texts.values()))
    titles = [
        {"name": name, "title": f.title, "vocabulary": f.vocabulary, "origin": f.origin}
        for name, f in files.items()
    ]
    content: Row = {
        "facts": facts,
        "configurations": titles,
        "texts": [harness.describe("mixed", mixed)],
        "failed": {},
    }
    runs: list[Row] = []
    for name, file in files.items():
        found, content["failed"][name] = compare(name, file.path, mixed, options)
        runs += found
    harness.save("conversion", options.results, content, runs, COLUMNS)
    tokenizer = next(iter(files.values()))
    driver(tokenizer.path, [*texts.values()], options, {"facts": facts, "tokenizer": tokenizer.title})


def compare(
    name: str, tokenizer: Path, text: Path, options: argparse.Namespace
) -> tuple[list[Row], dict[str, str]]:
    """Measure the command and the scripts on one tokenizer."""
    workers = len(os.sched_getaffinity(0))
    output = options.scratch / "conversion.zarr"
    by_hand = options.scratch / "by-hand.zarr"

    def ours() -> Row:
        return convert([text], tokenizer, output, workers, 3)

    def script(engine: str, writes: bool) -> Row:
        shutil.rmtree(by_hand, ignore_errors=True)
        rest()
        job = {
            "kind": "convert",
            "engine": engine,
            "tokenizer": tokenizer,
            "text": text,
            "scratch": options.scratch,
        }
        job |= {"output": by_hand} if writes else {}
        row = harness.run_child(job, RC if engine == "tokenizers-rc" else MAIN, workers)
        return row | {"text_bytes": text.stat().st_size, "workers": workers}

    contenders = {OURS: ours}
    for title, (engine, writes) in PEERS.items():
        if engine in (options.only or [engine]):
            contenders[title] = functools.partial(script, engine, writes)
    runs, failed = harness.measure(contenders, options.turns, "process_s", f"conversion, {name}")
    expected = dataset_digest(output)
    for row in runs:
        row["ids"] = "equal"
    for title, (engine, _) in PEERS.items():
        if title in contenders and title not in failed:
            job = {"kind": "convert", "engine": engine, "tokenizer": tokenizer, "text": text, "digest": True}
            job["scratch"] = options.scratch
            found = harness.run_child(job, RC if engine == "tokenizers-rc" else MAIN, workers)
            if found.get("digest") != expected:
                for row in runs:
                    row["ids"] = "differ" if row["engine"] == title else row["ids"]
    shutil.rmtree(output)
    shutil.rmtree(by_hand, ignore_errors=True)
    return [{"configuration": name} | row for row in runs], failed


def dataset_digest(output: Path) -> str:
    import zarr

    stored = np.asarray(zarr.open_array(output / "train" / "encoded_tokens", mode="r")[:])
    return hashlib.blake2b((stored >> np.uint32(1)).tobytes(), digest_size=16).hexdigest()


# -- the driver


def driver(tokenizer: Path, texts: list[Path], options: argparse.Namespace, content: Row) -> None:
    """Measure the processor time of the parent in both Zarr formats, on 1 MB and on many files."""
    workers = len(os.sched_getaffinity(0))
    small = harness.sample(texts[0], 1e6, options.scratch)
    folder = options.scratch / "driver"
    files = driver_files(texts, folder, options.driver_gb * 1e9)
    runs = []
    for turn in range(options.driver_turns):
        for zarr_format in (2, 3):
            for inputs in ([small], [folder]):
                output = options.scratch / "driver.zarr"
                row = convert(inputs, tokenizer, output, workers, zarr_format)
                shutil.rmtree(output)
                count = 1 if inputs == [small] else files
                runs.append({"turn": turn + 1, "zarr_format": zarr_format, "files": count} | row)
                megabytes = row["text_bytes"] / 1e6
                harness.progress(
                    f"driver, format {zarr_format}, {megabytes:.0f} MB: parent {row['parent_cpu_s']:.2f} s"
                )
    shutil.rmtree(folder)
    harness.save("driver", options.results, content, runs, DRIVER_COLUMNS)


def driver_files(texts: list[Path], folder: Path, size: float) -> int:
    """Fill a folder with copies of the texts, one file each, and return how many there are."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    count, written = 0, 0
    while written < size:
        source = texts[count % len(texts)]
        shutil.copyfile(source, folder / f"{count:05}.txt")
        written += source.stat().st_size
        count += 1
    return count


def convert(inputs: list[Path], tokenizer: Path, output: Path, workers: int, zarr_format: int) -> Row:
    """Run the command; return its duration and the processor time of the parent and of its workers."""
    shutil.rmtree(output, ignore_errors=True)
    command = [
        str(python(MAIN).with_name("tokenmill")),
        "convert",
        *map(str, inputs),
        "--tokenizer",
        str(tokenizer),
    ]
    command += ["--output", str(output), "--workers", str(workers), "--zarr-format", str(zarr_format)]
    command += ["--validation-fraction", "0", "--progress", "none"]  # one split, in the order of the file
    rest()
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=output.parent)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # keeps /proc/PID until its times are read
    seconds = time.perf_counter() - started
    times = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    user, system, child_user, child_system = (int(value) / CLOCK_TICKS for value in times[11:15])
    if process.wait() != 0:
        sys.exit(f"error: {' '.join(command)} ended with status {process.returncode}")
    size = sum(
        file.stat().st_size for path in inputs for file in ([path] if path.is_file() else path.iterdir())
    )
    return {
        "text_bytes": size,
        "workers": workers,
        "process_s": seconds,
        "parent_cpu_s": user + system,
        "workers_cpu_s": child_user + child_system,
    }


def rest() -> None:
    os.sync()
    time.sleep(REST_SECONDS)


if __name__ == "__main__":
    main()
