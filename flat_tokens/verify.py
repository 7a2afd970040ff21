"""Verification of a dataset, by flat_tokens/verify_part.py."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.places import Where, locate
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.verify_part import Progress, VerifyReport, verify_part

__all__ = ["VerifyReport", "verify_dataset"]


def verify_dataset(
    root: Where,
    executor: Executor | None = None,
    progress: Progress | None = None,
    facts: Mapping[str, TokenFacts] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> VerifyReport:
    """Verify the dataset at `root`, a path, URL or Store, and report; damage is in the report, not raised.

    executor: where units run, any concurrent.futures.Executor, the calling thread if None. progress(done, total) is
    called in the calling thread with bytes. facts: of a dataset that was written a moment ago, what
    `write_tokens_with_facts` returned for files of encoded_tokens, by path. Their bytes are read and compared with the
    manifest like all others, and the facts with seq_starts and max_token_id, but they are not decoded: a fifth of the
    time. Without a manifest facts are not used. storage_options: of the store, as for `open`. On a store an object
    takes two requests.
    DatasetError if there is no dataset or its manifest is unreadable: nothing could be compared then. OSError and
    StoreError for trouble of the machine and of the store."""
    place = locate("root", root, storage_options)
    if isinstance(place, Path) and not place.is_dir():
        raise DatasetError(
            f"{printable(str(place))}: {'not a folder' if place.exists() else 'does not exist'}"
        )
    return verify_part(place, executor, progress, facts or {})
