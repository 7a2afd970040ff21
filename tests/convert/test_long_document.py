"""A document in pieces has the ids and the split of the document at once, whatever the pieces."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from input_kinds import write_kind
from naive_conversion import END, Naive, expected_dataset, make_documents, read_dataset
from text_vocabularies import WORDS, text_vocabulary

from bpe.added_tokens import AddedToken
from bpe.long_text.long_document import encode_pieces
from bpe.normalizers import Form, Lowercase, Normalizer, Prepend, Replace, Strip
from bpe.tokenizer import Tokenizer
from convert import ConvertOptions
from convert import convert as run_conversion
from tokenmill.engines.inline_engine import InlineEngine


def pieces_of(text: bytes, rng: random.Random, longest: int) -> Iterator[bytes]:
    """The text cut at random between characters."""
    place = 0
    while place < len(text):
        stop = min(len(text), place + rng.randrange(1, longest + 1))
        while stop < len(text) and text[stop] & 0xC0 == 0x80:
            stop += 1
        yield text[place:stop]
        place = stop


def ids_of(tokenizer: Tokenizer, pieces: Iterator[bytes], try_bytes: int, **options: Any) -> list[int]:
    found = [part.tolist() for part in encode_pieces(tokenizer, pieces, try_bytes=try_bytes, **options)]
    return [id_ for part in found for id_ in part]


@pytest.mark.parametrize(
    "options",
    [
        {"normalizer": "NFC"},
        {"normalizer": Normalizer((Form("NFKD"), Lowercase()))},
        {"normalizer": Normalizer((Prepend("▁"), Replace(" ", "▁")))},
        {"normalizer": Normalizer((Strip(), Replace(r"\s{2,}", " ", is_expression=True)))},
        {"pattern": "[a-z]+|[^a-z]+"},
        {"pattern": r"\d{1,3}(?=(?:\d{3})*\b)|\d|\D+"},
    ],
    ids=str,
)
def test_normalized_text_and_expressions_have_the_same_ids(
    options: dict[str, Any], listed: Callable[..., Tokenizer], nasty_texts: dict[str, str]
) -> None:
    tokenizer = listed(**options)
    rng = random.Random(6)
    for text in nasty_texts.values():
        assert ids_of(tokenizer, pieces_of(text.encode(), rng, 9), 20) == tokenizer.encode(text)


def test_memory_is_bounded_where_tokens_look_around(listed: Any) -> None:
    """What is certain is given out while the rest is still to come."""
    plain = listed(special_tokens=[])
    tokenizer = Tokenizer(
        plain.ordinary_entries, plain.merges, [AddedToken("<s>", plain.vocab_size, rstrip=True)]
    )
    parts = encode_pieces(tokenizer, (b"the then <s>  a, " * 100 for _ in range(1000)), try_bytes=10_000)
    sizes = [len(part) for part in parts]
    assert len(sizes) > 100
    assert max(sizes) < 20_000


def test_memory_is_not_that_of_the_document(listed: Callable[..., Tokenizer]) -> None:
    tokenizer = listed()
    text = b"The quick brown fox. " * 20_000
    sizes = [
        len(part) for part in encode_pieces(tokenizer, pieces_of(text, random.Random(1), 999), "all", 1000)
    ]
    assert len(sizes) > 200
    assert max(sizes) < 3000


@pytest.mark.parametrize("stretch_bytes", [1, 7, 64, 500])
@pytest.mark.parametrize("more", [{}, {"validation_fraction": 0.5}, {"replace_invalid": True}], ids=str)
def test_conversions_do_not_depend_on_the_stretch(
    stretch_bytes: int,
    more: dict[str, Any],
    tokenizer_path: Path,
    naive: Naive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", stretch_bytes)
    monkeypatch.setattr("convert.shards.shard_writer.BUFFER_BYTES", 100)
    monkeypatch.setattr("convert.shards.shard_writer.MOVED_BYTES", 64)
    documents = make_documents(60, seed=8)
    documents[7] = " ".join(make_documents(40, seed=9)).replace(END, "")
    documents[30] = "x" * 700
    data = END.join(documents).encode()
    if more.get("replace_invalid"):
        data = data.replace("é".encode(), b"\xc3")
    path = tmp_path / "text"
    path.write_bytes(data)
    options = ConvertOptions(
        (str(path),),
        str(tokenizer_path),
        str(tmp_path / "out"),
        text_chunk_bytes=900,
        progress="none",
        **more,
    )
    summary = run_conversion(options, InlineEngine())
    fraction = more.get("validation_fraction", 0.005)
    expected = naive.convert([path], fraction=fraction)
    assert read_dataset(tmp_path / "out") == expected_dataset(expected)
    assert summary.intake.replaced == data.decode(errors="replace").count("\ufffd")
    assert {name: split.documents for name, split in expected.items()} == {
        name: counts.documents for name, counts in summary.splits.items()
    }


@pytest.mark.parametrize("name", ["llama", "gemma", "metaspace", "mistral", "clip", "suffix", "prefix"])
def test_long_documents_of_other_families_failed_or_had_other_ids(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", 400)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", 100)
    (tmp_path / "tokenizer.json").write_text(text_vocabulary(name), encoding="utf-8")
    rng = random.Random(name)
    texts = ["".join(rng.choices([*WORDS, "        ", "\n"], k=size)) for size in (3, 300, 1, 900)]
    texts += ["t" * 1001, "a" + " " * 900 + "b", "中" * 500]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    options = ConvertOptions(
        (str(tmp_path / "in.jsonl"),),
        str(tmp_path / "tokenizer.json"),
        str(tmp_path / "out"),
        validation_fraction=0,
        progress="none",
    )
    run_conversion(options, InlineEngine())
    encoded, starts, _ = read_dataset(tmp_path / "out")["train"]
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    rows = np.split(np.array(encoded) // 2, starts[1:-1])
    assert [row.tolist() for row in rows] == [
        theirs.encode(text, add_special_tokens=False).ids for text in texts
    ]


def test_the_split_of_a_long_document_is_its_contents(
    tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 50)
    texts = [f"{number} " * 100 for number in range(30)]
    (tmp_path / "text").write_text(END.join(texts))
    options = ConvertOptions(
        (str(tmp_path / "text"),),
        str(tokenizer_path),
        str(tmp_path / "out"),
        validation_fraction=0.5,
        progress="none",
    )
    run_conversion(options, InlineEngine())
    tokenizer = Tokenizer.load(tokenizer_path)
    import xxhash

    held_out = [text for text in texts if xxhash.xxh64_intdigest(text.encode(), 0) < 2**63]
    encoded, starts, _ = read_dataset(tmp_path / "out")["validation"]
    rows = np.split(np.array(encoded) // 2, starts[1:-1])
    assert [tokenizer.decode(row.astype(np.uint32)) for row in rows] == held_out
    assert 0 < len(held_out) < 30


@pytest.mark.parametrize("second", ["txt.none", "txt.gz", "jsonl.none"])
def test_behind_a_document_in_pieces_the_memory_can_grow(
    second: str, tokenizer_path: Path, naive: Naive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last piece was still in use when the next documents needed more room: "object cannot be re-sized"."""
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 50)
    rng = random.Random(second)
    for number in range(8):
        # As in a worker that has just begun.
        monkeypatch.setattr("convert.encode.encode_task._memory.buffers", None)
        folder = tmp_path / f"in-{number}"
        folder.mkdir()
        documents = [
            "".join(rng.choices(["the ", "of ", "東京 "], k=rng.choice([1, 9, 40, 300]))) for _ in range(12)
        ]
        write_kind(folder / "a", documents[:8], "txt.none")
        write_kind(folder / "b", documents[8:], second)
        options = ConvertOptions(
            [str(folder / "*")],
            str(tokenizer_path),
            str(tmp_path / f"{number}"),
            progress="none",
            validation_fraction=0,
            text_chunk_bytes=rng.choice([100, 700, None]),
        )
        run_conversion(options, InlineEngine())
        expected = naive.convert_documents([d.encode() for d in documents], True, fraction=0)
        assert read_dataset(tmp_path / f"{number}") == expected_dataset(expected)
