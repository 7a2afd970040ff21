"""`convert` and `dry_run`: the tokenizer is loaded while what does the work (conversion.py) is imported."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, shown
from bpe.formats.by_path import files_of, read_file
from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from convert.errors import UsageError
from convert.options import ConvertOptions
from engines.background_call import BackgroundCall

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from convert.shown.summary import Summary
    from corpus.source_list import SourceList

MAX_TOKEN_ID = 2**31 - 1  # the format keeps id * 2 + 1 in 32 bits


def convert(
    options: ConvertOptions,
    executor: Executor | None = None,
    started: float | None = None,
    sources: SourceList | None = None,
) -> Summary:
    """Convert and verify; the dataset lies at `options.output` when this returns.

    executor: where tasks run, any of `concurrent.futures`, options.workers of them at a time; it stays open. None: as
    options.executor says, by default worker processes on this machine. started: time.perf_counter() when the work
    began, if that was earlier, so that imports count. sources: those of the inputs to convert; None: all. Errors
    carry `exit_code` (convert/errors.py); whatever ends the work early leaves `<output>.partial`, from which the same
    call goes on.
    """
    if not isinstance(options, ConvertOptions):
        raise UsageError(f"convert takes ConvertOptions(inputs, tokenizer, output), got {shown(options)}")
    with BackgroundCall(partial(load_tokenizer, options.tokenizer)) as loading:
        from convert.driver.conversion import prepare, run

        prepared = prepare(options, started, sources)
    return run(prepared, *loading.result(), executor)


def dry_run(options: ConvertOptions) -> list[str]:
    """Lines that say what `convert` would read, make and need, by a sample; writes nothing and starts no process."""
    with BackgroundCall(partial(load_tokenizer, options.tokenizer)) as loading:
        from convert.driver.conversion import check_records, prepare
        from convert.driver.estimate import estimate, estimate_lines
        from convert.planning.plan import make_plan
        from corpus.sources import STANDARD_INPUT

        if STANDARD_INPUT in options.inputs:
            raise UsageError("-: a dry run cannot look into standard input; name a file")
        prepared = prepare(options)
    tokenizer, _ = loading.result()
    options = options.with_chat_rules(tokenizer)
    check_records(prepared.sources, options)
    plan = make_plan(prepared.sources, options.text_chunk_bytes)
    return estimate_lines(estimate(tokenizer, plan, prepared.layout, options), plan, options, prepared.layout)


def load_tokenizer(name: str) -> tuple[Tokenizer, dict[str, str]]:
    """The tokenizer, ready to encode, and what the manifest says of its source.

    {"source_sha256": the SHA-256 of the file or files it was read from}, and "source": "org/model@commit" for one of
    the Hugging Face Hub.

    The digest of the file stands in for the fingerprint where only equality counts: the fingerprint needs the
    canonical tokenizer.json, which is made while the workers encode.
    """
    path, source = locate(name)
    digest = hashlib.sha256()
    for file in files_of(path):
        if file.exists() and not file.is_file():
            raise UsageError(
                f"{file}: the tokenizer must be a file, which can be read again when a run goes on"
            )
        digest.update(read_file(file))
    try:
        tokenizer = Tokenizer.load(path)
    except BadArgument:
        raise UsageError(
            f"{path}: a rank file says neither its pattern nor its special tokens; make a tokenizer.json of it: "
            "bpe.Tokenizer.load(path, pattern=..., special_tokens=...).save('tokenizer.json')"
        ) from None
    if tokenizer.max_token_id > MAX_TOKEN_ID:
        raise UsageError(
            f"{path}: id {tokenizer.max_token_id} does not fit the dataset; ids go up to {MAX_TOKEN_ID}"
        )
    tokenizer.encode_documents(b"")  # builds the encoder, once, before the workers are forked
    facts = {"source_sha256": digest.hexdigest()}
    return tokenizer, facts if source is None else {**facts, "source": source}
