"""The chat template of a tokenizer, or of a file in its place, with the special tokens that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.hub import download, locate
from bpe.tokenizer import Tokenizer
from convert.errors import BadArgument, not_regular, printable
from tokenmill.inputs.rules import ChatRules
from tokenmill.stores import NO_OPTIONS, StoreDenied, StoreNotFound, is_url, open_store, shown_url, split_key
from tokenmill.stores.url import parse

LARGEST_BYTES = 16 << 20
TEMPLATE_NAME, CONFIG_NAME, TOKENS_NAME = (
    "chat_template.jinja",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
TEMPLATES = ("default", "tool_use")  # the named templates that transformers chooses without being asked
TEMPLATE_FILES = (  # the later ones come first
    ("default", TEMPLATE_NAME),
    *((name, f"additional_chat_templates/{name}.jinja") for name in TEMPLATES),
)
TOKEN_NAME = "_token"  # the names of variables end so: bos_token, image_token


def chat_rules(
    name: str,
    tokenizer: Tokenizer,
    template_file: str | None,
    is_needed: bool,
    storage_options: Mapping[str, str] = NO_OPTIONS,
    has_date: bool = False,
) -> ChatRules | None:
    """Return the chat rules of a template file, or without one of the templates that transformers would choose.

    name: the tokenizer, as `convert` takes it. is_needed: raise BadArgument if the tokenizer has no usable template;
    otherwise return None. storage_options: of the stores that URLs name. has_date: whether the user gave a date for
    templates that write one.
    """
    from tokenmill.inputs.chat_template import compiled, writes_date

    def read(folder: str, file_name: str) -> tuple[str, str | None]:
        return _read(folder, file_name, storage_options)

    folder = folder_of(name)
    try:
        config_path, config, tokens = configuration(folder, storage_options)
        templates: dict[str, tuple[str, str]] = {}  # name -> path, text
        if template_file is not None:
            path, text = read(*_split(template_file))
            if text is None:
                raise BadArgument(f"{printable(path)}: no such file. Check --chat-template.")
            templates["default"] = path, text
        else:
            for one, file_name in TEMPLATE_FILES:
                path, text = read(folder, file_name)
                if text is not None:
                    templates[one] = path, text
            templates = templates or {one: (config_path, text) for one, text in _of_config(config).items()}
    except StoreDenied:  # some stores answer so for an object that does not exist
        if is_needed or template_file is not None:
            raise
        return None
    if not templates:
        if not is_needed:
            return None
        raise BadArgument(
            f"--messages-field: requires a chat template, but {printable(shown_url(name))} has none ({TEMPLATE_NAME}, "
            f"{CONFIG_NAME}). Pass --chat-template FILE."
        )
    for path, text in templates.values():
        try:
            if not text.strip():
                raise BadArgument("the chat template is empty")
            compiled(text)
            if is_needed and not has_date and writes_date(text):
                raise BadArgument("the chat template writes the current date. Pass --chat-date YYYY-MM-DD.")
        except BadArgument as error:
            if not is_needed and template_file is None:
                return None
            raise BadArgument(f"{printable(path)}: {error}") from None
    special = tuple(token.text for token in tokenizer.added_tokens if token.special)
    default, with_tools = (templates.get(one, ("", ""))[1] for one in TEMPLATES)
    return ChatRules(default, variables({**config, **tokens}), special, with_tools)


def configuration(
    folder: str, storage_options: Mapping[str, str]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the path of tokenizer_config.json, its content, and the special tokens that override it."""
    path, config = _config(*_read(folder, CONFIG_NAME, storage_options))
    # transformers reads the map only if the configuration does not list the added tokens.
    has_tokens = "added_tokens_decoder" in config
    tokens = {} if has_tokens else _config(*_read(folder, TOKENS_NAME, storage_options))[1]
    return path, config, tokens


def folder_of(name: str) -> str:
    """Return the folder of a tokenizer, a path or URL, with all files that chats need."""
    if is_url(name):
        return split_key(name)[0]
    path, source = locate(name)
    if source is not None:
        download(source, [CONFIG_NAME, TOKENS_NAME, *(file_name for _, file_name in TEMPLATE_FILES)])
    return str(path if path.is_dir() else path.parent)


def _split(place: str) -> tuple[str, str]:
    return split_key(place) if is_url(place) else (str(Path(place).parent), Path(place).name)


def _read(folder: str, name: str, storage_options: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the path of a file, for messages, and its text, None if there is no such file.

    Raise BadArgument for a pipe, which would be empty if it were read again."""
    path = Path(folder) / name
    place = parse(folder).below(name).shown if is_url(folder) else str(path)
    try:
        if is_url(folder):
            data = bytes(open_store(folder, storage_options).read_begin(name, LARGEST_BYTES + 1)[0])
        else:
            if path.exists() and not path.is_file():
                raise not_regular(place)
            with path.open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, StoreNotFound):
        return place, None
    if len(data) > LARGEST_BYTES:
        raise BadArgument(f"{printable(place)}: must be at most {LARGEST_BYTES} bytes")
    try:
        return place, data.decode()
    except UnicodeDecodeError as error:
        raise BadArgument(f"{printable(place)}: invalid UTF-8 at byte {error.start}") from None


def _config(path: str, text: str | None) -> tuple[str, dict[str, Any]]:
    try:
        found = {} if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{printable(path)}: invalid JSON ({printable(str(error))[:80]})") from None
    return path, found if isinstance(found, dict) else {}


def _of_config(config: dict[str, Any]) -> dict[str, str]:
    """Return the templates of a configuration by name; a single one is called default."""
    found = config.get("chat_template")
    listed = found if isinstance(found, list) else [{"name": "default", "template": found}]
    named = {one.get("name"): one.get("template") for one in listed if isinstance(one, dict)}
    return {name: text for name in TEMPLATES if isinstance(text := named.get(name), str)}


def variables(config: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the tokens that a configuration names, also in `extra_special_tokens`: (("bos_token", "<s>"), ...)."""
    extra = config.get("extra_special_tokens")
    named = {name: token for name, token in config.items() if name.endswith(TOKEN_NAME)}
    named |= extra if isinstance(extra, dict) else {}
    return tuple((name, text) for name, token in named.items() if (text := _content(token)) is not None)


def _content(token: Any) -> str | None:
    """The text of a token, which a configuration gives as such or as an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None
