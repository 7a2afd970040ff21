"""Chats as records: other forms of messages, messages that a template drops, and records that are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from chats import (
    CHATML,
    CHATS,
    INLINE,
    PAIRS,
    PLAIN,
    USER,
    convert_chats,
    texts,
    write_chats,
    write_records,
    write_template,
)
from runs import Inline, error_of, masked_sequences, options_of

from bpe import Tokenizer

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytestmark = pytest.mark.usefixtures("folder")

TALK = [
    ("system", "Be short."),
    ("human", "What is 1 + 1?"),
    ("function_call", '{"name": "add", "arguments": {"a": 1}}'),
    ("function-response", "2"),
    ("gpt", "It is 2."),
]
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
AS_MESSAGES = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "What is 1 + 1?"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "content": "2"},
    {"role": "assistant", "content": "It is 2."},
]
# Of two roles alone. Others are dropped.
STRICT = """\
{%- for message in messages %}{% if message.role in ['user', 'assistant'] %}
{{ message.role }}: {{ message.content | trim }}<|endoftext|>
{% endif %}{% endfor %}"""


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_chats_in_sharegpt_form(form: str) -> None:
    write_template(
        PLAIN.replace("message['content'] +", "(message.content or message.tool_calls | tojson) +")
    )
    write_chats("c.jsonl", [AS_MESSAGES])
    convert_chats(output="expected")
    talk = [{"from": name, "value": value, "weight": None} for name, value in TALK]
    write_records(f"s.{form}", [{"conversations": talk}])
    summary = convert_chats(f"s.{form}", messages_field="conversations")
    assert masked_sequences("out") == masked_sequences("expected")
    assert summary.intake.messages == {"assistant": 2, "system": 1, "tool": 1, "user": 1}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "human", "content": "a"}, {"role": "gpt", "content": "b"}], "dropped"),
        ([*USER, {"role": "gpt", "content": "a"}], "dropped"),  # another message has the same text
        ([{"role": "system", "content": "a"}], "dropped"),
        ([{"role": "user", "text": "a"}, {"role": "assistant", "text": "b"}], "dropped"),
        ([{"speaker": "user", "content": "a"}], "no role"),
        ([{"from": "function_call", "value": "add(1)"}], "no messages"),
        (None, "no messages"),
    ],
)
def test_records_that_vanished_among_empty_ones(messages: Any, reason: str) -> None:
    """They counted as empty documents, or were written without a turn."""
    write_template(STRICT)
    write_chats("c.jsonl", [USER, messages])
    assert "c.jsonl: line 2 " in str(error_of(Inline(), **CHATS))
    summary = convert_chats(on_error="quarantine", output="rest")
    assert summary.intake.skipped == {reason: 1}
    assert len(texts("rest")) == 1
    assert len(Path("rest/quarantine.jsonl").read_text().splitlines()) == 1


def test_messages_that_a_template_drops_are_counted() -> None:
    write_template(STRICT)
    write_chats(
        "c.jsonl", [[{"role": "system", "content": "x"}, *USER, {"role": "tool", "content": "c"}], USER]
    )
    summary = convert_chats()
    assert summary.intake.dropped == {"system": 1, "tool": 1}
    assert any("dropped " in line and "1 system, 1 tool" in line for line in summary.lines())
    assert options_of("out")["dropped_messages"] == {"system": 1, "tool": 1}
    assert options_of("out")["messages"] == {"assistant": 2, "system": 1, "tool": 1, "user": 2}


@pytest.mark.parametrize(
    "template",
    [
        CHATML,
        "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}",
        "{% generation %}{{ messages | tojson(ensure_ascii=true) }}{% endgeneration %}",
        "{% for m in messages %}{{ m.content | upper | replace('A', '-') }}{% endfor %}",
        "{% for m in messages %}{{ m.content if m.content is string else m.content[0].text }}{% endfor %}",
        "{% for m in messages %}{% if m.content | length > 99 %}{{ raise_exception('long') }}{% endif %}"
        "{{ m.content[:1] if m.content | length > 10 else m.content }}{% endfor %}",
    ],
)
def test_messages_in_another_form_are_not_dropped(template: str) -> None:
    write_template("{% if messages %}" + template + "{% endif %}")
    thinking = {"role": "assistant", "content": "<think>b</think>b"}
    write_chats("c.jsonl", [[USER[0], thinking, {"role": "user", "content": " "}]])
    assert convert_chats().intake.dropped == {}


# -- refused


@pytest.mark.parametrize(
    ("template", "messages", "text"),
    [
        ("{{ messages[9].content.x }}", USER, "chat template"),
        (INLINE, [{"role": "system", "content": "a"}], "no system"),
        (PLAIN + "{{ messages | length }}", USER, "message 1 "),
        (CHATML, "hello", "messages"),
        (CHATML, ["hello"], "messages"),
        (CHATML, [{"role": "user", "content": "\ufdd0"}], "U+FDD0"),
        ("{{ messages.append(1) }}", USER, "append"),
        ("{{ ''.__class__.__mro__ }}", USER, "unsafe"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", USER, "recursion"),
    ],
)
def test_records_that_a_template_cannot_write(template: str, messages: Any, text: str) -> None:
    write_template(template)
    write_chats("c.jsonl", [messages])
    error = error_of(Inline(), **CHATS)
    assert error.exit_code == 3
    assert text in str(error)


@pytest.mark.parametrize(
    ("special", "content"),
    [(["\ue000"], "a\ue000"), (["<s>", "s>x"], "<s>x"), (["<s>", "<"], "<s>")],
    ids=["one-character", "after-the-cut", "before-the-cut"],
)
def test_special_tokens_that_cannot_be_ordinary_text(special: list[str], content: str) -> None:
    """They became the token."""
    usual = Tokenizer.load("tok.json")
    Tokenizer(usual.ordinary_entries, usual.merges, special).save("other.json")
    write_template(CHATML)
    write_chats("c.jsonl", [[{"role": "user", "content": content}, USER[1]]])
    assert error_of(Inline(), **CHATS, tokenizer="other.json").exit_code == 3
    convert_chats(tokenizer="other.json", special_in_text="encode")
    assert Tokenizer.load("other.json").decode(masked_sequences("out")[0][0]).count(content) == 1


def test_prompts_that_the_chat_does_not_begin_with() -> None:
    write_records("p.jsonl", [{"prompt": USER[:1], "completion": USER[1:]}])
    write_template("{{ messages | length }}" + PLAIN)
    assert error_of(Inline(), **PAIRS, inputs=["p.jsonl"]).exit_code == 3
    write_template(CHATML)
    write_records("p.jsonl", [{"prompt": USER[:1], "completion": "b"}])
    assert error_of(Inline(), **PAIRS, inputs=["p.jsonl"]).exit_code == 3


def test_a_template_that_is_missing_or_no_template() -> None:
    write_chats("c.jsonl", [USER])
    assert "--messages-field: " in str(error_of(Inline(), **CHATS))
    files = {"bad.jinja": "{% if %}", "empty.jinja": " \n"}
    for name, content in files.items():
        Path(name).write_text(content)
    Path("long.jinja").write_bytes(b"x" * (16 << 20) + b"x")
    os.mkfifo("pipe.jinja")
    for name in ("bad", "empty", "long", "pipe", "absent"):
        error = error_of(Inline(), **CHATS, chat_template=f"{name}.jinja")
        assert (error.exit_code, f"{name}.jinja" in str(error)) == (2, True), error
    Path("tokenizer_config.json").write_text("{")
    assert "tokenizer_config.json" in str(error_of(Inline(), **CHATS))


@pytest.mark.parametrize("name", ["c.csv", "c.jsonl"])
def test_a_name_twice_in_a_message(name: str) -> None:
    """In a table the last one counted."""
    write_template(CHATML)
    twice = '[{"role": "user", "role": "assistant", "content": "a"}]'
    quoted = json.dumps(twice).replace('\\"', '""')
    Path(name).write_text(f"messages\n{quoted}\n" if name == "c.csv" else f'{{"messages": {twice}}}\n')
    assert error_of(Inline(), **CHATS | {"inputs": [name]}).exit_code == 3
