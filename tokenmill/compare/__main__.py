"""tokenmill compare: write a page that encodes text with two tokenizers, side by side."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from copy import copy
from pathlib import Path

from bpe.cli.shared_arguments import TOKENIZER_HELP, add_rank_file_options
from tokenmill.cli.failures import STDOUT, run_command
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_debug
from tokenmill.errors import BadArgument, naming, printable
from tokenmill.inputs.sizes import bytes_text


def build_parser(prog: str = "tokenmill compare") -> Parser:
    """Return the parser. prog: the name of the program in messages."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s FIRST SECOND --output FILE [options]",
        description="Write a standalone HTML page that encodes any text with two tokenizers, side by side. It shows\n"
        "tokens, IDs, and bytes per token.",
        examples=(
            "mine.json theirs/tokenizer.json --output compare.html",
            "mine.json cl100k.tiktoken --pattern cl100k --output compare.html --text 'Hello, world'",
            "cl100k.tiktoken o200k.tiktoken --pattern cl100k --pattern o200k --output compare.html",
        ),
    )
    add = parser.add_argument
    add("first", metavar="FIRST", help=f"left: {TOKENIZER_HELP}")
    add("second", metavar="SECOND", help="right: the same kinds of tokenizer")
    add("-o", "--output", required=True, metavar="FILE", help="page to write, or - for stdout")
    add("--text", help="text that the page shows first (default: samples of several languages)")
    add_rank_file_options(parser, several=True)
    add_debug(add)
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "tokenmill compare") -> int:
    """Write the page and return the exit code."""
    return run_command(lambda: _compare(build_parser(prog).parse_args(arguments)), arguments)


def _compare(options: Namespace) -> int:
    from bpe.cli.commands import load_tokenizer, open_output, tokenizer_files
    from bpe.output_conflicts import STANDARD, check_outputs_apart
    from bpe.output_file import check_output
    from tokenmill.compare.compare_page import SAMPLE, compare_page

    if options.output != STANDARD:
        check_output(options.output)
    both = _options_of_each(options)
    inputs = [file for each in both for file in tokenizer_files(each)]
    check_outputs_apart([("--output", options.output)], inputs)
    text = SAMPLE if options.text is None else options.text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadArgument("--text: not valid UTF-8") from None
    first, second = map(load_tokenizer, both)
    names = (printable(options.first), printable(options.second))
    page = compare_page(names, (first, second), text).encode()
    with naming(STDOUT), open_output(options.output) as file:
        file.write(page)
    if options.output != STANDARD:
        print(f"{printable(options.output)}: {bytes_text(len(page))}, standalone", file=sys.stderr)
    return 0


def _options_of_each(options: Namespace) -> list[Namespace]:
    """Return the options of each tokenizer. --pattern is passed once for both, or once for each."""
    patterns = options.pattern or [None]
    if len(patterns) > 2:
        raise BadArgument(
            f"--pattern: must be passed once for both tokenizers, or once for each (got {len(patterns)})"
        )
    both = []
    for tokenizer, pattern in zip((options.first, options.second), (patterns[0], patterns[-1]), strict=True):
        each = copy(options)
        each.tokenizer, each.pattern = tokenizer, pattern
        if len(patterns) == 1 and _has_pattern(Path(tokenizer)):
            each.pattern = each.special_token = None
        both.append(each)
    return both


def _has_pattern(path: Path) -> bool:
    """Return whether the file contains its pattern and its special tokens."""
    return path.suffix != ".tiktoken" and path.name != "vocab.json" and not (path / "vocab.json").is_file()


if __name__ == "__main__":
    raise SystemExit(main())
