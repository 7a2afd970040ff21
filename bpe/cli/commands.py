"""The commands encode, decode and info. Each takes the parsed options and returns the exit code."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from bpe.cli.ids_file import format_of, read_ids, write_ids
from bpe.cli.text_input import input_sources, read_text, record_texts, standard_input
from bpe.end_tokens import end_tokens, post_processor_ends
from bpe.errors import BadArgument, BadTokenizer, InvalidText, MissingInput, printable, shown
from bpe.formats.by_path import files_of
from bpe.output_conflicts import STANDARD, check_outputs_apart
from bpe.output_file import check_output, open_output_file
from bpe.pretoken_counts.sources import Source, listed, spooled
from bpe.pretoken_counts.workspace import Workspace
from bpe.tokenizer import AllowedSpecial, Tokenizer
from tokenmill.cli.standard_streams import complain
from tokenmill.inputs.rules import IntakeRules
from tokenmill.stores import is_url, shown_url

if TYPE_CHECKING:
    from bpe.pretoken_counts.reading import Tally


def encode(options: Namespace) -> int:
    """Write the IDs of a text, or of each document in a file of records."""
    _check_output(options, options.input)
    tokenizer = load_tokenizer(options)
    form = options.format or format_of(options.output)
    if form == "npy" and options.output == "-":
        raise BadArgument(
            "--format: npy cannot be written to stdout. Pass --output FILE, or --format text or bin."
        )
    allowed: AllowedSpecial = () if options.plain else "all"
    ends = end_tokens(tokenizer, options.prepend_token, options.append_token)
    with Workspace() as workspace, open_output(options.output) as target:
        named = spooled(_input(options), options.input_format, False, workspace)
        documents: Iterable[Iterable[list[int]]]
        is_text = named.kind.format == "text"
        if is_text:
            texts = read_text(named, options.invalid, _tell)
            documents = [ends.around(tokenizer.encode_in_parts(texts, allowed))]
        else:  # special tokens in a record's text are text
            allowed = () if options.plain else tokenizer.non_special_added_tokens
            rules = IntakeRules(options.text_field, options.on_error, invalid=options.invalid)
            rows = record_texts(named, rules, _tell)
            documents = (ends.around(tokenizer.encode_in_parts([row], allowed)) for row in rows)
        line_ends = tokenizer.special_tokens.values() if is_text else None
        write_ids(target, documents, form, line_ends)
    return 0


def _input(options: Namespace) -> Source:
    """Return the file, object or stream to encode."""
    if options.input == "-":
        return listed([standard_input()], "auto")[0]
    if is_url(options.input):
        found = input_sources([options.input], options)
        if len(found) > 1:
            raise BadArgument(f"{shown_url(options.input)}: matches {len(found):,} objects. Name one.")
        return found[0]
    if Path(options.input).is_dir() or not Path(options.input).exists():
        with open_input(options.input):  # raises the error
            pass
    return listed([Path(options.input)], options.input_format)[0]


def decode(options: Namespace) -> int:
    """Write the bytes of IDs, in blocks if the decoder allows it."""
    _check_output(options, options.input)
    tokenizer = load_tokenizer(options)
    name = _name(options.input)
    with open_input(options.input) as source, open_output(options.output) as target:
        blocks = read_ids(source, options.format or format_of(options.input), name)
        if tokenizer.decoder is not None and not tokenizer.decoder.is_additive:
            blocks = iter([np.concatenate([np.empty(0, np.int64), *blocks])])
        first = 0
        for ids in blocks:
            try:
                target.write(tokenizer.decode_bytes(ids))
            except BadArgument as error:  # the IDs are data here
                counted = f" (ids[0] is ID number {first} of the input)" if first else ""
                raise InvalidText(f"{name}: {error}{counted}") from None
            first += len(ids)
    return 0


def info(options: Namespace) -> int:
    """Describe a tokenizer or a counts file."""
    check_outputs_apart([("stdout", STANDARD)], tokenizer_files(options))
    path = Path(options.tokenizer)
    facts = describe_counts(path) if is_counts_file(path) else describe(load_tokenizer(options))
    if options.json:
        print(json.dumps(facts, indent=2))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        if isinstance(value, dict):
            value = "  ".join(f"{text}={id_}" for text, id_ in value.items()) or "none"
        elif isinstance(value, list):
            value = "  ".join(map(str, value)) or "none"
        print(f"{name:<{width}}  {printable(str(value))}")
    return 0


def describe(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the facts that `info` prints, by name. Texts are printable."""
    from bpe.reports.measuring_encoder import is_measurable
    from bpe.reports.report import describe_entries

    merges = "every pair that forms an entry (rank file)" if tokenizer.is_rank_file else len(tokenizer.merges)
    entries = describe_entries(tokenizer)
    facts: dict[str, Any] = {
        "entries": tokenizer.vocab_size,
        "highest id": tokenizer.max_token_id,
        "merges": merges,
        "whole pretokens": "emitted if they are entries"
        if tokenizer.ignore_merges
        else "reached by merges only",
        "pattern": shown(tokenizer.pattern, 500)[1:-1],
        "normalizer": str(tokenizer.normalizer or "none"),
        "special tokens": {shown(text)[1:-1]: id_ for text, id_ in tokenizer.special_tokens.items()},
        "scripts": entries["entries_by_script"],
        "longest entries": _first(entries["longest"]),
        "strange entries": _first(entries["strange"]["listed"]),
        "never produced": entries["unreachable"]["count"],
        "for example": _first(entries["unreachable"]["listed"]),
        "fingerprint": tokenizer.fingerprint(),
    }
    if not facts["never produced"]:
        del facts["for example"]
    if not is_measurable(tokenizer.text_rules):  # unreachable entries are unknown
        del facts["never produced"]
    if tokenizer.post_processor is not None:
        ends = post_processor_ends(tokenizer)
        facts["post-processor"] = (
            f"a text {ends}, with Tokenizer.encode(..., add_special_tokens=True) and convert --template"
        )
    return facts


def _first(entries: list[dict[str, Any]]) -> list[str]:
    return [f"{entry['text']} ({entry['id']})" for entry in entries[:5]]


def describe_counts(path: Path) -> dict[str, Any]:
    """Return the facts that `info` prints of a counts file. Reads and checks the whole file."""
    from bpe.pretoken_counts.counts_file import CountsFile

    file = CountsFile(path)
    for _ in file.blocks():
        pass
    facts = file.facts
    return {
        "distinct pretokens": len(file),
        "pretokens": file.total,
        "text bytes": facts.text_bytes,
        "documents": facts.documents,
        "pattern": shown(facts.pattern, 500)[1:-1],
        "normalizer": str(facts.normalizer or "none"),
        "special tokens": [shown(text)[1:-1] for text in facts.special_tokens],
        "replaced": facts.replaced,
        "sample": facts.sample or "none",
        "sources": len(facts.sources),
        "written by": facts.tool,
    }


def is_counts_file(path: Path) -> bool:
    """Return whether the file starts like a counts file."""
    try:
        with path.open("rb") as file:
            return file.read(8).startswith(
                (b"PK\x03\x04", b"tmcounts")
            )  # of the former layout, which is refused
    except OSError:
        return False  # loading reports the error


def _check_output(options: Namespace, source: str) -> None:
    """Raise BadArgument for an output that cannot be written or is also an input."""
    if options.output != STANDARD:
        check_output(options.output)
    check_outputs_apart([("--output", options.output)], [source, *tokenizer_files(options)])


def tokenizer_files(options: Namespace) -> list[Path]:
    """Return the files of the tokenizer; [] if there are none, which loading reports."""
    try:
        return files_of(Path(options.tokenizer))
    except BadTokenizer:
        return []


def load_tokenizer(options: Namespace) -> Tokenizer:
    """Load the tokenizer of the options."""
    path = Path(options.tokenizer)
    if not options.tokenizer:  # Path("") is the current folder
        raise BadArgument("tokenizer: must be a path (got '')")
    if options.pattern is None and path.suffix == ".tiktoken" and path.is_file():
        raise BadArgument(f"{path}: a rank file contains no pattern. Pass --pattern (and --special-token).")
    tokenizer = Tokenizer.load(
        options.tokenizer, options.pattern, parse_special_tokens(options.special_token)
    )
    if note := tokenizer.pretokenizer.slow_note:
        complain(note, "note")
    return tokenizer


def parse_special_tokens(arguments: list[str] | None) -> list[str] | dict[str, int] | None:
    """Parse --special-token: ["<s>=5", "<t>=6"] -> {"<s>": 5, "<t>": 6}; a list if none has an ID."""
    if not arguments:
        return None
    with_id = {}
    for argument in arguments:
        text, equals, id_ = argument.rpartition("=")
        if equals and text and id_.isascii() and id_.isdigit():
            if text in with_id:
                raise BadArgument(f"--special-token: duplicate (got {shown(text)})")
            with_id[text] = int(id_)
    if not with_id:
        return arguments
    if len(with_id) < len(arguments):
        raise BadArgument(
            "--special-token: only some tokens have an ID. Pass an ID for all (TOKEN=ID) or for none."
        )
    return with_id


def _tell(tally: Tally) -> None:
    for line in tally.lines():
        complain(line, "note")


def _name(path: str) -> str:
    return "stdin" if path == "-" else path


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open the file, or stdin for "-"."""
    if path == "-":
        yield standard_input()
        return
    if Path(path).is_dir():
        fix = ". Run tokenmill head to see a dataset." if path.rstrip("/").endswith(".zarr") else ""
        raise MissingInput(f"{path or repr(path)}: is a folder, not a file{fix}")
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        is_content = isinstance(error, FileNotFoundError) and " " in path
        fix = ". Pass text through stdin, as in echo '...' | tokenmill ..." if is_content else ""
        raise MissingInput(f"{path}: {error.strerror}{fix}") from None
    with file:
        yield file


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open stdout for "-", or a file that appears under its name when it is complete."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open_output_file(path) as file:
        yield file
