"""Raw text in, a BPE tokenizer and a training-ready token dataset out.

    import tokenmill
    tokenizer = tokenmill.train(["corpus.txt"], vocab_size=32_000, special_tokens=["<|endoftext|>"])
    tokenizer.save("tokenizer.json")
    tokenmill.convert(tokenmill.ConvertOptions(["corpus.txt"], "tokenizer.json", "corpus.zarr"))
    batch = tokenmill.Loader(tokenmill.open("corpus.zarr").train, seq_len=1024, batch_size=8).batch(0)

These are the public names of `bpe`, `convert` and `flat_tokens` under one roof, imported when first used. The command
is `tokenmill`, or `python -m tokenmill`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - from a checkout; pip says the same
    raise ImportError(
        f"tokenmill needs Python 3.11 or newer, this is {sys.version.split()[0]} ({sys.executable})",
        name=__name__,
    )

_found = find_spec("convert")
if _found is not None and _found.submodule_search_locations is None:  # a file of one's own; it is not run
    raise ImportError(
        f"{_found.origin} stands before tokenmill's package of that name; run the command `tokenmill`, or "
        "`python -P -m tokenmill`, or give the file another name",
        name=__name__,
    )

# Packages that import next to nothing themselves.
import bpe as _bpe  # noqa: E402
import convert as _convert  # noqa: E402
import flat_tokens as _flat_tokens  # noqa: E402

if TYPE_CHECKING:
    from bpe import *  # noqa: F403
    from convert import *  # noqa: F403
    from flat_tokens import *  # noqa: F403
    from flat_tokens import open as open

    __version__: str

__all__ = ["__version__"]
__all__ += _bpe.__all__
__all__ += _convert.__all__
__all__ += _flat_tokens.__all__

_PACKAGE_OF: dict[str, Any] = {
    name: package for package in (_bpe, _convert, _flat_tokens) for name in package.__all__
}
_PACKAGE_OF["open"] = _flat_tokens  # not in __all__, so that a star import keeps the built-in function


if not TYPE_CHECKING:  # a checker knows the names by their imports above, and tells of others

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            value: Any = version("tokenmill")
        else:
            package = _PACKAGE_OF.get(name)
            if package is None:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
            value = getattr(package, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "open"})
