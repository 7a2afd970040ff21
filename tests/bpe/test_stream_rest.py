"""A stream is counted further only behind the very text that was counted of it."""

from __future__ import annotations

import io
import os
import random
import threading
from pathlib import Path

import pytest

from bpe.errors import Refused
from bpe.pretoken_counts.counting import CountingOptions, count_pretokens, count_sources
from bpe.pretoken_counts.counts_inputs import counted_on, still_to_count
from bpe.pretoken_counts.source_facts import TextDigest
from bpe.pretoken_counts.sources import StreamRest
from bpe.pretoken_counts.stream_rest import read_again
from bpe.pretoken_counts.text_blocks import Reader

END = "<|endoftext|>"


def text_of(seed: int) -> bytes:
    rng = random.Random(seed)
    return "".join(rng.choices(["a", " ", "word", " the", "日本", "\n", END, "123"], k=3000)).encode()


def digest_of(text: bytes) -> str:
    digest = TextDigest()
    digest.add(text)
    return digest.hex()


@pytest.mark.parametrize("size", [1, 3, 4, 5, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_the_reader_is_behind_what_was_counted(size: int) -> None:
    text = ("é" * (2 << 20)).encode()
    size -= size % 2
    reader = Reader(io.BytesIO(text), "error")
    digest = read_again(reader, StreamRest(io.BytesIO(), size, digest_of(text[:size])), 5, None)
    assert digest is not None
    assert digest.hex() == digest_of(text[:size])
    assert (reader.start, reader.read_bytes) == (size, 0)
    room = bytearray(10)
    assert reader.fill(memoryview(room)) == 10
    assert room == text[size : size + 10]


def test_invalid_bytes_count_as_what_replaces_them() -> None:
    raw = b"a\xff" * (1 << 19) + b"\xe6\x97" + b"b" * (1 << 20) + b"\xe6"
    text = raw.decode("utf-8", "replace").encode()
    reader = Reader(io.BytesIO(raw + b" more"), "replace")
    assert read_again(reader, StreamRest(io.BytesIO(), len(raw), digest_of(text)), 5, None) is not None


@pytest.mark.parametrize("place", [0, 17, 999])
def test_another_beginning_is_refused(place: int) -> None:
    text = bytearray(b"word " * 200)
    rest = StreamRest(b"", len(text), digest_of(text))
    text[place] ^= 1
    with pytest.raises(Refused, match="text"):
        read_again(Reader(text + b"more", "error"), rest, 0, None)
    with pytest.raises(Refused, match="text.*byte 999"):
        read_again(Reader(text[:-1], "error"), rest, 0, None)


def test_reading_again_is_stopped_too() -> None:
    """Nothing more is counted then, and what was counted stays as it was."""
    text = text_of(1)
    stops = iter([False, True, True])
    options = CountingOptions([END], block_bytes=64, stop=lambda: next(stops))
    counted = count_sources([text], options)
    rest = still_to_count([text], counted.facts, None)
    again = counted_on(
        counted, count_sources(rest.sources, CountingOptions([END], stop=lambda: True)), rest.places
    )
    assert again.facts.sources == counted.facts.sources
    assert again.facts.text_bytes == counted.facts.text_bytes
    assert not again.facts.complete


def test_a_stream_that_ends_while_it_is_stopped_may_not_be_at_its_end() -> None:
    """Ctrl-C ends what writes to the pipe, too: the counts were said to be complete."""
    text = text_of(2)
    stream = io.BytesIO(text)
    stopped = False

    class Pipe(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, room: object) -> int:
            nonlocal stopped
            count = stream.readinto(room)  # type: ignore[arg-type]
            stopped = count == 0
            return count

    counted = count_sources([Pipe()], CountingOptions([END], block_bytes=1 << 16, stop=lambda: stopped))
    assert not counted.facts.complete
    rest = still_to_count([io.BytesIO(text)], counted.facts, None)
    whole = counted_on(counted, count_sources(rest.sources, CountingOptions([END])), rest.places)
    assert whole.facts == count_pretokens([io.BytesIO(text)], [END]).facts


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    text = text_of(3)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    left = 9

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def written() -> threading.Thread:
        def write() -> None:
            try:
                pipe.write_bytes(text)
            except BrokenPipeError:
                return

        writer = threading.Thread(target=write)
        writer.start()
        return writer

    writer = written()
    counted = count_sources([pipe], CountingOptions([END], block_bytes=64, stop=stop))
    writer.join(timeout=10)
    assert not counted.facts.complete
    rest = still_to_count([pipe], counted.facts, None)
    writer = written()
    both = counted_on(counted, count_sources(rest.sources, CountingOptions([END])), rest.places)
    writer.join(timeout=10)
    assert both.facts.text_bytes == len(text)
    assert both.facts.documents == count_pretokens([text], [END]).facts.documents
