"""The commands, each in its own process or in this one: data on stdout, one line per error, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_calls import TEXT, failed, run

from bpe.tokenizer import Tokenizer

# -- encode and decode -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ids.txt", "ids.npy", "ids.bin", "-"])
def test_encode_and_back(name, capfdbinary, tokenizer_file, text_file, tmp_path, listed):
    output = name if name == "-" else str(tmp_path / name)
    code, out, err = run(capfdbinary, "encode", "--tokenizer", tokenizer_file, text_file, "--output", output)
    assert (code, err) == (0, "")
    expected = listed().encode(TEXT)
    if name == "-":
        assert out.split() == [str(id_).encode() for id_ in expected]
        output = str(tmp_path / "from_stdout")
        (tmp_path / "from_stdout").write_bytes(out)
    elif name == "ids.npy":
        array = np.load(output)
        assert array.dtype == np.uint32
        assert array.tolist() == expected
    elif name == "ids.bin":
        assert np.fromfile(output, "<u4").tolist() == expected
    code, out, err = run(capfdbinary, "decode", "--tokenizer", tokenizer_file, output)
    assert (code, out, err) == (0, TEXT.encode(), "")


def test_a_line_ends_after_a_special_token(capfdbinary, tokenizer_file, text_file, listed):
    _, out, _ = run(capfdbinary, "encode", "--tokenizer", tokenizer_file, text_file)
    first, second = TEXT.split("<|endoftext|>")
    lines = [list(map(int, line.split())) for line in out.decode().splitlines()]
    assert lines == [listed().encode(first + "<|endoftext|>"), listed().encode(second)]


def test_plain(capfdbinary, tokenizer_file, text_file, listed):
    _, out, _ = run(capfdbinary, "encode", "--plain", "--tokenizer", tokenizer_file, text_file)
    assert list(map(int, out.split())) == listed().encode(TEXT, allowed_special=())


def flagged(tokenizer_file, path):
    """Write a tokenizer with added tokens that depend on their neighbours, and one that is not special."""
    content = json.loads(Path(tokenizer_file).read_bytes())
    first = max(content["model"]["vocab"].values()) + 1
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for number, (text, own) in enumerate(
        [
            ("<mask>", {"lstrip": True, "rstrip": True}),
            ("test", {"single_word": True}),
            ("  ", {"special": False}),
        ]
    ):
        content["added_tokens"].append({"id": first + number, "content": text, **flags, **own})
    path.write_text(json.dumps(content))
    return path


def test_added_tokens_with_flags_are_found_as_the_tokenizer_finds_them(capfdbinary, tokenizer_file, tmp_path):
    """`encode` ignored the flags and cut "test" out of "contest"."""
    made, text = flagged(tokenizer_file, tmp_path / "flagged.json"), "a contest  <mask> \n the test  x"
    (tmp_path / "text.txt").write_text(text)
    tokenizer = Tokenizer.load(made)
    expected = tokenizer.encode(text)
    assert tokenizer.special_tokens["test"] in expected
    code, out, _ = run(capfdbinary, "encode", tmp_path / "text.txt", "--tokenizer", made)
    assert (code, list(map(int, out.split()))) == (0, expected)
    for line in out.splitlines()[:-1]:
        assert int(line.split()[-1]) in tokenizer.special_tokens.values()


def test_added_tokens_that_are_not_special_are_tokens_of_records(capfdbinary, tokenizer_file, tmp_path):
    made, text = flagged(tokenizer_file, tmp_path / "flagged.json"), "a  <mask> b"
    (tmp_path / "text.jsonl").write_text(json.dumps({"text": text}))
    tokenizer = Tokenizer.load(made)
    expected = tokenizer.encode(text, ["  "])
    assert tokenizer.special_tokens["  "] in expected
    code, out, _ = run(capfdbinary, "encode", tmp_path / "text.jsonl", "--tokenizer", made)
    assert (code, list(map(int, out.split()))) == (0, expected)


def test_stdin_to_stdout(tokenizer_file, listed):
    command = [sys.executable, "-m", "bpe"]
    made = subprocess.run(
        [*command, "encode", "--tokenizer", tokenizer_file],
        input=TEXT.encode(),
        capture_output=True,
        check=True,
    )
    assert list(map(int, made.stdout.split())) == listed().encode(TEXT)
    back = subprocess.run(
        [*command, "decode", "--tokenizer", tokenizer_file, "-"],
        input=made.stdout,
        capture_output=True,
        check=True,
    )
    assert back.stdout == TEXT.encode()
    assert made.stderr == back.stderr == b""


def test_a_closed_pipe_is_quiet(tokenizer_file, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("the quick brown fox\n" * 200_000)
    command = f"{sys.executable} -m bpe encode --tokenizer {tokenizer_file} {path} | head -c 10 >/dev/null"
    command += "; echo ${PIPESTATUS[0]}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert ended.stdout == b"141\n"
    assert ended.stderr == b""


def test_rank_files(capfdbinary, ranked, text_file, tmp_path):
    ranked().export_tiktoken(tmp_path / "t.tiktoken")
    options = ["--tokenizer", tmp_path / "t.tiktoken", "--pattern", "gpt2", "--special-token"]
    for special in ("<|endoftext|>", f"<|endoftext|>={ranked().special_tokens['<|endoftext|>']}"):
        _, out, _ = run(capfdbinary, "encode", text_file, *options, special)
        assert list(map(int, out.split())) == ranked().encode(TEXT)
    failed(
        capfdbinary, 2, "--special-token", "encode", text_file, *options, "<s>=5", "--special-token", "<t>"
    )
    failed(
        capfdbinary,
        2,
        "--special-token",
        "encode",
        text_file,
        *options,
        "<s>=5",
        "--special-token",
        "<s>=6",
    )


def test_entries_that_are_text(capfdbinary, tmp_path):
    """Train, inspect, report and encode."""
    text, made, ids = tmp_path / "text.txt", tmp_path / "made.json", tmp_path / "ids"
    text.write_text("the then \u2581 caf\u00e9  \u4f60\n" * 9)
    like = ("train", text, "--vocab-size", 290, "--like", "llama-2", "--output", made)
    code, _, err = run(capfdbinary, *like, "--report", tmp_path / "r.html", "--quiet")
    assert code == 0, err
    assert "bytes of text per token" in (tmp_path / "r.html").read_text()
    code, out, _ = run(capfdbinary, "info", made)
    assert code == 0
    assert b"never produced" in out
    code, out, _ = run(capfdbinary, "report", made, text)
    assert code == 0
    assert b"bytes per token on" in out
    assert run(capfdbinary, "encode", text, "--tokenizer", made, "--output", ids)[0] == 0
    code, out, _ = run(capfdbinary, "decode", ids, "--tokenizer", made)
    assert (code, out.decode()) == (0, text.read_text().replace("\u2581", " "))


def test_the_regex_fallback_is_reported_once(capfdbinary, tmp_path):
    """Pieces depend on the thirteenth character, which needs more states than tables have."""
    pattern = r"[ab]*a[ab]{12}|.|\n"
    text = tmp_path / "text.txt"
    text.write_text("abababababababab\nc" * 50)
    slow, dataset = tmp_path / "slow.json", tmp_path / "data.zarr"
    note = "The regex package"
    code, _, err = run(
        capfdbinary, "train", text, "--vocab-size", 260, "--pattern", pattern, "--output", slow, "--quiet"
    )
    assert code == 0, err
    code, _, err = run(capfdbinary, "encode", text, "--tokenizer", slow, "--output", tmp_path / "ids")
    assert (code, err.count(note)) == (0, 1), err
    done = subprocess.run(
        [sys.executable, "-m", "convert", text, "--tokenizer", slow, "--output", dataset, "--workers", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count(note)) == (0, 1), done.stderr


def test_invalid_text(capfdbinary, tokenizer_file, tmp_path, listed):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"ab\xffc")
    message = r"tokenmill: error: .*bad.txt: byte 2: .*--invalid replace"
    failed(capfdbinary, 3, message, "encode", "--tokenizer", tokenizer_file, path)
    failed(
        capfdbinary,
        3,
        message,
        "encode",
        "--tokenizer",
        tokenizer_file,
        path,
        "--output",
        tmp_path / "ids.npy",
    )
    assert not list(tmp_path.glob("*ids.npy*"))
    _, out, _ = run(capfdbinary, "encode", "--tokenizer", tokenizer_file, path, "--invalid", "replace")
    assert list(map(int, out.split())) == listed().encode("ab\ufffdc")
    path.write_bytes("hello".encode("utf-16"))
    failed(
        capfdbinary,
        3,
        "looks like UTF-16",
        "encode",
        "--tokenizer",
        tokenizer_file,
        path,
        "--invalid",
        "replace",
    )


def test_bad_arguments(capfdbinary, tokenizer_file, text_file, tmp_path):
    failed(
        capfdbinary,
        2,
        "tokenmill: error: .*no.json",
        "encode",
        "--tokenizer",
        "no.json",
        text_file,
    )
    failed(capfdbinary, 2, "no.txt: No such file", "encode", "--tokenizer", tokenizer_file, "no.txt")
    failed(capfdbinary, 2, "is a folder", "encode", "--tokenizer", tokenizer_file, tmp_path)
    failed(
        capfdbinary,
        2,
        "--format",
        "encode",
        "--tokenizer",
        tokenizer_file,
        text_file,
        "--format",
        "npy",
    )
    failed(capfdbinary, 2, "arguments are required: --tokenizer", "encode", text_file)
    failed(
        capfdbinary,
        2,
        r"--invalid: .*\(got 'skip'\)",
        "encode",
        "--tokenizer",
        tokenizer_file,
        text_file,
        "--invalid",
        "skip",
    )
    output = tmp_path / "no" / "ids"
    failed(
        capfdbinary,
        2,
        "--output",
        "encode",
        "--tokenizer",
        tokenizer_file,
        text_file,
        "--output",
        output,
    )
    (tmp_path / "cut.json").write_text('{"version": "1.0",')
    failed(capfdbinary, 2, "cut.json: line 1 column", "info", tmp_path / "cut.json")


def test_debug_shows_the_traceback(capfdbinary):
    code, _, err = run(capfdbinary, "info", "no.json", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert ": no.json: " in err.splitlines()[-1]


def test_an_interrupt(capfdbinary, monkeypatch, tokenizer_file):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bpe.cli.commands.info", interrupted)
    failed(capfdbinary, 130, "tokenmill: error: interrupted", "info", tokenizer_file)


# -- info --------------------------------------------------------------------------------------------------------


def test_info(capfdbinary, tokenizer_file, listed):
    code, out, err = run(capfdbinary, "info", tokenizer_file)
    assert (code, err) == (0, "")
    assert "entries          557\n" in out.decode()
    assert f"fingerprint      {listed().fingerprint()}\n" in out.decode()
    assert "<|endoftext|>=556" in out.decode()
    facts = json.loads(run(capfdbinary, "info", tokenizer_file, "--json")[1])
    assert facts["merges"] == 300
    assert facts["special tokens"] == {"<|endoftext|>": 556}
    assert facts["pattern"] == "gpt2"


# -- train -------------------------------------------------------------------------------------------------------


def test_train(capfdbinary, tmp_path, random_texts):
    folder = tmp_path / "texts"
    folder.mkdir()
    for place, text in enumerate(random_texts(seed=10, count=3, size=3000)):
        (folder / f"{place}.txt").write_text(text, newline="")
    (folder / ".hidden").write_bytes(b"\xff")
    output = tmp_path / "t.json"
    command = ["train", folder, "--vocab-size", "0.3k".replace("0.3k", "300"), "--output", output]
    code, out, err = run(capfdbinary, *command, "--special-token", "<|endoftext|>", "--special-token", "<s>")
    assert (code, out) == (0, b"")
    lines = err.splitlines()
    assert len(lines) == 3
    assert re.match(r"counting: \d\.\d kB, [0-9.,]+ [kM]B/s, \d+\.\d s$", lines[0])
    assert re.match(r"merging: 42 entries, ", lines[1])
    assert lines[2] == f"{output}: 300 entries, pattern gpt2"
    tokenizer = Tokenizer.load(output)
    assert tokenizer.vocab_size == 300
    assert tokenizer.special_tokens == {"<|endoftext|>": 0, "<s>": 1}
    globbed = tmp_path / "u.json"
    command = [
        "train",
        f"{folder}/*.txt",
        "--vocab-size",
        "300",
        "--output",
        globbed,
        "--quiet",
        "--threads",
        "1",
    ]
    assert run(capfdbinary, *command, "--special-token", "<|endoftext|>", "--special-token", "<s>") == (
        0,
        b"",
        "",
    )
    assert globbed.read_bytes() == output.read_bytes()


def test_train_refuses(capfdbinary, tmp_path, text_file):
    output = ["--output", tmp_path / "t.json"]
    size = ["--vocab-size", "300"]
    (tmp_path / "empty").mkdir()
    message = r"no.txt: .*/empty: .*no\*: .*$"
    failed(capfdbinary, 2, message, "train", text_file, "no.txt", tmp_path / "empty", "no*", *size, *output)
    failed(capfdbinary, 2, "/dev/zero: ", "train", "/dev/zero", *size, *output)
    failed(capfdbinary, 2, "error: -: ", "train", "-", "-", *size, *output)
    failed(capfdbinary, 2, "error: inputs: ", "train", *size, *output)
    failed(
        capfdbinary,
        2,
        r"--vocab-size: .*\(got 'many'\)",
        "train",
        text_file,
        "--vocab-size",
        "many",
        *output,
    )
    failed(capfdbinary, 2, "--vocab-size", "train", text_file, "--vocab-size", "10", *output)
    failed(
        capfdbinary,
        2,
        "--output",
        "train",
        text_file,
        *size,
        "--output",
        tmp_path / "no/t.json",
    )
    failed(capfdbinary, 2, "pattern, character 0", "train", text_file, *size, *output, "--pattern", "(a")
    failed(
        capfdbinary,
        3,
        r"byte \d+",
        "train",
        text_file,
        *size,
        *output,
        "--pattern",
        r"\b\w+\b|.",
    )
    failed(capfdbinary, 2, "--threads", "train", text_file, *size, *output, "--threads", "0")
    assert not (tmp_path / "t.json").exists()


def test_help_is_quick_to_import():
    """--help imports neither numpy nor the core."""
    code = "import sys; sys.argv = ['bpe', '--help']; import runpy\n"
    code += "try: runpy.run_module('bpe', run_name='__main__')\nexcept SystemExit: pass\n"
    code += "assert not {'numpy', 'regex', 'tqdm', 'bpe._core'} & set(sys.modules), sys.modules.keys()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    commands = (b"train", b"count", b"report", b"encode", b"decode", b"info")
    assert all(b"\n    " + name in ended.stdout for name in commands)
