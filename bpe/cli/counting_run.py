"""Counting with progress and temporary files, for `train` and `count`.

Ctrl-C and termination signals stop the command. If a later step fails, complete counts are written to a file, and the
error names it.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bpe.cli.text_input import input_sources, plain_text_note
from bpe.errors import BadArgument, BpeError, EnvironmentFailure, NotEnoughMemory, Stopped
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.gathering import gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.sources import Source, Stream
from bpe.pretoken_counts.workspace import Workspace
from bpe.progress import TrainingProgress
from tokenmill.cli.standard_streams import complain
from tokenmill.stores import is_url

if TYPE_CHECKING:
    from tokenmill.engines.choose import EngineOptions


def counted_inputs(options: Namespace) -> list[Source]:
    """Return the inputs of `train` or `count`, without files of --counts that a folder contains."""
    sources = input_sources(options.inputs, options)
    if not sources and not options.counts:
        raise BadArgument("inputs: none. Name text files, folders or globs, - for stdin, or --counts FILE.")
    counts = set(map(os.path.realpath, options.counts))
    return [
        source
        for source in sources
        if isinstance(source, Stream) or source.name in options.inputs or source.full_name not in counts
    ]


def reading_options(options: Namespace) -> dict[str, Any]:
    """Return the arguments of `ReadingOptions` that the options of a command give."""
    names = ("threads", "invalid", "input_format", "text_field", "on_error", "separator")
    return {name: getattr(options, name) for name in names} | {
        "storage_options": dict(options.storage_option)
    }


class CountingRun(ExitStack):
    """Counts the inputs of a command, and saves the counts if a later step fails; a context manager.

    counting: how the inputs are counted.
    counts: counts files to add.
    keep: file for the counts if a later step fails; None to discard them.
    engine: where the inputs are counted, None for threads of this process.
    step: the current step of the command, for errors. Set it before each step after counting.
    """

    def __init__(
        self,
        options: Namespace,
        sources: Sequence[Source],
        counting: CountingOptions,
        counts: CountSet | None,
        keep: Path | None = None,
        engine: EngineOptions | None = None,
    ) -> None:
        super().__init__()
        self._options, self._sources, self._counting, self._counts = options, sources, counting, counts
        self._keep, self._engine = keep, engine
        self.budget = MemoryBudget.of(options.max_memory)
        folder = None if is_url(options.output) else Path(options.output).parent
        self.workspace = Workspace(options.temp_dir or folder)
        self.progress = TrainingProgress(options.quiet)
        self.step = "counting"
        self._counted: CountSet | None = None
        self._saved = ""  # file that holds the counts

    def __enter__(self) -> Self:
        self.enter_context(self.workspace)
        self.enter_context(self.progress)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if found := self._explained(error):
                raise found from error
        finally:
            super().__exit__(kind, error, trace)

    def gather(self) -> CountSet:
        """Return the counts of all inputs and counts files."""
        options = self._options
        if self._sources and self._counts is not None:
            self._counts.check()  # report damaged files before counting
        if note := plain_text_note(self._sources):
            self.progress.note(note)
        elsewhere = None
        if self._engine is not None:
            from bpe.pretoken_counts.on_engine import Elsewhere  # imports the engines

            limits = options.text_chunk_bytes, options.max_memory
            elsewhere = Elsewhere.of(self._engine, options.scratch, options.output, *limits, self._notice)
        self._counted = gather_counts(
            self._sources,
            self._counts,
            self._counting,
            self.progress,
            self.budget,
            self.workspace,
            options.sample_bytes,
            options.seed,
            elsewhere,
        )
        return self._counted

    def _notice(self, text: str) -> None:
        if not self._options.quiet:
            complain(text, "note")

    def save(self, counted: CountSet, path: str) -> None:
        """Write the counts to a file or URL."""
        self.step = f"writing {path}"
        counted.save(path, self.workspace, self.budget, dict(self._options.storage_option))
        self._saved = path

    def _explained(self, error: BaseException | None) -> BpeError | Stopped | None:
        """Return the error to raise instead, which names the file of the counts, or None. Saves complete counts."""
        step = self.step
        found: BpeError | Stopped
        if isinstance(error, KeyboardInterrupt):
            found = Stopped(f"interrupted while {step}", getattr(error, "exit_code", 130))
        elif self._counted is None:
            return None
        elif isinstance(error, BpeError):
            found = error
        elif isinstance(error, MemoryError):
            found = NotEnoughMemory(f"out of memory while {step}")
        elif isinstance(error, OSError):
            found = EnvironmentFailure(f"{error.filename or step}: {error.strerror or error}")
        else:
            return None
        if self._counted is None or not (kept := self._kept(self._counted)):
            return None if found is error else found
        text = f"{str(found).rstrip('.')}. {kept}"
        return Stopped(text, found.exit_code) if isinstance(found, Stopped) else type(found)(text)

    def _kept(self, counted: CountSet) -> str:
        """Save the counts unless a file has them, and return the sentence for the error."""
        if not self._sources:
            return "The counts files are unchanged."
        if not self._saved and self._keep is not None and counted.facts.text_bytes:
            path = _unused(self._keep)
            try:
                counted.save(path, self.workspace, self.budget)
            except (OSError, MemoryError, BpeError, KeyboardInterrupt) as error:
                return f"The counts could not be saved: {error}"
            self._saved = str(path)
        return (
            self._saved and f"The counts are saved. To use them, pass --counts {self._saved} and no inputs."
        )


def _unused(path: Path) -> Path:
    """Return the path, with a number if a file of that name exists."""
    names = chain([path], (path.with_suffix(f".{number}{path.suffix}") for number in count_from(1)))
    return next(name for name in names if not name.exists())
