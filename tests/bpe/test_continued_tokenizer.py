"""Continued training keeps all old entries and merges, and appends the new merges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from bpe import reference
from bpe.added_tokens import AddedToken
from bpe.errors import BadArgument
from bpe.pretoken_counts.counting import count_pretokens
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_on, train_sizes
from bpe.training_options import TrainingOptions

TIE_BREAKS = ["lexicographic", "huggingface"]
END = "<|endoftext|>"


def text_of(seed: int, words: int = 1500) -> str:
    """Return words of a few letters, some in Cyrillic and Chinese, with skewed frequencies so that counts tie."""
    rng = random.Random(seed)
    letters = ["abcde", "tion", "авеи", "日本語", "e\u0301o\u0308", "012", ".,'"]
    known = ["".join(rng.choices(rng.choice(letters), k=rng.randint(1, 7))) for _ in range(200)]
    weights = [1 / (rank + 1) for rank in range(len(known))]
    return "".join(word + rng.choice([" ", " ", "\n", END]) for word in rng.choices(known, weights, k=words))


def expanded(ids: list[int], old: Tokenizer, new: Tokenizer) -> list[int]:
    """Replace the IDs that `old` lacks by the IDs they were merged from."""
    halves = {left + right: (left, right) for left, right in new.merges[len(old.merges) :]}
    id_of = {entry: id_ for id_, entry in new.ordinary_entries.items()}

    def parts(id_: int) -> list[int]:
        if id_ <= old.max_token_id:
            return [id_]
        left, right = halves[new.vocab[id_]]
        return parts(id_of[left]) + parts(id_of[right])

    return [part for id_ in ids for part in parts(id_)]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("like", ["gpt-2", "qwen-3", "deepseek-v3"])
def test_on_the_same_text_it_is_the_longer_training(like: str, tie_break: Any) -> None:
    text = text_of(1).encode()
    sizes = train_sizes([text], [300, 340, 500], TrainingOptions([END], tie_break=tie_break, like=like))
    for size in (300, 340):
        assert train([text], 500, tie_break=tie_break, continue_from=sizes[size]) == sizes[500]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_all_of_the_old_tokenizer_stays(tie_break: Any, tmp_path: Path) -> None:
    old = train([text_of(2).encode()], 400, [END, "<pad>"], "llama3", tie_break)
    old.save(tmp_path / "old.json")
    text = text_of(3)
    new = train([text.encode()], 520, tie_break=tie_break, continue_from=tmp_path / "old.json")
    assert {id_: new.vocab[id_] for id_ in old.vocab} == dict(old.vocab)
    assert (new.merges[: len(old.merges)], new.special_tokens) == (old.merges, old.special_tokens)
    assert (new.pretokenizer, new.normalizer, new.vocab_size) == (old.pretokenizer, old.normalizer, 520)
    assert [new.vocab[id_] for id_ in range(400, 520)] == [left + right for left, right in new.merges[-120:]]
    by_id = [old.ordinary_entries[id_] for id_ in sorted(old.ordinary_entries)]
    counts = reference.count_pretokens([text], list(old.special_tokens), "llama3")
    assert new.merges[len(old.merges) :] == reference.train(
        counts, 120, tie_break, first_entries=by_id, first_merges=old.merges
    )
    for each in (text, text_of(2), text_of(4)):
        assert expanded(new.encode(each), old, new) == old.encode(each)
    new.save(tmp_path / "new.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "new.json"))
    assert theirs.encode(text).ids == new.encode(text)


@pytest.mark.parametrize("min_frequency", [0, 3])
def test_a_vocabulary_of_bpe_trainer_continues_like_bpe_trainer(min_frequency: int, tmp_path: Path) -> None:
    text = text_of(8)

    def trained(vocab_size: int) -> Any:
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=["<s>"],
            min_frequency=min_frequency,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator([text], trainer)
        return tokenizer

    trained(300).save(str(tmp_path / "old.json"))
    new = train(
        [text.encode()],
        600,
        tie_break="huggingface",
        min_frequency=min_frequency,
        continue_from=tmp_path / "old.json",
    )
    new.save(tmp_path / "new.json")
    theirs = trained(600)
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "new.json")).get_vocab() == theirs.get_vocab()
    assert new.encode(text) == theirs.encode(text).ids


def with_unreachable_entries() -> Tokenizer:
    """Return a tokenizer with ignore_merges, two splits of an entry, entries that no merge makes, and ID gaps."""
    entries = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b"bc", b" tion", b"aba", b"de"]
    vocab = {2 * id_ + 7: entry for id_, entry in enumerate(entries)}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c"), (b"a", b"bc"), (b"d", b"e")]
    return Tokenizer(vocab, merges, {END: 3}, "gpt2", ignore_merges=True)


def test_ignore_merges_and_entries_that_nothing_makes_stay() -> None:
    old = with_unreachable_entries()
    text = text_of(5) + " tion aba abab dede " * 30
    new = train([text.encode()], old.vocab_size + 150, continue_from=old)
    assert new.ignore_merges
    assert {id_: new.vocab[id_] for id_ in old.vocab} == dict(old.vocab)
    assert min(set(new.vocab) - set(old.vocab)) == old.max_token_id + 1
    entries = list(new.ordinary_entries.values())
    assert len(set(entries)) == len(entries)
    # A pretoken that is a new entry is also emitted at once. Within merging, old merges are done first.
    cut = reference.pretokenize(text)
    ranks = {pair: rank for rank, pair in enumerate(new.merges)}
    id_of = {entry: id_ for id_, entry in new.ordinary_entries.items()}
    expected = [id_ for pretoken in cut for id_ in reference.encode_pretoken(pretoken, id_of, ranks, True)]
    assert new.encode(text, allowed_special=()) == expected
    assert expanded(expected, old, new) == old.encode(text, allowed_special=())


def test_special_tokens_are_added_after_the_old_ids() -> None:
    old = train([text_of(6).encode()], 300, [END])
    sizes = train_sizes([text_of(6).encode()], [320, 310], TrainingOptions(["<a>", END], continue_from=old))
    assert sizes[320].special_tokens == {END: 0, "<a>": 300}
    assert (sizes[320].vocab_size, sizes[310].vocab_size) == (320, 310)
    assert sizes[310].merges == sizes[320].merges[: len(sizes[310].merges)]
    assert train([text_of(6).encode()], 300, continue_from=old) == old


def test_added_tokens_keep_their_flags() -> None:
    entries = {id_: bytes([id_]) for id_ in range(256)}
    tokens = [AddedToken(END, 256), AddedToken("<mask>", 257, special=False, lstrip=True, normalized=True)]
    vocab = entries | {token.id: token.text.encode() for token in tokens}
    old = Tokenizer(vocab, [], tokens)
    new = train([text_of(7).encode()], 300, ["<a>"], continue_from=old)
    assert new.added_tokens == (*tokens, AddedToken("<a>", 258))
    assert new.encode("a  <mask>b<a>")[:2] == [97, 257]
    assert new.encode("<a>") == [258]


def test_counts_are_gone_on_with_if_they_were_cut_alike(tmp_path: Path) -> None:
    text = text_of(7).encode()
    old = train([text], 300, [END], like="pythia")
    counts = count_pretokens([text], [END], "gpt2", normalizer="NFC")
    expected = train([text], 400, continue_from=old)
    assert train_on(counts, 400, TrainingOptions(continue_from=old)).tokenizer == expected
    counts.save(tmp_path / "c")
    assert train([], 400, continue_from=old, counts=[tmp_path / "c"]) == expected
    raw = count_pretokens([text], [END], "gpt2")
    raw.save(tmp_path / "raw")
    with pytest.raises(BadArgument):
        train_on(raw, 400, TrainingOptions(continue_from=old))
    with pytest.raises(BadArgument):
        train([], 400, continue_from=old, counts=[tmp_path / "raw"])


def test_tokenizers_that_cannot_be_continued_are_refused(tmp_path: Path) -> None:
    old = train([b"aab ab " * 9], 260, [END])
    old.export_tiktoken(tmp_path / "ranks.tiktoken")
    ranks = Tokenizer.load(tmp_path / "ranks.tiktoken", "gpt2", {END: 0})
    with pytest.raises(BadArgument, match=r"tokenizer\.json"):
        train(["no/such/file"], 300, continue_from=ranks)
    ranks.save(tmp_path / "listed.json")
    assert train([b"aab ababab"], 262, continue_from=tmp_path / "listed.json").vocab_size == 262
    for options, message in [
        ({"pattern": "gpt2"}, "^pattern: .*continue_from"),
        ({"like": "gpt-2"}, "^like: .*continue_from"),
        (
            {"initial_alphabet": "a"},
            "^initial_alphabet: .*continue_from",
        ),
        ({"limit_alphabet": 9}, "^limit_alphabet: .*continue_from"),
        ({"special_tokens": ["ab"]}, "^special_tokens: .*'ab'"),
        ({"vocab_size": 259}, "^vocab_size: .*260.*259"),
    ]:
        arguments: dict[str, Any] = {"vocab_size": 300, "continue_from": old} | options
        with pytest.raises(BadArgument, match=message):
            train([b"ab"], **arguments)
