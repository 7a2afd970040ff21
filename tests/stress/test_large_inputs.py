"""Conversions of documents up to many MB keep every document. They fill buffers of 64 KiB to 4 MiB many times."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from input_kinds import KINDS, write_kind
from runs import sample_documents, tokenizer_bytes
from strategies import END

import flat_tokens
from bpe import Tokenizer
from convert import ConvertOptions, convert

pytestmark = pytest.mark.stress


def draw_documents(rng: random.Random, text: str) -> list[str]:
    """Return documents of up to 12 million characters in total: most short, some long, some repetitive."""
    left, found = rng.choice([100_000, 2_000_000, 12_000_000]), list[str]()
    while left > 0:
        kind = rng.random()
        length = 0 if kind < 0.05 else int(200 * rng.paretovariate(1.1))
        if kind > 0.98:
            length = rng.randrange(1_000_000, 9_000_000)
        start = rng.randrange(max(1, len(text) - length))
        document = text[start : start + min(length, 9_000_000)]
        if 0.05 < kind < 0.08:
            document = document[:50] * rng.randrange(1, 40_000)
        elif 0.08 < kind < 0.1:
            document += END[: rng.randrange(len(END))]
        found.append(document)
        left -= len(document) + 1
    return found


def test_campaign(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path, text = tmp_path / "tokenizer.json", "".join(sample_documents(50_000, seed=1))
    path.write_bytes(tokenizer_bytes())
    tokenizer, seed = Tokenizer.load(path), request.config.getoption("--seed")
    for number in range(max(1, request.config.getoption("--points") // 10)):
        rng, folder = random.Random(f"{seed} {number}"), tmp_path / f"{number}"
        (folder / "in").mkdir(parents=True)
        expected = []
        for index in range(rng.choice([1, 1, 2, 4])):
            kind, documents = rng.choice(KINDS), draw_documents(rng, text)
            is_text = kind.startswith("txt.")
            documents = [document.replace(END, "") if is_text else document for document in documents]
            members = 1 if kind.endswith(".none") else rng.choice([1, 2, 5, 30])
            write_kind(folder / "in" / f"{index}", documents, kind, members, seed=rng.randrange(1 << 32))
            special = "all" if is_text else ()
            expected += [
                tokenizer.encode(document, allowed_special=special) for document in documents if document
            ]
        options = ConvertOptions(
            [folder / "in" / "*"],
            path,
            folder / "out",
            workers=rng.randint(1, 3),
            text_chunk_bytes=rng.choice([None, 1 << 16, 300_000, 1 << 20]),
            validation_fraction=0,
            progress="none",
        )
        convert(options)
        train = flat_tokens.open(folder / "out").train
        assert train.seq_count == len(expected), options
        for index, ids in enumerate(expected):
            assert train.sequence(index).tolist() == ids, (options, index)
