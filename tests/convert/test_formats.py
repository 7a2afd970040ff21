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
    sources_of,
)
from strategies import compressed

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
