"""The flat-tokens dataset format: write, read and verify tokenized sequences for training
(docs/reference/dataset-format.md).

    import flat_tokens
    dataset = flat_tokens.open("owt.zarr")
    dataset.train.sequence(0), dataset.train.row(5, length=1024), dataset.train.seq_count

The names below are imported on first use, so that readers do not pay for the import of the writer. A few loops are in
C++ (flat_tokens/built.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flat_tokens.dataset_writer import Writer as Writer
    from flat_tokens.errors import ArgumentError as ArgumentError
    from flat_tokens.errors import DatasetError as DatasetError
    from flat_tokens.errors import FlatTokensError as FlatTokensError
    from flat_tokens.errors import RangeError as RangeError
    from flat_tokens.loading.loader import Loader as Loader
    from flat_tokens.loading.mixture import Mixture as Mixture
    from flat_tokens.opening import Dataset as Dataset
    from flat_tokens.opening import open as open
    from flat_tokens.packs.packed_sequences import Pack as Pack
    from flat_tokens.packs.packed_sequences import PackedSequences as PackedSequences
    from flat_tokens.packs.plan import PackingReport as PackingReport
    from flat_tokens.reader import FlatTokensArray as FlatTokensArray
    from flat_tokens.reader import Row as Row
    from flat_tokens.rows.batch import Batch as Batch
    from flat_tokens.sources import RowPart as RowPart
    from flat_tokens.sources import SourcePlace as SourcePlace
    from flat_tokens.storage.layout import ArrayLayout as ArrayLayout
    from flat_tokens.verify import VerifyReport as VerifyReport
    from flat_tokens.verify import verify_dataset as verify_dataset
    from flat_tokens.views import concat as concat

_NAMES = {
    "dataset_writer": "Writer",
    "errors": "ArgumentError DatasetError FlatTokensError RangeError",
    "loading.loader": "Loader",
    "loading.mixture": "Mixture",
    "opening": "Dataset open",
    "packs.packed_sequences": "Pack PackedSequences",
    "packs.plan": "PackingReport",
    "reader": "FlatTokensArray Row",
    "rows.batch": "Batch",
    "sources": "RowPart SourcePlace",
    "storage.layout": "ArrayLayout",
    "verify": "VerifyReport verify_dataset",
    "views": "concat",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = ("errors", "format", "opening", "reader", "storage")  # reachable as attributes

if not TYPE_CHECKING:  # type checkers use the imports above
    # A star import must not replace the built-in function `open`.
    __all__ = sorted(name for name in _MODULE_OF if name != "open")

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
