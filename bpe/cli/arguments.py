"""The command line of `python -m bpe`. Imports neither NumPy nor the core, so that --help is fast."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS

from bpe.cli.shared_arguments import (
    TOKENIZER_HELP,
    add_counts,
    add_inputs,
    add_json,
    add_options,
    add_output,
    add_rank_file_options,
    add_records,
    add_tokenizer,
)
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.presets import LIKE_CLIP, LIKE_GEMMA, LIKE_LLAMA, PRESETS
from tokenmill.cli.parser import Parser
from tokenmill.cli.shared_arguments import add_debug, add_engine, add_exclude
from tokenmill.cli.words import size, size_or_fit, sizes, unescaped

_FAMILIES = (*(preset.names for preset in PRESETS), LIKE_LLAMA, LIKE_GEMMA, LIKE_CLIP)


def build_parser(prog: str = "python -m bpe") -> Parser:
    """Return the parser of all commands. prog: the name of the program."""
    parser = Parser(
        prog=prog,
        description="Train and use byte-level BPE tokenizers.",
        examples=(
            "train corpus.txt --vocab-size 32k --special-token '<|endoftext|>' --output tokenizer.json",
            "encode --tokenizer tokenizer.json corpus.txt --output ids.npy",
            "report tokenizer.json held-out.txt",
        ),
        epilog="Run '%(prog)s COMMAND --help' for the options of a command.",
    )
    commands = parser.add_subparsers(dest="command", required=True, title="commands", metavar="COMMAND")
    for add in (_train, _count, _report, _encode, _decode, _info):
        add_debug(add(commands).add_argument)
    return parser


def _train(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
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
    add_inputs(train)
    add_options(
        train,
        """
        --vocab-size N[,N...]  vocabulary size, including special tokens, such as 32k; several sizes make several
            tokenizers
        -o --output FILE  tokenizer.json to write, with {vocab_size} in its name for several sizes
        """,
        vocab_size={"required": True, "type": sizes},
        output={"required": True},
    )
    _add_counting(train)
    add_options(
        train,
        """
        --keep-counts FILE  counts file to write before merging, for a later run with --counts (default: next to the
            output, only if merging or writing fails)
        --report FILE  also write a report: .json, .html, or plain text
        --held-out TEXT  text to measure in the report (default: the training text)
        """,
        held_out={"nargs": "+"},
    )
    add_options(
        train.add_argument_group("merges"),
        """
        --min-frequency N  lowest count of a pair to merge (default: 1)
        --tie-break  order of equally frequent pairs: greater bytes first, or as in Hugging Face's trainer (default:
            lexicographic)
        --max-token-bytes N  longest new entry in bytes, or 0 for no limit (default: %(default)s)
        --min-pretoken-count N|fit  lowest count of a pretoken to keep; fit drops rare ones until the rest fits in
            memory (default: 1)
        --continue-from TOKENIZER  tokenizer to extend to --vocab-size; its entries, merges, and pre-tokenization stay
        --max-token-length N
        --initial-alphabet CHARACTERS
        --limit-alphabet N
        """,
        min_frequency={"type": size, "default": 1},
        tie_break={"choices": ["lexicographic", "huggingface"], "default": "lexicographic"},
        max_token_bytes={"type": size, "default": MAX_TOKEN_BYTES},
        min_pretoken_count={"type": size_or_fit, "default": 1},
        max_token_length={"type": size},  # this one and the next two: see bpe.TrainingOptions
        limit_alphabet={"type": size},
    )
    return train


def _count(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
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
    add_options(
        command,
        """
        --threads N  number of threads (default: number of usable CPUs)
        --max-memory SIZE  memory limit, such as 8GB; further counts go to disk (default: 80%% of free memory)
        --temp-dir DIR  folder for counts beyond the memory limit (default: next to the output)
        --quiet  print only warnings and errors
        """,
        threads={"type": size},
        max_memory={"type": size},
        quiet={"action": "store_true"},
    )
    add_options(
        command.add_argument_group("pre-tokenization"),
        """
        --special-token TOKEN  special token to add and to split the text at; repeatable (default: as in the counts
            files)
        --pattern  gpt2, cl100k, o200k, llama3, qwen2, or a regular expression (default: as in the counts files, or
            gpt2)
        --like NAME|PATH  normalization and pre-tokenization of a model family or a tokenizer.json; `train --help`
            lists families
        """,
        special_token={"action": "append"},
    )
    group = add_records(command)
    add_exclude(group.add_argument)
    add_options(
        group,
        r"""
        --separator TEXT  text between documents, not counted; \n is a newline (default: none, or <|endoftext|> with
            --on-error skip)
        --sample-bytes SIZE  amount of text to count, sampled evenly from all inputs, such as 1GB (default: all)
        --seed N
        """,
        separator={"type": unescaped},
        sample_bytes={"type": size},
        seed={"type": size, "default": 0},  # of the sample
    )


def _report(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    report = commands.add_parser(
        "report",
        help="measure a tokenizer on text",
        usage="%(prog)s TOKENIZER [TEXT...] [options]",
        description="Measure a tokenizer on held-out text, as text, JSON or an HTML page. The report shows bytes per\n"
        "token for each vocabulary size, scripts, unusual entries, and entries that text never produces.",
        examples=(
            "tokenizer.json held-out.txt",
            "tokenizer.json held-out.txt --output report.html",
            "tokenizer.json --counts corpus.counts --json",
        ),
    )
    report.add_argument("tokenizer", metavar="TOKENIZER", help=TOKENIZER_HELP)
    add_inputs(report, "TEXT")
    add_output(report, "file to write: .json, .html, or plain text")
    add_counts(report, "counts files to measure on instead of text")
    add_json(report)
    about = "--threads N  number of counting threads (default: number of usable CPUs)"
    add_options(report, about, threads={"type": size})
    add_records(report)
    add_rank_file_options(report)
    return report


def _encode(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    encode = commands.add_parser(
        "encode",
        help="encode text to token IDs",
        usage="%(prog)s [INPUT] --tokenizer PATH [options]",
        description="Encode a text of any size, or the documents of one file of records, to token IDs.",
        examples=(
            "--tokenizer tokenizer.json corpus.txt --output ids.npy",
            "echo 'Hello' | %(prog)s --tokenizer tokenizer.json",
        ),
    )
    encode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="file of text or records (default: -, stdin)"
    )
    add_tokenizer(encode)
    add_output(encode, "file to write: .npy, .bin (uint32), or text")
    add_options(
        encode,
        """
        --format  output format (default: by file extension)
        --plain  encode special tokens in the text as ordinary text
        --prepend-token TOKEN  token to add before each document, by text or ID
        --append-token TOKEN  token to add after each document, by text or ID
        """,
        format={"choices": ["text", "npy", "bin"]},
        plain={"action": "store_true"},
    )
    add_records(encode)
    add_rank_file_options(encode)
    return encode


def _decode(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    decode = commands.add_parser(
        "decode",
        help="decode token IDs to text",
        usage="%(prog)s [INPUT] --tokenizer PATH [options]",
        description="Decode token IDs to text.",
        examples=(
            "--tokenizer tokenizer.json ids.npy",
            "echo '15496 995' | %(prog)s --tokenizer tokenizer.json",
        ),
    )
    decode.add_argument(
        "input", nargs="?", default="-", metavar="INPUT", help="file that `encode` wrote (default: -, stdin)"
    )
    add_tokenizer(decode)
    add_output(decode, "file to write")
    about = "--format  input format (default: by file extension)"
    add_options(decode, about, format={"choices": ["text", "npy", "bin"]})
    add_rank_file_options(decode)
    return decode


def _info(commands: argparse._SubParsersAction[Parser]) -> argparse.ArgumentParser:
    info = commands.add_parser(
        "info",
        help="describe a tokenizer or a counts file",
        usage="%(prog)s TOKENIZER [options]",
        description="Describe a tokenizer (entries, pattern, special tokens, fingerprint) or a counts file.",
        examples=("tokenizer.json", "corpus.counts --json", "cl100k.tiktoken --pattern cl100k"),
    )
    info.add_argument("tokenizer", metavar="TOKENIZER", help=f"{TOKENIZER_HELP}; or a counts file")
    add_json(info)
    add_rank_file_options(info)
    return info
