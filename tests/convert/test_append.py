"""Appending: a new part and a new version, the bytes that were there untouched, whatever comes in between."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from naive_conversion import END, make_documents, tree
from stopped_runs import encode_or_fail, options

import bpe
import convert.driver.append
import convert.driver.conversion
import convert.encode.worker
import flat_tokens
from convert import append
from convert import convert as run_conversion
from convert.__main__ import main
from convert.errors import BadInput, Refused, UsageError
from convert.retokenize.__main__ import main as retokenize_main
from convert.shown.arguments import parse_arguments
from convert.workdir.folder import FolderWorkDir
from flat_tokens import DatasetError, verify_dataset
from flat_tokens.__main__ import main as flat_tokens_main
from flat_tokens.exchange.compact import compact
from flat_tokens.statistics import describe
from flat_tokens.storage.places import StorePath
from tokenmill.engines.inline_engine import InlineEngine


@pytest.fixture
def grown(here: Path) -> Path:
    """The folder with `out`, made of en.txt, and more.txt, which is still to be appended."""
    run_conversion(options(), InlineEngine())
    (here / "more.txt").write_text(END.join(make_documents(40, seed=6)), newline="")
    return here


def more(**given: Any) -> Any:
    return options(**{"inputs": ["more.txt"], **given})


def ids(path: Any, split: str, **given: Any) -> list[list[int]]:
    return [found.tolist() for found in flat_tokens.open(path, **given)[split]]


def test_documents_come_behind_those_before(grown: Path) -> None:
    before = tree(grown / "out")
    run_conversion(more(output="alone"), InlineEngine())
    summary = append(more(), InlineEngine())
    assert summary.output.endswith("out/part-1")
    for split in ("train", "validation"):
        assert ids("out", split) == ids("out", split, version=0) + ids("alone", split)
    append(options(), InlineEngine())
    assert ids("out", "train", version=1) == ids("out", "train")[: len(ids("out", "train", version=1))]
    after = tree(grown / "out")
    assert {path: after[path] for path in before} == before
    assert verify_dataset("out").ok


def test_the_sources_of_all_parts_are_told(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the first part were."""
    for number in range(3):
        shutil.copy("more.txt", f"more-{number}.txt")
        append(more(inputs=[f"more-{number}.txt"]), InlineEngine())
    facts = describe(flat_tokens.open("out"))
    names = ["en.txt", "more-0.txt", "more-1.txt", "more-2.txt"]
    assert [source["path"] for source in facts["sources"]] == names
    for name in ("train", "validation"):
        tokens = sum(source[f"{name}_tokens"] for source in facts["sources"])
        assert tokens == facts["splits"][name]["token_count"]
    some = describe(flat_tokens.open("out"), most_sources=2)
    assert [source["path"] for source in some["sources"]] == names[:2]
    assert some["source_count"] == facts["source_count"] == 4
    assert flat_tokens_main(["info", "out"]) == 0
    told = capsys.readouterr().out
    assert "sources: 4\n  en.txt: " in told
    assert "options of the first part: separator" in told
    assert flat_tokens_main(["report", "out", "-o", "out.html"]) == 0
    assert all(name in Path("out.html").read_text() for name in names)


def test_as_one_conversion_of_both(grown: Path) -> None:
    append(more(), InlineEngine())
    run_conversion(more(inputs=["en.txt", "more.txt"], output="both"), InlineEngine())
    for split in ("train", "validation"):
        assert ids("out", split) == ids("both", split)
    batches = [
        [batch.inputs.tolist() for batch in flat_tokens.Loader(flat_tokens.open(path).train, 2, 16, seed=1)]
        for path in ("out", "both")
    ]
    assert batches[0] == batches[1]


def test_compacted_it_is_one_conversion_of_both(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(more(), InlineEngine())
    run_conversion(more(inputs=["en.txt", "more.txt"], output="both"), InlineEngine())
    before = tree(grown / "out")
    assert flat_tokens_main(["compact", "out", "-o", "whole"]) == 0
    assert tree(grown / "whole") == tree(grown / "both")
    assert tree(grown / "out") == before
    assert flat_tokens_main(["compact", "out", "-o", "three", "--zarr-format", "3"]) == 0
    dataset = flat_tokens.open("three")
    assert dataset.zarr_format == 3
    assert verify_dataset("three").ok
    for split in ("train", "validation"):
        assert ids("three", split) == ids("both", split)
    assert flat_tokens_main(["compact", "out", "-o", "first", "--version", "0"]) == 0
    assert ids("first", "train") == ids("out", "train", version=0)
    capsys.readouterr()
    assert flat_tokens_main(["compact", "out", "-o", "whole"]) == 6
    assert "error: whole: " in capsys.readouterr().err
    assert flat_tokens_main(["compact", "out", "-o", "out", "--overwrite"]) == 2
    assert "error: --output: " in capsys.readouterr().err


def test_compacting_lost_where_sequences_come_from(grown: Path) -> None:
    """And its manifest said that it was there. Parts without it: none is kept, and the manifest says so."""
    run_conversion(options(output="told", source_places="yes"), InlineEngine())
    append(more(output="told", source_places="yes"), InlineEngine())
    run_conversion(more(inputs=["en.txt", "more.txt"], output="both", source_places="yes"), InlineEngine())
    assert flat_tokens_main(["compact", "told", "-o", "whole"]) == 0
    assert tree(grown / "whole") == tree(grown / "both")
    assert flat_tokens.open("whole").train.source_of(-1).path == "more.txt"
    append(more(output="told", source_places="no"), InlineEngine())
    assert flat_tokens_main(["compact", "told", "-o", "untold"]) == 0
    manifest = flat_tokens.open("untold").manifest
    assert manifest is not None
    assert manifest.options["source_places"] == "no"
    assert verify_dataset("untold").ok


def test_a_view_is_not_compacted_with_all_sources(grown: Path) -> None:
    append(more(), InlineEngine())
    with pytest.raises(flat_tokens.ArgumentError, match="out/train"):
        compact(flat_tokens.open("out").of_sources("more.txt"), grown / "whole")


@pytest.mark.parametrize("is_on_store", [False])  # --append-to goes
def test_a_part_of_another_run_is_not_overwritten(
    grown: Path, monkeypatch: pytest.MonkeyPatch, is_on_store: bool
) -> None:
    """Of two runs that appended at once the second, with --overwrite, put its part in the place of the first's."""
    output = "out"
    if is_on_store:
        pytest.importorskip("obstore", reason="obstore is not installed")
        output = f"memory://{uuid4().hex}/out"
        run_conversion(options(output=output), InlineEngine())
    (grown / "third.txt").write_text(END.join(make_documents(10, seed=7)), newline="")
    prepare = convert.driver.conversion.prepare

    def meanwhile(*given: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(convert.driver.conversion, "prepare", prepare)
            append(more(output=output), InlineEngine())
        return prepare(*given)

    with monkeypatch.context() as patch:
        patch.setattr(convert.driver.conversion, "prepare", meanwhile)
        with pytest.raises(Refused):
            append(more(inputs=["third.txt"], output=output, overwrite=True), InlineEngine())
    assert verify_dataset(output).ok
    first = len(ids(output, "train"))
    append(more(inputs=["third.txt"], output=output, overwrite=True), InlineEngine())
    assert len(ids(output, "train", version=2)) > first
    assert ids(output, "train", version=1) == ids(output, "train")[:first]
    assert verify_dataset(output).ok


def test_on_a_store(grown: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    url = f"memory://{uuid4().hex}/out"
    run_conversion(options(output=url), InlineEngine())
    append(more(output=url), InlineEngine())
    append(more(), InlineEngine())
    for split in ("train", "validation"):
        assert ids(url, split) == ids("out", split)
    assert verify_dataset(url).ok


def test_the_tokenizer_of_a_dataset_on_a_store_is_its_default(grown: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    url = f"memory://{uuid4().hex}/out"
    run_conversion(options(output=url), InlineEngine())
    given, _ = parse_arguments(["more.txt", "--append-to", url])
    assert given.tokenizer == f"{url}/tokenizer.json"
    append(given, InlineEngine())
    append(more(), InlineEngine())
    assert ids(url, "train") == ids("out", "train")
    key = flat_tokens.open(url).tokenizer_path
    assert isinstance(key, StorePath)
    key.store.put(key.key, b"{}")
    with pytest.raises(bpe.BadTokenizer, match=f"^.*{url}.*/tokenizer.json"):
        append(given, InlineEngine())
    key.store.delete([key.key])  # it was told to be converted again
    with pytest.raises(UsageError, match=f"^.*{url}.*/tokenizer.json"):
        append(given, InlineEngine())


def test_an_interrupted_one_goes_on(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            append(more(), InlineEngine())
    assert flat_tokens.open("out").version == 0
    assert verify_dataset("out").ok
    summary = append(more(), InlineEngine())
    assert summary.reused_shards > 0
    assert flat_tokens.open("out").version == 1
    assert [path.name for path in (grown / "out").glob("part*")] == ["part-1"]


def append_and_die_unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append `more`, killed when the part is finished and not yet listed."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(convert.driver.append, "write_version", killed)
        with pytest.raises(KeyboardInterrupt):
            append(more(), InlineEngine())


def test_a_part_listed_by_another_run_meanwhile_is_appended(
    grown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that had made it ended with exit 6, and was to be given again: its documents would be there twice."""
    write = convert.driver.append.write_version

    def listed_twice(*given: Any) -> None:
        write(*given)
        write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(convert.driver.append, "write_version", listed_twice)
        append(more(), InlineEngine())
    assert flat_tokens.open("out").version == 1
    assert verify_dataset("out").ok


def test_a_part_that_was_finished_is_listed_once(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append_and_die_unlisted(monkeypatch)
    assert flat_tokens.open("out").version == 0
    assert (
        append(more(), InlineEngine()) is None
    )  # it was this part: who gives the command again appends it once
    assert flat_tokens.open("out").version == 1
    append(more(), InlineEngine())
    assert flat_tokens.open("out").version == 2


@pytest.mark.parametrize(
    ("other", "where"),
    [
        ({"inputs": ["en.txt"]}, r"more\.txt.*en\.txt"),
        ({"append_token": END}, "append_token"),
    ],
)
def test_a_part_that_was_finished_of_other_text_is_listed_and_told(
    grown: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], where: str
) -> None:
    append_and_die_unlisted(monkeypatch)
    with pytest.raises(Refused, match=where):
        append(more(**other), InlineEngine())
    assert flat_tokens.open("out").version == 1
    assert append(more(**other), InlineEngine()) is not None
    assert flat_tokens.open("out").version == 2


def test_of_two_at_once_one_is_refused(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = convert.encode.worker.encode_chunk
    refused: list[Refused] = []

    def encode(*given: Any) -> Any:
        if not refused:
            with pytest.raises(Refused) as found:
                append(more(), InlineEngine())
            refused.append(found.value)
        return real(*given)

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", encode)
    append(more(), InlineEngine())
    assert refused
    assert flat_tokens.open("out").version == 1


def test_another_tokenizer_is_refused(grown: Path) -> None:
    text = (grown / "tok.json").read_text()
    (grown / "other.json").write_text(text.replace("<|endoftext|>", "<|end|>"))
    with pytest.raises(DatasetError):
        append(more(tokenizer="other.json"), InlineEngine())
    assert not list((grown / "out").glob("part*"))


def test_to_a_part_is_refused(grown: Path) -> None:
    """It made parts and versions within the part, which no reader of the dataset saw."""
    append(more())
    with pytest.raises(Refused):
        append(more(output="out/part-1"))
    assert not (grown / "out/part-1/part-1").exists()


def test_the_same_files_once_more_are_told(grown: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As when a job is begun again that had ended: it is not known to this run, and two are what was asked for."""
    plain = ["--append-to", "out", "--workers", "1"]
    assert main(["more.txt", *plain]) == 0
    assert "twice" not in capfd.readouterr().err
    for number in (1, 2):
        assert main(["more.txt", *plain]) == 0
        assert f"warning: out: version {number} " in capfd.readouterr().err
    assert main(["more.txt", "--validation-fraction", "0.5", *plain]) == 0
    Path("more.txt").write_text(END.join(make_documents(41, seed=6)), newline="")
    assert main(["more.txt", *plain]) == 0
    assert main(["more.txt", "en.txt", *plain]) == 0
    assert main(["more.txt", *plain]) == 0  # the first of the files before is no reason
    assert "twice" not in capfd.readouterr().err


def test_one_that_grew_is_not_replaced(grown: Path) -> None:
    append(more(), InlineEngine())
    with pytest.raises(Refused):
        run_conversion(options(overwrite=True), InlineEngine())


def test_the_command_takes_the_datasets_own_options(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.txt").write_text("one\\two|three|four")
    (here / "b.txt").write_text("five|six")
    made = ["a.txt", "--tokenizer", "tok.json", "--output", "out", "--separator", "|", "--zarr-format", "3"]
    assert main([*made, "--validation-fraction", "0.5", "--append-token", "<|endoftext|>", "--quiet"]) == 0
    shutil.move("tok.json", "elsewhere.json")
    assert main(["b.txt", "--append-to", "out", "--dry-run"]) == 0
    assert not list((here / "out").glob("part*"))
    assert main(["b.txt", "--append-to", "out", "--quiet"]) == 0
    dataset = flat_tokens.open("out")
    own, part = (found.manifest for found in dataset.parts)
    assert own is not None
    assert part is not None
    for name in ("separator", "zarr_format", "validation_fraction", "append_token", "seed"):
        assert own.options[name] == part.options[name]
    assert len(dataset.train) + len(dataset.validation) == 5
    capsys.readouterr()
    for words, said in (
        (["b.txt", "--append-to", "nowhere"], "nowhere: does not exist"),
        (["b.txt", "--append-to", "out", "--output", "o"], "error: --append-to: "),
        (["b.txt"], "--tokenizer, --output"),
    ):
        assert main(words) in (2, 3)
        assert said in capsys.readouterr().err


def test_an_end_token_of_a_small_id_stays_it(here: Path) -> None:
    """Id 0 became the entry of the text 0."""
    tokenizer = bpe.train([b"0 1 one two"], 260, [END, "<s>"])
    tokenizer.save("tok.json")
    assert tokenizer.special_tokens == {END: 0, "<s>": 1}
    (here / "a.txt").write_text("one")
    (here / "b.txt").write_text("two")
    ends = ["--append-token", END, "--prepend-token", "<s>", "--validation-fraction", "0"]
    assert main(["a.txt", "--tokenizer", "tok.json", "--output", "out", *ends, "--quiet"]) == 0
    assert main(["b.txt", "--append-to", "out", "--quiet"]) == 0
    assert ids("out", "train") == [[1, *tokenizer.encode(text), 0] for text in ("one", "two")]


def test_pairs_behind_records_of_another_field(here: Path) -> None:
    """The dataset's --text-field was in their way, and its end token could not be left out."""
    (here / "a.jsonl").write_text('{"body": "one"}\n')
    (here / "b.jsonl").write_text('{"prompt": "two", "completion": " three"}\n')
    made = [
        "a.jsonl",
        "--tokenizer",
        "tok.json",
        "--output",
        "out",
        "--text-field",
        "body",
        "--append-token",
        END,
    ]
    assert main([*made, "--validation-fraction", "0", "--quiet"]) == 0
    pairs = ["b.jsonl", "--append-to", "out", "--prompt-field", "prompt", "--completion-field", "completion"]
    assert main([*pairs, "--quiet"]) == 0
    assert main([*pairs, "--append-token", "none", "--quiet"]) == 0
    decode = bpe.Tokenizer.load("tok.json").decode
    assert [decode(found) for found in ids("out", "train")] == [f"one{END}", f"two three{END}", "two three"]


def test_parts_with_and_without_a_loss_mask(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`info` and `report` looked for the mask of the part that has none."""
    (here / "a.jsonl").write_text('{"text": "one two", "q": "one", "a": " two"}\n')
    marked = ["--prompt-field", "q", "--completion-field", "a"]
    tokenizer = bpe.Tokenizer.load("tok.json")
    prompt, answer = tokenizer.encode("one"), tokenizer.encode(" two")
    plain = [True] * len(tokenizer.encode("one two"))
    partly = [False] * len(prompt) + [True] * len(answer)
    for first, then, mask in (([], marked, [*plain, *partly]), (marked, [], [*partly, *plain])):
        whole = ["--tokenizer", "tok.json", "--validation-fraction", "0", "--quiet", "--overwrite", *first]
        shutil.rmtree("out", ignore_errors=True)
        assert main(["a.jsonl", "--output", "out", *whole]) == 0
        assert main(["a.jsonl", "--append-to", "out", "--quiet", *then]) == 0
        found = flat_tokens.open("out").train.loss_mask
        assert found is not None
        assert found[:].tolist() == mask
        capsys.readouterr()
        assert flat_tokens_main(["info", "out"]) == 0
        assert f"trained: {sum(mask)} tokens" in capsys.readouterr().out
        assert flat_tokens_main(["report", "out", "--output", "r.html"]) == 0


def test_chats_of_another_template_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    (here / "a.jsonl").write_text('{"messages": [{"role": "assistant", "content": "one"}]}\n')
    for name, mark in (("own.jinja", "!"), ("chat_template.jinja", "?")):
        (here / name).write_text("{% for m in messages %}" + mark + "{{ m.content }}{% endfor %}")
    words = ["a.jsonl", "--messages-field", "messages", "--quiet"]
    made = ["--tokenizer", "tok.json", "--output", "chats", "--validation-fraction", "0"]
    assert main([*words, *made, "--chat-template", "own.jinja"]) == 0
    assert main([*words, "--append-to", "chats", "--tokenizer", "tok.json"]) == 6
    assert "error: chats: " in capsys.readouterr().err
    assert main([*words, "--append-to", "chats", "--chat-template", "own.jinja"]) == 0
    decode = bpe.Tokenizer.load("tok.json").decode
    assert [decode(each) for each in ids("chats", "train")] == ["!one", "!one"]


def test_to_datasets_that_were_imported_or_retokenized(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """These have other options in their manifest, which ended with a traceback."""
    (here / "b.txt").write_text(f"two{END}three")
    encode = bpe.Tokenizer.load("tok.json").encode
    run_conversion(options(), InlineEngine())
    assert flat_tokens_main(["export", "out", "--to", "npy", "--output", "npy"]) == 0
    made = ["import", "npy/train.npy", "--from", "npy", "--output"]
    assert flat_tokens_main([*made, "imported", "--tokenizer", "tok.json"]) == 0
    assert flat_tokens_main([*made, "bare"]) == 0
    assert retokenize_main(["out", "--tokenizer", "tok.json", "--output", "retokenized"]) == 0
    for name in ("imported", "retokenized"):
        before = ids(name, "train")
        for more_words in (["--validation-fraction", "0"], ["--validation-docs", "2"]):
            assert main(["b.txt", "--append-to", name, "--quiet", *more_words]) == 0
        assert ids(name, "train") == [*before, encode("two"), encode("three")]
        assert ids(name, "validation")[-2:] == [encode("two"), encode("three")]
        assert verify_dataset(name).ok
    with pytest.raises(DatasetError, match="imported/tokenizer.json"):
        flat_tokens.open("imported", tokenizer=bpe.Tokenizer.load("tok.json"))
    capsys.readouterr()
    bpe.train([b"another"], 257).save("other.json")
    for name, said in (
        ("imported", "error: imported: "),
        ("bare", "error: bare: "),
    ):
        assert main(["b.txt", "--append-to", name, "--tokenizer", "other.json", "--quiet"]) in (3, 6)
        assert said in capsys.readouterr().err


def test_killed_between_part_and_version(grown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a process that ends where the part is published, as a machine does."""
    script = (
        f"import os, sys; sys.path.insert(0, {str(Path(convert.__file__).parents[1])!r})\n"
        "import convert.driver.append as a\n"
        "a.write_version = lambda *_: os._exit(9)\n"
        "from convert.__main__ import main\n"
        "main(['more.txt', '--append-to', 'out', '--quiet'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=grown, check=False)
    assert done.returncode == 9
    assert verify_dataset("out").ok
    assert flat_tokens.open("out").version == 0
    assert main(["more.txt", "--append-to", "out"]) == 0
    assert "out: an earlier run wrote this part" in capsys.readouterr().out
    assert verify_dataset("out").ok
    assert flat_tokens.open("out").version == 1


def test_a_signal_when_all_was_done_is_no_failure(
    grown: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It ended with 130, and the same command, given again, appended the same documents once more."""
    remove = FolderWorkDir._remove

    def interrupted(*_: Any) -> None:
        monkeypatch.setattr(FolderWorkDir, "_remove", remove)
        raise KeyboardInterrupt

    plain = ["more.txt", "--tokenizer", "tok.json", "--workers", "1", "--quiet", "--progress", "none"]
    monkeypatch.setattr(FolderWorkDir, "_remove", interrupted)
    assert main([*plain, "--output", "alone"]) == 0
    assert "note: alone: " in capfd.readouterr().err
    assert not Path("alone.partial").exists()
    assert verify_dataset("alone").ok
    before = len(ids("out", "train"))
    monkeypatch.setattr(FolderWorkDir, "_remove", interrupted)
    assert main([*plain, "--append-to", "out"]) == 130  # the part is there, and not listed
    assert len(ids("out", "train")) == before
    assert main([*plain, "--append-to", "out"]) == 0
    added = len(ids("out", "train")) - before
    assert added > 0
    monkeypatch.setattr(convert.driver.append, "sync", interrupted)
    assert main([*plain, "--append-to", "out"]) == 0
    assert len(ids("out", "train")) == before + 2 * added
