"""The options of a conversion, checked in one place before anything is written.

`ConvertOptions` checks every rule when it is made; an error names the flag, the rule and the value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from typing import Any, Literal, SupportsFloat

from bpe.threads import available_threads
from convert.errors import UsageError, shown
from convert.path_fields import PathField, PathsField, checked_path
from tokenmill.engines.choose import RETRIES, STALL_SECONDS, START_METHODS, check_engine, executor_of
from tokenmill.inputs.kinds import INPUT_FORMATS, STANDARD_INPUT
from tokenmill.inputs.rules import (
    DEFAULT_SEPARATOR,
    MAX_RECORD_BYTES,
    ChatRules,
    IntakeRules,
    MarkRules,
    check_separator,
    pointer_path,
)
from tokenmill.stores.url import is_url

DEFAULT_VALIDATION_FRACTION = 0.005
# Options that, with the sources and the tokenizer, decide the bytes of the dataset. on_error is not one of them: a run
# that failed at a bad record can resume with --on-error skip.
RECORDED = (
    *("separator", "seed", "validation_docs", "input_format", "text_field", "special_in_text"),
    *("max_record_bytes", "replace_invalid", "compression", "chunk_tokens"),
)
RECORDED_IF_GIVEN = ("prompt_field", "completion_field", "messages_field", "chat_date")
CHAT_RULES = "chat_rules_sha256"  # the manifest's field for the chat template
# Ranges of integers and numbers, both ends included. None is allowed where it is the default.
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**64 - 1),
    "validation_docs": (0, 10_000_000),
    "max_errors": (0, 2**64 - 1),
    "max_record_bytes": (1, 1 << 40),
    "max_window_bytes": (1 << 10, 1 << 32),
    "workers": (1, 4096),
    "text_chunk_bytes": (1, 1 << 32),
    "chunk_tokens": (1, 1 << 27),
    "retries": (0, 1000),
    "task_index": (0, 99_999),
    "task_count": (1, 100_000),
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "input_format": INPUT_FORMATS,
    "on_error": ("fail", "skip", "quarantine"),
    "special_in_text": ("encode", "text", "error"),
    "zarr_format": (2, 3),
    "compression": ("zstd", "none"),
    "verify": ("sample", "full"),
    "progress": ("auto", "bar", "json", "none"),
    "start_method": START_METHODS,
}
_FIELDS = ("text_field", "prompt_field", "completion_field", "messages_field")
_FLAGS = ("replace_invalid", "template", "overwrite", "restart")
_MASK_BITS = 8  # tokens per byte of a loss mask
_MASK_FLAGS = "--messages-field or --prompt-field"


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

    inputs: PathsField = PathsField()  # noqa: RUF009 - a descriptor
    tokenizer: PathField = PathField()  # noqa: RUF009 - a descriptor
    output: PathField = PathField()  # noqa: RUF009 - a descriptor
    _: KW_ONLY
    input_format: str = "auto"
    text_field: str = "text"
    separator: str = DEFAULT_SEPARATOR
    exclude: PathsField = PathsField(is_optional=True)  # noqa: RUF009 - a descriptor
    on_error: str = "fail"
    replace_invalid: bool = False
    max_errors: int | None = None
    max_record_bytes: int = MAX_RECORD_BYTES
    max_window_bytes: int = 128 << 20
    storage_options: Mapping[str, str] = field(default_factory=dict)
    messages_field: str | None = None
    prompt_field: str | None = None
    completion_field: str | None = None
    chat_template: str | None = None
    chat_date: str | None = None
    append_token: str | int | None = None
    prepend_token: str | int | None = None
    template: bool = False
    special_in_text: str | None = None
    validation: PathsField = PathsField(is_optional=True)  # noqa: RUF009 - a descriptor
    validation_fraction: float | None = None
    validation_docs: int | None = None
    seed: int = 0
    zarr_format: int | None = None
    compression: str = "zstd"
    chunk_tokens: int | None = None
    overwrite: bool = False
    restart: bool = False
    verify: Literal["sample", "full"] = "sample"
    workers: int | None = None
    executor: str | None = None
    scheduler: str = ""
    address: str = ""
    executor_options: Mapping[str, Any] = field(default_factory=dict)
    retries: int = RETRIES
    scratch: str | None = None
    task_index: int | None = None
    task_count: int | None = None
    text_chunk_bytes: int | None = None
    start_method: str = "auto"
    stall_timeout: float = STALL_SECONDS
    progress: str = "auto"

    def __post_init__(self) -> None:
        if not self.inputs and not self.validation:
            raise UsageError("INPUT: none given. Pass at least one file, folder or glob.")
        if self.scratch is not None:
            object.__setattr__(self, "scratch", checked_path("scratch", self.scratch))
        for name in (*RANGES, *CHOICES, *_FIELDS, *_FLAGS):
            value = getattr(self, name)
            if value is not None or getattr(ConvertOptions, name) is not None:
                _check(name, value)
        if not isinstance(self.stall_timeout, (int, float)) or not 0 <= self.stall_timeout <= 1e6:
            got = shown(self.stall_timeout)
            raise UsageError(f"--stall-timeout: must be from 0 to 1000000 seconds (got {got})")
        if self.zarr_format == 2 and is_url(self.output):
            raise UsageError("--zarr-format: must be 3 for an --output on a store (got 2)")
        try:
            check_engine(self.engine_name, self.workers, self.scheduler, self.address)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._check_validation()
        self._check_loss_mask()
        self._check_tokens()
        self._check_share()
        check_separator(self.separator, "replace" if self.replace_invalid else "error")
        given = self.storage_options
        if not isinstance(given, Mapping) or not all(
            isinstance(part, str) and part for pair in given.items() for part in pair
        ):
            raise UsageError("--storage-option: must map names to values, both non-empty text")

    def _check_validation(self) -> None:
        given = {
            "--validation": bool(self.validation),
            "--validation-fraction": bool(self.validation_fraction),
            "--validation-docs": self.validation_docs is not None,
        }
        if sum(given.values()) > 1:
            raise UsageError(conflict(*(flag for flag, is_given in given.items() if is_given)))
        fraction: object = self.validation_fraction
        if fraction is not None and not (isinstance(fraction, SupportsFloat) and 0 <= float(fraction) <= 1):
            raise UsageError(f"--validation-fraction: must be from 0 to 1 (got {shown(fraction)})")

    def _check_loss_mask(self) -> None:
        has_prompt, has_messages = self.prompt_field is not None, self.messages_field is not None
        requirements = (
            ("--prompt-field", has_prompt, "--completion-field", self.completion_field is not None),
            ("--completion-field", self.completion_field is not None, "--prompt-field", has_prompt),
            ("--chat-template", self.chat_template is not None, _MASK_FLAGS, self.has_mask),
            ("--chat-date", self.chat_date is not None, _MASK_FLAGS, self.has_mask),
        )
        for flag, is_given, required, is_met in requirements:
            if is_given and not is_met:
                raise UsageError(f"{flag}: requires {required}")
        if has_prompt and has_messages:
            raise UsageError(conflict("--prompt-field", "--messages-field"))
        if self.has_mask and self.text_field != "text":
            other = "--messages-field" if has_messages else "--prompt-field"
            raise UsageError(conflict("--text-field", other))
        if self.has_mask and (self.chunk_tokens or _MASK_BITS) % _MASK_BITS:
            rule = f"must be a multiple of {_MASK_BITS} with a loss mask (got {self.chunk_tokens})"
            raise UsageError(f"--chunk-tokens: {rule}")
        given: object = self.chat_date
        try:
            if given is not None and (
                not isinstance(given, str) or date.fromisoformat(given).isoformat() != given
            ):
                raise ValueError
        except ValueError:
            raise UsageError(f"--chat-date: must be a date such as 2024-07-26 (got {shown(given)})") from None

    def _check_tokens(self) -> None:
        if self.template and (self.prepend_token, self.append_token) != (None, None):
            raise UsageError(conflict("--template", "--prepend-token", "--append-token"))
        tokens: dict[str, object] = {
            "--prepend-token": self.prepend_token,
            "--append-token": self.append_token,
        }
        for flag, token in tokens.items():
            is_token = isinstance(token, (str, int)) and not isinstance(token, bool) and token != ""
            if token is not None and not is_token:
                raise UsageError(f"{flag}: must be the text or ID of a tokenizer entry (got {shown(token)})")

    def _check_share(self) -> None:
        index, count = self.task_index, self.task_count
        if (index is None) != (count is None):
            raise UsageError("--task-index: requires --task-count, and the other way round")
        if index is not None and STANDARD_INPUT in self.inputs:
            raise UsageError("-: cannot be combined with --task-index, because every task would need it")
        if index is not None and self.validation_docs is not None:
            raise UsageError(conflict("--task-index", "--validation-docs"))
        if index is not None and count is not None and index >= count:
            raise UsageError(f"--task-index: must be less than --task-count {count} (got {index})")

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
    def engine_name(self) -> str:
        """The engine: executor, or the one that scheduler or address imply."""
        return executor_of(self.executor, self.scheduler, self.address) or "process"

    @property
    def worker_count(self) -> int:
        """The number of worker processes on this machine."""
        return available_threads() if self.workers is None else self.workers

    @property
    def intake_rules(self) -> IntakeRules:
        """The rules for records, without the chat template (see convert/chat_rules.py)."""
        fields = (self.prompt_field or "", self.completion_field or "", self.messages_field or "")
        return IntakeRules(
            self.text_field,
            self.on_error,
            self.max_errors,
            "replace" if self.replace_invalid else "error",
            self.special_in_text,
            self.max_record_bytes,
            self.max_window_bytes,
            MarkRules(*fields, None, self.chat_date or "") if self.has_mask else None,
            "--replace-invalid",
        )

    def recorded(self, zarr_format: int, chat: ChatRules | None) -> dict[str, Any]:
        """Return the options that decide the bytes of shards and dataset, as plain JSON values.

        zarr_format: the format in use. chat: the chat template, if there is one.
        """
        found = {name: getattr(self, name) for name in RECORDED}
        found |= {"validation_fraction": self.fraction, "zarr_format": zarr_format}
        found |= {name: value for name in RECORDED_IF_GIVEN if (value := getattr(self, name)) is not None}
        if self.template and self.messages_field is None:  # chats are the same without it
            found["template"] = True
        if chat is not None:
            found[CHAT_RULES] = hashlib.sha256(repr(chat).encode()).hexdigest()
        return found


def conflict(flag: str, *others: str) -> str:
    """("--a", "--b", "--c") -> "--a: cannot be combined with --b or --c"."""
    return f"{flag}: cannot be combined with {' or '.join(others)}"


def _check(name: str, value: Any) -> None:
    """Raise UsageError if the value is not one of the option's choices, or outside its range."""
    flag = f"--{name.replace('_', '-')}"
    if name in CHOICES:
        if value not in CHOICES[name]:
            choices = ", ".join(map(str, CHOICES[name]))
            raise UsageError(f"{flag}: must be one of {choices} (got {shown(value)})")
    elif name in RANGES:
        lowest, highest = RANGES[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"{flag}: must be an integer (got {shown(value)})")
        if value < lowest:
            raise UsageError(f"{flag}: must be at least {lowest} (got {shown(value)})")
        if value > highest:
            raise UsageError(f"{flag}: must be at most {highest} (got {shown(value)})")
    elif name in _FLAGS:
        if not isinstance(value, bool):
            raise UsageError(f"{flag}: must be True or False (got {shown(value)})")
    else:
        check_field(flag, value)


def check_field(flag: str, value: Any) -> None:
    """Raise UsageError unless the value names a field of a record."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"{flag}: must be a field name (got {shown(value)})")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{flag}: must be valid Unicode (got {shown(value)})") from None
    if (parts := len(pointer_path(value))) > 64:
        raise UsageError(f"{flag}: must have at most 64 path components (got {parts})")
