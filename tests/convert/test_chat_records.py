"""Chats as records: in tables and JSON, prompts that are messages, special tokens in messages, what is refused."""

from __future__ import annotations

import csv
import json
import os
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
from convert.errors import BadInput, UsageError
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.inputs.chat_template import ChatTemplate
from tokenmill.inputs.intake import RecordFault
from tokenmill.inputs.rules import ChatRules
from tokenmill.stores import open_store


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
    with pytest.raises(BadInput):
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
    with pytest.raises(RecordFault) as raised:
        template.text_of(chat, None, "text", False)
    assert repr(left) in str(raised.value)
    assert text in template.text_of(chat, None, "encode", False).text.decode()


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
        with pytest.raises(BadInput):
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
    with pytest.raises(RecordFault):
        ChatTemplate(rules).completion_of(USER[:1], USER[1:], None, "text", False)
    (here / "p.jsonl").write_text(json.dumps({"prompt": USER[:1], "completion": "b"}) + "\n")
    write_template(here, CHATML)
    with pytest.raises(BadInput):
        convert(options(**PAIRS), InlineEngine())


BAD = [
    ("{{ messages[9].content.x }}", USER, "chat template"),
    (INLINE, [{"role": "system", "content": "a"}], "no system"),
    (PLAIN + "{{ messages | length }}", USER, "message 1 "),
    (CHATML, "hello", "messages"),
    (CHATML, ["hello"], "messages"),
    (CHATML, [{"role": "user", "content": "\ufdd0"}], "U\\+FDD0"),
    ("{{ strftime_now('%d') }}", USER, "--chat-date"),
    ("{{ messages.append(1) }}", USER, ".*append"),
    ("{{ ''.__class__.__mro__ }}", USER, ".*unsafe"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", USER, ".*recursion"),
]


@pytest.mark.parametrize(("template", "messages", "said"), BAD)
def test_what_is_refused(template: str, messages: Any, said: str) -> None:
    with pytest.raises(RecordFault, match=said) as error:
        ChatTemplate(ChatRules(template, (("bos_token", ""),), (END,))).text_of(messages, None, "text", False)
    assert "\n" not in str(error.value)


def test_no_template(here: Path) -> None:
    write_chats(here / "c.jsonl", [USER])
    with pytest.raises(UsageError, match="--messages-field.*tok.json"):
        convert(options(**CHATS), InlineEngine())
    with pytest.raises(UsageError, match="--chat-template"):
        convert(options(**CHATS, chat_template="absent"), InlineEngine())
    (here / "bad.jinja").write_text("{% if %}")
    with pytest.raises(UsageError, match=r"bad\.jinja"):
        convert(options(**CHATS, chat_template="bad.jinja"), InlineEngine())
    (here / "chat_template.jinja").write_text(CHATML)
    (here / "c.jsonl").write_text('{"conversation": []}\n')
    with pytest.raises(BadInput, match="line 1"):
        convert(options(**CHATS), InlineEngine())


def test_files_of_templates_that_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chats(here / "c.jsonl", [USER])
    (here / "tokenizer_config.json").write_text("{")
    with pytest.raises(UsageError, match=r"tokenizer_config\.json"):
        convert(options(**CHATS), InlineEngine())
    monkeypatch.setattr("convert.chat_rules.MAX_FILE_BYTES", 9)
    (here / "tokenizer_config.json").unlink()
    (here / "long.jinja").write_text("x" * 10)
    (here / "empty.jinja").write_text(" \n")
    os.mkfifo(here / "pipe.jinja")
    for name in ("long", "empty", "pipe"):
        with pytest.raises(UsageError, match=rf"^.*{name}\.jinja: "):
            convert(options(**CHATS, chat_template=f"{name}.jinja"), InlineEngine())


def test_an_output_that_would_replace_the_template(here: Path) -> None:
    write_chats(Path("c.jsonl"), make_chats(2, 1))
    Path("out.partial").mkdir()
    Path("out.partial/t.jinja").write_text(CHATML)
    with pytest.raises(UsageError, match=r"out\.partial/t\.jinja"):
        convert(options(**CHATS, chat_template="out.partial/t.jinja", overwrite=True), InlineEngine())
    assert Path("out.partial/t.jinja").read_text() == CHATML


def test_a_tokenizer_and_its_template_on_a_store(here: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    write_chats(Path("c.jsonl"), make_chats(12, 5))
    Path("model").mkdir()
    write_template(Path("model"), INLINE)
    Path("model/tok.json").write_bytes(Path("tok.json").read_bytes())
    Path("other.jinja").write_text(CHATML)
    url = "memory://chats/model"
    for name in ("tok.json", "tokenizer_config.json"):
        open_store(url).put(name, Path("model", name).read_bytes())
    open_store("memory://chats").put("other.jinja", CHATML.encode())
    for output, tokenizer, template in (
        ("own", "model/tok.json", None),
        ("own-stored", f"{url}/tok.json", None),
        ("other", "model/tok.json", "other.jinja"),
        ("other-stored", f"{url}/tok.json", "memory://chats/other.jinja"),
    ):
        convert(options(**CHATS, tokenizer=tokenizer, chat_template=template, output=output), InlineEngine())
    assert rows_of(Path("own")) == rows_of(Path("own-stored")) != rows_of(Path("other"))
    assert rows_of(Path("other")) == rows_of(Path("other-stored"))
    absent = "memory://chats/absent.jinja"
    with pytest.raises(UsageError, match=f"^{absent}: "):
        convert(
            options(**CHATS, tokenizer=f"{url}/tok.json", chat_template=absent, output="c"), InlineEngine()
        )
    open_store(url).delete(["tokenizer_config.json"])
    with pytest.raises(UsageError, match=f"--messages-field: .*{url}/tok.json.*chat_template.jinja"):
        convert(options(**CHATS, tokenizer=f"{url}/tok.json", output="c"), InlineEngine())
