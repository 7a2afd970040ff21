"""The components around the model of a tokenizer.json: pre_tokenizer, post_processor, decoder.

Honoured are: ByteLevel without prefix space, Split by an expression or a text (matches isolated, or what is
not matched removed), Digits, and sequences of them; what else there is, is refused with its JSON path and name.
"""

from __future__ import annotations

from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, printable, shown
from bpe.formats.json_input import expect, expect_list, expect_object
from bpe.formats.oniguruma import POSSESSIVE_INTERVAL, from_oniguruma, to_oniguruma
from bpe.patterns import HUGGINGFACE_SPELLINGS, PATTERNS, pattern_name
from bpe.pretokenizer import Pretokenizer, Stage, Unmatched

_BYTE_LEVEL: Final = {"type", "add_prefix_space", "trim_offsets", "use_regex"}
_WHOLE_TEXT: Final = r"[\s\S]+"


def _type(value: Any, path: str) -> str:
    name = value.get("type") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise BadTokenizer(f"{path} must be an object with a type, found {shown(value)}")
    return name


def _sequence(value: Any, path: str, key: str) -> list[tuple[Any, str]]:
    """(component, its JSON path) of a Sequence, of a single component, or of null."""
    if value is None:
        return []
    if _type(value, path) != "Sequence":
        return [(value, path)]
    expect_object(value, path, {"type", key})
    return [
        item
        for index, each in enumerate(expect_list(value.get(key), f"{path}.{key}"))
        for item in _sequence(each, f"{path}.{key}[{index}]", key)
    ]


def pretokenizer_from_json(value: Any) -> Pretokenizer:
    """The stages of pre_tokenizer, whose last component must be ByteLevel."""
    components = _sequence(value, "pre_tokenizer", "pretokenizers")
    if not components or _type(*components[-1]) != "ByteLevel":
        found = _type(*components[-1]) if components else "none"
        raise UnsupportedTokenizer(
            f"pre_tokenizer ends with {printable(found[:60])}; supported: ByteLevel, alone or as the last of a Sequence"
        )
    stages = [stage for component, path in components for stage in _stages(component, path)]
    stages = stages or [Stage(_WHOLE_TEXT, "keep")]
    pretokenizer = Pretokenizer(tuple(stages))
    if pretokenizer.core_pattern is None:
        _ = pretokenizer.compiled
    return pretokenizer


def _stages(component: Any, path: str) -> list[Stage]:
    name = _type(component, path)
    if name == "ByteLevel":
        expect_object(component, path, _BYTE_LEVEL)
        expect(component.get("add_prefix_space", True), [False], f"{path}.add_prefix_space")
        expect(component.get("use_regex", True), [False, True], f"{path}.use_regex")
        return [Stage("gpt2")] if component.get("use_regex", True) else []
    if name == "Digits":
        expect_object(component, path, {"type", "individual_digits"})
        expect(component.get("individual_digits", False), [False, True], f"{path}.individual_digits")
        return [Stage(r"\p{N}" if component.get("individual_digits", False) else r"\p{N}+", "keep")]
    if name == "Split":
        return [_split_stage(component, path)]
    raise UnsupportedTokenizer(f"{path} is {shown(name)}; supported: ByteLevel, Split, Digits")


def _split_stage(component: dict[str, Any], path: str) -> Stage:
    expect_object(component, path, {"type", "pattern", "behavior", "invert"})
    way = (component.get("behavior"), component.get("invert", False))
    if way not in (("Isolated", False), ("Removed", True)):
        raise UnsupportedTokenizer(
            f"{path}: behavior {shown(way[0])} with invert {shown(way[1])}; "
            "supported: Isolated with false, Removed with true"
        )
    pattern = component.get("pattern")
    if not isinstance(pattern, dict) or list(pattern) not in (["Regex"], ["String"]):
        raise BadTokenizer(
            f'{path}.pattern must be {{"Regex": ...}} or {{"String": ...}}, found {shown(pattern)}'
        )
    (kind, text), *_ = pattern.items()
    if not isinstance(text, str) or not text:
        raise BadTokenizer(
            f"{path}.pattern.{kind} is {shown(text)}: must be a text of at least one character"
        )
    unmatched: Unmatched = "keep" if way[0] == "Isolated" else "drop"
    if kind == "String":
        import regex  # 10 ms that the usual files need not pay

        return Stage(regex.escape(text, special_only=True), unmatched)
    # `{1,3}+` is a repetition to Oniguruma, so tiktoken's spelling of cl100k is not cl100k in this file.
    if (name := pattern_name(text)) and not POSSESSIVE_INTERVAL.search(text):
        return Stage(name)
    try:
        return Stage(from_oniguruma(text), unmatched)
    except UnsupportedTokenizer as error:
        raise UnsupportedTokenizer(f"{path}.{error}") from None


def pretokenizer_to_json(pretokenizer: Pretokenizer) -> dict[str, Any]:
    """The pre_tokenizer that cuts as the stages do."""
    if pretokenizer.stages == (Stage("gpt2"),):
        return _byte_level(use_regex=True)
    splits = []
    for stage in pretokenizer.stages:
        name = stage.expression if stage.expression in PATTERNS else None
        # Where text between matches is an error, a reader that keeps it cuts all other text alike and loses none.
        keep = stage.unmatched != "drop" or name is not None
        expression = HUGGINGFACE_SPELLINGS[name] if name else to_oniguruma(stage.expression)
        splits.append(
            {
                "type": "Split",
                "pattern": {"Regex": expression},
                "behavior": "Isolated" if keep else "Removed",
                "invert": not keep,
            }
        )
    return {"type": "Sequence", "pretokenizers": [*splits, _byte_level(use_regex=False)]}


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def template_from_json(value: Any, special_tokens: dict[str, int]) -> dict[str, Any] | None:
    """TemplateProcessing as it stands in the file, or None; ByteLevel, which moves offsets only, is dropped."""
    template: dict[str, Any] | None = None
    for component, path in _sequence(value, "post_processor", "processors"):
        name = _type(component, path)
        if name == "ByteLevel":
            expect_object(component, path, _BYTE_LEVEL)
            continue
        if name != "TemplateProcessing" or template is not None:
            raise UnsupportedTokenizer(
                f"{path} is {shown(name)}; supported: ByteLevel, one TemplateProcessing"
            )
        template = expect_object(component, path, {"type", "single", "pair", "special_tokens"})
        named = template.get("special_tokens")
        if not isinstance(named, dict):
            raise BadTokenizer(f"{path}.special_tokens must be an object, found {shown(named)}")
        for text, token in named.items():
            ids = token.get("ids") if isinstance(token, dict) else None
            if text in special_tokens and ids != [special_tokens[text]]:
                raise BadTokenizer(
                    f"{path}.special_tokens[{shown(text)}] has ids {shown(ids)}, not [{special_tokens[text]}]"
                )
    return template


def require_byte_level_decoder(value: Any) -> None:
    """Nothing, or UnsupportedTokenizer: ids are decoded by the byte alphabet, as ByteLevel does."""
    components = _sequence(value, "decoder", "decoders")
    if len(components) != 1 or _type(*components[0]) != "ByteLevel":
        found = ", ".join(_type(*each) for each in components) or "none"
        raise UnsupportedTokenizer(f"decoder is {printable(found[:200])}; supported: ByteLevel")
    expect_object(components[0][0], components[0][1], _BYTE_LEVEL)
