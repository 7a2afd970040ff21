"""Every kind of input gives the dataset of a naive conversion, whatever the text chunks and the number of workers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, compressed, json_lines, write_kind
from naive_conversion import END, Naive, Split, expected_dataset, make_documents, read_dataset, tree

import flat_tokens
from convert import ConvertOptions, Summary, convert
from convert.errors import BadInput, ConvertError, UsageError
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine


def run(inputs: Any, tokenizer: Path, output: Path, processes: int = 0, **more: Any) -> Summary:
    """Convert in this process, or in `processes` workers."""
    more = {"chunk_tokens": 64, "progress": "none", "validation_fraction": 0.3, **more}
    options = ConvertOptions(inputs, str(tokenizer), str(output), workers=max(processes, 1), **more)
    if processes:
        return convert(options, ProcessEngine(processes, "fork"))
    return convert(options, InlineEngine())


def check(output: Path, expected: dict[str, Split], summary: Summary) -> None:
    assert read_dataset(output) == expected_dataset(expected)
    for name, split in expected.items():
        counts = summary.splits[name]
        assert (counts.documents, counts.sequences) == (split.documents, len(split.sequences))
    assert summary.intake.records == summary.documents + summary.intake.skipped_count


def documents_of(kind: str) -> list[str]:
    """23 documents; as text they hold no separator, and the last is not empty."""
    documents = [*make_documents(20, seed=8), "", "", "the end"]
    if kind.startswith("txt"):
        return documents
    return [*documents, f"holds {END} twice {END}", f"<{END}>", ""]


def expected_of(kind: str, naive: Naive, documents: Sequence[str]) -> dict[str, Split]:
    return naive.convert_documents([d.encode() for d in documents], kind.startswith("txt"), fraction=0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_the_naive_conversion(kind: str, tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    documents = documents_of(kind)
    path = write_kind(tmp_path / "input", documents, kind, members=3)
    expected = expected_of(kind, naive, documents)
    assert all(split.sequences for split in expected.values())
    first: dict[str, bytes] = {}
    size = path.stat().st_size
    least = 1 if size <= 1500 else size // 500  # 500 text chunks, many of them in the middle of a character
    rows: list[tuple[int, int | None]] = [(0, least), (0, least + 6), (0, size // 3 + 1), (0, None)]
    longer = 8 if kind == "tar.none" else 1  # most of it is padding
    rows += [(1, 200 * longer), (2, 97 * longer), (3, 150 * longer)]
    for processes, chunk_bytes in rows:
        output = tmp_path / f"{processes}-{chunk_bytes}"
        summary = run(path, tokenizer_path, output, processes, text_chunk_bytes=chunk_bytes)
        check(output, expected, summary)
        first = first or tree(output)
        assert tree(output) == first, (processes, chunk_bytes)


@pytest.mark.parametrize("long_bytes", [0, 40, 200])
def test_long_documents_between_others(
    long_bytes: int, tokenizer_path: Path, naive: Naive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", long_bytes)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", 50)
    documents = documents_of("jsonl.none")
    path = write_kind(tmp_path / "input", documents, "jsonl.none", members=1)
    summary = run(path, tokenizer_path, tmp_path / "out")
    check(tmp_path / "out", expected_of("jsonl.none", naive, documents), summary)


@pytest.mark.parametrize("block_bytes", [1, 5, 64])
@pytest.mark.parametrize("kind", ["txt.gz", "jsonl.zst", "jsonl.none"])
def test_blocks_of_every_size(
    kind: str,
    block_bytes: int,
    tokenizer_path: Path,
    naive: Naive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = documents_of(kind)
    path = write_kind(tmp_path / "input", documents, kind, members=2)
    monkeypatch.setattr("tokenmill.inputs.blocks.record_blocks.__defaults__", (0, block_bytes))
    output = tmp_path / "out"
    check(output, expected_of(kind, naive, documents), run(path, tokenizer_path, output))


def test_a_corpus_of_all_kinds(tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    documents: list[str] = []
    expected = {"train": Split([]), "validation": Split([])}
    for index, kind in enumerate(KINDS):
        documents = [*make_documents(6, seed=index)[:-1], "x"]
        write_kind(folder / f"{index:02}", documents, kind)
        for name, split in expected_of(kind, naive, documents).items():
            expected[name].sequences += split.sequences
            expected[name].documents += split.documents
    for chunk_bytes in (100, None):
        output = tmp_path / str(chunk_bytes)
        check(output, expected, run(folder / "*", tokenizer_path, output, 2, text_chunk_bytes=chunk_bytes))
    kinds = [source["kind"] for source in flat_tokens.open(output).sources()]
    names = {"txt": "text", "feather": "arrow"}
    forms = [(names.get(form, form), rest) for form, _, rest in (kind.partition(".") for kind in KINDS)]
    assert kinds == [f"{form}.{rest}".removesuffix(".none") for form, rest in forms]


def test_the_same_document_falls_in_the_same_split_in_every_kind(
    tokenizer_path: Path, tmp_path: Path
) -> None:
    documents = [f"document {index}" for index in range(40)]
    datasets = []
    for kind in KINDS:
        path = write_kind(tmp_path / "input", documents, kind)
        run(path, tokenizer_path, tmp_path / kind)
        datasets.append(read_dataset(tmp_path / kind))
    assert all(dataset == datasets[0] for dataset in datasets)


def test_names_and_pointers_lead_to_the_text(tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    documents = make_documents(8, seed=3)
    rows = {
        "body": [{"text": "no", "body": text} for text in documents],
        "a.b": [{"a": {"b": "no"}, "a.b": text} for text in documents],
        "/a/b": [{"a": {"b": text}} for text in documents],
        "/a~1b/~0/1": [{"a/b": {"~": ["no", text]}} for text in documents],
    }
    expected = naive.convert_documents([d.encode() for d in documents], fraction=0.3)
    for index, (field, records) in enumerate(rows.items()):
        path = tmp_path / f"{index}.jsonl"
        path.write_text("\n".join(json.dumps(record) for record in records))
        output = tmp_path / f"{index}.zarr"
        check(output, expected, run(path, tokenizer_path, output, text_field=field))


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        ("string", "string"),
        ("large_string", "large_string"),
        ("binary", "binary"),
        ("large_binary", "large_binary"),
        ("string_view", "string_view"),
        ("binary_view", "binary_view"),
        ("dictionary", "dictionary"),
        ("/nested/text", "struct"),
    ],
)
def test_parquet_columns_that_hold_text(
    column: str, type_: str, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    documents = make_documents(30, seed=4)
    array: Any
    if type_ == "struct":
        table = pa.table({"nested": pa.array([{"text": text, "n": 1} for text in documents])})
    else:
        array = pa.array([d.encode() for d in documents] if "binary" in type_ else documents)
        array = array.dictionary_encode() if type_ == "dictionary" else array.cast(type_)
        table = pa.table({"n": list(range(30)), column: array})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=7, data_page_size=100)
    expected = naive.convert_documents([d.encode() for d in documents], fraction=0.3)
    for chunk_bytes in (50, None):
        output = tmp_path / f"{chunk_bytes}.zarr"
        summary = run(
            tmp_path / "in.parquet", tokenizer_path, output, text_field=column, text_chunk_bytes=chunk_bytes
        )
        check(output, expected, summary)


def test_parquet_files_that_cannot_be_used(tokenizer_path: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "in.parquet"
    rows = [
        ({"body": ["a"]}, "'text'.*body.*--text-field"),
        ({"text": [1]}, r"in\.parquet: .*'text'.*int64"),
        ({"text": [["a"]]}, r"in\.parquet: .*'text'.*list<"),
    ]
    for columns, message in rows:
        pq.write_table(pa.table(columns), path)
        with pytest.raises(BadInput, match=message):
            run(path, tokenizer_path, tmp_path / "out")
    pq.write_table(pa.table({"text": ["a" * 50, "b"]}), path)
    whole = path.read_bytes()
    for size in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ConvertError, match=r"in\.parquet"):
            run(path, tokenizer_path, tmp_path / "out")


@pytest.mark.parametrize("plain_footer", [False, True])
def test_an_encrypted_column_ended_the_worker(
    plain_footer: bool, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    import base64

    import pyarrow as pa
    import pyarrow.parquet as pq

    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):  # type: ignore[name-defined,misc]
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _: str) -> bytes:
            return base64.b64encode(key)

    documents = make_documents(9, seed=3)
    how = encryption.EncryptionConfiguration(
        "f", column_keys={"c": ["secret"]}, plaintext_footer=plain_footer
    )
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(), how
    )
    path = tmp_path / "in.parquet"
    table = pa.table({"text": documents, "secret": documents})
    pq.write_table(table, path, row_group_size=4, encryption_properties=properties)
    with pytest.raises(BadInput, match=r"in\.parquet"):
        run(path, tokenizer_path, tmp_path / "out", processes=1, text_field="secret")
    if plain_footer:
        summary = run(path, tokenizer_path, tmp_path / "out")
        check(
            tmp_path / "out", naive.convert_documents([d.encode() for d in documents], fraction=0.3), summary
        )


def test_a_damaged_parquet_page_is_found_by_its_check_sum(tokenizer_path: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "in.parquet"
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"text": ["some text " * 20, "other"]}), path, write_statistics=False, **options)
    data = bytearray(path.read_bytes())
    data[data.index(b"some text") + 30] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadInput):
        run(path, tokenizer_path, tmp_path / "out")


def test_empty_files_of_every_kind(tokenizer_path: Path, tmp_path: Path) -> None:
    for kind in KINDS:
        path = write_kind(tmp_path / "input", [], kind)
        summary = run(path, tokenizer_path, tmp_path / kind)
        assert (summary.documents, summary.tokens, summary.intake.records) == (0, 0, 0)


def test_marks_and_line_ends_of_json_lines(tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    lines = b'\xef\xbb\xbf{"text":"a"}\r\n\r\n \t\r\n{"text":"b\\r\\n\xe2\x80\xa8\xc2\x85"}\r\n{"text":"c"}\r\n\n\n'
    path.write_bytes(lines)
    expected = naive.convert_documents([b"a", "b\r\n\u2028\u0085".encode(), b"c"], fraction=0.3)
    first: dict[str, bytes] = {}
    for chunk_bytes in range(1, len(lines) + 1):
        output = tmp_path / str(chunk_bytes)
        summary = run(path, tokenizer_path, output, text_chunk_bytes=chunk_bytes, compression="none")
        if not first:
            check(output, expected, summary)
            first = tree(output)
        assert tree(output) == first
        assert summary.intake.blank == 4
    path.write_bytes('{"text":"a"}'.encode("utf-16"))
    with pytest.raises(Exception, match="looks like UTF-16"):
        run(path, tokenizer_path, tmp_path / "out")


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl"])
@pytest.mark.parametrize("more", [{}, {"replace_invalid": True}, {"on_error": "skip"}], ids=str)
def test_compressed_data_under_a_plain_name_was_taken_for_text(
    more: dict[str, Any], name: str, tokenizer_path: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(compressed(b"text " * 1000, "gz"))
    with pytest.raises(Exception, match=f"{name}"):
        run(tmp_path / name, tokenizer_path, tmp_path / "out", **{**more, "on_error": "fail"})
    if more.get("on_error") == "skip":
        (error,) = run(tmp_path / name, tokenizer_path, tmp_path / "out", **more).unreadable
        assert f"{name}: looks like gzip data" in error


def test_a_forced_format_and_kinds_that_are_refused(
    tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    path = tmp_path / "records.log.gz"
    path.write_bytes(compressed(json_lines(["a", "b c"]), "gz"))
    output = tmp_path / "out"
    summary = run(path, tokenizer_path, output, input_format="jsonl")
    check(output, naive.convert_documents([b"a", b"b c"], fraction=0.3), summary)
    for name in ("a.zip", "a.7z", "a.parquet.gz"):
        (tmp_path / name).touch()
        with pytest.raises(UsageError, match=name):
            run(tmp_path / name, tokenizer_path, tmp_path / "no")
    (tmp_path / "in.parquet").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"in\.parquet"):
        run(tmp_path / "in.parquet", tokenizer_path, tmp_path / "no", input_format="jsonl")


@pytest.mark.parametrize(("module", "name"), [("pyarrow", "a.parquet"), ("zstandard", "a.zst")])
def test_a_missing_library_names_the_extra(
    module: str, name: str, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setattr("tokenmill.inputs.kinds.find_spec", lambda wanted: None if wanted == module else 1)
    with pytest.raises(UsageError, match=rf"{module}.*'tokenmill\[inputs\]'"):
        run(tmp_path / name, tokenizer_path, tmp_path / "out")
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize("long_bytes", [0, 1, 40, 200])
@pytest.mark.parametrize("kind", ["jsonl.none", "jsonl.gz", "parquet.none"])
@pytest.mark.parametrize("special", ["text", "encode"])
def test_long_documents_of_a_batch_go_in_pieces(
    special: str,
    kind: str,
    long_bytes: int,
    tokenizer_path: Path,
    naive: Naive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = documents_of(kind)
    path = write_kind(tmp_path / "input", documents, kind)
    expected = naive.convert_documents([d.encode() for d in documents], special == "encode", fraction=0.3)
    monkeypatch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", long_bytes)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", 7)
    for count, options in enumerate(
        ({"validation_fraction": 0.3}, {"validation_fraction": None, "validation_docs": 5})
    ):
        output = tmp_path / f"{count}"
        summary = run(path, tokenizer_path, output, special_in_text=special, **options)
        if not count:
            check(output, expected, summary)
        with monkeypatch.context() as patch:
            patch.setattr("convert.encode.document_encoder.LONG_DOCUMENT_BYTES", 1 << 30)
            run(path, tokenizer_path, tmp_path / f"whole-{count}", special_in_text=special, **options)
        assert tree(output) == tree(tmp_path / f"whole-{count}")


@pytest.mark.parametrize("kind", ["txt.none", "txt.gz", "txt.zst", "jsonl.none", "jsonl.gz"])
def test_a_task_tells_how_much_of_its_file_it_is_through(
    kind: str, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8)
    documents = [rng.randbytes(5000).hex() for _ in range(1500)] + ["a", rng.randbytes(3 << 20).hex()]
    path = write_kind(tmp_path / "input", documents, kind)
    told: list[int] = []

    def take_step(place: Any = None, done_bytes: int = 0) -> None:
        told.append(done_bytes)

    monkeypatch.setattr("convert.encode.chunk_reader.take_step", take_step)
    run(path, tokenizer_path, tmp_path / "out", text_chunk_bytes=1 << 30, chunk_tokens=1 << 16)
    size = path.stat().st_size
    assert len(told) > 3
    assert told == sorted(told)
    assert told[0] < size // 2 < told[-1] <= size


@pytest.mark.parametrize(("kind", "tells"), [("txt.none", False), ("txt.gz", True), ("jsonl.none", False)])
def test_the_summary_tells_of_more_text_than_the_files_have_bytes(
    kind: str, tells: bool, tokenizer_path: Path, tmp_path: Path
) -> None:
    path = write_kind(tmp_path / "input", ["the same again"] * 1000, kind)
    first = run(path, tokenizer_path, tmp_path / "out", chunk_tokens=1 << 16).lines()[0]
    assert ("in 1 file with 14.0 kB of text, " in first) == tells
    assert ("in 1 file, " in first) != tells
