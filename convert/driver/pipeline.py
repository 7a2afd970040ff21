"""`convert` and `dry_run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.errors import shown
from convert.driver.tokenizers import load_tokenizer
from convert.errors import UsageError
from convert.options import ConvertOptions

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from convert.shown.summary import Summary


def convert(
    options: ConvertOptions,
    executor: Executor | None = None,
    started: float | None = None,
) -> Summary:
    """Convert and verify; the dataset lies at `options.output` when this returns.

    executor: where tasks run, any of `concurrent.futures`, options.workers of them at a time; it stays open. None: as
    options.executor says, by default worker processes on this machine. started: time.perf_counter() when the work
    began, if that was earlier, so that imports count. Errors
    carry `exit_code` (convert/errors.py); whatever ends the work early leaves `<output>.partial`, from which the same
    call goes on.
    """
    if not isinstance(options, ConvertOptions):
        raise UsageError(f"options: must be ConvertOptions(inputs, tokenizer, output) (got {shown(options)})")
    from convert.driver.conversion import prepare, run

    prepared = prepare(options, started)
    return run(prepared, *load_tokenizer(options.tokenizer, options.storage_options), executor)


def dry_run(options: ConvertOptions) -> list[str]:
    """Lines that say what `convert` would read, make and need, by a sample; writes nothing and starts no process."""
    from convert.driver.conversion import check_records, prepare
    from convert.driver.estimate import estimate, estimate_lines
    from convert.planning.plan import make_plan
    from tokenmill.inputs.sources import STANDARD_INPUT

    if STANDARD_INPUT in options.inputs:
        raise UsageError("-: --dry-run cannot sample standard input. Pass a file instead.")
    prepared = prepare(options, is_dry_run=True)
    tokenizer, _ = load_tokenizer(options.tokenizer, options.storage_options)
    options = options.with_chat_rules(tokenizer)
    check_records(prepared.sources, options)
    plan = make_plan(prepared.sources, options.text_chunk_bytes)
    return estimate_lines(estimate(tokenizer, plan, prepared.layout, options), plan, options, prepared.layout)
