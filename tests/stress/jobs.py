"""The jobs that are disturbed, and their inputs."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runs import sample_documents, tokenizer_bytes

from bpe import Tokenizer, reference

END = "<|endoftext|>"
SMALL = "--text-chunk-bytes 700 --chunk-tokens 512 --validation-fraction 0.3 --progress none --workers 2"
CONVERT = f"convert a.txt packed.gz --tokenizer tok.json --output out {SMALL}"
MASKED = (
    "convert marked.jsonl --prompt-field prompt --completion-field completion --tokenizer tok.json "
    f"--output out {SMALL}"
)
TRAIN = "train a.txt --vocab-size 300 --quiet --output new.json"
EXPORT = "export out --to npy --output exported"
IMPORT = "import exported/train.npy --from npy --tokenizer tok.json --output imported"


def trained(texts: list[str], count: int, special: list[str], **options: Any) -> Tokenizer:
    """Return a tokenizer of the bytes and `count` merges. options: of Tokenizer."""
    merges = reference.train(reference.count_pretokens(texts, [END]), count)
    vocab = {index: bytes([byte]) for index, byte in enumerate(reference.printable_bytes())}
    for left, right in merges:
        if left + right not in vocab.values():
            vocab[len(vocab)] = left + right
    return Tokenizer(vocab, merges, special, **options)


def make_inputs(root: Path) -> None:
    """Write texts, records, two tokenizers and a folder for scratch files."""
    (root / "scratch").mkdir()
    rng = random.Random(3)
    words = ["the", "of", "naïve", "東京都", "it's", "\n\n", "x1", "<|im_start|>"]
    texts = [" ".join(rng.choices(words, k=rng.choice([0, 3, 20, 60]))) for _ in range(24)]
    for name, own in [("a.txt", texts[:12]), ("b.txt", texts[12:])]:
        (root / name).write_text(END.join(own), encoding="utf-8", newline="")
    (root / "packed.gz").write_bytes(gzip.compress(END.join(texts[::3]).encode(), mtime=0))
    records = [{"prompt": f"the {number} of", "completion": f"it's {number}"} for number in range(60)]
    (root / "marked.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    for name, count in [("tok.json", 30), ("other.json", 12)]:
        trained(texts, count, [END, "<|im_start|>"]).save(root / name)
    for path in root.iterdir():
        os.utime(path, (1e9, 1e9))


@dataclass(frozen=True)
class Job:
    """A command of tokenmill.

    output: file or dataset that it makes or replaces.
    before: commands that prepare the folder.
    kept: file that a command keeps for a later one if a step after counting fails or is interrupted.
    settings: of driver.py.
    objects: inputs below the prefix of the job in a bucket. A command names them and its output with "{store}".
    """

    name: str
    command: str
    output: str
    before: tuple[str, ...] = ()
    kept: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[str, bytes] = field(default_factory=dict)
    make_inputs: Callable[[Path], None] = make_inputs


JOBS = {
    job.name: job
    for job in [
        Job("convert", CONVERT, "out"),
        Job("replace", CONVERT.replace("a.txt", "b.txt") + " --overwrite", "out", (CONVERT,)),
        Job("convert with scratch", f"{CONVERT} --scratch scratch", "out"),
        Job("convert, format 3", f"{CONVERT} --zarr-format 3", "out"),
        Job("convert, loss mask", MASKED, "out"),
        Job(
            "job array", f"{CONVERT} --executor process", "out", (f"{CONVERT} --task-index 1 --task-count 2",)
        ),
        Job("retokenize", "retokenize out --tokenizer other.json --output new", "new", (CONVERT,)),
        Job("export", EXPORT, "exported", (CONVERT,)),
        Job("import", IMPORT, "imported", (CONVERT, EXPORT)),
        Job(
            "import over a dataset",
            IMPORT.replace("train.npy", "validation.npy") + " --overwrite",
            "imported",
            (CONVERT, EXPORT, IMPORT),
        ),
        Job("train", TRAIN, "new.json", kept="new.counts"),
        Job(
            "train over an old file", TRAIN.replace("a.txt", "b.txt"), "new.json", (TRAIN,), kept="new.counts"
        ),
        Job("count", "count a.txt --output new.counts --quiet", "new.counts"),
    ]
}


def put_tokenizer(root: Path) -> None:
    """Write tok.json, with the special tokens of the strategies."""
    (root / "tok.json").write_bytes(tokenizer_bytes())


def _store_jobs() -> list[Job]:
    """Return a conversion from a store to a store, and one that replaces a dataset."""
    documents = sample_documents(30, seed=4)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in documents[:20])
    objects = {
        "in/bad.txt": END.join(documents[:3]).encode() + b"<|endoftext|>bad \xff<|endoftext|>good",
        "in/en.txt": END.join(documents).encode(),
        "in/lines.jsonl.gz": gzip.compress(lines.encode() + b"{no json\n", mtime=0),
    }
    command = (
        "convert {store}/in/* --output {store}/out --tokenizer tok.json --text-chunk-bytes 700 --chunk-tokens 256 "
        "--validation-fraction 0.2 --zarr-format 3 --on-error quarantine --quiet --progress none --workers 2"
    )
    settings = {"lease_seconds": 0, "executor": "inline"}
    job = Job("store", command, "out", settings=settings, objects=objects, make_inputs=put_tokenizer)
    return [
        job,
        replace(job, name="replace on a store", command=f"{command} --seed 5 --overwrite", before=(command,)),
    ]


STORE_JOBS = {job.name: job for job in _store_jobs()}
