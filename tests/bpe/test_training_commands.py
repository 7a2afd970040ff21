"""The commands `train` and `count`: several sizes, counts files, stdin, interrupts that keep counts, exit codes."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.__main__ import main
from bpe.presets import PRESETS
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.progress import TrainingProgress
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_sizes
from bpe.training_options import TrainingOptions

END = "<|endoftext|>"
SPECIAL = ["--special-token", END]
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """run(*arguments) returns (exit code, stderr) of a command and checks that stdout is empty."""

    def command(*arguments: object) -> tuple[int, str]:
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capfd.readouterr()
        assert out == ""
        return code, err

    return command


@pytest.fixture
def fails(run: Run) -> Callable[..., None]:
    """fails(code, message, *arguments) expects one line on stderr that contains the message."""

    def command(code: int, message: str, *arguments: object) -> None:
        got, err = run(*arguments)
        assert (got, err.count("\n")) == (code, 1), err
        assert re.search(message, err), err

    return command


@pytest.fixture
def texts(tmp_path: Path, random_texts: Any) -> list[Path]:
    paths = []
    for place, text in enumerate(random_texts(seed=4, count=3, size=4000)):
        paths.append(tmp_path / f"{place}.txt")
        paths[-1].write_text(text + END, newline="", encoding="utf-8")
    return paths


# -- several sizes -------------------------------------------------------------------------------------------


def test_sizes_are_prefixes_of_one_training(run: Run, texts: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "t-{vocab_size}.json"
    code, err = run("train", *texts, *SPECIAL, "--vocab-size", "300,0.26k,4e2", "--output", output)
    assert code == 0, err
    assert err.count("merging") == 1
    sizes = train_sizes(texts, [300, 260, 400], TrainingOptions([END]))
    assert list(sizes) == [300, 260, 400]
    for size, tokenizer in sizes.items():
        assert tokenizer == train(texts, size, [END])
        assert Tokenizer.load(tmp_path / f"t-{size}.json") == tokenizer
        assert tokenizer.vocab_size == size


def test_sizes_that_can_not_be_named_or_made(fails: Any, texts: list[Path], tmp_path: Path) -> None:
    output = ["--output", tmp_path / "t.json"]
    fails(2, r"--output: .*\{vocab_size\}", "train", *texts, "--vocab-size", "1k,2k", *output)
    numbered = ["--output", tmp_path / "{vocab_size}.json"]
    fails(2, "--vocab-size: .*1000", "train", *texts, "--vocab-size", "1k,1000", *numbered)
    fails(2, "--vocab-size: .*257.*256", "train", *texts, *SPECIAL, "--vocab-size", "1k,256", *numbered)
    fails(
        2,
        r"--vocab-size: .*\(got ''\)",
        "train",
        "--vocab-size",
        "1k,",
        *numbered,
    )
    assert not list(tmp_path.glob("*.json"))


def test_more_than_there_is_stops_early(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"aab ab")
    code, err = run("train", tmp_path / "a", "--vocab-size", "258,9k", "--output", tmp_path / "{vocab_size}")
    assert code == 0
    assert "note: training: " in err
    assert "259 of 9000" in err
    assert Tokenizer.load(tmp_path / "9000").vocab_size == 259
    code, err = run(
        "train",
        tmp_path / "a",
        "--vocab-size",
        "9k",
        "--max-token-bytes",
        "2",
        "--min-frequency",
        "2",
        "--output",
        tmp_path / "x",
    )
    assert "note: training: " in err
    assert "1 merge" in err


# -- counts files --------------------------------------------------------------------------------------------


def test_counts_of_one_document(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b a")
    _, err = run("count", tmp_path / "text", "--output", tmp_path / "counts")
    assert err.endswith("counts: counts of 5 bytes in 1 document, pattern gpt2\n")


def test_counts_instead_of_text(run: Run, texts: list[Path], tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    run("train", *texts, *SPECIAL, "--vocab-size", 400, "--output", whole, "--pattern", "llama3")
    for place, text in enumerate(texts):
        count = ["count", text, *SPECIAL, "--pattern", "llama3", "--output", tmp_path / f"{place}.counts"]
        code, err = run(*count)
        assert code == 0
        assert re.search(rf"{place}\.counts: counts of .* in \d+ documents, pattern llama3\n$", err)
    files = sorted(tmp_path.glob("*.counts"))
    run("train", "--counts", *files, "--vocab-size", "400", "--output", tmp_path / "merged.json")
    run("train", texts[0], "--counts", *files[1:], "--vocab-size", "400", "--output", tmp_path / "mixed.json")
    run("count", "--counts", *files[:2], "--counts", files[2], "--output", tmp_path / "all.counts", "--quiet")
    run(
        "train",
        "--counts",
        tmp_path / "all.counts",
        "--vocab-size",
        "400",
        "--output",
        tmp_path / "again.json",
    )
    for name in ("merged", "mixed", "again"):
        assert (tmp_path / f"{name}.json").read_bytes() == whole.read_bytes(), name
    assert (
        CountsFile(tmp_path / "all.counts").facts.documents == count_pretokens(texts, [END]).facts.documents
    )


def test_counts_are_kept_on_request(run: Run, texts: list[Path], tmp_path: Path) -> None:
    command = ["train", *texts, *SPECIAL, "--vocab-size", "400", "--output", tmp_path / "t.json"]
    assert run(*command, "--keep-counts", tmp_path / "kept")[0] == 0
    assert PretokenCounts.load(tmp_path / "kept").as_dict() == count_pretokens(texts, [END]).as_dict()


def test_options_of_the_start(run: Run, fails: Any, texts: list[Path], tmp_path: Path) -> None:
    def made(name: str, *options: object) -> Tokenizer:
        code, err = run("train", *texts, "--output", tmp_path / name, *options)
        assert code == 0, err
        return Tokenizer.load(tmp_path / name)

    assert made("l.json", "--vocab-size", 400, *SPECIAL, "--like", "qwen-3") == train(
        texts, 400, [END], like="qwen3"
    )
    like_file = [
        "--vocab-size",
        400,
        *SPECIAL,
        "--like",
        tmp_path / "l.json",
        "--keep-counts",
        tmp_path / "c",
    ]
    assert made("f.json", *like_file) == made("l.json", "--vocab-size", 400, *SPECIAL, "--like", "qwen-2.5")
    longer = ["--continue-from", tmp_path / "l.json", "--vocab-size", 500]
    assert made("c.json", *longer) == train(texts, 500, [END], like="qwen-3")
    assert run("train", "--counts", tmp_path / "c", *longer, "--output", tmp_path / "d.json")[0] == 0
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "c.json").read_bytes()
    alphabet = ["--initial-alphabet", "aĠ", "--limit-alphabet", 9, "--max-token-length", 4]
    options = TrainingOptions(initial_alphabet="aĠ", limit_alphabet=9, max_token_length=4)
    expected = train_sizes(texts, [300], options)[300]
    assert made("a.json", "--vocab-size", 300, *alphabet) == expected
    output = ["--output", tmp_path / "x.json"]
    counts = ["--counts", tmp_path / "c", *output, "--vocab-size", 300]
    fails(2, "/c: .*'qwen2'.*'gpt2'", "train", *counts, "--like", "gpt-2")
    plain = ["count", texts[0], *SPECIAL, "--like", "gpt-2", "--output", tmp_path / "plain"]
    assert run(*plain)[0] == 0
    counts[1] = tmp_path / "plain"
    fails(2, "/plain: .*none.*NFC", "train", *counts, "--like", "pythia")
    excluded = "error: --like: .* --pattern"
    fails(2, excluded, *plain, "--pattern", "gpt2")
    fails(
        2,
        excluded,
        "train",
        *texts,
        *counts[2:],
        "--like",
        "gpt-2",
        "--pattern",
        "gpt2",
    )
    fails(2, "--output .*l.json: ", "train", *texts, *longer, "--output", tmp_path / "l.json")
    for option in (["--limit-alphabet", 9], ["--like", "gpt-2"]):
        excluded = f"error: {option[0]}: .* --continue-from"
        fails(2, excluded, "train", *texts, *longer, *output, *option)
    too_few = ["--vocab-size", 300, "--limit-alphabet", 2, "--initial-alphabet", "abc"]
    few = "error: --limit-alphabet: (?:(?!--counts).)*$"  # no counts to keep
    fails(2, few, "train", *texts, *output, *too_few)
    several = ["--vocab-size", "300,400", "--output", tmp_path / "x.json"]
    fails(2, r"--output: .*\{vocab_size\}", "train", *texts, *several)
    clip = ["train", *texts, *output, "--vocab-size", 600, "--like", "clip"]
    no_report = "error: end_of_word_suffix"
    fails(2, no_report, *clip, "--report", tmp_path / "r.html")
    assert not (tmp_path / "x.json").exists()  # rejected before anything is written
    assert run(*clip, "--output", tmp_path / "clip.json", "--quiet")[0] == 0
    again = ["train", *texts, *output, "--vocab-size", 700, "--continue-from", tmp_path / "clip.json"]
    fails(2, no_report, *again, "--report", tmp_path / "r.html")
    longer[1] = tmp_path / "no-such.json"
    fails(2, "no-such.json: ", "train", *texts, *output, *longer)
    assert not (tmp_path / "x.json").exists()


def test_help_lists_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for preset in PRESETS for name in preset.names)


def test_stdin_is_an_input(texts: list[Path], tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bpe",
        "train",
        str(texts[0]),
        "-",
        *SPECIAL,
        "--vocab-size",
        "400",
        "--output",
    ]
    text = texts[1].read_bytes() + texts[2].read_bytes()
    ended = subprocess.run([*command, str(tmp_path / "t.json")], input=text, capture_output=True, check=True)
    assert ended.stdout == b""
    assert Tokenizer.load(tmp_path / "t.json") == train(texts, 400, [END])
    bad = subprocess.run(
        [*command, str(tmp_path / "t.json")], input=b"ab\xff", capture_output=True, check=False
    )
    assert bad.returncode == 3
    assert bad.stderr.startswith(b"tokenmill: error: stdin: byte 2: ")
    line = f"'{sys.executable}' -m bpe count - --output '{tmp_path}/x' <&-"
    closed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1)
    assert closed.stderr.startswith("tokenmill: error: -: ")


def test_the_corpus_order_follows_the_arguments(texts: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from bpe.cli.text_input import input_sources

    class Stdin:
        buffer = io.BytesIO(b"x")

    monkeypatch.setattr(sys, "stdin", Stdin())
    sources = input_sources([str(texts[1]), "-", str(texts[0])])
    assert [source.name for source in sources] == [str(texts[1]), "text", str(texts[0])]


def test_refusals(fails: Any, run: Run, texts: list[Path], tmp_path: Path) -> None:
    output = ["--vocab-size", "300", "--output", tmp_path / "t.json"]
    run("count", texts[0], *SPECIAL, "--output", tmp_path / "a.counts")
    run("count", texts[0], *SPECIAL, "--pattern", "qwen2", "--output", tmp_path / "b.counts")
    both = ["--counts", tmp_path / "a.counts", tmp_path / "b.counts"]
    fails(2, r"a\.counts: .*'gpt2'.*'qwen2'.*b\.counts", "train", *both, *output)
    fails(2, r"a\.counts: .*'o200k'.*--pattern", "train", *both[:2], "--pattern", "o200k", *output)
    fails(2, "error: inputs: ", "count", "--output", tmp_path / "x")
    held_out = ["--report", tmp_path / "r", "--held-out", "-"]
    fails(2, "error: -: ", "train", "-", *output, *held_out)
    fails(2, r"no\.counts: ", "train", "--counts", tmp_path / "no.counts", *output)
    fails(3, r"0\.txt: ", "train", "--counts", texts[0], *output)
    fails(2, "--seed: ", "train", *texts, "--seed", "x", *output)
    fails(2, "--threads: ", "count", *texts, "--threads", "0", "--output", tmp_path / "x")
    fails(2, "--max-memory: ", "train", *texts, "--max-memory", "1MB", *output)
    fails(2, '--min-pretoken-count: .*"fit"', "train", *texts, "--min-pretoken-count", "few", *output)
    fails(
        2,
        "--min-pretoken-count",
        "train",
        texts[0],
        *SPECIAL,
        "--min-pretoken-count",
        "0",
        *output,
    )
    fails(2, "--max-token-bytes: ", "train", *texts, "--max-token-bytes", "1", *output)
    fails(2, "--sample-bytes: ", "train", *texts, "--sample-bytes", "0", *output)
    fails(2, "--keep-counts .*no/x: ", "train", *texts, "--keep-counts", tmp_path / "no/x", *output)
    fails(2, "--special-token: .*'<s>'", "train", *texts, *["--special-token", "<s>"] * 2, *output)
    fails(2, "--special-token: ", "train", *texts, "--special-token", "", *output)
    (tmp_path / "empty").write_bytes(b"")
    fails(2, "error: inputs: ", "train", tmp_path / "empty", *output, "--quiet")
    rare = ["train", *texts, *SPECIAL, "--quiet", *output, "--min-pretoken-count"]
    for count in ("99999", "9" * 15):
        fails(2, f"--min-pretoken-count: .*{count}", *rare, count)
    damaged = bytearray((tmp_path / "a.counts").read_bytes())
    damaged[200] ^= 1
    (tmp_path / "a.counts").write_bytes(damaged)
    fails(3, r"a\.counts: damaged", "train", *both[:2], *output)
    assert not (tmp_path / "t.json").exists()


# -- interrupts ----------------------------------------------------------------------------------------------


@pytest.fixture
def signal_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """signal_in(phase, number, times): the process signals itself at the first updates of the phase."""
    update = TrainingProgress.update

    def install(phase: str, number: int = signal.SIGINT, times: int = 1) -> None:
        left = [times]

        def signalling(self: TrainingProgress, done: int) -> None:
            update(self, done)
            if self._phase == phase and left[0]:
                left[0] -= 1
                os.kill(os.getpid(), number)

        monkeypatch.setattr(TrainingProgress, "update", signalling)

    return install


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["ctrl-c", "sigterm", "sighup"]
)
@pytest.mark.parametrize("command", ["train", "count"])
def test_counting_that_is_interrupted_leaves_nothing(
    command: str, number: int, run: Run, signal_in: Any, texts: list[Path], tmp_path: Path
) -> None:
    signal_in("counting", number)
    before = set(tmp_path.iterdir())
    size = ["--vocab-size", "300"] if command == "train" else []
    code, err = run(command, *texts, *SPECIAL, *size, "--output", tmp_path / "t.out")
    assert code == 128 + number
    assert err.endswith("tokenmill: error: interrupted while counting\n")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kept", [True, False])
def test_merging_that_is_interrupted_leaves_the_counts(
    kept: bool, run: Run, signal_in: Any, texts: list[Path], tmp_path: Path
) -> None:
    command = ["--vocab-size", "300,320", "--output", tmp_path / "t-{vocab_size}.json"]
    signal_in("merging")
    (tmp_path / "t-all.counts").write_bytes(b"somebody's")
    options = ["--keep-counts", tmp_path / "mine"] if kept else []
    code, err = run("train", *texts, *SPECIAL, *command, *options)
    assert code == 130
    name = tmp_path / ("mine" if kept else "t-all.1.counts")
    assert "tokenmill: error: interrupted while merging. " in err
    assert f"--counts {name} " in err.splitlines()[-1]
    assert (tmp_path / "t-all.counts").read_bytes() == b"somebody's"
    assert run("train", "--counts", name, *command)[0] == 0
    assert Tokenizer.load(tmp_path / "t-320.json") == train(texts, 320, [END])
    signal_in("merging")
    code, err = run("train", "--counts", name, *command)
    assert (code, err.count("\n")) == (130, 1)
    assert err.startswith("tokenmill: error: interrupted while merging. ")


def test_no_memory_for_merging_keeps_the_counts(
    run: Run, texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("bpe.cli.training_commands.learn_merges", no_memory)
    code, err = run(
        "train", *texts, *SPECIAL, "--vocab-size", "300", "--output", tmp_path / "t.json", "--quiet"
    )
    assert code == 5
    assert err.startswith("tokenmill: error: out of memory while merging. ")
    assert len(CountsFile(tmp_path / "t.counts"))


def test_signals_are_as_before_afterwards(run: Run, texts: list[Path], tmp_path: Path) -> None:
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = [signal.getsignal(number) for number in numbers]
    run("count", *texts, "--output", tmp_path / "c")
    assert [signal.getsignal(number) for number in numbers] == before


def test_special_tokens_that_the_counts_were_not_cut_at_are_named(
    run: Run, texts: list[Path], tmp_path: Path
) -> None:
    counts, output = tmp_path / "a.counts", tmp_path / "t.json"
    assert run("count", *texts, *SPECIAL, "--output", counts)[0] == 0
    command = ["train", "--counts", counts, "--vocab-size", "300", "--output", output, "--quiet"]
    assert run(*command) == (0, "")
    assert run(*command, *SPECIAL) == (0, "")
    code, err = run(*command, *SPECIAL, "--special-token", "<s>", "--special-token", "</s>")
    assert (code, err.count("\n")) == (0, 1)
    assert re.search("note: counts files: .*'<s>', '</s>'", err)
    assert list(Tokenizer.load(output).special_tokens) == [END, "<s>", "</s>"]
