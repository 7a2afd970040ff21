"""The formats, by name. To add one: a file beside this one with READER or WRITER or both, and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.inputs import ReadOptions


class Format(NamedTuple):
    """about: what it is, and what of it is read and written; reads, writes: whether there is READER, WRITER."""

    about: str
    reads: bool
    writes: bool


FORMATS = {
    "megatron": Format("PREFIX.bin and PREFIX.idx of Megatron-LM, NeMo, GPT-NeoX", True, True),
    "nanogpt": Format("train.bin and val.bin of nanoGPT; shards of llm.c and modded-nanogpt", True, True),
    "npy": Format("NAME.npy with IDs, NAME.offsets.npy with document offsets", True, True),
    "jsonl": Format('one document per line, {"tokens": [...]}', False, True),
    "mds": Format("a folder of mosaicml-streaming (MDSWriter)", True, False),
    "litdata": Format("a folder of litdata (optimize with TokensLoader)", True, False),
    "datatrove": Format("NAME.ds and NAME.ds.index of datatrove, or a folder with several", True, False),
}


def wrong_dtype(format_name: str, dtypes: tuple[str, ...], dtype: str) -> ArgumentError:
    """Return the error for a --dtype that a format does not have. dtypes: those that it has."""
    if not dtypes:
        return invalid("--dtype", f"not an option of {format_name}", dtype, "Omit it.")
    return invalid("--dtype", f"for {format_name} must be one of {', '.join(dtypes)}", dtype)


class Contents(NamedTuple):
    """What is written of a split. dtype: of the ids in the file; entries: by which text is written, if at all."""

    split: str
    tokens: int
    documents: int
    dtype: np.dtype[Any]
    entries: dict[int, bytes] | None


@dataclass(frozen=True)
class Writer:
    """write(folder, contents, blocks) writes a split into a folder and returns the names of its files; it consumes all
    blocks. dtypes: those that ids may have, narrowest first, none where the format has no types; is_fixed: the first
    one is taken unless another is asked for, for readers that know no other. marks_documents: whether a reader finds
    the documents without a token between them. has_mask: whether a loss mask has a place in it."""

    write: Callable[[Path, Contents, Iterator[Block]], list[str]]
    dtypes: tuple[str, ...]
    is_fixed: bool = False
    marks_documents: bool = True
    has_text: bool = False
    has_mask: bool = False


@dataclass(frozen=True)
class Reader:
    """read(place, options) gives the blocks of an input, a path or URL. dtypes: those that a person may name."""

    read: Callable[[str, ReadOptions], Iterator[Block]]
    dtypes: tuple[str, ...] = ()
    has_columns: bool = False


def writer_of(name: str) -> Writer:
    """What writes a format of FORMATS."""
    return cast(Writer, import_module(f"flat_tokens.exchange.{name}").WRITER)


def reader_of(name: str) -> Reader:
    """What reads a format of FORMATS."""
    return cast(Reader, import_module(f"flat_tokens.exchange.{name}").READER)
