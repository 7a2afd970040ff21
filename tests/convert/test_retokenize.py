"""A dataset retokenized from its ids is the dataset that its text would have given."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from naive_conversion import tree

import flat_tokens
from bpe.tokenizer import Tokenizer
from convert.__main__ import main as convert
from convert.retokenize.__main__ import main

END = "<|endoftext|>"


@pytest.fixture
def files(
    tmp_path: Path,
    listed: Callable[..., Tokenizer],
    random_texts: Callable[..., Iterator[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder with texts.jsonl, a.json and b.json; b has a special token more."""
    monkeypatch.setattr("convert.retokenize.batch.BATCH_TOKENS", 100)
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
        "--workers",
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


def test_a_loss_mask_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "texts.jsonl").write_text('{"prompt": "xa", "completion": "b"}\n')
    fields = ["--prompt-field", "prompt", "--completion-field", "completion"]
    a = converted(files, "a.json", "a.zarr", *fields, "--validation-fraction", "0")
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "b.zarr")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tokenmill: error: {a}: has a loss mask")
    assert error.count("\n") == 1
    assert not (files / "b.zarr").exists()


def test_one_document_with_a_special_token_as_text_slowed_its_batch(files: Path) -> None:
    (files / "texts.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in ("the end", f"a{END}b", "you'll", f"{END}"))
    )
    a = converted(files, "a.json", "a.zarr", "--validation-fraction", "0")
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "b.zarr")]) == 0
    new = Tokenizer.load(files / "b.json")
    texts = ["the end", f"a{END}b", "you'll", END]
    assert all_documents(files / "b.zarr")["train"] == [new.encode(text, ()) for text in texts]


@pytest.mark.parametrize("workers", ["1", "3"])
def test_the_bytes_do_not_depend_on_workers(workers: str, files: Path) -> None:
    a = converted(files, "a.json", "a.zarr", "--append-token", END)
    command = [str(a), "--tokenizer", str(files / "b.json"), "--workers", workers, "--output"]
    assert main([*command, str(files / "b.zarr")]) == 0
    assert main([str(a), "--tokenizer", str(files / "b.json"), "--output", str(files / "c.zarr")]) == 0
    assert tree(files / "b.zarr") == tree(files / "c.zarr")


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
