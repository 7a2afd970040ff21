"""Cold runs without loading anew: an encoder is loaded in a process of its own, and each run is a fork of that one.

So each run finds the encoder as it is after loading and one empty text, its caches empty, whatever ran before it; and
its processor time and its memory are its own. The text is in memory, in the form the encoder likes, before the fork.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
from encoders import ENCODERS, Ours

BATCH_BYTES = 1 << 20  # of text whose ids are compared at once
LIMIT_SECONDS = 900  # a run that hangs ends


class Loaded:
    """One encoder of one tokenizer file, in a process that waits for runs. refused: why it did not load, or None."""

    def __init__(self, name: str, tokenizer: Path, threads: int) -> None:
        self.name, self.tokenizer, self.threads = name, tokenizer, threads
        environment = os.environ | {
            "RAYON_NUM_THREADS": str(threads),
            "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
        }
        self.process = subprocess.Popen(
            [sys.executable, __file__, name, str(tokenizer), str(threads)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.refused: str | None = self._answer().get("failed")

    def run(self, what: str, text: Path, limit_bytes: float) -> harness.Row:
        """what: "time", "digests" or "memory"; see the functions of these names. {"failed": reason} if it failed."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended before; there is no answer then
            self.process.stdin.write(json.dumps([what, str(text), limit_bytes]) + "\n")
            self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> harness.Row:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer: harness.Row = json.loads(line) if line else {"failed": "the process ended"}
        return answer


def one_document(text: bytes, limit_bytes: float) -> bytes:
    """So many bytes without a separator: the documents with an empty line between, over and over."""
    joined = text.replace(harness.SEPARATOR, b"\n\n") + b"\n\n"
    copies = joined * (int(limit_bytes) // len(joined) + 1)
    return copies[: int(limit_bytes)].decode(errors="ignore").encode()


def batches(text: bytes) -> Iterator[bytes]:
    """The text in parts of whole documents, each with the separator behind it but the last."""
    start = 0
    while start < len(text):
        end = text.find(harness.SEPARATOR, start + BATCH_BYTES)
        end = len(text) if end < 0 else end + len(harness.SEPARATOR)
        yield text[start:end]
        start = end


# -- in the process of the encoder


def serve(name: str, tokenizer: Path, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(row: harness.Row) -> None:
        answers.write(json.dumps(row) + "\n")
        answers.flush()

    try:
        encoder = next(each for each in ENCODERS if each.name == name)(tokenizer, threads)
        loaded = encoder.fresh()
        encoder.encode(loaded, encoder.prepare(b""))  # what is made at the first call is no work per byte
    except BaseException as error:  # a panic of Rust is no Exception
        answer({"failed": reason(error)})
        return
    answer({})
    prepared: tuple[str, Any] = ("", None)
    for line in sys.stdin:
        what, path, limit_bytes = json.loads(line)
        try:
            if prepared[0] != line:
                prepared = ("", None)
                prepared = (line, prepare(encoder, what, Path(path), limit_bytes))
            # In no fork, where the threads of a pool do not live on; and not by `loaded`, which stays cold.
            if what == "digests":
                answer(digests(encoder, encoder.fresh(), prepared[1]))
                continue
        except BaseException as error:
            answer({"failed": reason(error)})
            continue
        gc.collect()
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT_SECONDS)
            try:
                answer(RUNS[what](encoder, loaded, prepared[1]))
            except BaseException as error:
                answer({"failed": reason(error)})
            os._exit(0)
        if status := os.waitpid(child, 0)[1]:
            answer({"failed": f"the run ended with status {status}"})


def prepare(encoder: Ours, what: str, path: Path, limit_bytes: float) -> Any:
    if what == "memory":
        return encoder.prepare(one_document(harness.read_text(path, limit_bytes), limit_bytes))
    text = harness.read_text(path, limit_bytes)
    return text if what == "digests" else encoder.prepare(text)


def timed(encoder: Ours, loaded: Any, prepared: Any) -> harness.Row:
    """Seconds of one run by the wall and of the processor, all threads together, and the digest of its ids."""
    wall, processor = time.perf_counter(), time.process_time()
    result = encoder.encode(loaded, prepared)
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    return {"wall": wall, "cpu": processor, "digest": digest(encoder.ids(result)).hexdigest()}


def digests(encoder: Ours, loaded: Any, text: bytes) -> harness.Row:
    """The digest of all ids, and one for each batch, to say where two differ."""
    whole = hashlib.blake2b(digest_size=16)
    parts = []
    for batch in batches(text):
        ids = encoder.ids(encoder.encode(loaded, encoder.prepare(batch)))
        whole.update(ids.tobytes())
        parts.append(digest(ids).hexdigest())
    return {"digest": whole.hexdigest(), "parts": parts}


def memory(encoder: Ours, loaded: Any, prepared: Any) -> harness.Row:
    """The most memory that one document takes, beside the encoder and the text."""
    before = harness.resident_bytes()
    encoder.encode(loaded, prepared)
    return {"peak_bytes": harness.peak_bytes() - before}


RUNS = {"time": timed, "memory": memory}


def digest(ids: Any) -> Any:
    return hashlib.blake2b(ids.tobytes(), digest_size=16)


def reason(error: BaseException) -> str:
    """The first line of what went wrong."""
    lines = str(error).strip().splitlines() or traceback.format_exception_only(error)
    return lines[0].strip()


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
