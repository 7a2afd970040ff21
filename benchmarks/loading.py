"""Throughput of shuffled training batches, and the time to the first batch, of every loader, on one core.

Each run is a new process without worker processes: it opens the data, takes a first batch, and draws batches for two
seconds from the page cache. Every loader makes the same product of the same tokens; see loaders.py. Throughput counts
target tokens per second of processor time of all threads.

    scripts/bench loading --texts FOLDER --vocabularies FOLDER --scratch FOLDER

needs the environment of `scripts/bench setup --loading`.
"""

from __future__ import annotations

import functools
import shutil
import subprocess

import harness
import numpy as np
from environments import LOADING, MAIN, python
from harness import Row
from loaders import LOADERS
from tokenizer_files import build_files

COLUMNS = "engine turn first_batch_s tokens load_s load_cpu_s".split()


def main() -> None:
    import zarr

    parser = harness.parser(__doc__ or "")
    parser.add_argument("--text", default="en", metavar="NAME", help="(default: en)")
    parser.add_argument("--text-mb", type=float, default=40, help="(default: 40, about 16 million tokens)")
    options = harness.parse(parser)
    seconds = 2.0
    if options.quick:
        options.text_mb, seconds = 4, 0.5
    if not python(LOADING).exists():
        parser.error("there is no environment for this benchmark; run scripts/bench setup --loading")
    facts = harness.facts(options)
    source = harness.unpack(options.texts, options.scratch)[options.text]
    text = harness.sample(source, options.text_mb * 1e6, options.scratch)
    tokenizer = next(build_files(options.vocabularies, options.scratch / "tokenizers", ["gpt2"]))
    folder = options.scratch / "loading"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, compression in (("raw", "none"), ("zstd", "zstd")):
        command = [
            str(python(MAIN).with_name("tokenmill")),
            "convert",
            str(text),
            "--tokenizer",
            str(tokenizer.path),
        ]
        command += ["--output", f"{name}.zarr", "--compression", compression, "--validation-fraction", "0"]
        subprocess.run([*command, "--progress", "none"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    stored = zarr.open_array(folder / "raw.zarr" / "train" / "encoded_tokens", mode="r")
    tokens = np.asarray(stored[:])
    np.save(folder / "tokens.npy", tokens)

    chosen = [name for name in LOADERS if name in (options.only or LOADERS)]
    failed: dict[str, str] = {}
    contenders = {}
    for name in chosen:
        job = {"loader": name, "folder": folder, "seconds": seconds}
        prepared = harness.run_child(job | {"kind": "prepare"}, LOADING, script="loaders.py")
        if "failed" in prepared:
            failed[name] = prepared["failed"]
            harness.progress(f"{name}: {failed[name]}")
        else:
            contenders[name] = functools.partial(run, job)
    runs, reasons = harness.measure(contenders, options.turns, "s_per_token", "loading")
    content = {"facts": facts, "tokenizer": tokenizer.title, "tokens": len(tokens)}
    content |= {"texts": [harness.describe(options.text, text)], "failed": failed | reasons}
    harness.save("loading", options.results, content, runs, COLUMNS)
    shutil.rmtree(folder)


def run(job: Row) -> Row:
    row = harness.run_child(job | {"kind": "load"}, LOADING, script="loaders.py")
    return row if "failed" in row else row | {"s_per_token": row["load_cpu_s"] / row["tokens"]}


if __name__ == "__main__":
    main()
