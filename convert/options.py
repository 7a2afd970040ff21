"""The options of a conversion, checked in one place before anything is written.

`ConvertOptions.__post_init__` checks every rule; an error names the flag, the rule and the value. `recorded()` holds
only the options that decide the bytes of the dataset; the number of workers is not among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from bpe.threads import available_threads
from convert.errors import UsageError, shown
from convert.path_fields import PathField, PathsField, checked_path
from tokenmill.engines.choose import STALL_SECONDS, START_METHODS, EngineOptions, check_engine
from tokenmill.inputs.kinds import INPUT_FORMATS
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

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

DEFAULT_VALIDATION_FRACTION = 0.005
RECORDED = (  # see ConvertOptions.recorded
    "separator",
    "seed",
    "validation_fraction",
    "validation_docs",
    "input_format",
    "text_field",
    "special_in_text",
    "max_record_bytes",
    "invalid",
    "zarr_format",
    "compression",
    "chunk_tokens",
    "source_places",
)
RECORDED_OF_MARKS = (
    "prompt_field",
    "completion_field",
    "messages_field",
    "chat_date",
)  # if given
CHAT_RULES = "chat_rules_sha256"  # the manifest's field for the chat template
_MAX_UINT64 = 2**64 - 1
# The ranges of options; None is allowed where it is the default.
LIMITS = {
    "seed": (0, _MAX_UINT64),
    "validation_docs": (0, 10_000_000),
    "max_errors": (0, _MAX_UINT64),
    "max_record_bytes": (1, 1 << 40),
    "max_window_bytes": (1 << 10, 1 << 32),
    "workers": (1, 4096),
    "text_chunk_bytes": (1, 1 << 32),
    "chunk_tokens": (1, 1 << 27),
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "input_format": INPUT_FORMATS,
    "on_error": ("fail", "skip", "quarantine"),
    "invalid": ("error", "replace", "skip"),
    "special_in_text": ("encode", "text", "error"),
    "zarr_format": (2, 3),
    "compression": ("zstd", "lz4", "lz4-bitshuffle", "none"),
    "source_places": ("auto", "yes", "no"),
    "progress": ("auto", "bar", "json", "none"),
    "start_method": START_METHODS,
}
_FIELDS = ("text_field", "prompt_field", "completion_field", "messages_field")
_MASK_BITS = 8  # tokens per byte of a loss mask
_MASK_FLAGS = "--messages-field or --prompt-field"


@dataclass(frozen=True)
class ConvertOptions:
    """One conversion: `ConvertOptions(["en.txt"], "tokenizer.json", "en.zarr", workers=2)`.

    A value outside its range raises UsageError (exit code 2).

    inputs: files, folders, globs, URLs, or "-" for standard input.
    tokenizer: a tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub.
    output: the path or URL of the dataset.
    validation: the files of the validation split.
    validation_fraction: the fraction of documents in validation, those with hash < fraction * 2^64; None: 0.005, or 0
    with validation or validation_docs.
    validation_docs: the number of documents in validation, those with the smallest hashes.
    seed: the seed of the hash that chooses validation documents.
    exclude: globs of files to skip, matched with the whole path or with its end after a slash.
    input_format: text, jsonl, parquet, arrow, csv, tsv or tar; auto: by file extension.
    text_field: the field or column of the text, or a JSON pointer such as "/a/b".
    prompt_field, completion_field: fields that replace text_field; only the completion is trained on.
    messages_field: the field of chat messages; only the assistant's messages are trained on.
    chat_template: the file or URL of a Jinja template; None: the tokenizer's own.
    chat_date: YYYY-MM-DD, for templates that write the current date.
    on_error: fail, skip or quarantine bad records.
    max_errors: the number of bad records to skip before the run fails; None: any number.
    invalid: what invalid UTF-8 is: an error (a bad record), replace (by U+FFFD), or skip (the document).
    max_record_bytes: the longest JSON line or CSV row; longer ones are bad records.
    max_window_bytes: the largest window that a zst or xz file may ask for.
    separator: the text between the documents of a text file.
    special_in_text: how the text of a special token in a document is encoded: encode (its ID), text, or error (a bad
    record); None: encode for text files, text for records.
    prepend_token, append_token: an entry of the tokenizer, by text or ID, to add to each document that has tokens.
    template: add the tokens that the tokenizer's own files put around a text.
    zarr_format: 2 or 3; None: 2 on disks, 3 on object stores.
    compression: zstd, lz4, lz4-bitshuffle or none. In Zarr format 2, only zstd has checksums that reading compares.
    chunk_tokens: tokens per Zarr chunk; None: 65,536, or 262,144 without compression in format 2.
    source_places: store where each sequence begins in its source: yes, no, or auto (if the documents of a sample have
    512 bytes of text or more on average, so that it takes at most 2 % of the dataset).
    overwrite: replace an existing dataset.
    restart: discard an unfinished run instead of resuming it.
    executor: process (workers on this machine), dask or ray.
    workers: the number of worker processes; None: one per usable CPU. A cluster uses all its workers.
    scheduler, address: the addresses of the dask scheduler and of the Ray cluster; address auto: a running cluster.
    scratch: the folder of temporary shards, which all workers see; None: next to the output.
    storage_options: settings of object stores, such as {"region": "eu-west-1"}; they override environment variables.
    text_chunk_bytes: text per task; None: 4 to 32 MiB, depending on the size of the corpus.
    start_method: fork, spawn or forkserver; auto: fork on Linux where it is safe, else spawn.
    stall_seconds: end a worker that uses no CPU time for so long, or so much CPU time without a step; 0: never.
    progress: auto, bar, json or none, on stderr.
    """

    inputs: PathsField = PathsField()  # noqa: RUF009 - a descriptor
    tokenizer: PathField = PathField()  # noqa: RUF009 - a descriptor
    output: PathField = PathField()  # noqa: RUF009 - a descriptor
    validation: PathsField = PathsField(is_optional=True)  # noqa: RUF009 - a descriptor
    validation_fraction: float | None = None
    validation_docs: int | None = None
    input_format: str = "auto"
    text_field: str = "text"
    prompt_field: str | None = None
    completion_field: str | None = None
    messages_field: str | None = None
    chat_template: str | None = None
    chat_date: str | None = None
    chat: ChatRules | None = None  # what chat_template came to (convert/chat_rules.py)
    on_error: str = "fail"
    max_errors: int | None = None
    special_in_text: str | None = None
    max_record_bytes: int = MAX_RECORD_BYTES
    max_window_bytes: int = 128 << 20
    separator: str = DEFAULT_SEPARATOR
    prepend_token: str | int | None = None
    append_token: str | int | None = None
    template: bool = False
    seed: int = 0
    invalid: Literal["error", "replace", "skip"] = "error"
    workers: int | None = None
    text_chunk_bytes: int | None = None
    zarr_format: int | None = None
    compression: str = "zstd"
    chunk_tokens: int | None = None
    source_places: Literal["auto", "yes", "no"] = "auto"
    overwrite: bool = False
    restart: bool = False
    progress: str = "auto"
    executor: str = "process"
    scheduler: str = ""
    address: str = ""
    scratch: str | None = None
    start_method: str = "auto"
    storage_options: Mapping[str, str] = field(default_factory=dict)
    exclude: PathsField = PathsField(is_optional=True)  # noqa: RUF009 - a descriptor
    stall_seconds: float = STALL_SECONDS

    def __post_init__(self) -> None:
        if not self.inputs and not self.validation:
            raise UsageError("INPUT: none given. Pass at least one file, folder or glob.")
        self._check_split()
        if self.zarr_format is None:
            object.__setattr__(self, "zarr_format", 3 if is_url(self.output) else 2)
        if self.scratch is not None:
            object.__setattr__(self, "scratch", checked_path("scratch", self.scratch))
        for name in (*LIMITS, *CHOICES, *_FIELDS):
            value = getattr(self, name)
            if value is not None or getattr(ConvertOptions, name) is not None:
                _check(name, value)
        if self.zarr_format == 2 and is_url(self.output):
            raise UsageError("--zarr-format: must be 3 for an --output on a store (got 2)")
        try:
            check_engine(self.executor, self.workers, self.scheduler, self.address)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._check_marks()
        if not isinstance(self.stall_seconds, (int, float)) or not 0 <= self.stall_seconds <= 1e6:
            raise UsageError(
                f"--stall-timeout: must be from 0 to 1000000 seconds (got {shown(self.stall_seconds)})"
            )
        check_separator(self.separator, self.invalid)
        for name in ("overwrite", "restart", "template"):
            if not isinstance(value := getattr(self, name), bool):
                raise UsageError(f"{name}: must be True or False (got {shown(value)})")
        if self.template and (self.prepend_token, self.append_token) != (None, None):
            raise UsageError(conflict("--template", "--prepend-token", "--append-token"))
        for flag, token in (("--prepend-token", self.prepend_token), ("--append-token", self.append_token)):
            if token is not None and (
                isinstance(token, bool) or not isinstance(token, (str, int)) or token == ""
            ):
                raise UsageError(f"{flag}: must be the text or ID of a tokenizer entry (got {shown(token)})")
        given = self.storage_options
        if not isinstance(given, Mapping) or not all(
            isinstance(part, str) and part for pair in given.items() for part in pair
        ):
            raise UsageError("--storage-option: must map names to values, both non-empty text")

    def _check_split(self) -> None:
        # A fraction of 0 holds nothing out, and is what options with the others have once they are made.
        given = {
            "--validation": bool(self.validation),
            "--validation-fraction": bool(self.validation_fraction),
            "--validation-docs": self.validation_docs is not None,
        }
        if sum(given.values()) > 1:
            raise UsageError(conflict(*(flag for flag, is_given in given.items() if is_given)))
        fraction: object = self.validation_fraction  # whatever a caller has put there
        if fraction is None:
            fraction = 0.0 if any(given.values()) else DEFAULT_VALIDATION_FRACTION
        if not isinstance(fraction, SupportsFloat) or not 0 <= float(fraction) <= 1:  # NaN fails both
            raise UsageError(f"--validation-fraction: must be from 0 to 1 (got {shown(fraction)})")
        object.__setattr__(self, "validation_fraction", float(fraction))

    def _check_marks(self) -> None:
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
        if self.chat_date is not None:
            self._check_chat_date(self.chat_date)
        if self.has_mask and self.text_field != "text":
            raise UsageError(
                conflict("--text-field", "--messages-field" if has_messages else "--prompt-field")
            )
        if self.has_mask and (self.chunk_tokens or _MASK_BITS) % _MASK_BITS:
            raise UsageError(
                f"--chunk-tokens: must be a multiple of {_MASK_BITS} with a loss mask (got {self.chunk_tokens})"
            )

    def _check_chat_date(self, given: object) -> None:
        try:
            if not isinstance(given, str) or date.fromisoformat(given).isoformat() != given:
                raise ValueError
        except ValueError:
            raise UsageError(f"--chat-date: must be a date such as 2024-07-26 (got {shown(given)})") from None

    @property
    def separator_bytes(self) -> bytes:
        """The separator in UTF-8."""
        return self.separator.encode()

    @property
    def intake_rules(self) -> IntakeRules:
        """The rules for bad records."""
        names = (self.prompt_field or "", self.completion_field or "", self.messages_field or "")
        return IntakeRules(
            self.text_field,
            self.on_error,
            self.max_errors,
            self.invalid,
            self.special_in_text,
            self.max_record_bytes,
            self.max_window_bytes,
            MarkRules(*names, self.chat, self.chat_date or "") if self.has_mask else None,
        )

    @property
    def has_mask(self) -> bool:
        """Whether a part of documents is to be learned."""
        return self.prompt_field is not None or self.messages_field is not None

    def with_chat_rules(self, tokenizer: Tokenizer) -> ConvertOptions:
        """With the template that they ask for, if a part of documents is to be learned.

        Prompts and completions need one only where they are lists of messages.
        """
        if not self.has_mask:
            return self
        from convert.chat_rules import chat_rules

        is_needed = self.messages_field is not None
        rules = chat_rules(
            self.tokenizer,
            tokenizer,
            self.chat_template,
            is_needed,
            self.storage_options,
            self.chat_date is not None,
        )
        return replace(self, chat=rules)

    @property
    def worker_count(self) -> int:
        """The number of worker processes. `workers` stays None, because a cluster rejects a number."""
        return available_threads() if self.workers is None else self.workers

    def engine(self, executor: Executor | None) -> EngineOptions:
        """Where tasks run: in the caller's executor, if there is one."""
        return EngineOptions(
            self.executor if executor is None else executor,
            self.worker_count,
            self.scheduler,
            self.address,
            self.start_method,
            self.stall_seconds,
        )

    @property
    def fraction(self) -> float:
        """The share of documents that becomes validation by hash, 0 to 1."""
        assert self.validation_fraction is not None  # set in __post_init__
        return self.validation_fraction

    def recorded(self) -> dict[str, Any]:
        """The options that, with the sources and the tokenizer, decide what shards hold or how the dataset is laid out.

        JSON-able. Not `on_error`: shards without bad records are the same whatever is to be done with those, so a run
        that failed at one can resume with --on-error skip. Shards with bad records are checked again on resume.
        """
        found = {name: getattr(self, name) for name in RECORDED}
        found |= {name: value for name in RECORDED_OF_MARKS if (value := getattr(self, name)) is not None}
        if self.template and self.messages_field is None:  # chats are the same without
            found["template"] = True
        if self.chat is not None:
            found[CHAT_RULES] = hashlib.sha256(repr(self.chat).encode()).hexdigest()
        return found


def conflict(flag: str, *others: str) -> str:
    """ "--a", "--b", "--c" -> "--a: cannot be combined with --b or --c"."""
    return f"{flag}: cannot be combined with {' or '.join(others)}"


def _check(name: str, value: Any) -> None:
    flag = f"--{name.replace('_', '-')}"
    if name in CHOICES:
        if value not in CHOICES[name]:
            choices = ", ".join(map(str, CHOICES[name]))
            raise UsageError(f"{flag}: must be one of {choices} (got {shown(value)})")
    elif name in LIMITS:
        lowest, highest = LIMITS[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"{flag}: must be an integer (got {shown(value)})")
        if value < lowest:
            raise UsageError(f"{flag}: must be at least {lowest} (got {shown(value)})")
        if value > highest:
            raise UsageError(f"{flag}: must be at most {highest} (got {shown(value)})")
    elif not isinstance(value, str) or not value:
        raise UsageError(f"{flag}: must be a field name (got {shown(value)})")
    else:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{flag}: must be valid Unicode (got {shown(value)})") from None
        if (parts := len(pointer_path(value))) > 64:
            raise UsageError(f"{flag}: must have at most 64 path components (got {parts})")
