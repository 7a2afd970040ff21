"""A file that is one JSON array of records: the documents that Python's json finds, however the file is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from readings import read

from tokenmill.inputs.errors import BadInput


def test_a_bad_record_of_an_array_is_left_out_alone(tmp_path: Path) -> None:
    bad = [
        '{"text": 1}',
        '{"text": "a\nb"}',
        "7",
        '["a"]',
        '{"text": "a"} {}',
        '{"text": "\\q"}',
        '{"text": [1}}',
    ]
    data = "[\n" + ",\n".join(f'{record},\n{{"text": "good {n}"}}' for n, record in enumerate(bad)) + "\n]\n"
    path = tmp_path / "a.json"
    path.write_text(data)
    documents, intake = read(path, 2, on_error="quarantine")
    assert documents == [f"good {n}" for n in range(len(bad))]
    assert [record.data.strip() for record in intake.kept] == [
        text.replace("\n", "\r").encode() for text in bad
    ]


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ('[{"text": "a"}', 14),
        ('[{"text": "a"', 13),
        ('[{"text": "a"},', 15),
        ("[", 1),
        ('[{"text": "a"},]', 15),
        ('[,{"text": "a"}]', 1),
        ('[{"text": "a"},,{"text": "b"}]', 15),
        ('[{"text": "a"}}', 14),
        ('[{"text": "a"}] {"text": "b"}', 16),
        ('[{"text": "a"}]]', 15),
    ],
)
def test_a_damaged_array_names_the_byte(tmp_path: Path, text: str, offset: int) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=f"a.json.*{offset}"):
        read(path, on_error="fail")
    for block_bytes in (1 << 16, 64):
        documents, intake = read(path, on_error="skip", block_bytes=block_bytes)
        ((_, error),) = intake.unreadable
        assert error.startswith(f"{path}: byte {offset}: ")
        assert documents == ["a"] * text[:offset].count("},")


def test_lists_that_are_records_are_no_array(tmp_path: Path) -> None:
    path = tmp_path / "lists.json"
    path.write_text('[{"text": "a"}]\n[{"text": "b"}]\n')
    assert read(path, text_field="/0/text")[0] == ["a", "b"]
    path = path.rename(tmp_path / "lists.jsonl")
    assert read(path, on_error="skip")[1].skipped == {"not an object": 2}
