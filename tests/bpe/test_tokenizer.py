"""Names, equality and decoding of tokenizers."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from splits import split

from bpe.errors import BadArgument, BadTokenizer
from bpe.pretokenizer import Pretokenizer
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer

GAPPY = Pretokenizer((split(r"[A-Za-z]+|\p{N}{2}", "drop"),))


def test_properties(listed, ranked):
    tokenizer = listed("llama3", special_tokens={"<s>": 5000})
    assert (tokenizer.vocab_size, tokenizer.max_token_id, len(tokenizer)) == (557, 5000, 557)
    assert tokenizer.vocab[5000] == b"<s>"
    assert tokenizer.special_tokens == {"<s>": 5000}
    assert (tokenizer.pattern, tokenizer.normalizer, tokenizer.ignore_merges) == ("llama3", None, False)
    assert tokenizer.token_to_id("<s>") == 5000
    assert tokenizer.token_to_id(b"a") == 97
    assert tokenizer.token_to_id(b"<s>") is None
    assert tokenizer.id_to_token(97) == b"a"
    assert tokenizer.id_to_token(4999) is None
    assert repr(tokenizer) == "<Tokenizer 557 entries, 300 merges, 1 special token, pattern 'llama3'>"
    assert "rank file" in repr(ranked())
    with pytest.raises(TypeError):
        tokenizer.vocab[1] = b"x"


def test_equality_fingerprint_and_pickle(listed, ranked):
    for tokenizer in (listed(), listed(GAPPY), ranked("o200k"), listed("qwen2", normalizer="NFC")):
        twin = pickle.loads(pickle.dumps(tokenizer))
        assert twin == tokenizer
        assert hash(twin) == hash(tokenizer)
        assert twin.fingerprint() == tokenizer.fingerprint()
        assert twin.is_rank_file == tokenizer.is_rank_file
        assert twin.encode("Hello 'll<|endoftext|> 12") == tokenizer.encode("Hello 'll<|endoftext|> 12")
    different = [listed(), listed("llama3"), listed(special_tokens=["<s>"]), listed(ignore_merges=True)]
    assert len({tokenizer.fingerprint() for tokenizer in different}) == len(different)
    assert listed() != "no tokenizer"
    assert len(listed().fingerprint()) == 64


def test_bad_patterns(trained):
    entries, merges = trained("gpt2")
    with pytest.raises(BadTokenizer):
        Tokenizer(entries, merges, pattern="(a")
    with pytest.raises(BadArgument, match="pattern"):
        Tokenizer(entries, merges, pattern="")
    with pytest.raises(BadArgument, match="normalizer"):
        Tokenizer(entries, merges, normalizer="NFD")


def test_decode(listed):
    tokenizer = listed()
    ids = tokenizer.encode("naïve 🙂<|endoftext|>")
    assert tokenizer.decode(ids) == "naïve 🙂<|endoftext|>"
    for form in (tuple(ids), np.array(ids, np.uint32), np.array(ids, np.int64), iter(ids)):
        assert tokenizer.decode_bytes(form) == "naïve 🙂<|endoftext|>".encode()
    assert tokenizer.decode_bytes([]) == b""
    assert tokenizer.decode([0xF0, 0x9F]) == "\ufffd"
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode([0xF0], errors="strict")


@pytest.mark.parametrize("bad", [999, -1, 2**31, 2**32 + 97])
def test_decoding_an_unknown_id_names_it(listed, bad):
    with pytest.raises(BadArgument, match=str(bad)):
        listed().decode([97, bad])


def test_decode_batch_is_decode_of_each_row(listed):
    tokenizer = listed()
    texts = ["Hello, world", "", "你好🙂", "a<|endoftext|>b", "é" * 40]
    ragged = tokenizer.encode_batch(texts)
    assert tokenizer.decode_batch(ragged) == texts
    assert tokenizer.decode_batch(ragged.tolist()) == texts
    assert tokenizer.decode_batch(tuple(row) for row in ragged) == texts
    assert tokenizer.decode_batch([]) == []
    cut = [[tokenizer.token_to_id(b"\xf0")]]
    assert tokenizer.decode_batch(cut) == ["\ufffd"]
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode_batch(cut, errors="strict")
    with pytest.raises(BadArgument, match=r"ids\[1\]"):
        tokenizer.decode_batch([[1, 999_999]])
    with pytest.raises(BadArgument, match=r"row 1.*ids\[0\]"):
        tokenizer.decode_batch(Ragged.from_rows([np.array([1], np.uint32), np.array([999_999], np.uint32)]))


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 2047, 2048, 2049])
def test_decode_of_every_size(size, listed):
    tokenizer = listed()
    generator = random.Random(size)
    entries = list(tokenizer.vocab.items())
    chosen = generator.choices(entries, k=size)
    ids = [id_ for id_, _ in chosen]
    expected = b"".join(entry for _, entry in chosen)
    for each in (ids, tuple(ids), iter(ids), np.array(ids, np.uint32), np.array(ids, np.int64)):
        assert tokenizer.decode_bytes(each) == expected
    assert tokenizer.decode(ids) == expected.decode(errors="replace")
