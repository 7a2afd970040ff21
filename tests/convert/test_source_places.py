"""Where sequences come from, against a naive reading of the inputs: the text at the place gives the sequence's ids."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import pickle
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from input_kinds import KINDS, write_kind
from naive_conversion import END, Naive, make_documents, tree
from stopped_runs import leave_partial, options

import flat_tokens
from convert import ConvertOptions, append
from convert import convert as run_conversion
from convert.__main__ import main
from flat_tokens import DatasetError, Loader, PackedSequences, RangeError, SourcePlace, verify_dataset
from flat_tokens.__main__ import main as read_command
from flat_tokens.storage.manifest import read_manifest
from flat_tokens.views import selected
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine

SPLITS = ("train", "validation")


def text_of(path: Path) -> bytes:
    """The bytes of a file, decompressed."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            return stream.read()
    decompress = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
    return decompress.get(path.suffix, bytes)(data)


def naive_places(path: Path, separator: bytes = END.encode()) -> Iterator[tuple[SourcePlace, bytes]]:
    """Each document of a file and where it begins, empty ones too."""
    kinds = path.name.split(".")
    if "parquet" in kinds or "arrow" in kinds or "feather" in kinds:
        import pyarrow
        import pyarrow.parquet

        if "parquet" in kinds:
            table = pyarrow.parquet.read_table(path)
        else:
            make = pyarrow.ipc.open_stream if "arrow" in kinds else pyarrow.ipc.open_file
            table = make(str(path)).read_all()
        for row, text in enumerate(table["text"].to_pylist()):
            yield SourcePlace(str(path), row, None), (text or "").encode()
    elif "csv" in kinds or "tsv" in kinds:
        delimiter = "," if "csv" in kinds else "\t"
        rows = csv.reader(io.StringIO(text_of(path).decode(), newline=""), delimiter=delimiter)
        next(rows)
        for row, (_, text) in enumerate(rows):
            yield SourcePlace(str(path), row, None), text.encode()
    elif "tar" in kinds:
        with tarfile.open(fileobj=io.BytesIO(text_of(path))) as archive:
            files = [member for member in archive if member.isfile() and "/." not in member.name.lstrip(".")]
            for row, member in enumerate(files):
                file = archive.extractfile(member)
                assert file is not None
                yield SourcePlace(str(path), row, None), file.read()
    else:
        data, at = text_of(path), 0
        is_text = "txt" in kinds
        for part in data.split(separator if is_text else b"\n"):
            if is_text or part.strip():
                text = part if is_text else json.loads(part)["text"].encode()
                yield SourcePlace(str(path), None, at), text
            at += len(part) + (len(separator) if is_text else 1)


def check(path: str, inputs: list[Path], naive: Naive, is_text: bool = True) -> flat_tokens.Dataset:
    """Every place gives its sequence, in the order of the inputs, and every document with text has one."""
    dataset = flat_tokens.open(path)
    expected = {place: document for own in inputs for place, document in naive_places(own) if document}
    order = {place: number for number, place in enumerate(expected)}
    found: list[SourcePlace] = []
    for split in SPLITS:
        array = dataset[split]
        places = array.sources_of(np.arange(array.seq_count))
        assert [array.source_of(index) for index in range(array.seq_count)] == places
        for index, place in enumerate(places):
            assert array.sequence(index).tolist() == naive.ids(expected[place], is_text)
        assert [order[place] for place in places] == sorted(order[place] for place in places)
        found += places
    assert sorted(found, key=order.__getitem__) == list(expected)
    assert verify_dataset(path).ok
    return dataset


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards a text chunk, parts in files of their own, short runs and windows."""
    monkeypatch.setattr("convert.planning.plan.LEAST_SHARD_BYTES", 500)
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", 24)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 50)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (128, 128))


def run(output: str, inputs: list[Path], executor: Any = None, **more: Any) -> None:
    given = {"validation_fraction": 0.3, "chunk_tokens": 64, "text_chunk_bytes": 500, "workers": 2, **more}
    given = {"source_places": "yes", "progress": "none", **given}
    run_conversion(
        ConvertOptions([str(p) for p in inputs], "tok.json", output, **given), executor or InlineEngine()
    )


def documents_of(seed: int) -> list[str]:
    return ["", *make_documents(20, seed=seed), "", "", *make_documents(20, seed=seed + 1), "the end"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_against_a_naive_reading(kind: str, here: Path, naive: Naive) -> None:
    Path("in").mkdir()
    inputs = [
        write_kind(Path("in") / name, documents_of(seed), kind, members=members)
        for name, seed, members in (("a", 1, 1), ("b", 2, 3))
    ]
    inputs.append(write_kind(Path("in/c"), [""], kind))
    run("out", inputs)
    dataset = check("out", inputs, naive, kind.startswith("txt"))
    manifest = read_manifest(dataset.path)
    assert manifest is not None
    assert len(manifest.sources) == 3
    for split in SPLITS:
        array = dataset[split]
        places = array.sources_of(np.arange(array.seq_count))
        for source in manifest.sources:
            own = [len(array[i]) for i, place in enumerate(places) if place.path == source["path"]]
            assert (source[f"{split}_sequences"], source[f"{split}_tokens"]) == (len(own), sum(own))


def test_bytes_do_not_depend_on_the_run(here: Path, naive: Naive) -> None:
    run("first", [Path("en.txt")], validation_fraction=0.2)
    for number, more in enumerate(
        [
            {"executor": ProcessEngine(1, "fork")},
            {"executor": ProcessEngine(2, "fork"), "text_chunk_bytes": 300},
            {"text_chunk_bytes": 1 << 20},
        ]
    ):
        run(f"out{number}", [Path("en.txt")], validation_fraction=0.2, **more)
        assert tree(Path(f"out{number}")) == tree(Path("first"))
    check("first", [Path("en.txt")], naive)


def test_held_out_by_number_and_by_files(here: Path, naive: Naive) -> None:
    write_kind(Path("a"), documents_of(1), "txt.none")
    write_kind(Path("b"), documents_of(4), "jsonl.none")
    inputs = [Path("a.txt"), Path("b.jsonl")]
    run("number", inputs, validation_fraction=None, validation_docs=7)
    assert flat_tokens.open("number").validation.seq_count == 7
    run("files", inputs[:1], validation_fraction=None, validation=["b.jsonl"])
    dataset = flat_tokens.open("files")
    assert {place.path for place in dataset.validation.sources_of([0, -1])} == {"b.jsonl"}
    assert {place.path for place in dataset.train.sources_of([0, -1])} == {"a.txt"}


def test_bad_bytes_do_not_shift_places(here: Path) -> None:
    data = b"\xff\xffone" + END.encode() + b"two" + END.encode() + b"three \xfe" + END.encode() + b"four"
    Path("a.txt").write_bytes(data)
    for invalid, texts in (
        ("replace", [b"\xff\xffone", b"two", b"three", b"four"]),
        ("skip", [b"two", b"four"]),
    ):
        for special in ("encode", "text"):
            name = f"{invalid}-{special}"
            run(name, [Path("a.txt")], invalid=invalid, special_in_text=special, validation_fraction=0.0)
            found = [place.byte for place in flat_tokens.open(name).train.sources_of(range(len(texts)))]
            assert found == [data.index(text) for text in texts]


def test_records_that_are_left_out(here: Path) -> None:
    lines = [
        b'{"text": "a one"}',
        b'{"no": 1}',
        b'{"text": ""}',
        b"",
        b'{"text": "<|endoftext|>"}',
        b'{"text": "b two"}',
    ]
    Path("a.jsonl").write_bytes(b"\n".join(lines))
    run("out", [Path("a.jsonl")], on_error="skip", special_in_text="error", validation_fraction=0.0)
    array = flat_tokens.open("out").train
    assert array.sources_of([0, 1]) == [
        SourcePlace("a.jsonl", None, 0),
        SourcePlace("a.jsonl", None, len(b"\n".join(lines[:5])) + 1),
    ]


@pytest.mark.parametrize("kind", ["txt.none", "txt.gz", "jsonl.none", "parquet.none"])
def test_documents_in_pieces(kind: str, here: Path, naive: Naive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", 200)
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 256)
    documents = documents_of(7)
    documents.insert(10, "".join(make_documents(40, seed=8)).replace(END, ""))
    path = write_kind(Path("long"), documents, kind)
    run("out", [path])
    check("out", [path], naive, kind.startswith("txt"))


def test_places_of_short_documents_are_left_out_unless_asked_for(here: Path) -> None:
    Path("words.txt").write_text(END.join(["a", "b", "c"] * 500))
    more = {"validation_fraction": 0.3, "chunk_tokens": 64, "compression": "none"}
    for mode, has_places in (("auto", False), ("no", False), ("yes", True)):
        run(mode, [Path("words.txt")], source_places=mode, **more)
        assert Path(mode, "train", "seq_places").exists() == has_places
        assert verify_dataset(mode).ok
        manifest = read_manifest(Path(mode))
        assert manifest is not None
        assert manifest.options["source_places"] == ("yes" if has_places else "no")
        assert manifest.sources[0]["train_sequences"] > 0
    assert tree(Path("auto")) == tree(Path("no"))
    with pytest.raises(DatasetError, match="seq_places.*--source-places"):
        flat_tokens.open("auto").train.source_of(0)
    assert tree(Path("auto")) != tree(Path("yes"))
    Path("long.txt").write_text("".join(make_documents(300, seed=1)).replace(END, ""))
    run("auto-long", [Path("long.txt")], source_places="auto", chunk_tokens=1 << 12)
    assert Path("auto-long", "train", "seq_places").exists()


@pytest.mark.parametrize("merged_runs", [0, 1, 7])
def test_resumed(merged_runs: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"source_places": "yes", "chunk_tokens": 64, "validation_fraction": 0.3}
    run_conversion(options(output="clean", **given), InlineEngine())
    leave_partial(monkeypatch, merged_runs, **given)
    run_conversion(options(**given), InlineEngine())
    assert tree(here / "out") == tree(here / "clean")


def test_damage_is_found(here: Path) -> None:
    for zarr_format, compression in ((2, "zstd"), (2, "none"), (3, "zstd")):
        name = f"out-{zarr_format}-{compression}"
        run(name, [Path("en.txt")], zarr_format=zarr_format, compression=compression)
        files = [path for path in Path(name, "train", "seq_places").rglob("*") if path.is_file()]
        assert len(files) > 1
        for path in files:
            data = path.read_bytes()
            for changed in (data[:-1], bytes([data[0] ^ 4]) + data[1:], None):
                path.unlink()
                if changed is not None:
                    path.write_bytes(changed)
                report = verify_dataset(name)
                assert any("train/seq_places" in problem for problem in report.problems)
                path.write_bytes(data)
        assert verify_dataset(name).ok


def test_views_and_parts(here: Path) -> None:
    write_kind(Path("a"), documents_of(1), "txt.none")
    write_kind(Path("b"), documents_of(4), "jsonl.none")
    run("out", [Path("en.txt")])
    for name in ("a.txt", "b.jsonl"):
        append(
            ConvertOptions(
                [name], "tok.json", "out", progress="none", validation_fraction=0.3, source_places="yes"
            ),
            InlineEngine(),
        )
    train = flat_tokens.open("out").train
    all_places = train.sources_of(range(train.seq_count))
    parts = [flat_tokens.open(path).train for path in ("out", "out/part-1", "out/part-2")]
    alone = [place for part in parts[1:] for place in part.sources_of(range(part.seq_count))]
    assert all_places[-len(alone) :] == alone
    assert list(dict.fromkeys(place.path for place in all_places)) == [
        "en.txt",
        "a.txt",
        "b.jsonl",
    ]
    chosen = np.arange(2, train.seq_count, 3)
    view = selected(train, chosen)
    assert view.sources_of(range(view.seq_count)) == [all_places[number] for number in chosen]
    assert pickle.loads(pickle.dumps(view)).source_of(-1) == all_places[chosen[-1]]
    with pytest.raises(RangeError):
        view.source_of(view.seq_count)


@pytest.mark.parametrize("rows", ["packed", "with a tail", "sequences", "greedy packs", "best-fit packs"])
@pytest.mark.parametrize("hosts", [1, 2])
def test_sources_of_a_step(rows: str, hosts: int, here: Path) -> None:
    run("out", [Path("en.txt")], validation_fraction=0.0)
    train = flat_tokens.open("out").train
    all_places = train.sources_of(range(train.seq_count))
    array: Any = train
    if "packs" in rows:
        strategy = rows.split()[0]
        array = PackedSequences(train, 32, split_across_pack=True, strategy=strategy)
    seen = np.zeros(train.seq_count, dtype=np.int64)
    for host in range(hosts):
        loader = Loader(
            array,
            seq_len=32,
            batch_size=4,
            packed=rows != "sequences",
            drop_last=rows == "packed",
            rank=host,
            world_size=hosts,
        )
        for step in range(loader.steps_per_epoch):
            found, batch = loader.sources_of(step), loader.batch(step)
            assert len(found) == len(batch.targets)
            for row, parts in enumerate(found):
                is_token = ~batch.is_padding[row]
                assert bool(parts) == is_token.any()
                bounds = [*(part.column for part in parts), int(is_token.sum())]
                assert bounds == sorted(bounds)
                assert bounds[0] == 0
                for part, start, stop in zip(parts, bounds[:-1], bounds[1:], strict=True):
                    assert part.source == all_places[part.sequence]
                    ids = batch.targets[row, start:stop].astype(np.uint32)
                    assert ids.tobytes() in train.sequence(part.sequence).tobytes()
                    seen[part.sequence] += len(ids)
    if rows != "packed":  # then nothing is left out
        assert seen.tolist() == np.diff(train.seq_starts[:].astype(np.int64)).tolist()


def test_the_commands(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["en.txt", "--tokenizer", "tok.json", "--output", "out", "--source-places", "yes", "--quiet"])
        == 0
    )
    capsys.readouterr()
    assert read_command(["head", "out", "--sequences", "2", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    train = flat_tokens.open("out").train
    assert [first["source"], second["source"]] == [place._asdict() for place in train.sources_of([0, 1])]
    assert read_command(["head", "out", "--sequences", "1"]) == 0
    assert "  source: en.txt, byte 0" in capsys.readouterr().out
    assert read_command(["info", "out"]) == 0
    assert f"train tokens {train.token_count:,}" in capsys.readouterr().out


def test_an_older_manifest_says_what_it_lacks(here: Path) -> None:
    run("out", [Path("en.txt")])
    manifest = Path("out/manifest.json")
    manifest.unlink()
    with pytest.raises(DatasetError):
        flat_tokens.open("out").train.source_of(0)


@pytest.mark.parametrize("mode", ["auto", "yes"])
def test_on_a_store(mode: str, here: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    from store_runs import in_memory

    given: dict[str, Any] = {"source_places": mode, "zarr_format": 3, "chunk_tokens": 64}
    run_conversion(options(output="local", **given), InlineEngine())
    place = in_memory(here)
    place.run(**given)
    assert place.dataset() == tree(here / "local")
    train = flat_tokens.open(place.target).train
    if mode == "yes":
        everything = range(train.seq_count)
        assert train.sources_of(everything) == flat_tokens.open("local").train.sources_of(everything)
    else:
        with pytest.raises(DatasetError, match="--source-places"):
            train.source_of(0)
