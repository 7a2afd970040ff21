"""Truncation and padding: the parameters, checked, and what they do to encodings. As tokenizers does both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bpe.compat.huggingface.arguments import count, id_number, one_of, text
from bpe.compat.huggingface.encoding import Encoding
from bpe.errors import BadArgument

_DIRECTIONS: Final = {"left": "Left", "right": "Right"}
_STRATEGIES: Final = {"longest_first": "LongestFirst", "only_first": "OnlyFirst", "only_second": "OnlySecond"}


def truncation_of(
    max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
) -> dict[str, Any]:
    """The parameters by their names; BadArgument, a ValueError, for what they can't be."""
    return {
        "max_length": count("max_length", max_length),
        "stride": count("stride", stride),
        "strategy": one_of("strategy", strategy, _STRATEGIES),
        "direction": one_of("direction", direction, _DIRECTIONS),
    }


def padding_of(
    direction: str = "right",
    pad_id: int = 0,
    pad_type_id: int = 0,
    pad_token: str = "[PAD]",
    length: int | None = None,
    pad_to_multiple_of: int | None = None,
) -> dict[str, Any]:
    """The same of padding. length: None for that of the longest encoding of a batch."""
    multiple = None if pad_to_multiple_of is None else count("pad_to_multiple_of", pad_to_multiple_of)
    return {
        "length": None if length is None else count("length", length),
        "pad_to_multiple_of": multiple,
        "pad_id": id_number("pad_id", pad_id),
        "pad_token": text("pad_token", pad_token),
        "pad_type_id": id_number("pad_type_id", pad_type_id),
        "direction": one_of("direction", direction, _DIRECTIONS),
    }


def truncation_to_json(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """tokenizer.json's truncation."""
    if given is None:
        return None
    return {
        "direction": _DIRECTIONS[given["direction"]],
        "max_length": given["max_length"],
        "strategy": _STRATEGIES[given["strategy"]],
        "stride": given["stride"],
    }


def truncation_from_json(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """That of tokenizer.json, checked by bpe.formats, by the names here."""
    if value is None:
        return None
    return truncation_of(
        value["max_length"],
        value["stride"],
        _name(_STRATEGIES, value["strategy"]),
        value["direction"].lower(),
    )


def padding_to_json(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """tokenizer.json's padding."""
    if given is None:
        return None
    return {
        "strategy": "BatchLongest" if given["length"] is None else {"Fixed": given["length"]},
        "direction": _DIRECTIONS[given["direction"]],
        "pad_to_multiple_of": given["pad_to_multiple_of"],
        "pad_id": given["pad_id"],
        "pad_type_id": given["pad_type_id"],
        "pad_token": given["pad_token"],
    }


def padding_from_json(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """That of tokenizer.json, checked by bpe.formats, by the names here."""
    if value is None:
        return None
    strategy = value["strategy"]
    return padding_of(
        value["direction"].lower(),
        value["pad_id"],
        value["pad_type_id"],
        value["pad_token"],
        strategy["Fixed"] if isinstance(strategy, dict) else None,
        value["pad_to_multiple_of"],
    )


def truncate(encodings: Sequence[Encoding], given: Mapping[str, Any], max_length: int) -> None:
    """One encoding or a pair together has at most max_length tokens. BadArgument where the strategy can't do it."""
    stride, direction = given["stride"], given["direction"]
    lengths = [len(encoding) for encoding in encodings]
    too_many = sum(lengths) - max_length
    if max_length == 0:
        for encoding in encodings:
            encoding.truncate(0, stride, direction)
    if max_length == 0 or too_many <= 0:
        return
    if given["strategy"] == "longest_first":
        targets = [max_length] if len(encodings) == 1 else _shares(lengths, max_length)
        for encoding, length in zip(encodings, targets, strict=True):
            encoding.truncate(length, stride, direction)
        return
    index = int(given["strategy"] == "only_second")
    if index >= len(encodings):
        raise BadArgument("Truncation error: Second sequence not provided")
    if lengths[index] <= too_many:
        raise BadArgument(
            "Truncation error: Sequence to truncate too short to respect the provided max_length"
        )
    encodings[index].truncate(lengths[index] - too_many, stride, direction)


def _shares(lengths: list[int], max_length: int) -> list[int]:
    """How long each of a pair may be: the shorter one whole, if it is no longer than half."""
    short = min(lengths)
    long = short if short > max_length else max(short, max_length - short)
    if short + long > max_length:
        short = max_length // 2
        long = short + max_length % 2
    return [long, short] if lengths[0] > lengths[1] else [short, long]


def pad(encodings: Sequence[Encoding], given: Mapping[str, Any]) -> None:
    """All encodings are as long as the longest, or as the length that is given."""
    length = given["length"]
    if length is None:
        length = max(map(len, encodings), default=0)
    multiple = given["pad_to_multiple_of"]
    if multiple:
        length += -length % multiple
    for encoding in encodings:
        encoding.pad(length, given["direction"], given["pad_id"], given["pad_type_id"], given["pad_token"])


def _name(names: Mapping[str, str], value: str) -> str:
    return next(name for name, spelled in names.items() if spelled == value)
