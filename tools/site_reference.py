"""Generated pages of the site: one per command, from its argument parser, and one per package, from its docstrings."""

from __future__ import annotations

import argparse
import html
import re
from collections.abc import Iterator
from importlib import import_module

from tokenmill.__main__ import COMMANDS
from tokenmill.cli.parser import Parser

WIDTH = 76  # characters per line of code
PACKAGES = {
    "bpe": "train tokenizers, encode and decode",
    "convert": "convert a corpus to a dataset",
    "flat_tokens": "open, read, verify and load datasets",
}
ADAPTERS = (
    "flat_tokens.torch",
    "flat_tokens.jax",
    "flat_tokens.grain",
    "flat_tokens.views",
    "bpe.compat.tiktoken",
    "bpe.compat.huggingface",
)
NO_MEMBERS = "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}"


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its path in the site."""
    return {
        "reference/cli/index.md": commands_page(),
        **{f"reference/cli/{command}.md": command_page(command) for command in COMMANDS},
        "reference/python/index.md": names_page(),
        **{f"reference/python/{package}.md": package_page(package) for package in PACKAGES},
        "reference/python/adapters.md": adapters_page(),
    }


def parsers(command: str) -> Iterator[Parser]:
    """Yield the parsers of a command. `info` and `report` have one for tokenizers and one for datasets."""
    for module in COMMANDS[command][0]:
        build = import_module(module).build_parser
        commands = build("tokenmill").commands()
        yield commands[command] if commands else build(f"tokenmill {command}")


def commands_page() -> str:
    rows = [f"| [`{name}`]({name}.md) | {prose(about)} |" for name, (_, about) in COMMANDS.items()]
    return "\n".join(["# Commands", "", "| command | description |", "|---|---|", *rows, ""])


def command_page(command: str) -> str:
    """Return the help of a command, with one entry per option."""
    found = list(parsers(command))
    lines = [f"# tokenmill {command}", ""]
    for parser, kind in zip(found, ("Tokenizers", "Datasets"), strict=False):
        if len(found) > 1:
            lines += [f"## {kind}", ""]
        lines += parser_section(parser, "###" if len(found) > 1 else "##")
    return "\n".join(lines)


def parser_section(parser: Parser, heading: str) -> list[str]:
    formatter = argparse.RawDescriptionHelpFormatter(parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    usage = formatter.format_help().strip()
    lines = [prose(parser.description or ""), "", "```text", usage, "```", ""]
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if actions:
            lines += [f"{heading} {(group.title or '').capitalize()}", ""]
        for action in actions:
            lines += [f"`{formatter._format_action_invocation(action)}`", ""]
            lines += [f":   {prose(formatter._expand_help(action) if action.help else '')}", ""]
    if parser.epilog:
        lines += ["```text", (parser.epilog % {"prog": parser.prog}).strip("\n"), "```", ""]
    return lines


def prose(text: str) -> str:
    """Return plain text as Markdown. Code between backticks stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    parts[::2] = [re.sub(r"([*_\[\]{}|\\])", r"\\\1", html.escape(part, quote=False)) for part in parts[::2]]
    return "".join(parts)


def sorted_names(package: str) -> list[tuple[str, list[str]]]:
    """Return the public names of a package by heading."""
    module = import_module(package)
    names = [*module.__all__, *(["open"] if package == "flat_tokens" else [])]
    values = {name: getattr(module, name) for name in names}
    errors = [
        name for name, value in values.items() if isinstance(value, type) and issubclass(value, Exception)
    ]
    functions = [name for name in names if name.islower()]
    others = [name for name in names if name not in errors and name not in functions]
    return [("Functions", functions), ("Classes and values", others), ("Errors", errors)]


def package_page(package: str) -> str:
    lines = [f"# {package}", "", f"::: {package}", NO_MEMBERS, ""]
    for title, names in sorted_names(package):
        lines += [f"## {title}", ""] if names else []
        for name in names:
            lines += [f"::: {package}.{name}", "    options: {heading_level: 3}", ""]
    return "\n".join(lines)


def names_page() -> str:
    """Return the page with all names of `import tokenmill`."""
    lines = [
        "# tokenmill",
        "",
        "::: tokenmill",
        NO_MEMBERS,
        "",
        "`tokenmill.__version__` is the version.",
        "",
    ]
    for package, about in PACKAGES.items():
        lines += [f"## {package}", "", f"[{package}]({package}.md): {about}.", ""]
        for title, names in sorted_names(package):
            links = [f"[`{name}`][{package}.{name}]" for name in names]
            lines += [f"- {title}: {', '.join(links)}"] if names else []
        lines.append("")
    lines.append("[Adapters](adapters.md) are modules that you import by their own names.")
    return "\n".join([*lines, ""])


def adapters_page() -> str:
    lines = ["# Adapters", "", "Modules that you import by their own names. Each imports its framework.", ""]
    for module in ADAPTERS:
        lines += [f"::: {module}", "    options: {show_root_full_path: true}", ""]
    return "\n".join(lines)
