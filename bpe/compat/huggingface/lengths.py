"""Truncation and padding of encodings: the checked parameters, and their form in tokenizer.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bpe.compat.huggingface.arguments import camel, count, id_number, one_of, snake, text, warn_unknown
from bpe.compat.huggingface.encoding import Encoding
from bpe.errors import BadArgument
from bpe.formats.huggingface_components import PADDING, TRUNCATION

_DIRECTIONS: Final = ("left", "right")
_SPELLED: Final = ("strategy", "direction")  # fields that tokenizer.json spells in camel case
_STRATEGIES: Final = ("longest_first", "only_first", "only_second")

Parameters = dict[str, Any]


def truncation(
    max_length: int,
    stride: int = 0,
    strategy: str = "longest_first",
    direction: str = "right",
    **unknown: Any,
) -> Parameters:
    """Return the parameters of truncation. Raise BadArgument, a ValueError, for invalid ones."""
    warn_unknown(unknown)
    return {
        "max_length": count("max_length", max_length),
        "stride": count("stride", stride),
        "strategy": one_of("strategy", strategy, _STRATEGIES),
        "direction": one_of("direction", direction, _DIRECTIONS),
    }


def padding(
    direction: str = "right",
    pad_id: int = 0,
    pad_type_id: int = 0,
    pad_token: str = "[PAD]",
    length: int | None = None,
    pad_to_multiple_of: int | None = None,
    **unknown: Any,
) -> Parameters:
    """Return the parameters of padding. length: None for the longest encoding of a batch."""
    warn_unknown(unknown)
    sizes = {"length": length, "pad_to_multiple_of": pad_to_multiple_of}
    return {
        **{name: None if size is None else count(name, size) for name, size in sizes.items()},
        "pad_id": id_number("pad_id", pad_id),
        "pad_token": text("pad_token", pad_token),
        "pad_type_id": id_number("pad_type_id", pad_type_id),
        "direction": one_of("direction", direction, _DIRECTIONS),
    }


def truncation_to_json(parameters: Parameters | None) -> Parameters | None:
    """Return tokenizer.json's truncation."""
    return parameters and {
        name: camel(parameters[name]) if name in _SPELLED else parameters[name] for name in TRUNCATION
    }


def truncation_from_json(value: Parameters | None) -> Parameters | None:
    """Return the parameters in a valid truncation of tokenizer.json."""
    return value and truncation(**value | {name: snake(value[name]) for name in _SPELLED})


def padding_to_json(parameters: Parameters | None) -> Parameters | None:
    """Return tokenizer.json's padding."""
    if parameters is None:
        return None
    length, direction = parameters["length"], camel(parameters["direction"])
    strategy = "BatchLongest" if length is None else {"Fixed": length}
    spelled = {**parameters, "strategy": strategy, "direction": direction}
    return {name: spelled[name] for name in PADDING}


def padding_from_json(value: Parameters | None) -> Parameters | None:
    """Return the parameters in a valid padding of tokenizer.json."""
    if value is None:
        return None
    rest = dict(value)
    strategy = rest.pop("strategy")
    length = strategy["Fixed"] if isinstance(strategy, dict) else None
    return padding(**rest | {"direction": snake(rest["direction"]), "length": length})


def truncate(encodings: Sequence[Encoding], parameters: Parameters, max_length: int) -> None:
    """Truncate one encoding or a pair to max_length tokens in total. Raise BadArgument if the strategy cannot do it."""
    stride, direction = parameters["stride"], parameters["direction"]
    lengths = [len(encoding) for encoding in encodings]
    excess = sum(lengths) - max_length
    if max_length > 0 and excess <= 0:
        return
    if max_length == 0 or parameters["strategy"] == "longest_first":
        targets = [max_length] if len(encodings) == 1 else _shares(lengths, max_length)
        for encoding, length in zip(encodings, targets, strict=True):
            encoding.truncate(length, stride, direction)
        return
    index = int(parameters["strategy"] == "only_second")
    if index >= len(encodings):
        raise BadArgument("Truncation error: Second sequence not provided")
    if lengths[index] <= excess:
        raise BadArgument(
            "Truncation error: Sequence to truncate too short to respect the provided max_length"
        )
    encodings[index].truncate(lengths[index] - excess, stride, direction)


def _shares(lengths: list[int], max_length: int) -> list[int]:
    """Return the lengths of a pair: the shorter one stays whole if it is at most half."""
    short = min(lengths)
    long = short if short > max_length else max(short, max_length - short)
    if short + long > max_length:
        short = max_length // 2
        long = short + max_length % 2
    return [long, short] if lengths[0] > lengths[1] else [short, long]


def pad(encodings: Sequence[Encoding], parameters: Parameters) -> None:
    """Pad all encodings to the longest one or to the length in the parameters."""
    length = parameters["length"]
    if length is None:
        length = max(map(len, encodings), default=0)
    if parameters["pad_to_multiple_of"]:
        length += -length % parameters["pad_to_multiple_of"]
    names = ("direction", "pad_id", "pad_type_id", "pad_token")
    for encoding in encodings:
        encoding.pad(length, **{name: parameters[name] for name in names})
