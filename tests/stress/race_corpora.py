"""Random corpora for races: files of all kinds and sizes, and the options that decide their dataset."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from input_kinds import KINDS, PACKED, json_lines, write_kind
from naive import Naive, Rules, differences
from runs import TRAINING_TEXT, tokenizer, tokenizer_bytes
from strategies import compressed

# Text of a corpus, sometimes more. Orders of events need many tasks and few bytes.
_TEXT_BYTES = [200_000, 500_000, 1_000_000]
_LARGE_BYTES = 4_000_000
_WORDS = [*TRAINING_TEXT.split()[:20], "---", "🙂👍🏽", "\t", "x1", "2026", "\x00"]


@dataclass
class Corpus:
    """Files in `root`/inputs, perhaps one in `root`/held-out, and the options of their conversion.

    is_overtaken: one large compressed file, and many small files that are done before it.
    text_bytes, file_bytes: about the size of all documents, and the size of all files.
    url: the place of copies of the files, which ends with "/"; "" for the folder.
    """

    root: Path
    is_overtaken: bool
    for_store: bool
    what: str = ""
    options: list[str] = field(default_factory=list)
    rules: Rules = field(default_factory=Rules)
    text_bytes: int = 0
    file_bytes: int = 0
    url: str = ""

    @property
    def command(self) -> list[str]:
        """The inputs and all options except the output."""
        held_out = [f"{self.url}held-out/{path.name}" for path in self._files("held-out")]
        validation = ["--validation", *held_out] if held_out else []
        inputs = f"{self.url}inputs/*"
        return [inputs, *validation, "--tokenizer", "tok.json", *self.options, "--progress", "none"]

    def _files(self, folder: str) -> list[Path]:
        return sorted((self.root / folder).iterdir())

    def difference(self, dataset: Path) -> str:
        """Return the first difference from the naive conversion, "" if there is none."""
        files = [[str(path) for path in self._files(folder)] for folder in ("inputs", "held-out")]
        return next(iter(differences(dataset, Naive(tokenizer(), self.rules).convert(*files))), "")


def make_corpus(rng: random.Random, root: Path, for_store: bool = False) -> Corpus:
    """Write a corpus and the tokenizer to the new folder `root`. for_store: little text, in a layout for stores."""
    corpus = Corpus(root, is_overtaken=rng.random() < 0.5, for_store=for_store)
    for name in ("inputs", "held-out"):
        (root / name).mkdir(parents=True)
    (root / "tok.json").write_bytes(tokenizer_bytes())
    corpus.text_bytes = _LARGE_BYTES if rng.random() < 0.06 else rng.choice(_TEXT_BYTES)
    if for_store:
        corpus.text_bytes //= 10  # a request takes as long as many calls of a disk
    packed = [kind for kind in KINDS if kind.split(".")[1] in PACKED]
    kinds = packed if corpus.is_overtaken else rng.choice([KINDS, KINDS, [rng.choice(KINDS)]])
    for number, size in enumerate(_file_sizes(rng, corpus.text_bytes, corpus.is_overtaken)):
        kind = rng.choice(kinds)
        _write(rng, corpus.root / "inputs" / f"{number:03}", kind, size)
        corpus.what += f" {kind}:{size // 1000}k"
    _choose_options(rng, corpus)
    corpus.file_bytes = sum(path.stat().st_size for path in root.glob("*/*"))
    return corpus


def _file_sizes(rng: random.Random, text_bytes: int, is_overtaken: bool) -> list[int]:
    if is_overtaken:
        count = rng.choice([40, 80])
        weights = [count / 2 if number == 1 else 1.0 for number in range(count)]
    else:
        count = rng.choice([1, 2, 4, 8, 28])
        weights = [rng.choice([1.0, 1.0, 1.0, 5.6, rng.paretovariate(1)]) for _ in range(count)]
    return [int(text_bytes * weight / sum(weights)) for weight in weights]


def _write(rng: random.Random, path: Path, kind: str, size: int) -> None:
    texts = list(_documents(rng, size))
    members = 1 if kind.endswith(".none") else rng.choice([1, 1, 3])
    if kind.startswith("jsonl") and rng.random() < 0.2:  # with bad records
        lines = json_lines(texts, seed=size).splitlines()
        for at in sorted(rng.choices(range(len(lines) + 1), k=rng.choice([1, 20])), reverse=True):
            lines.insert(at, rng.choice([b"{", b'{"text": 5}', b'{"other": "x"}']))
        compression = kind.partition(".")[2]
        suffix = "" if compression == "none" else f".{compression}"
        data = compressed(b"\n".join(lines), compression, members)
        path.with_name(f"{path.name}.jsonl{suffix}").write_bytes(data)
    else:
        write_kind(path, texts, kind, members, seed=size)


def _documents(rng: random.Random, size: int) -> Iterator[str]:
    """Documents of about `size` characters: most are short, some are empty or copies, some files have a giant one."""
    giant = rng.random() * size if rng.random() < 0.15 else -1.0
    glue = rng.choice([" ", " ", "\n", "<|im_start|>", "<|endoftext"])
    mean = rng.choice([20, 200, 200, 2000])
    kept: list[str] = []
    left = size
    while left > 0:
        chance = rng.random()
        length = 0 if chance < 0.05 else int(mean * rng.paretovariate(1.3))
        if left <= giant:
            length, giant = size // 2, -1.0
        length = min(length, left)
        if chance < 0.1 and kept:
            text = rng.choice(kept)
        else:
            words = rng.choices(_WORDS, k=length // 5 + 1)
            words.append(str(rng.randrange(1000)))
            text = glue.join(words)[:length]
        if len(kept) < 50:
            kept.append(text)
        yield text
        left -= len(text) + 15


def _choose_options(rng: random.Random, corpus: Corpus) -> None:
    rules: dict[str, Any] = {"seed": rng.choice([0, 7])}
    layouts = [("2", 1000), ("2", 3000), ("3", 10)]  # in format 3 a file has 256 Zarr chunks
    if not corpus.is_overtaken:
        layouts += [("2", 1 << 16), ("3", 100)]
    zarr_format, chunk_tokens = rng.choice([("3", 30), ("3", 100)] if corpus.for_store else layouts)
    how = rng.choice(["fraction", "fraction", "fraction", "count", "files"])
    if how == "fraction":
        rules["validation_fraction"] = rng.choice([0.0, 0.005, 0.1, 0.5, 1.0])
    elif how == "count":
        rules["validation_docs"] = rng.choice([0, 10, 200])
    else:
        size = corpus.text_bytes // 10 + 20_000
        _write(rng, corpus.root / "held-out" / "000", rng.choice(KINDS), size)
    corpus.rules = Rules(**rules)
    corpus.options = ["--on-error", rng.choice(["skip", "quarantine"]), "--max-errors", "none"]
    corpus.options += ["--zarr-format", zarr_format, "--chunk-tokens", str(chunk_tokens)]
    corpus.options += ["--compression", rng.choice(["zstd", "zstd", "none"])]
    for name, value in rules.items():
        corpus.options += [f"--{name.replace('_', '-')}", str(value)]
