"""Prompts and completions: masks after normalizers, unusual tokenizers and tables, and records that are refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from chats import PAIRS, convert_pairs, write_records
from runs import Inline, error_of, masked_sequences, sample_documents, tokenizer

from bpe import Tokenizer

pytestmark = pytest.mark.usefixtures("folder")


def make_records(count: int, seed: int = 3) -> list[dict[str, str]]:
    rng, records = random.Random(seed), []
    for text in sample_documents(count, seed):
        cut = rng.randint(0, len(text))
        records.append({"prompt": text[:cut], "completion": text[cut:]})
    return records


def change_tokenizer(**fields: Any) -> None:
    root = json.loads(Path("tok.json").read_bytes())
    Path("tok.json").write_text(json.dumps(root | fields))


NORMALIZERS: list[dict[str, Any]] = [
    {"type": "NFC"},
    {"type": "NFKC"},
    {"type": "Lowercase"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
    {"type": "Replace", "pattern": {"String": "e"}, "content": "east"},
]


@pytest.mark.promise("masks")
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda normalizer: str(normalizer["type"]))
def test_masks_of_normalized_text(normalizer: dict[str, Any]) -> None:
    """A token is trained if it covers a byte of the completion, by the offsets of tokenizers."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    change_tokenizer(normalizer=normalizer)
    their = tokenizers.Tokenizer.from_file("tok.json")
    their.encode_special_tokens = True
    rng, records = random.Random(12), []
    words = [
        "e\u0301te\u0301",
        "ﬁne",
        "Straße İstanbul",
        "각하",
        "①²",
        "plain text",
        "x\u0301\u0323",
        "\u1e69",
        "½",
    ]
    for _ in range(60):
        text = " ".join(rng.choices(words, k=rng.randint(1, 8)))
        cut = rng.randint(0, len(text))
        records.append({"prompt": text[:cut], "completion": text[cut:]})
    write_records("p.jsonl", records)
    convert_pairs()
    for record, found in zip(records, masked_sequences("out"), strict=True):
        wanted = their.encode(record["prompt"] + record["completion"], add_special_tokens=False)
        before = len(record["prompt"])
        bits = [max(stop, start + 1) > before for start, stop in wanted.offsets]
        assert found == (wanted.ids, bits if record["completion"] else [False] * len(bits)), record


def test_a_space_is_added_where_another_is_removed() -> None:
    """The text is as long as its tokens, but they have other offsets."""
    steps = [{"type": "WhitespaceSplit"}, {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}]
    change_tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": steps})
    write_records("p.jsonl", [{"prompt": "the", "completion": "  of x"}] * 2)
    convert_pairs()
    ids, bits = masked_sequences("out")[0]
    own = Tokenizer.load("tok.json")
    assert ids == own.encode("the  of x")
    assert own.decode([id_ for id_, bit in zip(ids, bits, strict=True) if bit]) == " of x"


@pytest.mark.parametrize("pre_tokenizer", ["UnicodeScripts", "WhitespaceSplit"])
def test_characters_that_a_tokenizer_drops(pre_tokenizer: str) -> None:
    """A vocabulary of text without an unknown token drops characters."""
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "##a": 2, "##b": 3}, "merges": []}
    model |= {"continuing_subword_prefix": "##", "unk_token": None}
    content = {"version": "1.0", "model": model, "pre_tokenizer": {"type": pre_tokenizer}}
    Path("tok.json").write_text(json.dumps(content))
    write_records("p.jsonl", [{"prompt": "xa", "completion": "b"}] * 3)
    if pre_tokenizer == "UnicodeScripts":
        assert error_of(Inline(), **PAIRS, inputs=["p.jsonl"]).exit_code == 3
    else:
        convert_pairs()
        assert [ids for ids, _ in masked_sequences("out")] == [[2, 3]] * 3


def test_the_largest_id_with_a_mask() -> None:
    """The table of token lengths took memory for all smaller IDs."""
    largest = 2**30 - 1
    root = json.loads(Path("tok.json").read_bytes())
    root["added_tokens"].append(root["added_tokens"][0] | {"id": largest, "content": "<|far|>"})
    root["model"]["vocab"]["<|far|>"] = largest
    Path("tok.json").write_text(json.dumps(root))
    write_records("p.jsonl", [*make_records(9), {"prompt": "a<|far|>", "completion": "<|far|>b"}])
    convert_pairs(special_in_text="encode")
    ids, bits = masked_sequences("out")[-1]
    assert (ids[1:-1], bits) == ([largest, largest], [False, False, True, True])


def test_pieces_that_begin_with_a_row_group() -> None:
    """Each row group belongs to one text chunk, also where both begin with the same byte."""
    parquet = pytest.importorskip("pyarrow.parquet")
    records = make_records(20)
    write_records("p.parquet", records)
    write_records("p.jsonl", records)
    column = parquet.ParquetFile("p.parquet").metadata.row_group(1).column(0)
    begin = min(column.dictionary_page_offset or column.data_page_offset, column.data_page_offset)
    convert_pairs(output="lines")
    convert_pairs("p.parquet", text_chunk_bytes=begin)
    assert masked_sequences("out") == masked_sequences("lines")


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_many_digits(sign: str) -> None:
    """It was refused with the advice to call a function of Python's."""
    line = '{"prompt": "a", "completion": " b", "n": ' + sign + "9" * 5000 + "}\n"
    Path("p.jsonl").write_text(line)
    convert_pairs()
    assert len(masked_sequences("out")) == 1


@pytest.mark.parametrize("size", [256, 4 << 20])
def test_records_longer_than_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"prompt": "a", "completion": " b"}, {"prompt": "the " * 70, "completion": "of " * 800}]
    write_records("p.jsonl", records)
    monkeypatch.setattr("convert.encode.encode_task.READ_BYTES", size)
    length = len(json.dumps(records[1]))
    monkeypatch.setattr("tokenmill.inputs.read_jsonl.MAX_MARKED_BYTES", length)
    convert_pairs()
    assert len(masked_sequences("out")) == 2
    monkeypatch.setattr("tokenmill.inputs.read_jsonl.MAX_MARKED_BYTES", length - 1)
    convert_pairs(output="less", on_error="skip")
    assert len(masked_sequences("less")) == 1


def test_replaced_surrogates_are_counted() -> None:
    Path("p.jsonl").write_text(r'{"prompt": "a\ud800", "completion": "\udc00b\udc01"}')
    summary = convert_pairs("p.jsonl", replace_invalid=True)
    assert summary.intake.replaced == 3
    assert tokenizer().decode(masked_sequences("out")[0][0]) == "a\ufffd\ufffdb\ufffd"
