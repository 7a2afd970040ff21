"""tokenizer.json: every error is one line and names the path in the file."""

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
def test_a_lone_surrogate_is_refused_anywhere(where, document):
    """Half a pair in an added token gave a traceback; a whole pair is a character."""
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
    (("version",), "2.0", "version: "),
    (("truncation",), {"max_length": 5}, "truncation.strategy: "),
    (("padding",), {"pad_id": 0}, "padding.strategy: "),
    (("extra",), 1, "tokenizer.json.extra: unknown field"),
    (("model", "extra"), 1, "model.extra: unknown field"),
    (("decoder", "extra"), 1, "decoder.extra: unknown field"),
    (("model", "type"), "WordPiece", "model.type: "),
    (("model", "type"), "Unigram", "model.type: "),
    (("model", "dropout"), 0.1, "model.dropout: "),
    (("model", "byte_fallback"), 1, "model.byte_fallback: "),
    (("model", "continuing_subword_prefix"), "é", "model.continuing_subword_prefix: "),
    (("model", "end_of_word_suffix"), 1, "model.end_of_word_suffix: "),
    (("model", "ignore_merges"), 1, "model.ignore_merges: "),
    (("normalizer",), {"type": "NFX"}, "normalizer: "),
    (
        ("normalizer",),
        {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Uppercase"}]},
        "normalizer.normalizers[1]: ",
    ),
    (
        ("pre_tokenizer",),
        WITH_REGEX | {"add_prefix_space": 1},
        "pre_tokenizer.add_prefix_space: ",
    ),
    (
        ("pre_tokenizer",),
        sequence(split("a"), split("(a"), BYTE_LEVEL),
        "pre_tokenizer.pretokenizers[1].pattern, character 0: ",
    ),
    (
        ("pre_tokenizer",),
        sequence(split(""), BYTE_LEVEL),
        "pre_tokenizer.pretokenizers[0].pattern.Regex: ",
    ),
    (("pre_tokenizer",), {"type": 5}, "pre_tokenizer: "),
    (("post_processor",), {"type": "RobertaProcessing"}, "post_processor.sep: "),
    (
        ("post_processor",),
        {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {"<s>": 5}},
        "post_processor.special_tokens['<s>'].ids: ",
    ),
    (("decoder",), {"type": "WordPiece"}, "decoder: "),
    (("added_tokens", 0, "lstrip"), 1, "added_tokens[0].lstrip: "),
    (("added_tokens", 0, "rstrip"), 1, "added_tokens[0].rstrip: "),
    (("added_tokens", 0, "single_word"), 1, "added_tokens[0].single_word: "),
    (("added_tokens", 0, "content"), "", "added_tokens[0].content: "),
    (("added_tokens", 1, "content"), "<s>", "added_tokens[1].content: "),
    (
        ("added_tokens", 0, "id"),
        7,
        "added_tokens[0].id: must be 556",
    ),
    (("added_tokens",), {}, None),
    (("added_tokens",), 5, "added_tokens: "),
    (("model",), [], "model: "),
    (("model", "vocab"), [], "model.vocab: "),
    (("model", "vocab", "a"), 1.5, "model.vocab['a']: "),
    (("model", "vocab", "a"), "7", "model.vocab['a']: "),
    (("model", "vocab", "a"), -7, "model.vocab['a']: "),
    (("model", "vocab", "a"), 2**31, "model.vocab['a']: "),
    (("model", "vocab", "a"), 98, "model.vocab: id 98 is that of both b'a' and b'b'"),
    (("model", "merges"), None, "model.merges: "),
    (("model", "merges", 3), "ab", "model.merges[3]: "),
    (("model", "merges", 3), "a b c", "model.merges[3]: "),
    (("model", "merges", 3), ["a"], "model.merges[3]: "),
    (("model", "merges", 3), {"a": 1, "b": 2}, "model.merges[3]: "),
    (("model", "merges", 3), ["a", 5], "model.merges[3]: "),
    (("model", "merges", 3), ["▁", "a"], "model.merges[3]: "),
    (
        ("model", "merges", 3),
        ["zzz", "a"],
        "model.merges[3] (b'zzz', b'a'): its left part b'zzz' is not an entry",
    ),
    (("model", "merges", 3), ["z", "!"], "model.merges[3] (b'z', b'!'): its product b'z!' is not an entry"),
]


@pytest.mark.parametrize(("path", "new", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_unsupported_fields_are_refused_by_path(path, new, message, document):
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
    with pytest.raises(UnsupportedTokenizer, match=r"^pre_tokenizer: .*'a\\nb'"):
        load(value)
    value["pre_tokenizer"]["type"] = "ByteLevel"
    with pytest.raises(UnsupportedTokenizer, match=r"^decoder: .*'a\\nb'"):
        load(value)


BAD_JSON = {
    "empty": (b"", "line 1 column 1: "),
    "cut short": (b'{"version": "1.0", "model": {', "line 1 column 30: "),
    "a list": (b"[]", "tokenizer.json: "),
    "no tokenizer": (b'{"version": "1.0"}', "model: "),
    "duplicate key": (b'{"version": "1.0", "version": "1.0"}', "key 'version': "),
    "a later duplicate": (b'{"version": "1.0", "a": 1, "a": 2}', "key 'a': "),
    "not a number": (b'{"model": NaN}', "not valid JSON (NaN)"),
    "deep": (b"[" * 200_000, "not valid JSON"),
    "a huge number": (b'{"version": ' + b"1" * 5000 + b"}", "not valid JSON"),
    "too many values": (
        b"[" + b"[]," * 8_000_000 + b"[]]",
        "too many values",
    ),
    "not UTF-8": (b'{"version": "\xff"}', "byte 13: "),
    "after the vocabulary": (
        b'{"model": {"vocab": {"a": 0, "b": 1}, "merges": []}, "x" 1}',
        "line 1 column 58: ",
    ),
    "a number as key": (b'{"model": {"vocab": {1 : 9}, "merges": []}}', "model.vocab: "),
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
