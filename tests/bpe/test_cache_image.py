"""The cache of an encoder as bytes: another starts from them, within its bound, and damaged ones are refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpe import _core

IMAGE_TEXT = (
    b" some words again and again, " * 3
    + b"x" * 40
    + " 曉光緣圃麗芳氣滿街流 naïve ".encode()
    + b" 0123456789" * 9
)


def image_of(text: bytes) -> tuple[_core.Encoder, bytes]:
    encoder = _core.Encoder(gpt2_like(), None, {}, "gpt2", True)
    encoder.encode_documents(text, b"\0", 1)
    return encoder, encoder.cache_image()


def gpt2_like() -> dict[int, bytes]:
    pieces = [b" wor", b"ds", b" a", b"ga", b"in", b"xx", b"xxxx", b" words", "曉".encode()]
    return dict(enumerate([*(bytes([value]) for value in range(256)), *pieces]))


def test_a_cache_starts_from_the_image_of_another() -> None:
    encoder, image = image_of(IMAGE_TEXT)
    expected = encoder.encode_documents(IMAGE_TEXT, b"\0", 1)[0]
    warm = _core.Encoder(gpt2_like(), None, {}, "gpt2", True)
    warm.start_from_image(memoryview(image))
    assert np.array_equal(warm.encode_documents(IMAGE_TEXT, b"\0", 1)[0], expected)
    assert contents(warm.cache_image()) == contents(image), "all was there: nothing was added"
    more = IMAGE_TEXT + b" other words beyond" * 200
    assert np.array_equal(
        warm.encode_documents(more, b"\0", 1)[0], encoder.encode_documents(more, b"\0", 1)[0]
    )
    warm.start_from_image(b"")
    assert warm.cache_image() == b""


def contents(image: bytes) -> list[bytes]:
    """The slots in any order: a pretoken that is found may move to one where it is found sooner."""
    header, slot_bytes = 4 * 8, 32
    slots_stop = header + slot_bytes * int.from_bytes(image[8:16], "little")
    slots = [image[start : start + slot_bytes] for start in range(header, slots_stop, slot_bytes)]
    return [image[:header], *sorted(slots), image[slots_stop:]]


@pytest.mark.parametrize("count", [340, 342, 700, 30_000])
def test_a_growing_cache_forgets_nothing(count: int) -> None:
    """Around and beyond the sizes at which the table doubles: what was encoded once is found."""
    text = b" ".join(b"%x" % (i * 2654435761 % 2**32) for i in range(count))
    encoder, image = image_of(text)
    for _ in range(3):
        encoder.encode_documents(text, b"\0", 1)
        assert contents(encoder.cache_image()) == contents(image), "pretokens displaced each other"


def test_the_image_of_a_cache_without_an_empty_slot() -> None:
    """So many new words that a table at its full size fills up to the last slot."""
    rng = random.Random(11)
    # Of so few ids that none are in the arena, which would be full first.
    text = b" ".join(bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(300_000))
    encoder = _core.Encoder(gpt2_like(), None, {}, "gpt2", True, cache_bytes=2 << 20)
    encoder.encode_documents(text, b"\0", 1)
    image = encoder.cache_image()
    slot_count, used = (int.from_bytes(image[start : start + 8], "little") for start in (8, 16))
    assert slot_count == used
    warm = _core.Encoder(gpt2_like(), None, {}, "gpt2", True)
    warm.start_from_image(image)
    for each in (text, text.replace(b"q", b"a")):
        assert np.array_equal(
            warm.encode_documents(each, b"\0", 1)[0], encoder.encode_documents(each, b"\0", 1)[0]
        )


def test_an_image_stays_within_the_cache_bound() -> None:
    _, image = image_of(b" ".join(b"%d" % i for i in range(5000)))
    small = _core.Encoder(gpt2_like(), None, {}, "gpt2", True, cache_bytes=20_000)
    small.start_from_image(image)
    text = b" ".join(b"%d" % i for i in range(4000, 6000))
    assert np.array_equal(small.encode_documents(text, b"\0", 1)[0], image_of(text)[0].encode(text.decode()))
    assert small.cache_bytes_used() <= 20_000


def test_a_damaged_image_is_refused() -> None:
    encoder, image = image_of(IMAGE_TEXT)
    for damaged in [image[:-1], image[:20], image + b"\0", b"\xff" + image[1:], b"x"]:
        with pytest.raises(ValueError, match="damaged or of another version"):
            encoder.start_from_image(damaged)
    rng = random.Random(5)
    text = IMAGE_TEXT * 4
    for _ in range(300):  # whatever the bytes say, nothing is read or written beyond them
        flipped = bytearray(image)
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        try:
            encoder.start_from_image(flipped)
        except ValueError:
            continue
        encoder.encode_documents(text, b"\0", 1)


def test_a_long_pretoken_is_found_by_its_bytes_not_by_its_hash_alone() -> None:
    """As if two had the same key: what the arena keeps is another pretoken."""
    encoder, image = image_of(IMAGE_TEXT)
    assert image.count(b"x" * 40) == 1
    encoder.start_from_image(image.replace(b"x" * 40, b"x" * 20 + b"y" + b"x" * 19))
    tokens, _ = encoder.encode_documents(IMAGE_TEXT * 3, b"\0", 1)
    assert encoder.decode(tokens.tolist()) == IMAGE_TEXT * 3
