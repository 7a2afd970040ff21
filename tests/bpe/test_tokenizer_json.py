"""tokenizer.json: IDs equal Hugging Face's, written files equal those that were read, and a wrong field is named."""

from __future__ import annotations

import codecs
import copy
import functools
import json
import operator
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from bpe import Tokenizer
from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, EnvironmentFailure, UnsupportedTokenizer
from bpe.formats import huggingface
from bpe.formats.byte_alphabet import to_characters

SPELLS = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
CUTS = SPELLS | {"use_regex": True}
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(expression: str, behavior: str = "Isolated", invert: bool = False, kind: str = "Regex") -> Any:
    return {"type": "Split", "pattern": {kind: expression}, "behavior": behavior, "invert": invert}


def sequence(*components: Any) -> Any:
    return {"type": "Sequence", "pretokenizers": list(components)}


def read(data: bytes) -> Tokenizer:
    return Tokenizer.from_parts(huggingface.read(data))


def load(value: Any) -> Tokenizer:
    return read(json.dumps(value).encode())


def piece(kind: str, id_: str, type_id: int = 0) -> dict[str, Any]:
    return {kind: {"id": id_, "type_id": type_id}}


def template(*single: dict[str, Any]) -> dict[str, Any]:
    tokens = {"<s>": ("<s>",), "two": ("<t>", "<s>")}
    ids = {"<s>": 556, "<t>": 557}
    return {
        "type": "TemplateProcessing",
        "single": list(single),
        "pair": [piece("Sequence", "A"), piece("Sequence", "B", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [ids[text] for text in texts], "tokens": list(texts)}
            for name, texts in tokens.items()
        },
    }


TRUNCATION = {"direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 1}
PADDING: dict[str, Any] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": 8}
PADDING |= {"pad_id": 3, "pad_type_id": 0, "pad_token": "<s>"}
TEXT, BEGIN = piece("Sequence", "A"), piece("SpecialToken", "<s>")
ROBERTA = {"sep": ["<t>", 557], "cls": ["<s>", 556], "trim_offsets": True, "add_prefix_space": False}
ROBERTA = {"type": "RobertaProcessing", **ROBERTA}
# Pre-tokenizer -> its pattern here, if it has a name. test_components.py compares the pretokens of any components.
PRE_TOKENIZERS: list[tuple[Any, str | None]] = [
    (CUTS, "gpt2"),
    ({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}, "gpt2"),
    (SPELLS, "none"),
    (sequence(split(LLAMA3), SPELLS), "llama3"),
    (sequence(sequence(split(LLAMA3, "Removed", True)), SPELLS), "llama3"),
    (sequence(split(LLAMA3.replace("{1,3}", "")), SPELLS), "qwen2"),
    (sequence(split(r"\p{N}"), CUTS), r"\p{N} then gpt2"),
]
OTHERS: dict[str, list[Any]] = {
    "post_processor": [
        SPELLS,
        *(template(BEGIN, TEXT), template(BEGIN, TEXT, piece("SpecialToken", "two", 3)), template(TEXT)),
        ROBERTA,
        {"type": "BertProcessing", "sep": ["<t>", 557], "cls": ["<s>", 556]},
        {"type": "Sequence", "processors": [SPELLS, template(BEGIN, TEXT)]},
        {"type": "Sequence", "processors": [{"type": "Sequence", "processors": [SPELLS]}, ROBERTA, SPELLS]},
    ],
    "model": [{"unk_token": "<s>"}, {"dropout": 0.0}, {"fuse_unk": True}, {"continuing_subword_prefix": ""}],
    "normalizer": [{"type": "Sequence", "normalizers": each} for each in ([], [{"type": "NFC"}])],
    "decoder": [{"type": "Sequence", "decoders": [SPELLS]}],
}


def same(value: Any, texts: list[str]) -> Tokenizer:
    """Check that ours, theirs, the written file and a pickled copy give the same IDs, and return ours."""
    ours = load(value)
    again = read(ours.canonical_json)
    assert again == ours == pickle.loads(pickle.dumps(ours))
    assert again.canonical_json == ours.canonical_json
    theirs = tokenizers.Tokenizer.from_str(json.dumps(value))
    written = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for add in (False, True):
        expected = [theirs.encode(text, add_special_tokens=add).ids for text in texts]
        assert [ours.encode(text, add_special_tokens=add) for text in texts] == expected
        assert ours.encode_batch(texts, add_special_tokens=add).tolist() == expected
        assert [written.encode(text, add_special_tokens=add).ids for text in texts] == expected
    return ours


@pytest.mark.promise("token-ids")
@pytest.mark.parametrize("index", range(len(PRE_TOKENIZERS)))
def test_pre_tokenizers_equal_hugging_faces(
    index: int, document: Any, nasty_texts: Any, random_texts: Any
) -> None:
    value = document()
    value["pre_tokenizer"], pattern = PRE_TOKENIZERS[index]
    ours = same(value, [*nasty_texts.values(), "a.ba.b xa\nb\n12<s>3", *random_texts(8, 40, 30)])
    assert pattern in (None, ours.pattern)


@pytest.mark.promise("published-files")
@pytest.mark.parametrize(
    ("name", "index"), [(name, at) for name in OTHERS for at in range(len(OTHERS[name]))]
)
def test_other_fields_equal_hugging_faces(name: str, index: int, document: Any, nasty_texts: Any) -> None:
    value, new = document(), OTHERS[name][index]
    value[name] = value["model"] | new if name == "model" else new
    value["added_tokens"][0]["normalized"] = index % 2 == 1
    ours = same(value, [*nasty_texts.values(), "", "ab <s>", ""])
    assert [ours.encode(text) for text in nasty_texts.values()] == [
        ours.encode(text, add_special_tokens=False) for text in nasty_texts.values()
    ]
    before = copy.deepcopy(value)
    load(value)
    assert value == before


def test_truncation_and_padding_are_stored_and_not_applied(document: Any) -> None:
    value = document()
    plain = load(value)
    value["truncation"], value["padding"] = TRUNCATION, PADDING | {"pad_id": 556}
    ours = load(value)
    assert (ours.truncation, ours.padding) == (value["truncation"], value["padding"])
    assert ours == pickle.loads(pickle.dumps(ours)) != plain
    assert ours.encode("a b c d e f") == plain.encode("a b c d e f")
    theirs = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    assert theirs.to_str() == tokenizers.Tokenizer.from_str(json.dumps(value)).to_str()


def test_added_tokens_outside_the_vocabulary_are_numbered_as_theirs(document: Any) -> None:
    """A new token's ID follows the highest added ID before it, not the last one."""
    value = document()
    size, (first, second) = len(value["model"]["vocab"]), value["added_tokens"]
    new = [dict(first, content=f"<{number}é>", id=size + number) for number in range(40)]
    value["added_tokens"] = [new[0], second, new[1], first, *new[2:]]
    ours = same(value, ["a<0é>b<1é>c<39é>d<s><t>"])
    assert ours.special_tokens["<39é>"] == size + 39
    value["added_tokens"][-1]["id"] += 5
    with pytest.raises(BadTokenizer, match=rf"added_tokens\[41\].id: .*{size + 39}"):
        load(value)


# -- writing


@pytest.mark.promise("saved-files")
def test_saved_files_load_as_equal_tokenizers(listed: Any, ranked: Any, pattern: str, tmp_path: Any) -> None:
    specials = [AddedToken("日本", 997), AddedToken("<s>", 998, special=False, lstrip=True)]
    for tokenizer in (
        listed(pattern, {"<|é|>": 999, 'q"\\': 1001}, ignore_merges=True, normalizer="NFC"),
        listed(pattern, specials),
        listed(special_tokens=["the", "e"]),  # merges need the entries
        ranked(pattern),
        Tokenizer({byte: bytes([byte]) for byte in range(256)}, []),
    ):
        tokenizer.save(tmp_path / "t.json")
        text = (tmp_path / "t.json").read_bytes()
        again = Tokenizer.load(tmp_path / "t.json")
        assert again == tokenizer
        assert (again.added_tokens, again.pattern) == (tokenizer.added_tokens, tokenizer.pattern)
        root = json.loads(text)
        assert json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" == text
        special = {id_: token for token, id_ in tokenizer.special_tokens.items()}
        keys = [(special.get(id_) or to_characters(entry), id_) for id_, entry in tokenizer.vocab.items()]
        assert list(root["model"]["vocab"].items()) == keys
        merges = [[to_characters(left), to_characters(right)] for left, right in tokenizer.merges]
        assert root["model"]["merges"] == merges
        tokenizer.save(tmp_path / "t.json", legacy_merges=True)
        root = json.loads((tmp_path / "t.json").read_bytes())
        assert [merge.split(" ") for merge in root["model"]["merges"]] == merges
        assert Tokenizer.load(tmp_path / "t.json") == tokenizer
    with pytest.raises(EnvironmentFailure, match="no/t.json"):
        listed().save(tmp_path / "no" / "t.json")


SPELLINGS = {
    "spaced": lambda root: json.dumps(root, ensure_ascii=False, indent=2),
    "escaped": lambda root: json.dumps(root, ensure_ascii=True),
    "line ends of Windows": lambda root: json.dumps(root, indent=1).replace("\n", "\r\n\t"),
    "byte order mark": lambda root: "\ufeff" + json.dumps(root),
    "merges first": lambda root: json.dumps(
        root | {"model": {"merges": root["model"]["merges"]} | root["model"]}
    ),
    "model first": lambda root: json.dumps({"model": root["model"]} | root),
    "GPT-2's file": lambda root: json.dumps(
        root | {"model": {key: root["model"][key] for key in ("vocab", "merges")}}
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_read(spelling: str, listed: Any) -> None:
    tokenizer = listed("llama3", ["日本", "<s>", 'a "quoted\\" one'])
    data = SPELLINGS[spelling](json.loads(tokenizer.canonical_json)).encode()
    assert read(data) == tokenizer
    assert read(data).canonical_json == tokenizer.canonical_json


@pytest.mark.parametrize("name", ["tokenizer.json", "tekken.json"])
def test_two_byte_order_marks_were_a_rank_file_without_rules_for_text(
    name: str, listed: Any, tmp_path: Any
) -> None:
    path = tmp_path / name
    path.write_bytes(2 * codecs.BOM_UTF8 + listed("llama3").canonical_json)
    with pytest.raises(BadTokenizer, match=rf"{name}: byte 3: second byte-order mark"):
        Tokenizer.load(path)


@pytest.mark.parametrize("token", ["<début>", "Çüß", "éaé", "Ġzq"])
def test_special_tokens_of_characters_of_the_byte_alphabet(ranked: Any, listed: Any, token: str) -> None:
    """All except the last spell invalid text. Ranks were written to a file that could not be read back."""
    texts = [token, f"a {token}b", " zq", token[:-1], token[1:]]
    ranks = Tokenizer(ranked("gpt2").ordinary_entries, None, [token])
    same(json.loads(listed(special_tokens=[token]).canonical_json), texts)
    if token == "Ġzq":
        with pytest.raises(BadTokenizer, match="tokenizer.json"):
            _ = ranks.canonical_json
        return
    ours = same(json.loads(ranks.canonical_json), texts)
    assert [ours.encode(text) for text in texts] == [ranks.encode(text) for text in texts]


def test_special_tokens_that_spell_entries_are_refused(listed: Any, document: Any) -> None:
    """The byte alphabet spells the byte 0xe9 as é."""
    with pytest.raises(BadTokenizer):
        _ = listed(special_tokens=["é"]).canonical_json
    value = document()
    value["added_tokens"][0].update(content="é", id=0xE9)
    with pytest.raises(BadTokenizer, match=r"added_tokens\[0\].content"):
        load(value)
    # No merge makes the entry " zq"; only `ignore_merges` emits it.
    value = document()
    value["model"]["vocab"]["Ġzq"] = 558
    value["added_tokens"] = [value["added_tokens"][0] | {"content": "Ġzq", "id": 558}]
    assert 558 not in load(value).encode("a zq")
    value["model"]["ignore_merges"] = True
    with pytest.raises(BadTokenizer, match=r"^added_tokens\[0\]\.content: .*'Ġzq'.*558"):
        load(value)


# -- odd vocabularies


@pytest.mark.filterwarnings("ignore:.*no entries for the bytes")
def test_an_empty_vocabulary_has_no_highest_id_and_is_saved_as_json() -> None:
    """`max_token_id` crashed, and the file said `"vocab":}`."""
    ours = same({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}, [])
    assert (ours.max_token_id, ours.vocab_size, ours.encode("ab")) == (-1, 0, [])


def test_the_merge_of_two_nul_characters_is_applied() -> None:
    """The pair's key equalled the initial value of a filter, so texts were cut between the two."""
    keys = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\0", "a", "\0\0"]
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    model |= {"vocab": {key: id_ for id_, key in enumerate(keys)}, "merges": [["\0", "\0"]]}
    assert load({"model": model, "version": "1.0"}).encode("a\0\0a") == [258, 259, 258]


def test_a_missing_byte_is_named(document: Any, tmp_path: Any) -> None:
    value = document()
    model = value["model"]
    model["merges"] = [merge for merge in model["merges"] if "Ġ" not in "".join(merge)]
    model["vocab"] = {entry: id_ for entry, id_ in model["vocab"].items() if "Ġ" not in entry}
    value["added_tokens"] = []
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    with pytest.warns(UserWarning, match=r"tokenizer\.json") as caught:
        tokenizer = Tokenizer.load(tmp_path / "tokenizer.json")
    assert len(caught) == 1
    assert tokenizer.encode("a b c ") == tokenizers.Tokenizer.from_str(json.dumps(value)).encode("a b c ").ids
    model |= {"byte_fallback": True, "vocab": model["vocab"] | {"<0xC4>": 9000, "<0xA0>": 9001}}
    with pytest.raises(UnsupportedTokenizer, match=r"model\.byte_fallback"):
        load(value)


# -- errors

MODEL = {
    "type": "BPE",
    **dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")),
    **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False),
}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "_"}
METASPACE = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": True}
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": False}
TOKEN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
# A document of each kind with every component and field.
DOCUMENTS: dict[str, dict[str, Any]] = {
    "bytes": {
        "version": "1.0",
        "truncation": TRUNCATION,
        "padding": PADDING,
        "added_tokens": [{"id": 3, "content": "<s>", **TOKEN}, {"id": 4, "content": "<t>", **TOKEN}],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFC"},
                {"type": "Strip", "strip_left": True, "strip_right": False},
                BERT | {"strip_accents": None},
            ],
        },
        "pre_tokenizer": sequence(
            split("a"),
            sequence({"type": "Digits", "individual_digits": True}, {"type": "Whitespace"}),
            {"type": "Punctuation", "behavior": "Isolated"},
            {"type": "CharDelimiterSplit", "delimiter": "e"},
            {"type": "FixedLength", "length": 5},
            SPELLS,
        ),
        "post_processor": {"type": "Sequence", "processors": [SPELLS, template(BEGIN, TEXT)]},
        "decoder": SPELLS,
        "model": MODEL | {"vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3, "<t>": 4}, "merges": [["a", "b"]]},
    },
    "text": {
        "version": "1.0",
        "added_tokens": [{"id": 3, "content": "<s>", **TOKEN}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}, REPLACE]},
        "pre_tokenizer": METASPACE,
        "post_processor": ROBERTA,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                REPLACE,
                METASPACE,
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "BPEDecoder", "suffix": "</w>"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": MODEL | {"vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3}, "merges": ["a b"]},
    },
}
for token in DOCUMENTS["bytes"]["post_processor"]["processors"][1]["special_tokens"].values():
    token["ids"] = [id_ - 553 for id_ in token["ids"]]
WRONG = [None, True, 0, -1, 1.5, 2**31, "", "a\nb\x1b", [], [5], {}, {"more": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def spelled(path: tuple[Any, ...]) -> str:
    """Return a path as errors spell it."""
    text = ""
    for key, parent in zip(path, (None, *path), strict=False):
        is_text = isinstance(key, str) and parent not in ("vocab", "special_tokens")
        text += f".{key}" if is_text else f"[{key!r}]"
    return text.removeprefix(".")


def changes(value: Any) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield each document with one wrong value, with its path and the value; ... if it is missing."""
    for path in places(value):
        for wrong in (*WRONG, ...):
            changed = json.loads(json.dumps(value))  # components are shared
            parent = value_at(changed, path[:-1])
            if wrong is ...:
                del parent[path[-1]]
            else:
                parent[path[-1]] = wrong
            yield path, wrong, changed


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    return functools.reduce(operator.getitem, path, value)


def may_be(old: Any, new: Any) -> bool:
    """Return whether a reader may accept a new value."""
    if new in (None, ..., []) or old is None:
        return True
    return type(new) is type(old) and new not in (-1, [5]) and not isinstance(new, dict)


@pytest.mark.slow
@pytest.mark.promise("published-files")
@pytest.mark.filterwarnings("ignore:.*no entries for the bytes")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_wrong_value_is_refused_by_its_path(name: str) -> None:
    for path, new, changed in changes(DOCUMENTS[name]):
        place = spelled(path)
        try:
            tokenizer = load(changed)
        except BadTokenizer as error:
            found = str(error)
        else:
            assert may_be(value_at(DOCUMENTS[name], path), new), (place, new)
            assert read(tokenizer.canonical_json) == tokenizer
            continue
        where, component = re.split(", |: ", found)[0], spelled(path[:-1]).partition(".special_tokens")[0]
        assert place.startswith((where, "model.vocab")) or where.startswith(component), found


DEEP = b'{"type": "Sequence", "normalizers": [' * 102 + b'{"type": "NFC"}' + b"]}" * 102
# What is replaced in a file (b"": the whole file), by what, and the start of the error.
MALFORMED = [
    (b"", b'{"version": "1.0"}', "model: missing"),
    (b"", b"[" * 200_000, "not valid JSON"),
    (b"", b'{"version": ' + b"1" * 5000 + b"}", "not valid JSON"),
    (b"", b"[" + b"[]," * 8_000_000 + b"[]]", "too many values"),
    (b'"normalizer": null', b'"normalizer": ' + DEEP, "normalizer.normalizers[0]"),
    (b'{"version": "1.0"', b'{"version": "1.0", "version": "1.0"', "key 'version': "),
    (b"1.0", b"\xff", "byte 13: "),
    (b'"content": "<s>"', rb'"content": "<s>\ud800"', r"text '<s>\ud800': "),
    (b'"vocab": {', b'"vocab": {"zz": 98, ', "model.vocab: ID 98 "),
    (b'"vocab": {', b'"vocab": {"!": 9999, ', "model.vocab[33]: same bytes"),
    (b'"content": "<t>"', b'"content": "<s>"', "added_tokens[1].content: "),
    (b'"merges": [', b'"merges": ["ab", ', "model.merges[0]: "),
    (b'"merges": [', b'"merges": ["z !", ', "model.merges[0]: product "),
    (b'"]]}}', b'"], ["b", "e"], ["b", "e"]]}}', "model.merges["),
    (b'"]]}}', b'"]]}}x', "line "),
]


@pytest.mark.parametrize("index", range(len(MALFORMED)))
def test_malformed_files_are_refused_in_one_line(index: int, document: Any, tmp_path: Path) -> None:
    old, new, message = MALFORMED[index]
    data = json.dumps(document()).encode()
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data.replace(old, new, 1) if old else new)
    assert path.read_bytes() != data
    with pytest.raises(BadTokenizer) as caught:
        Tokenizer.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert str(caught.value).isprintable()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", [r'"\x"', '"a\n"', "[1,]", r'["\ud800", 1e]'])
@pytest.mark.parametrize("where", ["merges", "before the model", "after the model"])
def test_a_syntax_error_has_its_line_and_column(value: str, where: str, document: Any) -> None:
    root = document()
    if where == "merges":
        root["model"]["merges"][5] = "MARK"
    else:
        first = root.pop("model" if where == "after the model" else "padding")
        root = {"model" if where == "after the model" else "padding": first} | root | {"truncation": "MARK"}
    for indent in (None, 1):
        text = json.dumps(root, indent=indent).replace('"MARK"', value)
        with pytest.raises(BadTokenizer) as raised:
            read(text.encode())
        with pytest.raises(json.JSONDecodeError) as expected:
            json.loads(text)
        found = re.match(r"line (\d+) column (\d+): not valid JSON", str(raised.value))
        assert found is not None
        assert int(found[1]) == expected.value.lineno
        assert abs(int(found[2]) - expected.value.colno) <= 1
