"""python -m convert.retokenize owt.zarr --tokenizer other.json --output other.zarr

stdout: the new splits. stderr: one line if something is wrong. Exit codes: docs/reference/guarantees.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from convert.errors import printable
from tokenmill.cli.failures import run_command
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_debug, add_engine, add_layout, add_storage_option
from tokenmill.cli.standard_streams import flush_and_leave, print_result
from tokenmill.cli.words import path_word
from tokenmill.stores import shown_url


def main(arguments: Sequence[str] | None = None, prog: str = "python -m convert.retokenize") -> int:
    """Retokenize and return the exit code. prog: the name of the program in messages."""

    def run() -> int:
        parsed = build_parser(prog).parse_args(arguments)
        from convert.retokenize.run import retokenize  # slow, and --help does not need it

        written = retokenize(parsed)
        lines = [f"{printable(str(parsed.output))}: verified, from {printable(shown_url(parsed.dataset))}"]
        for split, (record, _, skipped) in written.items():
            empty = f", {skipped:,} empty documents skipped" if skipped else ""
            lines.append(f"{split}: {record.token_count:,} tokens in {record.seq_count:,} documents{empty}")
        print_result(lines)
        return 0

    return run_command(run, arguments, "Lower --workers.")


def build_parser(prog: str = "python -m convert.retokenize") -> Parser:
    """Return the parser. prog: the name of the program in messages."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s DATASET --tokenizer PATH --output PATH [options]",
        description="Encode the documents of a dataset with another tokenizer. Splits and order stay the same.\n"
        "Nothing is written if the text of a document does not encode to its old IDs again.",
        examples=(
            "owt.zarr --tokenizer o200k.json --output owt-o200k.zarr",
            "owt.zarr --tokenizer llama.json --append-token '</s>' --output llama.zarr",
            "old.zarr --from-tokenizer gpt2.json --tokenizer new.json --output new.zarr",
        ),
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="dataset folder or URL")
    new = "new tokenizer: tokenizer.json, its URL, a folder, or org/model[@revision] on the Hugging Face Hub"
    add("--tokenizer", required=True, metavar="PATH", help=new)
    add("-o", "--output", required=True, type=path_word, metavar="PATH", help="dataset folder to write")
    add("--from-tokenizer", metavar="PATH", help="old tokenizer (default: the dataset's own)")
    for name, place in (("append", "after"), ("prepend", "before")):
        token = f"token to add {place} each document, by text or ID, or none"
        add(f"--{name}-token", metavar="TOKEN", help=f"{token} (default: as in DATASET, by text)")
    add_engine(add, has_scratch=False)
    add_layout(add)
    add("--overwrite", action="store_true", help="replace an existing dataset")
    add_storage_option(add)
    add_debug(add)
    return parser


if __name__ == "__main__":
    flush_and_leave(main())
