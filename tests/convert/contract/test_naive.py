"""convert equals the naive converter for every kind of input, whatever the text chunks, workers, engine and layout."""

from __future__ import annotations

import bz2
import json
import lzma
import tarfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import limits, small
from naive import CHAT_TEMPLATE, Expected, Naive, Rules, differences
from runs import Counts, Inline, convert, convert_by, exit_code, sample_documents, tokenizer, tree, workplace
from strategies import (
    COMPRESSIONS,
    END,
    RECORD_FORMS,
    SEPARATORS,
    START,
    Conversion,
    chats,
    compressed,
    conversions,
    csv_bytes,
    examples,
    prompts,
    record_files,
    tar_bytes,
    text_bytes,
    text_chunk_bytes,
)

import flat_tokens
from convert import Summary

# Quick ones more often. Spawned workers and clusters are in test_identical.py.
ENGINES = st.sampled_from(["inline"] * 8 + ["threads"] * 2 + ["fork", "pool"])


def expected_of(conversion: Conversion) -> Expected:
    rules = Rules(**{name: value for name, value in conversion.content.items() if name != "on_error"})
    return Naive(tokenizer(), rules).convert(conversion.corpus.inputs, conversion.corpus.validation)


def check(expected: Expected, summary: Summary, has_mask: bool = False) -> None:
    """The dataset `out` and the counts of its summary are as expected, and nothing else was left."""
    assert differences("out", expected, has_mask) == []
    counts = Counts.of(summary.lines())
    counts.check()
    found = counts.skipped, counts.replaced, counts.unreadable, counts.special
    assert found == (expected.skipped, expected.replaced, expected.unreadable, expected.special)
    for name, split in expected.splits.items():
        written = len(split.sequences)
        assert counts.splits[name] == (
            split.documents,
            written,
            split.documents - written,
            len(split.encoded),
        )
    assert not Path("out.partial").exists()


@pytest.mark.slow
@pytest.mark.promise("input-formats")
@pytest.mark.promise("no-loss")
@pytest.mark.parametrize("faults", [False, True], ids=["good", "bad records and files"])
@given(st.data(), ENGINES, st.integers(1, 3), limits())
@examples(2)
def test_any_corpus(
    faults: bool, data: st.DataObject, engine: str, workers: int, sizes: dict[str, Any]
) -> None:
    conversion = data.draw(conversions(faults))
    corpus, on_error = conversion.corpus, conversion.content["on_error"]
    options = {"inputs": corpus.inputs, "validation": corpus.validation, **conversion.options}
    options["text_chunk_bytes"] = text_chunk_bytes(data.draw, corpus.size)
    with workplace(), small(sizes):
        corpus.write()
        expected, before = expected_of(conversion), tree(".")
        bad = expected.skipped + expected.unreadable
        assert faults or not bad
        if on_error == "fail" and bad:
            assert exit_code(Inline(), **options) == 3
            assert not Path("out").exists()
            return
        check(expected, convert_by(engine, workers, **options))
        assert {name: content for name, content in tree(".").items() if not name.startswith("out/")} == before
        kept = Path("out/quarantine.jsonl")
        lines = [json.loads(line) for line in kept.read_bytes().splitlines()] if kept.exists() else []
        assert (expected.skipped if on_error == "quarantine" else 0) <= len(lines) <= bad
        assert {line["source"].split("/")[0] for line in lines} <= {
            name.split("/")[0] for name in corpus.files
        }


@pytest.mark.slow
@pytest.mark.promise("masks")
@pytest.mark.parametrize("kind", ["prompts", "chats"])
@given(st.data(), st.sampled_from(RECORD_FORMS), ENGINES, limits())
@examples(0.75)
def test_loss_masks(kind: str, data: st.DataObject, form: str, engine: str, sizes: dict[str, Any]) -> None:
    content: dict[str, Any]
    if kind == "prompts":
        records = data.draw(prompts())
        content = {"prompt_field": "prompt", "completion_field": "completion", "validation_fraction": 0.3}
        content |= data.draw(st.sampled_from([{}, {"append_token": END, "prepend_token": START}]))
        content["special_in_text"] = data.draw(st.sampled_from([None, "encode"]))
    else:
        pytest.importorskip("jinja2", reason="jinja2 is not installed")
        records, content = data.draw(chats()), {"messages_field": "messages", "validation_docs": 2}
        if form in ("csv", "tsv"):  # which hold lists as JSON
            records = [{"messages": json.dumps(record["messages"])} for record in records]
    corpus = data.draw(record_files("in", records, form))
    options: dict[str, Any] = {"chunk_tokens": 64, "zarr_format": data.draw(st.sampled_from([2, 3]))}
    options["text_chunk_bytes"] = text_chunk_bytes(data.draw, corpus.size, tasks=20)
    with workplace(), small(sizes):
        corpus.write()
        if kind == "chats":
            Path("chat.jinja").write_text(CHAT_TEMPLATE)
            options["chat_template"] = "chat.jinja"
        summary = convert_by(engine, inputs=corpus.inputs, **options, **content)
        check(Naive(tokenizer(), Rules(**content)).convert(corpus.inputs), summary, has_mask=True)


@pytest.mark.promise("copies")
@pytest.mark.parametrize("more", [{"validation_fraction": 0.4}, {"validation_docs": 20}], ids=str)
@pytest.mark.usefixtures("folder")
def test_copies_of_a_document_are_in_one_split(more: dict[str, Any]) -> None:
    texts = [text for text in sample_documents(60) if text]
    Path("a.txt").write_text(END.join(texts + texts[::3]))
    Path("b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[::-2]))
    convert(Inline(), inputs=["a.txt", "b.jsonl"], special_in_text="text", **more)
    dataset = flat_tokens.open("out")
    train, validation = (
        {tuple(ids.tolist()) for ids in split} for split in (dataset.train, dataset.validation)
    )
    assert min(len(train), len(validation)) > 5
    assert not train & validation
    assert len(train | validation) == len(set(texts))


@given(st.data(), st.sampled_from(SEPARATORS), st.booleans(), st.booleans(), st.integers(1, 9))
@examples(0.75)
def test_text_chunks_of_a_few_bytes(
    data: st.DataObject, separator: str, faults: bool, replace: bool, chunk_bytes: int
) -> None:
    content: dict[str, Any] = {"separator": separator, "replace_invalid": replace, "validation_fraction": 0.3}
    with workplace():
        Path("in.txt").write_bytes(data.draw(text_bytes(separator, faults))[:200])
        expected = Naive(tokenizer(), Rules(**content)).convert(["in.txt"])
        summary = convert(
            Inline(), inputs=["in.txt"], text_chunk_bytes=chunk_bytes, on_error="skip", **content
        )
        check(expected, summary)


@pytest.mark.slow
@pytest.mark.promise("no-loss")
@pytest.mark.parametrize("form", ["txt", "jsonl", "parquet", "txt.gz", "jsonl.zst"])
@pytest.mark.usefixtures("folder")
def test_documents_of_many_megabytes(form: str) -> None:
    texts = [
        "before",
        "the naïve façade " * 300_000 + END + "東京都" * 500_000,
        "between",
        "the " * 1_500_000,
        "z",
    ]
    form, _, compression = form.partition(".")
    if form == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"text": texts}), "in.parquet")
    else:
        data = END.join(texts) if form == "txt" else "\n".join(json.dumps({"text": text}) for text in texts)
        Path(f"in.{form}.{compression}".rstrip(".")).write_bytes(
            compressed(data.encode(), compression or "none")
        )
    name = next(path.name for path in Path().glob("in.*"))
    expected = Naive(tokenizer(), Rules()).convert([name])
    check(expected, convert(Inline(), inputs=[name], validation_fraction=0.0))


CUT_KINDS = [f"{form}.{rest}" for form in ("txt", "jsonl", "csv", "tar") for rest in COMPRESSIONS[1:]] + [
    "tar.none"
]


@pytest.mark.slow
@pytest.mark.promise("input-formats")
@pytest.mark.promise("no-loss")
@given(st.sampled_from(CUT_KINDS), st.floats(0, 1), st.integers(0, 1000), st.integers(20, 500))
@examples(1)
def test_a_truncated_file_keeps_the_documents_before_the_cut(
    kind: str, where: float, seed: int, chunk_bytes: int
) -> None:
    form, compression = kind.split(".")
    texts = [text or "empty" for text in sample_documents(60, seed)]
    records = [{"text": text} for text in texts]
    content = {
        "txt": END.join(texts).encode(),
        "jsonl": "\n".join(map(json.dumps, records)).encode(),
        "csv": csv_bytes(records, ",", None),
        "tar": tar_bytes([text.encode() for text in texts], tarfile.USTAR_FORMAT),
    }[form]
    whole = compressed(content, compression)
    end = len(whole.rstrip(b"\0")) if compression == "none" else len(whole)  # zeros end a tar archive
    cut = whole[: 1 + int(where * (end - 2))]
    name, trees = f"in.{form}" + ("" if compression == "none" else f".{compression}"), []
    with workplace():
        Path(name).write_bytes(cut)
        assert exit_code(Inline(), inputs=[name], output="failed") == 3
        for output, size in ("whole", None), ("chunks", chunk_bytes):
            summary = convert(Inline(), inputs=[name], output=output, on_error="skip", text_chunk_bytes=size)
            counts = Counts.of(summary.lines())
            counts.check()
            assert (counts.unreadable, counts.skipped) == (1, 0)
            trees.append(tree(output))
        splits = flat_tokens.open("whole").train, flat_tokens.open("whole").validation
        found = [split.sequence(at).tolist() for split in splits for at in range(len(split))]
        assert set(map(tokenizer().decode, found)) == set(texts[: counts.documents])
        assert counts.documents >= complete_documents(readable_part(cut, compression), form)
    assert trees[0] == trees[1]


def readable_part(data: bytes, compression: str) -> bytes:
    """What decompresses of a truncated file."""
    if compression == "zst":
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    decompress = {
        "none": bytes,
        "gz": zlib.decompressobj(31).decompress,
        "bz2": bz2.BZ2Decompressor().decompress,
        "xz": lzma.LZMADecompressor().decompress,
    }
    return decompress[compression](data)


def complete_documents(data: bytes, form: str) -> int:
    if (
        form == "tar"
    ):  # per document: a folder, two hidden entries, and its header and one or two blocks of text
        return data[:-1024].count(b".txt\0")
    return data.count({"txt": END.encode(), "jsonl": b"\n", "csv": b"\r\n"}[form]) - (form == "csv")


@given(
    st.integers(0, 6),
    st.none() | st.integers(0, 6),
    st.sampled_from(["skip", "quarantine"]),
    st.none() | st.just(3),
    st.randoms(),
)
@examples(0.3)
def test_a_limit_of_bad_records(
    bad: int, limit: int | None, on_error: str, held_out: int | None, random: Any
) -> None:
    lines = [b'{"text": "a"}'] * 5 + [b"{"] * bad
    random.shuffle(lines)
    options: dict[str, Any] = {"inputs": ["in.jsonl"], "text_chunk_bytes": 20}
    options |= {"on_error": on_error, "max_errors": limit, "validation_docs": held_out}
    with workplace():
        Path("in.jsonl").write_bytes(b"\n".join(lines))
        if limit is not None and bad > limit:
            assert exit_code(Inline(), **options) == 3
        else:
            assert Counts.of(convert(Inline(), **options).lines()).skipped == bad


def test_a_begin_token_before_a_long_text_next_to_records_with_a_loss_mask(folder: Path) -> None:
    """The mark of the begin token, which is not trained, was taken for a part of its ID."""
    (folder / "a.jsonl").write_text('{"prompt": "the quick", "completion": " brown fox"}')
    (folder / "b.txt").write_text("the quick brown fox " * 150_000)  # encoded in pieces
    fields = {"prompt_field": "prompt", "completion_field": "completion", "prepend_token": END}
    convert(Inline(), inputs=["a.jsonl", "b.txt"], validation_fraction=0.0, **fields)
    trained = flat_tokens.open("out").train.trained_of(1)
    assert not trained[0]
    assert trained[1:].all()
