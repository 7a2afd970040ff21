"""Build tokenizer.json files from tokenizers.toml and the vocabularies in a folder.

The folder holds rank files (*.tiktoken), tekken.json, and complete tokenizer.json files, each optionally with .xz. The
name before the first dot identifies the vocabulary. A complete tokenizer.json is a model's own file and is copied
unchanged. Every other file is a configuration on a vocabulary, and `Tokenizer.title` says so.

A rank file lists entries without merges. By default an entry gets one merge for each way to split it into two other
entries, ordered by rank and then by the IDs of the halves, as the converter in transformers does. The vocabularies in
ONE_MERGE have one merge per entry, as in the tokenizer.json files published with them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CONFIGURATIONS = Path(__file__).with_name("tokenizers.toml")
ONE_MERGE = ("cl100k", "qwen3", "r50k")
TEKKEN_ENTRIES = (
    130_072  # tekken.json lists more entries than the tokenizer uses: 131,072 less 1,000 special tokens
)
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


@dataclass(frozen=True)
class Tokenizer:
    """A file to measure.

    title: the name of its rows, such as "qwen-3.5 pattern on the qwen3 vocabulary".
    vocabulary: name of the vocabulary.
    origin: "own file", "own vocabulary" or "other vocabulary".
    """

    path: Path
    title: str
    vocabulary: str
    origin: str


@dataclass(frozen=True)
class Vocabulary:
    """Entries in the byte alphabet, ordered by ID, and merges, lowest rank first."""

    entries: list[str]
    merges: list[tuple[str, str]]


def build_files(folder: Path, output: Path, only: Sequence[str] | None = None) -> Iterator[Tokenizer]:
    """Write the files named in `only` (default: all that the vocabularies allow) and yield each."""
    output.mkdir(parents=True, exist_ok=True)
    sources = {name: path for path in sorted(folder.rglob("*")) if (name := vocabulary_name(path))}
    settings = tomllib.loads(CONFIGURATIONS.read_text(encoding="utf-8"))
    wanted = list(only or [*sources, *(each["name"] for each in settings["configurations"])])
    configurations = {each["name"]: each for each in settings["configurations"]}
    loaded: dict[str, Vocabulary] = {}
    for name in wanted:
        path = output / f"{name}.json"
        if name in configurations:
            configuration = configurations[name]
            vocabulary = next((each for each in configuration["vocabularies"] if each in sources), None)
            if vocabulary is None:
                continue
            if vocabulary not in loaded:
                loaded[vocabulary] = read_vocabulary(sources[vocabulary], vocabulary in ONE_MERGE)
            file = tokenizer_json(configuration, settings["patterns"], loaded[vocabulary])
            path.write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
            origin = "own vocabulary" if configuration.get("own") == vocabulary else "other vocabulary"
            yield Tokenizer(path, f"{name} pattern on the {vocabulary} vocabulary", vocabulary, origin)
        elif name in sources and is_tokenizer_json(content := read(sources[name])):
            path.write_bytes(content)
            yield Tokenizer(path, name, name, "own file")


def vocabulary_name(path: Path) -> str | None:
    """gpt2.tokenizer.json -> gpt2; None for other files."""
    packed = path.name.removesuffix(".xz")
    return path.name.partition(".")[0] if packed.endswith((".tiktoken", ".json")) else None


def file_digest(path: Path) -> str:
    """First 16 hex digits of the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


# -- reading vocabularies


def read(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def is_tokenizer_json(content: bytes) -> bool:
    return content.lstrip()[:1] == b"{" and "model" in json.loads(content)


def read_vocabulary(path: Path, one_merge: bool) -> Vocabulary:
    """Read the entries and merges of a file, without added tokens."""
    content = read(path)
    if content.lstrip()[:1] != b"{":
        ranks = (line.split() for line in content.splitlines() if line)
        entries = sorted((int(rank), base64.b64decode(entry)) for entry, rank in ranks)
        return from_ranks([entry for _, entry in entries], one_merge)
    parsed = json.loads(content)
    if "config" in parsed:  # tekken.json
        tekken = [base64.b64decode(entry["token_bytes"]) for entry in parsed["vocab"][:TEKKEN_ENTRIES]]
        return from_ranks(tekken, one_merge)
    model = parsed["model"]
    added = {token["content"] for token in parsed["added_tokens"]}
    ids = sorted((id_, entry) for entry, id_ in model["vocab"].items() if entry not in added)
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return Vocabulary([entry for _, entry in ids], [(left, right) for left, right in merges])


def from_ranks(entries: Sequence[bytes], one_merge: bool) -> Vocabulary:
    """Derive merges from entries ordered by rank.

    from_ranks([b"a", b"b", b"c", b"ab", b"bc", b"abc"], one_merge=False).merges -> a b, b c, a bc, ab c
    from_ranks([b"a", b"b", b"c", b"ab", b"bc", b"abc"], one_merge=True).merges -> a b, b c, ab c
    """
    ranks = {entry: rank for rank, entry in enumerate(entries)}
    merges: list[tuple[bytes, bytes]] = []
    for rank, entry in enumerate(entries):
        if len(entry) < 2:
            continue
        if one_merge:
            parts = merge_below(entry, ranks, rank)
            merges += [(parts[0], parts[1])] if len(parts) == 2 else []
            continue
        halves = ((entry[:cut], entry[cut:]) for cut in range(1, len(entry)))
        known = [(left, right) for left, right in halves if left in ranks and right in ranks]
        merges += sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    alphabet = byte_alphabet()

    def spell(entry: bytes) -> str:
        return "".join(map(alphabet.__getitem__, entry))

    return Vocabulary([spell(each) for each in entries], [(spell(a), spell(b)) for a, b in merges])


def merge_below(entry: bytes, ranks: dict[bytes, int], limit: int) -> list[bytes]:
    """Merge the bytes of an entry by rank, using ranks below `limit` only."""
    parts = [entry[index : index + 1] for index in range(len(entry))]
    while True:
        pairs = [(ranks.get(parts[i] + parts[i + 1], limit), i) for i in range(len(parts) - 1)]
        rank, i = min(pairs, default=(limit, 0))
        if rank >= limit:
            return parts
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def byte_alphabet() -> list[str]:
    """GPT-2's character for each byte: itself if printable, otherwise one from U+0100 up."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in set(printed)]
    character = {byte: chr(byte) for byte in printed} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [character[byte] for byte in range(256)]


# -- writing tokenizer.json


def tokenizer_json(configuration: Json, patterns: dict[str, str], vocabulary: Vocabulary) -> Json:
    """Combine a configuration with a vocabulary."""
    first = configuration.get("first", [])
    last = configuration.get("last", [{"contents": ["<|endoftext|>"]}])
    low = [content for added in first for content in expand(added["contents"])]
    vocab = {entry: id_ for id_, entry in enumerate(dict.fromkeys((*low, *vocabulary.entries)))}
    ids = dict(vocab)
    for added in last:
        for content in expand(added["contents"]):
            ids.setdefault(content, len(ids))
    added_tokens = [
        {"id": ids[content], "content": content} | {flag: added.get(flag, FLAGS[flag]) for flag in FLAGS}
        for added in (*first, *last)
        for content in expand(added["contents"])
    ]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": configuration.get("ignore_merges", False),
        "vocab": vocab,
        "merges": vocabulary.merges,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added_tokens, key=lambda token: token["id"]),
        "normalizer": configuration.get("normalizer"),
        "pre_tokenizer": pre_tokenizer(configuration, patterns),
        "post_processor": post_processor(configuration, ids),
        "decoder": byte_level(add_prefix_space=True),
        "model": model,
    }


def byte_level(add_prefix_space: bool = False, trim_offsets: bool = True, use_regex: bool = True) -> Json:
    options = {"add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets, "use_regex": use_regex}
    return {"type": "ByteLevel"} | options


def pre_tokenizer(configuration: Json, patterns: dict[str, str]) -> Json:
    if "splits" in configuration:
        steps: list[Json] = [
            {"type": "Split", "pattern": {"Regex": name}, "behavior": "Isolated", "invert": False}
            for name in configuration["splits"]
        ]
        steps.append(byte_level(trim_offsets=configuration.get("trim_offsets", True), use_regex=False))
    else:
        steps = configuration.get("pre_tokenizer", [byte_level()])
    for step in steps:
        if step["type"] == "Split":
            name = step["pattern"]["Regex"]
            step["pattern"] = {"Regex": patterns.get(name, name)}
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}


def post_processor(configuration: Json, ids: dict[str, int]) -> Json | None:
    """Return the component with the IDs of its tokens filled in."""
    if roberta := configuration.get("roberta"):
        ends = {role: [content, ids[content]] for role, content in roberta.items()}
        return {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": False} | ends
    if (template := configuration.get("template")) is None:
        return configuration.get("post_processor")
    before, after = template.get("before", []), template.get("after", [])

    def one(sequence: str, type_id: int) -> list[Json]:
        left, right = (
            [{"SpecialToken": {"id": token, "type_id": type_id}} for token in tokens]
            for tokens in (before, after)
        )
        return [*left, {"Sequence": {"id": sequence, "type_id": type_id}}, *right]

    tokens = {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (*before, *after)}
    processing: Json = {
        "type": "TemplateProcessing",
        "single": one("A", 0),
        "pair": [*one("A", 0), *one("B", 1)],
        "special_tokens": tokens,
    }
    if not template.get("with_byte_level"):
        return processing
    return {"type": "Sequence", "processors": [byte_level(True, False), processing]}


def expand(contents: Sequence[str | Json]) -> Iterator[str]:
    """["<s>", {"form": "<{}>", "first": 5, "count": 2}] -> "<s>", "<5>", "<6>"."""
    for content in contents:
        if isinstance(content, str):
            yield content
        elif "form" in content:
            numbers = range(content["first"], content["first"] + content["count"])
            yield from map(content["form"].format, numbers)
        elif "runs_of" in content:
            yield from (content["runs_of"] * length for length in range(content["longest"], 1, -1))
        else:
            steps = (number * content["step"] for number in range(content["count"]))
            yield from map(content["seconds"].format, steps)
