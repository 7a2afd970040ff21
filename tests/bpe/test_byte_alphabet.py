"""The byte alphabet is bijective and equals GPT-2's."""

from __future__ import annotations

import pytest

from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER, to_bytes, to_characters


def test_it_is_one_to_one():
    assert len(set(BYTE_TO_CHARACTER.values())) == 256
    every = bytes(range(256))
    assert to_bytes(to_characters(every)) == every
    assert to_characters(every) == "".join(BYTE_TO_CHARACTER[byte] for byte in every)


def test_it_is_the_alphabet_of_hugging_face():
    from tokenizers.pre_tokenizers import ByteLevel

    assert set(ByteLevel.alphabet()) == set(BYTE_TO_CHARACTER.values())
    for text in (" the\n", "é你🙂", "\x00\x7f\u00a0\u00ad"):
        pretokens = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
        assert "".join(characters for characters, _ in pretokens) == to_characters(text.encode())


@pytest.mark.parametrize(
    "outside", [" ", "\n", "\x00", "\x7f", "\u00a0", "\u00ad", "\u0144", "▁", "你", "\ud800"]
)
def test_other_characters_are_none(outside):
    assert to_bytes("Ġ" + outside) is None
