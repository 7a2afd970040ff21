"""nanoGPT's files: the ids of all documents one after the other, uint16, and nothing else; a token ends each document.

nanoGPT's data scripts write train.bin and val.bin by numpy.memmap and its train.py reads them as uint16. Ids above
65,535 need uint32, which a reader must be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from flat_tokens.errors import DatasetError
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.formats import Contents, Reader, Writer
from flat_tokens.exchange.inputs import InputFile, ReadOptions, without_ends

DTYPES = ("uint16", "uint32")
FILE_NAMES = {"train": "train.bin", "validation": "val.bin"}
TEXT_BYTES, TEXT_CHARACTERS = 512, 8  # at the beginning of a file that is taken for text
# Files of 16 ids of 32 bits are known; vocabularies below 2^20 have upper halves below 16.
WIDE_BYTES, HIGHEST_UPPER = 64, 16
# A file of llm.c and modded-nanogpt: 256 int32 in front, this number, a version and the count of ids.
OTHER_MAGIC, OTHER_HEADER_BYTES = 20240520, 1024


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """See Writer."""
    name = FILE_NAMES[contents.split]
    with (folder / name).open("wb") as file:
        for ids, _, _ in blocks:
            file.write(ids.astype(contents.dtype).data)
    return [name]


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader."""
    with InputFile(place, options.storage) as file:
        if file.size >= OTHER_HEADER_BYTES and file.numbers(0, 1, "i4")[0] == OTHER_MAGIC:
            raise DatasetError(
                f"{file.name}: begins with the {OTHER_HEADER_BYTES} bytes of a header of llm.c, which nanoGPT's files "
                f"lack; leave them out, as by tail -c +{OTHER_HEADER_BYTES + 1}"
            )
        _refuse_text(file)
        if options.dtype is None:
            _refuse_wide(file)
        yield from without_ends(file.all_ids(0, options.dtype or DTYPES[0]))


def _refuse_text(file: InputFile) -> None:
    """DatasetError for a file that begins as English or code does: ids of 16 bits do not do so by chance."""
    head = bytes(file.bytes(0, min(file.size, TEXT_BYTES)))
    if len(set(head)) > TEXT_CHARACTERS and re.fullmatch(rb"[\t\n\r -~]+", head):
        raise DatasetError(f"{file.name}: holds text, not ids; tokenmill convert makes a dataset of text")


def _refuse_wide(file: InputFile) -> None:
    """DatasetError for a file that begins as ids of 32 bits do, whose upper halves would be every second id: 0, or few
    where the others are many."""
    if file.size % 4 or file.size < WIDE_BYTES:
        return
    low, high = file.numbers(0, min(file.size, 1 << 16) // 2, "u2").reshape(-1, 2).T
    if low.any() and (high.max() == 0 or high.max() < HIGHEST_UPPER <= low.max()):
        raise DatasetError(
            f"{file.name}: every second number of 16 bits is at most {high.max()}, as in files of uint32; say what it "
            "is: --dtype uint32, or uint16"
        )


WRITER = Writer(write, DTYPES, is_fixed=True, marks_documents=False)
READER = Reader(read, DTYPES)
