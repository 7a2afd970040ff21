"""Text counted as documents between separators: the same documents as in `convert`, without bad ones."""

import gzip
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe import PretokenCounts, count_files, count_pretokens, train
from bpe.__main__ import main
from bpe.errors import BadArgument, InvalidText
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.gathering import gather_counts
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.workspace import Workspace
from convert import ConvertOptions, convert
from flat_tokens import open as open_dataset
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.inputs.documents import Buffers

SEPARATORS = ["<|endoftext|>", "\n\n", "aa", "\0"]
BAD = [b"\xff", b"\xe4\xb8", b"\x80\x80"]


def random_documents(rng: random.Random, separator: str, bad: bool) -> list[bytes]:
    """Return documents without the separator: some empty, long, invalid UTF-8 or with special tokens."""
    alphabet = ["a", "b ", " ", "é", "字", "\n", "<s>"]
    found = []
    for _ in range(rng.randrange(1, 30)):
        text = "".join(rng.choices(alphabet, k=rng.choice([0, 1, 7, 60, 900]))).replace(separator, "")
        while separator in text or (text and separator in text + separator[:-1]):
            text = text[:-1].replace(separator, "")
        data = text.encode()
        if bad and rng.random() < 0.3:
            place = rng.randrange(len(text) + 1)
            data = text[:place].encode() + rng.choice(BAD) + text[place:].encode()
        found.append(data)
    return found


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split documents of a few hundred bytes into pieces."""
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 300)
    monkeypatch.setattr("bpe.pretoken_counts.reading.Buffers", lambda: Buffers(300))


@pytest.mark.parametrize("seed", range(24))
def test_documents_are_separate_texts(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    separator = rng.choice(SEPARATORS)
    documents = random_documents(rng, separator, bad=False)
    special_tokens = rng.choice([(), ("<s>",), ("<s>", "<|endoftext|>")])
    more: dict[str, Any] = {"pattern": rng.choice(["gpt2", "o200k", r"(?<!x)\w+|\W"])}
    path = tmp_path / rng.choice(["in.txt", "in.txt.gz"])
    data = separator.encode().join(documents)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    expected = count_pretokens(documents, special_tokens, **more)
    more["separator"] = separator
    found = count_pretokens([path], special_tokens, **more)
    assert found.as_dict() == expected.as_dict()
    assert found.facts.documents == expected.facts.documents
    assert count_pretokens([data], special_tokens, **more).as_dict() == expected.as_dict()
    found.save(tmp_path / "one")
    for workers, chunk_bytes in ((1, 100), (8, 1000)):
        with ThreadPoolExecutor(workers) as pool:
            more |= {"executor": pool, "workers": workers, "text_chunk_bytes": chunk_bytes}
            count_files([path], tmp_path / "out", special_tokens, **more)
        assert (tmp_path / "out").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.parametrize("seed", range(12))
def test_documents_that_are_not_utf8_are_left_out(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    separator = rng.choice([*SEPARATORS, None])
    documents = random_documents(rng, separator or "<|endoftext|>", bad=True)
    good = []
    for document in documents:
        try:
            document.decode()
            good.append(document)
        except UnicodeDecodeError:
            pass
    data = (separator or "<|endoftext|>").encode().join(documents)
    path = tmp_path / rng.choice(["in.txt", "in.txt.gz"])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    more: dict[str, Any] = {"separator": separator, "on_error": "skip"}
    notes: list[str] = []

    class Notes:
        def begin(self, phase: str, total: int | None, unit: str) -> None: ...

        def update(self, done: int) -> None: ...

        def note(self, text: str) -> None:
            notes.append(text)

    found = count_pretokens([path], ["<s>"], progress=Notes(), **more)
    assert found.as_dict() == count_pretokens(good, ["<s>"]).as_dict()
    bad_count = len(documents) - len(good)
    assert any(note.startswith(f"skipped {bad_count} bad record") for note in notes) == bool(bad_count)
    count_files([path], tmp_path / "out", ["<s>"], executor=InlineEngine(), text_chunk_bytes=200, **more)
    found.save(tmp_path / "one")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "one").read_bytes()
    if bad_count:
        with pytest.raises(InvalidText):
            count_pretokens([path], ["<s>"], separator=separator or "<|endoftext|>")


def test_a_conversion_makes_the_same_documents(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(3)
    documents = random_documents(rng, "\n\n", bad=True)
    (tmp_path / "in.txt").write_bytes(b"\n\n".join(documents))
    train([b"a b a b aa"], 259).save(tmp_path / "tokenizer.json")
    more: dict[str, Any] = {"separator": "\n\n", "on_error": "skip", "progress": "none", "workers": 1}
    options = ConvertOptions(
        [str(tmp_path / "in.txt")], str(tmp_path / "tokenizer.json"), str(tmp_path / "out.zarr"), **more
    )
    convert(options)
    dataset = open_dataset(tmp_path / "out.zarr")
    converted = sum(len(np.asarray(split.seq_starts)) - 1 for split in (dataset.train, dataset.validation))
    command = ["count", str(tmp_path / "in.txt"), "--separator", r"\n\n", "--on-error", "skip"]
    assert main([*command, "--output", str(tmp_path / "out.counts")]) == 0
    stderr = capfd.readouterr().err
    good = [document for document in documents if document.decode(errors="replace").encode() == document]
    assert len(documents) - len(good) > 1
    assert f"skipped {len(documents) - len(good)} bad records" in stderr
    assert converted == sum(map(bool, good)) > 1
    # `train` counts the same.
    assert main(["train", *command[1:], "--vocab-size", "258", "--output", str(tmp_path / "a.json")]) == 0
    counts = ["--counts", str(tmp_path / "out.counts")]
    assert main(["train", *counts, "--vocab-size", "258", "--output", str(tmp_path / "b.json")]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"one\n\ntwo two",))
    writer.start()
    counts = count_pretokens([path], separator="\n\n")
    writer.join()
    assert counts.as_dict() == {b" two": 1, b"one": 1, b"two": 1}


def test_a_sample(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\n\n".join(f"doc{number}" for number in range(4000)))
    with Workspace(tmp_path) as workspace:
        options = CountingOptions(separator="\n\n")
        budget = MemoryBudget.of(None)
        found = gather_counts([tmp_path / "in.txt"], None, options, None, budget, workspace, 8000)
        found.save(tmp_path / "sample", workspace)
    counts = PretokenCounts.load(tmp_path / "sample").as_dict()
    assert counts[b"doc"] == sum(counts.values()) // 2
    assert 100 < counts[b"doc"] < 2000


def test_separators_that_can_not_be(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("text")
    for separator, message in (
        ("", "--separator: "),
        (r"\q", "--separator: "),
        ("x" * 4097, "4096"),
    ):
        command = ["count", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out"), "--separator"]
        try:
            code = main([*command, separator])
        except SystemExit as error:
            code = int(error.code or 0)
        assert (code, message in capfd.readouterr().err) == (2, True)
    with pytest.raises(BadArgument, match="U\\+FFFD"):
        count_pretokens([b"a"], separator="\ufffd", invalid="replace")
