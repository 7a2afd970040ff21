"""`train` and `count`: from inputs and counts files to tokenizers and counts files, keeping what was counted.

Hours of counting are not lost to Ctrl-C, a request to end, or a merge that does not fit into the memory: the counts are
written to a file of their own first, and the message says where and how to go on.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from itertools import count as count_from
from pathlib import Path
from types import TracebackType
from typing import Final

from bpe.cli.stop_signals import StopSignals
from bpe.cli.text_input import input_sources, plain_text_note
from bpe.errors import BadArgument, NotEnoughMemory, Stopped, printable
from bpe.formats.huggingface_pipeline import pretokenizer_to_json
from bpe.output_file import check_output
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.counting import CountingOptions
from bpe.pretoken_counts.counts_inputs import Cut, cut_of_files
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import TrainingProgress
from bpe.sizes import bytes_text, counted
from bpe.training import Training, gather_counts, train_on
from bpe.training_options import TrainingOptions

SIZE_FIELD: Final = "{vocab_size}"


def train(options: Namespace) -> int:
    """Train on the inputs and the counts files; write a tokenizer.json for each size."""
    outputs = output_names(options.output, options.vocab_size)
    for output in outputs:
        check_output(output)
    for flag, name in (("--keep-counts", options.keep_counts), ("--report", options.report)):
        if name is not None:
            check_output(name, flag)
    if options.held_out and options.report is None:
        raise BadArgument("--held-out is what a report measures on; name its file: --report FILE")
    input_sources(options.held_out or [])  # missing ones are known now, not after the training
    cut = cut_of_files(options.counts, options.special_token, options.pattern)
    largest = max(options.vocab_size)
    training_options = TrainingOptions(
        cut.special_tokens,
        cut.pattern,
        options.tie_break,
        options.min_frequency,
        options.threads,
        max_token_bytes=options.max_token_bytes,
    )
    training_options.check(options.vocab_size)
    # Known now, not after the training: whether tokenizer.json can say this pattern.
    pretokenizer_to_json(Pretokenizer.from_pattern(cut.pattern))
    keep = Path(options.output.replace(SIZE_FIELD, "all")).with_suffix(".counts")
    with _Counting(options, cut, keep) as counting:
        gathered = counting.gather()
        if options.keep_counts is not None:
            counting.save(options.keep_counts)
        with counting.kept_if_it_fails(options.keep_counts):
            loaded = gathered.load(
                counting.budget, counting.workspace, options.min_pretoken_count, counting.progress, largest
            )
            training = train_on(loaded, largest, training_options, counting.progress, counting.budget)
    _write(training, dict(zip(options.vocab_size, outputs, strict=True)), options.quiet)
    if options.report is not None:
        from bpe.cli.report_command import report_on_training

        report_on_training(training, options.vocab_size, options)
    return 0


def count(options: Namespace) -> int:
    """Count the inputs, add the counts files, and write one counts file."""
    check_output(options.output)
    cut = cut_of_files(options.counts, options.special_token, options.pattern)
    with _Counting(options, cut, Path(options.output)) as counting:
        counts = counting.gather()
        counting.save(options.output)
    if not options.quiet:
        facts = counts.facts
        text = f"counts of {bytes_text(facts.text_bytes)} in {counted(facts.documents, 'document')}"
        print(printable(f"{options.output}: {text}, pattern {facts.pattern}"), file=sys.stderr)
    return 0


def output_names(output: str, vocab_sizes: list[int]) -> list[str]:
    """The file of each size; BadArgument if several sizes would have one."""
    if len(vocab_sizes) > 1 and SIZE_FIELD not in output:
        raise BadArgument(
            f"--output {output}: several vocabulary sizes need {SIZE_FIELD} in the name, such as tok-{SIZE_FIELD}.json"
        )
    return [output.replace(SIZE_FIELD, str(vocab_size)) for vocab_size in vocab_sizes]


class _Counting:
    """The counting of a command, with signals, progress and temporary files around it; used as a context."""

    def __init__(self, options: Namespace, cut: Cut, keep: Path) -> None:
        self._options = options
        self._cut = cut
        self._keep = keep
        if not options.inputs and not options.counts:
            raise BadArgument("no input: name text files, folders or globs, - for stdin, or --counts FILE")
        self._sources = input_sources(options.inputs)
        self.budget = MemoryBudget.of(options.max_memory)
        self.workspace = Workspace(options.temp_dir or Path(options.output).parent)
        self.progress = TrainingProgress(options.quiet)
        self._signals = StopSignals()
        self._counted: CountSet | None = None

    def __enter__(self) -> _Counting:
        self._signals.__enter__()
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.__exit__(kind, error, trace)
        self.workspace.__exit__()
        self._signals.__exit__(kind, error, trace)

    def gather(self) -> CountSet:
        """The counts of everything; Stopped, after they are kept, if a signal came meanwhile."""
        options = self._options
        counting = CountingOptions(
            self._cut.special_tokens,
            self._cut.pattern,
            options.threads,
            options.invalid,
            stop=self._signals.asked,
        )
        if note := plain_text_note(self._sources):
            self.progress.note(note)
        self._signals.polled = True
        self._counted = gather_counts(
            self._sources,
            self._cut.counted,
            counting,
            self.progress,
            self.budget,
            self.workspace,
            options.sample_bytes,
            options.seed,
        )
        self._signals.polled = False
        if self._signals.asked():
            raise Stopped(f"interrupted while counting{self._kept()}", self._signals.exit_code)
        return self._counted

    def save(self, path: str) -> None:
        """Write the counts to a file of this name."""
        assert self._counted is not None
        self._counted.save(path, self.workspace, self.budget)

    @contextmanager
    def kept_if_it_fails(self, saved_in: str | None) -> Iterator[None]:
        """Keeps the counts, unless they are in files already, when merging is interrupted or does not fit."""
        try:
            yield
        except (KeyboardInterrupt, MemoryError) as error:
            if not self._sources:
                kept = "; the counts files are as they were"
            elif saved_in is not None:
                kept = f"; the counts are in {saved_in}: go on with --counts {saved_in} and without inputs"
            else:
                kept = self._kept()
            if isinstance(error, KeyboardInterrupt):
                raise Stopped(f"interrupted while merging{kept}", getattr(error, "exit_code", 130)) from None
            what = str(error) if isinstance(error, NotEnoughMemory) else "out of memory while merging"
            raise NotEnoughMemory(f"{what}{kept}") from None

    def _kept(self) -> str:
        """What the message says of the counts, which are in a file now."""
        assert self._counted is not None
        facts = self._counted.facts
        if facts.text_bytes == 0:
            return ""
        path = _unused(
            self._keep if facts.complete else self._keep.with_suffix(f".partial{self._keep.suffix}")
        )
        self._counted.save(path, self.workspace, self.budget)
        place = " in place of the other counts files" if self._options.counts else ""
        if facts.complete:
            how = f"go on with --counts {path}{place} and without inputs"
        elif facts.sample:
            how = f"a sample can't be counted further, but trained on with --counts {path} and without inputs"
        else:
            how = f"to go on, run the same command with --counts {path}{place}"
        return f"; the counts of {bytes_text(facts.text_bytes)} are kept in {path}: {how}"


def _unused(path: Path) -> Path:
    """The path, or one with a number in it, that nothing has yet."""
    names = chain([path], (path.with_suffix(f".{number}{path.suffix}") for number in count_from(1)))
    return next(name for name in names if not name.exists())


def _write(training: Training, outputs: dict[int, str], quiet: bool) -> None:
    for vocab_size, output in outputs.items():
        tokenizer = training.prefix(vocab_size)
        tokenizer.save(output)
        if not quiet:
            made = f"{output}: {tokenizer.vocab_size} entries, pattern {tokenizer.pattern}"
            print(printable(made), file=sys.stderr)
