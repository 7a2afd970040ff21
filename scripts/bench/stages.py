"""Where does the time of a conversion go, and how far is each stage from what the machine allows?

One process without workers, in seconds of processor time for a gigabyte of text, the system's share included. Beside
each stage stands the least that somebody would need who did nothing else with the same bytes: read the file into a
buffer that is kept, copy memory, encode the same text with all its pretokens in the cache, write the same files, zstd
level 1 over the finished array, XXH64 over the dataset. "read" is the text, "check" its UTF-8, "hash" the digest of
the source, "shard" what puts documents apart by split and writes their ids, narrow, to shards; "merge" reads those,
sets the start flags, compresses, hashes and writes; "verify" reads the dataset back. What is not a stage, such as the
start, is left out; syncing goes on in the background.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import harness
import numcodecs
import numpy as np

import convert.encode.clock
import convert.encode.worker
from bpe import _core
from bpe.tokenizer import Tokenizer
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.driver.finalizer import known_facts
from convert.shards.runs import Run
from convert.shards.shard_reader import Damage
from convert.shards.write_run import WrittenFile
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.verify import verify_dataset
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.job import JobKey
from tokenmill.inputs._core import Xxh64

PIECE_BYTES = 1 << 20
CHUNK_TOKENS = 1 << 18
STAGES = ("read", "check", "hash", "encode", "shard", "merge", "verify")


def main() -> None:
    options = harness.parse(harness.arguments(__doc__ or ""))
    machine = harness.facts()
    rows: list[harness.Row] = []
    texts = []
    with tempfile.TemporaryDirectory(dir=harness.ROOT / "data") as scratch:
        for path in options.corpus:
            text = harness.read_text(path, options.limit_mb * 1e6)
            texts.append(harness.describe(path, text))
            source, output = Path(scratch) / path.name, Path(scratch) / "out"
            source.write_bytes(text)
            ours: dict[str, list[float]] = {stage: [] for stage in STAGES}
            least: dict[str, list[float]] = {stage: [] for stage in STAGES}
            for turn in range(options.turns):
                harness.progress(f"{path.stem}: turn {turn + 1} of {options.turns}")
                shutil.rmtree(output, ignore_errors=True)
                for stage, seconds in conversion(source, output, options.tokenizer).items():
                    ours[stage].append(seconds)
                for stage, seconds in limits(source, output, options.tokenizer, Path(scratch)).items():
                    least[stage].append(seconds)
            gigabytes = len(text) / 1e9
            for stage in STAGES:
                spent, needed = (float(np.median(each[stage])) / gigabytes for each in (ours, least))
                rows.append(
                    {
                        "text": path.stem,
                        "stage": stage,
                        "s/GB": round(spent, 3),
                        "least s/GB": round(needed, 3),
                        "times the least": round(spent / needed, 1),
                        "turns": options.turns,
                    }
                )
    harness.save("stages", machine, rows, texts, [])


def conversion(source: Path, output: Path, tokenizer: Path) -> dict[str, float]:
    """Seconds of processor time of each stage."""
    merge, merged = convert.encode.worker.merge_run, 0.0
    facts: dict[str, TokenFacts] = {}

    def timed_merge(run: Run, key: JobKey, unneeded: Sequence[str] = ()) -> list[WrittenFile] | Damage:
        nonlocal merged
        started = time.process_time()
        files = merge(run, key, unneeded)
        merged += time.process_time() - started
        if not isinstance(files, Damage):
            facts.update((file.record.path, file.facts) for file in files if file.facts is not None)
        return files

    # The conversion's own clock takes perf_counter, which counts what others do on this machine too.
    clock: Any = convert.encode.clock
    convert.encode.worker.merge_run, clock.time = timed_merge, SimpleNamespace(perf_counter=time.process_time)
    try:
        options = ConvertOptions(
            (str(source),), str(tokenizer), str(output), validation_fraction=0.005, progress="none"
        )
        summary = run_conversion(options, InlineEngine())
    finally:
        convert.encode.worker.merge_run, clock.time = merge, time
    started = time.process_time()
    verify_dataset(output, InlineEngine(), facts=known_facts(facts)).require_ok()
    verified = time.process_time() - started
    steps = summary.worker_seconds
    found = {stage: steps.get(stage, 0.0) for stage in STAGES}
    return {**found, "shard": steps["split"] + steps["write"], "merge": merged, "verify": verified}


def limits(source: Path, output: Path, tokenizer: Path, scratch: Path) -> dict[str, float]:
    """The least for each stage, on the same bytes."""
    import zarr

    text = source.read_bytes()
    tokens = np.asarray(zarr.open_array(output / "train" / "encoded_tokens", mode="r")[:])
    narrow = (tokens >> 1).astype(np.uint16 if tokens.max() < 1 << 17 else np.uint32)
    chunks = [tokens[start : start + CHUNK_TOKENS] for start in range(0, len(tokens), CHUNK_TOKENS)]
    zstd = numcodecs.Zstd(1)
    compressed: list[bytes] = []
    copied = timed(lambda: copy(text))
    return {
        "read": timed(lambda: read([source], len)),
        "check": copied,
        "hash": copied,
        "encode": encode_again(text, tokenizer),
        "shard": timed(lambda: write(scratch / "narrow", narrow.data)),
        "merge": timed(lambda: compressed.extend(zstd.encode(chunk) for chunk in chunks))
        + timed(lambda: write(scratch / "compressed", memoryview(b"".join(compressed)))),
        "verify": timed(lambda: read([p for p in output.rglob("*") if p.is_file()], Xxh64().update)),
    }


def encode_again(text: bytes, path: Path) -> float:
    """Seconds to encode the text a second time, in pieces as the conversion takes it, into a buffer that is kept."""
    tokenizer, start = Tokenizer.load(path), 0
    pieces: list[bytes] = []
    while start < len(text):
        stop = text.rfind(harness.SEPARATOR, start, start + PIECE_BYTES)
        stop = stop if stop > start and start + PIECE_BYTES < len(text) else len(text)
        pieces.append(text[start:stop])
        start = stop + len(harness.SEPARATOR)
    out = np.empty(_core.TokenizerCore.out_tokens(max(map(len, pieces))), np.uint32)

    def encode() -> None:
        for piece in pieces:
            tokenizer.encode_documents(piece, harness.SEPARATOR, checked=True, out=out)

    encode()
    return timed(encode)


def copy(text: bytes) -> None:
    """Copy memory, a piece at a time, to where it stays in the cache."""
    to, view = memoryview(bytearray(PIECE_BYTES)), memoryview(text)
    for start in range(0, len(text), PIECE_BYTES):
        part = view[start : start + PIECE_BYTES]
        to[: len(part)] = part


def read(paths: list[Path], take: Callable[[memoryview], Any]) -> None:
    """Read files into a buffer that is kept, and hand each piece over."""
    to = memoryview(bytearray(PIECE_BYTES))
    for path in paths:
        with io.FileIO(path) as file:
            while got := file.readinto(to):
                take(to[:got])


def write(path: Path, data: memoryview) -> None:
    """Write a file that is new, a piece at a time."""
    path.unlink(missing_ok=True)
    data = data.cast("B")
    with io.FileIO(path, "w") as file:
        for start in range(0, len(data), PIECE_BYTES):
            file.write(data[start : start + PIECE_BYTES])


def timed(function: Callable[[], Any]) -> float:
    """Seconds of processor time of one call."""
    started = time.process_time()
    function()
    return time.process_time() - started


if __name__ == "__main__":
    main()
