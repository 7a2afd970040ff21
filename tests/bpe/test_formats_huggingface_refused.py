"""tokenizer.json: what is refused, by its path in the file, in one line."""

from __future__ import annotations

import json
import re

import pytest
import tokenizers
from huggingface_files import BYTE_LEVEL, WITH_REGEX, load, read, sequence, set_at, split

from bpe.errors import BadTokenizer, EnvironmentFailure, UnsupportedTokenizer
from bpe.formats.huggingface import to_json
from bpe.tokenizer import Tokenizer


@pytest.mark.parametrize("where", ["content", "vocab", "pattern", "merge", "template"])
def test_a_lone_surrogate_is_refused_wherever_it_stands(where, document):
    """Half a pair in an added token was a traceback; a whole pair is a character."""
    value = document()
    for text, refused in (("x\ud800y", True), ("x\U0001f600y", where in ("merge", "template"))):
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
    (("decoder",), {"type": "WordPiece"}, "decoder is 'WordPiece'"),
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
    with pytest.raises(BadTokenizer, match=f"{name}"):
        load(value)


def test_a_missing_byte_is_named(document, tmp_path):
    value = document()
    for merge in list(value["model"]["merges"]):
        if "Ġ" in "".join(merge):
            value["model"]["merges"].remove(merge)
    for entry in [entry for entry in value["model"]["vocab"] if "Ġ" in entry]:
        del value["model"]["vocab"][entry]
    value["added_tokens"] = []
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    with pytest.warns(UserWarning, match=r"tokenizer\.json") as caught:
        tokenizer = Tokenizer.load(tmp_path / "tokenizer.json")
    assert len(caught) == 1
    assert tokenizer.encode("a b c ") == tokenizers.Tokenizer.from_str(json.dumps(value)).encode("a b c ").ids
    value["model"] |= {
        "byte_fallback": True,
        "vocab": value["model"]["vocab"] | {"<0xC4>": 9000, "<0xA0>": 9001},
    }
    with pytest.raises(UnsupportedTokenizer, match=r"model\.byte_fallback"):
        load(value)


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
    with pytest.raises(UnsupportedTokenizer, match=r"decoder is 'a\\nb'; supported"):
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
    with pytest.raises(EnvironmentFailure, match="no/t.json") as caught:
        listed().save(tmp_path / "no" / "t.json")
    assert caught.value.exit_code == 4
    listed().save(tmp_path / "t.json")
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
