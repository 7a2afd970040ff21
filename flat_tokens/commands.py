"""The commands info, verify, head and report; __main__.py parses their arguments and reports errors."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import groupby
from multiprocessing import get_context
from operator import itemgetter
from typing import Any

from flat_tokens import opening, statistics
from flat_tokens.arguments import tokenizer_file
from flat_tokens.errors import printable
from flat_tokens.format import decode_ids
from flat_tokens.storage import entries
from flat_tokens.verify import VerifyReport, verify_dataset
from tokenmill.cli.standard_streams import complain

LINE_COLUMNS = 100
SHOWN_SOURCES = 20


def info(arguments: argparse.Namespace) -> int:
    """Describe a dataset; returns the exit code, like all commands."""
    if arguments.source:
        return _info_of_sources(arguments)
    most_sources = None if arguments.json else SHOWN_SOURCES
    facts = statistics.describe(_open(arguments), most_sources=most_sources)
    if arguments.json:
        print(json.dumps(facts))
        return 0
    print(f"{printable(facts['path'])}: flat-tokens, Zarr format {facts['zarr_format']}")
    for name, split in facts["splits"].items():
        ids = f", IDs up to {split['max_token_id']:,}" if split["token_count"] else ""
        print("\n".join(_of_split(name, split, ids)))
        if split["seq_tokens"]:
            print(
                f"  on disk: {split['disk_bytes']:,} bytes, {split['disk_bytes_per_token']:.2f} per token, "
                f"{split['compression']}, {_cuts(split)}"
            )
            if split["chunk_tokens"] is not None:
                more = "; verify checks the files" if facts["has_manifest"] else ""
                print(f"  checksums: {split['checksum'] or f'none that reading checks{more}'}")
    tokenizer = facts["tokenizer"]
    shown = f"{tokenizer.get('path')}, sha256 {tokenizer.get('sha256')}" if tokenizer else "not recorded"
    print(f"tokenizer: {printable(shown)}")
    if facts["options"]:
        options = [_fact(name, value) for name, value in facts["options"].items()]
        print("\n".join(_lines("options: ", options)))
    if facts["versions"]:
        print(f"made by: {', '.join(_fact(name, value) for name, value in facts['versions'].items())}")
    source_count = facts["source_count"]
    none = "none" if facts["has_manifest"] else "not recorded"
    print(f"sources: {f'{source_count:,}' if source_count else none}")
    for source in facts["sources"]:
        print(f"  {_source(source)}")
    if source_count > SHOWN_SOURCES:
        print(f"  ... and {source_count - SHOWN_SOURCES:,} more")
    if not facts["has_manifest"]:
        print("manifest: none, so changed files cannot be detected")
    return 0


def _info_of_sources(arguments: argparse.Namespace) -> int:
    """The same of some sources."""
    facts = statistics.describe_sources(opening.open(arguments.dataset), arguments.source)
    if arguments.json:
        print(json.dumps(facts))
        return 0
    sources = facts["sources"]
    print(f"{printable(facts['path'])}: {len(sources):,} of {facts['source_count']:,} sources")
    for name, split in facts["splits"].items():
        print("\n".join(_of_split(name, split)))
    for source in sources:
        print(f"  {_source(source)}")
    return 0


def _of_split(name: str, split: dict[str, Any], more: str = "") -> list[str]:
    """Counts and lengths, in lines."""
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


def _open(arguments: argparse.Namespace) -> opening.Dataset:
    return opening.open(arguments.dataset)


def _lines(title: str, facts: list[str]) -> list[str]:
    """The facts after a title, on lines of at most 100 columns if no fact is longer."""
    lines = [title]
    for fact in facts:
        begun = lines[-1] not in (title, "  ")
        if begun and len(lines[-1]) + len(fact) + 3 > LINE_COLUMNS:
            lines[-1] += ","
            lines.append("  ")
            begun = False
        lines[-1] += f", {fact}" if begun else fact
    return lines


def _fact(name: str, value: object) -> str:
    """("seed", 0) -> "seed 0"; ("documents", {"train": 17}) -> "documents (train 17)"."""
    name = printable(name.replace("_", " "))
    if value == {} or (value is None and name.endswith(" token")):
        return f"{name} none"
    if isinstance(value, dict):
        return f"{name} ({', '.join(_fact(str(key), inner) for key, inner in value.items())})"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{name} {value}" if name in ("seed", "id") else f"{name} {value:,}"
    shown = (
        value
        if isinstance(value, str)
        else "default"
        if value is None
        else json.dumps(value, ensure_ascii=False)
    )
    return f"{name} {printable(shown)}"


def _source(source: dict[str, Any]) -> str:
    """{"path": "en.txt", "bytes": 9323, "split": "by hash", ...} -> "en.txt: 9,323 bytes, split by hash"; the digest
    is left to --json."""
    facts = [f"{source['bytes']:,} bytes"] if isinstance(source.get("bytes"), int) else []
    facts += [
        _fact(name, value)
        for name, value in source.items()
        if name not in ("path", "bytes", "digest", "digest_of")
    ]
    return f"{printable(str(source.get('path', 'without a name')))}: {', '.join(facts) or 'nothing recorded'}"


def _cuts(split: dict[str, Any]) -> str:
    if split["chunk_tokens"] is None:
        return "Zarr chunks unknown"
    shards = f", shards of {split['shard_tokens']:,}" if split["shard_tokens"] else ""
    return f"Zarr chunks of {split['chunk_tokens']:,} tokens{shards}"


def verify(arguments: argparse.Namespace) -> int:
    """Check a dataset; 3 if something is wrong."""
    with _Bar() as bar:
        if arguments.workers == 1:
            report = verify_dataset(arguments.dataset, progress=bar.show)
        else:
            with worker_pool(arguments.workers) as executor:
                report = verify_dataset(arguments.dataset, executor, bar.show)
    for problem in report.problems:
        complain(problem)
    if arguments.json:
        print(json.dumps({"ok": report.ok} | asdict(report) | {"path": str(report.path)}))
    else:
        print(_verdict(report))
    return 0 if report.ok else 3


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Processes that end with this one. The workers of a pool alone would wait for ever for a parent that was
    killed."""
    return ProcessPoolExecutor(workers, get_context("forkserver"), _begin_worker)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent of a worker, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    # Its sentinel is a pipe that closes with the parent's end.
    threading.Thread(target=_end_after, args=(parent,), name="parent-watch", daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


class _Bar:
    """A bar in bytes on stderr if that is a terminal, else nothing; a context, so that it ends with its line."""

    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """So much is done."""
        if self._bar is None and sys.stderr.isatty():
            from tokenmill.cli.progress import new_bar

            self._bar = new_bar("verify", total_bytes, sys.stderr)
        if self._bar is not None:
            self._bar.total = total_bytes
            self._bar.update(done_bytes - self._bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._bar is not None:
            if kind is None:  # the manifest is in the total, but was read before there was a bar
                self._bar.total = self._bar.n
            self._bar.close()


def _verdict(report: VerifyReport) -> str:
    where = printable(str(report.path))
    if not report.ok:
        count = len(report.problems)
        return f"{where}: DAMAGED, {count} problem{'s' if count != 1 else ''}, listed above"
    read = f"{report.file_count:,} files, {report.byte_count:,} bytes"
    checked = (
        "all files match the manifest"
        if report.has_manifest
        else "no manifest, so only the format was checked"
    )
    return f"{where}: sound, {report.token_count:,} tokens, {report.seq_count:,} sequences, {read}; {checked}"


def head(arguments: argparse.Namespace) -> int:
    """Print the first sequences."""
    dataset = _open(arguments)
    dataset = dataset.of_sources(*arguments.source) if arguments.source else dataset
    path = arguments.tokenizer or dataset.tokenizer_path
    tokenizer_file(arguments.tokenizer)
    known = entries.load_entries(path) if path is not None else None
    split, array = arguments.split, dataset[arguments.split]
    has_sources = dataset.has_manifest and any(
        f"{split}_sequences" in source for source in dataset.sources(limit=1)
    )
    for index in range(min(arguments.sequences, array.seq_count)):
        start, stop = array.sequence_range(index)
        shown_stop = min(stop, start + arguments.tokens)
        ids = decode_ids(array.encoded_tokens[start:shown_stop]).tolist()
        mask = None if array.loss_mask is None else array.loss_mask[start:shown_stop].tolist()
        text = entries.decode(ids, known) if known is not None else None
        source = array.source_of(index) if has_sources else None
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
            print(f"  trained: {_learned(ids, mask, known)}{more}")
    if array.seq_count == 0 and not arguments.json:
        print(f"{split}: no sequences")
    return 0


def _learned(ids: list[int], mask: list[bool], known: dict[int, bytes] | None) -> str:
    """What of a sequence is to be learned: each stretch as text, or as ids where no tokenizer is known."""
    stretches = [
        [id_ for id_, _ in stretch]
        for is_learned, stretch in groupby(zip(ids, mask, strict=True), key=itemgetter(1))
        if is_learned
    ]
    texts = (
        " ".join(map(str, stretch))
        if known is None
        else printable(entries.decode(stretch, known, is_start=False), 2**31)
        for stretch in stretches
    )
    return " | ".join(texts) or "nothing"


def report(arguments: argparse.Namespace) -> int:
    """Write the page, and print where it is."""
    from flat_tokens.report.command import write_report  # the other commands start without it
    from flat_tokens.report.figures import Bounds

    bounds = Bounds(arguments.sample_tokens, sequences=arguments.sequences, shown_tokens=arguments.tokens)
    written = write_report(
        arguments.dataset,
        arguments.output,
        bounds,
        arguments.tokenizer,
        arguments.overwrite,
    )
    if written is not None:
        print(printable(str(written)))
    return 0
