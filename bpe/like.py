"""How text is to be prepared for a training "like" another tokenizer: a preset by name, or a tokenizer's file.

Of a file its normalizer and pre-tokenizer are read and nothing else, so its model may be of any kind.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer, shown
from bpe.hub import hub_name, locate
from bpe.normalizers import Normalizer
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from bpe.presets import Preset
    from bpe.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TextRule:
    """What is done to the text between special tokens before it is encoded: normalized, then pretokenized."""

    pretokenizer: Pretokenizer
    normalizer: Normalizer | None = None

    @staticmethod
    def of(tokenizer: Tokenizer) -> TextRule:
        """That of a tokenizer."""
        return TextRule(tokenizer.pretokenizer, tokenizer.parts.normalizer)


Like = str | os.PathLike[str] | TextRule  # a preset's name, or a path, or what was made of one


def rule_like(like: Like) -> TextRule:
    """The rule of a preset, of a tokenizer.json, of a folder or a hub's repository that holds one; a preset's name
    means the preset. A rule is returned as it is.

    str(rule_like("qwen-3").normalizer) -> "NFC". BadArgument for a name that is none; BadTokenizer and
    UnsupportedTokenizer, which name the JSON path, for a rule that can't be followed.
    """
    if isinstance(like, TextRule):
        return like
    from bpe.presets import OF_TEXT, PRESETS  # only where a name is looked up

    if not isinstance(like, (str, os.PathLike)):
        raise BadArgument(f"like must be a preset's name or the path of a tokenizer.json, got {shown(like)}")
    name = os.fspath(like)
    if isinstance(like, str):
        for preset in PRESETS:
            if _plain(name) in map(_plain, preset.names):
                return _rule_of_preset(preset)
    path = Path(name)
    if path.is_dir():
        path = path / "tokenizer.json"
    if not path.exists() and hub_name(name) is not None:
        path = locate(name).path
    if path.is_file():
        return _rule_of_file(path)
    if _plain(name) in map(_plain, OF_TEXT):
        raise BadArgument(
            f"like {shown(name)}: its entries are texts, not bytes, and this package trains byte-level vocabularies; "
            f"the presets are {_names_of_presets()}"
        )
    raise BadArgument(
        f"like {shown(name)} is neither a preset nor the path of a tokenizer.json; the presets are "
        f"{_names_of_presets()}"
    )


def _names_of_presets() -> str:
    """The first name of each preset, for a message."""
    from bpe.presets import PRESETS

    return ", ".join(preset.names[0] for preset in PRESETS)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _rule_of_preset(preset: Preset) -> TextRule:
    from bpe.formats.huggingface_normalizer import normalizer_from_json
    from bpe.formats.huggingface_pretokenizer import components_to_json, pretokenizer_from_json
    from bpe.pretokenization.components import Split

    normalizer = {"type": preset.normalizer} if preset.normalizer else None
    try:
        first = preset.components[0]
        if isinstance(first, Split) and first.dialect == "rust":
            pretokenizer = Pretokenizer.from_pattern(first.expression)
        else:
            pretokenizer = pretokenizer_from_json(components_to_json(preset.components))
        return TextRule(pretokenizer, normalizer_from_json(normalizer, "normalizer"))
    except BadTokenizer as error:
        raise type(error)(f"like {preset.names[0]}: {error}") from None


def _rule_of_file(path: Path) -> TextRule:
    from bpe.formats.by_path import read_file
    from bpe.formats.huggingface_normalizer import normalizer_from_json
    from bpe.formats.huggingface_pretokenizer import pretokenizer_from_json
    from bpe.formats.json_input import parse

    try:
        root = parse(read_file(path))
        if not isinstance(root, dict) or "pre_tokenizer" not in root:
            raise BadTokenizer("is no tokenizer.json: it has no pre_tokenizer")
        return TextRule(
            pretokenizer_from_json(root["pre_tokenizer"]),
            normalizer_from_json(root.get("normalizer"), "normalizer"),
        )
    except (BadTokenizer, UnsupportedTokenizer) as error:
        text = str(error)
        raise type(error)(text if text.startswith(str(path)) else f"{path}: {text}") from None
