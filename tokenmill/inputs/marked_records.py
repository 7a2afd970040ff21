"""Records with a loss mask: a prompt and its completion, or the messages of a chat.

A record becomes one text and the spans of the text to train on. A template writes chats (chat_template.py), and also
prompts and completions that are lists of messages. Plain prompts and completions are concatenated:

    {"prompt": "1+1=", "completion": "2"}  ->  text "1+1=2", trained [(4, 5)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenmill.inputs.batch import Batch, Marks
from tokenmill.inputs.documents import Documents
from tokenmill.inputs.intake import MALFORMED, Intake, RecordFault
from tokenmill.inputs.json_records import encoded, json_of, surrogate_count, text_at, value_at
from tokenmill.inputs.rules import pointer_path

if TYPE_CHECKING:
    from tokenmill.inputs.chat_template import ChatTemplate

MARKED_FORMATS = {"jsonl", "parquet", "arrow", "csv", "tsv"}


class MarkedText(NamedTuple):
    """The text of a record. Offsets are in bytes and ascend.

    trained: spans to train on.
    cuts: offsets that no token may cross.
    has_special: the record holds the text of a special token as ordinary text.
    of_chat: a template wrote the text.
    roles: roles of the messages.
    dropped: roles of the messages that the template leaves out.
    replaced: unpaired surrogates that became U+FFFD.
    """

    text: bytes
    trained: list[tuple[int, int]]
    cuts: list[int]
    has_special: bool = False
    of_chat: bool = False
    roles: Sequence[str] = ()
    dropped: Sequence[str] = ()
    replaced: int = 0


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

    def text_of(self, record: Any) -> MarkedText:
        """Return the text of a record. Raise RecordFault."""
        if self._marks.messages_field:
            path = pointer_path(self._marks.messages_field)
            messages, tools = _listed(value_at(record, path)), _tools(record, path)
            text = self._template().text_of(messages, tools, self._special, self._replaces)
        else:
            paths = pointer_path(self._marks.prompt_field), pointer_path(self._marks.completion_field)
            prompt, completion = (value_at(record, path) for path in paths)
            if isinstance(prompt, list) and isinstance(completion, list):
                tools = _tools(record, paths[0])
                text = self._template().completion_of(
                    prompt, completion, tools, self._special, self._replaces
                )
            else:
                texts = [text_at(record, path) for path in paths]
                before, after = (encoded(text, self._replaces) for text in texts)
                trained = [(len(before), len(before) + len(after))] if after else []
                text = MarkedText(before + after, trained, [], replaced=surrogate_count("".join(texts)))
        self._intake.add_messages(text.roles, text.dropped)
        self._intake.replaced += text.replaced
        return text

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


def marked_documents(
    texts: Sequence[MarkedText], places: Sequence[int], lines: Sequence[int] | None = None
) -> Iterator[Documents]:
    """Yield the texts as batches, in order. Chats and concatenated texts are separate events.

    places: see Documents; of rows, or of lines if `lines` has their numbers.
    """
    start = 0
    for of_chats, group in groupby(texts, key=lambda text: text.of_chat):
        found = list(group)
        trained = [(row, *span) for row, text in enumerate(found) for span in text.trained]
        cuts = [(row, cut) for row, text in enumerate(found) for cut in text.cuts]
        has_special = np.array([text.has_special for text in found], dtype=np.bool_)
        marks = Marks(_table(trained, 3), _table(cuts, 2), has_special, of_chats)
        own = slice(start, start + len(found))
        yield Documents(
            Batch.of([text.text for text in found], marks),
            np.array(places[own], np.uint64),
            are_rows=lines is None,
            lines=None if lines is None else np.array(lines[own], np.uint64),
        )
        start = own.stop


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def _tools(record: Any, path: Sequence[str]) -> Any:
    """The tools of the object that holds the value at a path, or of the record; None if there are none."""
    for holder in (value_at(record, path[:-1]), record):
        if isinstance(holder, dict) and (tools := holder.get("tools")) is not None:
            return _listed(tools)
    return None


def _listed(value: Any) -> Any:
    """Messages or tools. A table may hold them as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json_of(value)
    except RecordFault as fault:
        if fault.reason != MALFORMED:
            raise
        return value
