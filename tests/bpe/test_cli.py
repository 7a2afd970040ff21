"""The commands: data on stdout, one line per error, exit codes, files and streams of all kinds.

tests/data/cli_errors.toml has the wording of errors.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bpe
from bpe.__main__ import main
from bpe.tokenizer import Tokenizer

END = "<|endoftext|>"
TEXT = f"It's a test: naïve café, 你好 {END}123\n\nthe the then\n"
PYTHON = shlex.quote(sys.executable)

Call = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def call(
    capfdbinary: Any, listed: Callable[..., Tokenizer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Call:
    """Run a command in a folder with text.txt, tok.json and files of other kinds. Return code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    listed().save("tok.json")
    Path("text.txt").write_bytes(TEXT.encode())
    Path("empty.txt").write_bytes(b"")

    def run(command: str | list[Any]) -> tuple[int, bytes, str]:
        words = shlex.split(command) if isinstance(command, str) else list(map(str, command))
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capfdbinary.readouterr()
        return code, out, err.decode()

    return run


def ids_of(out: bytes) -> list[int]:
    return [int(id_) for id_ in out.split()]


def shell(command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("bpe ", f"{PYTHON} -m bpe ", 1)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


# -- encode and decode


@pytest.mark.parametrize("name", ["ids.txt", "ids.npy", "ids.bin", "-"])
def test_encode_and_back(name: str, call: Call, listed: Any) -> None:
    code, out, err = call(f"encode --tokenizer tok.json text.txt --output {name}")
    assert (code, err) == (0, "")
    expected = listed().encode(TEXT)
    if name == "ids.npy":
        array = np.load(name)
        assert (array.dtype, array.tolist()) == (np.uint32, expected)
    elif name == "ids.bin":
        assert np.fromfile(name, "<u4").tolist() == expected
    elif name == "-":
        assert ids_of(out) == expected
        first, second = TEXT.split(END)  # a line ends after a special token
        assert [ids_of(line) for line in out.splitlines()] == [
            listed().encode(first + END),
            listed().encode(second),
        ]
        name = "from_stdout"
        Path(name).write_bytes(out)
    assert call(f"decode --tokenizer tok.json {name}") == (0, TEXT.encode(), "")


def test_options_of_encode(call: Call, listed: Any, ranked: Any) -> None:
    special = listed().special_tokens[END]
    plain = listed().encode(TEXT, allowed_special=())
    assert ids_of(call("encode --plain --tokenizer tok.json text.txt")[1]) == plain
    ends = f"encode --tokenizer tok.json --prepend-token e --append-token '{END}'"
    assert ids_of(call(f"{ends} text.txt")[1]) == [
        listed().token_to_id(b"e"),
        *listed().encode(TEXT),
        special,
    ]
    assert call(f"{ends} empty.txt")[:2] == (0, b"")
    ranked().export_tiktoken("t.tiktoken")
    for token in (END, f"{END}={ranked().special_tokens[END]}"):
        code, out, _ = call(
            f"encode text.txt --tokenizer t.tiktoken --pattern gpt2 --special-token '{token}'"
        )
        assert (code, ids_of(out)) == (0, ranked().encode(TEXT))


def test_added_tokens_are_found_as_the_tokenizer_finds_them(call: Call) -> None:
    """`encode` ignored the flags and cut "test" out of "contest". Records have tokens that are not special."""
    root = json.loads(Path("tok.json").read_bytes())
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    mask, test = {"lstrip": True, "rstrip": True}, {"single_word": True}
    for number, (text, own) in enumerate({"<mask>": mask, "test": test, "  ": {"special": False}}.items()):
        root["added_tokens"].append({"id": 557 + number, "content": text, **flags, **own})
    Path("tok.json").write_text(json.dumps(root))
    tokenizer, text = Tokenizer.load("tok.json"), "a contest  <mask> \n the test  x"
    Path("text.txt").write_text(text)
    Path("text.jsonl").write_text(json.dumps({"text": text}))
    assert 558 in tokenizer.encode(text)
    assert ids_of(call("encode text.txt --tokenizer tok.json")[1]) == tokenizer.encode(text)
    assert 559 in tokenizer.encode(text, ["  "])
    assert ids_of(call("encode text.jsonl --tokenizer tok.json")[1]) == tokenizer.encode(text, ["  "])


def test_replacements_and_skipped_records_are_counted(call: Call, listed: Any) -> None:
    Path("bad.txt").write_bytes(b"a\xff\xffb")
    code, out, err = call("encode --tokenizer tok.json bad.txt --invalid replace")
    assert (code, ids_of(out)) == (0, listed().encode("a\ufffd\ufffdb"))
    assert re.fullmatch(r"tokenmill: note: .* 2 .*U\+FFFD.*\n", err)
    Path("bad.jsonl").write_bytes(b'{"text": "the"}\n{"body": "mill"}\nno JSON\n{"text": "caf\xe9"}\n')
    missing = "field missing: 1, first in bad.jsonl at byte 16"
    malformed = "malformed: 1, first in bad.jsonl at byte 33"
    for command in ("encode bad.jsonl --tokenizer tok.json", "report tok.json bad.jsonl"):
        code, _, err = call(f"{command} --on-error skip")
        assert code == 0
        assert f"({missing}; invalid UTF-8: 1, first in bad.jsonl at byte 41; {malformed}" in err
        code, _, err = call(f"{command} --on-error skip --invalid replace")
        assert code == 0
        assert err.count("tokenmill: note: ") == err.count("\n") == 2
        assert "U+FFFD" in err
        assert f"{missing}; {malformed}" in err


# -- info, train, report


def test_info(call: Call, listed: Any) -> None:
    code, out, err = call("info tok.json")
    assert (code, err) == (0, "")
    text = out.decode()
    for line in ("entries          557\n", f"fingerprint      {listed().fingerprint()}\n", f"{END}=556"):
        assert line in text
    facts = json.loads(call("info tok.json --json")[1])
    assert (facts["merges"], facts["special tokens"], facts["pattern"]) == (300, {END: 556}, "gpt2")


def test_reports_of_a_training_and_of_files(call: Call) -> None:
    files = "--output {vocab_size} --report r.json --held-out text.txt --keep-counts c"
    code, _, err = call(f"train text.txt --vocab-size 261,263 --special-token '{END}' {files}")
    assert code == 0
    assert re.search(r"r\.json: \d\.\d{3} bytes per token on text.txt\n$", err)
    made = json.loads(Path("r.json").read_text())
    assert [point["vocab_size"] for point in made["curve"]] == [261, 263]
    assert json.loads(call("report 263 text.txt --json")[1])["text"] == made["text"]
    of_counts = json.loads(call("report 263 --counts c --json")[1])["text"]
    assert of_counts == made["text"] | {"measured_on": "c"}
    out = call("report 263")[1].decode()
    assert "entries can never be produced" in out
    assert "bytes per token" not in out
    assert call("report 263 text.txt --output r.html")[:2] == (0, b"")
    assert Path("r.html").read_text().startswith("<!doctype html>")
    _, _, err = call("train text.txt --vocab-size 261 --output t.json --report r.txt")
    assert "bytes per token on the training text" in err
    assert json.loads(call("info c --json")[1])["documents"] == 2
    assert call("info c")[1].startswith(b"distinct pretokens  ")


@pytest.mark.long
def test_the_regex_fallback_is_reported_once(call: Call) -> None:
    """Pieces depend on the thirteenth character, which needs more states than tables have."""
    Path("text.txt").write_text("abababababababab\nc" * 50)
    train = ["train", "text.txt", "--vocab-size", 260, "--pattern", r"[ab]*a[ab]{12}|.|\n", "--quiet"]
    assert call([*train, "--output", "slow.json"])[0] == 0
    code, _, err = call("encode text.txt --tokenizer slow.json --output ids")
    assert (code, err.count("The regex package")) == (0, 1)
    command = f"{PYTHON} -m convert text.txt --tokenizer slow.json --output data.zarr --workers 2"
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("The regex package")) == (0, 1), done.stderr


# -- errors

SIZE = "--vocab-size 300 --output out"
REFUSED = [
    (2, "--counts: ", "report tok.json text.txt --counts c"),
    (2, "c: .*'qwen2'.*'gpt2'", "report tok.json --counts c"),
    (2, "--special-token: ", f"train text.txt {SIZE} --special-token a\udcff"),  # gave a traceback
    (2, "--pattern: ", f"train text.txt {SIZE} --pattern 'a\udcff|.'"),
    (2, "--special-token: ", "count text.txt --output out --special-token a\udcff"),
    (2, "--pattern: ", "count text.txt --output out --pattern 'a\udcff|.'"),
    (3, r"new\\nline\\x1b\[31m\.txt: ", f"train 'new\nline\x1b[31m.txt' {SIZE}"),  # broke the line
    (2, r"new\\nline\\x1b\[31m\.json: ", "info 'new\nline\x1b[31m.json'"),
]


@pytest.mark.promise("errors")
@pytest.mark.parametrize(("code", "message", "command"), REFUSED, ids=[command for _, _, command in REFUSED])
def test_errors_are_one_line(code: int, message: str, command: str, call: Call) -> None:
    Path("new\nline\x1b[31m.txt").write_bytes(b"a\xff")
    if "--counts c" in command:
        call("count text.txt --pattern qwen2 --output c --quiet")
    before = sorted(Path().iterdir())
    got, out, err = call(command)
    assert (got, out, sorted(Path().iterdir())) == (code, b"", before), err
    assert re.search(f"tokenmill: error: .*{message}", err), err
    assert err.removesuffix("\n").isprintable()


def test_names_and_patterns_are_printed_on_one_line(call: Call) -> None:
    """Line breaks and terminal escapes in them were printed unescaped."""
    words = ["--pattern", "\\w+|\\W|[\n\x1b]", "--output", "a\n\x1b[31mb"]
    for command in (["count", "text.txt"], ["train", "text.txt", "--vocab-size", 260]):
        code, _, err = call([*command, *words])
        assert (code, "\x1b" in err) == (0, False)
        assert "a\\n\\x1b[31mb: " in err.splitlines()[-1]
    code, out, err = call(["info", words[-1]])
    assert (code, err, b"\x1b" in out) == (0, "", False)
    assert b"[\\n\\x1b]" in out


def test_missing_bytes_are_one_line(call: Call) -> None:
    root = json.loads(Path("tok.json").read_bytes())
    del root["model"]["vocab"]["Á"]
    root["added_tokens"] = []
    Path("tok.json").write_text(json.dumps(root))
    done = shell("bpe encode --tokenizer tok.json text.txt")
    assert done.returncode == 0
    assert re.fullmatch(r"tokenmill: warning: tok\.json: .* c1\b.*\n", done.stderr)


def test_an_unknown_id_in_a_later_block(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes before it are written, and the error gives the number from the start."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 4)
    Path("ids").write_bytes(b"97 98 99 9999")
    code, out, err = call("decode --tokenizer tok.json ids")
    assert (code, out) == (3, b"abc")
    assert re.search("ids: .*9999.*number 3 of", err)


def test_debug_shows_the_traceback(call: Call) -> None:
    code, _, err = call("info no.json --debug")
    assert code == 2
    assert "Traceback" in err
    assert ": no.json: " in err.splitlines()[-1]


# -- streams and signals, each in a separate process


@pytest.mark.long
def test_streams(call: Call, listed: Any) -> None:
    ids = shell("bpe encode --tokenizer tok.json", input=TEXT)
    assert (ids_of(ids.stdout.encode()), ids.stderr) == (listed().encode(TEXT), "")
    back = shell("bpe decode --tokenizer tok.json -", input=ids.stdout)
    assert (back.stdout, back.stderr) == (TEXT, "")
    assert shell("bpe encode --tokenizer <(cat tok.json) text.txt").stdout == ids.stdout
    np.save("ids.npy", np.array([97, 98], np.uint32))
    assert shell("cat ids.npy | bpe decode --tokenizer tok.json --format npy").stdout == "ab"
    Path("long.txt").write_text("the quick brown fox\n" * 200_000)
    quiet = shell("bpe encode --tokenizer tok.json long.txt | head -c 10 > /dev/null; echo ${PIPESTATUS[0]}")
    assert (quiet.stdout, quiet.stderr) == ("141\n", "")


def test_a_pipe_as_output_was_not_found(call: Call) -> None:
    """The file /proc/1/fd/pipe:[2] that /dev/stdout links to cannot be found by its name."""
    for output in ("/dev/stdout | cat > piped.counts", "named.counts"):
        assert shell(f"bpe count text.txt --quiet --output {output}").returncode == 0
    piped, named = map(bpe.PretokenCounts.load, ("piped.counts", "named.counts"))
    assert piped.as_dict() == named.as_dict()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">/dev/full", ">&- 2>&-", "<&-"])
def test_a_closed_stream_gave_a_traceback(closed: str, call: Call) -> None:
    done = shell(f"bpe encode --tokenizer tok.json {'text.txt' if '>' in closed else '-'} {closed}")
    stream = {">/dev/full": "stdout", "<&-": "-"}.get(closed)
    assert done.returncode == {">/dev/full": 4, "<&-": 2}.get(closed, 0)
    assert done.stderr.count("\n") == (stream is not None)
    assert done.stderr.startswith("" if stream is None else f"tokenmill: error: {stream}: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_left_half_a_file(number: signal.Signals, call: Call) -> None:
    command = [sys.executable, *"-m bpe encode --tokenizer tok.json --output ids.npy".split()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(Path().glob(".ids.npy.*.partial")):  # then it waits for more text
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait() == 128 + number
        assert process.stderr is not None
        assert process.stderr.read().startswith("tokenmill: error: ")
    assert not list(Path().glob(".ids*"))


def test_imports(call: Call) -> None:
    """--help imports neither numpy nor the core; a core that is not built, or an interrupt, gives no traceback."""
    run = "import runpy; runpy.run_module('bpe', run_name='__main__')"
    code = f"import sys; sys.argv = ['bpe', '--help']\ntry: {run}\nexcept SystemExit: pass\n"
    code += "assert not {'numpy', 'regex', 'tqdm', 'bpe._core'} & set(sys.modules), sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"\n    {name}" in done.stdout for name in "train count report encode decode info".split())
    code = "import sys; sys.modules['bpe._core'] = None\n"
    code += "from bpe.__main__ import main; sys.exit(main(['info', 'tok.json']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("tokenmill: error: ")
    code = (
        "import os, signal, sys, types\narguments = types.ModuleType('bpe.cli.arguments')\n"
        "arguments.__getattr__ = lambda name: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.modules['bpe.cli.arguments'] = arguments\n{run}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
