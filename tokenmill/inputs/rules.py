"""What counts as a bad record and what happens to it: the options that the readers know."""

from __future__ import annotations

from typing import NamedTuple

from tokenmill.errors import BadArgument

MAX_RECORD_BYTES = 256 << 20  # a JSON line is held in memory
MAX_MARKED_BYTES = 64 << 20  # a record with a loss mask becomes Python objects
DEFAULT_SEPARATOR = "<|endoftext|>"


class ChatRules(NamedTuple):
    """How a chat becomes text.

    template: the Jinja template, "" if only chats with tools have one.
    variables: names and texts that the template can use, such as bos_token.
    special_tokens: tokens in the rendered text, ordinary text in messages.
    tool_template: the template of chats with tools, "" if it is the same.
    """

    template: str
    variables: tuple[tuple[str, str], ...]
    special_tokens: tuple[str, ...]
    tool_template: str = ""


class MarkRules(NamedTuple):
    """The fields of records with a loss mask: a prompt and its completion, or the messages of a chat.

    chat_date: the date that `strftime_now` returns in chat templates, YYYY-MM-DD, "" if there is none.
    """

    prompt_field: str = ""
    completion_field: str = ""
    messages_field: str = ""
    chat: ChatRules | None = None
    chat_date: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are read."""
        return (self.messages_field,) if self.messages_field else (self.prompt_field, self.completion_field)

    @property
    def option(self) -> str:
        """The options that name the fields, for errors."""
        return "--messages-field" if self.messages_field else "--prompt-field and --completion-field"


class IntakeRules(NamedTuple):
    """What counts as bad and what happens to it; see `ConvertOptions` for each field.

    replace_flag: the command's option that replaces invalid UTF-8, for errors.
    """

    text_field: str = "text"
    on_error: str = "fail"
    max_errors: int | None = None
    invalid: str = "error"
    special_in_text: str | None = None
    max_record_bytes: int = MAX_RECORD_BYTES
    max_window_bytes: int = 128 << 20
    marks: MarkRules | None = None
    replace_flag: str = "--invalid replace"

    @property
    def text_path(self) -> tuple[str, ...]:
        """The names that lead to the text: one for a plain name, several for "/a/b" (a JSON pointer)."""
        return pointer_path(self.text_field)

    @property
    def fields_option(self) -> str:
        """The option that names the fields of a record, for errors."""
        return "--text-field" if self.marks is None else self.marks.option

    @property
    def stops_at_invalid(self) -> bool:
        """Whether invalid UTF-8 in plain text ends the run."""
        return self.on_error == "fail" and self.invalid == "error"


def check_separator(separator: str, invalid: str) -> None:
    """Raise BadArgument for a text that cannot separate documents."""
    if not isinstance(separator, str):
        raise BadArgument(f"--separator: must be text (got {separator!r})")
    if not separator:
        raise BadArgument("--separator: must not be empty")
    if len(separator) > 4096:
        raise BadArgument(f"--separator: must be at most 4096 characters (got {len(separator)})")
    try:
        separator.encode()
    except UnicodeEncodeError:
        raise BadArgument(f"--separator: must be valid text (got {separator!r})") from None
    if invalid == "replace" and "\ufffd" in separator:
        raise BadArgument("--separator: must not contain U+FFFD, which replaces invalid UTF-8")


def pointer_path(field_name: str) -> tuple[str, ...]:
    """ "text" -> ("text",), "/a/b~1c" -> ("a", "b/c"): a JSON pointer (RFC 6901) if it begins with a slash."""
    if not field_name.startswith("/"):
        return (field_name,)
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in field_name[1:].split("/"))
