"""How fast are the interfaces that people call, beside those of the libraries they are named for?

Each contender is called as its users call it, and ids come out as lists: a batch of documents, a batch of short
prompts, and short prompts one by one; the caches are warm. One thread each, on one core, processor time. `same_ids`:
whether the ids are those of the first contender.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import harness
import peers

from bpe.compat import huggingface, tiktoken
from bpe.patterns import PATTERNS
from bpe.tokenizer import Tokenizer

Encode = Callable[[Sequence[str]], list[list[int]]]
PROMPT_CHARACTERS = 20
PROMPTS = 5000
SLOW = ("tiktoken", "tokenizers")  # they get a tenth of the documents


def main() -> None:
    options = harness.parse(harness.arguments(__doc__ or ""))
    notes = peers.use()
    harness.pin(1)
    machine = harness.facts()
    batch, single = contenders(str(options.tokenizer))
    rows: list[harness.Row] = []
    texts = []
    for path in options.corpus:
        text = harness.read_text(path, options.limit_mb * 1e6)
        texts.append(harness.describe(path, text))
        documents = [each.decode() for each in text.split(harness.SEPARATOR)]
        plain = "".join(documents)
        prompts = [
            plain[at : at + PROMPT_CHARACTERS]
            for at in range(0, PROMPTS * PROMPT_CHARACTERS, PROMPT_CHARACTERS)
        ]
        for what, given, run in (
            ("batch of documents", documents, batch),
            ("batch of prompts", prompts, batch),
            ("prompts one by one", prompts, single),
        ):
            rows += measured(path.stem, what, given, run, options.turns)
    harness.save("interfaces", machine, rows, texts, ["one thread, caches warm", *notes])


def contenders(path: str) -> tuple[dict[str, Encode], dict[str, Encode]]:
    """By name: those that take a batch, those that take a text; the first is ours. Peers that are not there are left
    out."""
    core = Tokenizer.load(path)
    ours, ours_tiktoken = huggingface.Tokenizer.from_file(path), tiktoken.Encoding.from_tokenizer(core)
    batch: dict[str, Encode] = {
        "huggingface": lambda texts: [each.ids for each in ours.encode_batch(texts)],
        "tiktoken": lambda texts: ours_tiktoken.encode_batch(list(texts), num_threads=1),
    }
    single: dict[str, Encode] = {
        "huggingface": lambda texts: [ours.encode(text).ids for text in texts],
        "tiktoken": lambda texts: [ours_tiktoken.encode(text) for text in texts],
    }
    batch = {f"bpe.compat.{name}": run for name, run in batch.items()}
    single = {f"bpe.compat.{name}": run for name, run in single.items()}
    for add in (_gigatoken, _tokenizers, _tiktoken):
        try:
            add(path, core, batch, single)
        except ImportError as error:
            harness.progress(f"{error.name} is not installed")
    return batch, single


def _gigatoken(path: str, _: Tokenizer, batch: dict[str, Encode], single: dict[str, Encode]) -> None:
    import gigatoken

    peer = gigatoken.Tokenizer(path)
    as_hf, as_tiktoken = peer.as_hf(), peer.as_tiktoken()
    batch["gigatoken as_hf"] = lambda texts: as_hf(list(texts))["input_ids"]
    batch["gigatoken as_tiktoken"] = lambda texts: as_tiktoken.encode_batch(list(texts), num_threads=1)
    single["gigatoken as_hf"] = lambda texts: [as_hf.encode(text) for text in texts]
    single["gigatoken as_tiktoken"] = lambda texts: [as_tiktoken.encode(text) for text in texts]


def _tokenizers(path: str, _: Tokenizer, batch: dict[str, Encode], single: dict[str, Encode]) -> None:
    import tokenizers

    peer: Any = tokenizers.Tokenizer.from_file(path)
    batch["tokenizers"] = lambda texts: [each.ids for each in peer.encode_batch(list(texts))]
    single["tokenizers"] = lambda texts: [peer.encode(text).ids for text in texts]


def _tiktoken(path: str, core: Tokenizer, batch: dict[str, Encode], single: dict[str, Encode]) -> None:
    import tiktoken as peer_package

    peer = peer_package.Encoding(
        "peer",
        pat_str=PATTERNS.get(core.pattern, core.pattern).replace(r"\Z", "$"),
        mergeable_ranks={entry: id_ for id_, entry in core.ordinary_entries.items()},
        special_tokens=core.special_tokens,
    )
    batch["tiktoken"] = lambda texts: peer.encode_batch(list(texts), num_threads=1)
    single["tiktoken"] = lambda texts: [peer.encode(text) for text in texts]


def measured(
    text: str, what: str, given: Sequence[str], run: dict[str, Encode], turns: int
) -> list[harness.Row]:
    """A row a contender."""
    shares = {
        name: given[: len(given) // 10] if name in SLOW and "documents" in what else given for name in run
    }
    expected = next(iter(run.values()))(given)
    same = {name: each(shares[name]) == expected[: len(shares[name])] for name, each in run.items()}

    def seconds(name: str) -> Callable[[], float]:
        def turn() -> float:
            started = time.process_time()
            run[name](shares[name])
            return time.process_time() - started

        return turn

    taken = harness.take_turns({name: seconds(name) for name in run}, turns)
    rows = []
    for name, spent in taken.items():
        row = harness.summary(spent, sum(len(each.encode()) for each in shares[name]))
        each = row["seconds"] / len(shares[name]) * 1e6
        rows.append(
            {"text": text, "call": what, "contender": name, "us_each": each, "same_ids": same[name], **row}
        )
    return rows


if __name__ == "__main__":
    main()
