"""Messages in other forms, messages that a template drops, and runs that train nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import CHATML, CHATS, PLAIN, USER, rows_of, write_chats, write_table, write_template
from naive_conversion import END
from stopped_runs import options

import flat_tokens
from convert import Summary, convert
from convert.__main__ import main
from convert.errors import BadInput
from tokenmill.engines.inline_engine import InlineEngine

pytest.importorskip("jinja2", reason="jinja2 is not installed")

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
WITH_TOOLS = PLAIN.replace("message['content'] +", "(message.content or message.tool_calls | tojson) +")
# Of two roles alone; others are dropped without a word.
STRICT = """\
{%- for message in messages %}{% if message.role in ['user', 'assistant'] %}
{{ message.role }}: {{ message.content | trim }}<|endoftext|>
{% endif %}{% endfor %}"""


def run(inputs: str = "c.jsonl", **more: Any) -> Summary:
    return convert(options(**{**CHATS, "inputs": [inputs], **more}), InlineEngine())


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_chats_in_sharegpt_form_that_became_nothing(here: Path, form: str) -> None:
    write_template(here, WITH_TOOLS)
    write_chats(here / "c.jsonl", [AS_MESSAGES])
    run(output="expected")
    record = {"conversations": [{"from": name, "value": value, "weight": None} for name, value in TALK]}
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        write_table(here / "s.parquet", [record])
    else:
        (here / "s.jsonl").write_text(json.dumps(record) + "\n")
    summary = run(f"s.{form}", messages_field="conversations")
    assert rows_of(here / "out") == rows_of(here / "expected")
    assert summary.intake.messages == {"assistant": 2, "system": 1, "tool": 1, "user": 1}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "human", "content": "a"}, {"role": "gpt", "content": "b"}], "dropped"),
        ([*USER, {"role": "gpt", "content": "a"}], "dropped"),  # its text is elsewhere, too
        ([{"role": "system", "content": "a"}], "dropped"),
        ([{"role": "user", "text": "a"}, {"role": "assistant", "text": "b"}], "dropped"),
        ([{"speaker": "user", "content": "a"}], "no role"),
        ([{"from": "function_call", "value": "add(1)"}], "no messages"),
        (None, "no messages"),
    ],
)
def test_records_that_vanished_among_empty_ones(here: Path, messages: Any, reason: str) -> None:
    """They were counted as empty documents, or written without a turn, and the dataset was verified."""
    write_template(here, STRICT)
    write_chats(here / "c.jsonl", [USER, messages])
    with pytest.raises(BadInput, match=r"c\.jsonl.*line 2"):
        run()
    summary = run(on_error="quarantine", output="rest")
    assert summary.intake.skipped == {reason: 1}
    assert len(rows_of(here / "rest")) == 1
    assert len((here / "rest/quarantine.jsonl").read_text().splitlines()) == 1


def test_turns_that_a_template_drops_are_counted(here: Path) -> None:
    write_template(here, STRICT)
    chats = [[{"role": "system", "content": "user"}, *USER, {"role": "tool", "content": "c"}], USER]
    write_chats(here / "c.jsonl", chats)
    summary = run()
    assert summary.intake.dropped == {"system": 1, "tool": 1}
    assert any("dropped " in line and "1 system, 1 tool" in line for line in summary.lines())
    manifest = flat_tokens.open(here / "out").manifest
    assert manifest is not None
    assert manifest.options["dropped_messages"] == {"system": 1, "tool": 1}
    assert manifest.options["messages"] == {"assistant": 2, "system": 1, "tool": 1, "user": 2}


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
def test_turns_that_are_written_in_another_form_are_not_dropped(here: Path, template: str) -> None:
    write_template(here, "{% if messages %}" + template + "{% endif %}")
    chat = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>b</think>b"},
        {"role": "user", "content": " "},
    ]
    write_chats(here / "c.jsonl", [chat])
    assert run().intake.dropped == {}


def test_images_are_no_dropped_turns(here: Path) -> None:
    image = [{"type": "image", "url": "a.png"}]
    write_template(
        here,
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}<image>{% endif %}{% endfor %}",
    )
    write_chats(here / "c.jsonl", [[{"role": "user", "content": image}, *USER]])
    assert run().intake.dropped == {}


def test_prompts_that_are_messages_in_sharegpt_form(here: Path) -> None:
    write_template(here, STRICT)
    pairs = {"prompt_field": "p", "completion_field": "c", "messages_field": None}
    human, gpt = {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}
    (here / "p.jsonl").write_text(
        json.dumps({"p": [human], "c": [gpt]})
        + "\n"
        + json.dumps({"p": USER[:1], "c": [{"role": "gpt", "content": "b"}]})
        + "\n"
    )
    summary = run("p.jsonl", **pairs, on_error="skip")
    assert summary.intake.skipped == {"dropped": 1}
    write_chats(here / "c.jsonl", [USER])
    run(output="expected")
    assert rows_of(here / "out")[0][0] == rows_of(here / "expected")[0][0]


WARNED: list[tuple[str, list[Any], list[str], list[str]]] = [
    (CHATML, [{"messages": []}], [], ["no tokens", "1 document empty"]),
    (STRICT, [{"m": USER}], ["--on-error", "skip"], ["no tokens", "1 record", "no such field"]),
    (
        PLAIN,
        [{"messages": [{"role": "user", "content": "a"}, {"role": "bot", "content": "b"}]}],
        [],
        ["no token ", "1 bot, 1 user"],
    ),
]


@pytest.mark.parametrize(("template", "records", "more", "parts"), WARNED)
def test_a_run_that_trains_nothing_ended_without_a_word(
    here: Path,
    template: str,
    records: list[Any],
    more: list[str],
    parts: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_template(here, template)
    (here / "c.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    command = "c.jsonl --messages-field messages --tokenizer tok.json --output out --workers 1".split()
    assert main([*command, *more]) == 0
    (line,) = [
        line for line in capfd.readouterr().err.splitlines() if "warning: " in line and "token" in line
    ]
    assert all(part in line for part in parts)


def test_completions_that_are_all_empty(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "p.jsonl").write_text('{"p": "a", "c": ""}\n' * 2)
    command = (
        "p.jsonl --prompt-field p --completion-field c --tokenizer tok.json --workers 1 --output".split()
    )
    assert main([*command, "out"]) == 0
    assert "warning: out: no token contributes to the loss" in capfd.readouterr().err
    assert main([*command, "ends", "--append-token", END]) == 0
    assert "no token contributes to the loss" not in capfd.readouterr().err
