"""Mistral's tekken.json: entries in base64 by rank, a pattern, and special tokens with the lowest IDs.

    {"config": {"pattern", "default_vocab_size", "default_num_special_tokens", "num_vocab_tokens", "version"},
     "vocab": [{"rank", "token_bytes", "token_str"}, ...], "special_tokens": [{"rank", "token_str", "is_control"}, ...]}

The ID of a special token is its rank. The ID of an entry is its rank plus the number of special tokens. The first
entries count, up to default_vocab_size tokens in total. Special tokens that are not listed have the names of
mistral-common, `<SPECIAL_n>`. Merges follow from the ranks, as in tiktoken's rank files. The pattern is in Rust's
dialect. Settings for images, audio and prompts are ignored.
"""

from __future__ import annotations

from typing import Any, Final

from bpe import _core
from bpe.errors import BadTokenizer
from bpe.formats import tiktoken
from bpe.formats.faults import must_be
from bpe.formats.json_input import expect_integer, expect_list, expect_object, parse
from bpe.parts import Parts

_TOP_LEVEL: Final = {
    *("config", "vocab", "special_tokens"),
    *("type", "version", "image", "multimodal", "audio", "model_settings_builder"),
}
_CONFIG: Final = frozenset(
    "pattern num_vocab_tokens default_vocab_size default_num_special_tokens version".split()
)
# The special tokens of files that list none, as in mistral-common.
_FIRST_SPECIAL: Final = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] "
    "[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()


def is_tekken(data: bytes) -> bool:
    """Return whether a JSON file is a tekken.json: it has token_bytes and no merges."""
    return b'"token_bytes"' in data and b'"merges"' not in data


def read(data: bytes) -> Parts:
    """Read a tekken.json. Errors name the JSON path."""
    root = expect_object(parse(data), "tekken.json", _TOP_LEVEL)
    config = expect_object(root.get("config"), "config", _CONFIG)
    pattern = config.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        raise must_be("config.pattern", "a regular expression", pattern)
    specials_count, vocab_size = (
        expect_integer(config.get(name), f"config.{name}")
        for name in ("default_num_special_tokens", "default_vocab_size")
    )
    entry_count = vocab_size - specials_count
    vocab = expect_list(root.get("vocab"), "vocab")
    if not 256 <= entry_count <= len(vocab):
        raise BadTokenizer(
            f"config.default_vocab_size: must leave 256 to {len(vocab)} entries after {specials_count} special tokens "
            f"(got {entry_count})"
        )
    specials = _special_tokens(root.get("special_tokens"), specials_count)
    lines: list[str] = []
    for index, item in enumerate(vocab[:entry_count]):
        if (
            not isinstance(item, dict)
            or item.get("rank") != index
            or not isinstance(item.get("token_bytes"), str)
        ):
            raise must_be(f"vocab[{index}]", f"an object with rank {index} and token_bytes", item)
        lines.append(f"{item['token_bytes']} {index + specials_count}")
    file = _core.EntryFile.read_rank_file("\n".join(lines).encode())
    if file.fault is not None:
        index = file.fault[1]
        raise must_be(f"vocab[{index}].token_bytes", "base64", vocab[index]["token_bytes"])
    return tiktoken.from_entries(file, pattern, specials)


def _special_tokens(value: Any, count: int) -> dict[str, int]:
    if value is None:
        texts = dict(enumerate(_FIRST_SPECIAL[:count]))
    else:
        texts = {}
        for index, item in enumerate(expect_list(value, "special_tokens")):
            rank = item.get("rank") if isinstance(item, dict) else None
            text = item.get("token_str") if isinstance(item, dict) else None
            if type(rank) is not int or not 0 <= rank < count or rank in texts or not isinstance(text, str):
                wanted = f"an object with token_str and a unique rank below {count}"
                raise must_be(f"special_tokens[{index}]", wanted, item)
            texts[rank] = text
    specials = {texts.get(rank, f"<SPECIAL_{rank}>"): rank for rank in range(count)}
    if len(specials) < count:
        raise BadTokenizer("special_tokens: duplicate text")
    return specials
