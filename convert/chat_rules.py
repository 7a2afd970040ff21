"""The rules for records, with the chat template of a tokenizer or of a file, and the special tokens that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.hub import download, locate
from bpe.tokenizer import Tokenizer
from convert.errors import BadArgument, not_regular, printable
from convert.options import ConvertOptions
from tokenmill.inputs.rules import ChatRules, IntakeRules, MarkRules
from tokenmill.stores import StoreDenied, StoreNotFound, is_url, open_store, shown_url, split_key
from tokenmill.stores.url import parse

MAX_FILE_BYTES = 16 << 20
CONFIG_NAME, TOKENS_NAME = "tokenizer_config.json", "special_tokens_map.json"
TEMPLATES = ("default", "tool_use")  # the named templates that transformers selects automatically
TEMPLATE_FILES = (  # later files win
    ("default", "chat_template.jinja"),
    *((name, f"additional_chat_templates/{name}.jinja") for name in TEMPLATES),
)


def intake_rules(options: ConvertOptions, tokenizer: Tokenizer) -> IntakeRules:
    """Return the rules for records, with the chat template if there is a loss mask."""
    marks = None
    if options.has_mask:
        fields = (options.prompt_field or "", options.completion_field or "", options.messages_field or "")
        marks = MarkRules(*fields, chat_rules(options, tokenizer), options.chat_date or "")
    return IntakeRules(
        options.text_field,
        options.on_error,
        options.max_errors,
        "replace" if options.replace_invalid else "error",
        options.special_in_text,
        options.max_record_bytes,
        options.max_window_bytes,
        marks,
        "--replace-invalid",
    )


def chat_rules(options: ConvertOptions, tokenizer: Tokenizer) -> ChatRules | None:
    """Return the rules of --chat-template, or of the template that transformers would select.

    Chats need a template: raise BadArgument if there is none. Prompts and completions need it only if they are lists of
    messages, so without a usable template return None.
    """
    from tokenmill.inputs.chat_template import compiled, writes_date  # needs jinja2, an optional package

    is_for_chats, storage = options.messages_field is not None, options.storage_options
    is_required = is_for_chats or options.chat_template is not None
    folder = _folder_of(options.tokenizer)
    try:
        config_path, config = _read_json(folder, CONFIG_NAME, storage)
        if "added_tokens_decoder" not in config:  # else transformers ignores the map
            config = {**config, **_read_json(folder, TOKENS_NAME, storage)[1]}
        if options.chat_template is not None:
            path, text = _read(*_split(options.chat_template), storage)
            if text is None:
                raise BadArgument(f"{printable(path)}: no such file. Check --chat-template.")
            templates = {"default": (path, text)}
        else:
            read = [(name, *_read(folder, file, storage)) for name, file in TEMPLATE_FILES]
            templates = {name: (path, text) for name, path, text in read if text is not None}
            templates = templates or {name: (config_path, text) for name, text in _templates_in(config)}
    except StoreDenied:  # some stores answer like this if an object does not exist
        if is_required:
            raise
        return None
    if not templates and is_required:
        raise BadArgument(
            f"--messages-field: requires a chat template, but {printable(shown_url(options.tokenizer))} has none "
            f"({TEMPLATE_FILES[0][1]}, {CONFIG_NAME}). Pass --chat-template FILE."
        )
    for path, text in templates.values():
        try:
            if not text.strip():
                raise BadArgument("the chat template is empty")
            compiled(text)
            if is_for_chats and options.chat_date is None and writes_date(text):
                raise BadArgument("the chat template writes the current date. Pass --chat-date YYYY-MM-DD.")
        except BadArgument as error:
            if not is_required:
                return None
            raise BadArgument(f"{printable(path)}: {error}") from None
    special = tuple(token.text for token in tokenizer.added_tokens if token.special)
    default, with_tools = (templates.get(name, ("", ""))[1] for name in TEMPLATES)
    return ChatRules(default, _named_tokens(config), special, with_tools) if templates else None


def _folder_of(name: str) -> str:
    """Return the path or URL of a tokenizer's folder. The chat files of a Hub repository are downloaded first."""
    if is_url(name):
        return split_key(name)[0]
    path, source = locate(name)
    if source is not None:
        download(source, [CONFIG_NAME, TOKENS_NAME, *(file_name for _, file_name in TEMPLATE_FILES)])
    return str(path if path.is_dir() else path.parent)


def _split(file: str) -> tuple[str, str]:
    """Return the folder and the name of a path or URL."""
    return split_key(file) if is_url(file) else (str(Path(file).parent), Path(file).name)


def _read(folder: str, name: str, storage: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the path of a file for messages, and its text; None if it does not exist."""
    where = parse(folder).below(name).shown if is_url(folder) else str(Path(folder) / name)
    if Path(where).exists() and not Path(where).is_file():
        raise not_regular(where)
    try:
        data = bytes(open_store(folder, storage).read_begin(name, MAX_FILE_BYTES + 1)[0])
        if len(data) > MAX_FILE_BYTES:
            raise BadArgument(f"{printable(where)}: must be at most {MAX_FILE_BYTES} bytes")
        return where, data.decode()
    except StoreNotFound:
        return where, None
    except UnicodeDecodeError as error:
        raise BadArgument(f"{printable(where)}: invalid UTF-8 at byte {error.start}") from None


def _read_json(folder: str, name: str, storage: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the path of a JSON file and its object; {} if it does not exist or is not an object."""
    path, text = _read(folder, name, storage)
    try:
        value = json.loads("{}" if text is None else text)
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{printable(path)}: invalid JSON ({printable(str(error))[:80]})") from None
    return path, value if isinstance(value, dict) else {}


def _templates_in(config: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the (name, template) of a configuration. A single one is called default."""
    value = config.get("chat_template")
    listed = value if isinstance(value, list) else [{"name": "default", "template": value}]
    named = {one.get("name"): one.get("template") for one in listed if isinstance(one, dict)}
    return [(name, text) for name in TEMPLATES if isinstance(text := named.get(name), str)]


def _named_tokens(config: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the tokens that a configuration names: (("bos_token", "<s>"), ...). A token is a text or an object."""
    extra = config.get("extra_special_tokens")
    named = {name: token for name, token in config.items() if name.endswith("_token")}
    named |= extra if isinstance(extra, dict) else {}
    texts = {
        name: token.get("content") if isinstance(token, dict) else token for name, token in named.items()
    }
    return tuple((name, text) for name, text in texts.items() if isinstance(text, str))
