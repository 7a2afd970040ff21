"""Check that conversions of realistic size keep every document, for all kinds of input files.

    python tools/check_inputs.py [--text FILE] [--tokenizer FILE] [--seconds 60] [--seed 0]

Each round draws documents from the text, from empty ones to many MB, and writes them to a few files of random kinds:
text and JSON Lines, optionally compressed and cut anywhere into several members, and Parquet with row groups and pages
of random sizes. The conversion has random workers and text chunks. Every sequence must equal the IDs of its document,
encoded alone. Unlike the small inputs of the tests, these fill the buffers of 64 KiB to 4 MiB many times. Exits 1 at
the first difference and prints the --seed that repeats it. Needs the extra `test`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("", "tests", "tests/convert/contract", "tests/inputs")]

from input_kinds import KINDS, write_kind  # noqa: E402 - found on the path above
from runs import sample_documents, tokenizer_bytes  # noqa: E402
from strategies import END  # noqa: E402

import flat_tokens  # noqa: E402
from bpe.tokenizer import Tokenizer  # noqa: E402
from convert import ConvertOptions, convert  # noqa: E402
from tokenmill.errors import TokenmillError  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, help="text to cut documents from (default: random words)")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer file (default: a small tokenizer)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    stop = time.monotonic() + options.seconds
    seed = options.seed
    with tempfile.TemporaryDirectory() as folder:
        tokenizer_path = options.tokenizer or Path(folder, "tokenizer.json")
        if not options.tokenizer:
            tokenizer_path.write_bytes(tokenizer_bytes())
        tokenizer = Tokenizer.load(tokenizer_path)
        text = (
            options.text.read_text("utf-8", "replace")
            if options.text
            else "".join(sample_documents(50_000, seed=1))
        )
        while seed == options.seed or time.monotonic() < stop:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                problem = a_round(random.Random(seed), text, tokenizer, tokenizer_path, Path(own))
            if problem:
                print(f"seed {seed}: {problem}")
                return 1
            seed += 1
    print(f"{seed - options.seed} rounds, no difference")
    return 0


def a_round(rng: random.Random, text: str, tokenizer: Tokenizer, tokenizer_path: Path, folder: Path) -> str:
    """Run one conversion and return a description of the first difference, or ""."""
    inputs = folder / "inputs"
    inputs.mkdir()
    documents: list[tuple[str, bool]] = []  # text, whether its special tokens count
    kinds = []
    for number in range(rng.choice([1, 1, 2, 4])):
        own = make_own_documents(rng, text)
        kind = rng.choice(KINDS)
        kinds.append(kind)
        is_text = kind.startswith("txt.")
        if is_text:
            own = [document.replace(END, "") for document in own]
        if kind == "parquet.none":
            write_parquet(rng, inputs / f"{number}.parquet", own)
        else:
            members = 1 if kind.endswith(".none") else rng.choice([1, 1, 2, 5, 30])
            write_kind(inputs / f"{number}", own, kind, members, seed=rng.randrange(1 << 32))
        documents += [(document, is_text) for document in own]
    options = ConvertOptions(
        (str(inputs / "*"),),
        str(tokenizer_path),
        str(folder / "out"),
        workers=rng.randint(1, 3),
        text_chunk_bytes=rng.choice([None, None, 1 << 16, 300_000, 1 << 20]),
        validation_fraction=0,
        progress="none",
    )
    what = f"{' '.join(kinds)}, {options.workers} workers, text chunks of {options.text_chunk_bytes}"
    try:
        convert(options)
    except TokenmillError as error:
        return f"{what}: {error}"
    train = flat_tokens.open(folder / "out").train
    written = [document for document in documents if document[0]]
    for index, (document, is_text) in enumerate(written[: train.seq_count]):
        ids = tokenizer.encode(document, allowed_special="all" if is_text else ())
        if train.sequence(index).tolist() != ids:
            return f"{what}: document {index} of {len(document):,} characters has other ids"
    if train.seq_count != len(written):
        return f"{what}: {train.seq_count:,} sequences of {len(written):,} documents"
    return ""


def make_own_documents(rng: random.Random, text: str) -> list[str]:
    """Return documents of up to about 12 million characters in total: most short, some long, some repetitive."""
    left = rng.choice([100_000, 2_000_000, 12_000_000])
    documents = []
    while left > 0:
        kind = rng.random()
        length = 0 if kind < 0.05 else int(200 * rng.paretovariate(1.1))
        if kind > 0.98:
            length = rng.randrange(1_000_000, 9_000_000)
        start = rng.randrange(max(1, len(text) - length))
        document = text[start : start + min(length, 9_000_000)]
        if 0.05 < kind < 0.08:
            document = document[:50] * rng.randrange(1, 40_000)
        elif kind < 0.1:
            document += END[: rng.randrange(len(END))]
        documents.append(document)
        left -= len(document) + 1
    return documents


def write_parquet(rng: random.Random, path: Path, documents: list[str]) -> None:
    """Write the documents as rows, with random row groups, pages and codecs."""
    import pyarrow as pa
    import pyarrow.parquet

    kind = rng.choice([pa.string(), pa.large_string()])
    table = pa.table({"n": range(len(documents)), "text": pa.array(documents, kind)})
    pyarrow.parquet.write_table(
        table,
        path,
        row_group_size=rng.choice([7, 100, 5000]),
        data_page_size=rng.choice([1000, 1 << 20]),
        use_dictionary=rng.random() < 0.5,
        compression=rng.choice(["none", "snappy", "zstd", "gzip"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        write_page_checksum=rng.random() < 0.5,
    )


if __name__ == "__main__":
    sys.exit(main())
