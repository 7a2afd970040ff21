"""The options for counting that `train` and `count` share."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS

from bpe.cli.shared_arguments import add_counts, add_inputs, add_records
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.presets import LIKE_CLIP, LIKE_GEMMA, LIKE_LLAMA, PRESETS
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_engine, add_exclude
from tokenmill.cli.words import size, size_or_fit, sizes, unescaped

_FAMILIES = (*(preset.names for preset in PRESETS), LIKE_LLAMA, LIKE_GEMMA, LIKE_CLIP)


def add_train(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    train = commands.add_parser(
        "train",
        help="train a tokenizer on text",
        usage="%(prog)s INPUT... --vocab-size N --output FILE [options]",
        description="Train a BPE tokenizer on text or on counts files and write it as a tokenizer.json. The result\n"
        "does not depend on the number of threads or the memory limit.",
        examples=(
            "corpus/ --vocab-size 32k --special-token '<|endoftext|>' --output tok.json",
            "corpus/ --vocab-size 128k --like llama-3 --output tok.json",
            "corpus/ --vocab-size 64k --like their/tokenizer.json --output tok.json",
            "more.txt --continue-from tok.json --vocab-size 40k --output longer.json",
            "--counts a.counts b.counts --vocab-size 8k,16k,32k --output 'tok-{vocab_size}.json'",
        ),
        epilog="model families of --like, one per line with their other names:\n"
        + "".join(f"  {', '.join(names)}\n" for names in _FAMILIES)
        + "The special tokens of a family are not included; add them with --special-token.",
    )
    add = train.add_argument
    add_inputs(train)
    add(
        "--vocab-size",
        required=True,
        type=sizes,
        metavar="N[,N...]",
        help="vocabulary size, including special tokens, such as 32k; several sizes make several tokenizers",
    )
    add(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="tokenizer.json to write, with {vocab_size} in its name for several sizes",
    )
    _add_counting(train)
    add(
        "--keep-counts",
        metavar="FILE",
        help="counts file to write before merging, for a later run with --counts (default: next to the output, only if "
        "merging or writing fails)",
    )
    add("--report", metavar="FILE", help="also write a report: .json, .html, or plain text")
    add(
        "--held-out",
        nargs="+",
        metavar="TEXT",
        help="text to measure in the report (default: the training text)",
    )
    add = train.add_argument_group("merges").add_argument
    add(
        "--min-frequency",
        type=size,
        default=1,
        metavar="N",
        help="lowest count of a pair to merge (default: 1)",
    )
    add(
        "--tie-break",
        choices=["lexicographic", "huggingface"],
        default="lexicographic",
        help="order of equally frequent pairs: greater bytes first, or as in Hugging Face's trainer (default: "
        "lexicographic)",
    )
    add(
        "--max-token-bytes",
        type=size,
        default=MAX_TOKEN_BYTES,
        metavar="N",
        help="longest new entry in bytes, or 0 for no limit (default: %(default)s)",
    )
    add(
        "--min-pretoken-count",
        type=size_or_fit,
        default=1,
        metavar="N|fit",
        help="lowest count of a pretoken to keep; fit drops rare ones until the rest fits in memory (default: 1)",
    )
    add(
        "--continue-from",
        metavar="TOKENIZER",
        help="tokenizer to extend to --vocab-size; its entries, merges, and pre-tokenization stay",
    )
    # See bpe.TrainingOptions.
    add("--max-token-length", type=size, metavar="N", help=SUPPRESS)
    add("--initial-alphabet", metavar="CHARACTERS", help=SUPPRESS)
    add("--limit-alphabet", type=size, metavar="N", help=SUPPRESS)
    return train


def add_count(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    count = commands.add_parser(
        "count",
        help="count pretokens for training",
        usage="%(prog)s INPUT... --output FILE [options]",
        description="Count the pretokens of text and write a counts file. `train --counts` trains on such files, also\n"
        "from several machines.",
        examples=(
            "corpus/ --special-token '<|endoftext|>' --output corpus.counts",
            "--counts part1.counts part2.counts --output all.counts",
            "s3://bucket/corpus/ --scheduler tcp://host:8786 --output corpus.counts",
        ),
    )
    add_inputs(count)
    count.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="counts file to write, or its URL"
    )
    _add_counting(count)
    add = count.add_argument_group("workers").add_argument
    add_engine(add, "where to count (default: threads of this process)")
    add("--text-chunk-bytes", type=size, metavar="SIZE", help=SUPPRESS)  # see bpe.count_files
    return count


def _add_counting(command: argparse.ArgumentParser) -> None:
    add_counts(command, "counts files to add to the inputs, or to use without inputs")
    add = command.add_argument
    add("--threads", type=size, metavar="N", help="number of threads (default: number of usable CPUs)")
    add(
        "--max-memory",
        type=size,
        metavar="SIZE",
        help="memory limit, such as 8GB; further counts go to disk (default: 80%% of free memory)",
    )
    add(
        "--temp-dir",
        metavar="DIR",
        help="folder for counts beyond the memory limit (default: next to the output)",
    )
    add("--quiet", action="store_true", help="print only warnings and errors")
    add = command.add_argument_group("pre-tokenization").add_argument
    add(
        "--special-token",
        action="append",
        metavar="TOKEN",
        help="special token to add and to split the text at; repeatable (default: as in the counts files)",
    )
    add(
        "--pattern",
        help="gpt2, cl100k, o200k, llama3, qwen2, or a regular expression (default: as in the counts files, or gpt2)",
    )
    add(
        "--like",
        metavar="NAME|PATH",
        help="normalization and pre-tokenization of a model family or a tokenizer.json; `train --help` lists families",
    )
    group = add_records(command)
    add_exclude(group.add_argument)
    add = group.add_argument
    add(
        "--separator",
        type=unescaped,
        metavar="TEXT",
        help=r"text between documents, not counted; \n is a newline (default: none, or <|endoftext|> with "
        "--on-error skip)",
    )
    add(
        "--sample-bytes",
        type=size,
        metavar="SIZE",
        help="amount of text to count, sampled evenly from all inputs, such as 1GB (default: all)",
    )
    add("--seed", type=size, default=0, metavar="N", help=SUPPRESS)  # of the sample
