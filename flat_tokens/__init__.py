"""The flat-tokens dataset format: write, read and verify tokenized sequences for training
(docs/reference/dataset-format.md).

    import flat_tokens
    dataset = flat_tokens.open("owt.zarr")
    dataset.train.sequence(0), dataset.train.row(5, length=1024), dataset.train.seq_count

Reading imports numpy and numcodecs alone, zarr only for layouts that nobody in this package writes. A few loops
have a C++ form, used where it was built (flat_tokens/built.py). The names below are imported when first used: who
only opens and reads, or only writes, is spared the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flat_tokens.dataset_writer import Writer
    from flat_tokens.errors import ArgumentError, DatasetError, FlatTokensError, RangeError
    from flat_tokens.loading.batch import Batch
    from flat_tokens.loading.loader import Loader
    from flat_tokens.loading.mixing import Mixture
    from flat_tokens.opening import Dataset
    from flat_tokens.opening import open as open  # exported, although __all__ lacks it
    from flat_tokens.packs.pack import Pack, PackBatch
    from flat_tokens.packs.packed_sequences import PackedSequences
    from flat_tokens.packs.packing_plan import PackingReport
    from flat_tokens.reader import FlatTokensArray, Row
    from flat_tokens.sources import RowPart, SourcePlace
    from flat_tokens.storage.layout import ArrayLayout
    from flat_tokens.verify import VerifyReport, verify_dataset

# A star import must not replace the built-in function `open`.
__all__ = [
    "ArgumentError",
    "ArrayLayout",
    "Batch",
    "Dataset",
    "DatasetError",
    "FlatTokensArray",
    "FlatTokensError",
    "Loader",
    "Mixture",
    "Pack",
    "PackBatch",
    "PackedSequences",
    "PackingReport",
    "RangeError",
    "Row",
    "RowPart",
    "SourcePlace",
    "VerifyReport",
    "Writer",
    "verify_dataset",
]

_MODULE_OF = {
    "ArgumentError": "errors",
    "ArrayLayout": "storage.layout",
    "Batch": "loading.batch",
    "Dataset": "opening",
    "DatasetError": "errors",
    "FlatTokensArray": "reader",
    "FlatTokensError": "errors",
    "Loader": "loading.loader",
    "Mixture": "loading.mixing",
    "Pack": "packs.pack",
    "PackBatch": "packs.pack",
    "PackedSequences": "packs.packed_sequences",
    "PackingReport": "packs.packing_plan",
    "RangeError": "errors",
    "Row": "reader",
    "RowPart": "sources",
    "SourcePlace": "sources",
    "VerifyReport": "verify",
    "Writer": "dataset_writer",
    "open": "opening",
    "verify_dataset": "verify",
}


# Which `import flat_tokens` alone gives as well.
_MODULES = ("errors", "format", "opening", "reader", "storage")


if not TYPE_CHECKING:  # a checker knows the names by their imports above, and tells of others

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
