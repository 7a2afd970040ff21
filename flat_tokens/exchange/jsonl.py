"""JSON Lines: {"tokens": [1, 2, 3]} per document, with "text" on request, and "loss_mask" if the dataset has one.

The loss mask has a 1 for each token that contributes to the loss, and a 0 for the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flat_tokens.exchange.formats import Contents
from flat_tokens.split_writer import Block
from flat_tokens.storage import entries


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """Write one file. Of a document with text or loss mask, the IDs or the mask are held in memory."""
    name, known = f"{contents.split}.jsonl", contents.entries
    begun = False
    held: list[int] = []
    mask: list[int] = []
    with (folder / name).open("w", encoding="ascii", newline="\n") as file:
        for ids, ends, trained in blocks:
            assert ends is not None
            start = 0
            for end in [*ends.tolist(), None]:
                values = ids[start:end].tolist()
                if values:
                    file.write((", " if begun else '{"tokens": [') + str(values)[1:-1])
                    begun = True
                if known is not None:
                    held += values
                if trained is not None:
                    mask += trained[start:end].astype(np.uint8).tolist()
                if end is None:
                    continue
                file.write("]")
                if known is not None:
                    file.write(f', "text": {json.dumps(entries.decode(held, known))}')
                if trained is not None:
                    file.write(f', "loss_mask": {mask}')
                file.write("}\n")
                begun, held, mask, start = False, [], [], end
    return [name]
