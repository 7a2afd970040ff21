"""The commands `train` and `count`, which make tokenizers and counts files from inputs and counts files.

Faults of the output are reported before any work: outputs that cannot be written or would replace an input, and a
pattern or special tokens that tokenizer.json cannot express. Ctrl-C and termination signals stop a command. If a step
after counting fails, complete counts are written to a file, and the error names it (`CountingRun`).
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from bpe.cli.text_input import input_sources, named_files, plain_text_note
from bpe.errors import BadArgument, BpeError, EnvironmentFailure, NotEnoughMemory, Stopped, printable
from bpe.formats.by_path import files_of
from bpe.formats.huggingface_components import pretokenizer_to_json
from bpe.like import rule_like
from bpe.output_conflicts import check_outputs_apart
from bpe.output_file import check_output
from bpe.pretoken_counts.counting_options import CountingOptions, ReadingOptions
from bpe.pretoken_counts.counts import CountSet, check_min_count
from bpe.pretoken_counts.gathering import counting_options, gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.sources import Source, Stream
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import TrainingProgress
from bpe.threads import available_threads
from bpe.training import Training, learn_merges
from bpe.training_options import LIKE_OR_PATTERN, TrainingOptions, resolve
from tokenmill.cli.standard_streams import complain
from tokenmill.inputs.sizes import bytes_text, counted
from tokenmill.stores import is_url, shown_url

if TYPE_CHECKING:
    from tokenmill.engines.choose import EngineOptions

SIZE_FIELD: Final = "{vocab_size}"


def train(options: Namespace) -> int:
    """Train on the inputs and the counts files, and write a tokenizer.json for each size."""
    outputs = output_names(options.output, options.vocab_size)
    named: list[tuple[str, str | None]] = [("--output", output) for output in dict.fromkeys(outputs)]
    named += [("--keep-counts", options.keep_counts), ("--report", options.report)]
    for flag, name in named:
        if name is not None:
            check_output(name, flag)
    if options.held_out and options.report is None:
        raise BadArgument("--held-out: needs a report to measure. Pass --report FILE.")
    if options.held_out and "-" in options.held_out and "-" in options.inputs:
        raise BadArgument("-: stdin can be read only once. Use it for training or for --held-out.")
    # Report missing files before training.
    held_out = input_sources(options.held_out or [], options)
    sources = _counted_inputs(options)
    inputs = [*named_files(sources), *options.counts, *named_files(held_out)]
    check_outputs_apart(named, [*inputs, *_tokenizer_files(options.like, options.continue_from)])
    largest = max(options.vocab_size)
    training_options, counting, counts = resolve(
        TrainingOptions(
            options.special_token,
            options.pattern,
            options.tie_break,
            options.min_frequency,
            max_token_bytes=options.max_token_bytes,
            counts=options.counts,
            like=options.like,
            continue_from=options.continue_from,
            max_token_length=options.max_token_length,
            initial_alphabet=options.initial_alphabet,
            limit_alphabet=options.limit_alphabet,
            **_reading_options(options),
        ),
        options.vocab_size,
    )
    check_min_count(options.min_pretoken_count)
    if options.report is not None:
        from bpe.reports.measuring_encoder import check_measurable

        check_measurable(training_options.rule.text_rules)
    # Report a pattern that tokenizer.json cannot express before training.
    pretokenizer_to_json(Pretokenizer.from_pattern(counting.pattern))
    keep = Path(options.output.replace(SIZE_FIELD, "all")).with_suffix(".counts")
    with CountingRun(options, sources, counting, counts, keep) as run:
        gathered = run.gather()
        if options.keep_counts is not None:
            run.save(gathered, options.keep_counts)
        run.step = "merging"
        loaded = gathered.load(run.budget, run.workspace, options.min_pretoken_count, run.progress, largest)
        training = learn_merges(loaded, largest, training_options, run.progress, run.budget)
        run.step = "writing"
        made = _write(training, dict(zip(outputs, options.vocab_size, strict=True)))
    if not options.quiet:
        print("\n".join(map(printable, made)), file=sys.stderr)
    if options.report is not None:
        from bpe.cli.report_command import report_on_training

        report_on_training(training, options.vocab_size, options)
    return 0


def count(options: Namespace) -> int:
    """Count the inputs, add the counts files, and write one counts file."""
    engine = _engine(options)
    sources = _counted_inputs(options)
    storage_options = dict(options.storage_option)
    check_output(options.output, storage_options=storage_options)
    if not is_url(options.output):
        inputs = [*named_files(sources), *options.counts, *_tokenizer_files(options.like)]
        check_outputs_apart([("--output", options.output)], inputs)
    if options.like is not None and options.pattern is not None:
        raise BadArgument(LIKE_OR_PATTERN)
    rule = rule_like(options.like) if options.like is not None else None
    reading = ReadingOptions(**_reading_options(options))
    counting = counting_options(options.counts, options.special_token, options.pattern, rule, reading)
    with CountingRun(options, sources, *counting, engine=engine) as run:
        counts = run.gather()
        run.save(counts, options.output)
    if not options.quiet:
        facts = counts.facts
        text = f"counts of {bytes_text(facts.text_bytes)} in {counted(facts.documents, 'document')}"
        print(printable(f"{shown_url(options.output)}: {text}, pattern {facts.pattern}"), file=sys.stderr)
    return 0


def _engine(options: Namespace) -> EngineOptions | None:
    """Return the engine of `count`. None, without an executor: threads of this process."""
    from tokenmill.engines.choose import STALL_SECONDS, engine_of, executor_of, quiet_loggers

    executor = executor_of(options.executor, options.scheduler, options.address)
    if executor is None:
        for flag in ("workers", "scratch", "text_chunk_bytes", "stall_timeout"):
            if getattr(options, flag) not in (None, "", STALL_SECONDS):
                raise BadArgument(
                    f"--{flag.replace('_', '-')}: needs an executor. Pass --executor process, dask or ray."
                )
        return None
    for flag in ("threads", "sample_bytes"):
        if getattr(options, flag) is not None:
            raise BadArgument(
                f"--{flag.replace('_', '-')}: cannot be combined with --executor. Leave one of them out."
            )
    quiet_loggers(executor)
    return engine_of(options, available_threads())


def output_names(output: str, vocab_sizes: list[int]) -> list[str]:
    """Return the file of each size. Raise BadArgument if several sizes would share a file."""
    if len(vocab_sizes) > 1 and SIZE_FIELD not in output:
        raise BadArgument(
            f"--output: must contain {SIZE_FIELD} for several vocabulary sizes (got {output}). Use a name such as "
            f"tok-{SIZE_FIELD}.json."
        )
    return [output.replace(SIZE_FIELD, str(vocab_size)) for vocab_size in vocab_sizes]


def _tokenizer_files(like: str | None, continue_from: str | None = None) -> list[Path]:
    """Return the files of --like and --continue-from, if they name files."""
    files: list[Path] = []
    if continue_from is not None and Path(continue_from).exists():
        files += files_of(Path(continue_from))
    if like is not None:  # a folder may have the name of a preset
        files += [Path(like), Path(like) / "tokenizer.json"]
    return [file for file in files if file.is_file()]


def _write(training: Training, outputs: dict[str, int]) -> list[str]:
    """Write the tokenizers. Return one line for each."""
    made = []
    for output, vocab_size in outputs.items():
        tokenizer = training.prefix(vocab_size)
        tokenizer.save(output)
        made.append(f"{output}: {tokenizer.vocab_size} entries, pattern {tokenizer.pattern}")
    return made


def _counted_inputs(options: Namespace) -> list[Source]:
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


def _reading_options(options: Namespace) -> dict[str, Any]:
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
            elsewhere = Elsewhere(self._engine, options.scratch, *limits, self._notice).near(options.output)
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

    def save(self, counts: CountSet, path: str) -> None:
        """Write the counts to a file or URL."""
        self.step = f"writing {path}"
        counts.save(path, self.workspace, self.budget, dict(self._options.storage_option))
        self._saved = path

    def _explained(self, error: BaseException | None) -> BpeError | Stopped | None:
        """Return the error to raise instead, which names the file of the counts, or None. Saves complete counts."""
        found: BpeError | Stopped
        match error:
            case KeyboardInterrupt():
                found = Stopped(f"interrupted while {self.step}", getattr(error, "exit_code", 130))
            case _ if self._counted is None:
                return None
            case BpeError():
                found = error
            case MemoryError():
                found = NotEnoughMemory(f"out of memory while {self.step}")
            case OSError():
                found = EnvironmentFailure(f"{error.filename or self.step}: {error.strerror or error}")
            case _:
                return None
        if self._counted is None or not (kept := self._kept(self._counted)):
            return None if found is error else found
        text = f"{str(found).rstrip('.')}. {kept}"
        return Stopped(text, found.exit_code) if isinstance(found, Stopped) else type(found)(text)

    def _kept(self, counts: CountSet) -> str:
        """Save the counts unless a file has them, and return the sentence for the error."""
        if not self._sources:
            return "The counts files are unchanged."
        if not self._saved and self._keep is not None and counts.facts.text_bytes:
            names = (self._keep.with_suffix(f".{number}{self._keep.suffix}") for number in count_from(1))
            path = next(name for name in chain([self._keep], names) if not name.exists())
            try:
                counts.save(path, self.workspace, self.budget)
            except (OSError, MemoryError, BpeError, KeyboardInterrupt) as failure:
                return f"The counts could not be saved: {failure}"
            self._saved = str(path)
        return (
            self._saved and f"The counts are saved. To use them, pass --counts {self._saved} and no inputs."
        )
