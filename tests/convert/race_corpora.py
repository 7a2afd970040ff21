"""Random corpora for conversions that race: files of all kinds and sizes, and what must become of their documents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import xxhash
import zarr
from input_kinds import KINDS, PACKED, compressed, json_lines, write_kind
from naive_conversion import WORDS

from bpe import reference
from bpe.tokenizer import Tokenizer

Document = tuple[str, bool]  # and whether the texts of special tokens in it count: in text files alone
# A corpus of 0.2 to 2 MB of text, now and then of more: most orders of events need many tasks, not many bytes.
_TEXT_BYTES = [200_000, 500_000, 1_000_000]
_LARGE_BYTES = 4_000_000
_ALL_HASHES = 1 << 64


@dataclass
class Corpus:
    """Files in `root`/inputs, perhaps one in `root`/held-out, and the options that decide a dataset's bytes.

    is_overtaken: one large compressed file, and many small ones that are done before it. text_bytes: of all documents;
    file_bytes: of all files; documents of the inputs and those held out, in order. url: where the files lie as well,
    and are read from; it ends with "/", or is "" for the folder.
    """

    root: Path
    what: str = ""
    options: list[str] = field(default_factory=list)
    is_overtaken: bool = False
    text_bytes: int = 0
    file_bytes: int = 0
    documents: list[Document] = field(default_factory=list)
    held_out: list[Document] = field(default_factory=list)
    fraction: float = 0.0
    held_out_count: int | None = None
    seed: int = 0
    for_store: bool = False
    url: str = ""

    @property
    def command(self) -> list[str]:
        """Inputs and options, but for the output."""
        held_out = sorted(path.name for path in (self.root / "held-out").iterdir())
        validation = (
            ["--validation", *(f"{self.url}held-out/{name}" for name in held_out)] if held_out else []
        )
        inputs = f"{self.url}inputs/*"
        return [inputs, *validation, "--tokenizer", "tok.json", *self.options, "--progress", "none"]


def make_corpus(rng: random.Random, root: Path, tokenizer_path: Path, for_store: bool = False) -> Corpus:
    """A corpus in the new folder `root`, with the tokenizer. for_store: of few text, in a layout for stores."""
    corpus = Corpus(root, is_overtaken=rng.random() < 0.5, for_store=for_store)
    for name in ("inputs", "held-out"):
        (root / name).mkdir(parents=True)
    (root / "tok.json").write_bytes(tokenizer_path.read_bytes())
    text_bytes = _LARGE_BYTES if rng.random() < 0.06 else rng.choice(_TEXT_BYTES)
    if for_store:
        text_bytes //= 10  # a request takes as long as many calls of a disk
    packed = [kind for kind in KINDS if kind.split(".")[1] in PACKED]
    kinds = packed if corpus.is_overtaken else rng.choice([KINDS, KINDS, [rng.choice(KINDS)]])
    for number, size in enumerate(_file_sizes(rng, text_bytes, corpus.is_overtaken)):
        kind = rng.choice(kinds)
        corpus.documents += _write(rng, corpus, corpus.root / "inputs" / f"{number:03}", kind, size)
        corpus.what += f" {kind}:{size // 1000}k"
    _choose_options(rng, corpus)
    corpus.text_bytes = sum(len(document) for document, _ in corpus.documents)
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


def _write(rng: random.Random, corpus: Corpus, path: Path, kind: str, size: int) -> list[Document]:
    texts = list(_documents(rng, size))
    is_text = kind.startswith("txt.")
    if is_text and texts and not texts[-1]:
        texts[-1] = "end"  # a separator at the end of a file begins no document
    members = 1 if kind.endswith(".none") else rng.choice([1, 1, 3])
    if kind.startswith("jsonl") and rng.random() < 0.2:
        # Bad records, which are left out: lines that are none, in any place.
        lines = json_lines(texts, seed=size).splitlines()
        for place in sorted(rng.choices(range(len(lines) + 1), k=rng.choice([1, 20])), reverse=True):
            lines.insert(place, rng.choice([b"{", b'{"text": 5}', b'{"other": "x"}']))
        compression = kind.partition(".")[2]
        suffix = "" if compression == "none" else f".{compression}"
        path.with_name(f"{path.name}.jsonl{suffix}").write_bytes(
            compressed(b"\n".join(lines), compression, members)
        )
    else:
        write_kind(path, texts, kind, members, seed=size)
    return [(text, is_text) for text in texts]


def _documents(rng: random.Random, size: int) -> Iterator[str]:
    """Documents of about `size` characters: most short, some empty, some copies, in some files a giant one."""
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
            words = rng.choices(WORDS, k=length // 5 + 1)
            words.append(str(rng.randrange(1000)))
            text = glue.join(words)[:length]
        if len(kept) < 50:
            kept.append(text)
        yield text
        left -= len(text) + 15


def _choose_options(rng: random.Random, corpus: Corpus) -> None:
    options = ["--on-error", rng.choice(["skip", "quarantine"]), "--max-errors", "none"]
    corpus.seed = rng.choice([0, 7])
    options += ["--seed", str(corpus.seed)]
    layouts = [("2", 1000), ("2", 3000), ("3", 10)]  # of format 3, 256 are a file
    if not corpus.is_overtaken:
        layouts += [("2", 1 << 16), ("3", 100)]
    zarr_format, chunk_tokens = rng.choice([("3", 30), ("3", 100)] if corpus.for_store else layouts)
    options += ["--zarr-format", zarr_format, "--chunk-tokens", str(chunk_tokens)]
    options += ["--compression", rng.choice(["zstd", "zstd", "none"])]
    how = rng.choice(["fraction", "fraction", "fraction", "count", "files"])
    if how == "fraction":
        corpus.fraction = rng.choice([0.0, 0.005, 0.1, 0.5, 1.0])
        options += ["--validation-fraction", str(corpus.fraction)]
    elif how == "count":
        corpus.held_out_count = rng.choice([0, 10, 200])
        options += ["--validation-docs", str(corpus.held_out_count)]
    else:
        path = corpus.root / "held-out" / "000"
        corpus.held_out = _write(rng, corpus, path, rng.choice(KINDS), corpus.text_bytes // 10 + 20_000)
    corpus.options = options


class Stranger:
    """Reads documents and datasets with nothing of `convert` and `flat_tokens`: the reference, a hash, zarr."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        special = set(tokenizer.special_tokens.values())
        self._id_of = {entry: id_ for id_, entry in tokenizer.vocab.items() if id_ not in special}
        self._ranks = {pair: rank for rank, pair in enumerate(tokenizer.merges or ())}
        self._pretoken_ids = cache(self._encode_pretoken)

    def _encode_pretoken(self, pretoken: bytes) -> list[int]:
        return reference.encode_pretoken(pretoken, self._id_of, self._ranks)

    def ids(self, document: str, special: bool) -> list[int]:
        """The ids of a document."""
        tokens = self._tokenizer.special_tokens if special else {}
        ids: list[int] = []
        for part, is_special in reference.cut_at_special_tokens(document, tokens):
            if is_special:
                ids.append(tokens[part])
                continue
            for pretoken in reference.pretokenize(part):
                ids += self._pretoken_ids(pretoken)
        return ids

    def difference(self, corpus: Corpus, dataset: Path) -> str:
        """What of the dataset is not what the documents of the corpus are, "" if nothing."""
        hashes = [xxhash.xxh64_intdigest(text.encode(), corpus.seed) for text, _ in corpus.documents]
        threshold = int(corpus.fraction * 2**64)
        if corpus.held_out_count is not None:
            ranked = sorted(hash_ for hash_, (text, _) in zip(hashes, corpus.documents, strict=True) if text)
            count = corpus.held_out_count
            threshold = _ALL_HASHES if len(ranked) < count else ranked[count - 1] + 1 if count else 0
        splits: dict[str, list[Document]] = {"train": [], "validation": list(corpus.held_out)}
        for hash_, document in zip(hashes, corpus.documents, strict=True):
            splits["validation" if hash_ < threshold else "train"].append(document)
        root = zarr.open_group(dataset, mode="r")
        for split, documents in splits.items():
            sequences = [ids for text, special in documents if (ids := self.ids(text, special))]
            starts = np.cumsum([0, *map(len, sequences)])
            flat = np.fromiter((id_ for ids in sequences for id_ in ids), np.int64, int(starts[-1]))
            encoded = flat * 2
            encoded[starts[:-1]] += 1
            for name, expected in (("seq_starts", starts), ("encoded_tokens", encoded)):
                found = root[f"{split}/{name}"][:]
                if len(found) != len(expected):
                    return f"{split}/{name} has {len(found):,} items, the documents {len(expected):,}"
                if (different := np.flatnonzero(found != expected)).size:
                    return f"{split}/{name}[{different[0]:,}] is the first of {different.size:,} other items"
            if root[split].attrs["max_token_id"] != max(flat, default=0):
                return f"{split}: max_token_id is {root[split].attrs['max_token_id']}"
        return ""
