"""Shared fixtures: a small trained vocabulary, difficult and random text, and tokenizers of the two oracle libraries.

Nothing is downloaded: bpe.reference trains the vocabulary on a few lines, and each library gets a copy.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from bpe import reference
from bpe.formats.huggingface import to_json
from bpe.patterns import PATTERNS
from bpe.tokenizer import Tokenizer

sys.path.insert(0, str(Path(__file__).parent))  # inline_engine.py, state_machines.py, strategies.py

import strategies

strategies.load_profile()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="the first case of each short test")
    parser.addoption("--update-snapshots", action="store_true", help="rewrite expected results")
    parser.addoption("--points", type=int, default=100, help="random points of each stress campaign")
    parser.addoption("--seed", default="0", help="seed of the stress campaigns")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick, skip further cases of a test, and tests that take long."""
    if not config.getoption("--quick"):
        return
    first = set({item.nodeid.partition("[")[0]: item for item in reversed(items)}.values())
    first = {item for item in first if item.get_closest_marker("long") is None}
    config.hook.pytest_deselected(items=[item for item in items if item not in first])
    items[:] = [item for item in items if item in first]


def pytest_configure(config: pytest.Config) -> None:
    """With --quick, draw few examples. Reset the signals that a background job of a shell (Ctrl-C) or nohup (SIGHUP)
    ignores, since tests start processes and stop them with these signals.
    """
    if config.getoption("--quick"):
        settings.load_profile("quick")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


CORPUS = """The quick brown fox jumps over the lazy dog. It's what they'll say: we've seen THEM, I'm sure you'd agree!
 the there then them these their  and  in  on   of    to \t\t for\n\n\nreturn x == 12345 + 678; // isn't it?
def encode(self, text: str) -> list[int]:\n    return [self.id_of[part] for part in text.split()]\r\n\r\n
Größe, naïve café — déjà vu; Straße und Übermut. Привет, мир! Привет всем. 你好，世界。你好吗？ こんにちは世界
123 4567 89 1000000 3.14159 aaaa aaaaaaaa abababab 🙂🙂🙂 👩‍👩‍👧 e\u0301 a\u0300\u0301 नमस्ते दुनिया العربية עברית
"""

NASTY_TEXTS = {
    "empty": "",
    "one letter": "a",
    "NUL": "a\0b\0\0 \0",
    "spaces": " ",
    "many spaces": "a     b      ",
    "spaces at the end": "word  \n  ",
    "whitespace of all kinds": " a\t\tb\r\nc\r\rd\u00a0e\u2003 f\u3000\u3000g\x0b\x0c h\x85 i\u2028j \n \n\n k",
    "contractions": "it's IT'S I'LL we'Ve 'tis 's'd'm'll y'all'd've ''s 'ſ 'LLx",
    "digits": "1 12 123 1234 12345678 ½ ² ٣٤٥ 1a2b 3.14",
    "punctuation": "!!! ... -- \n//\n [x]=={y}; <|x|> ''' \"\"\" \\n/\r\n/",
    "combining marks": "e\u0301e\u0301 \u0301a n\u0303o\u0308 \u0915\u094d\u0937 a\u0300\u0301\u0302b",
    "emoji": "🙂👍🏽👩‍👩‍👧‍👦🇩🇪🇫🇷 x🙂y ❤️",
    "CJK": "你好世界，こんにちは。한국어 文字abc 你1好",
    "mixed case": "HTTPServer fooBar FOO Foo ǅ ʰx İstanbul ÀÉ",
    "right to left": "שלום עולם مرحبا بالعالم",
    "private use and unassigned": "\ue000\uf8ff\U000f0000 \uffff\ufffe",
    "largest characters": "\U0010ffff\U0010fffd",
    "long run": "ab" * 300 + " " * 200 + "\n" * 70 + "🙂" * 40,
}


@pytest.fixture(params=sorted(PATTERNS))
def pattern(request: pytest.FixtureRequest) -> str:
    """Run the test with each named pattern."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def nasty_texts() -> dict[str, str]:
    """Return texts on which encoders have failed, by name."""
    return NASTY_TEXTS


@pytest.fixture(scope="session")
def random_texts() -> Callable[..., Iterator[str]]:
    """random_texts(seed, count, size) yields texts of words, spaces, marks and other scripts."""
    pieces = [
        *"abcdeorst \t\n\r.,'!/0123456789",
        *",the,and,of,you'll,'S,123,é,e\u0301,ü,ß,你,好,の,🙂,\u200d,\xa0,\u3000,\r\n,\n\n,,,\x00".split(","),
        *"ǅ,ʰ,½,П,р,  , the,<|endoftext|>".split(","),
    ]

    def texts(seed: int, count: int, size: int) -> Iterator[str]:
        generator = random.Random(seed)
        for _ in range(count):
            yield "".join(generator.choices(pieces, k=generator.randrange(size + 1)))

    return texts


@pytest.fixture(scope="session")
def trained() -> Callable[[str], tuple[dict[int, bytes], list[tuple[bytes, bytes]]]]:
    """trained(pattern) returns (entries by ID, merges) of 300 merges over the corpus above. Bytes come first, by
    value.
    """
    made: dict[str, tuple[dict[int, bytes], list[tuple[bytes, bytes]]]] = {}

    def train(pattern: str) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
        if pattern not in made:
            merges = reference.train(reference.count_pretokens([CORPUS], [], pattern), 300)
            entries = [bytes([byte]) for byte in range(256)]
            for left, right in merges:
                if left + right not in entries:
                    entries.append(left + right)
            made[pattern] = dict(enumerate(entries)), merges
        entries_by_id, merges = made[pattern]
        return dict(entries_by_id), list(merges)

    return train


@pytest.fixture(scope="session")
def listed(trained: Any) -> Callable[..., Tokenizer]:
    """listed(pattern, **options) returns a tokenizer with a merge list and <|endoftext|>."""

    def make(pattern: str = "gpt2", special_tokens: Any = ("<|endoftext|>",), **options: Any) -> Tokenizer:
        entries, merges = trained(pattern if pattern in PATTERNS else "gpt2")
        return Tokenizer(entries, merges, special_tokens, pattern, **options)

    return make


@pytest.fixture(scope="session")
def ranked(trained: Any) -> Callable[..., Tokenizer]:
    """ranked(pattern) returns a rank-file tokenizer with <|endoftext|> and some entries that no merge reaches."""

    def make(pattern: str = "gpt2", special_tokens: Any = ("<|endoftext|>",)) -> Tokenizer:
        entries, _ = trained(pattern if pattern in PATTERNS else "gpt2")
        more = [b" lazy dogs", b"xyzzy", b"the the", " Приветик".encode(), b"aaa", b"babab"]
        entries |= {len(entries) + place: entry for place, entry in enumerate(more)}
        return Tokenizer(entries, None, special_tokens, pattern)

    return make


@pytest.fixture(scope="session")
def tiktoken_of() -> Callable[[Tokenizer], Any]:
    """Return tiktoken's Encoding with the tokenizer's entries as ranks."""
    import tiktoken

    def make(tokenizer: Tokenizer) -> Any:
        expression = PATTERNS.get(tokenizer.pattern, tokenizer.pattern).replace(r"\Z", "$")
        return tiktoken.Encoding(
            "test",
            pat_str=expression,
            mergeable_ranks={entry: id_ for id_, entry in tokenizer.ordinary_entries.items()},
            special_tokens=tokenizer.special_tokens,
        )

    return make


@pytest.fixture(scope="session")
def huggingface_of() -> Callable[[Tokenizer | dict[str, Any]], Any]:
    """Return Hugging Face's Tokenizer from our tokenizer.json, or from the given one."""
    import tokenizers

    def make(tokenizer: Tokenizer | dict[str, Any]) -> Any:
        text = to_json(tokenizer).decode() if isinstance(tokenizer, Tokenizer) else json.dumps(tokenizer)
        return tokenizers.Tokenizer.from_str(text)

    return make


@pytest.fixture
def open_files_keep_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rename removed files to `.nfs...` while this process has them open, as NFS does; until they are closed, their
    folder cannot be removed.
    """
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    do_unlink, do_rmdir = os.unlink, os.rmdir

    def is_open(status: os.stat_result) -> bool:
        for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
            with suppress(OSError):  # the descriptor of the listing
                if os.path.samestat(os.fstat(int(number)), status):
                    return True
        return False

    def unlink(path: Any, *, dir_fd: int | None = None) -> None:
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        if not is_open(status):
            return do_unlink(path, dir_fd=dir_fd)
        kept = Path(path).parent / f".nfs{status.st_ino}"
        os.rename(path, kept, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def rmdir(path: Any, *, dir_fd: int | None = None) -> None:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=dir_fd)
        for name in os.listdir(folder):  # noqa: PTH208 - a descriptor
            if name.startswith(".nfs") and not is_open(os.stat(name, dir_fd=folder)):
                do_unlink(name, dir_fd=folder)
        os.close(folder)
        do_rmdir(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    monkeypatch.setattr(os, "rmdir", rmdir)
