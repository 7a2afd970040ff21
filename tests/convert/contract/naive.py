"""A converter in plain Python that is obviously right: it reads files whole and encodes one document after another.

    expected = Naive(tokenizer, Rules(separator="\n\n")).convert(["en.txt", "more.parquet"])
    expected.splits["train"].encoded, expected.skipped

It shares the tokenizer with the program and nothing else. `differences` compares its result with a dataset that Zarr
has read.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
import zarr

from bpe import Tokenizer

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}{% else %}"
    "{{ message.content + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
)
Repair = Callable[[bytes], bytes]  # returns valid UTF-8 or raises ValueError


@dataclass(frozen=True)
class Rules:
    """The options that determine the content of a dataset, named as in ConvertOptions."""

    separator: str = "<|endoftext|>"
    seed: int = 0
    validation_fraction: float = 0.0
    validation_docs: int | None = None
    special_in_text: str | None = None
    append_token: str | None = None
    prepend_token: str | None = None
    replace_invalid: bool = False
    prompt_field: str | None = None
    completion_field: str | None = None
    messages_field: str | None = None

    @property
    def fields(self) -> list[str]:
        if self.prompt_field and self.completion_field:
            return [self.prompt_field, self.completion_field]
        return [self.messages_field or "text"]


class Document(NamedTuple):
    """special: whether special tokens in the text are encoded as tokens. trained: spans of bytes; None: all."""

    text: bytes
    special: bool
    trained: list[tuple[int, int]] | None = None


@dataclass
class Split:
    """sequences: token IDs of each document that has any. masks: for each of its tokens, whether it is trained."""

    documents: int = 0
    sequences: list[list[int]] = field(default_factory=list)
    masks: list[list[bool]] = field(default_factory=list)

    @property
    def encoded(self) -> list[int]:
        return [id_ * 2 + (at == 0) for ids in self.sequences for at, id_ in enumerate(ids)]

    @property
    def starts(self) -> list[int]:
        return list(accumulate(map(len, self.sequences), initial=0))

    @property
    def packed_mask(self) -> list[int]:
        bits = [bit for mask in self.masks for bit in mask]
        return np.packbits(np.array(bits, np.bool_), bitorder="little").tolist()


@dataclass
class Expected:
    """skipped: bad records. replaced: U+FFFD inserted. unreadable: files without any readable record.

    special: documents with the text of a special token that is encoded as ordinary text.
    """

    splits: dict[str, Split] = field(default_factory=lambda: {"train": Split(), "validation": Split()})
    skipped: int = 0
    replaced: int = 0
    unreadable: int = 0
    special: int = 0


class _BadFileError(Exception):
    pass


class Naive:
    """The converter for one tokenizer and some rules."""

    def __init__(self, tokenizer: Tokenizer, rules: Rules) -> None:
        self._tokenizer, self._rules = tokenizer, rules
        self._special = [token.encode() for token in tokenizer.special_tokens]
        self._expected = Expected()

    def convert(self, inputs: Sequence[str], validation: Sequence[str] = ()) -> Expected:
        """Read the files, paths relative to the current folder, and return the expected dataset."""
        documents = [document for path in inputs for document in self._documents_of(Path(path))]
        threshold = self._threshold([document.text for document in documents])
        for document in documents:
            self._add("validation" if self._hash(document.text) < threshold else "train", document)
        for document in (document for path in validation for document in self._documents_of(Path(path))):
            self._add("validation", document)
        return self._expected

    def _documents_of(self, path: Path) -> Iterator[Document]:
        """The good documents of a file or of a folder of save_to_disk; bad ones are counted."""
        if path.is_dir():
            for part in json.loads((path / "state.json").read_text())["_data_files"]:
                yield from self._documents_of(path / part["filename"])
            return
        form = next(suffix for suffix in reversed(path.suffixes) if suffix in _READERS or suffix == ".txt")
        try:
            data = _decompressed(path.read_bytes(), path.suffix)
            if form in (".txt", ".jsonl") and data.startswith((b"\xff\xfe", b"\x1f\x8b")):  # UTF-16, gzip
                raise _BadFileError
            for record in self._texts(data) if form == ".txt" else _READERS[form](data, self._repair):
                document = self._document(record, is_text=form == ".txt")
                if document is None:
                    self._expected.skipped += 1
                else:
                    yield document
        except _BadFileError:
            self._expected.unreadable += 1

    def _texts(self, data: bytes) -> Iterator[dict[str, bytes]]:
        texts = (self._repair(data) if self._rules.replace_invalid else data).split(
            self._rules.separator.encode()
        )
        if not texts[-1]:  # the end of the file ends a document as a separator does
            texts.pop()
        return ({"text": text} for text in texts)

    def _document(self, record: Any, is_text: bool) -> Document | None:
        """The document of a record, None if the record is bad."""
        rules = self._rules
        if not isinstance(record, dict) or any(name not in record for name in rules.fields):
            return None
        values = [record[name] for name in rules.fields]
        if rules.messages_field:
            return _chat(json.loads(values[0]) if isinstance(values[0], str) else values[0])
        if not all(isinstance(value, (str, bytes)) for value in values):
            return None
        try:
            texts = [self._repair(self._bytes(value)) for value in values]
        except ValueError:
            return None
        text = b"".join(texts)
        if rules.special_in_text == "error" and any(token in text for token in self._special):
            return None
        special = rules.special_in_text == "encode" or (is_text and rules.special_in_text is None)
        return Document(text, special, None if len(texts) == 1 else [(len(texts[0]), len(text))])

    def _bytes(self, value: str | bytes) -> bytes:
        if isinstance(value, str) and self._rules.replace_invalid:
            value, count = re.subn("[\ud800-\udfff]", "\ufffd", value)
            self._expected.replaced += count
        return value.encode() if isinstance(value, str) else value

    def _repair(self, data: bytes) -> bytes:
        if not self._rules.replace_invalid:
            return data.decode().encode()
        text = data.decode(errors="replace")
        self._expected.replaced += text.count("\ufffd") - data.count("\ufffd".encode())
        return text.encode()

    def _hash(self, text: bytes) -> int:
        return xxhash.xxh64_intdigest(text, self._rules.seed)

    def _threshold(self, texts: list[bytes]) -> int:
        """Documents with a smaller hash are validation."""
        count = self._rules.validation_docs
        if count is None:
            return int(self._rules.validation_fraction * 2**64)
        hashes = sorted(self._hash(text) for text in texts if text)
        if count > len(hashes):
            return 2**64
        return hashes[count - 1] + 1 if count else 0

    def _add(self, name: str, document: Document) -> None:
        split, tokens, rules = self._expected.splits[name], self._tokenizer, self._rules
        split.documents += 1
        if not document.special:
            self._expected.special += any(token in document.text for token in self._special)
        ids = tokens.encode(document.text.decode(), allowed_special="all" if document.special else ())
        if not ids:
            return
        mask = [True] * len(ids)
        if document.trained is not None:  # a token is trained if one of its bytes is
            stops = list(accumulate(len(tokens.vocab[id_]) for id_ in ids))
            spans = list(zip([0, *stops], stops, strict=False))
            mask = [
                any(begin < stop and end > start for begin, end in document.trained) for start, stop in spans
            ]
        if rules.prepend_token:
            ids, mask = [tokens.special_tokens[rules.prepend_token], *ids], [document.trained is None, *mask]
        if rules.append_token:
            ids, mask = [*ids, tokens.special_tokens[rules.append_token]], [*mask, True]
        split.sequences.append(ids)
        split.masks.append(mask)


def _decompressed(data: bytes, suffix: str) -> bytes:
    try:
        if suffix == ".zst":
            import zstandard

            return (
                zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
            )
        decompress = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}.get(
            suffix, bytes
        )
        return decompress(data)
    except OSError:
        raise _BadFileError from None


# -- the records of a file: dictionaries, or another value for a bad one


def _json_lines(data: bytes, repair: Repair) -> Iterator[Any]:
    if data.startswith(b"version https://git-lfs"):
        raise _BadFileError
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip(b" \t\r"):
            try:
                yield json.loads(repair(line), object_pairs_hook=_pairs)
            except ValueError:
                yield None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _json_array(data: bytes, repair: Repair) -> Iterator[Any]:
    yield from json.loads(data)


def _csv(data: bytes, repair: Repair, delimiter: str = ",") -> Iterator[Any]:
    lines = io.StringIO(data.decode(), newline="")
    header, *rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    if not {"text", "prompt", "messages"}.intersection(header):
        raise _BadFileError
    for row in rows:
        yield dict(zip(header, row, strict=True)) if len(row) == len(header) else None


def _tsv(data: bytes, repair: Repair) -> Iterator[Any]:
    return _csv(data, repair, "\t")


def _tar(data: bytes, repair: Repair) -> Iterator[Any]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            parts = [part for part in member.name.split("/") if part != "."]
            if member.isfile() and not any(part.startswith(".") for part in parts):
                yield {"text": archive.extractfile(member).read()}  # type: ignore[union-attr]


def _parquet(data: bytes, repair: Repair) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        yield from pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
    except pyarrow.ArrowInvalid:
        raise _BadFileError from None


def _arrow(data: bytes, repair: Repair) -> Iterator[Any]:
    import pyarrow

    read = pyarrow.ipc.open_file if data.startswith(b"ARROW1") else pyarrow.ipc.open_stream
    yield from read(io.BytesIO(data)).read_all().to_pylist()


_READERS: dict[str, Callable[[bytes, Repair], Iterator[Any]]] = {
    ".jsonl": _json_lines,
    ".json": _json_array,
    ".csv": _csv,
    ".tsv": _tsv,
    ".tar": _tar,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}


def _chat(messages: list[dict[str, str]]) -> Document:
    """What CHAT_TEMPLATE makes of messages; the assistant's content and its end token are trained."""
    text, trained = b"", []
    for message in messages:
        text += f"<|im_start|>{message['role']}\n".encode()
        content = f"{message['content']}<|im_end|>".encode()
        if message["role"] == "assistant":
            trained.append((len(text), len(text) + len(content)))
        text += content + b"\n"
    return Document(text, True, trained)


def differences(path: str | Path, expected: Expected, has_mask: bool = False) -> list[str]:
    """What in the dataset, read by Zarr, is not as expected."""
    root: Any = zarr.open_group(path, mode="r")
    found = []

    def compare(name: str, value: Any, wanted: Any) -> None:
        if value != wanted:
            found.append(f"{name}: {str(value)[:200]}, expected {str(wanted)[:200]}")

    for name, split in expected.splits.items():
        compare(f"{name}/encoded_tokens", root[name]["encoded_tokens"][:].tolist(), split.encoded)
        compare(f"{name}/seq_starts", root[name]["seq_starts"][:].tolist(), split.starts)
        compare(
            f"{name}/max_token_id",
            root[name].attrs["max_token_id"],
            max(map(max, split.sequences), default=0),
        )
        masks = [mask for mask in (f"loss_mask/{name}", f"{name}/loss_mask") if mask in root]
        compare(
            f"{name}/loss_mask", [root[mask][:].tolist() for mask in masks], [split.packed_mask] * has_mask
        )
    return found
