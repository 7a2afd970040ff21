"""Boxes of tokens: all ids, all bytes, and nothing that a page could be driven by."""

from __future__ import annotations

import random

from tokenmill.html.token_boxes import boxes, parts


def test_boxes_keep_the_ids_and_the_bytes() -> None:
    rng = random.Random(0)
    pieces = [bytes([byte]) for byte in range(256)] + [
        b" the",
        "€".encode(),
        "é🙂".encode()[:-1],
        b"",
    ]
    entries = dict(enumerate(pieces))
    text = list("wörld 世界 🙂\n".encode())
    for _ in range(200):
        ids = rng.choices([*range(262), *text * 3], k=rng.randrange(40))
        made = list(boxes(ids, entries))
        assert [id_ for box in made for id_ in box.ids] == ids
        for box in made:
            known = [entries.get(id_) for id_ in box.ids]
            assert box.data == (None if None in known else b"".join(map(bytes, known)))  # type: ignore[arg-type]


def test_tokens_that_make_one_character_share_a_box() -> None:
    entries = {0: b"a", 1: b"\xe2", 2: b"\x82\xac", 3: b"\xff", 4: b" \xe2\x82"}
    assert [box.ids for box in boxes([0, 1, 2, 0], entries)] == [(0,), (1, 2), (0,)]
    assert [box.ids for box in boxes([1, 3, 0], entries)] == [(1,), (3,), (0,)]
    assert [box.ids for box in boxes([1, 9, 2], entries)] == [(1,), (9,), (2,)]
    assert [box.ids for box in boxes([1], entries)] == [(1,)]


def test_what_does_not_print_is_spelled_out() -> None:
    told = [(part.text, part.is_spelled) for part in parts("a\n\u202e\x00".encode() + b"\xff b")]
    assert told == [
        ("a", False),
        ("↵", True),
        ("\n", False),
        ("U+202E", True),
        ("U+0000", True),
        ("FF", True),
        (" b", False),
    ]


def test_a_mark_without_its_letter_has_a_place() -> None:
    assert [part.text for part in parts("\u0301a\u0301".encode())] == ["\u25cc\u0301a\u0301"]
