"""Chats by templates, against transformers' own rendering and masks where it is installed, and by hand elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import (
    CHATML,
    CHATS,
    INLINE,
    PLAIN,
    USER,
    make_chats,
    rows_of,
    write_chats,
    write_table,
    write_template,
)
from naive_conversion import END
from stopped_runs import options

from bpe.tokenizer import Tokenizer
from convert import convert
from corpus.chat_template import ChatTemplate
from corpus.rules import ChatRules
from engines.inline_engine import InlineEngine

jinja2 = pytest.importorskip("jinja2", reason="jinja2 is not installed")

TOOLS = """\
{%- if tools %}{{ tools | tojson }}{% endif %}
{%- set ns = namespace(n=0) %}
{%- for message in messages %}{% set ns.n = ns.n + 1 %}{% if ns.n > 90 %}{% break %}{% endif %}
<{{ message.role }} {{ ns.n }}>{{ message.reasoning_content }}{{ message.thinking }}
{% if message.role == 'assistant' %}{% generation %}{{ message.content }}
{% for call in message.tool_calls or [] %}{{ call | tojson(indent=2) }}{% endfor %}{% endgeneration %}{% else %}
{{- message.content -}}{% endif %}{% endfor %}"""


@pytest.mark.parametrize("template", [CHATML, INLINE, TOOLS], ids=["chatml", "inline", "tools"])
def test_as_transformers(here: Path, template: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    their = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(here / "tok.json"), bos_token="<|im_start|>", eos_token=END
    )
    chats = make_chats(30, seed=7)
    chats[0][1]["tool_calls"] = [{"name": "f", "arguments": {"é": [1, "<b>"]}}]
    if template is TOOLS:
        chats[1][1] |= {"content": None, "reasoning": "why", "tool_calls": None}
    tools = [{"name": "f", "description": "'&東'"}] if template is TOOLS else None
    write_chats(here / "c.jsonl", chats, tools=tools)
    write_template(here, template)
    convert(options(**CHATS), InlineEngine())
    found = rows_of(here / "out")
    assert len(found) == len(chats)
    for chat, (ids, bits) in zip(chats, found, strict=True):
        wanted = their.apply_chat_template(
            chat,
            tools=tools,
            chat_template=template,
            tokenize=True,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        assert ids == wanted["input_ids"]
        assert bits == [bool(bit) for bit in wanted["assistant_masks"]]


def test_as_naive(here: Path) -> None:
    """CHATML by hand: ids of the whole text, trained where a byte is of what the assistant says."""
    tokenizer = Tokenizer.load(here / "tok.json")
    chats = make_chats(20, seed=6)
    write_chats(here / "c.jsonl", chats)
    write_template(here, CHATML)
    summary = convert(options(**CHATS), InlineEngine())
    assert not any("can't learn to stop" in line for line in summary.lines())  # though no token is put behind
    for chat, (ids, bits) in zip(chats, rows_of(here / "out"), strict=True):
        text, wanted = b"", b""  # a 1 for each byte that is to be learned
        for turn in chat:
            for part, is_trained in (
                (f"<|im_start|>{turn['role']}\n", False),
                (turn["content"] + END, turn["role"] == "assistant"),
                ("\n", False),
            ):
                text += part.encode()
                wanted += bytes([is_trained]) * len(part.encode())
        assert ids == tokenizer.encode(text.decode())
        at, found = 0, []
        for id_ in ids:
            length = len(tokenizer.decode_bytes([id_]))
            found.append(1 in wanted[at : at + length])
            at += length
        assert bits == found


def test_chats_are_held_out_by_number_and_by_file(here: Path) -> None:
    """The options are made anew with the template, and were refused by their own defaults."""
    write_chats(here / "c.jsonl", make_chats(20, seed=8))
    write_chats(here / "v.jsonl", make_chats(3, seed=9))
    write_template(here, CHATML)
    given = {**CHATS, "validation_fraction": None}
    counts = []
    for output, more in (("docs", {"validation_docs": 4}), ("file", {"validation": ["v.jsonl"]})):
        summary = convert(options(**given, output=output, **more), InlineEngine())
        counts.append([summary.splits[split].documents for split in ("train", "validation")])
    assert counts == [[16, 4], [20, 3]]


def test_without_generation_blocks(here: Path) -> None:
    """What a message of the assistant adds: as with the blocks, and the line end behind it."""
    write_chats(here / "c.jsonl", make_chats(20, seed=8))
    write_template(here, CHATML)
    convert(options(**CHATS, output="blocks"), InlineEngine())
    (here / "chat_template.jinja").write_text(PLAIN)  # which comes before that of the configuration
    convert(options(**CHATS, output="plain"), InlineEngine())
    text = Tokenizer.load(here / "tok.json").decode
    for (ids, bits), (plain_ids, plain_bits) in zip(
        rows_of(here / "blocks"), rows_of(here / "plain"), strict=True
    ):
        assert ids == plain_ids
        for id_, is_trained, with_line_end in zip(ids, bits, plain_bits, strict=True):
            assert is_trained == with_line_end or (with_line_end and text([id_]).startswith("\n"))


@pytest.mark.parametrize(
    ("message", "given"),
    [
        ({"content": None, "tool_calls": None}, {}),  # a template wrote None for it
        ({"content": "a", "x": [None]}, {"content": "a", "x": [None]}),
        ({"reasoning": "b"}, {"thinking": "b", "reasoning": "b", "reasoning_content": "b"}),
        ({"thinking": "b", "content": ""}, {"thinking": "b", "content": "", "reasoning_content": "b"}),
        ({"reasoning_content": "b"}, {"thinking": "b", "reasoning_content": "b"}),
        (
            {"thinking": "a", "reasoning": None, "reasoning_content": "b"},
            {"thinking": "a", "reasoning_content": "b"},
        ),
    ],
)
def test_messages_are_given_as_transformers_gives_them(
    message: dict[str, Any], given: dict[str, Any]
) -> None:
    template = ChatTemplate(
        ChatRules(
            "{% for m in messages %}{% generation %}{{ m | tojson }}{% endgeneration %}{% endfor %}", (), ()
        )
    )
    role = {"role": "assistant"}
    text = template.text_of([role | message], None, "text", False).text.decode()
    assert json.loads(text) == role | given


@pytest.mark.parametrize("template", [CHATML, PLAIN, "always"])
def test_a_chat_of_no_messages_has_no_text(template: str) -> None:
    """It became a document of what a template writes in front of any chat."""
    found = ChatTemplate(ChatRules(template, (), ())).text_of([], None, "text", False)
    assert (found.text, found.trained) == (b"", [])


def test_what_a_configuration_names(here: Path) -> None:
    """The template for chats with tools, and tokens of any name, which templates found undefined."""
    (here / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "add_bos_token": True,
                "bos_token": None,
                "boi_token": {"content": "<i>"},
                "extra_special_tokens": {"image_token": "<m>", "tools": "x"},
                "chat_template": [
                    {
                        "name": "default",
                        "template": "D{{ bos_token }}{{ boi_token }}{{ image_token }}{{ tools }}",
                    },
                    {"name": "tool_use", "template": "T{{ tools }}"},
                ],
            }
        )
    )
    records = [
        {"messages": USER[:1]},
        {"messages": USER[:1], "tools": [1]},
        {"messages": USER[:1], "tools": None},
    ]
    (here / "c.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    convert(options(**CHATS), InlineEngine())
    decode = Tokenizer.load(here / "tok.json").decode
    assert [decode(ids) for ids, _ in rows_of(here / "out")] == ["D<i><m>None", "T[1]", "D<i><m>None"]


@pytest.mark.parametrize("name", ["c.jsonl", "c.parquet"])
def test_tools_beside_messages_within_an_object(name: str, here: Path) -> None:
    """They were not seen."""
    write_template(here, "{{ messages[0].content }}{{ tools | tojson }}")
    records = [
        {"chat": {"messages": USER[:1], "tools": [{"name": "f"}]}, "tools": None},
        {"chat": {"messages": USER[:1], "tools": None}, "tools": [{"name": "g"}]},
        {"chat": {"messages": USER[:1], "tools": None}, "tools": None},
    ]
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        write_table(here / name, records)
    else:
        (here / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    convert(options(**CHATS | {"inputs": [name], "messages_field": "/chat/messages"}), InlineEngine())
    decode = Tokenizer.load(here / "tok.json").decode
    assert [decode(ids) for ids, _ in rows_of(here / "out")] == [
        'a[{"name": "f"}]',
        'a[{"name": "g"}]',
        "anull",
    ]
