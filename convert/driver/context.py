"""The objects that all stages of one conversion share."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds
from convert.encode.job import Clock
from convert.options import ConvertOptions
from convert.planning.plan import Plan
from convert.workdir.workdir import WorkDir
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.cli.progress import Progress
from tokenmill.engines.engine import Engine
from tokenmill.engines.job import JobKey
from tokenmill.engines.tasks import TaskPool
from tokenmill.inputs.rules import IntakeRules

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
class Context(Setup):
    """A conversion at work, from the start of its workers.

    job_key: by which tasks find the facts that are the same for all of them.
    pool: tasks in flight.
    warnings: the last ones about workers and stores.
    """

    workspace: WorkDir
    progress: Progress
    clock: Clock
    engine: Engine
    job_key: JobKey
    pool: TaskPool
    warnings: deque[str]

    @property
    def window(self) -> int:
        """The number of short tasks in flight."""
        return 4 * self.engine.worker_count
