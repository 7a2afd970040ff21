"""tokenmill completion SHELL: a script by shtab that completes commands, options, choices and files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from tokenmill.cli.failures import run_command
from tokenmill.cli.parser import Parser
from tokenmill.cli.words import path_word
from tokenmill.errors import BadArgument, not_installed


def build_parser(prog: str = "tokenmill completion") -> Parser:
    """Return the parser. prog: the name of the program in messages."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s SHELL",
        description="Print a completion script for your shell.",
        examples=(
            "bash > ~/.local/share/bash-completion/completions/tokenmill",
            "zsh > ~/.zsh/completions/_tokenmill",
            "fish > ~/.config/fish/completions/tokenmill.fish",
        ),
        epilog="With zsh, the folder must be in $fpath.",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "tokenmill completion") -> int:
    """Print the script and return the exit code."""
    return run_command(lambda: _print_script(build_parser(prog).parse_args(arguments).shell), False)


def _print_script(shell: str) -> int:
    """Print the script for one parser of all commands. `info` and `report` get the options of both their parsers."""
    from tokenmill.__main__ import COMMANDS

    try:
        import shtab
    except ImportError:
        raise BadArgument(not_installed("tokenmill completion", "shtab", "completion")) from None
    whole = argparse.ArgumentParser(prog="tokenmill")
    commands = whole.add_subparsers()
    for name, (modules, about) in COMMANDS.items():
        parser = commands.add_parser(name, help=about, conflict_handler="resolve", add_help=False)
        for module in modules:
            build: Callable[[], Parser] = import_module(module).build_parser
            for action in (built := build()).commands().get(name, built)._actions:
                is_file = not action.option_strings or action.type in (None, path_word)
                if is_file and action.choices is None and action.nargs != 0:
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
                parser._add_action(action)
    print(shtab.complete(whole, shell))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
