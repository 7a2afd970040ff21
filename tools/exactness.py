"""Compare pieces, normalized text and IDs with Hugging Face tokenizers and tiktoken until N tokens were compared.

    python tools/exactness.py [--tokens 1e7] [--seed 0] [--tokenizer FILE[:PATTERN] ...] [--text FILE ...]

1. Every code point in five contexts, through every pre-tokenizer of bpe/presets.py and every normalizer.
2. All strings of up to four difficult characters, through every pre-tokenizer.
3. With tokenizers: each entry alone, documents of the texts, random excerpts, and random sequences of entries and
   difficult characters, with one and two threads. A rank file is FILE:PATTERN; its merges are checked as a
   tokenizer.json, too.

Exit status 1 at the first difference, with the text that shows it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tiktoken
import tokenizers

from bpe import Tokenizer
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import normalizer_to_json, pretokenizer_to_json
from bpe.normalizers import Bert, Form, Lowercase, Nmt, Normalizer, Prepend, Replace, Strip, StripAccents
from bpe.patterns import PATTERNS
from bpe.presets import PRESETS
from bpe.pretokenizer import Pretokenizer

SEPARATOR = "<|endoftext|>"
CODE_POINTS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CONTEXTS = ("{0}", "a{0}b ", " {0}1", "'{0}s{0}{0}", "e\u0323{0}\u0345\u1112{0}\u11ab\n")
# A letter of each case and one that folds to ASCII, a digit, punctuation, white space of all kinds, marks, scripts.
HARD = "aSſ1'.\u0301 \n\r\u3000漢À𝟏🙂\u200d"
NORMALIZERS: dict[str, tuple[Any, ...]] = {
    **{name: (Form(name),) for name in ("NFC", "NFD", "NFKC", "NFKD")},
    **{type(each).__name__: (each,) for each in (Lowercase(), Nmt(), StripAccents(), Strip(True, True))},
    "Bert uncased": (Bert(True, True, None, True),),
    "Bert cased": (Bert(True, False, None, False),),
    "like Llama": (Prepend("▁"), Replace(" ", "▁")),
    "like CLIP": (Form("NFC"), Replace(r"\s+", " ", True), Lowercase()),
    "like ALBERT": (Form("NFKD"), StripAccents(), Lowercase()),
}

Function = Callable[[str], Any]
Encode = Callable[[list[str]], list[list[int]]]


def pretokenizers() -> Iterator[tuple[str, Function, Function]]:
    """Yield the name of each preset, our pre-tokenizer, and that of tokenizers."""
    for preset in PRESETS:
        ours = Pretokenizer(preset.components)
        theirs: Any = peer({"pre_tokenizer": pretokenizer_to_json(ours)}).pre_tokenizer

        def pieces(text: str, theirs: Any = theirs) -> list[bytes]:
            return [to_bytes(piece) or piece.encode() for piece, _ in theirs.pre_tokenize_str(text)]

        def own_pieces(text: str, ours: Pretokenizer = ours) -> list[bytes]:
            return list(ours.iterate(text))

        yield preset.names[0], own_pieces, pieces


def normalizers() -> Iterator[tuple[str, Function, Function]]:
    for name, components in NORMALIZERS.items():
        ours = Normalizer(components)
        yield (
            name,
            ours.apply_to_text,
            peer({"normalizer": normalizer_to_json(ours)}).normalizer.normalize_str,
        )


def peer(settings: dict[str, Any]) -> Any:
    root = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}
    return tokenizers.Tokenizer.from_str(json.dumps(root | settings))


def check(name: str, found: Any, expected: Any, text: str) -> int:
    """Return the number of items compared. Exit with a message if they differ."""
    if found != expected:
        at = next((i for i, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), 0)
        around = slice(max(0, at - 2), at + 4)
        sys.exit(f"{name}: item {at}: {found[around]!a} instead of {expected[around]!a} for {text[:80]!a}")
    return len(expected)


def check_code_points() -> int:
    blocks = [CODE_POINTS[start : start + 256] for start in range(0, len(CODE_POINTS), 256)]
    texts = ["".join(context.format(chr(code)) for code in block for context in CONTEXTS) for block in blocks]
    functions = [*pretokenizers(), *normalizers()]
    return sum(
        check(name, ours(text), theirs(text), text) for name, ours, theirs in functions for text in texts
    )


def check_strings() -> int:
    strings = ["".join(each) for size in range(1, 5) for each in itertools.product(HARD[:12], repeat=size)]
    return sum(
        check(name, ours(text), theirs(text), text)
        for name, ours, theirs in pretokenizers()
        for text in strings
    )


def peers_of(given: str) -> Iterator[tuple[str, Tokenizer, Encode]]:
    """Yield a name, our tokenizer, and the encoder of its peer."""
    path, _, pattern = given.rpartition(":") if given.rpartition(":")[2] in PATTERNS else (given, "", "")
    ours = Tokenizer.load(path, pattern=pattern) if pattern else Tokenizer.load(path)
    if pattern:
        encoding = tiktoken.Encoding(
            "check",
            pat_str=PATTERNS[pattern].replace(r"\Z", "$"),
            mergeable_ranks={entry: rank for rank, entry in ours.ordinary_entries.items()},
            special_tokens={},
        )
        yield f"{path} as ranks", ours, lambda texts: [encoding.encode_ordinary(text) for text in texts]
        ours = Tokenizer(ours.ordinary_entries, ours.merges, None, pattern)
    with tempfile.TemporaryDirectory() as folder:
        ours.save(Path(folder, "tokenizer.json"))
        theirs = tokenizers.Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
    yield (
        f"{path} as tokenizer.json",
        ours,
        lambda texts: [each.ids for each in theirs.encode_batch_fast(texts, add_special_tokens=False)],
    )


def documents_of(path: Path) -> Iterator[list[str]]:
    """Yield the documents of a file, 8 MB at a time."""
    held = b""
    with path.open("rb") as file:
        while block := file.read(8_000_000):
            *whole, held = (held + block).split(SEPARATOR.encode())
            yield [document.decode(errors="replace") for document in whole]
    yield [held.decode(errors="replace")]


def drawn_documents(rng: random.Random, tokenizer: Tokenizer, paths: list[Path]) -> list[str]:
    """Return sequences of entries, runs of difficult characters, and excerpts cut at any byte."""
    ids = list(tokenizer.ordinary_entries)
    found = []
    for _ in range(40):
        size, kind = rng.randint(10, 10_000), rng.randrange(4 if paths else 3)
        if kind == 0:
            found.append(tokenizer.decode(rng.choices(ids, k=size), errors="replace"))
        elif kind == 1:  # a few common entries, for deep merges
            few = [ids[int(len(ids) * rng.random() ** 3)] for _ in range(30)]
            found.append(tokenizer.decode(rng.choices(few, k=size), errors="replace"))
        elif kind == 2:
            found.append(
                "".join(each * rng.choice([1, 1, 1, 2, 3, 17]) for each in rng.choices(HARD, k=size))
            )
        else:
            with rng.choice(paths).open("rb") as file:
                file.seek(rng.randrange(os_size(file)))
                found.append(file.read(4 * size).decode(errors="replace"))
    return [document.replace(SEPARATOR, " ") for document in found]


def os_size(file: Any) -> int:
    size: int = file.seek(0, 2)
    return size


def check_documents(name: str, ours: Tokenizer, encode: Encode, documents: list[str]) -> int:
    expected = encode(documents)
    for threads in (1, 2):
        rows = ours.encode_documents(SEPARATOR.join(documents).encode(), SEPARATOR, threads=threads)
        for document, row, ids in zip(documents, rows, expected, strict=True):
            check(f"{name}, {threads} threads", row.tolist(), ids, document)
    return sum(map(len, expected))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=float, default=1e7, help="tokens of random documents")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokenizer", nargs="+", default=[])
    parser.add_argument("--text", nargs="+", type=Path, default=[])
    options = parser.parse_args()
    if not options.tokenizer:
        print(f"code points: {check_code_points():,} items equal", flush=True)
        print(f"strings: {check_strings():,} pieces equal", flush=True)
        return 0
    total = 0
    for given in options.tokenizer:
        for peer_of in peers_of(given):
            tokenizer = peer_of[1]
            entries = [tokenizer.decode([id_], errors="replace") for id_ in tokenizer.ordinary_entries]
            count = check_documents(*peer_of, [entry for entry in entries if SEPARATOR not in entry])
            count += sum(
                check_documents(*peer_of, each) for path in options.text for each in documents_of(path)
            )
            rng = random.Random(f"{options.seed} {given}")
            while count < options.tokens / len(options.tokenizer):
                count += check_documents(*peer_of, drawn_documents(rng, tokenizer, options.text))
            print(f"{peer_of[0]}: {count:,} tokens equal, seed {options.seed}", flush=True)
            total += count
    print(f"{total:,} tokens equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
