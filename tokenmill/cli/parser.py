"""The argument parser of all commands: options and positional arguments in any order, and errors on one line.

An error raises BadArgument, which every `main` reports like other errors. argparse alone would print the usage.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

from tokenmill.errors import BadArgument, printable, shown

_LITERAL = "\0--\0"  # marks a word after "--", so that argparse does not take it for an option
EXIT_CODES: Final = (
    "exit codes: 0 success, 2 usage, 3 bad data, 4 environment, 5 memory or worker, 6 refused, "
    "130 interrupted"
)


class Parser(argparse.ArgumentParser):
    """An argparse parser of one command, or of several with `add_subparsers`.

    examples: command lines for the help; the name of the program is added to lines without it.
    """

    _words: Sequence[str] | None = None  # the words before "--", while they are parsed

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
        """Return the parsers of its commands by name; {} if it has no commands."""
        choices = [each.choices for each in self._actions if isinstance(each, argparse._SubParsersAction)]
        return dict(*choices)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed arguments and []: an unknown option is an error of the command it was given to."""
        words = list(sys.argv[1:] if args is None else args)
        if self._words is not None or self._subparsers is not None:
            return super().parse_known_args(words, namespace)
        end = words.index("--") if "--" in words else len(words)
        for word in words[:end]:  # argparse would read -output as -o utput
            name = word.partition("=")[0]
            if re.fullmatch(r"-\w[\w-]+", name) and f"-{name}" in self._option_string_actions:
                self.error(f"{word}: must begin with two hyphens. Write -{name}.")
        self._words = words[:end]  # parse_known_intermixed_args calls this method again
        literal = [_LITERAL + word for word in words[end + 1 :]]
        try:
            parsed, rest = self.parse_known_intermixed_args([*self._words, *literal], namespace)
            if rest:
                self.error(self._unknown([word.removeprefix(_LITERAL) for word in rest]))
        finally:
            self._words = None
        return parsed, []

    def _unknown(self, words: Sequence[str]) -> str:
        """Return the message for words that the command does not take."""
        if not words[0].startswith("-"):
            names = " ".join(str(action.metavar or action.dest) for action in self._get_positional_actions())
            expected = f"at most {names}" if names else "none"
            return f"too many arguments: {' '.join(words)} (expected {expected})"
        if Path(words[0]).exists():
            advice = ". Write -- before a file name that begins with a hyphen."
        else:
            advice = nearest(words[0].partition("=")[0], self._option_string_actions)
        return f"unrecognized argument{'s' if len(words) > 1 else ''}: {' '.join(words)}{advice}"

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # argparse removes it and fails
            raise argparse.ArgumentError(action, "expected a value instead of --")
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        return super()._get_value(action, arg_string.removeprefix(_LITERAL))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            message = f"must be one of {', '.join(known)} (got {shown(value)}){nearest(str(value), known)}"
            raise argparse.ArgumentError(action, message)

    def error(self, message: str) -> NoReturn:
        """Raise BadArgument with one line: "argument --threads/-t: must be" becomes "--threads: must be"."""
        if message.startswith("the following arguments are required"):
            options = (word for word in self._words or () if word.startswith("--"))
            unknown = [word for word in options if not self._get_option_tuples(word)]
            message = self._unknown(unknown) if unknown else message  # perhaps a missing one, misspelled
        message = printable(message).removeprefix("argument ")
        message = re.sub(r"(?<=[ ,])(?:-\w/)?(--[\w-]+)(?:/-[\w-]+)*", r"\1", f" {message}")[1:]
        message = message.replace("not allowed with argument ", "cannot be combined with ")
        if found := re.match(r"(--[\w-]+): expected .*argument$", message):
            message += f". If the value begins with a hyphen, write {found[1]}=VALUE."
        if not message.startswith("-") and not message.endswith((".", "?")):
            message += f". Run {self.prog} --help."
        raise BadArgument(message)


def nearest(word: str, known: Iterable[str]) -> str:
    """("--ouput", ["--output"]) -> ". Did you mean --output?"; "" if no known word is close."""
    by_name = {name.lstrip("-"): name for name in known}  # leading hyphens would make all options similar
    found = get_close_matches(word.lstrip("-").replace("_", "-"), by_name, 1, 0.6)
    return f". Did you mean {by_name[found[0]]}?" if found else ""
