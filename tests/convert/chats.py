"""Chats, the templates that write them, and the files that hold them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from naive_conversion import END, make_documents

import flat_tokens

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


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=5)
        return
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


USER = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
