"""Count files and objects on any engine into one counts file: the Python API of `tokenmill count --executor`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Literal

from bpe.errors import BadArgument, check_range
from bpe.normalizers import Normalizer
from bpe.output_file import check_output
from bpe.pretoken_counts.count_tasks import scratch_in
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts_facts import CountsFacts
from bpe.pretoken_counts.gathering import gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.on_engine import Elsewhere
from bpe.pretoken_counts.sources import list_of
from bpe.pretoken_counts.workspace import Workspace
from bpe.pretokenizer import Pretokenizer
from bpe.progress import Progress
from bpe.threads import available_threads
from tokenmill.engines.choose import EXECUTORS, RETRIES, EngineOptions, check_engine
from tokenmill.inputs.utf8 import Invalid
from tokenmill.stores import NO_OPTIONS, is_url, split_key


def count_files(
    inputs: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    executor: str | Executor | Any = "process",
    *,
    workers: int | None = None,
    scheduler: str = "",
    address: str = "",
    scratch: str | os.PathLike[str] | None = None,
    text_chunk_bytes: int | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
    invalid: Invalid = "error",
    normalizer: Normalizer | Literal["NFC"] | None = None,
    input_format: str = "auto",
    text_field: str = "text",
    on_error: str = "fail",
    separator: str | None = None,
    storage_options: Mapping[str, str] = NO_OPTIONS,
    retries: int = RETRIES,
    executor_options: Mapping[str, Any] = NO_OPTIONS,
) -> CountsFacts:
    """Count the pretokens of files, folders, globs and URLs into a counts file. Return the facts of the text.

    The file equals the output of `tokenmill count` on one machine, byte for byte.

    output: path or URL of the counts file.
    executor: "process"; "dask"; "ray"; a `distributed.Client`; or any executor of `concurrent.futures`. A client or
        executor stays open.
    workers: number of processes, or of tasks at a time of an executor (default: one per core).
    scheduler: address of the dask scheduler.
    address: address of the Ray cluster.
    scratch: folder that all workers can access, or URL, for sorted runs (default: next to the output).
    text_chunk_bytes: bytes of text per task (default: depends on the size of the inputs).
    max_memory: memory limit of a worker process in bytes (default: 1 GiB per task).
    retries: maximum number of retries of a task after transient errors.
    executor_options: arguments of dask's `Client.submit` or of Ray's `options`.

    All other parameters are the same as for `count_pretokens`.

    Raise the errors of `count_pretokens`, and EngineFailure or WorkerLost (exit code 5). A run that failed leaves no
    files.
    """
    options = CountingOptions(
        special_tokens,
        pattern,
        invalid=invalid,
        normalizer=normalizer,
        input_format=input_format,
        text_field=text_field,
        on_error=on_error,
        separator=separator,
        storage_options=storage_options,
    )
    target = os.fspath(output)
    check_output(target, storage_options=storage_options)
    folder = None if is_url(target) else os.path.dirname(target) or "."  # noqa: PTH120 - keeps the path as given
    place = None if scratch is None else os.fspath(scratch)
    engine = engine_options(
        executor, workers, scheduler, address, retries=retries, executor_options=executor_options
    )
    with (
        Workspace(folder) as workspace,
        open_elsewhere(
            engine, place, target, storage_options, workspace, text_chunk_bytes, max_memory
        ) as there,
    ):
        counted = gather_counts(
            list_of(inputs), None, options, progress, MemoryBudget.of(None), workspace, elsewhere=there
        )
        counted.save(target, workspace, storage_options=storage_options)
        return counted.facts


def engine_options(
    executor: str | Executor | Any, workers: int | None, scheduler: str = "", address: str = "", **more: Any
) -> EngineOptions:
    """Return the options of the engine. Raise BadArgument if they contradict each other."""
    try:
        check_engine(executor if isinstance(executor, str) else EXECUTORS[0], workers, scheduler, address)
    except ValueError as error:
        raise BadArgument(str(error)) from None
    check_range("--retries", more.get("retries", RETRIES), 0, 1000)
    return EngineOptions(executor, workers or available_threads(), scheduler, address, **more)


@contextmanager
def open_elsewhere(
    engine: EngineOptions,
    scratch: str | None,
    output: str,
    storage_options: Mapping[str, str],
    workspace: Workspace,
    chunk_bytes: int | None,
    memory_bytes: int | None,
    **more: Any,
) -> Iterator[Elsewhere]:
    """Open the scratch and return the engine with it.

    scratch: None for the folder of the workspace, or next to the output if that is a URL and workers are not local.
    """
    if chunk_bytes is not None:
        check_range("--text-chunk-bytes", chunk_bytes, 1, 1 << 40)
    if scratch is None and is_url(output) and engine.executor != "process":
        scratch = split_key(output)[0]
    with scratch_in(scratch, storage_options, workspace) as opened:
        yield Elsewhere(engine, opened, chunk_bytes, memory_bytes, **more)
