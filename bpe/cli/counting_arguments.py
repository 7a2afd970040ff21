"""The options of `train` and `count`, which count text alike."""

from __future__ import annotations

import argparse

from bpe.cli.shared_arguments import add_records
from bpe.entry_limit import MAX_TOKEN_BYTES
from tokenmill.cli.input_arguments import add_exclude
from tokenmill.cli.parser import Parser
from tokenmill.cli.words import seconds, size, size_or_fit, sizes, unescaped
from tokenmill.engines.choose import add_engine_arguments


def add_train(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    train = commands.add_parser(
        "train",
        help="make a tokenizer.json from text files",
        description="Make a tokenizer.json from text files, or from what `count` made of them. The same files and "
        "options give the same tokenizer, whatever the number of threads and the memory. Ctrl-C keeps what was "
        "counted and says how to go on.",
    )
    train.epilog_of = _train_examples
    _add_counting(train)
    train.add_argument(
        "--vocab-size",
        required=True,
        type=sizes,
        metavar="N[,N...]",
        help="entries, special tokens and the 256 bytes included: 32000, 32k; several from one training: 8k,16k,32k",
    )
    train.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="FILE",
        help="the tokenizer.json to write, one that exists is replaced; {vocab_size} in the name stands for the size, "
        "and is needed for several",
    )
    train.add_argument(
        "--min-frequency",
        type=size,
        default=1,
        metavar="N",
        help="merge only pairs that occur so often (default 1)",
    )
    train.add_argument(
        "--continue-from",
        metavar="TOKENIZER",
        help="keep all ids and merges of a tokenizer.json and learn more, up to --vocab-size; it says how text is cut",
    )
    train.add_argument(
        "--max-token-bytes",
        type=size,
        default=MAX_TOKEN_BYTES,
        metavar="N",
        help=f"make no longer entries (default {MAX_TOKEN_BYTES}; 0: any length)",
    )
    train.add_argument(
        "--max-token-length",
        type=size,
        metavar="N",
        help="the same as Hugging Face's trainer counts: entries have less than N bytes (of text: characters), or two",
    )
    train.add_argument(
        "--initial-alphabet",
        metavar="CHARACTERS",
        help="bytes that have entries though no text has them, as the byte alphabet writes them, Ġ the space; '' none; "
        "those that are neither here nor in the text come behind --vocab-size entries (default: all 256, or none with "
        "--limit-alphabet)",
    )
    train.add_argument(
        "--limit-alphabet",
        type=size,
        metavar="N",
        help="merge the N commonest bytes only; the others come behind --vocab-size entries",
    )
    train.add_argument(
        "--tie-break",
        choices=["lexicographic", "huggingface"],
        default="lexicographic",
        help="which of equally frequent pairs is merged first: the one whose bytes compare greater (default), or "
        "the one Hugging Face's trainer takes",
    )
    train.add_argument(
        "--min-pretoken-count",
        type=size_or_fit,
        default=1,
        metavar="N|fit",
        help="leave out pretokens that occur less often; fit: as few as the memory asks for (default 1: none)",
    )
    train.add_argument(
        "--keep-counts", metavar="FILE", help="write the counts too, to train on them again with --counts"
    )
    train.add_argument(
        "--report",
        metavar="FILE",
        help="write a report on the tokenizer: .json, .html, or text by any other ending",
    )
    train.add_argument(
        "--held-out",
        nargs="+",
        metavar="TEXT",
        help="texts that the report measures on; default: those trained on",
    )
    return train


def _train_examples() -> str:
    from bpe.presets import LIKE_CLIP, LIKE_GEMMA, LIKE_LLAMA, PRESETS  # only the help needs them

    return (
        "examples:\n"
        "  %(prog)s corpus/ --vocab-size 32k --special-token '<|endoftext|>' --output tok.json\n"
        "  %(prog)s corpus/ --vocab-size 128k --like llama-3 --output tok.json\n"
        "  %(prog)s corpus/ --vocab-size 64k --like their/tokenizer.json --output tok.json\n"
        "  %(prog)s more.txt --continue-from tok.json --vocab-size 40k --output longer.json\n"
        "  %(prog)s corpus/ --vocab-size 32k --tie-break huggingface --min-frequency 2 --output tok.json\n\n"
        "what --like knows (a line a preset, the names in it mean the same):\n"
        + "".join(
            f"  {', '.join(names)}\n"
            for names in (*(preset.names for preset in PRESETS), LIKE_LLAMA, LIKE_GEMMA, LIKE_CLIP)
        )
        + "Special tokens are no part of a preset: name those that the corpus has."
    )


def add_count(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    count = commands.add_parser(
        "count",
        help="count pretokens, for `train --counts`",
        description="Count the pretokens of text files into a counts file, which `train --counts` takes in place of "
        "the text: on many machines at once, or once for many trainings. Counts files are merged in little memory. "
        "With --executor the inputs are counted in pieces by workers, also on a cluster; the file is the same.",
    )
    _add_counting(count)
    count.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="FILE",
        help="the counts file, or a URL; one that exists is replaced",
    )
    add = count.add_argument_group("workers").add_argument
    add_engine_arguments(add, size, seconds, None, "threads of this process (default), worker processes")
    add(
        "--scratch",
        metavar="DIR|URL",
        help="for sorted counts on their way, seen by all workers (default: beside the output)",
    )
    add(
        "--text-chunk-bytes",
        type=size,
        metavar="SIZE",
        help="text a task (default: by the inputs and workers, 4Mi to 1Gi)",
    )
    return count


def _add_counting(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="files of text or records (JSON Lines, tables), folders or globs, as `convert` reads them; -: stdin",
    )
    command.add_argument(
        "--counts",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="counts files, added to what the inputs have; of a run that was stopped: the inputs are counted "
        "from there on",
    )
    command.add_argument(
        "--special-token",
        action="append",
        metavar="TOKEN",
        help="a text with an id of its own, at which the text is cut; may be repeated (default: those of the counts "
        "files, or none)",
    )
    command.add_argument(
        "--pattern",
        help="how text is cut before merging: gpt2, cl100k, o200k, llama3, qwen2, or an expression (default: that of "
        "the counts files, or gpt2)",
    )
    command.add_argument(
        "--like",
        metavar="NAME|PATH",
        help="in place of --pattern, normalize and cut text as a model family does (gpt-4o, qwen-3, deepseek-v3, ...: "
        "train --help lists them), or as a tokenizer.json says",
    )
    command.add_argument(
        "--sample-bytes",
        type=size,
        metavar="SIZE",
        help="so much of the text, whole documents taken evenly from all of it: 1GB (default: all)",
    )
    command.add_argument(
        "--seed", type=size, default=0, metavar="N", help="which places are sampled (default 0)"
    )
    command.add_argument(
        "--threads", type=size, metavar="N", help="threads to count and merge with (default: all cores)"
    )
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="SIZE",
        help="what the program, or each worker, may take: 8GB; counts that outgrow it go to disk (default: four fifths "
        "of what is free; of a worker 1 GiB a task)",
    )
    command.add_argument(
        "--temp-dir",
        metavar="FOLDER",
        help="where counts go that outgrow the memory (default: beside the output)",
    )
    command.add_argument(
        "--separator",
        type=unescaped,
        metavar="TEXT",
        help=r"between documents of text, not counted; \n works (default: special tokens alone cut; with --on-error "
        "skip <|endoftext|>)",
    )
    command.add_argument("--quiet", action="store_true", help="no progress; warnings and errors only")
    add_exclude(command.add_argument)
    add_records(command)
