"""tokenizer.json: what is written reads back equal, what is read gives Hugging Face's ids, the rest is refused."""

from __future__ import annotations

import copy
import json
import re

import pytest

from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, EnvironmentFailure, UnsupportedTokenizer
from bpe.formats import huggingface
from bpe.formats.huggingface import to_json
from bpe.pretokenization.components import ByteLevel, Split
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import Tokenizer

GAPPY = r"[A-Za-z]+|\p{N}{2}"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
WITH_REGEX = BYTE_LEVEL | {"use_regex": True}


def split(expression, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: expression}, "behavior": behavior, "invert": invert}


def sequence(*components):
    return {"type": "Sequence", "pretokenizers": list(components)}


@pytest.fixture(scope="module")
def document(listed):
    """A tokenizer.json as Python values; each test changes its own copy."""
    text = to_json(listed(special_tokens=["<s>", "<t>"]))
    return lambda: json.loads(text)


def read(data):
    return Tokenizer.from_parts(huggingface.read(data))


def load(value):
    return read(json.dumps(value).encode())


def set_at(value, path, new):
    *parents, last = path
    for key in parents:
        value = value[key]
    value[last] = new


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


def test_hugging_face_writes_what_we_read(listed, huggingface_of, pattern, nasty_texts):
    """Through Hugging Face's own save: its defaults, its order of keys."""
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


# -- what is honoured ----------------------------------------------------------------------------------------------


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
def test_pre_tokenizers_give_hugging_faces_ids(name, document, huggingface_of, nasty_texts, random_texts):
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
def test_what_changes_no_id_is_accepted(path, new, document, huggingface_of):
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
    message = f"added_tokens[3].id of '<v>' is {size + 5}, but Hugging Face's readers give it {size + 1}"
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        load(value)


def test_a_token_of_the_vocabulary_between_new_ones_moves_no_id(document, huggingface_of):
    """A new token's id follows the highest of the added ones before it, not the last one's."""
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
    with pytest.raises(BadTokenizer, match=f"Hugging Face's readers give it {size + 2}"):
        load(value)


@pytest.mark.parametrize("where", ["content", "vocab", "pattern", "merge", "template"])
def test_a_lone_surrogate_is_refused_wherever_it_stands(where, document):
    """Half a pair in an added token was a traceback; a whole pair is a character."""
    value = document()
    for text, refused in (("x\ud800y", True), ("x\U0001f600y", where in ("vocab", "merge", "template"))):
        changed = json.loads(json.dumps(value))
        if where == "content":
            changed["added_tokens"].append(dict(changed["added_tokens"][0], content=text, id=558))
        elif where == "vocab":
            changed["model"]["vocab"][text] = 558
        elif where == "pattern":
            changed["pre_tokenizer"] = sequence(split(text + "|.", "Isolated"), BYTE_LEVEL)
        elif where == "merge":
            changed["model"]["merges"].append([text, "a"])
        else:
            changed["post_processor"] = {"type": text}
        if not refused:
            assert load(changed).fingerprint()
            continue
        with pytest.raises(BadTokenizer) as raised:
            load(changed)
        assert "\n" not in str(raised.value)
        assert "lone surrogate" in str(raised.value) or text != "x\ud800y"


# -- what is refused ---------------------------------------------------------------------------------------------


REFUSED = [
    (("version",), "2.0", "version is '2.0'; supported: '1.0'"),
    (("truncation",), {"max_length": 5}, "truncation.strategy is None; supported: 'LongestFirst'"),
    (("padding",), {"pad_id": 0}, "padding.strategy is None; supported: 'BatchLongest'"),
    (("extra",), 1, "tokenizer.json.extra: unknown field"),
    (("model", "extra"), 1, "model.extra: unknown field"),
    (("decoder", "extra"), 1, "decoder.extra: unknown field"),
    (("model", "type"), "WordPiece", "model.type is 'WordPiece'; supported: 'BPE'"),
    (("model", "type"), "Unigram", "model.type is 'Unigram'"),
    (("model", "dropout"), 0.1, "model.dropout is 0.1"),
    (("model", "byte_fallback"), 1, "model.byte_fallback is 1"),
    (("model", "continuing_subword_prefix"), "é", "model.continuing_subword_prefix is 'é'"),
    (("model", "end_of_word_suffix"), 1, "model.end_of_word_suffix must be a text or null"),
    (("model", "ignore_merges"), 1, "model.ignore_merges is 1"),
    (("normalizer",), {"type": "NFX"}, "normalizer is 'NFX'; supported: NFC, NFD"),
    (
        ("normalizer",),
        {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Uppercase"}]},
        "normalizer.normalizers[1] is 'Uppercase'",
    ),
    (
        ("pre_tokenizer",),
        WITH_REGEX | {"add_prefix_space": 1},
        "pre_tokenizer.add_prefix_space is 1",
    ),
    (
        ("pre_tokenizer",),
        sequence(split("a"), split("(a"), BYTE_LEVEL),
        "pre_tokenizer.pretokenizers[1].pattern '(a', character 0 ('(a'): the group is not closed",
    ),
    (
        ("pre_tokenizer",),
        sequence(split(""), BYTE_LEVEL),
        "pre_tokenizer.pretokenizers[0].pattern.Regex is ''",
    ),
    (("pre_tokenizer",), {"type": 5}, "pre_tokenizer must be an object with a type, found {'type': 5}"),
    (("post_processor",), {"type": "RobertaProcessing"}, "post_processor.sep is None: must be [token, id]"),
    (
        ("post_processor",),
        {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {"<s>": 5}},
        "post_processor.special_tokens['<s>'] has ids None, not [556]",
    ),
    (("decoder",), None, "decoder is none; supported: ByteLevel"),
    (("decoder",), {"type": "WordPiece"}, "decoder is WordPiece"),
    (("added_tokens", 0, "lstrip"), 1, "added_tokens[0].lstrip is 1; supported: False or True"),
    (("added_tokens", 0, "rstrip"), 1, "added_tokens[0].rstrip is 1; supported: False or True"),
    (("added_tokens", 0, "single_word"), 1, "added_tokens[0].single_word is 1; supported: False or True"),
    (("added_tokens", 0, "content"), "", "added_tokens[0].content is ''"),
    (("added_tokens", 1, "content"), "<s>", "added_tokens[1].content '<s>' is given twice"),
    (
        ("added_tokens", 0, "id"),
        7,
        "added_tokens[0].id of '<s>' is 7, but Hugging Face's readers give it 556",
    ),
    (("added_tokens",), {}, None),
    (("added_tokens",), 5, "added_tokens must be a list, found 5"),
    (("model",), [], "model must be an object, found []"),
    (("model", "vocab"), [], "model.vocab must be an object"),
    (("model", "vocab", "a"), 1.5, "model.vocab['a'] is 1.5: ids must be whole numbers"),
    (("model", "vocab", "a"), "7", "model.vocab['a'] is '7'"),
    (("model", "vocab", "a"), -7, "model.vocab['a'] is -7: ids must be whole numbers 0 .. 2^31 - 1"),
    (("model", "vocab", "a"), 2**31, "model.vocab['a'] is 2147483648: ids must"),
    (("model", "vocab", "a"), 98, "model.vocab: id 98 is that of both b'a' and b'b'"),
    (("model", "vocab", "▁a"), 9000, "model.vocab, id 9000: '▁a' has a character outside the byte alphabet"),
    (("model", "merges"), None, "model.merges must be a list, found None"),
    (("model", "merges", 3), "ab", "model.merges[3] is 'ab', must be two entries with one space between"),
    (("model", "merges", 3), "a b c", "model.merges[3] is 'a b c'"),
    (("model", "merges", 3), ["a"], "model.merges[3] is ['a'], must be"),
    (("model", "merges", 3), {"a": 1, "b": 2}, "model.merges[3] is {'a': 1, 'b': 2}, must be"),
    (("model", "merges", 3), ["a", 5], "model.merges[3] is ['a', 5], must be"),
    (("model", "merges", 3), ["▁", "a"], "model.merges[3]: '▁' has a character outside the byte alphabet"),
    (
        ("model", "merges", 3),
        ["zzz", "a"],
        "model.merges[3] (b'zzz', b'a'): its left part b'zzz' is not an entry",
    ),
    (("model", "merges", 3), ["z", "!"], "model.merges[3] (b'z', b'!'): its product b'z!' is not an entry"),
]


@pytest.mark.parametrize(("path", "new", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_is_not_supported_is_refused_by_path(path, new, message, document):
    value = document()
    set_at(value, path, new)
    if message is None:
        assert load(value).special_tokens == {}
        return
    with pytest.raises(BadTokenizer, match=re.escape(message)) as caught:
        load(value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["model", "vocab", "merges"])
def test_missing_parts(name, document):
    value = document()
    del (value if name == "model" else value["model"])[name]
    with pytest.raises(BadTokenizer, match=f"{name} is missing"):
        load(value)


def test_a_missing_byte_is_named(document):
    value = document()
    for merge in list(value["model"]["merges"]):
        if "Ġ" in "".join(merge):
            value["model"]["merges"].remove(merge)
    for entry in [entry for entry in value["model"]["vocab"] if "Ġ" in entry]:
        del value["model"]["vocab"][entry]
    value["added_tokens"] = []
    with pytest.raises(BadTokenizer, match=r"model.vocab: the vocabulary lacks 1 of the 256 bytes \(b' '\)"):
        load(value)


def test_special_tokens_spelled_like_entries(listed, document):
    """The character é is how the alphabet spells the byte 0xe9."""
    with pytest.raises(BadTokenizer, match="special token 'é' is spelled like an ordinary entry"):
        to_json(listed(special_tokens=["é"]))
    value = document()
    value["added_tokens"][0].update(content="é", id=0xE9)
    with pytest.raises(
        BadTokenizer, match=r"added_tokens\[0\].content 'é' is also how the byte alphabet spells"
    ):
        load(value)
    # An entry " zq" that no merge makes: only `ignore_merges` gives it.
    value = document()
    next_id = max(value["model"]["vocab"].values()) + 1
    value["model"]["vocab"]["Ġzq"] = next_id
    value["added_tokens"] = [{**value["added_tokens"][0], "content": "Ġzq", "id": next_id}]
    assert next_id not in load(value).encode("a zq")
    value["model"]["ignore_merges"] = True
    with pytest.raises(
        BadTokenizer,
        match=rf"'Ġzq' is also .* an entry that ignore_merges gives, so id {next_id} would be two",
    ):
        load(value)


@pytest.mark.parametrize("token", ["<début>", "Çüß", "éaé", "Ġzq"])
def test_special_tokens_with_letters_of_the_byte_alphabet(ranked, listed, huggingface_of, token):
    """What they spell is no text, but for the last: ranks were written to a file that could not be read."""
    texts = [token, f"a {token}b", " zq", token[:-1], token[1:]]
    listing = listed(special_tokens=[token])
    for text in texts:
        ids = listing.encode(text)
        assert ids == load(json.loads(to_json(listing))).encode(text)
        assert ids == huggingface_of(listing).encode(text, add_special_tokens=False).ids
    ranks = Tokenizer(ranked("gpt2").ordinary_entries, None, [token])
    if token == "Ġzq":
        with pytest.raises(BadTokenizer, match="special token 'Ġzq' is how tokenizer.json spells ' zq'"):
            to_json(ranks)
        return
    for text in texts:
        ids = ranks.encode(text)
        assert ids == load(json.loads(to_json(ranks))).encode(text)
        assert ids == huggingface_of(ranks).encode(text, add_special_tokens=False).ids


def test_errors_are_one_line_whatever_the_names(document):
    value = document()
    value["model"]["a\nb\x1b" + "x" * 500] = 1
    with pytest.raises(UnsupportedTokenizer, match=r"model\.a\\nb\\x1bx{56}: unknown field"):
        load(value)
    value = document()
    value["decoder"]["type"] = value["pre_tokenizer"]["type"] = "a\nb"
    with pytest.raises(UnsupportedTokenizer, match=r"pre_tokenizer is 'a\\nb'; supported"):
        load(value)
    value["pre_tokenizer"]["type"] = "ByteLevel"
    with pytest.raises(UnsupportedTokenizer, match=r"decoder is a\\nb; supported"):
        load(value)


BAD_JSON = {
    "empty": (b"", "no valid JSON at line 1 column 1"),
    "cut short": (b'{"version": "1.0", "model": {', "no valid JSON at line 1 column 30"),
    "a list": (b"[]", "tokenizer.json must be an object, found []"),
    "no tokenizer": (b'{"version": "1.0"}', "model is missing: this is no tokenizer.json"),
    "duplicate key": (b'{"version": "1.0", "version": "1.0"}', "the key 'version' is given twice"),
    "a later duplicate": (b'{"version": "1.0", "a": 1, "a": 2}', "the key 'a' is given twice"),
    "not a number": (b'{"model": NaN}', "no valid JSON: NaN"),
    "deep": (b"[" * 200_000, "JSON nested too deeply"),
    "a huge number": (b'{"version": ' + b"1" * 5000 + b"}", "no valid JSON: "),
    "too many values": (
        b"[" + b"[]," * 8_000_000 + b"[]]",
        "is no tokenizer: it has more than 8,000,000 values",
    ),
    "not UTF-8": (b'{"version": "\xff"}', "byte 13 is not valid UTF-8"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json(name, tmp_path):
    data, message = BAD_JSON[name]
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    with pytest.raises(BadTokenizer, match=re.escape(f"{path}: {message}")) as caught:
        Tokenizer.load(path)
    assert "\n" not in str(caught.value)


def test_every_truncation_is_refused(listed):
    text = to_json(listed())
    for size in range(0, len(text) - 2, 97):
        with pytest.raises(BadTokenizer):
            read(text[:size])


def test_writing_where_one_can_not(listed, tmp_path):
    with pytest.raises(
        EnvironmentFailure, match=r"no/t.json: can't write: No such file or directory"
    ) as caught:
        listed().save(tmp_path / "no" / "t.json")
    assert caught.value.exit_code == 4
    listed().save(tmp_path / "t.json")
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_the_document_is_not_changed_by_reading(document):
    value = document()
    before = copy.deepcopy(value)
    load(value)
    assert value == before
