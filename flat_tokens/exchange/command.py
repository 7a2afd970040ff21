"""The commands export and import: their arguments and their output."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from flat_tokens import opening
from flat_tokens.arguments import tokenizer_file
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.exchange.formats import FORMATS, NO_TOKEN
from flat_tokens.format import SPLITS
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_layout
from tokenmill.cli.standard_streams import complain
from tokenmill.cli.words import path_word, whole
from tokenmill.inputs.sizes import counted
from tokenmill.stores import is_url

SEPARATOR_PLACES = {"last": "ends", "first": "begins", "dropped": "was dropped between"}
READ = [name for name, described in FORMATS.items() if described.read_dtypes is not None]
WRITTEN = [name for name, described in FORMATS.items() if described.write_dtypes is not None]


def add_export(subparsers: Any) -> Parser:
    """Add the parser of export, without DATASET."""
    parser: Parser = subparsers.add_parser(
        "export",
        help="export a dataset to the format of another tool",
        usage="%(prog)s DATASET --to FORMAT --output FOLDER [options]",
        description="Export a dataset to a folder of files in the format of another tool, one set per split.\n"
        "export.json in the folder describes the files.",
        examples=(
            "owt.zarr --to megatron --output owt-megatron",
            "owt.zarr --to nanogpt --append-token 50256 --output data/owt",
            "owt.zarr --to npy --split validation --output owt-npy",
            "owt.zarr --to jsonl --text --output owt-jsonl",
        ),
        epilog=_table(WRITTEN),
    )
    add = parser.add_argument
    add("--to", required=True, choices=WRITTEN, metavar="FORMAT", help="output format; see the list below")
    add("-o", "--output", required=True, type=path_word, metavar="FOLDER", help="folder to write")
    add("--split", choices=(*SPLITS, "both"), default="both", help="splits to export (default: both)")
    about = "token to add after each document, or none; nanogpt needs it if documents have no end token"
    add("--append-token", type=_token, metavar="ID", help=about)
    about = "type of the IDs: uint16, uint32, or int32 (default: uint16 in nanogpt, else the narrowest)"
    add("--dtype", metavar="TYPE", help=about)
    add("--text", action="store_true", help="also write the text of each document (jsonl)")
    add_tokenizer(add, "tokenizer.json to decode with (default: the dataset's own)")
    add("--overwrite", action="store_true", help="replace an earlier export")
    parser.set_defaults(run=export)
    return parser


def add_import(subparsers: Any) -> Parser:
    """Add the parser of import."""
    parser: Parser = subparsers.add_parser(
        "import",
        help="import the token files of another tool",
        usage="%(prog)s INPUT... --from FORMAT --output DATASET [options]",
        description="Import the token files of another tool into a dataset and verify it.",
        examples=(
            "data/owt/train.bin --from nanogpt --separator-token 50256 --output owt.zarr",
            "owt_text_document --from megatron --output owt.zarr",
            "mds/train --from mds --validation mds/val --output owt.zarr",
            "tokenized/ --from datatrove --tokenizer tokenizer.json --output owt.zarr",
        ),
        epilog=_table(READ),
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="files, file prefixes, or folders of the train split")
    about = "input format; see the list below"
    add("--from", required=True, choices=READ, metavar="FORMAT", dest="source", help=about)
    add("-o", "--output", required=True, type=path_word, metavar="DATASET", help="dataset to write")
    add("--validation", nargs="+", default=[], metavar="INPUT", help="inputs of the validation split")
    about = "token that separates documents, or none for one document per input (default: as the files say)"
    add("--separator-token", type=_token, metavar="ID", help=about)
    about = "position of that token in its document; dropped leaves it out (default: last)"
    add("--separator-place", choices=list(SEPARATOR_PLACES), default="last", help=about)
    about = "type of the IDs in files that do not record it (default: uint16 in nanogpt)"
    add("--dtype", metavar="TYPE", help=about)
    add("--column", metavar="NAME", help="column of the IDs in mds, if there are several")
    add_tokenizer(add, "tokenizer.json that made the IDs; checks them and is stored with the dataset")
    add("--vocabulary", type=whole(10**10 - 1), metavar="N", help="reject IDs of N and above")
    add_layout(add)
    add("--overwrite", action="store_true", help="replace an existing dataset")
    parser.set_defaults(run=import_)
    return parser


def add_tokenizer(add: Callable[..., object], about: str) -> None:
    """Add --tokenizer, a file."""
    add("--tokenizer", type=path_word, metavar="PATH", help=about)


def _table(names: list[str]) -> str:
    return "\n".join(["formats:", *(f"  {name:<10} {FORMATS[name].about}" for name in names)])


def _token(text: str) -> int:
    if text == "none":
        return NO_TOKEN
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise argparse.ArgumentTypeError(f"must be a token ID or none (got {printable(text, 40)!r})")
    return int(text)


def export(arguments: argparse.Namespace) -> int:
    """Write the files and print a line per split."""
    from flat_tokens.exchange.transfer import export_dataset
    from tokenmill.stores.apart import check_apart

    check_apart(arguments.output, [arguments.dataset, arguments.tokenizer])
    dataset = opening.open(arguments.dataset)
    dataset = dataset.of_sources(*arguments.source) if arguments.source else dataset
    exported, notes = export_dataset(dataset, arguments)
    for note in notes:
        complain(note, "note")
    for split, facts in exported["splits"].items():
        files = ", ".join(f"{arguments.output}/{name}" for name in facts["files"])
        print(
            f"{split}: {facts['tokens']:,} tokens in {counted(facts['documents'], 'document')}: {printable(files)}"
        )
    end = "no token" if exported["append_token"] is None else f"token {exported['append_token']}"
    print(f"IDs: {exported['dtype'] or 'text'}; {end} ends each document")
    return 0


def import_(arguments: argparse.Namespace) -> int:
    """Write the dataset and print a line per split."""
    from flat_tokens.exchange.transfer import import_dataset
    from tokenmill.stores.apart import check_apart

    inputs = [*arguments.inputs, *arguments.validation]
    for given in inputs:
        if is_url(given):
            raise ArgumentError(
                f"INPUT: must be a local path (got {printable(given)}). Download the files first."
            )
    check_apart(arguments.output, [*inputs, arguments.tokenizer])
    tokenizer_file(arguments.tokenizer)
    written, notes = import_dataset(arguments)
    for note in notes:
        complain(note, "note")
    print(f"{printable(str(arguments.output))}: verified")
    for split, found in written.items():
        empty = f", {found.empty_documents:,} empty documents skipped" if found.empty_documents else ""
        print(
            f"{split}: {found.record.token_count:,} tokens in {counted(found.record.seq_count, 'document')}{empty}"
        )
    if arguments.separator_token not in (None, NO_TOKEN):
        print(f"token {arguments.separator_token} {SEPARATOR_PLACES[arguments.separator_place]} documents")
    return 0
