"""JSON Lines: {"tokens": [1, 2, 3]} a line and document, with its "text" where that is asked for, and "loss_mask", 1
for each token that is to be learned and 0 for the others, of a dataset that has one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.formats import Contents, Writer
from flat_tokens.storage import entries


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """See Writer. With text a document is held in memory."""
    name = f"{contents.split}.jsonl"
    with (folder / name).open("wb") as file:
        line = _Line(file, contents.entries)
        for ids, ends, trained in blocks:
            assert ends is not None
            start = 0
            for end in [*ends.tolist(), None]:
                line.add(ids[start:end], None if trained is None else trained[start:end])
                if end is not None:
                    line.end()
                    start = end
    return [name]


class _Line:
    """The line of one document after the other, some tokens at a time."""

    def __init__(self, file: BinaryIO, known: dict[int, bytes] | None) -> None:
        self._file, self._known = file, known
        self._begun = False
        self._ids: list[int] = []  # where text is asked for
        self._trained: list[int] | None = None  # of a dataset with a mask

    def add(self, ids: np.ndarray, trained: np.ndarray | None) -> None:
        values = ids.tolist()
        if trained is not None:
            self._trained = (self._trained or []) + trained.astype(np.uint8).tolist()
        if not values:
            return
        self._file.write(b", " if self._begun else b'{"tokens": [')
        self._file.write(str(values)[1:-1].encode())  # of integers a list is written as in JSON
        self._begun = True
        if self._known is not None:
            self._ids += values

    def end(self) -> None:
        self._file.write(b"]" if self._begun else b'{"tokens": []')
        if self._known is not None:
            self._file.write(b', "text": ' + json.dumps(entries.decode(self._ids, self._known)).encode())
            self._ids = []
        if self._trained is not None:
            self._file.write(f', "loss_mask": {self._trained}'.encode())
            self._trained = []
        self._file.write(b"}\n")
        self._begun = False


WRITER = Writer(write, (), has_text=True, has_mask=True)
