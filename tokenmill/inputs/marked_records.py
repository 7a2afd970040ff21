"""Records with a loss mask: a prompt and its completion, or the messages of a chat.

A record becomes one text and the stretches of it that are to be learned. What makes the text of a chat is its template
(chat_template.py), and so where prompt and completion are lists of messages; where they are texts it is the one
behind the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenmill.inputs.batch import Batch, Marks
from tokenmill.inputs.documents import Documents
from tokenmill.inputs.intake import INVALID_UTF8, MALFORMED, Intake
from tokenmill.inputs.rules import pointer_path

if TYPE_CHECKING:
    from tokenmill.inputs.chat_template import ChatTemplate

LONGEST_INTEGER = 4000  # digits of a number that is read as it is; Python refuses those of more than 4,300
MARKED_FORMATS = {
    "jsonl",
    "parquet",
    "arrow",
    "csv",
    "tsv",
}  # of FORMATS (tokenmill/inputs/kinds.py), those of records


class MarkedText(NamedTuple):
    """text: UTF-8. trained: (start, stop) of its bytes that are to be learned, rising. cuts: bytes that no token may
    lie across, rising. has_special: whether a part that is text holds the text of a special token. of_chat: whether a
    template made it. roles: the roles of its messages. dropped: the roles of those that the template leaves out."""

    text: bytes
    trained: list[tuple[int, int]]
    cuts: list[int]
    has_special: bool = False
    of_chat: bool = False
    roles: Sequence[str] = ()
    dropped: Sequence[str] = ()


class RecordFault(ValueError):  # noqa: N818 - named for what is wrong
    """A record that gives no text. reason: under what it is counted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class MarkedRecords:
    """Texts and marks of records by the rules of an intake, which counts their messages. The rules must have marks."""

    def __init__(self, intake: Intake) -> None:
        rules = intake.rules
        assert rules.marks is not None
        self._intake = intake
        self._replaces = rules.invalid == "replace"
        self._special = rules.special_in_text or "text"
        self._marks = rules.marks
        self._chat: ChatTemplate | None = None  # made for the first chat

    def parsed(self, line: bytes) -> Any:
        """The record of a JSON line, which is valid UTF-8; RecordFault."""
        try:
            return _value_of(line.decode())  # of bytes it would take UTF-16, and a mark in front of any line
        except RecursionError:
            raise RecordFault(MALFORMED, "nested too deeply") from None
        except RecordFault:
            raise
        except ValueError as error:
            raise RecordFault(MALFORMED, f"invalid JSON: {error}") from None

    def text_of(self, record: Any) -> MarkedText:
        """Return the text of a record and count its messages; RecordFault."""
        found = self._text_of(record)
        self._intake.add_messages(found.roles, found.dropped)
        return found

    def _text_of(self, record: Any) -> MarkedText:
        if not isinstance(record, dict):
            raise RecordFault("not an object", "not a JSON object")
        if self._marks.messages_field:
            messages = _field(record, self._marks.messages_field)
            tools = _tools(record, self._marks.messages_field)
            return self._template().text_of(_listed(messages), tools, self._special, self._replaces)
        names = self._marks.prompt_field, self._marks.completion_field
        before, after = (_field(record, name) for name in names)
        if isinstance(before, list) and isinstance(after, list):
            tools = _tools(record, self._marks.prompt_field)
            return self._template().completion_of(before, after, tools, self._special, self._replaces)
        prompt, completion = (
            encoded(_text(value, name), self._replaces)
            for value, name in zip((before, after), names, strict=True)
        )
        stop = len(prompt) + len(completion)
        return MarkedText(prompt + completion, [(len(prompt), stop)] if completion else [], [])

    def _template(self) -> ChatTemplate:
        if self._chat is None:
            from tokenmill.inputs.chat_template import ChatTemplate

            if self._marks.chat is None:
                raise RecordFault(
                    "no chat template",
                    "the prompt is a list of messages, but there is no chat template (pass --chat-template FILE and "
                    "run pip install 'tokenmill[chat]')",
                )
            self._chat = ChatTemplate(self._marks.chat, self._marks.chat_date)
        return self._chat


class MarkedBatch:
    """Texts on their way into one batch."""

    def __init__(self) -> None:
        self._found: list[MarkedText] = []
        self._places: list[int] = []

    def add(self, found: MarkedText, place: int) -> None:
        """place: where the record begins in its source."""
        self._found.append(found)
        self._places.append(place)

    def documents(self, are_rows: bool = False) -> Iterator[Documents]:
        """All of them in order, as events: chats, and texts that no template made, by themselves."""
        pairs = zip(self._found, self._places, strict=True)
        for of_chats, group in groupby(pairs, key=lambda pair: pair[0].of_chat):
            texts, places = zip(*group, strict=True)
            trained = [(row, *span) for row, found in enumerate(texts) for span in found.trained]
            cuts = [(row, cut) for row, found in enumerate(texts) for cut in found.cuts]
            with_special = np.array([found.has_special for found in texts], dtype=np.bool_)
            marks = Marks(_table(trained, 3), _table(cuts, 2), with_special, of_chats)
            batch = Batch.of([found.text for found in texts], marks)
            yield Documents(batch, np.array(places, dtype=np.uint64), are_rows)


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def encoded(text: str, replaces: bool) -> bytes:
    """The UTF-8 of a text; RecordFault for half of a surrogate pair, which becomes U+FFFD with `replaces`."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        if replaces:
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        detail = f"unpaired surrogate at character {error.start} of the text"
        raise RecordFault(INVALID_UTF8, detail) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise RecordFault("field twice", f"field {twice!r} occurs twice")
    return found


def _whole_number(text: str) -> int | float:
    return int(text) if len(text) <= LONGEST_INTEGER else float(text)


def _field(record: dict[str, Any], name: str) -> Any:
    value: Any = record
    for part in pointer_path(name):
        if not isinstance(value, dict) or part not in value:
            there = ", ".join(map(str, list(record)[:10])) or "none"
            raise RecordFault("no such field", f"field {name!r} is missing (fields: {there})")
        value = value[part]
    return value


def _tools(record: dict[str, Any], field: str) -> Any:
    """The tools in the object that holds a field, which is there, else in the record; None if there are none."""
    value: Any = record
    for part in pointer_path(field)[:-1]:
        value = value[part]
    found = value.get("tools")
    return _listed(record.get("tools") if found is None else found)


def _value_of(text: str) -> Any:
    """The value of a text in JSON; RecordFault for an object that has the same name twice."""
    return json.loads(text, object_pairs_hook=_once, parse_int=_whole_number)


def _listed(value: Any) -> Any:
    """A list, of messages or tools, that a table holds as a text in JSON."""
    if isinstance(value, str):
        try:
            return _value_of(value)
        except RecordFault:
            raise
        except (ValueError, RecursionError):
            return value
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        kinds = {dict: "an object", list: "a list", bool: "a boolean", type(None): "null"}
        raise RecordFault("not a text", f"field {name!r} is {kinds.get(type(value), 'a number')}, not text")
    return value
