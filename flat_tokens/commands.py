"""The commands info, verify, head and report. `__main__.py` parses their arguments and reports errors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import Any

from flat_tokens import opening, statistics
from flat_tokens.arguments import tokenizer_file
from flat_tokens.errors import DatasetError, printable
from flat_tokens.format import decode_ids
from flat_tokens.sources import SourcePlace
from flat_tokens.statistics import fact
from flat_tokens.storage import entries
from flat_tokens.verify import VerifyReport, verify_dataset
from tokenmill.cli.standard_streams import complain
from tokenmill.engines.process_engine import ProcessEngine
from tokenmill.inputs.sizes import counted

LINE_COLUMNS = 100
SHOWN_SOURCES = 20


def info(arguments: argparse.Namespace) -> int:
    """Describe a dataset and return the exit code, like all commands."""
    dataset = opening.open(arguments.dataset)
    if arguments.source:
        facts = statistics.describe_sources(dataset, arguments.source)
    else:
        facts = statistics.describe(dataset, most_sources=None if arguments.json else SHOWN_SOURCES)
    print(json.dumps(facts) if arguments.json else "\n".join(_described(facts)))
    return 0


def _described(facts: dict[str, Any]) -> list[str]:
    """Return the lines about a dataset, or about some of its sources."""
    where, sources, count = printable(facts["path"]), facts["sources"], facts["source_count"]
    if "zarr_format" not in facts:
        lines = [f"{where}: {len(sources):,} of {count:,} sources"]
        for name, split in facts["splits"].items():
            lines += _of_split(name, split)
        return lines + [f"  {_source(source)}" for source in sources]
    lines = [f"{where}: flat-tokens, Zarr format {facts['zarr_format']}"]
    for name, split in facts["splits"].items():
        lines += _of_split(
            name, split, f", IDs up to {split['max_token_id']:,}" if split["token_count"] else ""
        )
        if split["seq_tokens"]:
            shards = f", shards of {split['shard_tokens']:,}" if split["shard_tokens"] else ""
            lines.append(
                f"  on disk: {split['disk_bytes']:,} bytes, {split['disk_bytes_per_token']:.2f} per token, "
                f"{split['compression']}, Zarr chunks of {split['chunk_tokens']:,} tokens{shards}"
            )
            none = "none that reading checks" + ("; verify checks the files" if facts["has_manifest"] else "")
            lines.append(f"  checksums: {split['checksum'] or none}")
    tokenizer = facts["tokenizer"]
    shown = f"{tokenizer.get('path')}, sha256 {tokenizer.get('sha256')}" if tokenizer else "not recorded"
    lines.append(f"tokenizer: {printable(shown)}")
    if facts["options"]:
        lines += _wrapped("options: ", [fact(name, value) for name, value in facts["options"].items()])
    if facts["versions"]:
        lines.append(f"made by: {', '.join(fact(name, value) for name, value in facts['versions'].items())}")
    none = "none" if facts["has_manifest"] else "not recorded"
    lines += [f"sources: {f'{count:,}' if count else none}", *(f"  {_source(source)}" for source in sources)]
    if count > SHOWN_SOURCES:
        lines.append(f"  ... and {count - SHOWN_SOURCES:,} more")
    if not facts["has_manifest"]:
        lines.append("manifest: none, so changed files cannot be detected")
    return lines


def _of_split(name: str, split: dict[str, Any], more: str = "") -> list[str]:
    """Return the lines about counts and lengths."""
    lines = [f"{name}: {split['token_count']:,} tokens in {split['seq_count']:,} sequences{more}"]
    if split["trained_tokens"] is not None:
        lines.append(f"  trained: {split['trained_tokens']:,} tokens")
    if split["seq_tokens"]:
        tokens = split["seq_tokens"]
        lines.append(
            f"  tokens per sequence: median {tokens['median']:,.10g}, mean {tokens['mean']:,.10g}, "
            f"{tokens['min']:,} to {tokens['max']:,}"
        )
    return lines


def _wrapped(title: str, facts: list[str]) -> list[str]:
    """Return the facts after a title, in lines of at most 100 columns unless one fact is longer."""
    lines = [title + facts[0]]
    for text in facts[1:]:
        if len(lines[-1]) + len(text) + 3 > LINE_COLUMNS:
            lines[-1] += ","
            lines.append(f"  {text}")
        else:
            lines[-1] += f", {text}"
    return lines


def _source(source: dict[str, Any]) -> str:
    """{"path": "en.txt", "bytes": 9323, "split": "by hash", "digest": ...} -> "en.txt: 9,323 bytes, split by hash"."""
    facts = [f"{source['bytes']:,} bytes"] if isinstance(source.get("bytes"), int) else []
    left_out = ("path", "bytes", "digest", "digest_of")
    facts += [fact(name, value) for name, value in source.items() if name not in left_out]
    return f"{printable(str(source.get('path', 'without a name')))}: {', '.join(facts) or 'nothing recorded'}"


def verify(arguments: argparse.Namespace) -> int:
    """Verify a dataset and return 3 if it is damaged."""
    with ExitStack() as opened:
        progress = opened.enter_context(_bar()) if sys.stderr.isatty() else None
        executor = None
        if arguments.workers > 1:
            executor = opened.enter_context(ProcessEngine(arguments.workers))
            executor.start(arguments.workers, bool)
        report = verify_dataset(arguments.dataset, executor, progress)
    for problem in report.problems:
        complain(problem)
    if arguments.json:
        print(json.dumps({"ok": report.ok} | asdict(report) | {"path": str(report.path)}))
    else:
        print(_verdict(report))
    return 0 if report.ok else 3


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows the bytes done and in all in a bar on stderr."""
    from tokenmill.cli.progress import new_bar

    with new_bar("verify", 0, sys.stderr) as bar:

        def show(done_bytes: int, total_bytes: int) -> None:
            bar.total = total_bytes
            bar.update(done_bytes - bar.n)

        yield show
        bar.total = bar.n  # it includes the manifest, which was read before


def _verdict(report: VerifyReport) -> str:
    where = printable(str(report.path))
    if not report.ok:
        return f"{where}: DAMAGED, {counted(len(report.problems), 'problem')}, listed above"
    read = f"{report.file_count:,} files, {report.byte_count:,} bytes"
    compared = "all files match the manifest"
    checked = compared if report.has_manifest else "no manifest, so only the format was checked"
    return f"{where}: sound, {report.token_count:,} tokens, {report.seq_count:,} sequences, {read}; {checked}"


def head(arguments: argparse.Namespace) -> int:
    """Print the first sequences."""
    dataset = opening.open(arguments.dataset)
    dataset = dataset.of_sources(*arguments.source) if arguments.source else dataset
    path = arguments.tokenizer or dataset.tokenizer_path
    tokenizer_file(arguments.tokenizer)
    known = entries.load_entries(path) if path is not None else None
    split, array = arguments.split, dataset[arguments.split]
    for index in range(min(arguments.sequences, array.seq_count)):
        start, stop = array.sequence_range(index)
        shown_stop = min(stop, start + arguments.tokens)
        ids = decode_ids(array.encoded_tokens[start:shown_stop]).tolist()
        mask = None if array.loss_mask is None else array.loss_mask[start:shown_stop].tolist()
        text = entries.decode(ids, known) if known is not None else None
        source: SourcePlace | None = None
        with suppress(DatasetError):  # the dataset does not record it
            source = array.source_of(index)
        if arguments.json:
            facts = {"split": split, "index": index, "tokens": stop - start, "ids": ids, "text": text}
            facts |= {} if mask is None else {"loss_mask": list(map(int, mask))}
            print(json.dumps(facts if source is None else facts | {"source": source._asdict()}))
            continue
        more = "" if len(ids) == stop - start else " ..."
        print(f"{split}[{index}]: {stop - start:,} tokens")
        if source is not None:
            print(f"  source: {printable(source.path)}, record {source.record:,}")
        print(f"  ids: {' '.join(map(str, ids))}{more}")
        if text is not None:
            print(f"  text: {printable(text, 2**31)}{more}")
        if mask is not None:
            print(f"  trained: {_trained(ids, mask, known)}{more}")
    if array.seq_count == 0 and not arguments.json:
        print(f"{split}: no sequences")
    return 0


def _trained(ids: list[int], mask: list[bool], known: dict[int, bytes] | None) -> str:
    """Return the trained spans of a sequence as text, or as IDs without a tokenizer."""
    spans = []
    for is_trained, pairs in groupby(zip(ids, mask, strict=True), key=itemgetter(1)):
        if is_trained:
            span = [id_ for id_, _ in pairs]
            text = " ".join(map(str, span)) if known is None else entries.decode(span, known, is_start=False)
            spans.append(printable(text, 2**31))
    return " | ".join(spans) or "nothing"


def report(arguments: argparse.Namespace) -> int:
    """Write the page and print its path."""
    from flat_tokens.report import Bounds, write_report  # the other commands start without it

    bounds = Bounds(arguments.sample_tokens, sequences=arguments.sequences, shown_tokens=arguments.tokens)
    written = write_report(
        arguments.dataset, arguments.output, bounds, arguments.tokenizer, arguments.overwrite
    )
    if written is not None:
        print(printable(str(written)))
    return 0
