"""The commands, each as its own process or in this one: data on stdout, one line for an error, the exit codes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from bpe.__main__ import main
from bpe.cli.ids_file import format_of, read_ids, write_ids
from bpe.errors import InvalidText
from bpe.tokenizer import Tokenizer

TEXT = "It's a test: naïve café, 你好 <|endoftext|>123\n\nthe the then\n"


@pytest.fixture
def tokenizer(listed, tmp_path):
    path = tmp_path / "tokenizer.json"
    listed().save(path)
    return str(path)


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return str(path)


def run(capfdbinary, *arguments):
    """(exit code, stdout, stderr)."""
    try:
        code = main(list(map(str, arguments)))
    except SystemExit as ended:
        code = ended.code
    out, err = capfdbinary.readouterr()
    return code, out, err.decode()


def failed(capfdbinary, code, message, *arguments):
    got, out, err = run(capfdbinary, *arguments)
    assert got == code, err
    assert re.search(message, err), err
    assert err.count("\n") == 1
    assert out == b""


# -- encode and decode -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ids.txt", "ids.npy", "ids.bin", "-"])
def test_encode_and_back(name, capfdbinary, tokenizer, text_file, tmp_path, listed):
    output = name if name == "-" else str(tmp_path / name)
    code, out, err = run(capfdbinary, "encode", "--tokenizer", tokenizer, text_file, "--output", output)
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
    code, out, err = run(capfdbinary, "decode", "--tokenizer", tokenizer, output)
    assert (code, out, err) == (0, TEXT.encode(), "")


def test_a_line_ends_after_a_special_token(capfdbinary, tokenizer, text_file, listed):
    _, out, _ = run(capfdbinary, "encode", "--tokenizer", tokenizer, text_file)
    first, second = TEXT.split("<|endoftext|>")
    lines = [list(map(int, line.split())) for line in out.decode().splitlines()]
    assert lines == [listed().encode(first + "<|endoftext|>"), listed().encode(second)]


def test_plain(capfdbinary, tokenizer, text_file, listed):
    _, out, _ = run(capfdbinary, "encode", "--plain", "--tokenizer", tokenizer, text_file)
    assert list(map(int, out.split())) == listed().encode(TEXT, allowed_special=())


def test_stdin_to_stdout(tokenizer, listed):
    command = [sys.executable, "-m", "bpe"]
    made = subprocess.run(
        [*command, "encode", "--tokenizer", tokenizer], input=TEXT.encode(), capture_output=True, check=True
    )
    assert list(map(int, made.stdout.split())) == listed().encode(TEXT)
    back = subprocess.run(
        [*command, "decode", "--tokenizer", tokenizer, "-"],
        input=made.stdout,
        capture_output=True,
        check=True,
    )
    assert back.stdout == TEXT.encode()
    assert made.stderr == back.stderr == b""


def test_a_closed_pipe_is_quiet(tokenizer, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("the quick brown fox\n" * 200_000)
    command = f"{sys.executable} -m bpe encode --tokenizer {tokenizer} {path} | head -c 10 >/dev/null"
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
    failed(capfdbinary, 2, "give all an id", "encode", text_file, *options, "<s>=5", "--special-token", "<t>")
    failed(
        capfdbinary,
        2,
        "'<s>' is given twice",
        "encode",
        text_file,
        *options,
        "<s>=5",
        "--special-token",
        "<s>=6",
    )


def test_invalid_text(capfdbinary, tokenizer, tmp_path, listed):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"ab\xffc")
    message = r"bpe: .*bad.txt: byte 2 \(0xff\) is not valid UTF-8; .*--invalid replace"
    failed(capfdbinary, 3, message, "encode", "--tokenizer", tokenizer, path)
    failed(
        capfdbinary, 3, message, "encode", "--tokenizer", tokenizer, path, "--output", tmp_path / "ids.npy"
    )
    assert not list(tmp_path.glob("*ids.npy*"))
    _, out, _ = run(capfdbinary, "encode", "--tokenizer", tokenizer, path, "--invalid", "replace")
    assert list(map(int, out.split())) == listed().encode("ab\ufffdc")
    path.write_bytes("hello".encode("utf-16"))
    failed(
        capfdbinary, 3, "looks like UTF-16", "encode", "--tokenizer", tokenizer, path, "--invalid", "replace"
    )


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"x 1 2", "ids", "ids: id 0 is 'x', must be a whole number"),
        (b"-2 1", "ids", "id 0 is '-2'"),
        (b"99999", "ids", "99999"),
        (b"12345", "ids.bin", "5 bytes are no whole number of uint32; is it cut short"),
        (b"abc", "ids.npy", "ids.npy: is not a .npy file"),
    ],
)
def test_bad_ids(capfdbinary, tokenizer, tmp_path, data, name, message):
    (tmp_path / name).write_bytes(data)
    failed(capfdbinary, 3, message, "decode", "--tokenizer", tokenizer, tmp_path / name)


def test_bad_npy(capfdbinary, tokenizer, tmp_path):
    np.save(tmp_path / "ids.npy", np.zeros((2, 2), np.float32))
    failed(
        capfdbinary,
        3,
        "holds 2-dimensional float32",
        "decode",
        "--tokenizer",
        tokenizer,
        tmp_path / "ids.npy",
    )


def test_bad_arguments(capfdbinary, tokenizer, text_file, tmp_path):
    failed(
        capfdbinary,
        2,
        "bpe: .*no.json: can't read the tokenizer",
        "encode",
        "--tokenizer",
        "no.json",
        text_file,
    )
    failed(capfdbinary, 2, "no.txt: No such file", "encode", "--tokenizer", tokenizer, "no.txt")
    failed(capfdbinary, 2, "is a folder, must be one file", "encode", "--tokenizer", tokenizer, tmp_path)
    failed(
        capfdbinary, 2, "npy needs --output", "encode", "--tokenizer", tokenizer, text_file, "--format", "npy"
    )
    failed(capfdbinary, 2, "arguments are required: --tokenizer", "encode", text_file)
    failed(
        capfdbinary, 2, "invalid choice", "encode", "--tokenizer", tokenizer, text_file, "--invalid", "skip"
    )
    output = tmp_path / "no" / "ids"
    failed(
        capfdbinary,
        2,
        "its folder does not exist; create it first",
        "encode",
        "--tokenizer",
        tokenizer,
        text_file,
        "--output",
        output,
    )
    (tmp_path / "cut.json").write_text('{"version": "1.0",')
    failed(capfdbinary, 2, "cut.json: no valid JSON", "info", tmp_path / "cut.json")


def test_debug_shows_the_traceback(capfdbinary):
    code, _, err = run(capfdbinary, "info", "no.json", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert err.endswith("bpe: no.json: can't read the tokenizer: No such file or directory\n")


def test_an_interrupt(capfdbinary, monkeypatch, tokenizer):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bpe.cli.commands.info", interrupted)
    failed(capfdbinary, 130, "bpe: interrupted", "info", tokenizer)


# -- info --------------------------------------------------------------------------------------------------------


def test_info(capfdbinary, tokenizer, listed):
    code, out, err = run(capfdbinary, "info", tokenizer)
    assert (code, err) == (0, "")
    assert "entries          557\n" in out.decode()
    assert f"fingerprint      {listed().fingerprint()}\n" in out.decode()
    assert "<|endoftext|>=556" in out.decode()
    facts = json.loads(run(capfdbinary, "info", tokenizer, "--json")[1])
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
    message = r"'no.txt': no such file; '.*/empty': the folder holds no files; 'no\*': no file matches$"
    failed(capfdbinary, 2, message, "train", text_file, "no.txt", tmp_path / "empty", "no*", *size, *output)
    failed(capfdbinary, 2, "'/dev/zero': is no regular file", "train", "/dev/zero", *size, *output)
    failed(capfdbinary, 2, "stdin is read once", "train", "-", "-", *size, *output)
    failed(capfdbinary, 2, "no input: name text files", "train", *size, *output)
    failed(
        capfdbinary,
        2,
        "--vocab-size must be a whole number such as 32000, 32k, 100MB or 1e9, got 'many'; see",
        "train",
        text_file,
        "--vocab-size",
        "many",
        *output,
    )
    failed(
        capfdbinary, 2, "vocab_size must be at least 256", "train", text_file, "--vocab-size", "10", *output
    )
    failed(
        capfdbinary,
        2,
        "its folder does not exist",
        "train",
        text_file,
        *size,
        "--output",
        tmp_path / "no/t.json",
    )
    failed(capfdbinary, 2, "is no valid expression", "train", text_file, *size, *output, "--pattern", "(a")
    failed(
        capfdbinary,
        2,
        r"\\b does not mean the same",
        "train",
        text_file,
        *size,
        *output,
        "--pattern",
        r"\b\w+\b|.",
    )
    failed(capfdbinary, 2, "threads must be at least 1", "train", text_file, *size, *output, "--threads", "0")
    assert not (tmp_path / "t.json").exists()


def test_help_is_quick_to_import():
    """Neither numpy nor the core are imported for --help."""
    code = "import sys; sys.argv = ['bpe', '--help']; import runpy\n"
    code += "try: runpy.run_module('bpe', run_name='__main__')\nexcept SystemExit: pass\n"
    code += "assert not {'numpy', 'regex', 'tqdm', 'bpe._core'} & set(sys.modules), sys.modules.keys()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert b"train | count | report | encode | decode | info" in ended.stdout


# -- files of ids ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "npy", "bin"])
@pytest.mark.parametrize("lists", [[], [[]], [[7]], [[1, 2], [], [3], [2**31 - 1]]], ids=len)
def test_ids_round_trip(form, lists):
    file = io.BytesIO()
    expected = [id_ for ids in lists for id_ in ids]
    assert write_ids(file, lists, form, [3]) == len(expected)
    file.seek(0)
    assert [int(id_) for block in read_ids(file, form, "f") for id_ in block] == expected


def test_text_ids_across_blocks(monkeypatch):
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 3)
    file = io.BytesIO(b" 1 22 333\n4444 55555 ")
    assert [id_ for block in read_ids(file, "text", "f") for id_ in block] == [1, 22, 333, 4444, 55555]


def test_formats_by_name():
    assert [format_of(name) for name in ("a.npy", "a.bin", "a.txt", "-")] == ["npy", "bin", "text", "text"]


def test_bad_ids_in_a_later_block(monkeypatch, capfdbinary, tokenizer, tmp_path):
    """What came before is written; the error counts ids from the start."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 4)
    (tmp_path / "ids").write_bytes(b"97 98 99 x")
    code, out, err = run(capfdbinary, "decode", "--tokenizer", tokenizer, tmp_path / "ids")
    assert (code, out) == (3, b"abc")
    assert "ids: id 3 is 'x'" in err
    (tmp_path / "ids").write_bytes(b"97 98 99 9999")
    code, out, err = run(capfdbinary, "decode", "--tokenizer", tokenizer, tmp_path / "ids")
    assert (code, out) == (3, b"abc")
    assert "9999" in err
    assert "counted from id 3" in err


def test_a_number_without_an_end_is_not_waited_for(monkeypatch):
    """/dev/zero in place of the ids was read on and on, each block once more with all before it."""
    monkeypatch.setattr("bpe.cli.ids_file._BLOCK", 8)
    file = io.BytesIO(b"12 " + b"\0" * 1000)
    with pytest.raises(InvalidText, match="f: id 1 is "):
        list(read_ids(file, "text", "f"))
    assert file.tell() <= 32


def test_what_is_far_too_long_for_a_tokenizer_is_not_read(monkeypatch, capfdbinary, tmp_path, text_file):
    """The corpus, named by mistake, went to memory as a whole, and /dev/zero never ended."""
    monkeypatch.setattr("bpe.formats.by_path._MOST_BYTES", 1000)
    (tmp_path / "corpus").write_bytes(b"{" * 1001)
    for path in (tmp_path / "corpus", "/dev/zero"):
        failed(capfdbinary, 2, f"{path}: is no tokenizer, it has more than 1,000 bytes", "info", path)


def test_an_empty_name_of_a_tokenizer_was_the_current_folder(
    monkeypatch, capfdbinary, tokenizer, text_file, tmp_path
):
    monkeypatch.chdir(tmp_path)  # with a tokenizer.json
    failed(capfdbinary, 2, "must be a path, got ''", "encode", "--tokenizer", "", text_file)
    failed(capfdbinary, 2, "must be a path, got ''", "info", "")
    failed(capfdbinary, 2, "must be a path, got ''", "report", "", text_file)


def test_names_of_outputs_and_patterns_are_printed_on_one_line(capfdbinary, text_file, tmp_path):
    """New lines and a terminal's escapes in them went to the terminal as they are."""
    output, pattern = tmp_path / "a\n\x1b[31mb", "\\w+|[\n\x1b]"
    words = ["--pattern", pattern, "--output", output, "--quiet"]
    assert run(capfdbinary, "train", text_file, "--vocab-size", "260", *words)[0] == 0
    for command in (["train", text_file, "--vocab-size", "260"], ["count", text_file]):
        code, _, err = run(capfdbinary, *command, *words[:-1])
        assert (code, "\x1b" in err) == (0, False)
        assert "a\\n\\x1b[31mb: " in err.splitlines()[-1]
    assert run(capfdbinary, "train", text_file, "--vocab-size", "260", *words)[0] == 0
    code, out, err = run(capfdbinary, "info", output)
    assert (code, err, b"\x1b" in out) == (0, "", False)
    assert b"\\x1b" in out


def test_a_tokenizer_may_come_through_a_pipe(tokenizer, text_file):
    command = f"{sys.executable} -m bpe encode --tokenizer <(cat {tokenizer}) {text_file}"
    plain = [sys.executable, "-m", "bpe", "encode", "--tokenizer", tokenizer, text_file]
    through = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (through.returncode, through.stderr) == (0, b"")
    assert through.stdout == subprocess.run(plain, capture_output=True, check=True).stdout


# -- what a stranger's machine does --------------------------------------------------------------------------------


def test_a_file_name_broke_the_line(capfdbinary, tokenizer, tmp_path):
    """A new line or a terminal's escape in a name went to the terminal as it is."""
    name = tmp_path / "new\nline\x1b[31m.txt"
    name.write_bytes(b"a\xff")
    shown = r"new\\nline\\x1b\[31m\.txt: "
    train = ["train", name, "--vocab-size", "300", "--quiet", "--output", tmp_path / "out"]
    failed(capfdbinary, 3, shown, *train)
    failed(capfdbinary, 3, shown, "encode", "--tokenizer", tokenizer, name, "--output", tmp_path / "out")
    failed(capfdbinary, 2, shown[:-2] + ".json: ", "info", f"{name}.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output", ["", ".", "/"])
def test_an_output_that_is_a_folder_was_found_after_the_training(output, capfdbinary, text_file, tokenizer):
    failed(capfdbinary, 2, "--output", "train", text_file, "--vocab-size", "300", "--output", output)
    failed(capfdbinary, 2, "--output", "encode", text_file, "--tokenizer", tokenizer, "--output", output)


def test_an_empty_input_meant_the_whole_folder(capfdbinary, tmp_path):
    failed(capfdbinary, 2, "an empty name", "train", "", "--vocab-size", "300", "--output", tmp_path / "t")


def test_encode_did_not_count_what_it_replaced(capfdbinary, tokenizer, tmp_path):
    (tmp_path / "bad").write_bytes(b"a\xff\xffb")
    command = ["encode", "--tokenizer", tokenizer, tmp_path / "bad", "--invalid", "replace"]
    code, out, err = run(capfdbinary, *command)
    assert code == 0
    assert err == "bpe: replaced by U+FFFD: 2 byte sequences that are not valid UTF-8\n"
    assert out == (" ".join(map(str, Tokenizer.load(tokenizer).encode("a\ufffd\ufffdb"))) + "\n").encode()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">/dev/full", ">&- 2>&-"])
def test_a_closed_stdout_gave_a_traceback(closed, tokenizer, text_file):
    command = f'"{sys.executable}" -m bpe encode --tokenizer "{tokenizer}" "{text_file}" {closed}'
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == (4 if "full" in closed else 0)
    assert ended.stderr == ("bpe: stdout: No space left on device\n" if "full" in closed else "")


def test_a_closed_stdin_gave_a_traceback(tokenizer):
    command = f'"{sys.executable}" -m bpe encode --tokenizer "{tokenizer}" <&-'
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "bpe: stdin is closed; name a file\n")


def test_a_core_that_is_not_built_gave_a_traceback(text_file):
    code = "import sys; sys.modules['bpe._core'] = None\n"
    code += f"from bpe.__main__ import main; sys.exit(main(['info', {text_file!r}]))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert (
        ended.stderr
        == "bpe: the core is not built; install the package first: pip install . (in its folder)\n"
    )
