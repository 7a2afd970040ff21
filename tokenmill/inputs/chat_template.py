"""The text of a chat by its Jinja template, and the spans of the text to train on.

A template with `{% generation %}` blocks marks these spans. For any other template, the span of an assistant message is
the text it adds to the chat before it, rendered with the generation prompt. If a rendered chat does not begin with that
shorter chat, the mask would not be exact, and the record is bad. If prompt and completion are lists of messages, all
text of the completion is trained on. A chat without messages has no text.

Special tokens in messages stay ordinary text: U+FDD2 follows the first character of each while the template runs, and
its offset becomes a cut that no token crosses.

Jinja2 is optional, so it is imported late.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from tokenmill.errors import BadArgument, not_installed, printable
from tokenmill.inputs.intake import RecordFault
from tokenmill.inputs.json_records import encoded, surrogate_count
from tokenmill.inputs.marked_records import MarkedText
from tokenmill.inputs.messages import messages_for_template, roles_dropped
from tokenmill.inputs.rules import ChatRules

BEGIN, END, CUT = "\ufdd0", "\ufdd1", "\ufdd2"  # noncharacters, which no text is meant to hold
_MARKS = re.compile(f"[{BEGIN}{END}{CUT}]")
_GENERATION = re.compile(f"[{BEGIN}{END}]")
_HAS_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
TEMPLATE = "chat template"


class ChatTemplate:
    """The templates of some rules. Raise BadArgument if one does not compile or Jinja2 is not installed."""

    def __init__(self, rules: ChatRules, chat_date: str = "") -> None:
        self._templates = rules.template, rules.tool_template or rules.template
        for template in filter(None, self._templates):
            compiled(template)
        self._variables = {**dict(rules.variables), "strftime_now": _clock(chat_date)}
        special = sorted(rules.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special))) if special else None

    def text_of(self, messages: Any, tools: Any, special: str, replaces: bool) -> MarkedText:
        """Return the text of messages. Raise RecordFault if the template rejects them.

        special: treat special tokens in messages as "text", "encode" them, or raise RecordFault ("error").
        """
        messages, tools, has_special = self._given(messages, tools, special)
        if not messages:
            return _marked("", replaces)
        text = self.rendered(messages, tools)
        if not _HAS_GENERATION.search(self._template(tools)):
            text = self._with_marks(text, messages, tools)
        return self._found(text, messages, tools, replaces, has_special)

    def completion_of(
        self, prompt: list[Any], completion: list[Any], tools: Any, special: str, replaces: bool
    ) -> MarkedText:
        """Return the text of prompt and completion messages, trained on the completion; otherwise as `text_of`."""
        messages, tools, has_special = self._given([*prompt, *completion], tools, special)
        if not messages:
            return _marked("", replaces)
        text = _GENERATION.sub("", self.rendered(messages, tools))
        before = _GENERATION.sub(
            "", self.rendered(messages[: len(prompt)], tools, add_generation_prompt=True)
        )
        if not text.startswith(before):
            raise RecordFault(
                TEMPLATE, "the completion changes the text of the prompt, so the loss mask is not exact"
            )
        marked = f"{before}{BEGIN}{text[len(before) :]}{END}"
        return self._found(marked, messages, tools, replaces, has_special)

    def _found(
        self, text: str, messages: list[Any], tools: Any, replaces: bool, has_special: bool
    ) -> MarkedText:
        dropped = roles_dropped(messages, lambda messages: self.rendered(messages, tools))
        roles = [message["role"] for message in messages]
        return _marked(text, replaces)._replace(has_special=has_special, roles=roles, dropped=dropped)

    def _template(self, tools: Any) -> str:
        template = self._templates[tools is not None]
        if not template:
            raise RecordFault("no chat template", "no tools, but the chat template requires tools")
        return template

    def _given(self, messages: Any, tools: Any, special: str) -> tuple[list[Any], Any, bool]:
        """Return (messages and tools for the template, whether they hold special tokens as text)."""
        messages = messages_for_template(messages)
        if _MARKS.search(json.dumps([messages, tools], ensure_ascii=False, default=str)):
            raise RecordFault("no messages", "messages contain U+FDD0, U+FDD1 or U+FDD2")
        found: list[str] = []
        left: list[str] = []
        cut_messages, cut_tools = self._cut(messages, found, left), self._cut(tools, found, left)
        if found and special == "error":
            raise RecordFault("special token", f"a message contains the special token {found[0]!r}")
        if special == "encode":
            return messages, tools, False
        if left:
            raise RecordFault(
                "special token",
                f"a message contains the special token {left[0]!r}, which cannot become ordinary text "
                "(--special-in-text encode keeps it as a token)",
            )
        return cut_messages, cut_tools, bool(found)

    def _cut(self, value: Any, found: list[str], left: list[str]) -> Any:
        """Copy a value with CUT in each special token. found: receives them. left: receives tokens that remain."""
        if isinstance(value, str) and self._special is not None:
            tokens = self._special.findall(value)
            if tokens:
                found += tokens
                value = self._special.sub(lambda match: match[0][0] + CUT + match[0][1:], value)
                left += (token for part in value.split(CUT) for token in self._special.findall(part))
            return value
        if isinstance(value, list):
            return [self._cut(item, found, left) for item in value]
        if isinstance(value, dict):
            return {
                self._cut(name, found, left): self._cut(item, found, left) for name, item in value.items()
            }
        return value

    def _with_marks(self, text: str, messages: list[Any], tools: Any) -> str:
        """Put marks around the text that each assistant message adds."""
        parts, done = [], 0
        for number, message in enumerate(messages):
            if message.get("role") != "assistant":
                continue
            before = self.rendered(messages[:number], tools, add_generation_prompt=True)
            upto = self.rendered(messages[: number + 1], tools) if number + 1 < len(messages) else text
            if not (upto.startswith(before) and text.startswith(upto) and done <= len(before)):
                raise RecordFault(
                    TEMPLATE,
                    f"message {number} changes the text before it, so the loss mask is not exact "
                    "(use a template with {% generation %} blocks)",
                )
            parts += [text[done : len(before)], BEGIN, text[len(before) : len(upto)], END]
            done = len(upto)
        return "".join([*parts, text[done:]])

    def rendered(self, messages: list[Any], tools: Any, add_generation_prompt: bool = False) -> str:
        """Render the template, with BEGIN and END around its generation blocks. Raise RecordFault."""
        template = compiled(self._template(tools))
        try:
            return str(
                template.render(
                    self._variables,
                    messages=messages,
                    tools=tools,
                    documents=None,
                    add_generation_prompt=add_generation_prompt,
                )
            )
        except MemoryError:
            raise
        except Exception as error:  # templates can raise any exception
            text = printable(" ".join(str(error).split()))[:200]
            raise RecordFault(TEMPLATE, f"chat template error: {text or type(error).__name__}") from None


def _marked(text: str, replaces: bool) -> MarkedText:
    """Remove the marks from a text and return their offsets."""
    parts, trained, cuts = bytearray(), [], []
    begin = at = 0
    for mark in _MARKS.finditer(text):
        parts += encoded(text[at : mark.start()], replaces)
        at = mark.end()
        if mark[0] == BEGIN:
            begin = len(parts)
        elif mark[0] == CUT:
            cuts.append(len(parts))
        elif begin < len(parts):
            trained.append((begin, len(parts)))
            begin = len(parts)
    parts += encoded(text[at:], replaces)
    return MarkedText(bytes(parts), trained, cuts, of_chat=True, replaced=surrogate_count(text))


def _clock(chat_date: str) -> Callable[[str], str]:
    def strftime_now(form: str) -> str:
        if not chat_date:
            raise ValueError("the template writes the current date (pass --chat-date YYYY-MM-DD)")
        return datetime.fromisoformat(chat_date).strftime(form)

    return strftime_now


def writes_date(template: str) -> bool:
    """Whether a valid template uses the current date."""
    from jinja2 import meta

    environment = compiled(template).environment
    return "strftime_now" in meta.find_undeclared_variables(environment.parse(template))


@lru_cache(maxsize=4)
def compiled(template: str) -> Any:
    """Compile a template. Raise BadArgument if it is invalid or Jinja2 is not installed."""
    try:
        import jinja2
    except ImportError:
        raise BadArgument(not_installed("chat template", "jinja2", "chat")) from None
    try:
        return _environment().from_string(template)
    except (jinja2.TemplateError, RecursionError, SyntaxError, ValueError) as error:
        text = printable(" ".join(str(error).split()))[:200]
        raise BadArgument(f"chat template: does not compile ({text})") from None


def _environment() -> Any:
    """Return Jinja's sandbox with the additions of `transformers`.

    These are `raise_exception`, `break` and `continue`, a `tojson` that does not escape characters, and
    `{% generation %}`, which puts BEGIN and END around its content.
    """
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

        def _marked(self, caller: Callable[[], str]) -> str:
            return f"{BEGIN}{caller()}{END}"

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    def raise_exception(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    return environment
