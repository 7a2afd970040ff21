"""Generated pages of the site: one per command, from its parser, and one per package, from its docstrings.

Packages are parsed, not imported: mkdocstrings resolves their names. Parsers are imported without numpy or the core.
"""

from __future__ import annotations

import argparse
import ast
import html
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tokenmill.__main__ import COMMANDS  # noqa: E402
from tokenmill.cli.parser import Parser  # noqa: E402

FOLDER = "reference/"
WIDTH = 76  # characters of a line of code on a page
PACKAGES = {
    "bpe": "tokenizers: trained, encoded with, decoded with",
    "convert": "from text and a tokenizer to a dataset",
    "flat_tokens": "the dataset: opened, read, checked, loaded",
}
# Modules that are imported by their own names.
ADAPTERS = (
    "flat_tokens.torch",
    "flat_tokens.jax",
    "flat_tokens.grain",
    "flat_tokens.views",
    "bpe.compat.tiktoken",
    "bpe.compat.huggingface",
)


def pages() -> dict[str, str]:
    """The text of each page by its path in the site."""
    made = {f"{FOLDER}commands/index.md": commands_page(), f"{FOLDER}python/index.md": names_page()}
    for command in COMMANDS:
        made[f"{FOLDER}commands/{command}.md"] = command_page(command)
    for package in PACKAGES:
        made[f"{FOLDER}python/{package}.md"] = package_page(package)
    made[f"{FOLDER}python/adapters.md"] = adapters_page()
    return made


# -- commands


def parsers(command: str) -> Iterator[Parser]:
    """The parsers of a command: `info` and `report` have one for tokenizers and one for datasets."""
    for module in COMMANDS[command][0]:
        build = import_module(module).build_parser
        several = build("tokenmill").commands()
        yield several[command] if several else build(f"tokenmill {command}")


def commands_page() -> str:
    rows = [f"| [`{name}`]({name}.md) | {prose(about)} |" for name, (_, about) in COMMANDS.items()]
    return "\n".join(["# Commands", "", "| command | description |", "|---|---|", *rows, ""])


def command_page(command: str) -> str:
    """The text of `tokenmill COMMAND --help`, with an entry per option."""
    found = list(parsers(command))
    lines = [f"# tokenmill {command}", ""]
    for parser, about in zip(found, ("tokenizer", "dataset"), strict=False):
        if len(found) > 1:
            lines += [f"## For a {about}", ""]
        lines += parser_section(parser, "###" if len(found) > 1 else "##")
    return "\n".join(lines)


def parser_section(parser: Parser, heading: str) -> list[str]:
    formatter = argparse.RawDescriptionHelpFormatter(parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    usage = formatter.format_help().strip()
    lines = [prose(parser.description or ""), "", "```text", usage, "```", ""]
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if not actions:
            continue
        lines += [f"{heading} {(group.title or '').capitalize()}", ""]
        for action in actions:
            lines += [f"`{formatter._format_action_invocation(action)}`", ""]
            lines += [f":   {prose(formatter._expand_help(action) if action.help else '')}", ""]
    if parser.epilog:
        lines += ["```text", (parser.epilog % {"prog": parser.prog}).strip("\n"), "```", ""]
    return lines


def prose(text: str) -> str:
    """Plain text as Markdown; text between backticks stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    plain = [re.sub(r"([*_\[\]{}|\\])", r"\\\1", html.escape(part, quote=False)) for part in parts[::2]]
    return "".join(part for pair in zip(plain, [*parts[1::2], ""], strict=True) for part in pair)


# -- packages


def public_names(package: str) -> dict[str, str]:
    """The names of `__all__`, and `open`, and the modules that they come from, by the package's text alone."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    listed = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return {name: homes[name] for name in (*ast.literal_eval(listed), "open") if name in homes}


def sorted_names(package: str) -> list[tuple[str, list[str]]]:
    """The names under headings: what is called, and the errors."""
    names = public_names(package)
    errors = [name for name, home in names.items() if home.endswith(".errors")]
    functions = [name for name in names if name.islower()]
    classes = [name for name in names if name not in errors and name not in functions]
    return [("Functions", functions), ("Classes and values", classes), ("Errors", errors)]


def package_page(package: str) -> str:
    lines = [
        f"# {package}",
        "",
        f"::: {package}",
        "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}",
        "",
    ]
    for title, names in sorted_names(package):
        lines += [f"## {title}", ""] if names else []
        for name in names:
            lines += [f"::: {package}.{name}", "    options: {heading_level: 3}", ""]
    return "\n".join(lines)


def names_page() -> str:
    """All names of `import tokenmill`."""
    lines = [
        "# tokenmill",
        "",
        "::: tokenmill",
        "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}",
        "",
    ]
    lines += ["`tokenmill.__version__` is the version, a str.", ""]
    for package, about in PACKAGES.items():
        lines += [f"## From {package}", "", f"[{package}]({package}.md): {about}.", ""]
        for title, names in sorted_names(package):
            if names:
                links = [f"[`{name}`][{package}.{name}]" for name in names]
                lines += [f"- {title}: {', '.join(links)}"]
        lines.append("")
    lines += [
        "Modules with names of their own, for frameworks and for code that was written for other tools: "
        "[adapters](adapters.md)."
    ]
    return "\n".join([*lines, ""])


def adapters_page() -> str:
    lines = [
        "# Adapters",
        "",
        "Modules that are imported by their own names; the framework is imported with them.",
        "",
    ]
    for module in ADAPTERS:
        lines += [f"::: {module}", "    options: {show_root_full_path: true}", ""]
    return "\n".join(lines)
