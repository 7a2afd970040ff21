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
from random_patterns import TEXT, random_pattern

from bpe import Tokenizer, reference
from bpe.cli.ids_file import read_ids
from bpe.formats import gpt2, huggingface, sentencepiece, tekken, tiktoken
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.protobuf import bytes_field, float_field, varint_field
from bpe.normalizers import Charsmap, Normalizer, Precompiled
from bpe.patterns import HUGGINGFACE_SPELLINGS
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

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_NO_REGEX = _BYTE_LEVEL | {"use_regex": False}
_METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
_A_AND_B = {"A": {"Sequence": {"id": "A", "type_id": 0}}, "B": {"Sequence": {"id": "B", "type_id": 1}}}


def _split(expression: str, behavior: str = "Isolated") -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": False}


_PRETOKENIZERS: tuple[Any, ...] = (
    _BYTE_LEVEL,
    {
        "type": "Sequence",
        "pretokenizers": [_split(r"\p{N}{1,3}"), _split(HUGGINGFACE_SPELLINGS["llama3"]), _NO_REGEX],
    },
    {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL]},
    {
        "type": "Sequence",
        "pretokenizers": [{"type": "Punctuation", "behavior": "Contiguous"}, _METASPACE, _NO_REGEX],
    },
    {
        "type": "Sequence",
        "pretokenizers": [_split(r"\s+(?!\S)|[a-z]+", "Removed"), {"type": "WhitespaceSplit"}, _NO_REGEX],
    },
    {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}, _NO_REGEX]},
)
_NORMALIZERS: tuple[Any, ...] = (
    None,
    {"type": "NFC"},
    {
        "type": "Sequence",
        "normalizers": [
            *({"type": name} for name in ("NFKD", "Lowercase", "StripAccents", "Nmt")),
            {"type": "Strip", "strip_left": True, "strip_right": False},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            {"type": "Replace", "pattern": {"Regex": r"\s+|\d{2}"}, "content": "xyz"},
            {"type": "Prepend", "prepend": "▁"},
            {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
             "lowercase": True},
        ],
    },
)  # fmt: skip
_POST_PROCESSORS: tuple[Any, ...] = (
    None,
    _BYTE_LEVEL,
    {
        "type": "RobertaProcessing",
        "sep": ["</s>", 301],
        "cls": ["<s>", 300],
        "trim_offsets": True,
        "add_prefix_space": False,
    },
    {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, _A_AND_B["A"]],
        "pair": [_A_AND_B["A"], {"SpecialToken": {"id": "</s>", "type_id": 0}}, _A_AND_B["B"]],
        "special_tokens": {
            text: {"id": text, "ids": [id_], "tokens": [text]} for text, id_ in (("<s>", 300), ("</s>", 301))
        },
    },
)


@cache
def tokenizer_documents() -> list[dict[str, Any]]:
    """Return valid tokenizer.json values that cover all components."""
    made: list[dict[str, Any]] = []
    first = len(ENTRIES)
    renumbered = json.dumps(_POST_PROCESSORS).replace("300", str(first)).replace("301", str(first + 1))
    in_vocab = {to_characters(entry): id_ for id_, entry in enumerate(ENTRIES)}
    added = [
        {"id": in_vocab.get(text, first + at), "content": text, "single_word": at == 2, "lstrip": at == 1,
         "rstrip": False, "normalized": at > 1, "special": at < 2}
        for at, text in enumerate(("<s>", "</s>", "<|x|>", "the"))
    ]  # fmt: skip
    for pretokenizer in _PRETOKENIZERS:
        for at, normalizer in enumerate(_NORMALIZERS):
            made.append(
                {
                    "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
                    "normalizer": normalizer, "pre_tokenizer": pretokenizer,
                    "post_processor": json.loads(renumbered)[at], "decoder": _BYTE_LEVEL,
                    "model": {
                        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                        "ignore_merges": at == 1,
                        "vocab": in_vocab,
                        "merges": [[to_characters(part) for part in merge] for merge in MERGES],
                    },
                }
            )  # fmt: skip
    for document in made:
        use(Tokenizer.from_parts(huggingface.read(json.dumps(document).encode())))
    return [*made, *_text_documents()]


def _text_documents() -> list[dict[str, Any]]:
    """Return vocabularies of text entries: with byte fallback, with an unknown token, with a suffix."""
    texts = ["<unk>", "<s>", "▁", "t", "h", "e", "▁t", "he", "▁the", "é", "é</w>", "the</w>"]
    decoders = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]  # fmt: skip
    made = []
    for fallback, suffix in ((True, None), (False, None), (False, "</w>")):
        vocab = [*texts[:2], *(f"<0x{byte:02X}>" for byte in range(256) if fallback), *texts[2:]]
        made.append(
            {
                "version": "1.0",
                "added_tokens": [{"id": 0, "content": "<unk>", "special": True}],
                "normalizer": {"type": "Sequence", "normalizers": [
                    {"type": "Prepend", "prepend": "▁"},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
                ]} if suffix is None else {"type": "Lowercase"},
                "pre_tokenizer": None if suffix is None else {"type": "Whitespace"},
                "decoder": {"type": "Sequence", "decoders": decoders} if suffix is None
                else {"type": "BPEDecoder", "suffix": suffix},
                "model": {
                    "type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": fallback,
                    "end_of_word_suffix": suffix, "vocab": {text: id_ for id_, text in enumerate(vocab)},
                    "merges": ["▁ t", "h e", "▁t he"],
                },
            }
        )  # fmt: skip
        use(Tokenizer.from_parts(huggingface.read(json.dumps(made[-1]).encode())))
    return made


def make_tokenizer_json(rng: random.Random, _: Path) -> bytes:
    documents = tokenizer_documents()
    root = dict(rng.choice(documents))
    if rng.random() < 0.6:  # entries and merges outnumber everything else
        vocab, merges = root["model"]["vocab"], root["model"]["merges"]
        root["model"] = {**root["model"], "vocab": {}, "merges": []}
        changed = change_value(rng, root, [rng.choice(documents)])
        if isinstance(changed, dict) and isinstance(changed.get("model"), dict):
            changed["model"] |= {"vocab": vocab, "merges": merges}
        return json.dumps(changed).encode()
    return change_json(rng, root, [rng.choice(documents)])


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
    root = {
        "config": {
            "pattern": HUGGINGFACE_SPELLINGS["o200k"], "num_vocab_tokens": len(ENTRIES),
            "default_vocab_size": len(ENTRIES) + 3, "default_num_special_tokens": 3, "version": "v3",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(entry).decode(), "token_str": None}
            for rank, entry in enumerate(ENTRIES)
        ],
        "special_tokens": [{"rank": rank, "token_str": f"<{rank}>", "is_control": True} for rank in range(2)],
    }  # fmt: skip
    if rng.random() < 0.6:
        return json.dumps(
            root | change_value(rng, {k: root[k] for k in ("config", "special_tokens")})
        ).encode()
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


@cache
def _model(charsmap: bytes) -> bytes:
    pieces = [
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, 3),
        ("</s>", 0.0, 3),
        *((f"<0x{b:02X}>", 0.0, 6) for b in range(256)),
    ]
    texts = ["▁t", "he", "▁the", "▁", "t", "h", "e", "a", "é", "<x>"]
    pieces += [
        (text, -float(at), 4 if text == "<x>" and not charsmap else 1) for at, text in enumerate(texts)
    ]
    message = b"".join(
        bytes_field(1, bytes_field(1, text.encode()) + float_field(2, score) + varint_field(3, kind))
        for text, score, kind in pieces
    )
    message += bytes_field(2, varint_field(3, 2) + varint_field(4, len(pieces)) + varint_field(35, 1))
    rules = bytes_field(1, b"nmt_nfkc") + (bytes_field(2, charsmap) if charsmap else b"")
    return message + bytes_field(3, rules + varint_field(3, int(bool(charsmap))) + varint_field(4, 0))


def make_sentencepiece(rng: random.Random, _: Path) -> bytes:
    return change_message(rng, _model(rng.choice([b"", _charsmap(random.Random(rng.randrange(3)))])))


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
