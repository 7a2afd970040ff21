"""Chats by templates, against transformers' own rendering and masks where it is installed, and by hand elsewhere."""

from __future__ import annotations

import json
from datetime import date
from functools import partial
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
from stopped_runs import leave_partial, options

import flat_tokens
from bpe.tokenizer import Tokenizer
from convert import convert
from convert.chat_rules import chat_rules
from convert.errors import BadInput, Refused, UsageError
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.inputs.chat_template import ChatTemplate
from tokenmill.inputs.marked_records import RecordFault
from tokenmill.inputs.messages import messages_for_template, roles_dropped
from tokenmill.inputs.rules import ChatRules

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


# The shapes of published templates: Llama 3.1 with its date and tools, Qwen 2.5, Mistral.
LLAMA = """\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" + system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {%- if tools is not none and message.role == 'user' and loop.first %}
            {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
        {%- endif %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("one call at once") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}{{- "}<|eot_id|>" }}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}{{- message.content | tojson }}
        {%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}"""
QWEN = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] }}{%- endif %}
    {{- "\\n\\n# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "assistant" and not message.tool_calls) %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- message.content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}"""
MISTRAL = """\
{%- if messages[0]["role"] == "system" %}
    {%- set system_message, loop_messages = messages[0]["content"], messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace(index=0) %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if ns.index % 2 != 0 %}{{- raise_exception("roles must alternate") }}{%- endif %}
        {%- if tools is not none %}{{- "[AVAILABLE_TOOLS] " + tools | tojson + "[/AVAILABLE_TOOLS]" }}{%- endif %}
        {%- if loop.last and system_message is defined %}{{- "[INST] " + system_message + "\\n\\n" }}
        {%- else %}{{- "[INST] " }}{%- endif %}
        {{- message["content"] + "[/INST]" }}
        {%- set ns.index = ns.index + 1 %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function | tojson %}
            {{- out[:-1] }}
            {%- if tool_call.id | length != 9 %}{{- raise_exception("IDs have 9 characters") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] | trim + eos_token }}
        {%- set ns.index = ns.index + 1 %}
    {%- elif message["role"] == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content | string + ', "call_id": "' + message.tool_call_id + '"}' }}
    {%- else %}{{- raise_exception("no role " + message.role) }}
    {%- endif %}
{%- endfor %}"""
ADD: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "description": "a < b & 'c'", "parameters": {}},
}
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "add", "arguments": {"a": "é"}}}
WITH_TOOLS = [
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "tool_calls": [CALL], "content": None},
    {"role": "tool", "tool_call_id": "abcdefghi", "name": "add", "content": "2"},
    {"role": "assistant", "content": " It is 2.\n"},
]


@pytest.mark.parametrize("template", [LLAMA, QWEN, MISTRAL], ids=["llama", "qwen", "mistral"])
def test_published_shapes_render_as_transformers_renders_them(here: Path, template: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    their = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(here / "tok.json"), bos_token="<|im_start|>", eos_token=END
    )
    system = {"role": "system", "content": " Be <short>. "}
    chats: list[tuple[list[Any], list[Any] | None]] = [
        (USER, None),
        ([system, *USER, USER[0]], None),
        (WITH_TOOLS, [ADD]),
        ([system, *WITH_TOOLS], [ADD, ADD]),
        (
            [
                *USER,
                {"role": "user", "content": "東"},
                {"role": "assistant", "content": "<think>a</think>\n\nb"},
            ],
            None,
        ),
    ]
    today = date.today().isoformat()
    variables = (("bos_token", "<|im_start|>"), ("eos_token", END))
    ours = ChatTemplate(ChatRules(template, variables, ()), today)
    for messages, tools in chats:
        expected = their.apply_chat_template(messages, tools=tools, chat_template=template, tokenize=False)
        given = messages_for_template(messages)
        assert ours.rendered(given, tools) == expected
        # This one writes the system message with the last user message, if the chat ends there.
        dropped = template is MISTRAL and given[0]["role"] == "system" and given[-1]["role"] != "user"
        assert roles_dropped(given, partial(ours.rendered, tools=tools)) == ["system"] * dropped


NAMED = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]
TOKENS = "{{ bos_token }}|{{ eos_token }}|{{ image_token }}"
ADDED = {"0": {"content": "<s>", "special": True}}
FOLDERS: dict[str, tuple[dict[str, Any], list[str]]] = {  # files of a model -> texts without and with tools
    "tool-file": ({"chat_template.jinja": "D", "additional_chat_templates/tool_use.jinja": "T"}, ["D", "T"]),
    "default-file": (
        {"chat_template.jinja": "D", "additional_chat_templates/default.jinja": "E"},
        ["E", "E"],
    ),
    "tool-file-alone": ({"additional_chat_templates/tool_use.jinja": "T"}, ["", "T"]),
    "named": ({"tokenizer_config.json": {"chat_template": NAMED}}, ["D", "T"]),
    "named-tool-alone": ({"tokenizer_config.json": {"chat_template": NAMED[1:]}}, ["", "T"]),
    "file-before-named": (
        {"tokenizer_config.json": {"chat_template": NAMED}, "chat_template.jinja": "F"},
        ["F", "F"],
    ),
    "tokens-map-alone": (
        {
            "special_tokens_map.json": {
                "bos_token": {"content": "<s>", "lstrip": False},
                "eos_token": "</s>",
            },
            "chat_template.jinja": TOKENS,
        },
        ["<s>|</s>|"] * 2,
    ),
    "tokens-map-first": (
        {
            "special_tokens_map.json": {"bos_token": "<s>"},
            "tokenizer_config.json": {"chat_template": TOKENS, "bos_token": "<b>", "image_token": "<i>"},
        },
        ["<s>||<i>"] * 2,
    ),
    "tokens-map-not-read": (
        {
            "special_tokens_map.json": {"bos_token": "<b>", "eos_token": "</s>"},
            "tokenizer_config.json": {
                "chat_template": TOKENS,
                "bos_token": "<s>",
                "added_tokens_decoder": ADDED,
            },
        },
        ["<s>||"] * 2,
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_files_of_a_model_that_were_ignored(here: Path, name: str) -> None:
    files, texts = FOLDERS[name]
    (here / "model/additional_chat_templates").mkdir(parents=True)
    (here / "model/tokenizer.json").write_bytes((here / "tok.json").read_bytes())
    for path, content in files.items():
        (here / "model" / path).write_text(content if isinstance(content, str) else json.dumps(content))
    records = [{"messages": USER}, {"messages": USER, "tools": [{"name": "f"}]}]
    rules = chat_rules("model", Tokenizer.load(here / "tok.json"), None, is_needed=True)
    assert rules is not None
    template = ChatTemplate(rules)
    for record, text in zip(records, texts, strict=True):
        if text:
            found = template.rendered(record["messages"], record.get("tools"))
            assert found == text
        else:
            with pytest.raises(RecordFault):
                template.rendered(record["messages"], None)
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    their = transformers.PreTrainedTokenizerFast.from_pretrained("model")
    for record, text in zip(records, texts, strict=True):
        if text:
            assert their.apply_chat_template(record["messages"], record.get("tools"), tokenize=False) == text


DATED = "{% set day = strftime_now('%d %b %Y') %}{{ day }}" + PLAIN


def test_a_date_is_an_option_and_is_recorded(here: Path) -> None:
    write_chats(here / "c.jsonl", [USER])
    (here / "chat_template.jinja").write_text(DATED)
    with pytest.raises(UsageError, match=r"chat_template\.jinja"):
        convert(options(**CHATS), InlineEngine())
    assert not (here / "out.partial").exists()
    (here / "p.jsonl").write_text(json.dumps({"prompt": USER[:1], "completion": USER[1:]}) + "\n")
    pairs = options(prompt_field="prompt", completion_field="completion", inputs=["p.jsonl"])
    with pytest.raises(BadInput, match="--chat-date"):
        convert(pairs, InlineEngine())
    convert(options(**CHATS, chat_date="2024-07-26"), InlineEngine())
    text = Tokenizer.load(here / "tok.json").decode(rows_of(here / "out")[0][0])
    assert text.startswith("26 Jul 2024<|im_start|>user\na")
    dataset = flat_tokens.open(here / "out")
    assert dataset.manifest is not None
    assert dataset.manifest.options["chat_date"] == "2024-07-26"
    for wrong in ("2024-7-26", "20240726", "today", "2024-02-30"):
        with pytest.raises(UsageError, match="--chat-date"):
            options(**CHATS, chat_date=wrong)
    with pytest.raises(UsageError, match="--chat-date"):
        options(chat_date="2024-07-26")


def test_a_run_with_another_date_is_not_resumed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chats(here / "c.jsonl", [USER] * 9)
    (here / "chat_template.jinja").write_text(DATED)
    leave_partial(monkeypatch, **CHATS, chat_date="2024-07-26")
    with pytest.raises(Refused, match="--chat-date"):
        convert(options(**CHATS, chat_date="2024-07-27"), InlineEngine())
    assert convert(options(**CHATS, chat_date="2024-07-26"), InlineEngine()).reused_shards


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
                        "template": "D{{ bos_token }}{{ boi_token }}{{ image_token }}{{ tools }}"
                        "{{ messages[0].content }}",
                    },
                    {"name": "tool_use", "template": "T{{ tools }}{{ messages[0].content }}"},
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
    assert [decode(ids) for ids, _ in rows_of(here / "out")] == ["D<i><m>Nonea", "T[1]a", "D<i><m>Nonea"]


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
