"""Command faults caused by the environment: wrong files, odd names, closed streams. Each gives one line."""

from __future__ import annotations

import base64
import re
import signal
import subprocess
import sys
import time

import pytest
from cli_calls import failed, run

from bpe.tokenizer import Tokenizer


def test_files_too_long_for_a_tokenizer_are_not_read(monkeypatch, capfdbinary, tmp_path, text_file):
    """A corpus passed by mistake was read into memory as a whole, and reading /dev/zero never ended."""
    monkeypatch.setattr("bpe.formats.by_path._MAX_BYTES", 1000)
    (tmp_path / "corpus").write_bytes(b"{" * 1001)
    for path in (tmp_path / "corpus", "/dev/zero"):
        failed(capfdbinary, 2, f"{path}: ", "info", path)


def test_an_empty_name_of_a_tokenizer_was_the_current_folder(
    monkeypatch, capfdbinary, tokenizer_file, text_file, tmp_path
):
    monkeypatch.chdir(tmp_path)  # with a tokenizer.json
    failed(capfdbinary, 2, "tokenizer: ", "encode", "--tokenizer", "", text_file)
    failed(capfdbinary, 2, "tokenizer: ", "info", "")
    failed(capfdbinary, 2, "tokenizer: ", "report", "", text_file)


def test_names_of_outputs_and_patterns_are_printed_on_one_line(capfdbinary, text_file, tmp_path):
    """Line breaks and terminal escapes in them were printed unescaped."""
    output, pattern = tmp_path / "a\n\x1b[31mb", "\\w+|\\W|[\n\x1b]"
    words = ["--pattern", pattern, "--output", output, "--quiet"]
    assert run(capfdbinary, "train", text_file, "--vocab-size", "260", *words)[0] == 0
    for command in (["train", text_file, "--vocab-size", "260"], ["count", text_file]):
        code, _, err = run(capfdbinary, *command, *words[:-1])
        assert (code, "\x1b" in err) == (0, False)
        assert "a\\n\\x1b[31mb: " in err.splitlines()[-1]
    assert run(capfdbinary, "train", text_file, "--vocab-size", "260", *words)[0] == 0
    code, out, err = run(capfdbinary, "info", output)
    assert (code, err, b"\x1b" in out) == (0, "", False)
    assert b"\\x{1B}" in out


def test_a_tokenizer_may_come_through_a_pipe(tokenizer_file, text_file):
    command = f"{sys.executable} -m bpe encode --tokenizer <(cat {tokenizer_file}) {text_file}"
    plain = [sys.executable, "-m", "bpe", "encode", "--tokenizer", tokenizer_file, text_file]
    through = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (through.returncode, through.stderr) == (0, b"")
    assert through.stdout == subprocess.run(plain, capture_output=True, check=True).stdout


def test_a_file_name_broke_the_line(capfdbinary, tokenizer_file, tmp_path):
    """Line breaks and terminal escapes in a file name were printed unescaped."""
    name = tmp_path / "new\nline\x1b[31m.txt"
    name.write_bytes(b"a\xff")
    shown = r"new\\nline\\x1b\[31m\.txt: "
    train = ["train", name, "--vocab-size", "300", "--quiet", "--output", tmp_path / "out"]
    failed(capfdbinary, 3, shown, *train)
    failed(capfdbinary, 3, shown, "encode", "--tokenizer", tokenizer_file, name, "--output", tmp_path / "out")
    failed(capfdbinary, 2, shown[:-2] + ".json: ", "info", f"{name}.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output", ["", ".", "/"])
def test_an_output_that_is_a_folder_was_found_after_the_training(
    output, capfdbinary, text_file, tokenizer_file
):
    failed(capfdbinary, 2, "--output", "train", text_file, "--vocab-size", "300", "--output", output)
    failed(capfdbinary, 2, "--output", "encode", text_file, "--tokenizer", tokenizer_file, "--output", output)


def test_an_empty_input_meant_the_whole_folder(capfdbinary, tmp_path):
    failed(capfdbinary, 2, "''", "train", "", "--vocab-size", "300", "--output", tmp_path / "t")


@pytest.mark.parametrize("flag", ["--output", "--report", "--keep-counts"])
def test_train_wrote_a_file_named_as_stdout(flag, capfdbinary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the mill\n" * 9)
    more = [] if flag == "--output" else ["--output", "made.json"]
    failed(
        capfdbinary,
        2,
        f"{flag} -",
        *("train", "text.txt", "--vocab-size", 260, flag, "-"),
        *more,
    )
    assert not (tmp_path / "-").exists()


def test_encode_did_not_count_replacements(capfdbinary, tokenizer_file, tmp_path):
    (tmp_path / "bad").write_bytes(b"a\xff\xffb")
    command = ["encode", "--tokenizer", tokenizer_file, tmp_path / "bad", "--invalid", "replace"]
    code, out, err = run(capfdbinary, *command)
    assert code == 0
    assert re.fullmatch(r"tokenmill: note: .* 2 .*U\+FFFD.*\n", err)
    assert (
        out == (" ".join(map(str, Tokenizer.load(tokenizer_file).encode("a\ufffd\ufffdb"))) + "\n").encode()
    )


@pytest.mark.parametrize("command", ["encode", "report"])
def test_bad_records_were_left_out_in_silence(command, capfdbinary, tokenizer_file, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "the"}\n{"body": "mill"}\nno JSON\n{"text": "caf\xe9"}\n')
    named = [tokenizer_file, path] if command == "report" else [path, "--tokenizer", tokenizer_file]
    at = f"first in {path} at byte"
    missing, malformed = f"field missing: 1, {at} 16", f"malformed: 1, {at} 33"
    for options, notes in (
        (
            ["--on-error", "skip"],
            [f"{missing}; invalid UTF-8: 1, {at} 41; {malformed}"],
        ),
        (
            ["--on-error", "skip", "--invalid", "replace"],
            [
                "U+FFFD",
                f"{missing}; {malformed}",
            ],
        ),
    ):
        code, _, err = run(capfdbinary, command, *named, *options)
        assert code == 0
        for note, line in zip(notes, err.splitlines(), strict=True):
            assert line.startswith("tokenmill: note: ")
            assert note in line


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">/dev/full", ">&- 2>&-"])
def test_a_closed_stdout_gave_a_traceback(closed, tokenizer_file, text_file):
    command = f'"{sys.executable}" -m bpe encode --tokenizer "{tokenizer_file}" "{text_file}" {closed}'
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == (4 if "full" in closed else 0)
    if "full" in closed:
        assert ended.stderr.startswith("tokenmill: error: stdout: ")
        assert ended.stderr.count("\n") == 1
    else:
        assert ended.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_left_half_a_file(number, tokenizer_file, tmp_path):
    command = [
        sys.executable,
        "-m",
        "bpe",
        "encode",
        "--tokenizer",
        tokenizer_file,
        "--output",
        tmp_path / "ids.npy",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob(".ids.npy.*.partial")):  # then it waits for more text
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait() == 128 + number
        assert process.stderr.read() == f"tokenmill: error: stopped by {number.name}\n"
    assert not list(tmp_path.glob(".ids*"))


def test_a_closed_stdin_gave_a_traceback(tokenizer_file):
    command = f'"{sys.executable}" -m bpe encode --tokenizer "{tokenizer_file}" <&-'
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("tokenmill: error: -: ")


def test_a_core_that_is_not_built_gave_a_traceback(text_file):
    code = "import sys; sys.modules['bpe._core'] = None\n"
    code += f"from bpe.__main__ import main; sys.exit(main(['info', {text_file!r}]))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("tokenmill: error: ")
    assert ended.stderr.count("\n") == 1


def test_options_that_are_not_utf8(capfdbinary, tmp_path, text_file):
    """The byte 0xff as the system passes it; --pattern and count's --special-token gave a traceback."""
    output = tmp_path / "out"
    for command in (["train", text_file, "--vocab-size", "300"], ["count", text_file]):
        for option, value in (("--special-token", "a\udcff"), ("--pattern", "a\udcff|.")):
            message = f"{option}: "
            failed(capfdbinary, 2, message, *command, "--output", output, option, value)
    assert not output.exists()


def test_a_special_token_that_is_not_utf8_is_not_an_entry(capfdbinary, tmp_path, text_file):
    (tmp_path / "ranks.tiktoken").write_bytes(
        b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    )
    words = ["--tokenizer", tmp_path / "ranks.tiktoken", "--pattern", "gpt2", "--special-token", "\udcff=500"]
    failed(capfdbinary, 2, "special_tokens: ", "encode", *words, text_file)


def test_an_interrupt_while_modules_are_imported_gave_a_traceback():
    code = (
        "import os, runpy, signal, sys, types\n"
        "arguments = types.ModuleType('bpe.cli.arguments')\n"
        "arguments.__getattr__ = lambda name: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.modules['bpe.cli.arguments'] = arguments\n"
        "runpy.run_module('bpe', run_name='__main__')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
