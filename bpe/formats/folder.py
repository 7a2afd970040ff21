"""Read a folder without tokenizer.json by the tokenizer class that its configuration names.

vocab.json with merges.txt, or a SentencePiece model, hold entries and merges. The class decides the pattern, the
normalizer and the default special tokens; tokenizer_config.json, special_tokens_map.json and added_tokens.json add
tokens. The result is the tokenizer.json that `transformers` builds from the same files, and `huggingface` reads it:

    {"tokenizer_class": "Qwen2Tokenizer"} -> NFC, Qwen's pattern, "<|endoftext|>" as an added token
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats import huggingface, sentencepiece
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.faults import must_be, unsupported, within
from bpe.formats.json_input import parse
from bpe.parts import Parts
from bpe.vocabulary import LOWER_BLOCK

Json = dict[str, Any]

CONFIG: Final = "tokenizer_config.json"
MODEL_CONFIG: Final = "config.json"
SPECIAL_TOKENS: Final = "special_tokens_map.json"
ADDED_TOKENS: Final = "added_tokens.json"
COMPANIONS: Final = (CONFIG, MODEL_CONFIG, SPECIAL_TOKENS, ADDED_TOKENS)

_ATTRIBUTES: Final = tuple(f"{name}_token" for name in "bos eos unk sep pad cls mask".split())
_FLAGS: Final = ("single_word", "lstrip", "rstrip")
_QWEN2: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CLIP: Final = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def _of(kind: str, **fields: Any) -> Json:
    """Return a component in tokenizer.json's form. Missing fields have the default of Hugging Face tokenizers."""
    return {"type": kind, **fields}


def _tokens(**texts: str) -> dict[str, str]:
    return {f"{name}_token": text for name, text in texts.items()}


@dataclass(frozen=True)
class _Class:
    """tokens: default special tokens by attribute. split: the Split before ByteLevel. around: attributes of the
    tokens that RobertaProcessing puts before and after a text."""

    tokens: Mapping[str, str]
    split: Json | None = None
    normalizer: Json | None = None
    around: tuple[str, str] | None = None
    suffix: str = ""


_END: Final = "<|endoftext|>"
_NFC: Final = _of("NFC")
_GPT2: Final = _Class(_tokens(bos=_END, eos=_END, unk=_END))
_ROBERTA: Final = _Class(
    _tokens(bos="<s>", eos="</s>", unk="<unk>", sep="</s>", pad="<pad>", cls="<s>", mask="<mask>"),
    around=("cls_token", "sep_token"),
)
_OF_PAIRS: Final = {
    "GPT2Tokenizer": _GPT2,
    "WhisperTokenizer": _GPT2,
    "CodeGenTokenizer": _GPT2,
    "RobertaTokenizer": _ROBERTA,
    "BartTokenizer": _ROBERTA,
    "GPTNeoXTokenizer": _Class({**_GPT2.tokens, "pad_token": "<|padding|>"}, normalizer=_NFC),
    "Qwen2Tokenizer": _Class(
        _tokens(eos=_END, unk=_END, pad=_END),
        _of("Split", pattern={"Regex": _QWEN2}, behavior="Isolated"),
        _NFC,
    ),
    "CLIPTokenizer": _Class(
        _tokens(bos="<|startoftext|>", eos=_END, unk=_END, pad=_END),
        _of("Split", pattern={"Regex": _CLIP}, behavior="Removed", invert=True),
        _of(
            "Sequence",
            normalizers=[_NFC, _of("Replace", pattern={"Regex": r"\s+"}, content=" "), _of("Lowercase")],
        ),
        ("bos_token", "eos_token"),
        "</w>",
    ),
}
_OF_MODELS: Final = {
    "LlamaTokenizer": _tokens(bos="<s>", eos="</s>", unk="<unk>"),
    "GemmaTokenizer": _tokens(bos="<bos>", eos="<eos>", unk="<unk>", pad="<pad>", mask="<mask>"),
}
# For a config.json with only a model type.
_BY_TYPE: Final = {
    **dict.fromkeys(("gpt2", "gptj", "gpt_neo", "opt", "codegen", "phi", "starcoder2"), "GPT2Tokenizer"),
    **dict.fromkeys(("roberta", "bart", "longformer"), "RobertaTokenizer"),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_moe"), "Qwen2Tokenizer"),
    **dict.fromkeys(("gpt_neox", "olmo", "mamba"), "GPTNeoXTokenizer"),
    "whisper": "WhisperTokenizer",
    "clip": "CLIPTokenizer",
    "gemma": "GemmaTokenizer",
    "gemma2": "GemmaTokenizer",
}


@dataclass(frozen=True)
class Settings:
    """The configuration next to a vocabulary. name: the class without "Fast"; None if no file names one. model_type:
    from config.json."""

    name: str | None = None
    model_type: str | None = None
    config: Json = field(default_factory=dict)
    special_tokens: Json = field(default_factory=dict)
    added_tokens: Json = field(default_factory=dict)

    @property
    def adds_tokens(self) -> bool:
        """Whether any file lists tokens."""
        return bool(self.special_tokens or self.added_tokens or self.config.get("added_tokens_decoder"))

    @property
    def is_empty(self) -> bool:
        """Whether the configuration gives neither a class, nor a model type, nor tokens."""
        return self.name is None and self.model_type is None and not self.adds_tokens


def read_settings(paths: Iterable[Path]) -> Settings:
    """Read the configuration in these files; the error names the file."""
    found: dict[str, Json] = {}
    for path in paths:
        with within(path):
            value = parse(path.read_bytes())
        if not isinstance(value, dict):
            raise must_be(str(path), "an object", value)
        found[path.name] = value
    config, model = found.get(CONFIG, {}), found.get(MODEL_CONFIG, {})
    model_type = model.get("model_type") if isinstance(model.get("model_type"), str) else None
    kind = config.get("tokenizer_class") or model.get("tokenizer_class") or _BY_TYPE.get(model_type or "")
    if not isinstance(kind, (str, type(None))):
        raise must_be(f"{CONFIG}: tokenizer_class", "a text", kind)
    name = None if kind is None else kind.removesuffix("Fast")
    return Settings(name, model_type, config, found.get(SPECIAL_TOKENS, {}), found.get(ADDED_TOKENS, {}))


def read_pair(vocab: Json, merges: list[tuple[bytes, bytes]], settings: Settings) -> Parts:
    """Build the tokenizer of a vocab.json and a merges.txt by its class."""
    kind = _OF_PAIRS.get(settings.name or "")
    if kind is None:
        raise _unknown_class(settings, _OF_PAIRS)
    named, tokens = _tokens_of(settings, kind.tokens, vocab)
    ids = {token["content"]: token["id"] for token in tokens}
    prefix = bool(settings.config.get("add_prefix_space")) and settings.name != "CLIPTokenizer"
    use_regex = kind.split is None or settings.name == "CLIPTokenizer"
    level = _of("ByteLevel", add_prefix_space=prefix, use_regex=use_regex)
    around = None
    if kind.around is not None:
        first, last = (named.get(attribute) for attribute in kind.around)
        if first is None or last is None:
            raise _missing(kind.around, settings)
        around = _of(
            "RobertaProcessing", sep=[last, ids[last]], cls=[first, ids[first]], add_prefix_space=prefix
        )
    model = {
        "unk_token": named.get("unk_token") if kind.suffix else None,
        "end_of_word_suffix": kind.suffix or None,
    }
    return _read(
        vocab,
        [[to_characters(left), to_characters(right)] for left, right in merges],
        model,
        tokens,
        normalizer=kind.normalizer,
        pre_tokenizer=level if kind.split is None else _of("Sequence", pretokenizers=[kind.split, level]),
        post_processor=_whisper_template(settings, named, {**vocab, **ids})
        if settings.name == "WhisperTokenizer"
        else _template(settings, named, ids) or around,
        decoder=_of("ByteLevel"),
    )


def read_sentencepiece(data: bytes, settings: Settings) -> Parts:
    """Build the tokenizer of a SentencePiece model by its class. Without a class, IDs equal `sentencepiece`'s."""
    if settings.name is None and not settings.adds_tokens:
        return sentencepiece.read(data)
    if settings.name not in _OF_MODELS:
        raise _unknown_class(settings, _OF_MODELS)
    model = sentencepiece.read_model(data)
    sentencepiece.check_model(model)
    vocab = {text: id_ for id_, (text, _, _) in enumerate(model.pieces)}
    pieces = [
        {"content": text, "normalized": False, "special": kind == sentencepiece.CONTROL}
        for text, _, kind in model.pieces
        if kind in (sentencepiece.CONTROL, sentencepiece.USER_DEFINED)
    ]
    named, tokens = _tokens_of(settings, _OF_MODELS[settings.name], vocab, pieces)
    ids = {token["content"]: token["id"] for token in tokens}
    prefix = settings.config.get("add_prefix_space")
    scheme = "never" if prefix is False else "always" if settings.config.get("legacy") else "first"
    to_space = _of("Replace", pattern={"String": LOWER_BLOCK}, content=" ")
    decoders = [to_space, _of("ByteFallback"), _of("Fuse")]
    normalizer, unk_token = None, None
    if settings.name == "LlamaTokenizer":
        pre_tokenizer = _of("Metaspace", replacement=LOWER_BLOCK, prepend_scheme=scheme, split=False)
        if scheme != "never":
            decoders.append(_of("Strip", content=" ", start=1, stop=0))
    else:
        normalizer = _of("Replace", pattern={"String": " "}, content=LOWER_BLOCK)
        pre_tokenizer = _of("Split", pattern={"String": " "}, behavior="MergedWithPrevious")
        unk_token = named.get("unk_token")
    return _read(
        vocab,
        [[*split] for piece in vocab for split in sentencepiece.splits(piece, vocab)],
        {"unk_token": unk_token, "fuse_unk": True, "byte_fallback": True},
        tokens,
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        post_processor=_template(settings, named, ids),
        decoder=_of("Sequence", decoders=decoders),
    )


def _read(
    vocab: Json, merges: list[list[str]], model: Json, tokens: list[Json], **parts: Json | None
) -> Parts:
    root = {"version": "1.0", "added_tokens": tokens, **parts}
    root["model"] = {"type": "BPE", **model, "vocab": vocab, "merges": merges}
    return huggingface.read(json.dumps(root, ensure_ascii=False).encode())


def _unknown_class(settings: Settings, known: Mapping[str, object]) -> UnsupportedTokenizer:
    found = f"got {shown(settings.name)}"
    if settings.name is None:
        found = f"got none, and model_type {shown(settings.model_type)}"
    return UnsupportedTokenizer(
        f"{CONFIG}: tokenizer_class: unsupported without tokenizer.json ({found}). Supported: {', '.join(known)}. "
        "Save the tokenizer as tokenizer.json with transformers' save_pretrained."
    )


def _missing(names: Iterable[str], settings: Settings) -> BadTokenizer:
    return BadTokenizer(f"{CONFIG}: {' and '.join(names)} must be set for {settings.name}")


def _tokens_of(
    settings: Settings,
    defaults: Mapping[str, str],
    vocab: Mapping[str, int],
    pieces: list[Json] | None = None,
) -> tuple[dict[str, str], list[Json]]:
    """Return special tokens as attribute -> text, and the added tokens in tokenizer.json's form.

    Tokens are in the order in which `transformers` adds them, which determines IDs outside the vocabulary: listed
    tokens by ID, special tokens by attribute, extra tokens.
    """
    config, listed = settings.config, settings.config.get("added_tokens_decoder")
    if config.get("split_special_tokens"):
        raise unsupported(f"{CONFIG}: split_special_tokens", True, "false")
    mapped = settings.special_tokens if listed is None else {}
    values = {**defaults, **config, **mapped}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    if isinstance(more := mapped.get("extra_special_tokens"), list) and isinstance(extra, list):
        extra = extra + [each for each in more if each not in extra]
    elif isinstance(more, dict):
        extra = more
    given = {_text_of(value, name) for name in _ATTRIBUTES if (value := {**config, **mapped}.get(name))}
    given |= {_text_of(each, "extra_special_tokens") for each in extra}
    if (
        not {"extra_special_tokens", "additional_special_tokens"} & {*config}
        and "extra_special_tokens" not in mapped
    ):
        extra = pieces if pieces is not None else mapped.get("additional_special_tokens") or []
    others = {
        name: values[name]
        for name in values
        if name.endswith("_token") and name not in (*_ATTRIBUTES, "add_bos_token", "add_eos_token")
    }
    if isinstance(extra, dict):
        others, extra = {**others, **extra}, []
    named = {name: values.get(name) for name in _ATTRIBUTES} | others
    texts = {name: _text_of(value, name) for name, value in named.items() if isinstance(value, (str, dict))}
    by_id: list[tuple[int, Json]] = []
    if listed is not None:
        if not isinstance(listed, dict) or not all(id_.isdecimal() for id_ in listed):
            raise must_be(f"{CONFIG}: added_tokens_decoder", "an object of IDs and tokens", listed)
        by_id = [(int(id_), _token(token, "added_tokens_decoder")) for id_, token in listed.items()]
    else:
        for text, id_ in settings.added_tokens.items():
            if type(id_) is not int:
                raise must_be(f"{ADDED_TOKENS}: {shown(text)}", "an ID", id_)
            by_id.append((id_, _token({"content": text, "special": text in given}, ADDED_TOKENS)))
    tokens = {token["content"]: token for _, token in sorted(by_id, key=lambda each: each[0])}
    fixed = {*tokens}  # for other tokens, the last flags count
    for name, text in texts.items():
        if text in fixed:
            tokens[text] |= {"special": True}
        else:
            tokens[text] = _token(named[name], name, special=True)
    for each in extra:
        token = _token(each, "extra_special_tokens", special=isinstance(each, str))
        if token["content"] not in fixed:
            tokens[token["content"]] = token | {
                "special": token["special"] or token["content"] in texts.values()
            }
    if settings.name == "Qwen2Tokenizer":  # adds all its special tokens again, without flags
        for text in (*texts.values(), *(_text_of(each, "extra_special_tokens") for each in extra)):
            tokens[text] = _token(text, text, special=True)
    next_id = len(vocab)
    for text, token in tokens.items():
        token["id"] = vocab.get(text, next_id)
        next_id += text not in vocab
    for id_, token in by_id:
        if tokens[token["content"]]["id"] != id_:
            raise BadTokenizer(
                f"{ADDED_TOKENS if listed is None else CONFIG}: ID of {shown(token['content'])} must be "
                f"{tokens[token['content']]['id']}, as in transformers (got {id_}). Correct the file."
            )
    return texts, list(tokens.values())


def _text_of(value: Any, where: str) -> str:
    text = value.get("content") if isinstance(value, dict) else value
    if not isinstance(text, str) or not text:
        raise must_be(where, "a token", value)
    return text


def _token(value: Any, where: str, special: bool = False) -> Json:
    """Return a token in tokenizer.json's form, without its ID."""
    given = value if isinstance(value, dict) else {}
    special = bool(given.get("special", special))
    return {
        "content": _text_of(value, where),
        **{flag: bool(given.get(flag, False)) for flag in _FLAGS},
        "normalized": bool(given.get("normalized", not special)),
        "special": special,
    }


def _template(settings: Settings, named: Mapping[str, str], ids: Mapping[str, int]) -> Json | None:
    """Build the template for add_bos_token and add_eos_token; None if the configuration has neither."""
    flags = [settings.config.get(name) for name in ("add_bos_token", "add_eos_token")]
    if flags == [None, None]:
        return None
    begin, end = (
        [named[name]] if flag and name in named else []
        for flag, name in zip(flags, ("bos_token", "eos_token"), strict=True)
    )
    return _around(begin, end, ids)


def _whisper_template(settings: Settings, named: Mapping[str, str], ids: Mapping[str, int]) -> Json:
    """Build the template of a transcript. A token that the vocabulary lacks becomes the unknown token."""
    config = settings.config
    if config.get("language") is not None:
        raise unsupported(f"{CONFIG}: language", config["language"], "null")
    begin = ["<|startoftranscript|>"]
    if (task := config.get("task")) is not None:
        begin.append(f"<|{task}|>")
    if not config.get("predict_timestamps"):
        begin.append("<|notimestamps|>")
    end = named.get("eos_token")
    unknown = named.get("unk_token")
    if end is None or unknown is None:
        raise _missing(("eos_token", "unk_token"), settings)
    return _around([token if token in ids else unknown for token in begin], [end], ids)


def _around(begin: list[str], end: list[str], ids: Mapping[str, int]) -> Json:
    """Return a template that puts tokens before and after a text."""

    def items(type_id: int, text: str) -> list[Json]:
        before, after = (
            [{"SpecialToken": {"id": token, "type_id": type_id}} for token in tokens]
            for tokens in (begin, end)
        )
        return [*before, {"Sequence": {"id": text, "type_id": type_id}}, *after]

    tokens = {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (*begin, *end)}
    return _of(
        "TemplateProcessing", single=items(0, "A"), pair=items(0, "A") + items(1, "B"), special_tokens=tokens
    )
