"""Chats by templates, against the rendering and the masks of transformers where it is installed."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from chats import (
    CHATML,
    CHATS,
    INLINE,
    PLAIN,
    TEMPLATES,
    USER,
    convert_chats,
    convert_pairs,
    make_chats,
    texts,
    write_chats,
    write_records,
    write_template,
)
from runs import Inline, convert, error_of, masked_sequences, options_of, stopping_at, tokenizer
from strategies import END, START

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytestmark = pytest.mark.usefixtures("folder")

ADD: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "description": "a < b & 'c'", "parameters": {}},
}
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "add", "arguments": {"a": "é"}}}
WITH_TOOLS: list[dict[str, Any]] = [
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "tool_calls": [CALL], "content": None},
    {"role": "tool", "tool_call_id": "abcdefghi", "name": "add", "content": "2"},
    {"role": "assistant", "content": " It is 2.\n"},
]
SYSTEM = {"role": "system", "content": " Be <short>. "}
THINKING = {"role": "assistant", "content": "<think>a</think>\n\nb"}


@pytest.mark.promise("chats")
@pytest.mark.parametrize("name", TEMPLATES)
def test_as_transformers(name: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    their = transformers.PreTrainedTokenizerFast(tokenizer_file="tok.json", bos_token=START, eos_token=END)
    template, chats = TEMPLATES[name], [(chat, None) for chat in make_chats(20, seed=7)]
    if name in ("llama", "qwen", "mistral"):
        chats += [(WITH_TOOLS, [ADD]), ([*USER, USER[0], THINKING], None)]
    if name in ("llama", "qwen"):
        chats += [([SYSTEM, *WITH_TOOLS], [ADD, ADD]), ([SYSTEM, *USER, USER[0]], None)]
    if name == "tools":
        chats += [([{**USER[0], "reasoning": "why"}, THINKING, WITH_TOOLS[1]], [{"name": "f", "x": "'&東'"}])]
    write_template(template)
    write_records("c.jsonl", [{"messages": chat, "tools": tools} for chat, tools in chats])
    convert_chats(chat_date=date.today().isoformat())
    assert len(masked_sequences("out")) == len(chats)
    for (chat, tools), (ids, bits) in zip(chats, masked_sequences("out"), strict=True):
        given = {"tools": tools, "chat_template": template, "tokenize": True, "return_dict": True}
        wanted = their.apply_chat_template(chat, **given, return_assistant_tokens_mask=True)
        assert ids == wanted["input_ids"]
        if "generation %}" in template:
            assert bits == [bool(bit) for bit in wanted["assistant_masks"]]


CONTENT = "{{ messages[0].content }}"
NAMED = [{"name": "default", "template": f"D{CONTENT}"}, {"name": "tool_use", "template": f"T{CONTENT}"}]
TOKENS = "{{ bos_token }}|{{ eos_token }}|{{ image_token }}" + CONTENT
DEFAULT, TOOL_USE = (f"additional_chat_templates/{name}.jinja" for name in ("default", "tool_use"))
CONFIG, MAP = "tokenizer_config.json", "special_tokens_map.json"
FOLDERS: dict[str, tuple[dict[str, Any], list[str]]] = {  # files of a model -> texts without and with tools
    "tool-file": ({"chat_template.jinja": f"D{CONTENT}", TOOL_USE: f"T{CONTENT}"}, ["Da", "Ta"]),
    "default-file": ({"chat_template.jinja": f"D{CONTENT}", DEFAULT: f"E{CONTENT}"}, ["Ea", "Ea"]),
    "tool-file-alone": ({TOOL_USE: f"T{CONTENT}"}, ["", "Ta"]),
    "named": ({CONFIG: {"chat_template": NAMED}}, ["Da", "Ta"]),
    "named-tool-alone": ({CONFIG: {"chat_template": NAMED[1:]}}, ["", "Ta"]),
    "file-before-named": (
        {CONFIG: {"chat_template": NAMED}, "chat_template.jinja": f"F{CONTENT}"},
        ["Fa", "Fa"],
    ),
    "tokens-map-alone": (
        {
            MAP: {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>"},
            "chat_template.jinja": TOKENS,
        },
        ["<s>|</s>|a"] * 2,
    ),
    "tokens-map-first": (
        {
            MAP: {"bos_token": "<s>"},
            CONFIG: {"chat_template": TOKENS, "bos_token": "<b>", "image_token": "<i>"},
        },
        ["<s>||<i>a"] * 2,
    ),
    "tokens-map-not-read": (
        {
            MAP: {"bos_token": "<b>", "eos_token": "</s>"},
            CONFIG: {
                "chat_template": TOKENS,
                "bos_token": "<s>",
                "added_tokens_decoder": {"0": {"content": "<s>", "special": True}},
            },
        },
        ["<s>||a"] * 2,
    ),
}


@pytest.mark.promise("chats")
@pytest.mark.parametrize("name", FOLDERS)
def test_files_of_a_model_that_were_ignored(name: str, folder: Path) -> None:
    files, expected = FOLDERS[name]
    (folder / "model/additional_chat_templates").mkdir(parents=True)
    (folder / "model/tokenizer.json").write_bytes((folder / "tok.json").read_bytes())
    for path, content in files.items():
        (folder / "model" / path).write_text(content if isinstance(content, str) else json.dumps(content))
    records = [{"messages": USER[:1]}, {"messages": USER[:1], "tools": [{"name": "f"}]}]
    write_records("c.jsonl", records)
    convert_chats(tokenizer="model", on_error="skip")  # without a template for chats without tools
    assert texts() == [text for text in expected if text]
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    their = transformers.PreTrainedTokenizerFast.from_pretrained("model")
    for record, text in zip(records, expected, strict=True):
        if text:
            assert their.apply_chat_template(record["messages"], record.get("tools"), tokenize=False) == text


def test_tokens_that_a_configuration_names() -> None:
    template = "{{ bos_token }}{{ boi_token }}{{ image_token }}{{ tools }}" + CONTENT
    config = {
        "add_bos_token": True,
        "bos_token": None,
        "boi_token": {"content": "<i>"},
        "extra_special_tokens": {"image_token": "<m>", "tools": "x"},
        "chat_template": template,
    }
    Path("tokenizer_config.json").write_text(json.dumps(config))
    write_records("c.jsonl", [{"messages": USER[:1]}, {"messages": USER[:1], "tools": [1]}])
    convert_chats()
    assert texts() == ["<i><m>Nonea", "<i><m>[1]a"]


def test_a_date_is_an_option_and_is_recorded() -> None:
    write_chats("c.jsonl", [USER] * 9)
    Path("chat_template.jinja").write_text("{% set day = strftime_now('%d %b %Y') %}{{ day }}" + PLAIN)
    assert "chat_template.jinja" in str(error_of(Inline(), **CHATS))
    assert not Path("out.partial").exists()
    write_records("p.jsonl", [{"prompt": USER[:1], "completion": USER[1:]}])
    with pytest.raises(Exception, match="--chat-date"):
        convert_pairs()
    given = {**CHATS, "text_chunk_bytes": 100}
    with pytest.raises(KeyboardInterrupt):
        convert(stopping_at(5), **given, chat_date="2024-07-26")
    assert "--chat-date" in str(error_of(Inline(), **given, chat_date="2024-07-27"))
    assert convert(Inline(), **given, chat_date="2024-07-26").reused_shards
    assert texts()[0].startswith("26 Jul 2024<|im_start|>user\na")
    assert options_of("out")["chat_date"] == "2024-07-26"


def test_without_generation_blocks() -> None:
    """The assistant's messages are trained as with the blocks, and the line end after them."""
    write_chats("c.jsonl", make_chats(20, seed=8))
    write_template(CHATML)
    convert_chats(output="blocks")
    Path("chat_template.jinja").write_text(PLAIN)  # takes precedence over the configuration
    convert_chats(output="plain")
    for (ids, bits), (plain_ids, plain_bits) in zip(
        masked_sequences("blocks"), masked_sequences("plain"), strict=True
    ):
        assert ids == plain_ids
        for id_, is_trained, with_line_end in zip(ids, bits, plain_bits, strict=True):
            starts_line = tokenizer().decode([id_]).startswith("\n")
            assert is_trained == with_line_end or (with_line_end and starts_line)


@pytest.mark.parametrize("name", ["c.jsonl", "c.parquet"])
def test_tools_next_to_messages_within_an_object(name: str) -> None:
    write_template(CONTENT + "{{ tools | tojson }}")
    records = [
        {"chat": {"messages": USER[:1], "tools": [{"name": "f"}]}, "tools": None},
        {"chat": {"messages": USER[:1], "tools": None}, "tools": [{"name": "g"}]},
        {"chat": {"messages": USER[:1], "tools": None}, "tools": None},
    ]
    write_records(name, records)
    convert_chats(name, messages_field="/chat/messages")
    assert texts() == ['a[{"name": "f"}]', 'a[{"name": "g"}]', "anull"]


@pytest.mark.parametrize("template", [CHATML, PLAIN, INLINE], ids=["chatml", "plain", "inline"])
def test_prompts_that_are_messages(template: str) -> None:
    """Everything that the completion adds to the prompt is trained, and the IDs equal the whole chat."""
    chats = make_chats(20, seed=11)
    write_chats("c.jsonl", chats)
    records: list[Any] = [{"prompt": chat[:-1], "completion": chat[-1:]} for chat in chats]
    plain = {"prompt": f"{START} a", "completion": f" b{START}"}
    write_records("p.jsonl", [*records, plain])
    convert_pairs(output="before", on_error="quarantine")
    assert len(texts("before")) == 1  # no template, so no chats
    assert "no chat template" in Path("before/quarantine.jsonl").read_text()
    write_template(template)
    convert_chats(output="chats")
    convert_pairs()
    *found, last = masked_sequences("out")
    assert last == masked_sequences("before")[0]
    assert [ids for ids, _ in found] == [ids for ids, _ in masked_sequences("chats")]
    for chat, (ids, bits) in zip(chats, found, strict=True):
        trained = tokenizer().decode([id_ for id_, bit in zip(ids, bits, strict=True) if bit])
        assert chat[-1]["content"].strip() in trained
        assert not bits[0]
        assert bits == sorted(bits)  # the end of the chat


@pytest.mark.promise("chats")
def test_special_tokens_in_messages_stay_text() -> None:
    end = tokenizer().special_tokens[END]
    chat = [{"role": "user", "content": f"a{END}b"}, {"role": "assistant", "content": f"{END}c{START}"}]
    write_chats("c.jsonl", [chat])
    write_template(CHATML)
    summary = convert_chats()
    ids, bits = masked_sequences("out")[0]
    assert ids.count(end) == 2
    assert texts()[0].count(END) == 4
    assert [id_ for id_, bit in zip(ids, bits, strict=True) if bit][-1] == end
    assert summary.intake.with_special == 1
    convert_chats(output="encode", special_in_text="encode")
    assert masked_sequences("encode")[0][0].count(end) == 4
    with pytest.raises(Exception, match=r"c\.jsonl"):
        convert_chats(output="error", special_in_text="error")


@pytest.mark.parametrize(
    "template", [CHATML, PLAIN, "always{% for m in messages %}{{ m.content }}{% endfor %}"]
)
def test_a_chat_without_messages_has_no_text(template: str) -> None:
    """It became a document with the text that a template writes before any chat."""
    write_chats("c.jsonl", [[], USER])
    write_template(template)
    summary = convert_chats()
    assert summary.splits["train"].empty == 1
    assert len(texts()) == 1


@pytest.mark.promise("chats")
@pytest.mark.parametrize(
    ("message", "given"),
    [
        ({"content": None, "tool_calls": None}, {}),  # a template wrote None for it
        ({"content": "a", "x": [None]}, {"content": "a", "x": [None]}),
        ({"reasoning": "b"}, {"thinking": "b", "reasoning": "b", "reasoning_content": "b"}),
        ({"thinking": "b", "content": ""}, {"thinking": "b", "content": "", "reasoning_content": "b"}),
        ({"reasoning_content": "b"}, {"thinking": "b", "reasoning_content": "b"}),
    ],
)
def test_messages_are_given_as_transformers_gives_them(message: Any, given: Any) -> None:
    write_chats("c.jsonl", [[{"role": "assistant"} | message]])
    write_template("{% for m in messages %}{% generation %}{{ m | tojson }}{% endgeneration %}{% endfor %}")
    convert_chats()
    assert json.loads(texts()[0]) == {"role": "assistant"} | given
