"""The `compare` command: a page in which one types text and sees it cut by two tokenizers."""

from __future__ import annotations

import sys
from argparse import Namespace
from copy import copy
from pathlib import Path

from bpe.cli.commands import load_tokenizer, open_output, tokenizer_files
from bpe.comparison.compare_page import SAMPLE, compare_page
from bpe.errors import BadArgument, printable
from bpe.output_conflicts import STANDARD, check_outputs_apart
from bpe.output_file import check_output
from tokenmill.inputs.sizes import bytes_text


def compare(options: Namespace) -> int:
    """Write the page, and say how large it is."""
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
    with open_output(options.output) as file:
        file.write(page)
    if options.output != STANDARD:
        print(f"{printable(options.output)}: {bytes_text(len(page))}, standalone", file=sys.stderr)
    return 0


def _options_of_each(options: Namespace) -> list[Namespace]:
    """Those of the first and of the second tokenizer: --pattern is given once for both, or once for each."""
    patterns = options.pattern or [None]
    if len(patterns) > 2:
        raise BadArgument(
            f"--pattern: must be passed once for both tokenizers, or once for each (got {len(patterns)})"
        )
    both = []
    for tokenizer, pattern in zip((options.first, options.second), (patterns[0], patterns[-1]), strict=True):
        each = copy(options)
        each.tokenizer, each.pattern = tokenizer, pattern
        if len(patterns) == 1 and _says_all(Path(tokenizer)):
            each.pattern = each.special_token = None
        both.append(each)
    return both


def _says_all(path: Path) -> bool:
    """Whether the file says its pattern and its special tokens."""
    return path.suffix != ".tiktoken" and path.name != "vocab.json" and not (path / "vocab.json").is_file()
