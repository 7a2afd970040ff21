"""The options of a conversion, checked in one place before anything is written.

`ConvertOptions` checks every rule when it is made; an error names the flag, the rule and the value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from datetime import date
from typing import Any, Literal, SupportsFloat

from bpe.threads import available_threads
from convert.errors import UsageError, shown
from tokenmill.engines.choose import (
    MAX_WORKERS,
    RETRIES,
    STALL_SECONDS,
    START_METHODS,
    EngineOptions,
    engine_of,
)
from tokenmill.inputs.kinds import INPUT_FORMATS, STANDARD_INPUT
from tokenmill.inputs.rules import DEFAULT_SEPARATOR, MAX_RECORD_BYTES, check_separator, pointer_path
from tokenmill.stores.url import is_url

DEFAULT_VALIDATION_FRACTION = 0.005
EXCLUSIVE = (  # at most one of each row
    ("validation", "validation_fraction", "validation_docs"),
    ("prompt_field", "messages_field"),
    ("text_field", "messages_field", "prompt_field"),
    ("template", "prepend_token"),
    ("template", "append_token"),
    ("task_index", "validation_docs"),
    ("restart", "task_index"),
)
REQUIRED = {  # one of these
    "prompt_field": ("completion_field",),
    "completion_field": ("prompt_field",),
    "chat_template": ("messages_field", "prompt_field"),
    "chat_date": ("messages_field", "prompt_field"),
    "task_index": ("task_count",),
    "task_count": ("task_index",),
}
AnyPath = str | os.PathLike[str]
_MASK_BITS = 8  # tokens per byte of a loss mask
_TOKEN = "must be the text or ID of a tokenizer entry"


def _option(
    default: Any, rule: str, is_met: Callable[[Any], bool], choices: Sequence[Any] | None = None
) -> Any:
    """Return a field with a rule for its values. None is also allowed where it is the default."""
    return field(default=default, metadata={"rule": rule, "is_met": is_met, "choices": choices})


def _integer(default: int | None, lowest: int, highest: int) -> Any:
    rule = f"must be an integer from {lowest} to {highest}"
    return _option(default, rule, lambda value: type(value) is int and lowest <= value <= highest)


def _number(default: float | None, highest: int) -> Any:
    rule = f"must be from 0 to {highest}"
    return _option(
        default, rule, lambda value: isinstance(value, SupportsFloat) and 0 <= float(value) <= highest
    )


def _choice(default: Any, *choices: Any) -> Any:
    rule = f"must be one of {', '.join(map(str, choices))}"
    return _option(default, rule, lambda value: value in choices, choices)


def _name(default: str | None) -> Any:
    return _option(default, "must be a field name, or a JSON pointer of at most 64 parts", _is_field)


def _is_token(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and value != "")


def _is_field(value: Any) -> bool:
    is_text = isinstance(value, str) and value.encode(errors="ignore").decode() == value != ""
    return is_text and len(pointer_path(value)) <= 64


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


class PathField:
    """A field that accepts a str or os.PathLike and is read as a str."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> str:
        if instance is None:
            raise AttributeError(self._name)  # so the field has no default
        return str(instance.__dict__[self._name])

    def __set__(self, instance: object, value: AnyPath) -> None:
        instance.__dict__[self._name] = checked_path(self._name, value)


class PathsField:
    """A field that accepts one path or an iterable of paths and is read as a tuple of str."""

    def __init__(self, is_optional: bool = False) -> None:
        self._is_optional = is_optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> tuple[str, ...]:
        if instance is None and not self._is_optional:
            raise AttributeError(self._name)
        return () if instance is None else instance.__dict__[self._name]

    def __set__(self, instance: object, value: Iterable[AnyPath]) -> None:
        values = (value,) if isinstance(value, (str, bytes, os.PathLike)) else value
        if not isinstance(values, Iterable):
            raise UsageError(f"{self._name}: must be paths (got {shown(value)})")
        instance.__dict__[self._name] = tuple(checked_path(self._name, each) for each in values)


def checked_path(name: str, value: Any) -> str:
    """Return the path as text. name: the option, for UsageError."""
    path = os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else ""
    if not path or "\0" in path:
        flag = "INPUT" if name == "inputs" else f"--{name}"
        raise UsageError(f"{flag}: must be a path without NUL characters (got {shown(value)})")
    return path


@dataclass(frozen=True)
class ConvertOptions:
    """One conversion: `ConvertOptions(["en.txt"], "tokenizer.json", "en.zarr", workers=2)`.

    A value outside its range raises UsageError (exit code 2). None stands for the default that is described.

    inputs: files, folders, globs, URLs, or "-" for standard input.
    tokenizer: a tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub.
    output: the path or URL of the dataset.
    input_format: text, jsonl, parquet, arrow, csv, tsv or tar; auto: by file extension.
    text_field: the field or column of the text, or a JSON pointer such as "/a/b".
    separator: the text between the documents of a text file.
    exclude: globs of files to skip, matched with the whole path or with its end after a slash.
    on_error: fail, skip or quarantine bad records and unreadable files.
    replace_invalid: replace invalid UTF-8 by U+FFFD; otherwise it makes a record bad.
    max_errors: the number of bad records to skip before the run fails; None: any number.
    max_record_bytes: the longest JSON line or CSV row; longer ones are bad records.
    max_window_bytes: the largest window of a zst or xz file.
    storage_options: settings of object stores, such as {"region": "eu-west-1"}; they override environment variables.
    messages_field: the field of chat messages; only the assistant's messages are trained on.
    prompt_field, completion_field: fields that replace text_field; only the completion is trained on.
    chat_template: the file or URL of a Jinja template; None: the tokenizer's own.
    chat_date: YYYY-MM-DD, for templates that write the current date.
    append_token, prepend_token: an entry of the tokenizer, by text or ID, to add to each document that has tokens.
    template: add the tokens that the tokenizer's own files put around a text.
    special_in_text: how the text of a special token in a document is encoded: encode (its ID), text, or error (a bad
    record); None: encode for text files, text for records.
    validation: the files of the validation split.
    validation_fraction: the fraction of documents in validation, those with hash < fraction * 2^64; None: 0.005, or 0
    with validation or validation_docs.
    validation_docs: the number of documents in validation, those with the smallest hashes.
    seed: the seed of the hash that chooses validation documents.
    zarr_format: 2 or 3; None: 3 on object stores and for very large corpora, else 2.
    compression: zstd or none. In Zarr format 2, only zstd has checksums that reading compares.
    chunk_tokens: tokens per Zarr chunk; None: 65,536, or 262,144 without compression in format 2.
    overwrite: replace an existing dataset.
    restart: discard an unfinished run instead of resuming it.
    verify: sample or full; how much finished work a resumed run reads back before it is reused.
    workers: the number of worker processes; None: one per usable CPU. A cluster uses all its workers.
    executor: process (workers on this machine), dask or ray; None: by scheduler and address, else process.
    scheduler, address: the addresses of the dask scheduler and of the Ray cluster; address auto: a running cluster.
    executor_options: passed to dask or Ray for each task, such as {"priority": 10}.
    retries: attempts after the first for a task that fails because of a store or a lost worker.
    scratch: the folder of temporary shards, which all workers see; None: next to the output.
    task_index, task_count: encode only this share of the corpus, counted from 0; a later run without them merges.
    text_chunk_bytes: text per task; None: 4 to 32 MiB, depending on the size of the corpus.
    start_method: fork, spawn or forkserver; auto: fork on Linux where it is safe, else spawn.
    stall_timeout: seconds without progress after which a worker is ended; 0: never.
    progress: auto, bar, json or none, on stderr.
    """

    inputs: PathsField = PathsField()
    tokenizer: PathField = PathField()
    output: PathField = PathField()
    _: KW_ONLY
    input_format: str = _choice("auto", *INPUT_FORMATS)
    text_field: str = _name("text")
    separator: str = DEFAULT_SEPARATOR
    exclude: PathsField = PathsField(is_optional=True)
    on_error: str = _choice("fail", "fail", "skip", "quarantine")
    replace_invalid: bool = False
    max_errors: int | None = _integer(None, 0, 2**64 - 1)
    max_record_bytes: int = _integer(MAX_RECORD_BYTES, 1, 1 << 40)
    max_window_bytes: int = _integer(128 << 20, 1 << 10, 1 << 32)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    messages_field: str | None = _name(None)
    prompt_field: str | None = _name(None)
    completion_field: str | None = _name(None)
    chat_template: str | None = None
    chat_date: str | None = _option(None, "must be a date such as 2024-07-26", _is_date)
    append_token: str | int | None = _option(None, _TOKEN, _is_token)
    prepend_token: str | int | None = _option(None, _TOKEN, _is_token)
    template: bool = False
    special_in_text: str | None = _choice(None, "encode", "text", "error")
    validation: PathsField = PathsField(is_optional=True)
    validation_fraction: float | None = _number(None, 1)
    validation_docs: int | None = _integer(None, 0, 10_000_000)
    seed: int = _integer(0, 0, 2**64 - 1)
    zarr_format: int | None = _choice(None, 2, 3)
    compression: str = _choice("zstd", "zstd", "none")
    chunk_tokens: int | None = _integer(None, 1, 1 << 27)
    overwrite: bool = False
    restart: bool = False
    verify: Literal["sample", "full"] = _choice("sample", "sample", "full")
    workers: int | None = _integer(None, 1, MAX_WORKERS)
    executor: str | None = None
    scheduler: str = ""
    address: str = ""
    executor_options: Mapping[str, Any] = field(default_factory=dict)
    retries: int = _integer(RETRIES, 0, 1000)
    scratch: str | None = None
    task_index: int | None = _integer(None, 0, 99_999)
    task_count: int | None = _integer(None, 1, 100_000)
    text_chunk_bytes: int | None = _integer(None, 1, 1 << 32)
    start_method: str = _choice("auto", *START_METHODS)
    stall_timeout: float = _number(STALL_SECONDS, 1_000_000)
    progress: str = _choice("auto", "auto", "bar", "json", "none")

    def __post_init__(self) -> None:
        if not self.inputs and not self.validation:
            raise UsageError("INPUT: none given. Pass at least one file, folder or glob.")
        if self.scratch is not None:
            object.__setattr__(self, "scratch", checked_path("scratch", self.scratch))
        for own in fields(self):
            value = getattr(self, own.name)
            if own.metadata and not (value is own.default is None or own.metadata["is_met"](value)):
                raise UsageError(f"{flag_of(own.name)}: {own.metadata['rule']} (got {shown(value)})")
            if isinstance(own.default, bool) and not isinstance(value, bool):
                raise UsageError(f"{flag_of(own.name)}: must be True or False (got {shown(value)})")
        pairs = self.storage_options.items() if isinstance(self.storage_options, Mapping) else [("", "")]
        if not all(isinstance(part, str) and part for pair in pairs for part in pair):
            raise UsageError("--storage-option: must map names to values, both non-empty text")
        check_separator(self.separator, "replace" if self.replace_invalid else "error")
        _ = self.engine  # raises for options that do not go together
        for names in EXCLUSIVE:
            if len(flags := [flag_of(name) for name in names if self._is_given(name)]) > 1:
                raise UsageError(f"{flags[0]}: cannot be combined with {' or '.join(flags[1:])}")
        for name, others in REQUIRED.items():
            if self._is_given(name) and not any(map(self._is_given, others)):
                raise UsageError(f"{flag_of(name)}: requires {' or '.join(map(flag_of, others))}")
        if self.share is not None and self.share[0] >= self.share[1]:
            raise UsageError(
                f"--task-index: must be less than --task-count {self.share[1]} (got {self.share[0]})"
            )
        if self.share is not None and STANDARD_INPUT in self.inputs:
            raise UsageError("-: cannot be combined with --task-index, because every task would need it")
        if self.zarr_format == 2 and is_url(self.output):
            raise UsageError("--zarr-format: must be 3 for an --output on a store (got 2)")
        if self.has_mask and (self.chunk_tokens or _MASK_BITS) % _MASK_BITS:
            rule = f"must be a multiple of {_MASK_BITS} with a loss mask"
            raise UsageError(f"--chunk-tokens: {rule} (got {self.chunk_tokens})")

    def _is_given(self, name: str) -> bool:
        """Return whether an option differs from its default. No documents are held out by a fraction of 0."""
        value = getattr(self, name)
        return bool(value != getattr(ConvertOptions, name) and (value or name != "validation_fraction"))

    @property
    def share(self) -> tuple[int, int] | None:
        """The task of a job array that this run is, as its index and the number of tasks."""
        return (
            None if self.task_index is None or self.task_count is None else (self.task_index, self.task_count)
        )

    @property
    def has_mask(self) -> bool:
        """Whether only a part of each document is trained on."""
        return self.prompt_field is not None or self.messages_field is not None

    @property
    def fraction(self) -> float:
        """The fraction of documents that a hash assigns to validation."""
        if self.validation_fraction is not None:
            return float(self.validation_fraction)
        return 0.0 if self.validation or self.validation_docs is not None else DEFAULT_VALIDATION_FRACTION

    @property
    def engine(self) -> EngineOptions:
        """Where the tasks run."""
        found = engine_of(self, self.worker_count)
        return replace(found, retries=self.retries, executor_options=self.executor_options)

    @property
    def worker_count(self) -> int:
        """The number of worker processes on this machine."""
        return available_threads() if self.workers is None else self.workers


def flag_of(name: str) -> str:
    """Return the flag of an option: "on_error" -> "--on-error"."""
    return f"--{name.replace('_', '-')}"
