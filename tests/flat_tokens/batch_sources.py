"""Loaders of each kind over one split, by name."""

from __future__ import annotations

from typing import Any

import flat_tokens
from flat_tokens.loading.loader import Loader


def sources(train: Any) -> dict[str, Any]:
    """Return a Loader, a Mixture and a Loader of packs with the same row length."""
    packed = flat_tokens.PackedSequences(train, 12, strategy="best-fit", window_seqs=32)
    options: dict[str, Any] = {"block_tokens": 40}
    return {
        "loader": Loader(train, 12, 4, 2, **options),
        "packs": Loader(packed, 12, 4, 2, **options),
        "mixture": flat_tokens.Mixture([train, packed], [(0, [1, 1]), (5, [1, 3])], 12, 4, 2, **options),
    }
