"""The Jinja environment of chat templates, with the additions of `transformers`: `raise_exception`, `break` and
`continue`, a `tojson` that does not escape characters, and `{% generation %}`.

Rendering puts BEGIN and END around the content of a `{% generation %}` block. Templates run in Jinja's sandbox.
Importing this module imports jinja2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

BEGIN, END = "\ufdd0", "\ufdd1"  # noncharacters, which no text is meant to hold


class Generation(Extension):
    """{% generation %} ... {% endgeneration %}: the text to train on."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

    def parse(self, parser: Parser) -> nodes.Node:
        """See jinja2."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        return f"{BEGIN}{caller()}{END}"


def make_environment() -> jinja2.Environment:
    """The environment in which chat templates are compiled."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
