"""Prompts and completions, against a naive reading: the ids of both as one text, trained where a byte is of the
second."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zarr
from naive_conversion import END, Naive, make_documents, tree
from stopped_runs import leave_partial, options

import flat_tokens
import tokenmill.inputs.read_jsonl
from bpe.tokenizer import Tokenizer
from convert import convert
from convert.__main__ import main
from convert.encode.job import MASK_ID_LIMIT
from convert.encode.marked_text import MarkedText
from convert.errors import BadInput, Refused, UsageError
from flat_tokens.storage.manifest import read_manifest
from tokenmill.engines.inline_engine import InlineEngine

FIELDS = {"prompt_field": "prompt", "completion_field": "completion", "inputs": ["r.jsonl"]}


def make_records(count: int, seed: int) -> list[dict[str, str]]:
    """Texts that are cut anywhere, within characters of several bytes too where the tokens are."""
    rng = random.Random(seed)
    records = []
    for text in make_documents(count, seed):
        at = rng.randint(0, len(text))
        records.append({"prompt": text[:at], "completion": text[at:]})
    return [*records, {"prompt": "", "completion": ""}, {"prompt": "only", "completion": ""}]


def write_records(path: Path, records: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    if path.suffix in (".parquet", ".arrow"):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.Table.from_pylist([record | {"n": at} for at, record in enumerate(records)])
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=7)
        else:
            if len(records) % 2:  # a dictionary of prompts, and a stream
                table = table.set_column(0, "prompt", table["prompt"].dictionary_encode())
            make = pyarrow.ipc.new_stream if len(records) % 2 else pyarrow.ipc.new_file
            with pyarrow.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=7)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            rows.writerows([["n", "completion", "prompt"], []])
            rows.writerows([at, record["completion"], record["prompt"]] for at, record in enumerate(records))
    else:
        path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())


def naive_rows(naive: Naive, vocab: dict[int, bytes], records: list[dict[str, str]]) -> list[Any]:
    """(ids, bits) of each record that has ids."""
    rows = []
    for record in records:
        ids = naive.ids((record["prompt"] + record["completion"]).encode(), special=False)
        end, bits = 0, []
        for id_ in ids:
            end += len(vocab[id_])
            bits.append(end > len(record["prompt"].encode()))
        rows += [(ids, bits)] if ids else []
    return rows


def rows_of(path: Path) -> list[Any]:
    found = []
    for split in ("train", "validation"):
        array = flat_tokens.open(path)[split]
        found += [(array.sequence(at).tolist(), array.trained_of(at).tolist()) for at in range(len(array))]
    return found


@pytest.fixture
def vocab(tokenizer_path: Path) -> dict[int, bytes]:
    from bpe.tokenizer import Tokenizer

    return dict(Tokenizer.load(tokenizer_path).vocab)


@pytest.mark.parametrize(
    ("name", "zarr_format"),
    [("r.jsonl", 2), ("r.jsonl.gz", 3), ("r.parquet", 2), ("r.arrow", 3), ("r.csv", 2), ("r.tsv", 3)],
)
@pytest.mark.parametrize("count", [80, 81])
def test_as_naive(
    here: Path, naive: Naive, vocab: dict[int, bytes], name: str, zarr_format: int, count: int
) -> None:
    if name in ("r.parquet", "r.arrow"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    records = make_records(count, seed=3)
    write_records(here / name, records)
    summary = convert(
        options(
            **FIELDS | {"inputs": [name]}, zarr_format=zarr_format, chunk_tokens=64, validation_fraction=0.2
        ),
        InlineEngine(),
    )
    wanted = naive_rows(naive, vocab, records)
    assert sorted(rows_of(here / "out")) == sorted(wanted)
    counts = [sum(bits) for _, bits in wanted]
    assert f"{sum(counts):,} tokens trained" in "\n".join(summary.lines())
    manifest = read_manifest(here / "out")
    assert manifest is not None
    assert sum(split.trained_tokens or 0 for split in manifest.splits.values()) == sum(counts)
    assert manifest.options["prompt_field"] == "prompt"
    assert flat_tokens.verify_dataset(here / "out").problems == ()
    packed = zarr.open_group(here / "out", mode="r")["loss_mask"]["train"]  # type: ignore[index]
    array = flat_tokens.open(here / "out").train
    assert array.loss_mask is not None
    assert packed[:].tolist() == flat_tokens.format.packed_mask(array.loss_mask[:]).tolist()  # type: ignore[index]


def test_pieces_that_begin_with_a_row_group(here: Path, naive: Naive, vocab: dict[int, bytes]) -> None:
    """Each row group belongs to one piece, also where both begin with the same byte."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    records = make_records(20, seed=5)
    write_records(here / "r.parquet", records)
    groups = pyarrow.parquet.ParquetFile(here / "r.parquet").metadata
    first = groups.row_group(1).column(0)
    begin = min(first.dictionary_page_offset or first.data_page_offset, first.data_page_offset)
    given = options(**FIELDS | {"inputs": ["r.parquet"]}, text_chunk_bytes=begin, validation_fraction=0.0)
    convert(given, InlineEngine())
    assert sorted(rows_of(here / "out")) == sorted(naive_rows(naive, vocab, records))


def test_end_tokens(here: Path, naive: Naive, vocab: dict[int, bytes]) -> None:
    """That in front is not trained, that behind is: a model learns to stop."""
    records = make_records(20, seed=4)
    write_records(here / "r.jsonl", records)
    convert(options(**FIELDS, prepend_token=END, append_token=END), InlineEngine())
    rows = rows_of(here / "out")
    assert [(ids[1:-1], bits[1:-1]) for ids, bits in sorted(rows)] == sorted(
        naive_rows(naive, vocab, records)
    )
    assert {(bits[0], bits[-1]) for _, bits in rows} == {(False, True)}
    assert len({(ids[0], ids[-1]) for ids, _ in rows}) == 1


def test_what_was_done_is_taken_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_records(here / "r.jsonl", make_records(60, seed=5))
    more = FIELDS | {"text_chunk_bytes": 400}
    convert(options(**more, output="clean"), InlineEngine())
    leave_partial(monkeypatch, **more)
    assert convert(options(**more), InlineEngine()).reused_shards
    assert tree(here / "out") == tree(here / "clean")
    (here / "out").rename(here / "done")
    leave_partial(monkeypatch, **more)
    with pytest.raises(Refused, match="--completion-field"):
        convert(options(**more | {"completion_field": "answer"}), InlineEngine())


def test_beside_plain_text(here: Path, naive: Naive, vocab: dict[int, bytes]) -> None:
    """All tokens of plain text are trained."""
    records = make_records(20, seed=6)
    write_records(here / "r.jsonl", records)
    convert(options(**FIELDS | {"inputs": ["r.jsonl", "en.txt"]}, validation_docs=3), InlineEngine())
    plain = [
        ids
        for text in (here / "en.txt").read_bytes().decode().split(END)
        if (ids := naive.ids(text.encode()))
    ]
    wanted = [*naive_rows(naive, vocab, records), *((ids, [True] * len(ids)) for ids in plain)]
    assert sorted(rows_of(here / "out")) == sorted(wanted)
    assert flat_tokens.verify_dataset(here / "out").problems == ()


BAD = [
    ('{"prompt": "a"}', "'completion'"),
    ('{"prompt": "a", "completion": null}', "'completion'"),
    ('{"prompt": "a", "completion": ["b"]}', "'completion'"),
    ('{"prompt": "a", "prompt": "b", "completion": ""}', "'prompt'"),
    ('{"prompt": NaN, "completion": ""}', "'prompt'"),
    ('["a"]', ""),
    ('{"prompt": "a"', ""),
    ('{"prompt": "\\ud800", "completion": ""}', ""),
    ("[" * 100_000, ""),
    ('\ufeff{"prompt": "a", "completion": ""}', ""),
    ("".join(char + "\0" for char in '{"prompt": "a", "completion": "b"}'), ""),
]


def test_a_number_of_many_digits(here: Path) -> None:
    """It was refused with the advice to call a function of Python's."""
    for sign in ("", "-"):
        line = '{"prompt": "a", "completion": " b", "n": ' + sign + "9" * 5000 + "}\n"
        (here / "r.jsonl").write_text(line)
        convert(options(**FIELDS, output=f"out{sign}", validation_fraction=0.0), InlineEngine())
        assert len(rows_of(here / f"out{sign}")) == 1


@pytest.mark.parametrize(
    ("line", "said"), BAD, ids=[f"{number}-{said[:20]}" for number, (_, said) in enumerate(BAD)]
)
def test_bad_records(here: Path, line: str, said: str) -> None:
    good = '{"prompt": "a", "completion": " b"}'
    (here / "r.jsonl").write_text(f"{good}\n\n{line}\n{good}\n")
    with pytest.raises(BadInput, match="line 3") as error:
        convert(options(**FIELDS), InlineEngine())
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    convert(options(**FIELDS, output="less", on_error="quarantine"), InlineEngine())
    assert len(rows_of(here / "less")) == 2
    assert (here / "less/quarantine.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    "normalizer",
    [
        {"type": "NFC"},
        {"type": "NFKC"},
        {"type": "Lowercase"},
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
        {"type": "Replace", "pattern": {"String": "e"}, "content": "east"},
    ],
    ids=lambda normalizer: str(normalizer["type"]),
)
def test_text_that_a_normalizer_changes(here: Path, normalizer: dict[str, Any]) -> None:
    """Learned is what covers a byte of the completion, by the offsets that tokenizers gives."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    content = json.loads((here / "tok.json").read_bytes())
    (here / "tok.json").write_text(json.dumps(content | {"normalizer": normalizer}))
    their = tokenizers.Tokenizer.from_file(str(here / "tok.json"))
    their.encode_special_tokens = True
    rng = random.Random(12)
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
    records = []
    for _ in range(60):
        text = " ".join(rng.choices(words, k=rng.randint(1, 8)))
        at = rng.randint(0, len(text))
        records.append({"prompt": text[:at], "completion": text[at:]})
    write_records(here / "r.jsonl", records)
    convert(options(**FIELDS, validation_fraction=0.0), InlineEngine())
    rows = iter(rows_of(here / "out"))
    for record in records:
        wanted = their.encode(record["prompt"] + record["completion"], add_special_tokens=False)
        before = len(record["prompt"])
        bits = [max(stop, start + 1) > before for start, stop in wanted.offsets]
        assert next(rows) == (wanted.ids, bits if record["completion"] else [False] * len(bits)), record


def test_a_space_in_front_where_another_is_taken_away(here: Path) -> None:
    """The text is as long as the tokens', but they do not lie where they would if it were the same."""
    content = json.loads((here / "tok.json").read_bytes())
    steps = [{"type": "WhitespaceSplit"}, content["pre_tokenizer"] | {"add_prefix_space": True}]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    (here / "tok.json").write_text(json.dumps(content))
    write_records(here / "r.jsonl", [{"prompt": "the", "completion": "  of x"}] * 2)
    convert(options(**FIELDS, validation_fraction=0.0), InlineEngine())
    ids, bits = rows_of(here / "out")[0]
    tokenizer = Tokenizer.load(here / "tok.json")
    assert ids == tokenizer.encode("the  of x")
    learned = tokenizer.decode([id_ for id_, bit in zip(ids, bits, strict=True) if bit])
    assert learned == " of x"


@pytest.mark.parametrize("pre_tokenizer", ["UnicodeScripts", "WhitespaceSplit"])
def test_characters_that_a_tokenizer_drops(pre_tokenizer: str, here: Path) -> None:
    """A vocabulary of text without an unknown token drops what it has not; the error was none of ours."""
    entries = ["a", "b", "##a", "##b"]
    model = {"type": "BPE", "vocab": {text: id_ for id_, text in enumerate(entries)}, "merges": []}
    model |= {"continuing_subword_prefix": "##", "unk_token": None}
    content = {"version": "1.0", "model": model, "pre_tokenizer": {"type": pre_tokenizer}}
    (here / "tok.json").write_text(json.dumps(content))
    write_records(here / "r.jsonl", [{"prompt": "xa", "completion": "b"}] * 3)
    if pre_tokenizer == "UnicodeScripts":
        with pytest.raises(BadInput):
            convert(options(**FIELDS, validation_fraction=0.0), InlineEngine())
        return
    convert(options(**FIELDS, validation_fraction=0.0), InlineEngine())
    assert [ids for ids, _ in rows_of(here / "out")] == [[2, 3]] * 3


def test_special_tokens_in_records(here: Path, naive: Naive) -> None:
    write_records(here / "r.jsonl", [{"prompt": "a" + END, "completion": "b" + END}] * 2)
    for mode, special in (("text", False), ("encode", True)):
        convert(options(**FIELDS, output=mode, special_in_text=mode), InlineEngine())
        assert rows_of(here / mode)[0][0] == naive.ids(f"a{END}b{END}".encode(), special)
    convert(options(**FIELDS, output="error", special_in_text="error", on_error="skip"), InlineEngine())
    assert not rows_of(here / "error")


def test_the_largest_id_took_memory_for_all_below(here: Path, naive: Naive, vocab: dict[int, bytes]) -> None:
    """17 GB of addresses, which a machine may refuse."""
    largest = MASK_ID_LIMIT - 1
    described = json.loads((here / "tok.json").read_text())
    described["added_tokens"].append(
        {**described["added_tokens"][0], "id": largest, "content": "<|far|>", "special": True}
    )
    described["model"]["vocab"]["<|far|>"] = largest
    (here / "tok.json").write_text(json.dumps(described))
    lengths = MarkedText(Tokenizer.load(here / "tok.json"))._lengths[1]
    assert lengths.nbytes < 2**20
    records = make_records(40, seed=4)
    write_records(here / "r.jsonl", [*records, {"prompt": "a<|far|>", "completion": "<|far|>b"}])
    convert(options(**FIELDS, special_in_text="text", output="text"), InlineEngine())
    *rows, _ = rows_of(here / "text")
    assert rows == naive_rows(naive, vocab, records)
    convert(options(**FIELDS, special_in_text="encode", output="encoded"), InlineEngine())
    ids, bits = rows_of(here / "encoded")[-1]
    assert (ids[1:-1], bits) == ([largest, largest], [False, False, True, True])


def test_arguments(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ["--prompt-field", "p", "--completion-field", "c"]
    for words, where in (
        (["--prompt-field", "p"], "--prompt-field"),
        (["--completion-field", "c"], "--completion-field"),
        (["--prompt-field", "p", "--completion-field", ""], "--completion-field"),
        ([*pair, "--messages-field", "m"], "--prompt-field"),
        ([*pair, "--text-field", "t"], "--text-field"),
        ([*pair, "--chunk-tokens", "12"], "--chunk-tokens"),
        (["--chat-template", "f"], "--chat-template"),
        (["--chat-date", "2024-07-26"], "--chat-date"),
    ):
        assert main(["en.txt", "--tokenizer", "tok.json", "--output", "out", *words]) == 2
        assert f"error: {where}: " in capsys.readouterr().err


def test_inputs_without_such_records(here: Path) -> None:
    """They would be learned whole."""
    with tarfile.open(here / "t.tar", "w") as archive:
        archive.add("en.txt")
    write_records(here / "r.jsonl", make_records(2, seed=1))
    for inputs, said in ((["en.txt"], "text"), (["t.tar"], "tar"), (["r.jsonl", "t.tar"], "jsonl, tar")):
        with pytest.raises(UsageError, match=f"--prompt-field.*{said}"):
            convert(options(**FIELDS | {"inputs": inputs}), InlineEngine())


@pytest.mark.parametrize("name", ["r.parquet", "r.arrow", "r.csv"])
def test_a_column_that_is_not_there(here: Path, name: str) -> None:
    if name == "r.csv":
        (here / name).write_text("prompt,n\na,1\n")
    else:
        write_records(here / name, [{"prompt": "a"}, {"prompt": "b"}])
    with pytest.raises(BadInput):
        convert(options(**FIELDS | {"inputs": [name]}), InlineEngine())


def test_bad_rows_of_a_table(here: Path) -> None:
    """They are set aside row by row, and the others keep their numbers."""
    (here / "r.csv").write_bytes(
        b'prompt,completion,n\n"a",b,1\na,b\na,"\xe2\x82",3\n\n"x, \ny", z,4\nprompt,completion,n\n'
    )
    more = {"inputs": ["r.csv"], "on_error": "quarantine"}
    summary = convert(options(**FIELDS | more), InlineEngine())
    assert len(rows_of(here / "out")) == 3
    lines = [json.loads(line) for line in (here / "out/quarantine.jsonl").read_text().splitlines()]
    assert [(line["row"], line["reason"]) for line in lines] == [(1, "malformed"), (2, "invalid UTF-8")]
    assert "5 = 3 written + 0 empty + 2 skipped" in "\n".join(summary.lines())
    convert(options(**FIELDS | more | {"replace_invalid": True}, output="mended"), InlineEngine())
    assert len(rows_of(here / "mended")) == 4


def test_records_longer_than_blocks(
    here: Path, naive: Naive, vocab: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"prompt": "a", "completion": " b"}, {"prompt": "the " * 70, "completion": "of " * 800}]
    write_records(here / "r.jsonl.gz", records)
    more = FIELDS | {"inputs": ["r.jsonl.gz"]}
    monkeypatch.setattr("convert.encode.encode_task.READ_BYTES", 256)
    convert(options(**more), InlineEngine())
    assert rows_of(here / "out") == naive_rows(naive, vocab, records)
    monkeypatch.setattr(tokenmill.inputs.read_jsonl, "MAX_MARKED_BYTES", len(json.dumps(records[1])))
    convert(options(**more, output="just"), InlineEngine())
    assert rows_of(here / "just") == rows_of(here / "out")
    monkeypatch.setattr(tokenmill.inputs.read_jsonl, "MAX_MARKED_BYTES", 1000)
    with pytest.raises(BadInput):
        convert(options(**more, output="less"), InlineEngine())
    convert(options(**more, output="less", on_error="skip"), InlineEngine())
    assert len(rows_of(here / "less")) == 1


def test_a_damaged_parquet_file_is_told_in_a_line(here: Path) -> None:
    write_records(here / "r.parquet", make_records(20, 1))
    data = (here / "r.parquet").read_bytes()
    (here / "r.parquet").write_bytes(data[:30] + bytes(40) + data[70:])
    with pytest.raises(BadInput, match=r"r\.parquet"):
        convert(options(**FIELDS | {"inputs": ["r.parquet"]}), InlineEngine())


def test_places_behind_a_mark_of_utf8(here: Path) -> None:
    (here / "r.jsonl").write_bytes(codecs.BOM_UTF8 + b'{"prompt": "a"}\n')
    with pytest.raises(BadInput, match=r"r\.jsonl.*line 1"):
        convert(options(**FIELDS), InlineEngine())


def test_masks_do_not_hang_on_the_blocks_in_which_shards_are_read(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_records(here / "r.jsonl", make_records(30, 2))
    convert(options(output="whole", **FIELDS), InlineEngine())
    convert(options(output="blocks", **FIELDS), InlineEngine())
    assert tree(here / "blocks") == tree(here / "whole")
