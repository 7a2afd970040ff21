"""Tokenizers of the hub by name: downloads, cache hits and every failure.

huggingface_hub reads its variables on import, so each setting runs in its own process, which loads all names of the
test. The server is on loopback; no other host is contacted.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest
from hub_server import COMMIT, serving

from bpe import Tokenizer
from bpe.errors import BadArgument, BadTokenizer
from bpe.hub import hub_name, locate

# huggingface_hub waits before it retries, which only costs time here.
LOADS = """
import sys, time
time.sleep = lambda seconds: None
from bpe import Tokenizer
from bpe.errors import BpeError
for name in sys.argv[1:]:
    try:
        print(Tokenizer.load(name, *(["gpt2"] if "ranks" in name else [])).fingerprint())
    except BpeError as error:
        print(f"{type(error).__name__} {error.exit_code} {error}")
"""

FULL_DISK = """
import errno, huggingface_hub.file_download
def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")
huggingface_hub.file_download.http_get = full
"""


@pytest.fixture(scope="module")
def hub():
    with serving() as hub:
        yield hub


@pytest.fixture(autouse=True)
def fresh(hub):
    hub.log.clear()
    yield
    hub.failing, hub.cut = None, False


@pytest.fixture(scope="module")
def made(hub, tmp_path_factory):
    """Return the tokenizer of all repositories; each stores it in another format."""
    tokenizer = Tokenizer({id_: bytes([id_]) for id_ in range(256)} | {256: b"th"}, [(b"t", b"h")])
    folder = tmp_path_factory.mktemp("made")
    tokenizer.save(folder / "tokenizer.json")
    tokenizer.export_gpt2(folder)
    tokenizer.export_tiktoken(folder / "ranks.tiktoken")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = {"config.json": b"{}", "model.safetensors": b"\0" * 2000}
    pair = {name: files[name] for name in ("vocab.json", "merges.txt")}
    whole = {"tokenizer.json": files["tokenizer.json"]}
    tekken = {
        "config": {
            "pattern": r"[^\s]+|\s+",
            "num_vocab_tokens": 256,
            "default_vocab_size": 257,
            "default_num_special_tokens": 1,
            "version": "v3",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(bytes([rank])).decode(), "token_str": None}
            for rank in range(256)
        ],
    }
    hub.repositories |= {
        "org/whole": other | pair | whole,
        "org/pair": other | pair,
        "org/ranks": other | {"qwen.tiktoken": files["ranks.tiktoken"]},
        "org/ranks-model": other | {"tokenizer.model": files["ranks.tiktoken"]},
        "org/tekken": other | {"tekken.json": json.dumps(tekken).encode()},
        "org/half": other | {"vocab.json": files["vocab.json"]},
        "org/gated": whole,
        "org/broken": {"tokenizer.json": b"{" + b" " * 100},
        "org/none": other,
    }
    hub.gated = {"org/gated"}
    return tokenizer


@pytest.fixture
def environment(hub, tmp_path):
    """Return environment variables with this hub and an empty cache."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    proxies = {name: "" for name in kept if name.lower().endswith("_proxy")}
    return (
        kept
        | proxies
        | {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
    )


def python(environment, *arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120, **options
    )


def loaded(environment, *names):
    """Return one line per name: the fingerprint, or the error's class, exit code and message."""
    done = python(environment, "-c", LOADS, *names)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(names), done.stdout
    return lines


def test_each_kind_of_file_gives_the_same_tokenizer_and_nothing_else_is_downloaded(hub, made, environment):
    names = ["org/whole", "org/whole@v1", f"org/whole@{COMMIT}", "org/pair"]
    assert loaded(environment, *names) == [made.fingerprint()] * 4
    assert hub.downloaded() == ["config.json", "merges.txt", "tokenizer.json", "vocab.json"]
    hub.log.clear()
    ranks = loaded(environment, "org/ranks", "org/ranks-model")
    assert ranks[0] == ranks[1]
    assert len(ranks[0]) == 64
    assert hub.downloaded() == ["config.json", "qwen.tiktoken", "tokenizer.model"]
    hub.log.clear()
    assert len(loaded(environment, "org/tekken")[0]) == 64
    assert hub.downloaded() == ["tekken.json"]


def test_the_interface_of_tokenizers_loads_by_name_and_revision(hub, made, environment):
    script = (
        "from bpe.compat.huggingface import Tokenizer\n"
        "for name, revision in (('org/whole', 'main'), ('org/whole', 'v1'), ('org/pair', 'main')):\n"
        "    print(Tokenizer.from_pretrained(name, revision=revision).encode('this').ids)\n"
    )
    done = python(environment, "-c", script)
    assert done.stdout == f"{made.encode('this')}\n" * 3, done.stderr


def test_chat_templates_that_were_not_downloaded(hub, made, environment):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    hub.repositories["org/chat"] = hub.repositories["org/whole"] | {
        "chat_template.jinja": b"D{{ bos_token }}",
        "additional_chat_templates/tool_use.jinja": b"T",
        "special_tokens_map.json": b'{"bos_token": "<s>"}',
    }
    script = (
        "from bpe import Tokenizer\nfrom convert.chat_rules import chat_rules\n"
        "print(*chat_rules('org/chat', Tokenizer.load('org/chat'), None, True))\n"
    )
    expected = "D{{ bos_token }} (('bos_token', '<s>'),) () T\n"
    done = python(environment, "-c", script)
    assert done.stdout == expected, done.stderr
    done = python(environment | {"HF_HUB_OFFLINE": "1"}, "-c", script)
    assert done.stdout == expected, done.stderr


def test_the_cache_answers_offline_and_without_a_server_and_only_what_is_sure(hub, made, environment):
    names = ["org/whole", "org/pair", "org/ranks"]
    online = loaded(environment, *names)
    # Another program downloaded this one file; the repository has a tokenizer.json.
    code = "from huggingface_hub import hf_hub_download as get\n"
    code += "for file in 'vocab.json', 'merges.txt': get('org/whole', file)"
    partly = environment | {"HF_HOME": environment["HF_HOME"] + "2"}
    assert python(partly, "-c", code).returncode == 0
    hub.log.clear()
    offline = environment | {"HF_HUB_OFFLINE": "1"}
    *cached, missing = loaded(offline, *names, "org/tekken")
    assert cached == online
    assert missing.startswith("EnvironmentFailure 4 org/tekken: ")
    assert loaded(partly | {"HF_HUB_OFFLINE": "1"}, "org/whole")[0].startswith(
        "EnvironmentFailure 4 org/whole: "
    )
    assert hub.log == []
    hub.failing = 503
    assert loaded(environment, "org/whole") == online[:1]
    assert loaded(partly, "org/whole")[0].startswith("EnvironmentFailure 4 org/whole: ")


def test_each_failure_is_one_line_that_says_what_to_do(hub, made, environment):
    names = [
        "org/missing",
        "org/gated",
        "org/whole@v9",
        "org/none",
        "org/half",
        "org/broken",
        "org/wholejson/x",
    ]
    lines = loaded(environment, *names)
    starts = [
        "BadTokenizer 2 org/missing: ",
        "BadTokenizer 2 org/gated: ",
        "BadTokenizer 2 org/whole@v9: ",
        "BadTokenizer 2 org/none: ",
        "BadTokenizer 2 org/half: ",
        "BadTokenizer 2 " + environment["HF_HOME"],
        "BadTokenizer 2 org/wholejson/x: ",
    ]
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start), line
    denied = loaded(environment | {"HF_TOKEN": "hf_other"}, "org/gated")[0]
    assert "HF_TOKEN" in denied
    assert loaded(environment | {"HF_TOKEN": "hf_secret"}, "org/gated") == [made.fingerprint()]
    hub.cut = True
    assert loaded(environment, "org/whole")[0].startswith("EnvironmentFailure 4 org/whole: ")


def test_a_missing_server_or_an_invalid_address(made, environment):
    for endpoint in ("http://127.0.0.1:9", "nonsense"):
        line = loaded(environment | {"HF_ENDPOINT": endpoint}, "org/whole")[0]
        assert line.startswith("EnvironmentFailure 4 org/whole: "), line
    # Older versions of huggingface_hub detect the second one only when they send a request.
    line = loaded(environment | {"HF_ENDPOINT": "http://[bad"}, "org/whole")[0]
    assert line.startswith(("BadArgument 2 org/whole: ", "EnvironmentFailure 4 org/whole: "))


def test_a_cache_that_cannot_be_written(made, environment, tmp_path):
    cache = tmp_path / "cache"
    cache.write_text("a file where the folder should be")
    line = loaded(environment | {"HF_HUB_CACHE": str(cache)}, "org/whole")[0]
    assert line.startswith("EnvironmentFailure 4 org/whole: "), line
    done = python(environment, "-c", FULL_DISK + LOADS, "org/whole")
    assert "org/whole: " in done.stdout, done.stderr
    assert "No space left on device" in done.stdout


def test_commands_take_a_name(hub, made, environment, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the other thing\n" * 50)
    calls = [
        ("-m", "bpe", "encode", "--tokenizer", "org/whole", str(text)),
        ("-m", "bpe", "info", "org/whole"),
        ("-m", "bpe", "report", "org/pair", str(text)),
        (
            "-m",
            "bpe",
            "train",
            str(text),
            "--like",
            "org/whole",
            "--vocab-size",
            "260",
            "--output",
            "like.json",
        ),
        (
            "-m",
            "bpe",
            "train",
            str(text),
            "--continue-from",
            "org/whole@v1",
            "--vocab-size",
            "258",
            "--output",
            "on.json",
        ),
    ]
    for call in calls:
        done = python(environment, *call, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout or "train" in call
    assert Tokenizer.load(tmp_path / "on.json").merges[0] == (b"t", b"h")
    failed = python(environment, "-m", "bpe", "info", "org/missing")
    assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (2, "", 1)


def test_a_dataset_names_repository_and_commit_and_is_made_again_the_same(hub, made, environment, tmp_path):
    (tmp_path / "text.txt").write_text("the other thing<|endoftext|>" * 50)
    manifests = []
    for output, name in (("one", "org/whole"), ("two", "org/whole@v1")):
        done = python(
            environment,
            "-m",
            "convert",
            "text.txt",
            "--tokenizer",
            name,
            "--output",
            output,
            "--workers",
            "1",
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        manifests.append((tmp_path / output / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]
    assert json.loads(manifests[0])["tokenizer"]["source"] == f"org/whole@{COMMIT}"


def test_names_and_paths_are_distinguished():
    assert hub_name("org/model") == ("org/model", None)
    assert hub_name("a/b.c-d_e@refs/pr/1") == ("a/b.c-d_e", "refs/pr/1")
    paths = [
        "model",
        "/a/b",
        "./b",
        "../b",
        "a/b/c",
        "a/b.json",
        "a/b.tiktoken",
        "a/b.git",
        "a--b/c",
        "a/b..c",
        "a/-b",
    ]
    paths += ["a/b@", "", "a/", "/b", "ü/b", "a/b\n", "a/" + "b" * 97, "a b/c", "~/a"]
    for path in paths:
        assert hub_name(path) is None, path


def test_a_path_that_exists_wins(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    made.save("org/model")
    made.save("org/model@v1")
    for name in ("org/model", "org/model@v1"):
        assert locate(name).source is None
    with pytest.raises(BadArgument, match="org/model"):
        Tokenizer.load("org/model", revision="v1")
    with pytest.raises(BadArgument):
        Tokenizer.load("org/other@v1", revision="v2")


def test_without_the_package_the_name_is_a_missing_path(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delitem(sys.modules, "huggingface_hub.constants", raising=False)
    with pytest.raises(BadTokenizer, match=r"a/b.*'tokenmill\[hub\]'"):
        Tokenizer.load("a/b")
