"""tokenmill completion SHELL: what the shell reads to complete commands, options, choices and files (by shtab)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from tokenmill.cli.parser import Parser
from tokenmill.cli.standard_streams import complain
from tokenmill.cli.words import path_word
from tokenmill.errors import BadArgument

SHELLS: Final = ("bash", "zsh", "fish")
_WHERE: Final = (
    "  bash: tokenmill completion bash > ~/.local/share/bash-completion/completions/tokenmill\n"
    "  zsh:  tokenmill completion zsh > a folder of $fpath/_tokenmill\n"
    "  fish: tokenmill completion fish > ~/.config/fish/completions/tokenmill.fish"
)


def build_parser(prog: str = "tokenmill completion") -> Parser:
    """The parser. prog: how the program was called."""
    parser = Parser(
        prog=prog, description="Print what a shell reads to complete tokenmill's words.", epilog=_WHERE
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "tokenmill completion") -> int:
    """Print the script; the exit code."""
    try:
        shell = build_parser(prog).parse_args(arguments).shell
        import shtab
    except BadArgument as error:
        complain(str(error))
        return 2
    except ImportError:
        complain("shtab, which writes completions, is not installed; pip install 'tokenmill[completion]'")
        return 2
    print(shtab.complete(whole_parser(), shell))
    return 0


def whole_parser() -> argparse.ArgumentParser:
    """One parser of all commands, as shtab wants it; of `info` and `report` the options of both are in it."""
    import shtab

    from tokenmill.__main__ import COMMANDS

    whole = argparse.ArgumentParser(prog="tokenmill")
    commands = whole.add_subparsers()
    for name, (modules, _) in COMMANDS.items():
        parents = []
        for module in modules:
            built: Parser = import_module(module).build_parser()
            parents.append(built.commands().get(name, built))
        parser = commands.add_parser(
            name, help=parents[0].description, conflict_handler="resolve", add_help=False
        )
        for action in [action for parent in parents for action in parent._actions]:
            is_file = not action.option_strings or action.type in (None, path_word)
            if is_file and action.choices is None and action.nargs != 0:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            parser._add_action(action)
    return whole


if __name__ == "__main__":
    raise SystemExit(main())
