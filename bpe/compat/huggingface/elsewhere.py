"""Names of tokenizers that have nothing to do with BPE: they can be imported, and say so when they are used."""

from __future__ import annotations

from typing import Any

from bpe.errors import UnsupportedTokenizer


def elsewhere(name: str) -> Any:
    """A class of this name that can't be made: UnsupportedTokenizer."""

    def refuse(*_: Any, **__: Any) -> None:
        raise UnsupportedTokenizer(f"{name}: not supported, since this package only has BPE. Use tokenizers.")

    return type(name, (_Refusing,), {"__new__": refuse, "from_file": staticmethod(refuse)})


class _Refusing:
    """What all of them derive from."""
