"""Train BPE tokenizers, tokenize corpora, and load shuffled training batches.

    import tokenmill
    tokenizer = tokenmill.train(["corpus.txt"], vocab_size=32_000, special_tokens=["<|endoftext|>"])
    tokenizer.save("tokenizer.json")
    tokenmill.convert(tokenmill.ConvertOptions(["corpus.txt"], "tokenizer.json", "corpus.zarr"))
    batch = tokenmill.Loader(tokenmill.open("corpus.zarr").train, seq_len=1024, batch_size=8).batch(0)

This module exports the public names of `bpe`, `convert` and `flat_tokens`. Each package is imported when one of its
names is first used, so a file such as `convert.py` in the current folder breaks only `tokenmill.convert`.
The command is `tokenmill`, or `python -m tokenmill`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpe import *  # noqa: F403
    from convert import *  # noqa: F403
    from flat_tokens import *  # noqa: F403
    from flat_tokens import open as open

    __version__: str

_NAMES = {
    "bpe": "PATTERNS AddedToken BadArgument BadCounts BadTokenizer BpeError CountSet EnvironmentFailure InvalidText "
    "MissingInput NotEnoughMemory PretokenCounts Ragged Refused Tokenizer Training TrainingOptions UncoveredText "
    "UnsupportedTokenizer count_files count_pretokens train train_on train_sizes",
    "convert": "ConvertOptions Summary convert encode_share",
    "flat_tokens": "ArgumentError ArrayLayout Batch Dataset DatasetError FlatTokensArray FlatTokensError Loader "
    "Mixture Pack PackedSequences PackingReport RangeError Row RowPart SourcePlace VerifyReport "
    "Writer concat verify_dataset",
}
_PACKAGE_OF = {name: package for package, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_PACKAGE_OF]
# Not in __all__, so that a star import keeps the built-in function.
_PACKAGE_OF["open"] = "flat_tokens"


def import_package(name: str) -> Any:
    """Import `bpe`, `convert` or `flat_tokens` from this installation.

    Raise ImportError, without running the other code, if another module or package of that name comes first on
    sys.path.
    """
    spec = find_spec(name) if name not in sys.modules else sys.modules[name].__spec__
    expected = Path(__file__).resolve().parents[1] / name / "__init__.py"
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != expected:
        found = spec.origin if spec is not None else "nothing"
        why = f"shadows tokenmill's package {name!r}. Rename or move it, or run Python with -P."
        raise ImportError(f"{found}: {why}", name=name)
    return import_module(name)


if not TYPE_CHECKING:  # type checkers know the names from the imports above and report unknown ones

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            value: Any = version("tokenmill")
        elif name in _PACKAGE_OF:
            value = getattr(import_package(_PACKAGE_OF[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "open"})
