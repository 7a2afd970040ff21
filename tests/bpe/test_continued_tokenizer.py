"""Continued training keeps all old entries and merges, and appends the new merges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from skewed_texts import skewed_text

from bpe import reference
from bpe.added_tokens import AddedToken
from bpe.errors import BadArgument
from bpe.pretoken_counts.counting import count_pretokens
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_on, train_sizes
from bpe.training_options import TrainingOptions
from bpe.vocabulary import BYTE_ENTRIES, TextRules
from tests.bpe.text_vocabularies import NAMES, WORDS, text_vocabulary

BETWEEN = [" ", " ", "\n", "<|endoftext|>"]
TIE_BREAKS = ["lexicographic", "huggingface"]
END = "<|endoftext|>"


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


@pytest.mark.promise("merges")
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("like", ["gpt-2", "deepseek-v3", "llama-2", "gemma-3", "clip"])
def test_on_the_same_text_it_is_the_longer_training(like: str, tie_break: Any) -> None:
    text = skewed_text(1, 1500, BETWEEN).encode()
    options = TrainingOptions([END, "<unk>"], tie_break=tie_break, like=like)
    sizes = train_sizes([text], [700, 740, 800], options)
    for size in (700, 740):
        assert train([text], 800, tie_break=tie_break, continue_from=sizes[size]) == sizes[800]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_all_of_the_old_tokenizer_stays(tie_break: Any, tmp_path: Path) -> None:
    old = train([skewed_text(2, 1500, BETWEEN).encode()], 400, [END, "<pad>"], "llama3", tie_break)
    old.save(tmp_path / "old.json")
    text = skewed_text(3, 1500, BETWEEN)
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
    for each in (text, skewed_text(2, 1500, BETWEEN), skewed_text(4, 1500, BETWEEN)):
        assert expanded(new.encode(each), old, new) == old.encode(each)
    new.save(tmp_path / "new.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "new.json"))
    assert theirs.encode(text).ids == new.encode(text)


def test_ignore_merges_and_entries_that_nothing_makes_stay() -> None:
    """The tokenizer also has two splits of an entry, and gaps between IDs."""
    entries = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b"bc", b" tion", b"aba", b"de"]
    vocab = {2 * id_ + 7: entry for id_, entry in enumerate(entries)}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c"), (b"a", b"bc"), (b"d", b"e")]
    old = Tokenizer(vocab, merges, {END: 3}, "gpt2", ignore_merges=True)
    text = skewed_text(5, 1500, BETWEEN) + " tion aba abab dede " * 30
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
    old = train([skewed_text(6, 1500, BETWEEN).encode()], 300, [END])
    sizes = train_sizes(
        [skewed_text(6, 1500, BETWEEN).encode()], [320, 310], TrainingOptions(["<a>", END], continue_from=old)
    )
    assert sizes[320].special_tokens == {END: 0, "<a>": 300}
    assert (sizes[320].vocab_size, sizes[310].vocab_size) == (320, 310)
    assert sizes[310].merges == sizes[320].merges[: len(sizes[310].merges)]
    assert train([skewed_text(6, 1500, BETWEEN).encode()], 300, continue_from=old) == old


def test_added_tokens_keep_their_flags() -> None:
    entries = {id_: bytes([id_]) for id_ in range(256)}
    tokens = [AddedToken(END, 256), AddedToken("<mask>", 257, special=False, lstrip=True, normalized=True)]
    vocab = entries | {token.id: token.text.encode() for token in tokens}
    old = Tokenizer(vocab, [], tokens)
    new = train([skewed_text(7, 1500, BETWEEN).encode()], 300, ["<a>"], continue_from=old)
    assert new.added_tokens == (*tokens, AddedToken("<a>", 258))
    assert new.encode("a  <mask>b<a>")[:2] == [97, 257]
    assert new.encode("<a>") == [258]


def test_counts_are_gone_on_with_if_they_were_cut_alike(tmp_path: Path) -> None:
    text = skewed_text(7, 1500, BETWEEN).encode()
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
    for options in [
        {"pattern": "gpt2"},
        {"like": "gpt-2"},
        {"initial_alphabet": "a"},
        {"limit_alphabet": 9},
        {"special_tokens": ["ab"]},
        {"vocab_size": 259},
    ]:
        arguments: dict[str, Any] = {"vocab_size": 300, "continue_from": old} | options
        with pytest.raises(BadArgument, match=f"^{next(iter(options))}: "):
            train([b"ab"], **arguments)


# -- entries of text -----------------------------------------------------------------------------------------


def words_of(seed: int, words: int = 60) -> str:
    """Words known to the vocabularies, and characters and bytes unknown to them."""
    more = ["th\u65e5qu\u00e8re", "new\U0001f600newer", "</w>", "##the"]
    return " ".join(random.Random(seed).choices([*WORDS, *more], k=words))


@pytest.mark.filterwarnings("ignore:.*no entries for the bytes")
@pytest.mark.parametrize("name", NAMES)
def test_entries_of_text_stay_and_new_merges_follow(name: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(text_vocabulary(name))
    old = Tokenizer.load(tmp_path / "old.json")
    text, tie_break = words_of(1), random.Random(name).choice(["lexicographic", "huggingface"])
    new = train(
        [text.encode()],
        old.vocab_size + 21,
        ["<new>"],
        tie_break=tie_break,
        continue_from=tmp_path / "old.json",
        max_token_length=6,
    )
    assert {id_: new.vocab[id_] for id_ in old.vocab} == dict(old.vocab)
    assert new.merges[: len(old.merges)] == old.merges
    assert new.special_tokens == old.special_tokens | {"<new>": old.max_token_id + 1}
    if TextRules.of_text(old.text_rules):
        counts = count_pretokens(
            [text.encode()], list(old.special_tokens), old.pretokenizer, normalizer=old.parts.normalizer
        )
        assert new.merges[len(old.merges) :] == reference.train(
            counts.as_dict(),
            20,
            tie_break,
            first_entries=[old.vocab[id_] for id_ in sorted(old.vocab)],
            first_merges=old.merges,
            ignore_merges=old.ignore_merges,
            reserved=[*(token.encode() for token in old.special_tokens), *BYTE_ENTRIES],
            text_rules=old.text_rules,
            max_token_letters=5,
        )
    new.save(tmp_path / "new.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "new.json"))
    for each in (text, words_of(2, 300), "\U0001f600 <unk> a</w> ##b <new>"):
        ids = list(new.encode(each, allowed_special="all"))
        assert ids == theirs.encode(each, add_special_tokens=False).ids
        assert new.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_text_never_becomes_a_byte_entry_or_the_unknown_token() -> None:
    """The vocabulary has one byte entry; the text spells another one."""
    entries = [b"<unk>", b"<0x41>", *(letter.encode() for letter in "<0x4>Dunk")]
    rules = TextRules(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    old = Tokenizer(dict(enumerate(entries)), [], text_rules=rules)
    new = train([b"<0x4D> <unk>" * 9], 40, continue_from=old)
    assert b"<0x4D>" not in new.vocab.values()
    assert [entry for entry in new.vocab.values() if b"<unk>" in entry] == [b"<unk>"]


def test_a_sentencepiece_model_is_continued(tmp_path: Path) -> None:
    text = words_of(4, 300)
    first = train([text.encode()], 420, ["<unk>", "<s>", "</s>"], like="llama-2")
    first.export_sentencepiece(tmp_path / "old.model")
    old = Tokenizer.load(tmp_path / "old.model")
    new = train([text.encode()], old.vocab_size + 30, continue_from=tmp_path / "old.model")
    assert {id_: new.vocab[id_] for id_ in old.vocab} == dict(old.vocab)
    assert (new.vocab_size, len(new.merges)) == (old.vocab_size + 30, len(old.merges) + 30)
    same = tokenizers.Tokenizer.from_str(new.canonical_json.decode())
    assert same.encode(text, add_special_tokens=False).ids == list(new.encode(text))
    new.export_sentencepiece(tmp_path / "new.model")
    assert Tokenizer.load(tmp_path / "new.model").encode(text) == new.encode(text)
