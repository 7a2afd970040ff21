"""Jinja templates of strangers: in the sandbox, with bounds on their steps and on every text that they make.

A step is an item of a loop or a call, so a template takes as many on every machine. A text is what a filter, a call, an
operator, a block or the template gives; it is made before it is found too long, so one may be twice the bound, or what
one call makes of a number.

Transformers' names are there: `raise_exception`, `tojson` that leaves characters as they are, `break` and `continue`,
and `{% generation %}`, whose content stands between BEGIN and END afterwards. There is no clock (`strftime_now`): the
same records give the same text on every day, and templates that can do without take a date of their own.

Importing this module imports jinja2.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_STEPS = 200_000
MOST_CHARACTERS = 16 << 20
BEGIN, END = "\ufdd0", "\ufdd1"  # noncharacters, which no text is meant to hold


class Bound(ValueError):  # noqa: N818 - named for what was met
    """A template that goes on for too long, or makes too long a text."""


class Generation(Extension):
    """{% generation %} ... {% endgeneration %}: what is to be learned."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

    def parse(self, parser: Parser) -> nodes.Node:
        """See jinja2."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        return f"{BEGIN}{caller()}{END}"


class _Generator(CodeGenerator):
    """`a ~ b` is joined with a bound."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - as jinja2 calls it
        self.write("environment.concat((")
        for part in node.nodes:
            self.write("str(")
            self.visit(part, frame)
            self.write("), ")
        self.write("))")


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of templates."""

    code_generator_class = _Generator
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
        )
        self.concat = _joined  # type: ignore[method-assign]
        self.filters = {name: _bounding(made) for name, made in self.filters.items()}
        self.filters |= {"tojson": _tojson, "_counted": _counted}
        self.globals["raise_exception"] = _raise

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """See jinja2."""
        if operator == "*":
            for value, times in ((left, right), (right, left)):
                if isinstance(value, (str, list, tuple)) and isinstance(times, int):
                    _require(len(value) * times <= MOST_CHARACTERS)
        if operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            _require(bits <= MOST_CHARACTERS)
        return _checked(super().call_binop(context, operator, left, right))

    def _generate(self, source: nodes.Template, *more: Any, **named: Any) -> str:
        for loop in source.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "_counted", [], [], None, None)
        return super()._generate(source, *more, **named)

    def call(self, context: Any, function: Any, *arguments: Any, **named: Any) -> Any:
        """See jinja2."""
        STEPS.take()
        if isinstance(function, LoopContext):  # of a loop within itself
            arguments = (_counted(arguments[0]), *arguments[1:]) if arguments else ()
        return _checked(super().call(context, function, *arguments, **named))


class Steps(threading.local):
    """What is left to the thread's template; `begin` gives it MOST_STEPS, `take` one less and Bound beyond."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self) -> None:
        """A template begins."""
        self._left = MOST_STEPS

    def take(self) -> None:
        """It takes a step."""
        self._left -= 1
        if self._left < 0:
            raise Bound(f"it takes more than {MOST_STEPS:,} steps")


STEPS = Steps()


def _counted(values: Any) -> Iterator[Any]:
    for value in values:
        STEPS.take()
        yield value


def _require(is_within: bool) -> None:
    if not is_within:
        raise Bound(f"it makes a text of more than {MOST_CHARACTERS:,} characters")


def _checked(value: Any) -> Any:
    _require(not isinstance(value, (str, list, tuple)) or len(value) <= MOST_CHARACTERS)
    return value


def _joined(parts: Iterable[str]) -> str:
    found, length = [], 0
    for part in parts:
        found.append(part)
        length += len(part)
        _require(length <= MOST_CHARACTERS)
    return "".join(found)


def _bounding(made: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(made)  # with its marks, such as that it takes the environment
    def bounded(*arguments: Any, **named: Any) -> Any:
        return _checked(made(*arguments, **named))

    return bounded


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
