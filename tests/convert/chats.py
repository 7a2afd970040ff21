"""Chats, their templates, and the files that hold them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from runs import Inline, convert, masked_sequences, sample_documents, tokenizer

from convert import Summary

# Llama, Qwen and Mistral have the structure of the published templates.
_FILES = Path(__file__).parents[1].joinpath("data", "chat_templates").glob("*.jinja")
TEMPLATES = {path.stem: path.read_text(encoding="utf-8").rstrip("\n") for path in _FILES}
CHATML, INLINE, TOOLS = (TEMPLATES[name] for name in ("chatml", "inline", "tools"))
PLAIN = CHATML.replace("{%- generation %}", "").replace("{%- endgeneration %}", "")
USER = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def make_chats(count: int, seed: int) -> list[list[dict[str, Any]]]:
    """Chats of one to three turns, without the text of special tokens."""
    rng, chats = random.Random(seed), []
    texts = iter([text.replace("<|", "~") for text in sample_documents(count * 8, seed)])
    for _ in range(count):
        roles = ["user", "assistant"] * rng.randint(1, 3)
        chats.append([{"role": role, "content": next(texts)} for role in roles])
    return chats


def write_records(name: str, records: list[Any]) -> None:
    """Write JSON Lines, or a table with a column per field."""
    if name.endswith(("parquet", "arrow")):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.Table.from_pylist(records)
        if name.endswith("parquet"):
            pyarrow.parquet.write_table(table, name, row_group_size=5)
        else:
            with pyarrow.ipc.new_stream(name, table.schema) as writer:
                writer.write_table(table, max_chunksize=5)
    else:
        Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def write_chats(name: str, chats: list[Any], **more: Any) -> None:
    write_records(name, [{"messages": chat, **more} for chat in chats])


def write_template(template: str, folder: str = ".") -> None:
    tokens = {"eos_token": {"content": "<|endoftext|>"}, "bos_token": "<|im_start|>"}
    Path(folder, "tokenizer_config.json").write_text(json.dumps({"chat_template": template, **tokens}))


CHATS: dict[str, Any] = {"inputs": ["c.jsonl"], "messages_field": "messages", "validation_fraction": 0.0}
PAIRS: dict[str, Any] = {
    "prompt_field": "prompt",
    "completion_field": "completion",
    "validation_fraction": 0.0,
}


def convert_chats(name: str = "c.jsonl", **more: Any) -> Summary:
    """Convert the chats of a file to `out`."""
    return convert(Inline(), **CHATS | {"inputs": [name]} | more)


def convert_pairs(name: str = "p.jsonl", **more: Any) -> Summary:
    """Convert the prompts and completions of a file to `out`."""
    return convert(Inline(), **PAIRS | {"inputs": [name]} | more)


def texts(output: str = "out") -> list[str]:
    return [tokenizer().decode(ids) for ids, _ in masked_sequences(output)]
