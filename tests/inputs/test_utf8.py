"""check accepts what CPython decodes; replace_invalid gives what errors="replace" does, on every kind of damage."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tokenmill.inputs import utf8
from tokenmill.inputs.errors import InvalidText

# Borders of the ranges in Unicode's table 3-7, and plain bytes.
EDGES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")

ROOT = Path(__file__).resolve().parents[2]


def damaged(seed, count):
    generator = random.Random(seed)
    text = "aé你🙂\u0800\uffff\U0010ffff z".encode()
    for _ in range(count):
        data = bytearray(text * generator.randrange(1, 5))
        for _ in range(generator.randrange(4)):
            data[generator.randrange(len(data))] = generator.choice(EDGES)
        yield bytes(data[generator.randrange(4) : len(data) - generator.randrange(4)])


def all_short():
    for size in (0, 1, 2, 3):
        yield from map(bytes, itertools.product(EDGES, repeat=size))


def test_replacing_equals_cpython():
    for data in itertools.chain(all_short(), damaged(1, 500)):
        if utf8.other_kind(data):
            continue
        expected = data.decode(errors="replace")
        made, replaced = utf8.replace_invalid(data)
        assert bytes(made) == expected.encode(), data
        assert replaced == expected.count("\ufffd") - data.count("\ufffd".encode()), data


def test_check_names_the_first_wrong_byte():
    for data in itertools.chain(all_short(), damaged(2, 500)):
        if utf8.other_kind(data):
            continue
        try:
            data.decode()
        except UnicodeDecodeError as error:
            with pytest.raises(
                InvalidText, match=rf"f\.txt: byte {100 + error.start}: .*0x{data[error.start]:02x}"
            ):
                utf8.check(data, "f.txt", base_bytes=100)
        else:
            utf8.check(data)
            assert utf8.replace_invalid(data) == (data, 0)


def test_the_message_says_what_to_do():
    with pytest.raises(InvalidText, match=r"f\.txt: byte 2: .*0xff.*--invalid replace"):
        utf8.check(b"ab\xff", "f.txt")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
def test_other_encodings_are_recognised_by_their_mark(encoding):
    data = "\ufeffhello".encode(encoding) if encoding.endswith("be") else "hello".encode(encoding)
    name = encoding.upper()[:6]
    with pytest.raises(InvalidText, match=f"f.*{name}.*{name}"):
        utf8.check(data, "f")
    for invalid in ("error", "replace"):
        with pytest.raises(InvalidText, match=f"{name}"):
            utf8.TextDecoder("f", invalid).decode(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("gzip", gzip.compress(b"text", mtime=0)),
        ("bzip2", bz2.compress(b"text")),
        ("xz", lzma.compress(b"text")),
        ("zstd", b"\x28\xb5\x2f\xfd\x20\xff"),
        ("zip", b"PK\x03\x04\xff"),
        ("Parquet", b"PAR1\x15\xff"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_are_no_text_became_replacement_characters(name, data):
    assert f"looks like {name} data" in utf8.other_kind(data)
    for invalid in ("error", "replace"):
        with pytest.raises(InvalidText, match=f"{name}"):
            utf8.TextDecoder("f", invalid).decode(data)
    utf8.check(b"PAR1, BZh91 and PK are words")


def test_text_is_repaired_or_left():
    assert utf8.repair(b"\xef\xbb\xbfa", True) == (b"\xef\xbb\xbfa", 0, -1)
    assert utf8.repair(b"a\xffb\xff", True) == ("a\ufffdb\ufffd".encode(), 2, -1)
    assert utf8.repair(b"a\xffb\xff", False) == (b"a\xffb\xff", 0, 1)


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7])
def test_decoding_in_blocks_is_decoding_at_once(block_bytes):
    for data in damaged(3, 150):
        if utf8.other_kind(data):
            continue
        decoder = utf8.TextDecoder("f", "replace")
        blocks = [data[start : start + block_bytes] for start in range(0, len(data), block_bytes)]
        text = "".join(map(decoder.decode, blocks)) + decoder.decode(b"", final=True)
        assert text == data.decode(errors="replace")
        assert decoder.replaced == utf8.replace_invalid(data)[1]
        strict = utf8.TextDecoder("f")
        try:
            data.decode()
        except UnicodeDecodeError as error:
            with pytest.raises(InvalidText, match=f"f.*{error.start}"):
                _ = [strict.decode(block) for block in blocks] + [strict.decode(b"", final=True)]
        else:
            assert "".join(map(strict.decode, blocks)) + strict.decode(b"", final=True) == text


def test_threads_count_their_own_replacements():
    results = {}

    def count(number):
        results[number] = {utf8.replace_invalid(b"\xff" * number + b"a" * 5000)[1] for _ in range(50)}

    threads = [threading.Thread(target=count, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {1: {1}, 2: {2}, 3: {3}}


def test_rows_begin_at_characters() -> None:
    text = "aé你".encode()
    utf8.check_rows(text, np.array([0, 1, 3, 6, 6], np.uint64))
    for place in (2, 4, 5):
        with pytest.raises(InvalidText, match=f"byte .*{place}"):
            utf8.check_rows(text, np.array([0, place, 6], np.uint64))


@pytest.mark.parametrize(
    ("tail", "count"), [(b"", 0), (b"a", 0), (b"a\xe2\x82", 2), (b"\xf0\x9f\x99", 3), ("aé".encode(), 0)]
)
def test_the_start_of_a_character_at_the_end_is_counted(tail: bytes, count: int) -> None:
    assert utf8.cut_character_bytes(tail) == count


def test_the_environment_chooses_the_variant() -> None:
    command = [sys.executable, "-c", "import tokenmill.inputs._core"]
    for name, refused in [("portable", False), ("", False), ("sse9", True)]:
        environment = os.environ | {"BPE_SIMD": name}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        assert ("SIMD variant 'sse9'" in done.stderr, done.returncode != 0) == (refused, refused)
