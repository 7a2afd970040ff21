"""Mistral's tekken.json: entries as base64 by rank, an expression as pattern, special tokens in front of the ids.

    {"config": {"pattern", "default_vocab_size", "default_num_special_tokens", "num_vocab_tokens", "version"},
     "vocab": [{"rank", "token_bytes", "token_str"}, ...], "special_tokens": [{"rank", "token_str", "is_control"}, ...]}

The id of a special token is its rank, that of an entry its rank and the number of special tokens more; of the entries
only so many count that all are default_vocab_size. Special tokens that the list leaves out are `<SPECIAL_n>`, as
mistral-common names them. Merges follow from the ranks, as in tiktoken's rank files; the expression is in Rust's
dialect. Settings for images, audio and prompts are passed over.
"""

from __future__ import annotations

from typing import Any, Final

from bpe import _core
from bpe.errors import BadTokenizer
from bpe.formats import tiktoken
from bpe.formats.faults import must_be
from bpe.formats.json_input import expect_list, expect_object, parse
from bpe.parts import Parts

_PASSED_OVER: Final = {"type", "version", "image", "multimodal", "audio", "model_settings_builder"}
_TOP_LEVEL: Final = {"config", "vocab", "special_tokens"} | _PASSED_OVER
_CONFIG: Final = {
    "pattern",
    "num_vocab_tokens",
    "default_vocab_size",
    "default_num_special_tokens",
    "version",
}
# Of files that list no special tokens, as mistral-common has them.
_FIRST_SPECIAL: Final = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)


def is_tekken(data: bytes) -> bool:
    """Whether a JSON file says that it is one: its entries have bytes, those of a tokenizer.json merges."""
    return b'"token_bytes"' in data and b'"merges"' not in data


def read(data: bytes) -> Parts:
    """The tokenizer of a tekken.json; errors name the JSON path."""
    root = expect_object(parse(data), "tekken.json", _TOP_LEVEL)
    config = expect_object(root.get("config"), "config", _CONFIG)
    pattern = config.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        raise must_be("config.pattern", "a regular expression", pattern)
    specials_count = _count(config, "default_num_special_tokens")
    entry_count = _count(config, "default_vocab_size") - specials_count
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


def _count(config: dict[str, Any], name: str) -> int:
    value = config.get(name)
    if type(value) is not int or value < 0:
        raise must_be(f"config.{name}", "an integer of at least 0", value)
    return value
