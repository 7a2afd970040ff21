"""Writes tokenizer.json files true to the structure that models publish, from vocabularies that are at hand.

    python scripts/bench/tokenizer_files.py --to files --vocabularies r50k.tiktoken gpt2.tokenizer.json o200k.tiktoken

A vocabulary is named by its file up to the first dot, or as NAME=FILE: rank files (*.tiktoken), tokenizer.json and
tekken.json, each also as *.xz. published.py says which family takes which; families whose vocabularies are not given
are left out, and said so. A tokenizer.json that is given is itself a published file: it is copied as it is.
Rank files hold no merges: every way to make an entry from two others becomes one, as the converter of transformers
has it, with the order by rank, then by the ids of the two. With `--one-merge NAME` an entry has just the merge that
its own bytes come to, as files have it that were published beside such a rank file (Qwen's, Phi-4's).
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from published import DECODER, FAMILIES, Added, Json, Published, Roberta, Template, byte_level

TEKKEN_ENTRIES = (
    130_072  # the file lists more than the tokenizer takes: its default size less the special tokens
)
ONE_MERGE = ("cl100k", "qwen3", "r50k")


@dataclass(frozen=True)
class Vocabulary:
    """Entries in the byte alphabet, by id without gaps, and merges, lowest rank first."""

    entries: list[str]
    merges: list[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--vocabularies", nargs="+", required=True, metavar="[NAME=]FILE")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", metavar="FAMILY", help="default: all whose vocabulary is given")
    parser.add_argument(
        "--one-merge",
        nargs="*",
        default=ONE_MERGE,
        metavar="NAME",
        help=f"rank files to take one merge an entry from (default: {' '.join(ONE_MERGE)})",
    )
    options = parser.parse_args()
    paths = dict(map(named, options.vocabularies))
    for path in paths.values():
        if not path.is_file():
            parser.error(f"{path}: no such file")
    options.to.mkdir(parents=True, exist_ok=True)
    for path in write_all(paths, options.to, options.only, options.one_merge):
        print(path)


def named(given: str) -> tuple[str, Path]:
    """ "gpt2.tokenizer.json" -> ("gpt2", its path); "gpt2=a.json" -> ("gpt2", "a.json")."""
    name, equals, path = given.rpartition("=")
    return (name if equals else Path(path).name.partition(".")[0]), Path(path)


def write_all(
    paths: dict[str, Path], folder: Path, only: Collection[str] | None, one_merge: Collection[str]
) -> Iterable[Path]:
    """The files written, family after family; each vocabulary is read once."""
    vocabularies: dict[str, Vocabulary] = {}
    for name, path in paths.items():
        content = read(path)
        if (not only or name in only) and is_published(content):
            copy = folder / f"{name}.json"
            copy.write_bytes(content)
            yield copy
    for family in FAMILIES:
        if only and family.name not in only:
            continue
        given = [name for name in family.vocabularies if name in paths]
        if not given:
            wanted = " or ".join(family.vocabularies)
            print(f"{family.name} is left out: its vocabulary ({wanted}) was not given", file=sys.stderr)
            continue
        name = given[0]
        if name not in vocabularies:
            vocabularies[name] = read_vocabulary(paths[name], name in one_merge)
        path = folder / f"{family.name}.json"
        path.write_text(json.dumps(tokenizer_json(family, vocabularies[name]), ensure_ascii=False))
        yield path


# -- reading


def read(path: Path) -> bytes:
    return lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()


def is_published(content: bytes) -> bool:
    """Whether a file is a tokenizer.json; a rank file and a tekken.json are only vocabularies."""
    return content.lstrip()[:1] == b"{" and "model" in json.loads(content)


def read_vocabulary(path: Path, one_merge: bool) -> Vocabulary:
    """The entries and merges of a file; of a tokenizer.json without its added tokens."""
    content = read(path)
    if content.lstrip()[:1] != b"{":
        lines = (line.split() for line in content.splitlines() if line)
        ranks = {base64.b64decode(entry): int(rank) for entry, rank in lines}
        return from_ranks(list(ranks), one_merge)
    parsed = json.loads(content)
    if "config" in parsed:  # tekken.json
        entries = [base64.b64decode(entry["token_bytes"]) for entry in parsed["vocab"][:TEKKEN_ENTRIES]]
        return from_ranks(entries, one_merge)
    model = parsed["model"]
    added = {token["content"] for token in parsed["added_tokens"]}
    ids = sorted((id_, entry) for entry, id_ in model["vocab"].items() if entry not in added)
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return Vocabulary([entry for _, entry in ids], [(left, right) for left, right in merges])


def from_ranks(entries: Sequence[bytes], one_merge: bool) -> Vocabulary:
    """The vocabulary of entries by rank, which are their ids.

    from_ranks([b"a", b"b", b"c", b"ab", b"bc", b"abc"], one_merge=False).merges
        -> a b, b c, a bc, ab c; with one_merge a b, b c, ab c
    """
    ranks = {entry: rank for rank, entry in enumerate(entries)}
    merges: list[tuple[bytes, bytes]] = []
    for rank, entry in enumerate(entries):
        if len(entry) < 2:
            continue
        if one_merge:
            parts = parts_below(entry, ranks, rank)
            merges += [(parts[0], parts[1])] if len(parts) == 2 else []
            continue
        cuts = ((entry[:at], entry[at:]) for at in range(1, len(entry)))
        ways = [(left, right) for left, right in cuts if left in ranks and right in ranks]
        merges += sorted(ways, key=lambda way: (ranks[way[0]], ranks[way[1]]))
    alphabet = byte_alphabet()
    return Vocabulary(
        [in_alphabet(entry, alphabet) for entry in entries],
        [(in_alphabet(left, alphabet), in_alphabet(right, alphabet)) for left, right in merges],
    )


def parts_below(entry: bytes, ranks: dict[bytes, int], limit: int) -> list[bytes]:
    """What merging by rank makes of the entry when only ranks below `limit` may merge."""
    parts = [entry[at : at + 1] for at in range(len(entry))]
    while True:
        found = [(ranks.get(parts[at] + parts[at + 1], limit), at) for at in range(len(parts) - 1)]
        rank, at = min(found, default=(limit, 0))
        if rank >= limit:
            return parts
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def byte_alphabet() -> list[str]:
    """GPT-2's character for each byte: itself if it prints, else one from U+0100 on."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in set(printed)]
    character = {byte: chr(byte) for byte in printed} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [character[byte] for byte in range(256)]


def in_alphabet(entry: bytes, alphabet: Sequence[str]) -> str:
    return "".join(map(alphabet.__getitem__, entry))


# -- writing


def tokenizer_json(family: Published, vocabulary: Vocabulary) -> Json:
    """The file of a family: its structure around the entries and merges, ids by place."""
    first = [content for added in family.first for content in added.contents]
    listed = dict.fromkeys((*first, *vocabulary.entries))
    vocab = {entry: id_ for id_, entry in enumerate(listed)}
    ids = dict(vocab)
    for added in family.last:
        for content in added.contents:
            ids.setdefault(content, len(ids))
    added_tokens = sorted(
        (token for added in (*family.first, *family.last) for token in listed_tokens(added, ids)),
        key=lambda token: token["id"],
    )
    model: dict[str, Any] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": family.ignore_merges,
        "vocab": vocab,
        "merges": vocabulary.merges,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens,
        "normalizer": family.normalizer,
        "pre_tokenizer": family.pre_tokenizer,
        "post_processor": post_processor(family.post_processor, ids),
        "decoder": DECODER,
        "model": model,
    }


def listed_tokens(added: Added, ids: dict[str, int]) -> list[Json]:
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return [
        {"id": ids[content], "content": content} | {flag: getattr(added, flag) for flag in flags}
        for content in added.contents
    ]


def post_processor(wanted: Json | Template | Roberta | None, ids: dict[str, int]) -> Json | None:
    """The component with the ids of its tokens; a pair has the tokens around each text."""
    if isinstance(wanted, Roberta):
        return {
            "type": "RobertaProcessing",
            "sep": [wanted.sep, ids[wanted.sep]],
            "cls": [wanted.cls, ids[wanted.cls]],
            "trim_offsets": True,
            "add_prefix_space": False,
        }
    if not isinstance(wanted, Template):
        return wanted

    def one(sequence: str, type_id: int) -> list[Json]:
        before, after = (
            [{"SpecialToken": {"id": token, "type_id": type_id}} for token in tokens]
            for tokens in (wanted.before, wanted.after)
        )
        return [*before, {"Sequence": {"id": sequence, "type_id": type_id}}, *after]

    template: Json = {
        "type": "TemplateProcessing",
        "single": one("A", 0),
        "pair": [*one("A", 0), *one("B", 1)],
        "special_tokens": {
            token: {"id": token, "ids": [ids[token]], "tokens": [token]}
            for token in (*wanted.before, *wanted.after)
        },
    }
    if not wanted.with_byte_level:
        return template
    return {"type": "Sequence", "processors": [byte_level(True, False, True), template]}


if __name__ == "__main__":
    main()
