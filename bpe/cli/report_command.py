"""The report command, and the report of `train --report`: text, JSON or an HTML page."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bpe.cli.commands import load_tokenizer, open_output, tokenizer_files
from bpe.cli.text_input import input_sources, named_files
from bpe.errors import BadArgument, printable, shown
from bpe.output_conflicts import STANDARD, check_outputs_apart
from bpe.output_file import check_output
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import other_cut
from bpe.pretoken_counts.memory import check_room, trim_memory
from bpe.progress import TrainingProgress
from bpe.reports.measuring_encoder import check_measurable, texts_of_entries
from bpe.reports.report import make_report, report_bytes
from bpe.reports.report_text import report_page, report_text
from bpe.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from bpe.training import Training

_COUNT_AS_TOKENIZER: Final = "Count the text again, as the tokenizer splits it (--like)."


def report(options: Namespace) -> int:
    """Write a report on a tokenizer, measured on texts or counts if there are any."""
    if options.inputs and options.counts:
        raise BadArgument("--counts: cannot be combined with texts. Measure the report on one of them.")
    if options.output != STANDARD:
        check_output(options.output)
    sources = input_sources(options.inputs, options)
    inputs = [*tokenizer_files(options), *named_files(sources), *options.counts]
    check_outputs_apart([("--output", options.output)], inputs)
    tokenizer = load_tokenizer(options)
    check_measurable(tokenizer.text_rules)
    counts, measured_on = None, ""
    if options.counts:
        counts = _load_counts(options.counts, tokenizer, dict(options.storage_option))
        measured_on = _listed(options.counts)
    elif options.inputs:
        counts = _count(sources, options.inputs, tokenizer, options)
        measured_on = _listed(options.inputs)
    made = make_report(tokenizer, counts, measured_on)
    form = "json" if options.json else _form(options.output)
    _write(made, tokenizer, options.output, form, options.tokenizer)
    return 0


def report_on_training(training: Training, sizes: list[int], options: Namespace) -> None:
    """Write the report of a training, measured on held-out text or the training text.

    Raise NotEnoughMemory if it exceeds the limit. The tokenizers are already written.
    """
    if options.held_out:
        sources = input_sources(options.held_out, options)
        counts = _count(sources, options.held_out, training.tokenizer, options)
        measured_on = _listed(options.held_out)
    else:
        counts = training.counts
        measured_on = "the training text (use --held-out for other text)"
    if training.budget is not None:
        trim_memory()
        check_room(report_bytes(len(counts)), "report (the tokenizer is already written)", training.budget)
    made = make_report(training.tokenizer, counts, measured_on, sizes)
    _write(made, training.tokenizer, options.report, _form(options.report), Path(options.output).name)
    if not options.quiet:
        print(
            f"{printable(options.report)}: {made['text']['bytes_per_token']:.3f} bytes per token on {measured_on}",
            file=sys.stderr,
        )


def _count(
    sources: list[Source], arguments: list[str], tokenizer: Tokenizer, options: Namespace
) -> PretokenCounts:
    with TrainingProgress(quiet=True) as notes:
        counts = count_pretokens(
            sources,
            list(tokenizer.special_tokens),
            tokenizer.pretokenizer,
            options.threads,
            invalid=options.invalid,
            progress=notes,
            normalizer=tokenizer.normalizer,
            input_format=options.input_format,
            text_field=options.text_field,
            on_error=options.on_error,
            storage_options=dict(options.storage_option),
        )
    if len(counts) == 0:
        raise BadArgument(f"{_listed(arguments)}: no text to measure on")
    return counts


def _load_counts(paths: list[str], tokenizer: Tokenizer, storage_options: dict[str, str]) -> PretokenCounts:
    counts = PretokenCounts.load(*paths, storage_options=storage_options)
    facts = counts.facts
    if facts.pretokenizer != tokenizer.pretokenizer:
        raise other_cut(
            paths[0], "pattern", shown(facts.pattern), shown(tokenizer.pattern), _COUNT_AS_TOKENIZER
        )
    if facts.normalizer != tokenizer.parts.normalizer:
        raise other_cut(
            paths[0],
            "normalizer",
            facts.normalizer or "none",
            tokenizer.normalizer or "none",
            _COUNT_AS_TOKENIZER,
        )
    return counts


def _listed(names: list[str]) -> str:
    return printable(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _form(path: str) -> str:
    return {".json": "json", ".html": "html", ".htm": "html"}.get(Path(path).suffix, "text")


def _write(made: dict[str, Any], tokenizer: Tokenizer, path: str, form: str, title: str) -> None:
    if form == "json":
        text = json.dumps(made, indent=2) + "\n"
    elif form == "html":
        text = report_page(made, texts_of_entries(tokenizer), title)
    else:
        text = report_text(made)
    with open_output(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
