"""Text preparation for training "like" another tokenizer, given by the name of a preset or the path of a tokenizer.

The normalizer and the pre-tokenizer of a file are read, so its model may be of any kind. For a BPE model, the text
rules of its entries are read too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bpe.decoders import ByteFallback, Decoder, Fuse
from bpe.decoders import Replace as DecoderReplace
from bpe.decoders import Strip as DecoderStrip
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer, shown
from bpe.hub import hub_name, locate
from bpe.normalizers import NFC, Lowercase, Normalizer, Prepend, Replace
from bpe.pretokenization.components import ByteLevel, Split
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import LOWER_BLOCK, TextRules

if TYPE_CHECKING:
    from bpe.presets import Preset
    from bpe.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TextRule:
    """The normalizer and the pre-tokenizer of the text between special tokens."""

    pretokenizer: Pretokenizer
    normalizer: Normalizer | None = None
    # Rules of a vocabulary that is not purely byte-level. Counts do not depend on them.
    text_rules: TextRules | None = field(default=None, compare=False)
    decoder: Decoder | None = field(default=None, compare=False)

    @property
    def of_text(self) -> bool:
        """Whether entries are text, else bytes."""
        return TextRules.of_text(self.text_rules)

    @staticmethod
    def of(tokenizer: Tokenizer) -> TextRule:
        """Return the rule of a tokenizer."""
        return TextRule(
            tokenizer.pretokenizer, tokenizer.parts.normalizer, tokenizer.text_rules, tokenizer.decoder
        )


_FILES: Final = ("tokenizer.json", "tekken.json", "tokenizer.model")

Like = str | os.PathLike[str] | TextRule  # a preset's name, a path, or a rule


def rule_like(like: Like) -> TextRule:
    """Return the rule of a preset or a tokenizer. A rule is returned unchanged.

    like: name of a preset, or path of a tokenizer.json, tekken.json or SentencePiece model, a folder with one of them,
        or a repository of the Hub. The name of a preset takes precedence over a path.

    str(rule_like("qwen-3").normalizer) -> "NFC".

    Raise BadArgument for an unknown name. Raise BadTokenizer or UnsupportedTokenizer, which name the JSON path, for a
    rule that is not supported.
    """
    if isinstance(like, TextRule):
        return like
    from bpe.presets import LIKE_CLIP, LIKE_GEMMA, LIKE_LLAMA, PRESETS  # deferred: only names need it

    rules: list[tuple[tuple[str, ...], Callable[[], TextRule]]] = [
        *((preset.names, partial(_rule_of_preset, preset)) for preset in PRESETS),
        (LIKE_LLAMA, partial(_rule_of_words, has_prefix=True)),
        (LIKE_GEMMA, partial(_rule_of_words, has_prefix=False)),
        (LIKE_CLIP, _rule_of_clip),
    ]
    if isinstance(like, str):
        for names, rule in rules:
            if _plain(like) in map(_plain, names):
                return rule()
    if isinstance(like, (str, os.PathLike)):
        path = Path(like)
        if path.is_dir():
            path = next((path / name for name in _FILES if (path / name).is_file()), path / _FILES[0])
        if not path.exists() and hub_name(os.fspath(like)) is not None:
            path = locate(os.fspath(like)).path
        if path.is_file():
            return _rule_of_file(path)
    raise BadArgument(
        f"like: must be a preset or the path of a tokenizer file (got {shown(like)}). The presets are "
        f"{', '.join(names[0] for names, _ in rules)}."
    )


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _rule_of_preset(preset: Preset) -> TextRule:
    from bpe.formats.huggingface_components import (
        components_to_json,
        normalizer_from_json,
        pretokenizer_from_json,
    )

    normalizer = {"type": preset.normalizer} if preset.normalizer else None
    try:
        first = preset.components[0]
        if isinstance(first, Split) and first.dialect == "rust":
            pretokenizer = Pretokenizer.from_pattern(first.expression)
        else:
            pretokenizer = pretokenizer_from_json(components_to_json(preset.components))
        return TextRule(pretokenizer, normalizer_from_json(normalizer, "normalizer"))
    except BadTokenizer as error:
        raise type(error)(f"like: preset {preset.names[0]}: {error}") from None


def _rule_of_words(has_prefix: bool) -> TextRule:
    """Return the rule of SentencePiece: the space before a word becomes U+2581, and bytes encode unknown characters."""
    spaces = Replace(" ", LOWER_BLOCK)
    stripped = (DecoderStrip(" ", 1, 0),) if has_prefix else ()
    decoder = Decoder((DecoderReplace(LOWER_BLOCK, " "), ByteFallback(), Fuse(), *stripped))
    return TextRule(
        Pretokenizer((Split(LOWER_BLOCK, "text", "MergedWithNext"),)),
        Normalizer((Prepend(LOWER_BLOCK), spaces) if has_prefix else (spaces,)),
        TextRules(byte_fallback=True, unk_token="<unk>", fuse_unk=True),
        decoder,
    )


def _rule_of_clip() -> TextRule:
    """Return the rule of CLIP: words in lower case without spaces, with a suffix on the last byte of each."""
    words = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    return TextRule(
        Pretokenizer((Split(words, "oniguruma", "Removed", invert=True), ByteLevel(add_prefix_space=False))),
        Normalizer((NFC, Replace(r"\s+", " ", True), Lowercase())),
        TextRules(end_of_word_suffix="</w>", byte_level=True),
    )


def _rule_of_file(path: Path) -> TextRule:
    from bpe.formats.by_path import load, read_file
    from bpe.formats.huggingface import text_rules_of
    from bpe.formats.huggingface_components import (
        decoder_from_json,
        normalizer_from_json,
        pretokenizer_from_json,
    )
    from bpe.formats.json_input import parse
    from bpe.formats.sentencepiece import is_model
    from bpe.formats.tekken import is_tekken
    from bpe.tokenizer import Tokenizer

    try:
        data = read_file(path)
        if is_model(data) or is_tekken(data):
            return TextRule.of(Tokenizer.from_parts(load(path, None, None)))
        root = parse(data)
        if not isinstance(root, dict) or "pre_tokenizer" not in root:
            raise BadTokenizer("pre_tokenizer: missing. Pass a tokenizer.json.")
        normalizer = normalizer_from_json(root.get("normalizer"), "normalizer")
        text_rules = None
        if isinstance(model := root.get("model"), dict) and model.get("type", "BPE") == "BPE":
            text_rules = text_rules_of(root)
        if text_rules is None:
            return TextRule(pretokenizer_from_json(root["pre_tokenizer"]), normalizer)
        pretokenizer = pretokenizer_from_json(root["pre_tokenizer"], as_text=not text_rules.byte_level)
        return TextRule(pretokenizer, normalizer, text_rules, decoder_from_json(root.get("decoder")))
    except (BadTokenizer, UnsupportedTokenizer) as error:
        text = str(error)
        raise type(error)(text if text.startswith(str(path)) else f"{path}: {text}") from None
