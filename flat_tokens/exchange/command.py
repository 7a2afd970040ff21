"""The commands export, import and compact: their arguments, and what they print."""

from __future__ import annotations

import argparse
from typing import Any

from flat_tokens import opening
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.exchange.blocks import NO_TOKEN
from flat_tokens.exchange.formats import FORMATS, Format
from flat_tokens.format import SPLITS
from flat_tokens.storage.layout import COMPRESSIONS
from tokenmill.cli.standard_streams import complain
from tokenmill.cli.words import path_word

SEPARATOR_PLACES = ("last", "first", "dropped")


def add_export(subparsers: Any) -> argparse.ArgumentParser:
    """The parser of export, without DATASET."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="write the tokens as files of another tool",
        description="Write the tokens of a dataset as files of another tool, in a folder: one set a split, and\n"
        f"export.json, which says what they are.\n\nformats:\n{_table('writes')}",
        epilog="examples:\n"
        "  %(prog)s owt.zarr --to megatron --output owt-megatron\n"
        "      --data-path owt-megatron/train is Megatron's prefix then\n"
        "  %(prog)s owt.zarr --to nanogpt --append-token 50256 --output data/owt\n"
        "      data/owt/train.bin and val.bin, the end of each document marked by a token\n"
        "  %(prog)s owt.zarr --to npy --split validation --output owt-npy\n"
        "  %(prog)s owt.zarr --to jsonl --text --output owt-jsonl",
    )
    parser.add_argument(
        "--to", required=True, choices=_names("writes"), metavar="FORMAT", help="one of those above"
    )
    parser.add_argument(
        "-o", "--output", required=True, type=path_word, metavar="FOLDER", help="the folder to make"
    )
    parser.add_argument("--split", choices=(*SPLITS, "both"), default="both", help="which (default both)")
    parser.add_argument(
        "--append-token",
        type=_token,
        metavar="ID",
        help="put this token behind each document, or none. Must be said where a format marks documents by a token "
        "alone (nanogpt) and the dataset's documents end with none",
    )
    parser.add_argument(
        "--dtype",
        metavar="TYPE",
        help="of the ids: uint16, uint32 or int32 (default: uint16 of nanogpt, else the narrowest that holds them)",
    )
    parser.add_argument("--text", action="store_true", help="jsonl: the text of each document, too")
    parser.add_argument(
        "--tokenizer",
        type=path_word,
        metavar="PATH",
        help="tokenizer.json for --text (default: the dataset's own)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier export")
    parser.set_defaults(run=export)
    return parser


def add_import(subparsers: Any) -> argparse.ArgumentParser:
    """The parser of import."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "import",
        help="make a dataset of the token files of another tool",
        description="Make a dataset of token files of another tool, verified at the end. Inputs are paths or URLs,\n"
        f"read one after the other.\n\nformats:\n{_table('reads')}",
        epilog="examples:\n"
        "  %(prog)s data/owt/train.bin --from nanogpt --validation data/owt/val.bin \\\n"
        "      --separator-token 50256 --output owt.zarr\n"
        "  %(prog)s owt_text_document --from megatron --output owt.zarr\n"
        "  %(prog)s mds/train --from mds --validation mds/val --output owt.zarr\n"
        "  %(prog)s tokenized/ --from datatrove --tokenizer tokenizer.json --output owt.zarr",
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="the train split: files, prefixes or folders"
    )
    parser.add_argument(
        "--from",
        required=True,
        choices=_names("reads"),
        metavar="FORMAT",
        dest="source",
        help="one of those above",
    )
    parser.add_argument("--validation", nargs="+", default=[], metavar="INPUT", help="the validation split")
    parser.add_argument(
        "-o", "--output", required=True, type=path_word, metavar="DATASET", help="the folder to make"
    )
    parser.add_argument(
        "--separator-token",
        type=_token,
        metavar="ID",
        help="cut documents at this token and nowhere else, or none: one document an input (default: as the files "
        "say; those of nanogpt do not)",
    )
    parser.add_argument(
        "--separator-place",
        choices=SEPARATOR_PLACES,
        default="last",
        help="whether that token is the last of a document (default), its first, or left out",
    )
    parser.add_argument(
        "--dtype",
        metavar="TYPE",
        help="of the ids, where the files do not tell: nanogpt (default uint16), datatrove without an index, mds with "
        "bytes",
    )
    parser.add_argument("--column", metavar="NAME", help="mds: the column of the ids, if there are several")
    parser.add_argument(
        "--tokenizer",
        type=path_word,
        metavar="PATH",
        help="tokenizer.json that made the ids: kept with the dataset; an id that it lacks is refused",
    )
    parser.add_argument("--vocabulary", type=_count, metavar="N", help="refuse ids of N and above")
    parser.add_argument("--zarr-format", type=int, choices=(2, 3), default=2, help="layout (default 2)")
    parser.add_argument("--compression", choices=COMPRESSIONS, default="zstd", help="(default zstd)")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier dataset")
    parser.set_defaults(run=import_)
    return parser


def add_compact(subparsers: Any) -> argparse.ArgumentParser:
    """The parser of compact, without DATASET."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compact",
        help="write the parts of a dataset that grew as one, or a dataset in another layout",
        description="Write all sequences of a dataset, parts and all, as one dataset: the same batches, and plain\n"
        "zarr readers see it whole. The dataset stays as it is.",
        epilog="examples:\n"
        "  %(prog)s owt.zarr --output owt-whole.zarr\n"
        "  %(prog)s owt.zarr --zarr-format 3 --output owt-3.zarr",
    )
    parser.add_argument(
        "-o", "--output", required=True, type=path_word, metavar="FOLDER", help="the dataset to make"
    )
    parser.add_argument("--zarr-format", type=int, choices=(2, 3), help="layout (default: the dataset's)")
    parser.add_argument("--compression", choices=COMPRESSIONS, help="(default: the dataset's, or zstd)")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier dataset")
    parser.set_defaults(run=compact)
    return parser


def _names(way: str) -> list[str]:
    return [name for name, described in FORMATS.items() if getattr(described, way)]


def _table(way: str) -> str:
    shown: list[tuple[str, Format]] = [(name, FORMATS[name]) for name in _names(way)]
    return "\n".join(f"  {name:<10} {described.about}" for name, described in shown)


def _token(text: str) -> int:
    if text == "none":
        return NO_TOKEN
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise argparse.ArgumentTypeError(f"must be a token id or none, got {printable(text, 40)!r}")
    return int(text)


def _count(text: str) -> int:
    value = _token(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {printable(text, 40)!r}")
    return value


def export(arguments: argparse.Namespace) -> int:
    """Write the files, and print what they are."""
    from flat_tokens.exchange.export_dataset import ExportOptions, export_dataset
    from flat_tokens.exchange.unfinished import check_apart

    check_apart(arguments.output, [arguments.dataset, arguments.tokenizer])
    options = ExportOptions(
        arguments.to,
        arguments.output,
        SPLITS if arguments.split == "both" else (arguments.split,),
        arguments.append_token,
        arguments.dtype,
        arguments.text,
        arguments.tokenizer,
        arguments.overwrite,
    )
    dataset = opening.open(arguments.dataset, version=arguments.version)
    exported = export_dataset(dataset.of_sources(*arguments.source) if arguments.source else dataset, options)
    for note in exported.notes:
        complain(note, "note")
    for split, facts in exported.splits.items():
        files = ", ".join(f"{arguments.output}/{name}" for name in facts["files"])
        print(f"{split}: {facts['tokens']:,} tokens in {_documents(facts['documents'])}: {printable(files)}")
    print(
        f"ids: {exported.dtype or 'text'}; "
        + ("no token" if exported.end_token is None else f"token {exported.end_token}")
        + " ends each document"
    )
    return 0


def import_(arguments: argparse.Namespace) -> int:
    """Make the dataset, and print what it holds."""
    from flat_tokens.exchange.import_dataset import ImportOptions, import_dataset
    from flat_tokens.exchange.unfinished import check_apart
    from flat_tokens.storage.layout import ArrayLayout

    check_apart(arguments.output, [*arguments.inputs, *arguments.validation, arguments.tokenizer])
    if arguments.tokenizer is not None and not arguments.tokenizer.is_file():
        raise ArgumentError(f"--tokenizer {printable(str(arguments.tokenizer))}: no such file")
    options = ImportOptions(
        arguments.source,
        {"train": arguments.inputs, "validation": arguments.validation},
        arguments.output,
        arguments.separator_token,
        arguments.separator_place,
        arguments.dtype,
        arguments.column,
        arguments.tokenizer,
        arguments.vocabulary,
        ArrayLayout.create(arguments.zarr_format, compression=arguments.compression),
        arguments.overwrite,
        dict(arguments.storage_option),
    )
    imported = import_dataset(options)
    for note in imported.notes:
        complain(note, "note")
    print(f"{printable(str(arguments.output))}: verified")
    for split, written in imported.splits.items():
        empty = f", {written.empty_documents:,} empty ones left out" if written.empty_documents else ""
        print(
            f"{split}: {written.record.token_count:,} tokens in {_documents(written.record.seq_count)}{empty}"
        )
    if arguments.separator_token not in (None, NO_TOKEN):
        how = {"last": "ends", "first": "begins", "dropped": "was left out between"}[
            arguments.separator_place
        ]
        print(f"token {arguments.separator_token} {how} documents")
    return 0


def compact(arguments: argparse.Namespace) -> int:
    """Write the dataset, and print what it holds."""
    from flat_tokens.exchange.compact import compact as write
    from flat_tokens.exchange.unfinished import check_apart
    from flat_tokens.storage.layout import ArrayLayout

    check_apart(arguments.output, [arguments.dataset])
    dataset = opening.open(arguments.dataset, version=arguments.version)
    layout = None
    if arguments.zarr_format is not None or arguments.compression is not None:
        zarr_format = arguments.zarr_format or dataset.zarr_format
        layout = ArrayLayout.create(zarr_format, compression=arguments.compression or "zstd")
    written = write(dataset, arguments.output, layout, arguments.overwrite)
    print(f"{printable(str(arguments.output))}: verified")
    for split, found in written.items():
        print(f"{split}: {found.record.token_count:,} tokens in {_documents(found.record.seq_count)}")
    return 0


def _documents(count: int) -> str:
    return f"{count:,} document{'' if count == 1 else 's'}"
