"""Targets of bpe: tokenizer files of every format, patterns in both dialects, charsmaps, counts, files of IDs."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bounded_run import Target
from mutations import HUGE, change_bytes, change_json, change_message, change_text, change_value

sys.path.insert(0, str(Path(__file__).parents[1] / "bpe"))
from matrix_families import FAMILIES, Family
from random_patterns import TEXT, random_pattern

from bpe import Tokenizer, reference
from bpe.cli.ids_file import read_ids
from bpe.formats import gpt2, huggingface, sentencepiece, tekken, tiktoken
from bpe.formats.byte_alphabet import to_characters
from bpe.normalizers import Charsmap, Normalizer, Precompiled
from bpe.presets import PRESETS
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretokenization.components import Split
from bpe.pretokenizer import Pretokenizer

TEXTS = (
    "",
    "the mill stands",
    " a  b\n\n12 3.\t",
    "naïve Größe e\u0301 你好 🙂",
    "<s>the</s> <|x|>",
    "a" * 300,
)
WORDS = {b"the": 9, b" the": 7, b" then": 3, b" mill": 5, "Größe".encode(): 2, " 你好".encode(): 2, b"12": 4}
DOCUMENTS = [name for name in FAMILIES if not name.startswith(("rank", "tekken", "SentencePiece"))][::4]
MODELS = [name for name in FAMILIES if name.startswith("SentencePiece")]
MERGES = reference.train(WORDS, 30)
ENTRIES = list(dict.fromkeys([*(bytes([b]) for b in range(256)), *(left + right for left, right in MERGES)]))


def use(tokenizer: Tokenizer) -> None:
    """Use a loaded tokenizer as a caller would."""
    for text in TEXTS:
        ids = tokenizer.encode(text)
        tokenizer.decode(ids)
        tokenizer.encode(text, allowed_special="all", add_special_tokens=True)
    rows = tokenizer.encode_documents("\0".join(TEXTS).encode(), "\0", 1)
    tokenizer.decode_bytes(rows.tokens)
    _ = tokenizer.fingerprint(), tokenizer.vocab, tokenizer.max_token_id


# -- tokenizer.json ------------------------------------------------------------------------------------------------


@cache
def family(name: str) -> Family:
    """Return a tokenizer of the matrix, which is read without an error."""
    made = FAMILIES[name]()
    if made.root is not None:
        use(Tokenizer.from_parts(huggingface.read(made.data)))
    return made


def document(rng: random.Random) -> dict[str, Any]:
    """Return the tokenizer.json of a family."""
    root = family(rng.choice(DOCUMENTS)).root
    assert root is not None
    return root


def make_tokenizer_json(rng: random.Random, _: Path) -> bytes:
    root = dict(document(rng))
    if rng.random() < 0.6:  # entries and merges outnumber everything else
        vocab, merges = root["model"]["vocab"], root["model"]["merges"]
        root["model"] = {**root["model"], "vocab": {}, "merges": []}
        changed = change_value(rng, root, [document(rng)])
        if isinstance(changed, dict) and isinstance(changed.get("model"), dict):
            changed["model"] |= {"vocab": vocab, "merges": merges}
        return json.dumps(changed).encode()
    return change_json(rng, root, [document(rng)])


def read_tokenizer_json(data: bytes) -> None:
    use(Tokenizer.from_parts(huggingface.read(data)))


# -- the other formats ---------------------------------------------------------------------------------------------


def make_vocab_and_merges(rng: random.Random, _: Path) -> bytes:
    vocab = {to_characters(entry): id_ for id_, entry in enumerate(ENTRIES)} | {"<|x|>": len(ENTRIES)}
    merges = "#version: 0.2\n" + "".join(f"{to_characters(a)} {to_characters(b)}\n" for a, b in MERGES)
    if rng.random() < 0.5:
        return change_json(rng, vocab) + b"\x01" + merges.encode()
    changed = change_bytes(rng, merges.encode()) if rng.random() < 0.5 else change_text(rng, merges).encode()
    return json.dumps(vocab).encode() + b"\x01" + changed


def read_vocab_and_merges(data: bytes) -> None:
    vocab, _, merges = data.partition(b"\x01")
    parts = gpt2.build(gpt2.read_vocab(vocab), gpt2.read_merges(merges), "gpt2", None)
    use(Tokenizer.from_parts(parts))


def make_rank_file(rng: random.Random, _: Path) -> bytes:
    lines = [base64.b64encode(entry) + b" %d" % id_ for id_, entry in enumerate(ENTRIES)]
    for _ in range(rng.choice([0, 1, 1, 3])):
        at = rng.randrange(len(lines))
        entry = rng.choice(
            [rng.randbytes(rng.choice([0, 1, 2, 9])), ENTRIES[rng.randrange(len(ENTRIES))] * 2000]
        )
        number = rng.choice([at, len(lines), rng.choice(HUGE), rng.randrange(300)])
        line = base64.b64encode(entry) + rng.choice([b" ", b" ", b"  ", b"\t", b""]) + b"%d" % number
        lines[at : at + rng.randrange(2)] = [line] * rng.choice([1, 1, 2])
    data = b"\n".join(lines) + rng.choice([b"", b"\n", b"\r\n"])
    return change_bytes(rng, data) if rng.random() < 0.4 else data


def read_rank_file(data: bytes) -> None:
    use(Tokenizer.from_parts(tiktoken.read(data, "cl100k", ["<|x|>"])))


def make_tekken(rng: random.Random, _: Path) -> bytes:
    root = json.loads(family("tekken.json").data)
    if rng.random() < 0.6:
        small = change_value(rng, {key: root[key] for key in ("config", "special_tokens")})
        return json.dumps(root | small if isinstance(small, dict) else small).encode()
    return change_json(rng, root)


def read_tekken(data: bytes) -> None:
    use(Tokenizer.from_parts(tekken.read(data)))


def _charsmap(rng: random.Random) -> bytes:
    """Return the charsmap of a few rules, a few hundred units, made by tools/charsmap.py."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from charsmap import build

    rules = {"Å": "A", "ﬁ": "fi", "\t": " ", "e\u0301": "é", "x": ""}
    return build(dict(rng.sample(sorted(rules.items()), rng.randint(1, len(rules)))))


def make_charsmap(rng: random.Random, _: Path) -> bytes:
    data = bytearray(_charsmap(rng))
    for _ in range(rng.choice([1, 2, 8])):  # units of the double array that are in use
        at = 4 * rng.randrange(len(data) // 4)
        used = [place for place in range(0, len(data) - 4, 4) if any(data[place : place + 4])]
        at = rng.choice([at, *rng.choices(used, k=3)])
        (unit,) = struct.unpack_from("<I", data, at)
        changed = rng.choice(
            [unit ^ 1 << rng.randrange(32), rng.choice(HUGE), unit | 1 << 31, unit + 1 << 10]
        )
        struct.pack_into("<I", data, at, changed & 2**32 - 1)
    return change_bytes(rng, bytes(data)) if rng.random() < 0.3 else bytes(data)


def read_charsmap(data: bytes) -> None:
    for kind in (Precompiled, Charsmap):
        normalizer = Normalizer((kind(data),))
        for text in (*TEXTS, "Åﬁx\te\u0301" * 20):
            normalizer.apply(text.encode())


def make_sentencepiece(rng: random.Random, _: Path) -> bytes:
    return change_message(rng, family(rng.choice(MODELS)).data)


def read_sentencepiece(data: bytes) -> None:
    use(Tokenizer.from_parts(sentencepiece.read(data)))


# -- patterns ------------------------------------------------------------------------------------------------------

_PATTERN_TEXTS = (*TEXTS, TEXT, "it's 12345 " * 20, "ab" * 200)
_PRESET_EXPRESSIONS = [
    component.expression
    for preset in PRESETS
    for component in preset.components
    if isinstance(component, Split)
]


def _make_pattern(dialect: Any) -> Callable[[random.Random, Path], str]:
    def make(rng: random.Random, _: Path) -> str:
        expression = rng.choice(_PRESET_EXPRESSIONS)
        if rng.random() < 0.6:
            expression = random_pattern(rng, dialect, rng.choice([1, 2, 3]))
        return change_text(rng, expression) if rng.random() < 0.7 else expression

    return make


def _read_pattern(dialect: Any) -> Callable[[str], None]:
    def read(expression: str) -> None:
        if not expression:
            return
        pretokenizer = Pretokenizer((Split(expression, dialect),)).checked()
        for text in _PATTERN_TEXTS:
            pretokenizer.pretokens(text)

    return read


# -- counts and IDs ------------------------------------------------------------------------------------------------


def make_counts(rng: random.Random, folder: Path) -> Path:
    """Write a counts file with changes in one of its arrays, or in the bytes of the file."""
    path = folder / "a.counts"
    PretokenCounts.from_mapping(WORDS).save(path)
    if rng.random() < 0.2:
        path.write_bytes(change_bytes(rng, path.read_bytes()))
        return path
    with np.load(path) as file:
        arrays = dict(file)
    name = rng.choice(list(arrays))
    data = arrays[name].tobytes()
    data = change_json(rng, json.loads(data)) if name == "header" else change_bytes(rng, data)
    dtype = rng.choice([arrays[name].dtype, np.dtype(np.uint8)])
    arrays[name] = np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def read_counts(path: Path) -> None:
    file = CountsFile(path)
    file.largest_block_bytes()
    for _ in file.blocks():
        pass


def make_ids(rng: random.Random, _: Path) -> bytes:
    form = rng.choice(["npy", "bin", "text"])
    written = io.BytesIO()
    ids = np.array(
        rng.choices([1, 5, 300, 2**16 - 1], k=rng.choice([0, 1, 50])), rng.choice(["<u4", "<i8", "<u2"])
    )
    np.save(written, ids)
    data = {"npy": written.getvalue(), "bin": ids.tobytes(), "text": " ".join(map(str, ids)).encode()}[form]
    return form.encode().ljust(4) + change_bytes(rng, data)


def read_ids_file(data: bytes) -> None:
    for _ in read_ids(io.BytesIO(data[4:]), data[:4].decode().strip(), "a"):  # type: ignore[arg-type]
        pass


TARGETS = [
    Target("tokenizer.json", make_tokenizer_json, read_tokenizer_json),
    Target("vocab.json and merges.txt", make_vocab_and_merges, read_vocab_and_merges),
    Target("rank file", make_rank_file, read_rank_file),
    Target("tekken.json", make_tekken, read_tekken),
    Target("SentencePiece model", make_sentencepiece, read_sentencepiece),
    Target("charsmap", make_charsmap, read_charsmap),
    Target("pattern of tiktoken", _make_pattern("rust"), _read_pattern("rust")),
    Target("pattern of tokenizers", _make_pattern("oniguruma"), _read_pattern("oniguruma")),
    Target("counts file", make_counts, read_counts),
    Target("file of ids", make_ids, read_ids_file),
]
