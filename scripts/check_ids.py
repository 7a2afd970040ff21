"""Are the ids tiktoken's and Hugging Face tokenizers', over whole files, for every vocabulary given?

    python scripts/check_ids.py --text corpus/*.txt --tokenizer r50k.tiktoken:gpt2 qwen3.tiktoken:qwen2 tokenizer.json

A rank file is FILE:PATTERN (gpt2, cl100k, o200k, llama3, qwen2) and is checked as three tokenizers: as it is, with its
ids against tiktoken; written as a tokenizer.json with ignore_merges and the list of its merges, with the same ids; and
as that list without ignore_merges, against Hugging Face tokenizers. qwen2 is checked with NFC before it as well.
A tokenizer.json is checked against Hugging Face tokenizers. Each text is cut into documents at the separator and these
into --piece-mb; differences end the run with status 1, the first one named by document, token and bytes.
Ours encodes every piece twice, with one thread and with two.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bpe import Tokenizer
from bpe.errors import BpeError
from bpe.patterns import PATTERNS

SEPARATOR = "<|endoftext|>"
Encode = Callable[[list[str]], list[NDArray[np.uint32]]]


@dataclass(frozen=True)
class Check:
    """A tokenizer of ours beside another's; theirs: documents -> ids of each."""

    name: str
    ours: Tokenizer
    theirs: Encode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--tokenizer", nargs="+", required=True, metavar="FILE[:PATTERN]")
    parser.add_argument("--limit-mb", type=float, default=float("inf"), help="of each text (default: all)")
    parser.add_argument("--piece-mb", type=float, default=8, help="encoded at once (default 8)")
    parser.add_argument("--only", choices=["tiktoken", "tokenizers"], help="one of the two oracles")
    options = parser.parse_args()
    wrong = 0
    for given in options.tokenizer:
        try:
            checks = list(checks_of(given, options.only))
        except (BpeError, ImportError) as error:
            print(f"error: {given}: {error}", file=sys.stderr)
            return 2
        for check, path in itertools.product(checks, options.text):
            started = time.perf_counter()
            text_bytes = documents = tokens = 0
            difference = None
            for piece in pieces(path, options.limit_mb * 1e6, int(options.piece_mb * 1e6)):
                difference, piece_tokens = compare(check, piece)
                if difference:
                    difference = f"document {documents} and on: {difference}"
                    break
                text_bytes += sum(len(document.encode()) for document in piece)
                documents += len(piece)
                tokens += piece_tokens
            wrong += difference is not None
            print(
                f"{check.name:41} {path.name:9} {text_bytes:>12,} bytes {documents:>8,} documents {tokens:>11,} tokens",
                f"{difference or 'equal'}  {time.perf_counter() - started:.0f} s",
                flush=True,
            )
    return 1 if wrong else 0


def pieces(path: Path, limit_bytes: float, piece_bytes: int) -> Iterator[list[str]]:
    """The documents of a file, some at a time; the last one is cut off by the limit."""
    held = b""
    read = 0
    with path.open("rb") as file:
        while read < limit_bytes and (
            block := file.read(min(piece_bytes, int(min(limit_bytes - read, 1 << 40))))
        ):
            read += len(block)
            *whole, held = (held + block).split(SEPARATOR.encode())
            if whole:
                yield [document.decode(errors="replace") for document in whole]
    if held:
        yield [held.decode(errors="replace")]


def compare(check: Check, documents: list[str]) -> tuple[str | None, int]:
    """(what differs first, or None; tokens)."""
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


def checks_of(given: str, only: str | None) -> Iterator[Check]:
    """All comparisons of one tokenizer given on the command line."""
    path, _, pattern = given.rpartition(":") if given.rpartition(":")[2] in PATTERNS else (given, "", "")
    if not pattern:
        if only != "tiktoken":
            loaded = Tokenizer.load(path)
            yield Check(f"{Path(path).name} / tokenizers", loaded, with_tokenizers(loaded))
        return
    ranks = Tokenizer.load(path, pattern=pattern)
    normalizers: tuple[Literal["NFC"] | None, ...] = (None, "NFC") if pattern == "qwen2" else (None,)
    for normalizer in normalizers:
        name = f"{Path(path).name} {pattern}{' NFC' if normalizer else ''}"
        entries = ranks.ordinary_entries
        if only != "tokenizers":
            ranked = Tokenizer(entries, None, None, pattern, normalizer=normalizer)
            yield Check(f"{name}, ranks / tiktoken", ranked, with_tiktoken(ranks, pattern, normalizer))
            listed = Tokenizer(
                entries, ranks.merges, None, pattern, ignore_merges=True, normalizer=normalizer
            )
            yield Check(
                f"{name}, ignore_merges / tiktoken", listed, with_tiktoken(ranks, pattern, normalizer)
            )
        if only != "tiktoken":
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


if __name__ == "__main__":
    sys.exit(main())
