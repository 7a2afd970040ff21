"""Chats by templates, against transformers' own rendering and masks where it is installed, and by hand elsewhere."""

from __future__ import annotations

import csv
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import END, make_documents
from stopped_runs import options

import flat_tokens
from bpe.tokenizer import Tokenizer
from convert import convert
from convert.errors import BadInput, UsageError
from corpus.chat_template import ChatTemplate
from corpus.marked_records import RecordFault
from corpus.rules import ChatRules
from engines.inline_engine import InlineEngine

jinja2 = pytest.importorskip("jinja2", reason="jinja2 is not installed")

CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' }}
    {%- if message['role'] == 'assistant' %}
        {%- generation %}{{- message['content'] + '<|endoftext|>' }}{%- endgeneration %}
    {%- else %}
        {{- message['content'] + '<|endoftext|>' }}
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
PLAIN = CHATML.replace("{%- generation %}", "").replace("{%- endgeneration %}", "")
INLINE = """\
{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}[INST] {{ message.content | trim }} [/INST]
{% elif message.role == 'assistant' %}{% generation %} {{ message.content | trim }}{{ eos_token }}{% endgeneration %}
{% else %}{{ raise_exception('no ' ~ message.role) }}{% endif %}{% endfor %}"""
TOOLS = """\
{%- if tools %}{{ tools | tojson }}{% endif %}
{%- set ns = namespace(n=0) %}
{%- for message in messages %}{% set ns.n = ns.n + 1 %}{% if ns.n > 90 %}{% break %}{% endif %}
<{{ message.role }} {{ ns.n }}>{{ message.reasoning_content }}{{ message.thinking }}
{% if message.role == 'assistant' %}{% generation %}{{ message.content }}
{% for call in message.tool_calls or [] %}{{ call | tojson(indent=2) }}{% endfor %}{% endgeneration %}{% else %}
{{- message.content -}}{% endif %}{% endfor %}"""


def make_chats(count: int, seed: int) -> list[list[dict[str, Any]]]:
    """Turns in many scripts, less the texts of special tokens."""
    rng = random.Random(seed)
    texts = iter(make_documents(count * 8, seed))
    chats = []
    for _ in range(count):
        turns: list[dict[str, Any]] = []
        for _ in range(rng.randint(1, 3)):
            for role in ("user", "assistant"):
                text = next(texts)
                for special in (END, "<|im_start|>", "<|endoftext"):
                    text = text.replace(special, "~")
                turns.append({"role": role, "content": text})
        chats.append(turns)
    return chats


def write_chats(path: Path, chats: list[Any], **more: Any) -> None:
    path.write_text("".join(json.dumps({"messages": chat, **more}) + "\n" for chat in chats))


def write_template(folder: Path, template: str) -> None:
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": template, "eos_token": {"content": END}, "bos_token": "<|im_start|>"})
    )


def rows_of(path: Path) -> list[Any]:
    array = flat_tokens.open(path).train
    return [(array.sequence(at).tolist(), array.trained_of(at).tolist()) for at in range(len(array))]


CHATS = {"messages_field": "messages", "inputs": ["c.jsonl"], "validation_fraction": 0.0}


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
    convert(options(**CHATS), InlineEngine())
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


def test_special_tokens_in_messages_stay_text(here: Path) -> None:
    tokenizer = Tokenizer.load(here / "tok.json")
    end = tokenizer.special_tokens[END]
    chat = [{"role": "user", "content": f"a{END}b"}, {"role": "assistant", "content": f"{END}c<|im_start|>"}]
    write_chats(here / "c.jsonl", [chat])
    write_template(here, CHATML)
    summary = convert(options(**CHATS), InlineEngine())
    ids, bits = rows_of(here / "out")[0]
    assert ids.count(end) == 2
    assert (
        tokenizer.decode(ids)
        == ChatTemplate(ChatRules(CHATML, (), ())).text_of(chat, None, "text", False).text.decode()
    )
    assert [id_ for id_, bit in zip(ids, bits, strict=True) if bit][-1] == end
    assert summary.intake.with_special == 1
    convert(options(**CHATS, output="encode", special_in_text="encode"), InlineEngine())
    assert rows_of(here / "encode")[0][0].count(end) == 4
    with pytest.raises(BadInput, match=r"a message holds the special token '<\|endoftext\|>'"):
        convert(options(**CHATS, output="error", special_in_text="error"), InlineEngine())


@pytest.mark.parametrize(
    ("special", "text", "left"),
    [(("\ue000",), "a\ue000", "\ue000"), (("<s>", "s>x"), "<s>x", "s>x"), (("<s>", "<"), "<s>", "<")],
    ids=["one-character", "behind-the-cut", "before-the-cut"],
)
def test_special_tokens_that_a_cut_does_not_make_text(special: tuple[str, ...], text: str, left: str) -> None:
    """They became the token in silence."""
    template = ChatTemplate(ChatRules(CHATML, (), special))
    chat = [{"role": "user", "content": text}, {"role": "assistant", "content": "b"}]
    with pytest.raises(RecordFault, match="which no cut makes ordinary text") as raised:
        template.text_of(chat, None, "text", False)
    assert repr(left) in str(raised.value)
    assert text in template.text_of(chat, None, "encode", False).text.decode()


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=5)
        return
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


def test_tables(here: Path) -> None:
    """The same dataset from tables, whose messages are lists of objects, or such lists as JSON."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    chats = make_chats(12, seed=9)
    chats[0][1]["tool_calls"] = [{"name": "f", "arguments": "{}"}]  # which the others have as null, then
    tools = [{"name": "f"}]
    write_chats(here / "c.jsonl", chats, tools=tools)
    rows = [{"messages": chat, "tools": tools} for chat in chats]
    as_text = [{name: json.dumps(value) for name, value in row.items()} for row in rows]
    write_table(here / "c.parquet", rows)
    write_table(here / "c.arrow", rows)
    write_table(here / "text.parquet", as_text)
    with (here / "c.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["tools", "messages"])
        writer.writeheader()
        writer.writerows(as_text)
    saved = here / "saved"  # as save_to_disk of the library datasets lays it out
    saved.mkdir()
    (here / "c.arrow").rename(saved / "data-00000-of-00001.arrow")
    (saved / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_indices_data_files": None})
    )
    (saved / "dataset_info.json").write_text("{}")
    write_template(
        here,
        CHATML
        + "{{ tools | tojson }}{% if 'tool_calls' in messages[1] %}{{ messages[1].tool_calls }}{% endif %}",
    )
    found = []
    for name in ("c.jsonl", "c.parquet", "saved", "text.parquet", "c.csv"):
        convert(options(**CHATS | {"inputs": [name]}, output=f"{name}.zarr"), InlineEngine())
        found.append(rows_of(here / f"{name}.zarr"))
    assert len(found[0]) == 12
    assert found == [found[0]] * 5


def test_messages_as_json_are_read_as_lines_are(here: Path) -> None:
    """A name that stands twice makes a bad record of both; of messages in a table the last one counted."""
    write_template(here, CHATML)
    twice = '[{"role": "user", "role": "assistant", "content": "a"}]'
    (here / "c.csv").write_text('messages\n"' + twice.replace('"', '""') + '"\n')
    (here / "c.jsonl").write_text(f'{{"messages": {twice}}}\n')
    for name in ("c.csv", "c.jsonl"):
        with pytest.raises(BadInput, match="it has the field 'role' twice"):
            convert(options(**CHATS | {"inputs": [name]}), InlineEngine())


PAIRS = {"prompt_field": "prompt", "completion_field": "completion", "inputs": ["p.jsonl"]}


@pytest.mark.parametrize("template", [CHATML, PLAIN, INLINE], ids=["chatml", "plain", "inline"])
def test_prompts_that_are_messages(here: Path, template: str) -> None:
    """All that the completion adds to the prompt is learned; the ids are those of the whole chat."""
    chats = make_chats(20, seed=11)
    write_chats(here / "c.jsonl", chats)
    cut = [(chat[:-1], chat[-1:]) for chat in chats]
    records: list[Any] = [{"prompt": prompt, "completion": completion} for prompt, completion in cut]
    texts = [{"prompt": "<|im_start|> a", "completion": " b<|im_start|>"}, {"prompt": "c", "completion": "d"}]
    mixed = [*records[:7], texts[0], *records[7:], texts[1]]
    (here / "p.jsonl").write_text("".join(json.dumps(record) + "\n" for record in mixed))
    convert(options(**PAIRS, output="before", validation_fraction=0.0, on_error="quarantine"), InlineEngine())
    assert len(rows_of(here / "before")) == 2  # no template, so no chats
    assert "no chat template" in (here / "before/quarantine.jsonl").read_text()
    write_template(here, template)
    convert(options(**CHATS, output="chats"), InlineEngine())
    convert(options(**PAIRS, validation_fraction=0.0), InlineEngine())
    found = rows_of(here / "out")
    assert [found.pop(7), found.pop()] == rows_of(here / "before")  # texts have the same ids beside chats
    tokenizer = Tokenizer.load(here / "tok.json")
    for (prompt, _), (ids, bits), (whole, _) in zip(cut, found, rows_of(here / "chats"), strict=True):
        assert ids == whole
        rules = ChatRules(template, (("eos_token", END), ("bos_token", "<|im_start|>")), ())
        before = ChatTemplate(rules).text_of(prompt, None, "text", False).text
        if template is not INLINE:
            before += b"<|im_start|>assistant\n"
        ends = [len(tokenizer.decode_bytes(ids[: at + 1])) for at in range(len(ids))]
        assert bits == [end > len(before) for end in ends]


def test_prompts_that_are_not_in_front(here: Path) -> None:
    rules = ChatRules(PLAIN + "{{ messages | length }}", (), ())
    with pytest.raises(RecordFault, match="the completion changes the text of the prompt"):
        ChatTemplate(rules).completion_of(USER[:1], USER[1:], None, "text", False)
    (here / "p.jsonl").write_text(json.dumps({"prompt": USER[:1], "completion": "b"}) + "\n")
    write_template(here, CHATML)
    with pytest.raises(BadInput, match="the field 'prompt' is a list, not a text"):
        convert(options(**PAIRS), InlineEngine())


USER = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
BAD = [
    ("{{ messages[9].content.x }}", USER, "the chat template refuses it: "),
    (INLINE, [{"role": "system", "content": "a"}], "the chat template refuses it: no system"),
    (PLAIN + "{{ messages | length }}", USER, "message 1 changes the text in front of it"),
    (CHATML, "hello", "its messages are no list of objects"),
    (CHATML, ["hello"], "its messages are no list of objects"),
    (CHATML, [{"role": "user", "content": "\ufdd0"}], "its messages hold U\\+FDD0"),
    ("{{ strftime_now('%d') }}", USER, "'strftime_now' is undefined"),
    ("{{ messages.append(1) }}", USER, "the chat template refuses it: .*append"),
    ("{{ ''.__class__.__mro__ }}", USER, "the chat template refuses it: .*unsafe"),
    (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        USER,
        "200,000 steps",
    ),
    (
        "{% for a in [1] recursive %}{% for b in range(99) %}{{ loop.length }}{% endfor %}"
        "{% if loop.depth < 5 %}{{ loop(range(99)) }}{% endif %}{% endfor %}",
        USER,
        "200,000 steps",
    ),
    (
        "{% macro f(n) %}{% if n %}{{ f(n - 1) ~ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        USER,
        "200,000 steps",
    ),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", USER, "the chat template refuses it: .*recursion"),
    (
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        USER,
        "16,777,216",
    ),
    (
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
        USER,
        "16,777,216",
    ),
    (
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = [n.s, n.s] | join %}{% endfor %}",
        USER,
        "16,777",
    ),
    (
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}"
        "{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}{% endfor %}",
        USER,
        "16,777",
    ),
    ("{{ 'a' * 999999999 }}", USER, "16,777,216 characters"),
    ("{{ 9 ** 999999999 }}", USER, "16,777,216 characters"),
    ("{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}", USER, "16,777,216 characters"),
]


@pytest.mark.parametrize(("template", "messages", "said"), BAD)
def test_what_is_refused(template: str, messages: Any, said: str) -> None:
    started = time.process_time()
    with pytest.raises(RecordFault, match=said) as error:
        ChatTemplate(ChatRules(template, (("bos_token", ""),), (END,))).text_of(messages, None, "text", False)
    assert "\n" not in str(error.value)
    assert time.process_time() - started < 20


def test_no_template(here: Path) -> None:
    write_chats(here / "c.jsonl", [USER])
    with pytest.raises(
        UsageError, match="--messages-field needs a chat template: beside tok.json there is no"
    ):
        convert(options(**CHATS), InlineEngine())
    with pytest.raises(UsageError, match="--chat-template absent: no such file"):
        convert(options(**CHATS, chat_template="absent"), InlineEngine())
    (here / "bad.jinja").write_text("{% if %}")
    with pytest.raises(
        UsageError, match=r"bad\.jinja: the chat template does not compile: Expected an expression"
    ):
        convert(options(**CHATS, chat_template="bad.jinja"), InlineEngine())
    (here / "chat_template.jinja").write_text(CHATML)
    (here / "c.jsonl").write_text('{"conversation": []}\n')
    with pytest.raises(BadInput, match=r"line 1 .*it has no field 'messages' \(there is conversation\)"):
        convert(options(**CHATS), InlineEngine())


def test_files_of_templates_that_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chats(here / "c.jsonl", [USER])
    (here / "tokenizer_config.json").write_text("{")
    with pytest.raises(UsageError, match=r"tokenizer_config\.json: not valid JSON"):
        convert(options(**CHATS), InlineEngine())
    monkeypatch.setattr("bpe.chat_rules.LARGEST_BYTES", 9)
    (here / "tokenizer_config.json").unlink()
    (here / "long.jinja").write_text("x" * 10)
    (here / "empty.jinja").write_text(" \n")
    os.mkfifo(here / "pipe.jinja")
    for name, said in (
        ("long", "more than 9 bytes are no template"),
        ("empty", "an empty template, by which all chats are empty"),
        ("pipe", "must be a file, which can be read again"),
    ):
        with pytest.raises(UsageError, match=rf"^{name}\.jinja: {said}"):
            convert(options(**CHATS, chat_template=f"{name}.jinja"), InlineEngine())


def test_an_output_that_would_replace_the_template(here: Path) -> None:
    write_chats(Path("c.jsonl"), make_chats(2, 1))
    Path("out.partial").mkdir()
    Path("out.partial/t.jinja").write_text(CHATML)
    with pytest.raises(
        UsageError, match=r"the chat template out\.partial/t\.jinja lies inside .*another output"
    ):
        convert(options(**CHATS, chat_template="out.partial/t.jinja", overwrite=True), InlineEngine())
    assert Path("out.partial/t.jinja").read_text() == CHATML
