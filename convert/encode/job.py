"""The facts of a conversion, and the data that all its tasks share, which they find by a key."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds
from convert.errors import UsageError
from convert.options import ConvertOptions
from convert.planning.plan import Plan
from convert.shards.shard_store import ShardStore, shards_at
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.writer import Destination
from tokenmill.engines.job import require_open, require_same_folder
from tokenmill.inputs.rules import IntakeRules
from tokenmill.stores import is_url

MASK_ID_LIMIT = 1 << 30  # with a loss mask, shards store IDs below it (convert/shards/shard.py)
# Options that, with the sources and the tokenizer, decide the bytes of the dataset. on_error is not one of them: a run
# that failed at a bad record can resume with --on-error skip.
RECORDED = (
    *("separator", "seed", "validation_docs", "input_format", "text_field", "special_in_text"),
    *("max_record_bytes", "replace_invalid", "compression", "chunk_tokens"),
)
RECORDED_IF_GIVEN = ("prompt_field", "completion_field", "messages_field", "chat_date")


@dataclass(frozen=True)
class Setup:
    """All facts about a conversion that are known before the first document is read.

    source: facts on the origin of the tokenizer, for the manifest.
    ends: tokens added to documents.
    rules: for records, with the chat template.
    """

    options: ConvertOptions
    tokenizer: Tokenizer
    source: Mapping[str, str]
    ends: DocumentEnds
    rules: IntakeRules
    plan: Plan
    layout: ArrayLayout

    def __post_init__(self) -> None:
        highest = self.tokenizer.max_token_id
        if self.has_mask and highest >= MASK_ID_LIMIT:
            raise UsageError(
                f"--tokenizer: token IDs must be below {MASK_ID_LIMIT} with a loss mask (got {highest})"
            )

    @property
    def separator(self) -> bytes:
        """The text between documents of text files."""
        return self.options.separator.encode()

    @property
    def has_mask(self) -> bool:
        """Whether documents have a loss mask."""
        return self.options.has_mask

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that decide the bytes of the dataset, as plain JSON values."""
        options, chat = self.options, self.rules.marks and self.rules.marks.chat
        found = {name: getattr(options, name) for name in RECORDED}
        found |= {"validation_fraction": options.fraction, "zarr_format": self.layout.zarr_format}
        found |= {name: value for name in RECORDED_IF_GIVEN if (value := getattr(options, name)) is not None}
        if options.template and options.messages_field is None:  # chats are the same without it
            found["template"] = True
        if chat is not None:
            found["chat_rules_sha256"] = hashlib.sha256(repr(chat).encode()).hexdigest()
        return found | self.ends.added.recorded()


@dataclass(frozen=True)
class Job(Setup):
    """A conversion as its tasks see it.

    shards: where temporary shards are.
    temporary: a folder on the file system of the dataset, for files that are not complete.
    syncs: whether merge tasks write files to disk, because they may run on other machines than the driver.
    folder: the current folder if inputs are relative to it and workers may run elsewhere, else None.
    """

    shards: ShardStore
    temporary: Path
    dataset: Destination
    syncs: bool = False
    folder: Path | None = None

    def prepare(self) -> None:
        """Build the encoder. Raise EngineFailure if this process cannot access the folders of the conversion."""
        self.tokenizer.encode_documents(b"")
        if self.shards.store.is_local:
            require_open(self.shards.store.path)
        if isinstance(self.dataset, Path):
            require_open(self.dataset)
            require_open(self.temporary)
        require_same_folder(self.folder)

    def for_others(self) -> Job:
        """Return the job for processes that may run in another folder."""
        here = Path.cwd()
        is_relative = not all(
            Path(source.path).is_absolute() or is_url(source.path) for source in self.plan.sources
        )
        return replace(
            self,
            options=replace(self.options, executor_options={}),  # which may not be picklable
            shards=shards_at(here / self.shards.store.path) if self.shards.store.is_local else self.shards,
            temporary=here / self.temporary,
            dataset=here / self.dataset if isinstance(self.dataset, Path) else self.dataset,
            folder=here if is_relative else None,
        )


class Clock:
    """A stopwatch with named laps: `lap("encode")` adds the time since the last lap to `seconds["encode"]`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        """Add the time since the last lap to a step."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now
