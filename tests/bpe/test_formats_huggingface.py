"""tokenizer.json: written files read back equal, read files give Hugging Face's IDs, other files are errors."""

from __future__ import annotations

import copy
import json
import re

import pytest
from huggingface_files import BYTE_LEVEL, WITH_REGEX, load, read, sequence, set_at, split

from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer
from bpe.formats.huggingface import to_json
from bpe.pretokenization.components import ByteLevel, Split
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import Tokenizer

GAPPY = r"[A-Za-z]+|\p{N}{2}"


# -- round trips -------------------------------------------------------------------------------------------------


def test_round_trips(listed, ranked, pattern, tmp_path):
    tokenizers = [
        listed(pattern),
        ranked(pattern),
        listed(pattern, ignore_merges=True, normalizer="NFC", special_tokens={"<s>": 900, "<é\n>": 700}),
        listed(
            pattern,
            special_tokens=[AddedToken("<s>", 900), AddedToken("<t>", 901, special=False, lstrip=True)],
        ),
        listed(Pretokenizer((Split(GAPPY, "oniguruma", "Removed", True),))),
        listed(Pretokenizer((Split(r"\p{N}", "oniguruma"), ByteLevel(add_prefix_space=False)))),
    ]
    for place, tokenizer in enumerate(tokenizers):
        path = tmp_path / f"{place}.json"
        tokenizer.save(path)
        again = Tokenizer.load(path)
        assert again == tokenizer
        assert again.vocab == tokenizer.vocab
        assert again.merges == tokenizer.merges
        assert again.special_tokens == tokenizer.special_tokens
        assert again.added_tokens == tokenizer.added_tokens
        assert (again.pattern, again.normalizer) == (tokenizer.pattern, tokenizer.normalizer)
        assert again.ignore_merges == tokenizer.ignore_merges
        assert path.read_bytes() == to_json(again)
        text = "Hello 'll 123\n\n é<s>"
        assert again.encode(text) == tokenizer.encode(text)


def test_legacy_merges(listed, tmp_path, huggingface_of):
    listed().save(tmp_path / "t.json", legacy_merges=True)
    value = json.loads((tmp_path / "t.json").read_bytes())
    assert all(isinstance(merge, str) and merge.count(" ") == 1 for merge in value["model"]["merges"])
    assert Tokenizer.load(tmp_path / "t.json") == listed()
    assert huggingface_of(value).encode("the quick").ids == listed().encode("the quick")


def test_hugging_face_saves_are_readable(listed, huggingface_of, pattern, nasty_texts):
    """Through Hugging Face's save, with its defaults and key order."""
    ours = listed(pattern, special_tokens=["<s>", "<|endoftext|>"])
    again = read(huggingface_of(ours).to_str().encode())
    assert again == ours
    assert [again.encode(text) for text in nasty_texts.values()] == [
        ours.encode(text) for text in nasty_texts.values()
    ]


def test_a_tokenizer_trained_by_hugging_face(nasty_texts):
    from tokenizers import Tokenizer as Theirs
    from tokenizers import decoders, models, pre_tokenizers, trainers

    theirs = Theirs(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(list(nasty_texts.values()), trainer)
    ours = read(theirs.to_str().encode())
    assert ours.special_tokens == {"<|endoftext|>": 0, "<pad>": 1}
    for text in [*nasty_texts.values(), "a<pad><|endoftext|>b"]:
        assert ours.encode(text) == theirs.encode(text).ids


# -- supported fields ------------------------------------------------------------------------------------------


CL100K_IN_JSON = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HONOURED = {
    "ByteLevel": (WITH_REGEX, "gpt2"),
    "ByteLevel by default": ({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}, "gpt2"),
    "ByteLevel without regex": (BYTE_LEVEL, "none"),
    "Sequence": (sequence(split(CL100K_IN_JSON), BYTE_LEVEL), "llama3"),
    "Removed, inverted": (sequence(split(CL100K_IN_JSON, "Removed", True), BYTE_LEVEL), "llama3"),
    "one digit": (sequence(split(CL100K_IN_JSON.replace("{1,3}", "")), BYTE_LEVEL), "qwen2"),
    "a ByteLevel that does not say use_regex": (
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "gpt2",
    ),
    "Split before ByteLevel's regex": (sequence(split(r"\p{N}"), WITH_REGEX), r"\p{N} then gpt2"),
    "Digits": (sequence({"type": "Digits", "individual_digits": True}, WITH_REGEX), "Digits then gpt2"),
    "digits together": (sequence({"type": "Digits", "individual_digits": False}, BYTE_LEVEL), "Digits"),
    "Split by a text": (sequence(split("a.b", kind="String"), BYTE_LEVEL), "a.b"),
    "nested Sequence": (sequence(sequence(split(CL100K_IN_JSON)), BYTE_LEVEL), "llama3"),
    "several Splits": (
        sequence(
            split(r"\p{N}{1,3}"),
            split(r"[一-龥぀-ゟ゠-ヿ]+"),
            split(
                r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
                r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
            ),
            BYTE_LEVEL,
        ),
        None,
    ),
    "an expression with gaps": (sequence(split(GAPPY), BYTE_LEVEL), GAPPY),
    "Whitespace": (sequence({"type": "Whitespace"}, BYTE_LEVEL), "Whitespace"),
    "WhitespaceSplit": (sequence({"type": "WhitespaceSplit"}, BYTE_LEVEL), "WhitespaceSplit"),
    "merged with the next": (sequence(split("a", "MergedWithNext"), BYTE_LEVEL), "a"),
    "what does not match": (sequence(split("a+", invert=True), BYTE_LEVEL), "a+"),
    "a word's border": (sequence(split(r"a\b"), BYTE_LEVEL), r"a\b"),
    "an end of line": (sequence(split(r"a$|b"), BYTE_LEVEL), None),
}


@pytest.mark.parametrize("name", HONOURED)
def test_pre_tokenizers_equal_hugging_face(name, document, huggingface_of, nasty_texts, random_texts):
    value = document()
    value["pre_tokenizer"], pattern = HONOURED[name]
    ours, theirs = load(value), huggingface_of(value)
    if pattern is not None:
        assert ours.pattern == pattern
    written = huggingface_of(ours)
    for text in [*nasty_texts.values(), "a.ba.b xa\nb\n12<s>3", *random_texts(seed=8, count=40, size=30)]:
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == expected, repr(text)
        assert written.encode(text, add_special_tokens=False).ids == expected, repr(text)


HARMLESS = [
    (("model", "unk_token"), "<s>"),
    (("model", "dropout"), 0.0),
    (("model", "fuse_unk"), True),
    (("model", "continuing_subword_prefix"), ""),
    (("normalizer",), {"type": "Sequence", "normalizers": []}),
    (("added_tokens", 0, "normalized"), True),
    (("decoder",), {"type": "Sequence", "decoders": [BYTE_LEVEL]}),
]


@pytest.mark.parametrize(("path", "new"), HARMLESS, ids=lambda value: str(value)[:40])
def test_fields_that_change_no_id_are_accepted(path, new, document, huggingface_of):
    value = document()
    set_at(value, path, new)
    assert (
        load(value).encode("ab <s>") == huggingface_of(value).encode("ab <s>", add_special_tokens=False).ids
    )
    if path[-1] != "normalized":
        assert load(value) == load(document())


def test_gpt2s_own_file_names_no_type(document):
    value = document()
    del value["model"]["type"], value["model"]["ignore_merges"], value["model"]["byte_fallback"]
    assert load(value) == load(document())


def test_nfc_in_a_sequence(document):
    value = document()
    value["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    assert load(value).normalizer == "NFC"


def test_added_tokens_outside_the_vocabulary_are_numbered_as_theirs(document, huggingface_of):
    value = document()
    size = len(value["model"]["vocab"])
    new = [
        dict(value["added_tokens"][0], content=text, id=size + place)
        for place, text in enumerate(["<u>", "<v>"])
    ]
    value["added_tokens"] += new
    assert load(value).special_tokens["<v>"] == size + 1
    assert load(value).encode("<v>a<u>") == huggingface_of(value).encode("<v>a<u>").ids
    value["added_tokens"][-1]["id"] = size + 5
    message = "added_tokens[3].id: "
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        load(value)


def test_a_token_of_the_vocabulary_between_new_ones_moves_no_id(document, huggingface_of):
    """A new token's ID follows the highest added ID before it, not the last one."""
    value = document()
    size, (first, second) = len(value["model"]["vocab"]), value["added_tokens"]
    value["added_tokens"] = [
        dict(first, content="<u>", id=size),
        second,
        dict(first, content="<v>", id=size + 1),
        first,
        dict(first, content="<w>", id=size + 2),
    ]
    theirs = huggingface_of(value)
    text = "a<u>b<v>c<w>d" + first["content"] + second["content"]
    ours = load(value)
    assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids
    assert ours.special_tokens["<w>"] == size + 2
    value["added_tokens"][-1]["id"] = value["added_tokens"][-2]["id"] + 1
    with pytest.raises(BadTokenizer, match=f"{size + 2}"):
        load(value)


# -- errors ----------------------------------------------------------------------------------------------------


def test_special_tokens_spelled_like_entries(listed, document):
    """The byte alphabet spells the byte 0xe9 as é."""
    with pytest.raises(BadTokenizer):
        to_json(listed(special_tokens=["é"]))
    value = document()
    value["added_tokens"][0].update(content="é", id=0xE9)
    with pytest.raises(BadTokenizer, match=r"added_tokens\[0\].content"):
        load(value)
    # No merge makes the entry " zq"; only `ignore_merges` emits it.
    value = document()
    next_id = max(value["model"]["vocab"].values()) + 1
    value["model"]["vocab"]["Ġzq"] = next_id
    value["added_tokens"] = [{**value["added_tokens"][0], "content": "Ġzq", "id": next_id}]
    assert next_id not in load(value).encode("a zq")
    value["model"]["ignore_merges"] = True
    with pytest.raises(
        BadTokenizer,
        match=rf"^added_tokens\[0\]\.content: .*'Ġzq'.*{next_id}",
    ):
        load(value)


@pytest.mark.parametrize("token", ["<début>", "Çüß", "éaé", "Ġzq"])
def test_special_tokens_with_letters_of_the_byte_alphabet(ranked, listed, huggingface_of, token):
    """All except the last spell invalid text. Ranks were written to a file that could not be read back."""
    texts = [token, f"a {token}b", " zq", token[:-1], token[1:]]
    listing = listed(special_tokens=[token])
    for text in texts:
        ids = listing.encode(text)
        assert ids == load(json.loads(to_json(listing))).encode(text)
        assert ids == huggingface_of(listing).encode(text, add_special_tokens=False).ids
    ranks = Tokenizer(ranked("gpt2").ordinary_entries, None, [token])
    if token == "Ġzq":
        with pytest.raises(BadTokenizer, match="tokenizer.json"):
            to_json(ranks)
        return
    for text in texts:
        ids = ranks.encode(text)
        assert ids == load(json.loads(to_json(ranks))).encode(text)
        assert ids == huggingface_of(ranks).encode(text, add_special_tokens=False).ids


def test_the_document_is_not_changed_by_reading(document):
    value = document()
    before = copy.deepcopy(value)
    load(value)
    assert value == before
