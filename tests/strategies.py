"""Hypothesis profiles, and the strategies that tests of several packages share.

A corpus is drawn as files of bytes: every kind of input and compression, with or without faults. A conversion is a
corpus with the options that determine its dataset. Engines and text chunks are drawn separately, because the dataset
must not depend on them.

    pytest --hypothesis-profile ci             or HYPOTHESIS_PROFILE=ci pytest
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# Examples per test. `quick` and `commit` draw the same ones in each run; the others print how to repeat a failure.
PROFILES = {"quick": 2, "commit": 20, "ci": 200, "nightly": 5000}

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = [END, START, STOP, "<|endoftext"]  # the last one is a prefix of the first
SEPARATORS = [END, "\n\n", "aa", "aba", "…", "\r\n", START, "ab" * 9]  # several overlap themselves
COMPRESSIONS = ["none", "gz", "bz2", "xz", "zst"]
FORMS = ["txt", "jsonl", "json", "csv", "tsv", "tar", "parquet", "arrow", "feather", "saved"]
TAR_FORMATS = [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT]
RECORD_FORMS = ["jsonl", "json", "csv", "tsv", "parquet", "arrow", "feather", "saved"]
INVALID = [b"\xff", b"\xe6\x9d", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xf0\x9f\x99"]
NOT_WHAT_THEY_SEEM = {
    "plain.txt.gz": b"no gzip data",
    "utf-16.txt": "text".encode("utf-16"),
    "utf-16.jsonl": '{"text": "a"}'.encode("utf-16"),
    "gzip.txt": gzip.compress(b"text", mtime=0),
    "gzip.jsonl": gzip.compress(b'{"text": "a"}', mtime=0),
    "pointer.jsonl": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n",
    "short.parquet": b"PAR1",
    "other.csv": b"id;words\n1;a\n",
}
BAD_LINES = [
    b"{",
    b'{"text": "abc',
    b'["text"]',
    b'{"body": "a"}',
    b'{"text": null}',
    b'{"text": 1}',
    b'{"text": "a", "text": "b"}',
    b'{"text": "a"} {}',
    b'{"text": "a", "x": 01}',
    b'{"text": "a", "x": nan}',
    b'{"text": "a\tb"}',
    rb'{"text": "\x41"}',
    rb'{"text": "\ud800"}',
]


def load_profile() -> None:
    """Register the profiles and load the one of HYPOTHESIS_PROFILE (default: commit)."""
    for name, count in PROFILES.items():
        settings.register_profile(
            name,
            max_examples=count,
            deadline=None,
            derandomize=name in ("quick", "commit"),
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))


def examples(share: float) -> settings:
    """The settings of the loaded profile with a share of its examples, for tests that cost more or less than others."""
    return settings(max_examples=max(2, int(settings().max_examples * share)))


# -- text

_WORDS = [
    *"the, of, and,it's, don't,---, 2026,x1, ,  ,a,aa,ab,aba,b,naïve, façade,東京都, привет,🙂👍🏽,…".split(
        ","
    ),
    *"e\u0301,\x00,\t,\n,\n\n,\r\n,\r,\ufeff,\u2028,<|endoftext|>,<|im_start|>,<|im_end|>,<|endoftext,<|im_,|>".split(
        ","
    ),
]


def documents() -> st.SearchStrategy[str]:
    """Words of several scripts, line ends, special tokens and parts of them; now and then any characters."""
    words = st.lists(st.sampled_from(_WORDS), max_size=15).map("".join)
    return words | words | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


# -- files


def compressed(data: bytes, compression: str, members: int = 1) -> bytes:
    """The data as `members` members or frames of about equal size."""
    step = -(-len(data) // members) or 1
    parts = [data[start : start + step] for start in range(0, len(data), step)] or [b""]
    return b"".join(_compress(part, compression) for part in parts)


def _compress(data: bytes, compression: str) -> bytes:
    if compression == "zst":
        import zstandard

        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    if compression == "gz":
        return gzip.compress(data, mtime=0)
    compress = {"none": bytes, "bz2": bz2.compress, "xz": lzma.compress}
    return compress[compression](data)


@dataclass(frozen=True)
class Corpus:
    """files: path -> bytes. inputs, validation: the arguments for a command, in order."""

    files: dict[str, bytes]
    inputs: list[str]
    validation: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(map(len, self.files.values()))

    def write(self) -> None:
        """Write the files below the current folder."""
        for name, data in self.files.items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(data)


@st.composite
def text_bytes(draw: st.DrawFn, separator: str, faults: bool) -> bytes:
    """Documents with separators between them, perhaps at the end too. Faults are invalid UTF-8 in some documents."""
    found = [text.encode() for text in draw(st.lists(documents(), max_size=12))]
    for index in draw(st.lists(st.integers(0, 11), max_size=3)) if faults else ():
        found.insert(index, b"a" + draw(st.sampled_from(INVALID)) + draw(documents()).encode())
    return separator.encode().join(found) + draw(st.sampled_from([b"", separator.encode(), b"\n"]))


@st.composite
def json_lines(draw: st.DrawFn, records: Sequence[dict[str, Any]], faults: bool) -> bytes:
    """A line per record, with blank lines and bad lines between them."""
    lines = [json.dumps(record, ensure_ascii=draw(st.booleans())).encode() for record in records]
    extra = [b"", b" \t"] + (BAD_LINES + [b'{"text": "a%s"}' % data for data in INVALID] if faults else [])
    for place in draw(st.lists(st.integers(0, len(lines)), max_size=4)):
        lines.insert(place, draw(st.sampled_from(extra)))
    line_end = draw(st.sampled_from([b"\n", b"\r\n"]))
    start = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) if lines else b""
    return start + line_end.join(lines) + draw(st.sampled_from([b"", line_end]))


def csv_bytes(records: Sequence[dict[str, Any]], delimiter: str, bad_row: int | None) -> bytes:
    """A header and a row per record. Row `bad_row` has a value too many."""
    rows = io.StringIO(newline="")
    writer = csv.writer(rows, delimiter=delimiter)
    names = list(records[0]) if records else ["id", "text"]
    writer.writerow(names)
    for number, record in enumerate(records):
        writer.writerow([*record.values(), *(["more"] if number == bad_row else [])])
    return rows.getvalue().encode()


def tar_bytes(texts: Sequence[bytes], form: int) -> bytes:
    """A file per text, with folders, links and hidden files between them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for index, text in enumerate(texts):
            folder = "long/" * 25 if index % 3 == 1 else "./in/"
            for name, kind, data in (
                (folder, tarfile.DIRTYPE, b""),
                (f"{folder}.hidden", tarfile.REGTYPE, b"not this"),
                (f"{folder}link", tarfile.SYMTYPE, b""),
                (f"{folder}{index}.txt", tarfile.REGTYPE, text),
            ):
                member = tarfile.TarInfo(name)
                member.type, member.size = kind, len(data)
                member.linkname = "elsewhere" if kind == tarfile.SYMTYPE else ""
                archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


@st.composite
def table_bytes(draw: st.DrawFn, records: Sequence[dict[str, Any]], form: str, faults: bool) -> bytes:
    """A Parquet file, an Arrow file ("feather") or an Arrow stream. Faults are nulls and invalid UTF-8."""
    import pyarrow
    import pyarrow.parquet

    names = list(records[0]) if records else ["id", "text"]
    columns: dict[str, Any] = {name: [record[name] for record in records] for name in names}
    if "text" in columns:
        texts: list[bytes | None] = [text.encode() for text in columns["text"]]
        for place in draw(st.lists(st.integers(0, 12), max_size=3)) if faults else ():
            texts[place : place + 1] = [draw(st.sampled_from([None, *INVALID]))]
        kind = "binary" if faults else draw(st.sampled_from(["string", "large_string", "binary"]))
        columns = {"text": pyarrow.array(texts, kind)}
    table, rows, out = pyarrow.table(columns), draw(st.integers(1, 6)), pyarrow.BufferOutputStream()
    if form == "parquet":
        pyarrow.parquet.write_table(table, out, row_group_size=rows, write_page_checksum=draw(st.booleans()))
    else:
        make = pyarrow.ipc.new_file if form == "feather" else pyarrow.ipc.new_stream
        options = pyarrow.ipc.IpcWriteOptions(compression=draw(st.sampled_from([None, "zstd", "lz4"])))
        with make(out, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=rows)
    return out.getvalue().to_pybytes()


@st.composite
def record_files(
    draw: st.DrawFn, stem: str, records: Sequence[dict[str, Any]], form: str, faults: bool = False
) -> Corpus:
    """The records as one input, in a form other than plain text."""
    if form == "saved":
        info = {"_data_files": [{"filename": "data-0.arrow"}], "_indices_data_files": None}
        data = draw(table_bytes(records, "arrow", faults))
        files = {"data-0.arrow": data, "state.json": json.dumps(info).encode(), "dataset_info.json": b"{}"}
        return Corpus({f"{stem}/{name}": content for name, content in files.items()}, [stem])
    if form in ("parquet", "arrow", "feather"):
        name = f"{stem}.{form}"
        return Corpus({name: draw(table_bytes(records, form, faults))}, [name])
    if form == "jsonl":
        data = draw(json_lines(records, faults))
    elif form == "json":
        bad = (
            draw(st.lists(st.sampled_from([{"body": "a"}, {"text": 5}, "text"]), max_size=2))
            if faults
            else []
        )
        data = json.dumps([*records, *bad], indent=draw(st.sampled_from([None, 1]))).encode()
    elif form == "tar":
        texts = [record["text"].encode() for record in records] + ([b"a\xff"] if faults else [])
        data = tar_bytes(texts, draw(st.sampled_from(TAR_FORMATS)))
    else:
        bad_row = draw(st.none() | st.integers(0, 12)) if faults else None
        data = csv_bytes(records, "," if form == "csv" else "\t", bad_row)
    return draw(packed(f"{stem}.{form}", data))


@st.composite
def packed(draw: st.DrawFn, name: str, data: bytes) -> Corpus:
    """A file, compressed or not, in one or several members."""
    compression = draw(st.sampled_from(["none", *COMPRESSIONS]))
    name += "" if compression == "none" else f".{compression}"
    return Corpus({name: compressed(data, compression, draw(st.integers(1, 3)))}, [name])


@st.composite
def inputs(draw: st.DrawFn, stem: str, separator: str, faults: bool) -> Corpus:
    """One input of any kind; with faults also a file that is not as its name says."""
    form = draw(st.sampled_from(["txt", *FORMS, *(["other"] if faults else [])]))  # plain text twice as often
    if form == "other":
        name = draw(st.sampled_from(sorted(NOT_WHAT_THEY_SEEM)))
        return Corpus({f"{stem}-{name}": NOT_WHAT_THEY_SEEM[name]}, [f"{stem}-{name}"])
    if form == "txt":
        return draw(packed(f"{stem}.txt", draw(text_bytes(separator, faults))))
    texts = draw(st.lists(documents(), max_size=12))
    return draw(record_files(stem, [{"id": at, "text": text} for at, text in enumerate(texts)], form, faults))


@st.composite
def corpora(draw: st.DrawFn, separator: str = END, faults: bool = False, held_out: bool = False) -> Corpus:
    """One to four inputs of any kind, with `held_out` one or two for validation too."""
    counts = {"i": draw(st.integers(1, 4)), "v": draw(st.integers(1, 2)) if held_out else 0}
    drawn = {
        kind: [draw(inputs(f"{kind}{number}", separator, faults)) for number in range(count)]
        for kind, count in counts.items()
    }
    files = {name: data for each in (*drawn["i"], *drawn["v"]) for name, data in each.files.items()}
    return Corpus(files, *([name for each in drawn[kind] for name in each.inputs] for kind in drawn))


# -- options

_LAYOUTS = st.fixed_dictionaries(
    {
        "zarr_format": st.sampled_from([2, 3]),
        "compression": st.sampled_from(["zstd", "zstd", "none"]),
        "chunk_tokens": st.sampled_from([8, 64, 1000, None]),
    }
)
_SPLITS = st.one_of(
    st.sampled_from([0.0, 0.005, 0.3, 0.5, 1.0]).map(lambda share: {"validation_fraction": share}),
    st.sampled_from([0, 1, 3, 7, 1000]).map(lambda count: {"validation_docs": count}),
    st.just({"by_file": True}),
)


@dataclass(frozen=True)
class Conversion:
    """A corpus with options of its dataset. content: options that decide the tokens. layout: options of the arrays."""

    corpus: Corpus
    content: dict[str, Any]
    layout: dict[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """All options but the inputs."""
        return self.content | self.layout


@st.composite
def conversions(draw: st.DrawFn, faults: bool = False) -> Conversion:
    """A corpus of all kinds with options that fit it."""
    split = dict(draw(_SPLITS))
    held_out = split.pop("by_file", False)
    content = {
        "separator": draw(st.sampled_from(SEPARATORS)),
        "seed": draw(st.sampled_from([0, 7, 2**64 - 1])),
        "special_in_text": draw(st.sampled_from([None, "encode", "text", *(["error"] if faults else [])])),
        "append_token": draw(st.sampled_from([None, END])),
        "prepend_token": draw(st.sampled_from([None, START])),
        "replace_invalid": faults and draw(st.booleans()),
        "on_error": draw(st.sampled_from(["skip", "quarantine", "fail"] if faults else ["fail", "skip"])),
        **split,
    }
    corpus = draw(corpora(content["separator"], faults, held_out))
    return Conversion(corpus, content, draw(_LAYOUTS))


def text_chunk_bytes(draw: st.DrawFn, size: int, tasks: int = 60) -> int | None:
    """The size of text chunks for a corpus of `size` bytes: as small as `tasks` tasks allow, or one chunk for all."""
    return draw(st.none() | st.integers(max(1, size // tasks), max(2, size)))


def prompts() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Records with a prompt and a completion, cut anywhere in a text."""
    cut = st.tuples(documents(), st.integers(0, 40)).map(
        lambda pair: {"prompt": pair[0][: pair[1]], "completion": pair[0][pair[1] :]}
    )
    return st.lists(cut, min_size=1, max_size=12)


def chats() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Records with messages that hold no special token."""
    content = documents().map(lambda text: text.replace("|", ""))
    role = st.sampled_from(["system", "user", "assistant"])
    messages = st.lists(st.fixed_dictionaries({"role": role, "content": content}), min_size=1, max_size=4)
    return st.lists(st.fixed_dictionaries({"messages": messages}), min_size=1, max_size=8)
