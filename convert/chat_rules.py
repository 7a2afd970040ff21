"""The chat template of a tokenizer, or of a file in its place, with the special tokens that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from corpus.errors import BadArgument, printable
from corpus.rules import ChatRules
from stores import NO_OPTIONS, StoreDenied, StoreNotFound, is_url, open_store, shown_url, split_key
from stores.url import parse

LARGEST_BYTES = 16 << 20
TEMPLATE_NAME, CONFIG_NAME = "chat_template.jinja", "tokenizer_config.json"
TOKEN_NAME = "_token"  # how the names end of what templates find beside the messages: bos_token, image_token


def chat_rules(
    name: str,
    tokenizer: Tokenizer,
    template_file: str | None,
    is_needed: bool,
    storage_options: Mapping[str, str] = NO_OPTIONS,
) -> ChatRules | None:
    """The rules by a template file, or by the template beside the tokenizer of this name, a path or the URL of a file.

    BadArgument where there is none, or it does not compile. Not is_needed: None where that of the tokenizer can't be
    used. storage_options: of the stores that URLs name.
    """
    from corpus.chat_template import compiled

    def read(folder: str, file_name: str) -> tuple[str, str | None]:
        return _read(folder, file_name, storage_options)

    folder = _folder_of(name)
    try:
        config_place, text = read(folder, CONFIG_NAME)
        config = _config(config_place, text)
        tool_template = ""
        if template_file is not None:
            source, template = read(*_split(template_file))
        else:
            source, template = read(folder, TEMPLATE_NAME)
            if template is None:
                source = config_place
                template, tool_template = _of_config(config)
    except StoreDenied:  # what some stores say of what is not there
        if is_needed or template_file is not None:
            raise
        return None
    if template is None:
        if template_file is not None:
            raise BadArgument(f"--chat-template {printable(source)}: no such file")
        if not is_needed:
            return None
        raise BadArgument(
            f"--messages-field needs a chat template: beside {printable(shown_url(name))} there is no {TEMPLATE_NAME}, "
            f"nor one in {CONFIG_NAME}; give --chat-template FILE"
        )
    if not template.strip():
        raise BadArgument(f"{printable(source)}: an empty template, by which all chats are empty")
    try:
        for one in filter(None, (template, tool_template)):
            compiled(one)
    except BadArgument as error:
        if not is_needed and template_file is None:
            return None
        raise BadArgument(f"{printable(source)}: {error}") from None
    special = tuple(token.text for token in tokenizer.added_tokens if token.special)
    return ChatRules(template, _variables(config), special, tool_template)


def _folder_of(name: str) -> str:
    """Where a tokenizer lies, a folder's path or URL."""
    if is_url(name):
        return split_key(name)[0]
    path = locate(name).path
    return str(path if path.is_dir() else path.parent)


def _split(place: str) -> tuple[str, str]:
    return split_key(place) if is_url(place) else (str(Path(place).parent), Path(place).name)


def _read(folder: str, name: str, storage_options: Mapping[str, str]) -> tuple[str, str | None]:
    """Where a file of a folder lies, for messages, and its text, None if it is not there.

    BadArgument for a pipe: read again it would be empty."""
    path = Path(folder) / name
    place = parse(folder).below(name).shown if is_url(folder) else str(path)
    try:
        if is_url(folder):
            data = bytes(open_store(folder, storage_options).read_begin(name, LARGEST_BYTES + 1)[0])
        else:
            if path.exists() and not path.is_file():
                raise BadArgument(f"{printable(place)}: must be a file, which can be read again")
            with path.open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, StoreNotFound):
        return place, None
    if len(data) > LARGEST_BYTES:
        raise BadArgument(f"{printable(place)}: more than {LARGEST_BYTES} bytes are no template")
    try:
        return place, data.decode()
    except UnicodeDecodeError as error:
        raise BadArgument(f"{printable(place)}: byte {error.start} is not valid UTF-8") from None


def _config(place: str, text: str | None) -> dict[str, Any]:
    try:
        found = {} if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{printable(place)}: not valid JSON ({printable(str(error))[:80]})") from None
    return found if isinstance(found, dict) else {}


def _of_config(config: dict[str, Any]) -> tuple[str | None, str]:
    """The template itself, or those called default and tool_use of several, as (template, tool_template)."""
    found = config.get("chat_template")
    named: dict[Any, Any] = {"default": found}
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
    template, with_tools = (
        text if isinstance(text := named.get(name), str) else None for name in ("default", "tool_use")
    )
    return template, with_tools or ""


def _variables(config: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The tokens that a configuration names, those of `extra_special_tokens` too: (("bos_token", "<s>"), ...)."""
    extra = config.get("extra_special_tokens")
    named = {name: token for name, token in config.items() if name.endswith(TOKEN_NAME)}
    named |= extra if isinstance(extra, dict) else {}
    return tuple((name, text) for name, token in named.items() if (text := _content(token)) is not None)


def _content(token: Any) -> str | None:
    """The text of a token, which a configuration gives as such or as an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None
