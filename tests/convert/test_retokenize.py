"""A dataset retokenized from its ids is the dataset that its text would have given."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from bpe.end_tokens import EndToken, EndTokens
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer
from convert.__main__ import main as convert
from convert.retokenize import documents as documents_module
from convert.retokenize.__main__ import main
from convert.retokenize.documents import _with_ends
from flat_tokens.exchange.blocks import Block

END = "<|endoftext|>"


@pytest.fixture
def files(
    tmp_path: Path,
    listed: Callable[..., Tokenizer],
    random_texts: Callable[..., Iterator[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder with texts.jsonl, a.json and b.json; b has a special token more."""
    monkeypatch.setattr("convert.retokenize.run.BATCH_TOKENS", 100)
    listed("gpt2").save(tmp_path / "a.json")
    Tokenizer(
        {index: bytes([index]) for index in range(256)} | {256: b"th", 257: b"the", 258: b"an"},
        [(b"t", b"h"), (b"th", b"e"), (b"a", b"n")],
        {END: 300, "you'll": 301},
        "cl100k",
    ).save(tmp_path / "b.json")
    rng = random.Random(5)
    texts = [*random_texts(5, 60, 40), "", "the end", f"a{END}b", "x" * 700]
    rng.shuffle(texts)
    with (tmp_path / "texts.jsonl").open("w") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    return tmp_path


def converted(files: Path, tokenizer: str, output: str, *words: str) -> Path:
    arguments = [
        str(files / "texts.jsonl"),
        "--tokenizer",
        str(files / tokenizer),
        "--quiet",
        "--workers",
        "1",
    ]
    assert convert([*arguments, "--validation-fraction", "0.2", "--output", str(files / output), *words]) == 0
    return files / output


def all_documents(path: Path) -> dict[str, list[list[int]]]:
    dataset = flat_tokens.open(path)
    return {split: [ids.tolist() for ids in dataset[split]] for split in ("train", "validation")}


@pytest.mark.parametrize("special", ["encode", "text"])
@pytest.mark.parametrize(
    "ends", [[], ["--append-token", END], ["--append-token", END, "--prepend-token", END]]
)
def test_it_is_what_the_text_gives(special: str, ends: list[str], files: Path) -> None:
    a = converted(files, "a.json", "a.zarr", "--special-in-text", special, *ends)
    arguments = [
        str(a),
        "--tokenizer",
        str(files / "b.json"),
        "--output",
        str(files / "c.zarr"),
        "--threads",
        "2",
    ]
    assert main(arguments) == 0
    new = Tokenizer.load(files / "b.json")
    expected: dict[str, list[list[int]]] = {"train": [], "validation": []}
    old = Tokenizer.load(files / "a.json")
    extra = len(ends) // 2
    for split, found in all_documents(a).items():
        for ids in found:
            text = old.decode(ids[1 if extra == 2 else 0 : len(ids) - (1 if extra else 0)])
            # "you'll" is a special token of the new one alone, so it was ordinary text
            content = new.encode(text, {END} if special == "encode" else ())
            expected[split].append([*([300] if extra == 2 else []), *content, *([300] if extra else [])])
    assert all_documents(files / "c.zarr") == expected
    manifest = flat_tokens.open(files / "c.zarr", tokenizer=new).manifest
    assert manifest is not None
    assert (manifest.options["append_token"] or {}).get("id") == (300 if extra else None)
    assert not list(files.glob("*.partial"))


def masks_of(path: Path) -> list[tuple[list[int], list[bool]]]:
    train = flat_tokens.open(path).train
    assert train.loss_mask is not None
    bits = train.loss_mask[:].tolist()
    found = []
    at = 0
    for ids in train:
        found.append((ids.tolist(), bits[at : at + len(ids)]))
        at += len(ids)
    return found


@pytest.mark.parametrize("special", ["encode", "text"])
@pytest.mark.parametrize("ends", [[], ["--append-token", END], ["--prepend-token", END]])
def test_a_mask_goes_by_the_bytes_of_the_text(special: str, ends: list[str], files: Path) -> None:
    rng = random.Random(7)
    texts = [json.loads(line)["text"] for line in (files / "texts.jsonl").read_text().splitlines()]
    with (files / "texts.jsonl").open("w") as file:
        for text in texts:
            at = rng.randint(0, len(text))
            file.write(json.dumps({"prompt": text[:at], "completion": text[at:]}) + "\n")
    fields = ["--prompt-field", "prompt", "--completion-field", "completion", "--special-in-text", special]
    a = converted(files, "a.json", "a.zarr", "--validation-fraction", "0", *fields, *ends)
    arguments = [str(a), "--tokenizer", str(files / "b.json"), "--append-token", END]
    assert main([*arguments, "--output", str(files / "b.zarr"), "--prepend-token", END]) == 0
    old, new = Tokenizer.load(files / "a.json"), Tokenizer.load(files / "b.json")
    moved = 0
    for (old_ids, old_bits), (new_ids, new_bits) in zip(masks_of(a), masks_of(files / "b.zarr"), strict=True):
        front = back = None
        if "--prepend-token" in ends:
            front, old_ids, old_bits = old_bits[0], old_ids[1:], old_bits[1:]
        if "--append-token" in ends:
            back, old_ids, old_bits = old_bits[-1], old_ids[:-1], old_bits[:-1]
        learned = [bit for id_, bit in zip(old_ids, old_bits, strict=True) for _ in old.decode_bytes([id_])]
        assert (new_bits[0], new_bits[-1]) == (bool(front), back is not False)
        at = 0
        for id_, bit in zip(new_ids[1:-1], new_bits[1:-1], strict=True):
            size = len(new.decode_bytes([id_]))
            assert bit == any(learned[at : at + size])
            at += size
            moved += bit
        assert at == len(learned)
    assert moved > 100


def test_a_mask_whose_places_are_not_known_is_told(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tokenizer that drops what it has not, and whose offsets nobody tells."""
    (files / "texts.jsonl").write_text('{"prompt": "xa", "completion": "b"}\n')
    fields = ["--prompt-field", "prompt", "--completion-field", "completion"]
    a = converted(files, "a.json", "a.zarr", *fields, "--validation-fraction", "0")
    entries = ["a", "b", "##a", "##b"]
    model = {"type": "BPE", "vocab": {text: id_ for id_, text in enumerate(entries)}, "merges": []}
    model |= {"continuing_subword_prefix": "##", "unk_token": None}
    content = {"version": "1.0", "model": model, "pre_tokenizer": {"type": "UnicodeScripts"}}
    (files / "b.json").write_text(json.dumps(content))
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "b.zarr")]) == 3
    error = capsys.readouterr().err
    assert error.startswith("tokenmill: error: train[0]: ")
    assert error.count("\n") == 1
    assert not (files / "b.zarr").exists()


def test_there_and_back_is_the_same(files: Path) -> None:
    a = converted(files, "a.json", "a.zarr")
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "b.zarr")]) == 0
    again = [str(files / "b.zarr"), "--tokenizer", str(files / "a.json"), "--output", str(files / "c.zarr")]
    assert main(again) == 0
    assert all_documents(files / "c.zarr") == all_documents(a)


def test_added_tokens_that_are_not_special(files: Path) -> None:
    """They are tokens of the texts of both, whatever special tokens were."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for name, text in (("a.json", "the"), ("b.json", "end")):
        content = json.loads((files / name).read_bytes())
        content["added_tokens"].append({"id": len(content["model"]["vocab"]), "content": text, **flags})
        (files / name).write_text(json.dumps(content))
    (files / "texts.jsonl").write_text(json.dumps({"text": f"the end {END} end"}) + "\n")
    a = converted(files, "a.json", "a.zarr", "--validation-fraction", "0")
    old, new = Tokenizer.load(files / "a.json"), Tokenizer.load(files / "b.json")
    assert all_documents(a)["train"] == [old.encode(f"the end {END} end", ["the"])]
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "c.zarr")]) == 0
    assert all_documents(files / "c.zarr")["train"] == [new.encode(f"the end {END} end", ["end"])]


def test_ids_that_say_no_text_are_told(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from flat_tokens.__main__ import main as tokens

    for name, ids, expected in (
        ("split", [[104, 105], [116, 104]], "train[1]: "),
        ("utf8", [[104, 105], [97], [0xC3]], "train[2]: "),
        ("foreign", [[104, 9999]], "9999"),
    ):
        np.save(tmp_path / f"{name}.npy", np.array([id_ for found in ids for id_ in found], np.uint32))
        offsets = np.cumsum([0, *map(len, ids)])
        np.save(tmp_path / f"{name}.offsets.npy", offsets)
        words = ["import", str(tmp_path / f"{name}.npy"), "--from", "npy", "--output", str(tmp_path / name)]
        assert tokens(words) == 0
        arguments = [
            str(tmp_path / name),
            "--tokenizer",
            str(files / "a.json"),
            "--output",
            str(tmp_path / "x"),
        ]
        assert main(arguments) == 2
        assert "--from-tokenizer" in capsys.readouterr().err
        assert main([*arguments, "--from-tokenizer", str(files / "b.json")]) in (2, 3)
        error = capsys.readouterr().err
        assert expected in error
        assert error.count("\n") == 1
        assert not (tmp_path / "x").exists()


def test_another_tokenizer_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = converted(files, "a.json", "a.zarr", "--append-token", END)
    arguments = [str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "x.zarr")]
    assert main([*arguments, "--from-tokenizer", str(files / "b.json")]) == 3
    assert f"error: {files / 'b.json'}: " in capsys.readouterr().err
    assert main([*arguments, "--from-tokenizer", str(files / "a.json")]) == 0
    assert main(arguments) == 6
    value = json.loads((files / "b.json").read_text())
    value["added_tokens"] = [token for token in value["added_tokens"] if token["content"] != END]
    (files / "b.json").write_text(json.dumps(value))
    assert main([*arguments, "--overwrite"]) == 2
    assert "error: --append-token: " in capsys.readouterr().err
    assert main([*arguments, "--overwrite", "--append-token", "none"]) == 0
    (a / "tokenizer.json").write_text("{}")
    assert main([*arguments, "--overwrite", "--append-token", "none"]) == 3


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_batches_are_whole_documents(step: int) -> None:
    rng = random.Random(2)
    expected = [[rng.randrange(99) for _ in range(rng.choice([1, 2, 9]))] for _ in range(40)]
    ids = np.array([id_ for found in expected for id_ in found], np.uint32)
    ends = np.cumsum([len(found) for found in expected])
    blocks: list[Block] = []
    taken = 0
    for at in range(0, len(ids), step):
        stop = int(np.searchsorted(ends, at + step, side="right"))
        blocks.append(Block(ids[at : at + step], ends[taken:stop] - at))
        taken = stop
    found: list[Any] = []
    for batch in documents_module.whole_documents(iter(blocks), 12):
        found += batch.documents.tolist()
    assert found == expected


def test_a_dataset_that_grew_is_retokenized_and_exported_as_one(files: Path) -> None:
    from flat_tokens.__main__ import main as tokens

    a = converted(files, "a.json", "a.zarr")
    (files / "more.jsonl").write_text(
        "".join(json.dumps({"text": f"the mill {at}"}) + "\n" for at in range(20))
    )
    assert convert([str(files / "more.jsonl"), "--append-to", str(a), "--quiet", "--workers", "1"]) == 0
    expected = all_documents(a)
    out = files / "out"
    assert tokens(["export", str(a), "--to", "npy", "--split", "train", "--output", str(out)]) == 0
    ids, offsets = np.load(out / "train.npy"), np.load(out / "train.offsets.npy").tolist()
    found = [ids[start:stop].tolist() for start, stop in pairwise(offsets)]
    assert found == expected["train"]
    first = [
        "export",
        str(a),
        "--to",
        "npy",
        "--split",
        "train",
        "--version",
        "0",
        "--output",
        str(files / "0"),
    ]
    assert tokens(first) == 0
    old = np.load(files / "0/train.npy")
    assert len(old) < len(ids)
    assert np.array_equal(ids[: len(old)], old)
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "b.zarr")]) == 0
    assert sum(map(len, all_documents(files / "b.zarr").values())) == sum(map(len, expected.values()))


def test_documents_without_ids_have_no_end_tokens() -> None:
    ends = EndTokens((EndToken(8, "<s>"),), (EndToken(9, "</s>"),))
    block = _with_ends(Ragged(np.array([1, 2, 3], np.uint32), np.array([0, 0, 2, 2, 3], np.uint64)), ends)
    assert block.ids.tolist() == [8, 1, 2, 9, 8, 3, 9]
    assert block.ends is not None
    assert block.ends.tolist() == [0, 4, 4, 7]
