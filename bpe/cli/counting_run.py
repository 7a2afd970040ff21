"""The counting of a command, and what becomes of the counts if something goes wrong behind it.

Hours of counting are not lost to Ctrl-C, a request to end, a merge that does not fit into the memory, a full disk or a
tokenizer that can't be written: the counts are written to a file of their own first, and the message says where and how
to go on. A second signal ends the command without them.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from bpe.cli.stop_signals import StopSignals
from bpe.cli.text_input import input_sources, plain_text_note
from bpe.errors import BadArgument, BpeError, EnvironmentFailure, NotEnoughMemory, Stopped
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts_inputs import Cut
from bpe.pretoken_counts.gathering import gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.sources import identity
from bpe.pretoken_counts.workspace import Workspace
from bpe.progress import TrainingProgress
from tokenmill.cli.standard_streams import complain
from tokenmill.inputs.sizes import bytes_text
from tokenmill.stores import is_url

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from tokenmill.engines.choose import EngineOptions

_T = TypeVar("_T")
_BLOCK: Final = "this block"


def counted_inputs(options: Namespace) -> list[Source]:
    """The inputs of `train` or `count`; what --counts names is none that a folder has: kept counts may lie in it."""
    sources = input_sources(options.inputs, options)
    if not sources and not options.counts:
        raise BadArgument("inputs: none. Name text files, folders or globs, - for stdin, or --counts FILE.")
    counts = {identity(path)[0] for path in options.counts}
    return [
        source
        for source in sources
        if not counts or str(source) in options.inputs or identity(source)[0] not in counts
    ]


class CountingRun:
    """Counting with signals, progress and temporary files around it; used as a context.

    keep: the file for counts that would be lost, or one beside it where that exists. engine: where the inputs are
    counted; None: by threads of this process.
    """

    def __init__(
        self,
        options: Namespace,
        sources: Sequence[Source],
        cut: Cut,
        keep: Path,
        engine: EngineOptions | None = None,
    ) -> None:
        self._options = options
        self._sources = sources
        self._cut = cut
        self._keep = keep
        self._engine = engine
        self.budget = MemoryBudget.of(options.max_memory)
        beside = None if is_url(options.output) else Path(options.output).parent
        self.workspace = Workspace(options.temp_dir or beside)
        self.progress = TrainingProgress(options.quiet)
        self._signals = StopSignals()
        self._stack = ExitStack()
        self._counted: CountSet | None = None
        self._saved: str | None = None
        self._failed_folder: Path | None = None  # where counts could not be written

    def __enter__(self) -> CountingRun:
        for context in (self._signals, self.workspace, self.progress):
            self._stack.enter_context(context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def gather(self) -> CountSet:
        """The counts of everything; Stopped, after they are kept, if a signal came meanwhile."""
        options = self._options
        if self._sources and self._cut.counted is not None:
            # A damaged file would be noticed when all is counted.
            self._signals.at_once(self._cut.counted.check)
        counting = CountingOptions(
            self._cut.special_tokens,
            self._cut.pattern,
            options.threads,
            options.invalid,
            stop=self._signals.asked,
            normalizer=self._cut.normalizer,
            input_format=options.input_format,
            text_field=options.text_field,
            on_error=options.on_error,
            separator=options.separator,
            storage_options=dict(options.storage_option),
        )
        if note := plain_text_note(self._sources):
            self.progress.note(note)
        self._signals.step = _BLOCK
        gather = partial(
            gather_counts,
            self._sources,
            self._cut.counted,
            counting,
            self.progress,
            self.budget,
            self.workspace,
            options.sample_bytes,
            options.seed,
        )
        if self._engine is not None:
            return self._gather_elsewhere(gather)
        try:
            self._counted = gather()
        except BpeError as error:
            self._counted = error.counted
            if self._counted is None or self._signals.insisted:
                raise
            raise self._with_counts(error, "counting") from error
        if self._signals.asked():
            self.stop_if_asked(f"interrupted while counting{self._kept()}")
        return self._counted

    def _gather_elsewhere(self, gather: Callable[..., CountSet]) -> CountSet:
        """The same by tasks of an engine, which leave nothing if they are stopped."""
        from bpe.pretoken_counts.count_files import open_elsewhere

        options = self._options
        assert self._engine is not None
        elsewhere = self._stack.enter_context(
            open_elsewhere(
                self._engine,
                options.scratch,
                options.output,
                dict(options.storage_option),
                self.workspace,
                options.text_chunk_bytes,
                options.max_memory,
                notice=self._notice,
            )
        )
        try:
            self._counted = self._signals.at_once(partial(gather, elsewhere=elsewhere))
        except KeyboardInterrupt:
            code = self._signals.exit_code
            raise Stopped("interrupted while counting. The counts of the workers are lost.", code) from None
        return self._counted

    def _notice(self, text: str) -> None:
        if not self._options.quiet:
            complain(text, "note")

    def save(self, path: str) -> None:
        """Write the counts to a file of this name; Stopped, when they are there, if a signal came meanwhile."""
        assert self._counted is not None
        counted = self._counted

        def write() -> None:
            self._failed_folder = Path(path).absolute().parent
            try:
                counted.save(path, self.workspace, self.budget, dict(self._options.storage_option))
            except NotEnoughMemory:  # which the folder is not to blame for
                self._failed_folder = None
                raise
            self._failed_folder, self._saved = None, path

        self.keeping(write, f"writing {path}", at_once=False)
        self.stop_if_asked(self._state())

    def keeping(self, work: Callable[[], _T], doing: str, at_once: bool) -> _T:
        """What the work gives; if it fails or is interrupted, its error, after the counts are kept.

        at_once: a signal ends the work, else only a second one does.
        """
        self._signals.step = doing
        try:
            return self._signals.at_once(work) if at_once else work()
        except (KeyboardInterrupt, MemoryError, OSError, BpeError) as error:
            if self._signals.insisted:
                raise
            raise self._with_counts(error, doing) from error

    def stop_if_asked(self, message: str) -> None:
        """Raise Stopped with the message if a signal came."""
        if self._signals.asked():
            raise Stopped(message, self._signals.exit_code)

    def _with_counts(self, error: BaseException, doing: str) -> BaseException:
        """The error with what became of the counts."""
        kept = self._state()
        if isinstance(error, KeyboardInterrupt):
            return Stopped(f"interrupted while {doing}{kept}", self._signals.exit_code)
        if isinstance(error, BpeError):
            return type(error)(f"{str(error).rstrip('.')}{kept}" if kept else str(error))
        if isinstance(error, MemoryError):
            return NotEnoughMemory(f"out of memory while {doing}{kept}")
        assert isinstance(error, OSError)
        return EnvironmentFailure(f"{error.filename or doing}: {error.strerror or error}{kept}")

    def _state(self) -> str:
        """What a message says of the counts, which are in files now."""
        if self._saved is not None:
            return f". The counts are saved. To resume, pass --counts {self._saved} and no inputs."
        if not self._sources:
            return ". The counts files are unchanged."
        return self._kept()

    def _kept(self) -> str:
        """What a message says of the counts after they were kept in a file, wherever there is space for it."""
        assert self._counted is not None
        facts = self._counted.facts
        if facts.text_bytes == 0:
            return ""
        if (
            self._signals.asked() and self._signals.step != _BLOCK
        ):  # a signal while counting was answered already
            complain("saving the counts. Interrupt again to stop at once.", "note")
        self._signals.step = "saving the counts"
        what = f"The counts of {bytes_text(facts.text_bytes)}"
        try:
            paths = self._save_somewhere(self._counted)
        except (OSError, MemoryError, BpeError) as error:
            return f". {what} could not be saved: {error}"
        path = " ".join(map(str, paths))
        place = " instead of the other counts files" if self._options.counts else ""
        if len(paths) > 1:  # as one they take more memory than there is
            what, place = f"{what}, in {len(paths)} files that belong together,", f" (all of them){place}"
        if facts.complete:
            how = f"To resume, pass --counts {path}{place} and no inputs."
        elif facts.sample:
            how = f"Counting a sample cannot resume. To train on the counts, pass --counts {path} and no inputs."
        else:
            again = ", and the same standard input" if "-" in self._options.inputs else ""
            how = f"To resume, add --counts {path}{place}{again} to the same command."
        return f". {what} are saved. {how}"

    def _save_somewhere(self, counted: CountSet) -> list[Path]:
        """The file with the counts: beside the output, else where temporary files are, else in the current folder.

        Several files, one for each part, where adding them up takes more memory than there is.
        """
        keep = self._keep
        if not counted.facts.complete:
            keep = keep.with_suffix(f".partial{keep.suffix}")
        places = [keep.parent, Path(self._options.temp_dir or tempfile.gettempdir()), Path(os.curdir)]
        folders = sorted(
            dict.fromkeys(map(Path.absolute, places)), key=lambda folder: folder == self._failed_folder
        )
        failure: BaseException | None = None
        for folder in folders:
            name = keep if folder == keep.parent.absolute() else folder / keep.name
            try:
                try:
                    path = _unused(name)
                    counted.save(path, self.workspace, self.budget)
                except NotEnoughMemory:
                    return counted.save_parts(lambda name=name: _unused(name))  # type: ignore[misc]
            except EnvironmentFailure as error:
                failure = failure or error
            else:
                return [path]
        assert failure is not None
        raise failure


def _unused(path: Path) -> Path:
    """The path, or one with a number in it, that nothing has yet."""
    names = chain([path], (path.with_suffix(f".{number}{path.suffix}") for number in count_from(1)))
    return next(name for name in names if not name.exists())
