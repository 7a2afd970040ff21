"""tokenmill completion SHELL: a script by shtab that completes commands, options, choices and files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from tokenmill.cli.parser import Parser
from tokenmill.cli.standard_streams import complain
from tokenmill.cli.words import path_word
from tokenmill.errors import BadArgument, not_installed

SHELLS: Final = ("bash", "zsh", "fish")


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
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "tokenmill completion") -> int:
    """Print the script and return the exit code."""
    try:
        shell = build_parser(prog).parse_args(arguments).shell
        import shtab
    except BadArgument as error:
        complain(str(error))
        return 2
    except ImportError:
        complain(not_installed("tokenmill completion", "shtab", "completion"))
        return 2
    print(shtab.complete(whole_parser(), shell))
    return 0


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser of all commands for shtab. `info` and `report` get the options of both their parsers."""
    import shtab

    from tokenmill.__main__ import COMMANDS

    whole = argparse.ArgumentParser(prog="tokenmill")
    commands = whole.add_subparsers()
    for name, (modules, about) in COMMANDS.items():
        parents = []
        for module in modules:
            built: Parser = import_module(module).build_parser()
            parents.append(built.commands().get(name, built))
        parser = commands.add_parser(name, help=about, conflict_handler="resolve", add_help=False)
        for action in [action for parent in parents for action in parent._actions]:
            is_file = not action.option_strings or action.type in (None, path_word)
            if is_file and action.choices is None and action.nargs != 0:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            parser._add_action(action)
    return whole


if __name__ == "__main__":
    raise SystemExit(main())
