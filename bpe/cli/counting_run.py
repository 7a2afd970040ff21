"""Counting with signals, progress and temporary files, for `train` and `count`.

Ctrl-C and termination signals stop the command. If a later step fails, complete counts are written to a file, and the
error names it.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from bpe.cli.stop_signals import StopSignals
from bpe.cli.text_input import input_sources, plain_text_note
from bpe.errors import BadArgument, BpeError, EnvironmentFailure, NotEnoughMemory, Stopped
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.gathering import Cut, gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.sources import Source, Stream
from bpe.pretoken_counts.workspace import Workspace
from bpe.progress import TrainingProgress
from tokenmill.cli.standard_streams import complain
from tokenmill.stores import is_url

if TYPE_CHECKING:
    from tokenmill.engines.choose import EngineOptions

_T = TypeVar("_T")


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


class CountingRun(ExitStack):
    """Counts the inputs of a command; a context manager.

    cut: how text is split, and the counts files.
    keep: file for the counts if a later step fails; None to discard them.
    engine: where the inputs are counted, None for threads of this process.
    """

    def __init__(
        self,
        options: Namespace,
        sources: Sequence[Source],
        cut: Cut,
        keep: Path | None = None,
        engine: EngineOptions | None = None,
    ) -> None:
        super().__init__()
        self._options, self._sources, self._cut = options, sources, cut
        self._keep, self._engine = keep, engine
        self.budget = MemoryBudget.of(options.max_memory)
        folder = None if is_url(options.output) else Path(options.output).parent
        self.workspace = Workspace(options.temp_dir or folder)
        self.progress = TrainingProgress(options.quiet)
        self._signals = StopSignals()
        self._saved = ""  # file that holds the counts

    def __enter__(self) -> Self:
        for context in (self._signals, self.workspace, self.progress):
            self.enter_context(context)
        return self

    def gather(self) -> CountSet:
        """Return the counts of all inputs and counts files."""
        options = self._options
        if self._sources and self._cut.counted is not None:
            self._signals.at_once(self._cut.counted.check)  # report damaged files before counting
        counting = CountingOptions(
            self._cut.special_tokens,
            self._cut.pattern,
            options.threads,
            options.invalid,
            normalizer=self._cut.normalizer,
            input_format=options.input_format,
            text_field=options.text_field,
            on_error=options.on_error,
            separator=options.separator,
            storage_options=dict(options.storage_option),
        )
        if note := plain_text_note(self._sources):
            self.progress.note(note)
        elsewhere = None
        if self._engine is not None:
            from bpe.pretoken_counts.on_engine import Elsewhere  # imports the engines

            limits = options.text_chunk_bytes, options.max_memory
            elsewhere = Elsewhere.of(self._engine, options.scratch, options.output, *limits, self._notice)

        def gather() -> CountSet:
            return gather_counts(
                self._sources,
                self._cut.counted,
                counting,
                self.progress,
                self.budget,
                self.workspace,
                options.sample_bytes,
                options.seed,
                elsewhere,
            )

        try:
            return self._signals.at_once(gather)
        except KeyboardInterrupt:
            raise Stopped("interrupted while counting", self._signals.exit_code) from None

    def _notice(self, text: str) -> None:
        if not self._options.quiet:
            complain(text, "note")

    def save(self, counted: CountSet, path: str) -> None:
        """Write the counts to a file or URL."""
        options = dict(self._options.storage_option)

        def write() -> None:
            counted.save(path, self.workspace, self.budget, options)

        self.finish(write, f"writing {path}", counted)
        self._saved = path

    def finish(self, work: Callable[[], _T], doing: str, counted: CountSet) -> _T:
        """Do the work that follows counting. If it fails or is interrupted, save the counts and say so in the error."""
        try:
            return self._signals.at_once(work)
        except KeyboardInterrupt:
            error: BpeError | Stopped = Stopped(f"interrupted while {doing}", self._signals.exit_code)
        except MemoryError as failure:
            error = (
                failure if isinstance(failure, BpeError) else NotEnoughMemory(f"out of memory while {doing}")
            )
        except OSError as failure:
            where = f"{failure.filename or doing}: {failure.strerror or failure}"
            error = failure if isinstance(failure, BpeError) else EnvironmentFailure(where)
        except BpeError as failure:
            error = failure
        kept = self._kept(counted)
        if not kept:
            raise error
        text = f"{str(error).rstrip('.')}. {kept}"
        raise Stopped(text, error.exit_code) if isinstance(error, Stopped) else type(error)(text)

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
