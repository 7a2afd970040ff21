"""The chat template of a conversion: that of a file, or the tokenizer's own, with the special tokens that it names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from convert.errors import UsageError, printable
from convert.options import ConvertOptions
from corpus.errors import BadArgument
from corpus.rules import ChatRules

LARGEST_BYTES = 16 << 20
TEMPLATE_NAME, CONFIG_NAME = "chat_template.jinja", "tokenizer_config.json"
# What templates find beside the messages.
VARIABLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def with_chat_rules(options: ConvertOptions, tokenizer: Tokenizer) -> ConvertOptions:
    """The options with the template that they ask for; UsageError where there is none, or it does not compile.

    Prompts and completions need one only where they are lists of messages, so without --chat-template that of the
    tokenizer is taken if it is there and can be used.
    """
    from corpus.chat_template import compiled

    is_needed = options.messages_field is not None or options.chat_template is not None
    path = locate(options.tokenizer).path
    folder = path if path.is_dir() else path.parent
    config = _config(folder / CONFIG_NAME)
    if options.chat_template is not None:
        source = Path(options.chat_template)
        template = _read(source)
    else:
        source = folder / TEMPLATE_NAME
        template = _read(source)
        if template is None:
            source, template = folder / CONFIG_NAME, _of_config(config)
    if template is None:
        if not is_needed:
            return options
        if options.chat_template is not None:
            raise UsageError(f"--chat-template {printable(str(source))}: no such file")
        raise UsageError(
            f"--messages-field needs a chat template: beside {printable(str(path))} there is no {TEMPLATE_NAME}, nor "
            f"one in {CONFIG_NAME}; give --chat-template FILE"
        )
    try:
        compiled(template)
    except BadArgument as error:
        if not is_needed:
            return options
        raise UsageError(f"{printable(str(source))}: {error}") from None
    variables = tuple((name, text) for name in VARIABLES if (text := _content(config.get(name))) is not None)
    special = tuple(token.text for token in tokenizer.added_tokens if token.special)
    return replace(options, chat=ChatRules(template, variables, special))


def _read(path: Path) -> str | None:
    """The text of a file, None if it is not there."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"{printable(str(path))}: more than {LARGEST_BYTES} bytes are no template")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{printable(str(path))}: byte {error.start} is not valid UTF-8") from None


def _config(path: Path) -> dict[str, Any]:
    text = _read(path)
    try:
        found = {} if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{printable(str(path))}: not valid JSON ({printable(str(error))[:80]})") from None
    return found if isinstance(found, dict) else {}


def _of_config(config: dict[str, Any]) -> str | None:
    """The template itself, or that called default of several."""
    found = config.get("chat_template")
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None


def _content(token: Any) -> str | None:
    """The text of a token, which a configuration gives as such or as an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None
