"""Write and read tokenizer.json files for tests."""

from __future__ import annotations

import json

from bpe.formats import huggingface
from bpe.tokenizer import Tokenizer

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
WITH_REGEX = BYTE_LEVEL | {"use_regex": True}


def split(expression, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: expression}, "behavior": behavior, "invert": invert}


def sequence(*components):
    return {"type": "Sequence", "pretokenizers": list(components)}


def read(data):
    return Tokenizer.from_parts(huggingface.read(data))


def load(value):
    return read(json.dumps(value).encode())


def set_at(value, path, new):
    *parents, last = path
    for key in parents:
        value = value[key]
    value[last] = new
