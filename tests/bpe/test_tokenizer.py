"""Names and equality of tokenizers."""

from __future__ import annotations

import pickle

import pytest
from splits import split

from bpe.errors import BadArgument, BadTokenizer
from bpe.pretokenizer import Pretokenizer
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
