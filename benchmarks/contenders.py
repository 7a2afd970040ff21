"""One run of one contender: `contenders.py JOB`, with the job and the answer as JSON.

    {"kind": "encode", "engine": "gigatoken", "tokenizer": FILE, "text": FILE, "threads": 1, "scratch": FOLDER}

The clock runs only while the contender loads, encodes or trains. Imports, and bringing the text into the form that the
contender prefers, are not timed. Engines are imported where they are used, since no environment has all of them.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizer_files import byte_alphabet

SEPARATOR = "<|endoftext|>"
BYTE_OF = {character: byte for byte, character in enumerate(byte_alphabet())}
FIRST_TEXT = "Hello, world! 12345 Здравствуй, 你好"
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
Row = dict[str, Any]
IDs = NDArray[np.uint32]


# -- encoders


def package(name: str) -> Any:
    """Import an engine, which may be missing in this environment."""
    return importlib.import_module(name)


def split(text: bytes) -> Any:
    return text.decode().split(SEPARATOR)


def flat(rows: list[Any]) -> IDs:
    """[[1, 2], [], [3]] -> [1, 2, 3]"""
    return (
        np.concatenate([np.asarray(row, dtype=np.uint32) for row in rows]) if rows else np.zeros(0, np.uint32)
    )


@dataclass(frozen=True)
class Encoder:
    """How to use an encoder.

    packages: imported before the clock runs, including those that the engine imports in its first call.
    load: takes what `file` returns for a tokenizer.json and a folder for other files.
    encode: takes the loaded encoder, what `documents` returns for a text, and the number of threads.
    ids: flattens a result; takes the loaded encoder, too.
    """

    packages: tuple[str, ...]
    load: Callable[[Any], Any]
    encode: Callable[[Any, Any, int], Any]
    ids: Callable[[Any, Any], IDs]
    documents: Callable[[bytes], Any] = split
    file: Callable[[Path, Path], Any] = lambda tokenizer, folder: str(tokenizer)


def without_post_processor(tokenizer: Path, folder: Path) -> bytes:
    """Remove the post-processor for splintr, which always applies it in batch calls."""
    return json.dumps(json.loads(tokenizer.read_text()) | {"post_processor": None}).encode()


def imported(tokenizer: Path, folder: Path) -> tuple[str, str]:
    """Convert a tokenizer.json once for quicktok, which checks the result against tokenizers."""
    name, folder = tokenizer.stem, folder / "quicktok" / tokenizer.stem
    if not (folder / f"{name}.enc").exists():
        folder.mkdir(parents=True, exist_ok=True)
        package("quicktok").import_tokenizer(str(tokenizer), name, str(folder))
    return name, str(folder)


def ranks_of(tokenizer: Path, folder: Path) -> tuple[str, dict[bytes, int], IDs]:
    """Read ranks for tiktoken, which takes no merges; `ids` maps ranks to IDs. Reading the ranks is not timed."""
    file = json.loads(tokenizer.read_text())
    pattern = only_pattern(file)
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in file["model"]["merges"]]
    entries = list(dict.fromkeys((*BYTE_OF, *("".join(pair) for pair in merges))))
    ranks = {bytes(map(BYTE_OF.__getitem__, entry)): rank for rank, entry in enumerate(entries)}
    ids = np.array([file["model"]["vocab"][entry] for entry in entries], dtype=np.uint32)
    return pattern, ranks, ids


def load_tiktoken(file: tuple[str, dict[bytes, int], IDs]) -> Any:
    pattern, ranks, ids = file
    options = {"pat_str": pattern, "mergeable_ranks": ranks, "special_tokens": {}}
    return package("tiktoken").Encoding("benchmark", **options), ids


def only_pattern(file: Row) -> str:
    """Return the single pattern of a tokenizer.json. Raise ValueError for any other pre-tokenization."""
    if file["model"].get("byte_fallback"):
        raise ValueError("needs a byte-level vocabulary")
    steps = file["pre_tokenizer"].get("pretokenizers", [file["pre_tokenizer"]])
    *before, last = steps
    plain = last["type"] == "ByteLevel" and not last["add_prefix_space"] and not file["normalizer"]
    if plain and not before and last.get("use_regex", True):
        return GPT2_PATTERN
    if plain and len(before) == 1 and before[0]["type"] == "Split" and not last.get("use_regex", True):
        return str(before[0]["pattern"]["Regex"])
    raise ValueError("needs a single pattern and no normalizer")


ENCODERS = {
    "tokenmill": Encoder(
        packages=("bpe",),
        load=lambda file: package("bpe").Tokenizer.load(file),
        encode=lambda encoder, text, n: encoder.encode_documents(text, separator=SEPARATOR, threads=n),
        ids=lambda _, result: np.asarray(result.tokens, dtype=np.uint32),
        documents=lambda text: text,
    ),
    "gigatoken": Encoder(
        packages=("gigatoken", "awkward", "numpy.ma"),
        load=lambda file: package("gigatoken").Tokenizer(file),
        encode=lambda encoder, source, n: encoder.encode_batch(source, parallel=n > 1),
        ids=lambda _, result: np.asarray(package("awkward").flatten(result), dtype=np.uint32),
        documents=lambda text: package("gigatoken").BytesSource([text], separator=SEPARATOR.encode()),
    ),
    "fastokens": Encoder(
        packages=("fastokens",),
        load=lambda file: package("fastokens").Tokenizer.from_file(file),
        encode=lambda encoder, texts, _: encoder.encode_batch_flat(texts, add_special_tokens=False),
        ids=lambda _, result: np.frombuffer(result[0], dtype=np.uint32),
    ),
    "splintr": Encoder(
        packages=("splintr",),
        load=lambda file: package("splintr").from_json_bytes(file),
        encode=lambda encoder, texts, _: encoder.encode_batch_flat(texts),
        ids=lambda _, result: np.frombuffer(result[0], dtype=np.uint32),
        file=without_post_processor,
    ),
    "tokenizers-rc": Encoder(
        packages=("tokenizers",),
        load=lambda file: package("tokenizers").Tokenizer.from_file(file),
        encode=lambda encoder, texts, _: encoder.encode_batch(texts, add_special_tokens=False),
        ids=lambda _, result: flat([encoding.ids for encoding in result]),
    ),
    "quicktok": Encoder(
        packages=("quicktok",),
        load=lambda file: package("quicktok").get_encoding(*file),
        encode=lambda encoder, texts, n: encoder.encode_batch(texts, n),
        ids=lambda _, result: np.asarray(result[0], dtype=np.uint32),
        file=imported,
    ),
    "tokie": Encoder(
        packages=("tokie",),
        load=lambda file: package("tokie").Tokenizer.from_json(file),
        encode=lambda encoder, texts, _: encoder.encode_batch_flat(texts, add_special_tokens=False),
        ids=lambda _, result: np.asarray(result[0], dtype=np.uint32),
    ),
    "kitoken": Encoder(
        packages=("kitoken",),
        load=lambda file: package("kitoken").Kitoken.from_tokenizers_file(file),
        encode=lambda encoder, texts, _: encoder.encode_all(texts, False),
        ids=lambda _, result: flat(result),
    ),
    "tiktoken": Encoder(
        packages=("tiktoken",),
        load=load_tiktoken,
        encode=lambda encoder, texts, n: encoder[0].encode_ordinary_batch(texts, num_threads=n),
        ids=lambda encoder, result: encoder[1][flat(result)],
        file=ranks_of,
    ),
    "tokenizers": Encoder(
        packages=("tokenizers",),
        load=lambda file: package("tokenizers").Tokenizer.from_file(file),
        encode=lambda encoder, texts, _: encoder.encode_batch_fast(texts, add_special_tokens=False),
        ids=lambda _, result: flat([encoding.ids for encoding in result]),
    ),
}


def encode(job: Row) -> Row:
    """Load a tokenizer, encode a short text, and encode the text. Cold time is the sum of the two encode calls."""
    encoder = ENCODERS[job["engine"]]
    threads, text = job["threads"], Path(job["text"]).read_bytes()
    file = encoder.file(Path(job["tokenizer"]), Path(job["scratch"]))
    first, documents = encoder.documents(FIRST_TEXT.encode()), encoder.documents(text)
    for name in encoder.packages:
        getattr(package(name), "Tokenizer", None)  # tokenmill imports it when it is first used
    gc.collect()
    load_seconds, _, loaded = timed(lambda: encoder.load(file))
    first_seconds, first_cpu, _ = timed(lambda: encoder.encode(loaded, first, threads))
    seconds, cpu, result = timed(lambda: encoder.encode(loaded, documents, threads))
    return {
        "text_bytes": len(text),
        "load_s": load_seconds,
        "first_call_s": first_seconds,
        "cold_s": first_seconds + seconds,
        "cold_cpu_s": first_cpu + cpu,
        "digest": digest(encoder.ids(loaded, result).tobytes()),
    }


# -- from a file to a dataset by hand


def convert(job: Row) -> Row:
    """Read a file and encode it, as a script would. With "output", also write tokens and start flags with zarr."""
    encoder = ENCODERS[job["engine"]]
    loaded = encoder.load(encoder.file(Path(job["tokenizer"]), Path(job["scratch"])))
    if job["engine"] == "gigatoken":
        source = package("gigatoken").TextFileSource([job["text"]], separator=SEPARATOR.encode())
        result = loaded.encode_files(source, parallel=job["threads"] > 1)
    else:
        result = encoder.encode(loaded, encoder.documents(Path(job["text"]).read_bytes()), job["threads"])
    if "output" in job:
        write_arrays(encoder.ids(loaded, result), lengths(job["engine"], result), Path(job["output"]))
    return {"digest": digest(encoder.ids(loaded, result).tobytes())} if job.get("digest") else {}


def lengths(engine: str, result: Any) -> NDArray[np.int64]:
    """Return the number of tokens per document."""
    if engine == "gigatoken":
        return np.asarray(package("awkward").num(result), dtype=np.int64)
    offsets = np.frombuffer(result[1], dtype=np.uint64).astype(np.int64)  # fastokens
    return np.diff(offsets)


def write_arrays(ids: IDs, document_lengths: NDArray[np.int64], output: Path) -> None:
    import zarr

    starts = np.concatenate([[0], np.cumsum(document_lengths[document_lengths > 0])]).astype(np.uint64)
    tokens = ids * np.uint32(2)
    tokens[starts[:-1]] += 1
    zarr.create_array(output / "encoded_tokens", data=tokens)
    zarr.create_array(output / "seq_starts", data=starts)


# -- trainers: each prepares its input and returns the call to time, which returns merges or the number of entries

Merges = list[tuple[bytes, bytes]]
Training = Callable[[], "int | Callable[[], Merges]"]


def train_ours(text: Path, entries: int, threads: int) -> Training:
    """Train with the tie rule of tokenizers, so that the merges can be compared."""
    train = package("bpe").train

    def run() -> Callable[[], Merges]:
        tokenizer = train([text], entries, [SEPARATOR], tie_break="huggingface", threads=threads)
        return lambda: list(tokenizer.merges)

    return run


def train_gigatoken(text: Path, entries: int, threads: int) -> Training:
    content = text.read_bytes()

    def run() -> Callable[[], Merges]:
        merges = package("gigatoken").train_bpe(content, entries, [SEPARATOR], separator=SEPARATOR.encode())[
            1
        ]
        return lambda: [(bytes(left), bytes(right)) for left, right in merges]

    return run


def train_gigabpe(text: Path, entries: int, threads: int) -> Training:
    def run() -> Callable[[], Merges]:
        options = {"special_tokens": [SEPARATOR], "pretokenizer": "bytelevel", "threads": threads}
        merges = package("gigabpe").train_bpe([str(text)], entries, **options)[1]
        return lambda: [(to_bytes(left), to_bytes(right)) for left, right in merges]

    return run


def train_rustbpe(text: Path, entries: int, threads: int) -> Training:
    documents = text.read_text().split(SEPARATOR)
    tokenizer = package("rustbpe").Tokenizer()

    def run() -> int:
        tokenizer.train_from_iterator(iter(documents), entries - 1, pattern=GPT2_PATTERN)
        return int(tokenizer.vocab_size) + 1  # there are no special tokens

    return run


def train_ffbpe(text: Path, entries: int, threads: int) -> Training:
    documents = text.read_text().split(SEPARATOR)
    options = {"vocab_size": entries, "special_tokens": [SEPARATOR]}
    return lambda: len(package("ffbpe").train_bpe(iter(documents), **options).vocab)


def train_sentencepiece(text: Path, entries: int, threads: int) -> Training:
    """Train with sentencepiece, which splits at spaces."""
    sentencepiece = package("sentencepiece")

    def run() -> int:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            input=str(text),
            model_writer=model,
            model_type="bpe",
            vocab_size=entries,
            byte_fallback=True,
            normalization_rule_name="identity",
            max_sentence_length=1 << 20,  # longer lines are left out of the training
            num_threads=threads,
            minloglevel=2,
        )
        return int(sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size())

    return run


def train_tokenizers(text: Path, entries: int, threads: int) -> Training:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    documents = text.read_text().split(SEPARATOR)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=entries, special_tokens=[SEPARATOR], initial_alphabet=alphabet, show_progress=False
    )

    def batches() -> Iterator[list[str]]:
        for start in range(0, len(documents), 1000):
            yield documents[start : start + 1000]

    def merges() -> Merges:
        found = json.loads(tokenizer.to_str())["model"]["merges"]
        return [(to_bytes(left), to_bytes(right)) for left, right in found]

    def run() -> Callable[[], Merges]:
        tokenizer.train_from_iterator(batches(), trainer)
        return merges

    return run


TRAINERS: dict[str, Callable[[Path, int, int], Training]] = {
    "tokenmill": train_ours,
    "gigatoken": train_gigatoken,
    "gigabpe": train_gigabpe,
    "ffbpe": train_ffbpe,
    "rustbpe": train_rustbpe,
    "tokenizers": train_tokenizers,
    "sentencepiece": train_sentencepiece,
}


def to_bytes(entry: str) -> bytes:
    """Return the bytes of an entry in the byte alphabet."""
    return bytes(map(BYTE_OF.__getitem__, entry))


def train(job: Row) -> Row:
    path, threads = Path(job["text"]), job["threads"]
    package("bpe" if job["engine"] == "tokenmill" else job["engine"])
    run = TRAINERS[job["engine"]](path, job["entries"], threads)
    gc.collect()
    seconds, cpu, outcome = timed(run)
    row: Row = {"text_bytes": path.stat().st_size, "train_s": seconds, "train_cpu_s": cpu}
    row["peak_bytes"] = peak()
    if callable(outcome):
        merges = outcome()
        row["entries"] = len(merges) + 257
        lines = (f"{left.hex()} {right.hex()}\n" for left, right in merges)
        row["merges"] = digest("".join(lines).encode())
    else:
        row["entries"] = outcome
    return row


# -- the process


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the seconds of wall clock, the seconds of processor time of all threads, and the result."""
    started, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - started, time.process_time() - cpu, result


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def peak() -> int:
    """Return the peak resident memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def serve(kinds: dict[str, Callable[[Row], Row]]) -> None:
    """Run the job of the command line, pinned to as many cores as it has threads, and print the answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps output of the engines out of the answer
    job = json.loads(sys.argv[1])
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[-job["threads"] :])
    try:
        answer = kinds[job["kind"]](job)
    except BaseException as error:  # a Rust panic is not an Exception
        answer = {"failed": (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:200]}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    os._exit(0)  # skips destructors, which can take seconds


if __name__ == "__main__":
    serve({"encode": encode, "convert": convert, "train": train})
