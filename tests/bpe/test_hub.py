"""Tokenizers of the Hub by name: downloads, cache hits and every failure.

huggingface_hub reads its variables on import, so each setting runs in its own process, which loads all names of the
test. The server is on loopback; no other host is contacted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from loopback import Handler, serving

from bpe import Tokenizer
from bpe.errors import BadArgument, BadTokenizer
from bpe.hub import hub_name, locate

COMMIT = "0123456789abcdef0123456789abcdef01234567"
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


class Hub(Handler):
    """The answers of the Hub to downloads: commit and tag of a file, error codes.

    repositories: name -> file -> bytes. failing: the status of every answer. cut: files break off in the middle.
    """

    repositories: ClassVar[dict[str, dict[str, bytes]]] = {}
    failing: int | None = None
    cut = False
    log: ClassVar[list[str]] = []
    url = ""

    def get(self) -> None:
        path = self.decoded_path
        self.log.append(f"{self.command} {path}")
        first, *parts = path.strip("/").split("/")
        if self.failing is not None or parts[:1] == ["agent-harnesses"]:
            return self.answer(self.failing or 404)
        is_api = first == "api"
        parts = parts[1:] if is_api else [first, *parts]
        repository, revision = "/".join(parts[:2]), parts[3] if len(parts) > 3 else "main"
        files = self.repositories.get(repository)
        if files is None:
            return self.answer(401, **{"x-error-code": "RepoNotFound"})
        if revision not in ("main", "v1", COMMIT):
            return self.answer(404, **{"x-error-code": "RevisionNotFound"})
        if is_api:
            items = [
                {"rfilename": file, "type": "file", "path": file, "size": 1, "oid": "0"} for file in files
            ]
            listing: Any = (
                items if parts[2:3] == ["tree"] else {"id": repository, "sha": COMMIT, "siblings": items}
            )
            return self.answer(200, json.dumps(listing).encode(), **{"content-type": "application/json"})
        token = self.headers.get("authorization")
        if repository == "org/gated" and token != "Bearer hf_secret":
            return self.answer(403 if token else 401, **{"x-error-code": "GatedRepo"})
        name, headers = "/".join(parts[4:]), {"x-repo-commit": COMMIT}
        if name not in files:
            return self.answer(404, **{"x-error-code": "EntryNotFound"}, **headers)
        return self.file(files[name], **headers)

    def file(self, data: bytes, **headers: str) -> None:
        headers["etag"] = f'"{hashlib.sha1(data).hexdigest()}"'
        if not self.cut or self.command == "HEAD":
            return self.answer(200, data, **headers)
        self.send_response(200)
        for name, value in {**headers, "content-length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.close_connection = True

    @classmethod
    def downloaded(cls) -> list[str]:
        """List the files that were requested, without those that no repository has."""
        requested = {line.rsplit("/", 1)[1] for line in cls.log if line.startswith("GET /")}
        return sorted(requested & {file for files in cls.repositories.values() for file in files})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokenizer]:
    """The tokenizer of all repositories of a running Hub; each stores it in another format."""
    tokenizer = Tokenizer({id_: bytes([id_]) for id_ in range(256)} | {256: b"th"}, [(b"t", b"h")])
    folder = tmp_path_factory.mktemp("made")
    tokenizer.save(folder / "tokenizer.json")
    tokenizer.export_gpt2(folder)
    tokenizer.export_tiktoken(folder / "ranks.tiktoken")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = {"config.json": b"{}", "model.safetensors": b"\0" * 2000}
    pair = {name: files[name] for name in ("vocab.json", "merges.txt")}
    whole = {"tokenizer.json": files["tokenizer.json"]}
    config = {"pattern": r"[^\s]+|\s+", "num_vocab_tokens": 256, "default_vocab_size": 257, "version": "v3"}
    entries = [base64.b64encode(bytes([rank])).decode() for rank in range(256)]
    tekken = {
        "config": config | {"default_num_special_tokens": 1},
        "vocab": [
            {"rank": rank, "token_bytes": entry, "token_str": None} for rank, entry in enumerate(entries)
        ],
    }
    Hub.repositories = {
        "org/whole": other | pair | whole,
        "org/pair": other | pair,
        "org/ranks": other | {"qwen.tiktoken": files["ranks.tiktoken"]},
        "org/ranks-model": other | {"tokenizer.model": files["ranks.tiktoken"]},
        "org/tekken": other | {"tekken.json": json.dumps(tekken).encode()},
        "org/half": other | {"vocab.json": files["vocab.json"]},
        "org/gated": whole,
        "org/broken": {"tokenizer.json": b"{" + b" " * 100},
        "org/none": other,
        "org/chat": whole
        | {
            "chat_template.jinja": b"D{{ bos_token }}",
            "additional_chat_templates/tool_use.jinja": b"T",
            "special_tokens_map.json": b'{"bos_token": "<s>"}',
        },
    }
    with serving(Hub) as Hub.url:
        yield tokenizer


@pytest.fixture
def environment(made: Tokenizer, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Environment variables with this Hub and an empty cache."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    kept |= {name: "" for name in kept if name.lower().endswith("_proxy")}
    Hub.log.clear()
    yield kept | {"HF_ENDPOINT": Hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
    Hub.failing, Hub.cut = None, False


def python(environment: dict[str, str], *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, **options)


def loaded(environment: dict[str, str], *names: str) -> list[str]:
    """Return one line per name: the fingerprint, or the error's class, exit code and message."""
    done = python(environment, "-c", LOADS, *names)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(names), done.stdout
    return lines


@pytest.mark.long
@pytest.mark.promise("hub")
def test_each_kind_of_file_gives_the_same_tokenizer_and_nothing_else_is_downloaded(
    made: Tokenizer, environment: dict[str, str]
) -> None:
    names = ["org/whole", "org/whole@v1", f"org/whole@{COMMIT}", "org/pair"]
    assert loaded(environment, *names) == [made.fingerprint()] * 4
    assert Hub.downloaded() == ["config.json", "merges.txt", "tokenizer.json", "vocab.json"]
    Hub.log.clear()
    ranks = loaded(environment, "org/ranks", "org/ranks-model", "org/tekken")
    assert ranks[0] == ranks[1]
    assert {len(line) for line in ranks} == {64}
    assert Hub.downloaded() == ["config.json", "qwen.tiktoken", "tekken.json", "tokenizer.model"]


@pytest.mark.long
def test_chat_templates_and_the_interface_of_tokenizers(made: Tokenizer, environment: dict[str, str]) -> None:
    """Chat templates were not downloaded."""
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    script = (
        "from bpe import Tokenizer\nfrom convert import ConvertOptions\nfrom convert.chat_rules import chat_rules\n"
        "from bpe.compat.huggingface import Tokenizer as Theirs\n"
        "options = ConvertOptions(['a'], 'org/chat', 'b', messages_field='messages')\n"
        "print(*chat_rules(options, Tokenizer.load('org/chat')))\n"
        "for name, revision in (('org/whole', 'main'), ('org/whole', 'v1'), ('org/pair', 'main')):\n"
        "    print(Theirs.from_pretrained(name, revision=revision).encode('this').ids)\n"
    )
    expected = "D{{ bos_token }} (('bos_token', '<s>'),) () T\n" + f"{made.encode('this')}\n" * 3
    for setting in ({}, {"HF_HUB_OFFLINE": "1"}):
        done = python(environment | setting, "-c", script)
        assert done.stdout == expected, done.stderr


@pytest.mark.slow
def test_the_cache_answers_without_a_server_only_what_is_sure(environment: dict[str, str]) -> None:
    names = ["org/whole", "org/pair", "org/ranks"]
    online = loaded(environment, *names)
    # Another program downloaded these files; the repository has a tokenizer.json.
    code = "from huggingface_hub import hf_hub_download as get\n"
    code += "for file in 'vocab.json', 'merges.txt': get('org/whole', file)"
    partly = environment | {"HF_HOME": environment["HF_HOME"] + "2"}
    assert python(partly, "-c", code).returncode == 0
    Hub.log.clear()
    *cached, missing = loaded(environment | {"HF_HUB_OFFLINE": "1"}, *names, "org/tekken")
    assert cached == online
    assert missing.startswith("EnvironmentFailure 4 org/tekken: ")
    (line,) = loaded(partly | {"HF_HUB_OFFLINE": "1"}, "org/whole")
    assert line.startswith("EnvironmentFailure 4 org/whole: ")
    assert Hub.log == []
    Hub.failing = 503
    assert loaded(environment, "org/whole") == online[:1]
    assert loaded(partly, "org/whole")[0].startswith("EnvironmentFailure 4 org/whole: ")


@pytest.mark.slow
def test_each_failure_is_one_line(made: Tokenizer, environment: dict[str, str], tmp_path: Path) -> None:
    failing = ["org/missing", "org/gated", "org/whole@v9", "org/none", "org/half", "org/wholejson/x"]
    *lines, broken = loaded(environment, *failing, "org/broken")
    for line, name in zip(lines, failing, strict=True):
        assert line.startswith(f"BadTokenizer 2 {name}: ")
    assert broken.startswith("BadTokenizer 2 " + environment["HF_HOME"])
    assert "HF_TOKEN" in loaded(environment | {"HF_TOKEN": "hf_other"}, "org/gated")[0]
    assert loaded(environment | {"HF_TOKEN": "hf_secret"}, "org/gated") == [made.fingerprint()]
    Hub.cut = True
    (tmp_path / "cache").write_text("a file where the folder should be")
    for setting in (
        {},
        {"HF_ENDPOINT": "http://127.0.0.1:9"},
        {"HF_ENDPOINT": "nonsense"},
        {"HF_HUB_CACHE": str(tmp_path / "cache")},
    ):
        (line,) = loaded(environment | setting, "org/whole")
        assert line.startswith("EnvironmentFailure 4 org/whole: "), line
    # Older versions of huggingface_hub detect this address only when they send a request.
    (line,) = loaded(environment | {"HF_ENDPOINT": "http://[bad"}, "org/whole")
    assert line.startswith(("BadArgument 2 org/whole: ", "EnvironmentFailure 4 org/whole: "))
    done = python(environment, "-c", FULL_DISK + LOADS, "org/whole")
    assert "org/whole: " in done.stdout, done.stderr
    assert "No space left on device" in done.stdout


@pytest.mark.slow
@pytest.mark.promise("hub")
def test_commands_accept_a_name(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the other thing<|endoftext|>" * 50)
    for call in (
        "bpe encode --tokenizer org/whole text.txt",
        "bpe info org/whole",
        "bpe report org/pair text.txt",
        "bpe train text.txt --like org/whole --vocab-size 260 --output like.json",
        "bpe train text.txt --continue-from org/whole@v1 --vocab-size 258 --output on.json",
        "convert text.txt --tokenizer org/whole --output one --workers 1",
        "convert text.txt --tokenizer org/whole@v1 --output two --workers 1",
    ):
        done = python(environment, "-m", *call.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert Tokenizer.load(tmp_path / "on.json").merges[0] == (b"t", b"h")
    one, two = ((tmp_path / name / "manifest.json").read_bytes() for name in ("one", "two"))
    assert one == two
    assert json.loads(one)["tokenizer"]["source"] == f"org/whole@{COMMIT}"
    failed = python(environment, "-m", "bpe", "info", "org/missing")
    assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (2, "", 1)


@pytest.mark.promise("hub")
def test_names_and_paths_are_distinguished(made: Tokenizer, tmp_path: Path, monkeypatch: Any) -> None:
    assert hub_name("org/model") == ("org/model", None)
    assert hub_name("a/b.c-d_e@refs/pr/1") == ("a/b.c-d_e", "refs/pr/1")
    paths = "model /a/b ./b ../b a/b/c a/b.json a/b.tiktoken a/b.git a--b/c a/b..c a/-b a/b@ a/ /b ü/b ~/a"
    for path in [*paths.split(), "", "a/b\n", "a/" + "b" * 97, "a b/c"]:
        assert hub_name(path) is None, path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    for name in ("org/model", "org/model@v1"):
        made.save(name)
        assert locate(name).source is None  # a path that exists takes precedence
    with pytest.raises(BadArgument, match="org/model"):
        Tokenizer.load("org/model", revision="v1")
    with pytest.raises(BadArgument):
        Tokenizer.load("org/other@v1", revision="v2")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delitem(sys.modules, "huggingface_hub.constants", raising=False)
    with pytest.raises(BadTokenizer, match=r"a/b.*'tokenmill\[hub\]'"):
        Tokenizer.load("a/b")
