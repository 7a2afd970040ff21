"""A small corpus, a tokenizer trained on it by the reference, and the conversion done naively, for these tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
import zarr

from bpe import reference
from bpe.tokenizer import Tokenizer

END = "<|endoftext|>"
SPECIAL_TOKENS = [END, "<|im_start|>", "<|endoftext"]  # the last is a prefix of the first

WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "it's",
    "was",
    "he",
    "for",
    "on",
    "with",
    "don't",
    "---",
]
WORDS += ["naïve", "façade", "東京都", "привет", "🙂👍🏽", "\t", "x1", "2026", "\x00"]


def make_documents(count: int, seed: int) -> list[str]:
    """Seeded documents in many scripts, with special tokens, line ends of all kinds, and some empty ones."""
    rng = random.Random(seed)
    glue = [" ", " ", " ", "\n", "\r\n", "  ", "\n\n", "<|im_start|>", "<|endoftext"]
    documents = []
    for _ in range(count):
        words = rng.choices(WORDS, k=rng.choice([0, 1, 2, 3, 8, 30]))
        documents.append("".join(word + rng.choice(glue) for word in words))
    return documents


def train_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer of 60 merges with the special tokens above, saved as tokenizer.json."""
    counts = reference.count_pretokens(make_documents(60, seed=1), SPECIAL_TOKENS)
    merges = reference.train(counts, 60)
    vocab = {index: bytes([byte]) for index, byte in enumerate(reference.printable_bytes())}
    for left, right in merges:
        if left + right not in vocab.values():
            vocab[len(vocab)] = left + right
    tokenizer = Tokenizer(vocab, merges, SPECIAL_TOKENS)
    tokenizer.save(path)
    return tokenizer


@dataclass
class Split:
    """What a split must hold."""

    sequences: list[list[int]]
    documents: int = 0

    @property
    def encoded(self) -> list[int]:
        return [id_ * 2 + (place == 0) for ids in self.sequences for place, id_ in enumerate(ids)]

    @property
    def starts(self) -> list[int]:
        return [0, *np.cumsum([len(ids) for ids in self.sequences], dtype=int).tolist()]


class Naive:
    """The conversion in plain Python: split, hash, encode by the reference, one document after the other."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._arguments = (dict(tokenizer.vocab), tokenizer.merges, tokenizer.special_tokens, "gpt2")
        self._known: dict[tuple[bytes, bool], list[int]] = {}

    def ids(self, document: bytes, special: bool = True) -> list[int]:
        """The ids; without special, special tokens are text like any other."""
        if (document, special) not in self._known:
            vocab, merges, special_tokens, pattern = self._arguments
            tokens = special_tokens if special else {}
            self._known[document, special] = reference.encode(
                document.decode(), vocab, merges, tokens, pattern
            )
        return self._known[document, special]

    def convert_documents(
        self,
        documents: Sequence[bytes],
        special: bool = False,
        fraction: float = 0.005,
        seed: int = 0,
    ) -> dict[str, Split]:
        """Documents as JSON Lines and Parquet hold them."""
        splits = {"train": Split([]), "validation": Split([])}
        for document in documents:
            held_out = xxhash.xxh64_intdigest(document, seed) < fraction * 2**64
            split = splits["validation" if held_out else "train"]
            split.documents += 1
            if ids := self.ids(document, special):
                split.sequences.append(ids)
        return splits

    def convert(
        self,
        files: Sequence[Path],
        separator: str = END,
        fraction: float = 0.005,
        seed: int = 0,
        validation: Sequence[Path] = (),
    ) -> dict[str, Split]:
        splits = {"train": Split([]), "validation": Split([])}
        for path in [*files, *validation]:
            text = path.read_bytes().decode(errors="replace").encode()
            documents = text.split(separator.encode())
            if not documents[-1]:
                documents.pop()
            for document in documents:
                by_hash = xxhash.xxh64_intdigest(document, seed) < fraction * 2**64
                split = splits[
                    "validation" if path in validation or (by_hash and not validation) else "train"
                ]
                split.documents += 1
                if ids := self.ids(document):
                    split.sequences.append(ids)
        return splits


def read_dataset(path: Path) -> dict[str, tuple[list[int], list[int], int]]:
    """Split -> (encoded_tokens, seq_starts, max_token_id), read by zarr and nothing of ours."""
    root: Any = zarr.open_group(path, mode="r")
    return {
        name: (
            root[name]["encoded_tokens"][:].tolist(),
            root[name]["seq_starts"][:].tolist(),
            root[name].attrs["max_token_id"],
        )
        for name in ("train", "validation")
    }


def expected_dataset(splits: dict[str, Split]) -> dict[str, tuple[list[int], list[int], int]]:
    """The same of a naive conversion."""
    return {
        name: (split.encoded, split.starts, max((max(ids) for ids in split.sequences), default=0))
        for name, split in splits.items()
    }


def tree(path: Path) -> dict[str, bytes]:
    """Relative path -> bytes of every file below."""
    return {
        str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()
    }
