"""Every loader behind the same call, so that one loop measures them all: endless shuffled batches of rows.

Each gets the same ids in the form that it likes best, on the same disk, and hands out 64 x 1,024 (or whatever is
asked for) at a time. `batches` never ends: epoch follows epoch. Peers hand out plain rows, one token longer than
those of ours, since the trainer still has to shift them; ours come shifted, cut at sequence starts and with flags.
TorchInputs makes the same of the same tokens, as well as numpy can.
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint16]


def is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class TorchMemmap:
    """DataLoader over a memmap of uint16 ids, a whole batch of rows by one fancy index in `__getitems__`."""

    module = "torch"

    def __init__(self, folder: Path, ids: Ids, dtype: type[Any] | None) -> None:
        self.path = folder / "ids.npy"
        self.dtype = dtype
        if not self.path.exists():
            np.save(self.path, ids)

    def batches(self, seq_len: int, batch_size: int) -> Iterator[Any]:
        import torch
        from torch.utils.data import DataLoader

        ids = np.load(self.path, mmap_mode="r")
        count = (len(ids) - 1) // seq_len
        rows = np.lib.stride_tricks.as_strided(
            np.asarray(ids), (count, seq_len + 1), (seq_len * ids.itemsize, ids.itemsize)
        )
        dtype = self.dtype

        class Rows(torch.utils.data.Dataset[Any]):
            def __len__(self) -> int:
                return count

            def __getitems__(self, indices: list[int]) -> Any:
                found = rows[indices]
                return torch.from_numpy(found if dtype is None else found.astype(dtype))

        loader = DataLoader(Rows(), batch_size, shuffle=True, drop_last=True, collate_fn=lambda found: found)
        return itertools.chain.from_iterable(itertools.repeat(loader))


class TorchInputs:
    """DataLoader over a memmap of the tokens as the format stores them, whose `__getitems__` makes what ours hand out:
    inputs that are 0 at sequence starts, targets, and start flags."""

    module = "torch"

    def __init__(self, folder: Path, encoded: NDArray[np.uint32], dtype: type[Any]) -> None:
        self.path = folder / "encoded_tokens.npy"
        self.dtype = dtype
        if not self.path.exists():
            np.save(self.path, encoded)

    def batches(self, seq_len: int, batch_size: int) -> Iterator[Any]:
        import torch
        from torch.utils.data import DataLoader

        encoded = np.load(self.path, mmap_mode="r")
        count = (len(encoded) - 1) // seq_len
        rows = np.lib.stride_tricks.as_strided(  # with the token in front of each; row 0 is left out
            np.asarray(encoded)[seq_len - 1 :],
            (count - 1, seq_len + 1),
            (seq_len * encoded.itemsize, encoded.itemsize),
        )
        dtype = self.dtype

        class Rows(torch.utils.data.Dataset[Any]):
            def __len__(self) -> int:
                return count - 1

            def __getitems__(self, indices: list[int]) -> Any:
                found = rows[indices]
                is_start = (found[:, 1:].astype(np.uint8) & np.uint8(1)).view(np.bool_)
                found >>= np.uint32(1)
                inputs, targets = found[:, :-1].astype(dtype), found[:, 1:].astype(dtype)
                inputs[is_start] = 0
                return tuple(map(torch.from_numpy, (inputs, targets, is_start)))

        loader = DataLoader(Rows(), batch_size, shuffle=True, drop_last=True, collate_fn=lambda found: found)
        return itertools.chain.from_iterable(itertools.repeat(loader))


class Litdata:
    """StreamingDataset with its TokensLoader: uint16 ids in chunks of 64 MB, uncompressed."""

    module = "litdata"

    def __init__(self, folder: Path, ids: Ids, seq_len: int) -> None:
        import torch
        from litdata import TokensLoader
        from litdata.streaming.writer import BinaryWriter

        self.path = folder / "litdata"
        self.path.mkdir()
        writer = BinaryWriter(
            str(self.path), chunk_bytes="64MB", item_loader=TokensLoader(block_size=seq_len + 1)
        )
        step = 2**19
        for number, first in enumerate(range(0, len(ids), step)):
            writer[number] = torch.from_numpy(ids[first : first + step])
        writer.done()
        writer.merge()

    def batches(self, seq_len: int, batch_size: int) -> Iterator[Any]:
        from litdata import StreamingDataset, TokensLoader
        from torch.utils.data import DataLoader

        dataset = StreamingDataset(
            str(self.path), item_loader=TokensLoader(block_size=seq_len + 1), shuffle=True, drop_last=True
        )
        return itertools.chain.from_iterable(itertools.repeat(DataLoader(dataset, batch_size)))


class Mosaic:
    """mosaicml-streaming: a sample a row, uint16, in MDS shards without compression."""

    module = "streaming"

    def __init__(self, folder: Path, ids: Ids, seq_len: int) -> None:
        from streaming import MDSWriter

        self.path = folder / "mds"
        with MDSWriter(out=str(self.path), columns={"ids": f"ndarray:uint16:{seq_len + 1}"}) as writer:
            for first in range(0, len(ids) - seq_len, seq_len):
                writer.write({"ids": ids[first : first + seq_len + 1]})

    def batches(self, seq_len: int, batch_size: int) -> Iterator[Any]:
        from streaming import StreamingDataset
        from torch.utils.data import DataLoader

        dataset = StreamingDataset(local=str(self.path), shuffle=True, batch_size=batch_size)
        return itertools.chain.from_iterable(itertools.repeat(DataLoader(dataset, batch_size)))


def quiet(folder: Path) -> None:
    """Keep the peers' caches inside `folder` and their news to themselves."""
    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = str(folder / "cache")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if is_installed("torch"):
        import torch

        torch.set_num_threads(1)
