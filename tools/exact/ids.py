"""Compare IDs with tiktoken and Hugging Face tokenizers, on generated texts, random texts and files.

A rank file is FILE:PATTERN (gpt2, cl100k, o200k, llama3, qwen2). It is checked as three tokenizers: unchanged, against
tiktoken; written as a tokenizer.json with ignore_merges and its list of merges, against the same IDs; and with that
list without ignore_merges, against Hugging Face tokenizers. qwen2 is also checked with NFC.

A tokenizer.json is checked against Hugging Face tokenizers. Our tokenizer encodes every part of a text twice, with one
and with two threads. Generated texts use the vocabularies of `encoder`.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bpe import Tokenizer
from bpe.patterns import PATTERNS
from exact import drawn_texts, encoder
from exact.steps import Step

SEPARATOR = "<|endoftext|>"
PIECE_BYTES = 8_000_000
DRAWN_STEPS = 100  # steps of a tokenizer before the next is loaded
Encode = Callable[[list[str]], list[NDArray[np.uint32]]]


@dataclass(frozen=True)
class Check:
    """Our tokenizer and a peer. theirs: documents -> IDs of each."""

    name: str
    ours: Tokenizer
    theirs: Encode


def generated(seed: int, start: int) -> Iterator[Step]:
    """Compare random vocabularies with one text each, endlessly."""
    for number in itertools.count(start):
        case = encoder.draw(random.Random(f"{seed} {number} ids"))
        text = case.text.decode().split(SEPARATOR)
        ours = Tokenizer(case.entries, case.merges, None, case.pattern, ignore_merges=case.ignore_merges)
        theirs = with_tokenizers(ours) if case.merges is not None else with_tiktoken(ours, case.pattern, None)
        difference, tokens = compare(Check("generated", ours, theirs), text)
        if difference:
            yield Step(number, 0, f"seed {seed} step {number}: {difference}")
        yield Step(number + 1, tokens)


def of_files(tokenizers: list[str], texts: list[Path]) -> Callable[[int, int], Iterator[Step]]:
    """Compare all tokenizers on all texts, PIECE_BYTES per step."""

    def steps(_: int, start: int) -> Iterator[Step]:
        number = 0
        for given, path in itertools.product(tokenizers, texts):
            count = sum(1 for _ in pieces(path, PIECE_BYTES))
            for check in checks_of(given):
                number += count
                if number <= start:
                    continue
                for at, piece in enumerate(pieces(path, PIECE_BYTES), number - count):
                    if at < start:
                        continue
                    difference, tokens = compare(check, piece)
                    if difference:
                        yield Step(at, 0, f"{check.name}, {path.name}, step {at}: {difference}")
                    yield Step(at + 1, tokens)

    return steps


def of_drawn_texts(tokenizers: list[str], texts: list[Path]) -> Callable[[int, int], Iterator[Step]]:
    """Compare random texts for each tokenizer in turn, DRAWN_STEPS at a time, endlessly."""

    def steps(seed: int, start: int) -> Iterator[Step]:
        if not tokenizers:
            return
        for turn in itertools.count(start // DRAWN_STEPS):
            checks = list(checks_of(tokenizers[turn % len(tokenizers)]))
            first = turn * DRAWN_STEPS
            for number in range(max(start, first), first + DRAWN_STEPS):
                drawn = random.Random(f"{seed} {number} drawn")
                check = checks[number % len(checks)]
                difference, tokens = compare(
                    check, drawn_texts.documents(drawn, check.ours, texts, SEPARATOR)
                )
                if difference:
                    yield Step(number, 0, f"{check.name}, seed {seed} step {number}: {difference}")
                yield Step(number + 1, tokens)

    return steps


def pieces(path: Path, piece_bytes: int) -> Iterator[list[str]]:
    """Yield the documents of a file in groups."""
    held = b""
    with path.open("rb") as file:
        while block := file.read(piece_bytes):
            *whole, held = (held + block).split(SEPARATOR.encode())
            if whole:
                yield [document.decode(errors="replace") for document in whole]
    if held:
        yield [held.decode(errors="replace")]


def compare(check: Check, documents: list[str]) -> tuple[str | None, int]:
    """Return the first difference, or None, and the number of tokens."""
    expected = check.theirs(documents)
    buffer = SEPARATOR.join(documents).encode()
    for threads in (1, 2):
        rows = check.ours.encode_documents(buffer, SEPARATOR, threads=threads)
        if len(rows) != len(documents):
            return f"{len(rows)} rows for {len(documents)} documents", 0
        for index, (row, ids) in enumerate(zip(rows, expected, strict=True)):
            if not np.array_equal(row, ids):
                return f"+{index}: {where(row, ids, check.ours)}", 0
    return None, sum(map(len, expected))


def where(ours: NDArray[np.uint32], theirs: NDArray[np.uint32], tokenizer: Tokenizer) -> str:
    shorter = min(len(ours), len(theirs))
    place = int(np.argmax(np.append(ours[:shorter] != theirs[:shorter], True)))
    around = slice(max(place - 3, 0), place + 6)
    return (
        f"token {place}: {ours[around].tolist()} for {theirs[around].tolist()}, "
        f"{tokenizer.decode_bytes(theirs[around])!r}"
    )


def checks_of(given: str) -> Iterator[Check]:
    """Yield the comparisons for one tokenizer of the command line."""
    path, _, pattern = given.rpartition(":") if given.rpartition(":")[2] in PATTERNS else (given, "", "")
    if not pattern:
        loaded = Tokenizer.load(path)
        yield Check(f"{Path(path).name} / tokenizers", loaded, with_tokenizers(loaded))
        return
    ranks = Tokenizer.load(path, pattern=pattern)
    normalizers: tuple[Literal["NFC"] | None, ...] = (None, "NFC") if pattern == "qwen2" else (None,)
    for normalizer in normalizers:
        name = f"{Path(path).name} {pattern}{' NFC' if normalizer else ''}"
        entries = ranks.ordinary_entries
        tiktoken = with_tiktoken(ranks, pattern, normalizer)
        ranked = Tokenizer(entries, None, None, pattern, normalizer=normalizer)
        yield Check(f"{name}, ranks / tiktoken", ranked, tiktoken)
        listed = Tokenizer(entries, ranks.merges, None, pattern, ignore_merges=True, normalizer=normalizer)
        yield Check(f"{name}, ignore_merges / tiktoken", listed, tiktoken)
        merged = Tokenizer(entries, ranks.merges, None, pattern, normalizer=normalizer)
        yield Check(f"{name}, merges / tokenizers", merged, with_tokenizers(merged))


def with_tiktoken(ranks: Tokenizer, pattern: str, normalizer: str | None) -> Encode:
    import tiktoken
    from tokenizers.normalizers import NFC

    encoding = tiktoken.Encoding(
        "check",
        pat_str=PATTERNS[pattern].replace(r"\Z", "$"),
        mergeable_ranks={entry: rank for rank, entry in ranks.ordinary_entries.items()},
        special_tokens={},
    )

    def encode(documents: list[str]) -> list[NDArray[np.uint32]]:
        if normalizer:
            documents = [NFC().normalize_str(document) for document in documents]
        return [encoding.encode_to_numpy(document, disallowed_special=()) for document in documents]

    return encode


def with_tokenizers(ours: Tokenizer) -> Encode:
    import tokenizers

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        ours.save(path)
        theirs = tokenizers.Tokenizer.from_file(str(path))

    def encode(documents: list[str]) -> list[NDArray[np.uint32]]:
        encodings = theirs.encode_batch_fast(documents, add_special_tokens=False)
        return [np.array(encoding.ids, np.uint32) for encoding in encodings]

    return encode
