"""Options that several commands of `python -m bpe` share."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final

from tokenmill.cli.shared_arguments import INPUT_HELP, add_input_format, add_storage_option

TOKENIZER_HELP: Final = (
    "tokenizer.json, vocab.json, *.tiktoken, *.model, a folder, or org/model[@revision] on the Hugging Face "
    "Hub"
)


def add_options(group: argparse._ActionsContainer, listed: str, **settings: dict[str, Any]) -> None:
    """Add options, listed as in --help: `-o --output FILE  file to write`. Those without help are hidden.

    settings: more arguments of add_argument by option. Lines with an indentation of four more spaces continue others.
    """
    for line in re.sub(r"\n {12}", " ", listed).strip().splitlines():
        words, _, about = line.strip().partition("  ")
        flags = [word for word in words.split(" ") if word.startswith("-")]
        more = settings.get(flags[-1].lstrip("-").replace("-", "_"), {})
        if words.split(" ")[-1] not in flags:
            more = {"metavar": words.split(" ")[-1], **more}
        group.add_argument(*flags, help=about or argparse.SUPPRESS, **more)


def add_inputs(command: argparse.ArgumentParser, metavar: str = "INPUT") -> None:
    command.add_argument("inputs", nargs="*", metavar=metavar, help=INPUT_HELP)


def add_counts(command: argparse.ArgumentParser, about: str) -> None:
    add_options(command, f"--counts FILE  {about}", counts={"nargs": "+", "action": "extend", "default": []})


def add_records(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add and return the group of options for reading inputs."""
    group = command.add_argument_group("input")
    add_input_format(group.add_argument)
    add_storage_option(group.add_argument)
    add_options(
        group,
        """
        --on-error  handling of bad records: stop, or skip and count them (default: fail)
        --invalid  handling of invalid UTF-8: a bad record, or U+FFFD for each invalid sequence (default: error)
        """,
        on_error={"choices": ["fail", "skip"], "default": "fail"},
        invalid={"choices": ["error", "replace"], "default": "error"},
    )
    return group


def add_tokenizer(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tokenizer", required=True, metavar="PATH", help=TOKENIZER_HELP)


def add_rank_file_options(command: argparse.ArgumentParser, several: bool = False) -> None:
    """Add --pattern and --special-token for files that lack them. several: --pattern may be repeated, one per file."""
    once = "; give it once, or once per tokenizer" if several else ""
    add_options(
        command.add_argument_group("tokenizer"),
        f"""
        --pattern  pre-tokenization pattern of *.tiktoken or vocab.json, by name or as a regular expression{once}
        --special-token TOKEN[=ID]  special token of *.tiktoken or vocab.json; repeatable (default ID: the next free
            one)
        """,
        pattern={"action": "append" if several else "store"},
        special_token={"action": "append"},
    )


def add_output(command: argparse.ArgumentParser, what: str) -> None:
    """Add --output for a command that writes to stdout by default."""
    command.add_argument("-o", "--output", default="-", metavar="FILE", help=f"{what} (default: -, stdout)")


def add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
