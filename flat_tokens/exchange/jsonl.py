"""JSON Lines: {"tokens": [1, 2, 3]} per document, with "text" on request, and "loss_mask" if the dataset has one.

The loss mask has a 1 for each token that contributes to the loss, and a 0 for the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.exchange.formats import Contents
from flat_tokens.split_writer import Block
from flat_tokens.storage import entries


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """Write one file. A document is held in memory."""
    name = f"{contents.split}.jsonl"
    parts: list[tuple[npt.NDArray[Any], npt.NDArray[Any] | None]] = []  # of the document that has not ended
    with (folder / name).open("w", encoding="ascii", newline="\n") as file:
        for ids, ends, trained in blocks:
            assert ends is not None
            start = 0
            for end in ends.tolist():
                parts.append((ids[start:end], None if trained is None else trained[start:end]))
                tokens = np.concatenate([part for part, _ in parts]).tolist()
                line: dict[str, Any] = {"tokens": tokens}
                if contents.entries is not None:
                    line["text"] = entries.decode(tokens, contents.entries)
                if trained is not None:
                    line["loss_mask"] = [int(bit) for _, mask in parts if mask is not None for bit in mask]
                file.write(json.dumps(line) + "\n")
                parts, start = [], end
            parts.append((ids[start:], None if trained is None else trained[start:]))
    return [name]
