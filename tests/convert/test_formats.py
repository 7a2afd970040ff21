"""Fields, columns and damaged files that the drawn corpora of contract/test_naive.py do not have."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from runs import (
    Inline,
    arrays,
    convert,
    error_of,
    options_of,
    rejected,
    run_here,
    sample_documents,
    sample_text,
    sequences,
    sources_of,
    tokenizer,
    tree,
)
from strategies import END, compressed

TEXTS = sample_documents(30, seed=4)
SPLIT = {"validation_fraction": 0.3}


def write_lines(name: str, records: list[Any]) -> None:
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def is_as_json_lines(name: str, **more: Any) -> bool:
    """Whether a file gives the dataset that JSON Lines with TEXTS give, for any text chunks."""
    write_lines("plain.jsonl", [{"text": text} for text in TEXTS])
    convert(Inline(), inputs=["plain.jsonl"], output="plain", **SPLIT)
    for output, size in ("whole", None), ("chunks", 50):
        convert(Inline(), inputs=[name], output=output, text_chunk_bytes=size, **SPLIT, **more)
    return arrays("whole") == arrays("chunks") == arrays("plain")


@pytest.mark.parametrize(
    ("field", "record"),
    [
        ("body", lambda text: {"text": "no", "body": text}),
        ("a.b", lambda text: {"a": {"b": "no"}, "a.b": text}),
        ("/a/b", lambda text: {"a": {"b": text}}),
        ("/a~1b/~0/1", lambda text: {"a/b": {"~": ["no", text]}}),
    ],
)
@pytest.mark.usefixtures("folder")
def test_names_and_pointers_lead_to_the_text(field: str, record: Any) -> None:
    write_lines("in.jsonl", [record(text) for text in TEXTS])
    assert is_as_json_lines("in.jsonl", text_field=field)


PARQUET = ["string", "large_string", "binary", "large_binary", "string_view", "binary_view", "dictionary"]


@pytest.mark.parametrize("kind", [*PARQUET, "struct"])
@pytest.mark.usefixtures("folder")
def test_parquet_columns_that_hold_text(kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    array = pyarrow.array([text.encode() for text in TEXTS] if "binary" in kind else TEXTS)
    if kind == "struct":
        array = pyarrow.array([{"text": text, "n": 1} for text in TEXTS])
    else:
        array = array.dictionary_encode() if kind == "dictionary" else array.cast(kind)
    table = pyarrow.table({"n": list(range(30)), "column": array})
    pytest.importorskip("pyarrow.parquet").write_table(
        table, "in.parquet", row_group_size=7, data_page_size=100
    )
    assert is_as_json_lines("in.parquet", text_field="/column/text" if kind == "struct" else "column")


@pytest.mark.parametrize(
    ("column", "text"),
    [({"body": ["a"]}, "--text-field"), ({"text": [1]}, "int64"), ({"text": [["a"]]}, "list<")],
)
@pytest.mark.usefixtures("folder")
def test_parquet_columns_without_text(column: dict[str, Any], text: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(column), "in.parquet")
    error = error_of(Inline(), inputs=["in.parquet"])
    assert error.exit_code == 3
    assert str(error).startswith("in.parquet: ")
    assert text in str(error)


@pytest.mark.parametrize("plain_footer", [False, True])
@pytest.mark.usefixtures("folder")
def test_an_encrypted_column_ended_the_worker(plain_footer: bool) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet, encryption = (
        pytest.importorskip("pyarrow.parquet"),
        pytest.importorskip("pyarrow.parquet.encryption"),
    )

    class Keys(encryption.KmsClient):  # type: ignore[name-defined,misc]
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _: str) -> bytes:
            return base64.b64encode(key)

    properties = encryption.CryptoFactory(Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration("f", column_keys={"c": ["secret"]}, plaintext_footer=plain_footer),
    )
    table = pyarrow.table({"text": TEXTS, "secret": TEXTS})
    parquet.write_table(table, "in.parquet", row_group_size=4, encryption_properties=properties)
    error = error_of(inputs=["in.parquet"], workers=1, text_field="secret")
    assert error.exit_code == 3
    assert "in.parquet" in str(error)
    if plain_footer:
        assert is_as_json_lines("in.parquet")


@pytest.mark.usefixtures("folder")
def test_an_input_format_overrides_the_extension() -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
    Path("records.log.gz").write_bytes(compressed(lines, "gz"))
    assert is_as_json_lines("records.log.gz", input_format="jsonl")
    rejected(2, "records.log.gz", input_format="parquet")


@pytest.mark.parametrize(("module", "name"), [("pyarrow", "a.parquet"), ("zstandard", "a.zst")])
def test_a_missing_library_names_the_extra(
    module: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / name).write_bytes(b"x")
    monkeypatch.setattr("tokenmill.inputs.kinds.find_spec", lambda wanted: None if wanted == module else 1)
    error = rejected(2, name)
    assert module in error
    assert "'tokenmill[inputs]'" in error


# -- damaged files


def flip(path: Path) -> None:
    """Change 40 bytes in the middle."""
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 2, len(data) // 2 + 40):
        data[place] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])  # which have checksums
def test_documents_before_the_damage_stay(compression: str, folder: Path) -> None:
    path = folder / f"in.txt.{compression}"
    texts = [text for text in sample_documents(900, seed=3) if text]
    path.write_bytes(compressed(END.join(texts).encode(), compression))
    flip(path)
    summary = convert(Inline(), inputs=[path.name], on_error="skip", validation_fraction=0.0)
    found = [tokenizer().decode(ids) for ids in sequences("out")]
    assert found == texts[: len(found)]
    assert len(found) < len(texts)
    assert [error.partition(": ")[0] for error in summary.unreadable] == [path.name]


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_only_the_damaged_part_of_a_table_is_left_out(form: str, folder: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = folder / f"in.{form}"
    texts = [f"{number} {text}" for number, text in enumerate(sample_documents(600, seed=4))]
    table = pyarrow.table({"text": texts})
    if form == "parquet":
        parquet.write_table(table, path, row_group_size=100, write_page_checksum=True, use_dictionary=False)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, path, chunksize=100, compression="lz4")
    flip(path)
    trees = []
    for output, size in ("whole", None), ("chunks", 5000), ("others", 20_000):
        options = {"inputs": [path.name], "output": output, "text_chunk_bytes": size}
        summary = convert(Inline(), on_error="skip", validation_fraction=0.0, **options)
        assert len(summary.unreadable) == 1
        trees.append(tree(output))
    found = [tokenizer().decode(ids) for ids in sequences("whole")]
    assert (found[:100], found[-100:]) == (texts[:100], texts[-100:])
    assert len(found) < 600
    assert trees == [trees[0]] * 3


def test_unreadable_files_are_listed(folder: Path) -> None:
    (folder / "good.txt").write_bytes(sample_text(9))
    for name in ("a.txt.gz", "b.parquet", "c.jsonl.zst"):
        (folder / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 1\n")
    summary = convert(Inline(), inputs=["*.txt", "*.*.*", "*.parquet"], on_error="skip")
    sources = sources_of("out")
    listed = {source["path"]: source["unreadable"] for source in sources if "unreadable" in source}
    assert sorted(listed) == ["a.txt.gz", "b.parquet", "c.jsonl.zst"]
    assert all("git lfs pull" in reason for reason in listed.values())
    assert options_of("out")["unreadable_files"] == len(summary.unreadable) == 3
    assert error_of(Inline(), inputs=["?.*"], on_error="skip", max_errors=2, output="few").exit_code == 3
    code, _, err = run_here("?.*", on_error="skip", output="none")
    assert code == 0
    assert "no input could be read" in err
