"""UTF-8 as CPython has it: the same first invalid byte in every SIMD variant, and the same U+FFFD for it."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tokenmill.inputs import _core, utf8
from tokenmill.inputs.errors import InvalidText

# The first and last of each kind of byte in Table 3-7 of the Unicode standard.
EDGES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
ROOT = Path(__file__).resolve().parents[2]


def first_invalid(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def damaged(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray("".join(rng.choices("aaaa \nйé中文한😀\U0010ffff", k=rng.randint(1, 300))).encode())
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.choice(EDGES)
        yield bytes(data[rng.randrange(4) : len(data) - rng.randrange(4)])


def short_texts() -> Iterator[bytes]:
    for size in (0, 1, 2, 3):
        yield from map(bytes, itertools.product(EDGES, repeat=size))


def test_the_first_invalid_byte(variant: str) -> None:
    before, after = b"a" * 61 + "中é".encode(), "ü中".encode() * 40
    for data in itertools.chain(short_texts(), damaged(1, 1500)):
        assert _core.validate_utf8(data) == first_invalid(data), data
        long = before + data + after
        assert _core.validate_utf8(long) == first_invalid(long), data


def test_the_error_and_the_repair() -> None:
    for data in itertools.chain(short_texts(), damaged(2, 500)):
        bad, expected = first_invalid(data), data.decode(errors="replace")
        replaced = expected.count("\ufffd") - data.count("\ufffd".encode())
        text, count, left = utf8.repair(data, replaces=True)
        assert (bytes(text), count, left) == (expected.encode(), replaced, -1), data
        assert utf8.repair(data, replaces=False) == (data, 0, bad)
        if bad < 0:
            utf8.check(data)
        elif not utf8.other_kind(data):
            with pytest.raises(
                InvalidText, match=rf"f: byte {100 + bad}: .*0x{data[bad]:02x}.*--invalid replace"
            ):
                utf8.check(data, "f", base_bytes=100)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(
            (name, "\ufeffhello".encode(name))
            for name in ("UTF-16-LE", "UTF-16-BE", "UTF-32-LE", "UTF-32-BE")
        ),
        ("gzip data", gzip.compress(b"text", mtime=0)),
        ("bzip2 data", bz2.compress(b"text")),
        ("xz data", lzma.compress(b"text")),
        ("zstd data", b"\x28\xb5\x2f\xfd\x20\xff"),
        ("zip data", b"PK\x03\x04\xff"),
        ("Parquet data", b"PAR1\x15\xff"),
    ],
    ids=str,
)
def test_files_that_are_no_text_became_replacement_characters(name: str, data: bytes) -> None:
    with pytest.raises(InvalidText, match=rf"^f: looks like {name[:6]}"):
        utf8.check(data, "f")
    utf8.check(b"PAR1, BZh91 and PK are words")


def test_rows_begin_at_characters() -> None:
    text = "aé你".encode()
    utf8.check_rows(text, np.array([0, 1, 3, 6, 6], np.uint64))
    for place in (2, 4, 5):
        with pytest.raises(InvalidText, match=f"byte .*{place}"):
            utf8.check_rows(text, np.array([0, place, 6], np.uint64))


def test_the_environment_chooses_the_variant() -> None:
    command = [sys.executable, "-c", "import tokenmill.inputs._core"]
    for name, refused in [("portable", False), ("", False), ("sse9", True)]:
        environment = os.environ | {"BPE_SIMD": name}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        assert ("SIMD variant 'sse9'" in done.stderr, done.returncode != 0) == (refused, refused)
