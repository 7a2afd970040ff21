"""Every encoder behind the same four calls, so that one loop measures them all.

`prepare` gives the text the form the encoder likes best, `fresh` an encoder without warm caches, `encode` is what
is timed, `ids` turns the result into one flat array for comparison. Only `encode` counts: a peer that wants a
list of strings gets one for nothing, and its result stays as it is. All are built from the same tokenizer.json.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
from harness import SEPARATOR
from numpy.typing import NDArray
from published import GPT2
from tokenizer_files import byte_alphabet

import bpe

Ids = NDArray[np.uint32]


class Ours:
    name = "tokenmill"
    slow = False
    module = "bpe"

    def __init__(self, tokenizer: Path, threads: int) -> None:
        self.path, self.threads = tokenizer, threads

    def prepare(self, text: bytes) -> Any:
        return text

    def fresh(self) -> Any:
        return bpe.Tokenizer.load(self.path)

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_documents(prepared, separator=SEPARATOR.decode(), threads=self.threads)

    def ids(self, result: Any) -> Ids:
        return np.asarray(result.tokens, dtype=np.uint32)


class Gigatoken(Ours):
    name = module = "gigatoken"

    def prepare(self, text: bytes) -> Any:
        import gigatoken

        return gigatoken.BytesSource([text], separator=SEPARATOR)

    def fresh(self) -> Any:
        import gigatoken

        return gigatoken.Tokenizer(self.path)

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_batch(prepared, parallel=self.threads > 1)

    def ids(self, result: Any) -> Ids:
        import awkward

        return np.asarray(awkward.flatten(result), dtype=np.uint32)


class Tiktoken(Ours):
    """A rank file has no ids of its own choice: ranks are put in their order and the ids looked up afterwards."""

    name = module = "tiktoken"
    slow = True

    def __init__(self, tokenizer: Path, threads: int) -> None:
        super().__init__(tokenizer, threads)
        file = json.loads(tokenizer.read_text())
        self.pattern = expression_of(file)
        byte_of = {character: byte for byte, character in enumerate(byte_alphabet())}
        id_of, merges = file["model"]["vocab"], file["model"]["merges"]
        pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in merges)
        entries = list(dict.fromkeys((*byte_of, *("".join(pair) for pair in pairs))))
        self.ranks = {bytes(map(byte_of.__getitem__, entry)): rank for rank, entry in enumerate(entries)}
        self.id_of_rank = np.array([id_of[entry] for entry in entries], dtype=np.uint32)

    def prepare(self, text: bytes) -> Any:
        return text.decode().split(SEPARATOR.decode())

    def fresh(self) -> Any:
        import tiktoken

        return tiktoken.Encoding("bench", pat_str=self.pattern, mergeable_ranks=self.ranks, special_tokens={})

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_ordinary_batch(prepared, num_threads=self.threads)

    def ids(self, result: Any) -> Ids:
        return self.id_of_rank[flat(result)]


class Tokenizers(Ours):
    name = module = "tokenizers"
    slow = True

    def prepare(self, text: bytes) -> Any:
        return text.decode().split(SEPARATOR.decode())

    def fresh(self) -> Any:
        import tokenizers

        return tokenizers.Tokenizer.from_file(str(self.path))

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_batch_fast(prepared, add_special_tokens=False)

    def ids(self, result: Any) -> Ids:
        return flat([encoding.ids for encoding in result])


class Fastokens(Tokenizers):
    name = module = "fastokens"
    slow = False

    def fresh(self) -> Any:
        import fastokens

        return fastokens.Tokenizer.from_json_str(json.dumps(json.loads(self.path.read_text())))

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_batch_flat(prepared, add_special_tokens=False)

    def ids(self, result: Any) -> Ids:
        return np.frombuffer(result[0], dtype=np.uint32)


class Tokie(Tokenizers):
    name = module = "tokie"

    def fresh(self) -> Any:
        import tokie

        return tokie.Tokenizer.from_json(str(self.path))

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_batch_flat(prepared, add_special_tokens=False)

    def ids(self, result: Any) -> Ids:
        return np.asarray(result[0], dtype=np.uint32)


class Splintr(Tokenizers):
    name, module = "splintr-rs", "splintr"

    def fresh(self) -> Any:
        import splintr

        return splintr.from_json(str(self.path))

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_batch(prepared)

    def ids(self, result: Any) -> Ids:
        return flat(result)


class Riptoken(Tiktoken):
    name = module = "riptoken"
    slow = True

    def fresh(self) -> Any:
        import riptoken

        return riptoken.CoreBPE(self.ranks, {}, self.pattern)

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_ordinary_batch(prepared)


class Kitoken(Tokenizers):
    name = module = "kitoken"

    def fresh(self) -> Any:
        import kitoken

        return kitoken.Kitoken.from_tokenizers_file(str(self.path))

    def encode(self, encoder: Any, prepared: Any) -> Any:
        return encoder.encode_all(prepared, False)

    def ids(self, result: Any) -> Ids:
        return flat(result)


ENCODERS: tuple[type[Ours], ...] = (
    Ours,
    Gigatoken,
    Fastokens,
    Tokie,
    Splintr,
    Tokenizers,
    Tiktoken,
    Riptoken,
    Kitoken,
)


def expression_of(file: dict[str, Any]) -> str:
    """The one expression that cuts all text, which is what tiktoken takes; ValueError where a file has another way."""
    steps = file["pre_tokenizer"].get("pretokenizers", [file["pre_tokenizer"]])
    last, before = steps[-1], steps[:-1]
    plain = last["type"] == "ByteLevel" and not last["add_prefix_space"] and file["normalizer"] is None
    if plain and not before and last.get("use_regex", True):
        return GPT2
    if plain and len(before) == 1 and before[0]["type"] == "Split" and not last.get("use_regex", True):
        return str(before[0]["pattern"]["Regex"])
    raise ValueError("tiktoken takes one expression and no normalizer")


def installed(encoders: tuple[type[Ours], ...] = ENCODERS) -> tuple[list[type[Ours]], list[str]]:
    """Those whose package is there, and a line for each that is not."""
    here = [encoder for encoder in encoders if importlib.util.find_spec(encoder.module) is not None]
    return here, [
        f"{e.name} is not installed and was left out (pip install {e.name})"
        for e in encoders
        if e not in here
    ]


def flat(rows: list[list[int]]) -> Ids:
    """[[1, 2], [], [3]] -> [1, 2, 3]"""
    return np.fromiter((i for row in rows for i in row), dtype=np.uint32, count=sum(map(len, rows)))


def first_difference(ids: Ids, expected: Ids) -> str | None:
    """None if equal, else one line that says where they part."""
    shorter = min(len(ids), len(expected))
    unequal = np.flatnonzero(ids[:shorter] != expected[:shorter])
    if len(unequal):
        at = int(unequal[0])
        return f"token {at} is {ids[at]}, not {expected[at]} ({len(unequal)} of {shorter} differ)"
    return None if len(ids) == len(expected) else f"{len(ids)} tokens, not {len(expected)}"
