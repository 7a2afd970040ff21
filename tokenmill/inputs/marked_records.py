"""Records with a loss mask: a prompt and its completion, or the messages of a chat.

A record becomes one text and the spans of the text to train on. A template writes chats (chat_template.py), and also
prompts and completions that are lists of messages. Plain prompts and completions are concatenated:

    {"prompt": "1+1=", "completion": "2"}  ->  text "1+1=2", trained [(4, 5)]
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

LONGEST_INTEGER = 4000  # digits; Python's int() accepts 4,300
MARKED_FORMATS = {"jsonl", "parquet", "arrow", "csv", "tsv"}


class MarkedText(NamedTuple):
    """The text of a record. Offsets are in bytes and ascend.

    trained: spans to train on.
    cuts: offsets that no token may cross.
    has_special: the record holds the text of a special token as ordinary text.
    of_chat: a template wrote the text.
    roles: roles of the messages.
    dropped: roles of the messages that the template leaves out.
    """

    text: bytes
    trained: list[tuple[int, int]]
    cuts: list[int]
    has_special: bool = False
    of_chat: bool = False
    roles: Sequence[str] = ()
    dropped: Sequence[str] = ()


class RecordFault(ValueError):  # noqa: N818 - named after the fault
    """A bad record. reason: kind of fault, under which the record is counted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class MarkedRecords:
    """Turns records into texts by the rules of an intake, which must have marks, and counts their messages there."""

    def __init__(self, intake: Intake) -> None:
        rules = intake.rules
        assert rules.marks is not None
        self._intake = intake
        self._replaces = rules.invalid == "replace"
        self._special = rules.special_in_text or "text"
        self._marks = rules.marks
        self._chat: ChatTemplate | None = None  # created by the first chat

    def parsed(self, line: bytes) -> Any:
        """Parse a JSON line, which must be valid UTF-8. Raise RecordFault."""
        try:
            return _parse(line.decode())  # json.loads would accept UTF-16 bytes
        except RecursionError:
            raise RecordFault(MALFORMED, "nested too deeply") from None
        except RecordFault:
            raise
        except ValueError as error:
            raise RecordFault(MALFORMED, f"invalid JSON: {error}") from None

    def text_of(self, record: Any) -> MarkedText:
        """Return the text of a record. Raise RecordFault."""
        if not isinstance(record, dict):
            raise RecordFault("not an object", "not a JSON object")
        marks = self._marks
        if marks.messages_field:
            messages = _listed(_field(record, marks.messages_field))
            tools = _tools(record, marks.messages_field)
            text = self._template().text_of(messages, tools, self._special, self._replaces)
        else:
            prompt, completion = _field(record, marks.prompt_field), _field(record, marks.completion_field)
            if isinstance(prompt, list) and isinstance(completion, list):
                tools = _tools(record, marks.prompt_field)
                text = self._template().completion_of(
                    prompt, completion, tools, self._special, self._replaces
                )
            else:
                text = self._concatenated(prompt, completion)
        self._intake.add_messages(text.roles, text.dropped)
        return text

    def _concatenated(self, prompt: Any, completion: Any) -> MarkedText:
        before = encoded(_text(prompt, self._marks.prompt_field), self._replaces)
        after = encoded(_text(completion, self._marks.completion_field), self._replaces)
        stop = len(before) + len(after)
        return MarkedText(before + after, [(len(before), stop)] if after else [], [])

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
    """Collects texts for one batch."""

    def __init__(self) -> None:
        self._texts: list[MarkedText] = []
        self._places: list[int] = []

    def add(self, text: MarkedText, place: int) -> None:
        """Add a text. place: byte or row of its record in the source."""
        self._texts.append(text)
        self._places.append(place)

    def documents(self, are_rows: bool = False) -> Iterator[Documents]:
        """Yield all texts in order. Chats and concatenated texts are separate events."""
        pairs = zip(self._texts, self._places, strict=True)
        for of_chats, group in groupby(pairs, key=lambda pair: pair[0].of_chat):
            texts, places = zip(*group, strict=True)
            trained = [(row, *span) for row, text in enumerate(texts) for span in text.trained]
            cuts = [(row, cut) for row, text in enumerate(texts) for cut in text.cuts]
            has_special = np.array([text.has_special for text in texts], dtype=np.bool_)
            marks = Marks(_table(trained, 3), _table(cuts, 2), has_special, of_chats)
            batch = Batch.of([text.text for text in texts], marks)
            yield Documents(batch, np.array(places, dtype=np.uint64), are_rows)


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def encoded(text: str, replaces: bool) -> bytes:
    """Encode a text as UTF-8. An unpaired surrogate raises RecordFault, or becomes U+FFFD with `replaces`."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        if replaces:
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        detail = f"unpaired surrogate at character {error.start} of the text"
        raise RecordFault(INVALID_UTF8, detail) from None


def _parse(text: str) -> Any:
    """Parse JSON. Raise RecordFault for an object with a repeated name."""
    return json.loads(text, object_pairs_hook=_unique, parse_int=_integer)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for index, name in enumerate(names) if name in names[:index])
        raise RecordFault("field twice", f"field {repeated!r} occurs twice")
    return found


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= LONGEST_INTEGER else float(text)


def _field(record: dict[str, Any], name: str) -> Any:
    value: Any = record
    for part in pointer_path(name):
        if not isinstance(value, dict) or part not in value:
            fields = ", ".join(map(str, list(record)[:10])) or "none"
            raise RecordFault("no such field", f"field {name!r} is missing (fields: {fields})")
        value = value[part]
    return value


def _tools(record: dict[str, Any], field: str) -> Any:
    """The tools of the object that holds `field`, or of the record; None if there are none."""
    value: Any = record
    for part in pointer_path(field)[:-1]:
        value = value[part]
    tools = value.get("tools")
    return _listed(record.get("tools") if tools is None else tools)


def _listed(value: Any) -> Any:
    """Messages or tools. A table may hold them as JSON text."""
    if isinstance(value, str):
        try:
            return _parse(value)
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
