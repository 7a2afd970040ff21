"""Messages of chats in the form that templates read, and which of them a template drops.

    {"from": "human", "value": "hi"} -> {"role": "user", "content": "hi", "from": "human", "value": "hi"}

Messages in ShareGPT form have `from` and `value`. Their roles are renamed to those that templates use.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenmill.errors import printable
from tokenmill.inputs.intake import RecordFault

ROLES = ("system", "user", "assistant", "tool")  # a template may drop these by design
_SHAREGPT_ROLES = {
    **{name: name for name in ROLES},
    **dict.fromkeys(("human",), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "bot", "model"), "assistant"),
    **dict.fromkeys(("function", "function_response", "tool_response", "observation", "ipython"), "tool"),
}
_CALLS = ("function_call", "tool_call")
_THOUGHTS = ("reasoning_content", "thinking", "reasoning")  # the first of these that a message has
_NO_TEXT = ("role", "from", "type", "id", "tool_call_id")  # fields that templates compare rather than write
_PROBE = "\ufdd3"  # a noncharacter


def messages_for_template(messages: Any) -> list[dict[str, Any]]:
    """Return messages as transformers passes them to a template; RecordFault for a value that holds no messages.

    Null fields are left out, and thoughts are `reasoning_content` and `thinking`:
    {"role": "user", "content": None, "thinking": "a"} -> {"role": "user", "thinking": "a", "reasoning_content": "a"}
    """
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise RecordFault("no messages", "messages are not a list of objects")
    return [_for_template(number, message) for number, message in enumerate(messages)]


def _for_template(number: int, message: dict[str, Any]) -> dict[str, Any]:
    message = {name: value for name, value in message.items() if value is not None}
    if "role" not in message and isinstance(name := message.get("from"), str):
        message = _from_sharegpt(number, name, message)
    if not isinstance(message.get("role"), str):
        fields = printable(", ".join(map(str, list(message)[:10]))) or "none"
        raise RecordFault("no role", f"message {number} has neither role nor from (fields: {fields})")
    thoughts = next((message[name] for name in _THOUGHTS if name in message), None)
    return message if thoughts is None else {"thinking": thoughts, **message, "reasoning_content": thoughts}


def _from_sharegpt(number: int, name: str, message: dict[str, Any]) -> dict[str, Any]:
    name = name.lower().replace("-", "_")
    if name not in _CALLS:
        content = {"content": message["value"]} if "value" in message else {}
        return {"role": _SHAREGPT_ROLES.get(name, name), **content, **message}
    try:
        calls = json.loads(message.get("value", ""))
    except (TypeError, ValueError, RecursionError):
        calls = None
    calls = calls if isinstance(calls, list) else [calls]
    if not all(isinstance(call, dict) and "name" in call for call in calls):
        raise RecordFault("no messages", f"message {number} is a {name} without a JSON call")
    return {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": call} for call in calls],
        **message,
    }


def roles_dropped(messages: list[dict[str, Any]], render: Callable[[list[dict[str, Any]]], str]) -> list[str]:
    """Return the roles of the messages that the template leaves out.

    Raise RecordFault if it leaves out all messages, or a message with a role outside ROLES. The template runs once more
    with a probe after each text. If the probe of a message is missing, the template runs with probes in that message
    alone. It leaves the message out if these probes change nothing.
    """
    probes = [f"{_PROBE}{number}{_PROBE}" for number in range(len(messages))]
    probed = [_probed(message, "", probe) for message, probe in zip(messages, probes, strict=True)]
    with_text = [number for number, message in enumerate(messages) if probed[number] != message]
    found = _rendered(render, probed) if with_text else ""
    suspects = [number for number in with_text if probes[number] not in (found or "")]
    text = render(messages) if suspects else ""
    dropped = []
    for number in suspects:
        others = [*messages]
        others[number] = _probed(messages[number], _PROBE, _PROBE)
        if _rendered(render, others) == text:
            dropped.append(number)
    roles = [messages[number]["role"] for number in dropped]
    if dropped and dropped == with_text:
        named = printable(", ".join(dict.fromkeys(roles)))
        raise RecordFault("dropped", f"the chat template writes none of the messages (roles: {named})")
    for number, role in zip(dropped, roles, strict=True):
        if role not in ROLES:
            detail = f"the chat template drops message {number} (role {role!r})"
            raise RecordFault("dropped", detail)
    return roles


def _rendered(render: Callable[[list[dict[str, Any]]], str], messages: list[dict[str, Any]]) -> str | None:
    """The text, None if the template refuses the messages."""
    try:
        return render(messages)
    except RecordFault:
        return None


def _probed(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return before + value + after if value.strip() else value
    if isinstance(value, list):
        return [_probed(item, before, after) for item in value]
    if isinstance(value, dict) and value.get("type", "text") in ("text", "function"):  # no images
        return {
            name: item if name in _NO_TEXT else _probed(item, before, after) for name, item in value.items()
        }
    return value
