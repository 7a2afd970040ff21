"""The parser of all commands: options and positionals in any order, errors of one line that say the nearest word.

An error is raised as BadArgument, which each `main` reports like all others; argparse would print the usage.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from tokenmill.cli.hints import is_of_other_tools, meant, nearest, unknown_command
from tokenmill.errors import BadArgument, printable, shown

# Marks a word after "--", which argparse would take for an option if it looks like one.
_BEHIND = "\0behind\0"
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212"  # hyphens, and their replacements in word processors
_LONGEST = 400  # characters of a message
EXIT_CODES: Final = (
    "exit codes: 0 success, 2 usage, 3 bad data, 4 environment, 5 memory or worker, 6 refused, "
    "130 interrupted"
)


class Parser(argparse.ArgumentParser):
    """An argparse parser of one command, or of several with `add_subparsers`.

    examples: command lines; the name of the program is put before a line that does not have it. The help ends with
    the examples, the epilog and the exit codes.
    """

    _is_mixing = False
    _words: Sequence[str] = ()

    def __init__(self, *, examples: Sequence[str] = (), epilog: str = "", **options: Any) -> None:
        lines = [line if "%(prog)s" in line else f"%(prog)s {line}" for line in examples]
        ends = ["\n  ".join(["examples:", *lines])] if lines else []
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog="\n\n".join([*ends, *filter(None, [epilog]), EXIT_CODES]),
            **options,
        )
        self._positionals.title = "arguments"

    def commands(self) -> dict[str, Parser]:
        """The parsers of its commands by name; none if it has none."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The values, and no words left over: an option that is not known is an error of the command it was given."""
        words = list(sys.argv[1:] if args is None else args)
        if self._is_mixing or self._subparsers is not None:
            return super().parse_known_args(words, namespace)
        end = words.index("--") if "--" in words else len(words)
        self._refuse_other_dashes(words[:end])
        self._is_mixing, self._words = True, words[:end]  # the next call calls this method again
        try:
            parsed, rest = self.parse_known_intermixed_args(
                [*words[:end], *(_BEHIND + word for word in words[end + 1 :])], namespace
            )
        finally:
            self._is_mixing = False
        if rest:
            self.error(self._unknown([word.removeprefix(_BEHIND) for word in rest]))
        return parsed, []

    def _unknown_options(self) -> list[str]:
        given = [word for word in self._words if re.match(r"--.|-[^-\d.]", word)]
        return [
            word
            for word in given
            if not self._get_option_tuples(word) and word.partition("=")[0] not in self._option_string_actions
        ]

    def _inputs(self) -> list[str]:
        """The names of the positional arguments in the help."""
        return [
            action.metavar if isinstance(action.metavar, str) else action.dest
            for action in self._get_positional_actions()
        ]

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """The options that a word may be short for: none, where another tool means something else by it."""
        if is_of_other_tools(option_string.partition("=")[0], self._option_string_actions, self._inputs()):
            return []
        return super()._get_option_tuples(option_string)

    def _refuse_other_dashes(self, words: Sequence[str]) -> None:
        """An option with a dash of a word processor, or with one of the two, is refused as such."""
        for word in words:
            bare = word.partition("=")[0].lstrip(_DASHES)
            if word[:1] not in _DASHES or word.startswith("--") or len(bare) < 2:
                continue
            if f"--{bare}" in self._option_string_actions:
                self.error(f"{word}: must begin with two hyphens. Write --{bare}.")

    def _unknown(self, words: Sequence[str]) -> str:
        if not words[0].startswith("-"):
            taken = " ".join(self._inputs())
            return (
                f"too many arguments: {' '.join(words)} (expected {f'at most {taken}' if taken else 'none'})"
            )
        if "\0" not in words[0] and Path(words[0]).exists():
            near = ". Write -- before a file name that begins with a hyphen."
        else:
            near = meant(words[0].partition("=")[0], self._option_string_actions, self._inputs())
        return f"unrecognized argument{'s' if len(words) > 1 else ''}: {' '.join(words)}{near}"

    def _with_dash(self, option: str) -> str:
        """The spelling that passes a word with a leading dash to an option; "" if none is needed."""
        names = self._option_string_actions[option].option_strings
        for name, value in zip(self._words, self._words[1:], strict=False):
            if name in names and value[:1] == "-" and value not in self._option_string_actions:
                return f". Write {option}={value}."
        return ""

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # argparse would make an empty list of it
            raise argparse.ArgumentError(action, "expected a value instead of --")
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        return super()._get_value(action, arg_string.removeprefix(_BEHIND))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            if isinstance(action, argparse._SubParsersAction):
                self.error(unknown_command(str(value), known))
            message = f"must be one of {', '.join(known)} (got {shown(value)}){nearest(str(value), known)}"
            raise argparse.ArgumentError(action, message)

    def error(self, message: str) -> NoReturn:
        """Raise BadArgument with one line: "argument --threads: must be ..." becomes "--threads: must be ..."."""
        if message.startswith("the following arguments are required") and (
            unknown := self._unknown_options()
        ):
            message = self._unknown(unknown)  # perhaps a misspelling of the missing one
        if found := re.fullmatch(r"argument (?:-\w/)?(--[\w-]+)\S*: expected (.*)", message):
            message = f"argument {found[1]}: expected {found[2]}{self._with_dash(found[1])}"
        message = re.sub(r"^argument (\S+): ", r"\1: ", message)
        message = message.replace("not allowed with argument ", "cannot be combined with ")
        message = re.sub(
            r"(--[\w-]+)/-\w\b|-\w/(--[\w-]+)", r"\1\2", printable(message)
        )  # --output/-o: one name is enough
        if len(message) > _LONGEST:
            message = message[: _LONGEST - 1] + "…"
        if not message.startswith("-") and not message.endswith((".", "?")):
            message += f". Run {self.prog} --help."
        raise BadArgument(message)
