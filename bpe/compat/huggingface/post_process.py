"""What post-processors do to encodings: put tokens around and between them, trim offsets. As tokenizers does it."""

from __future__ import annotations

from typing import Any

from bpe.compat.huggingface.columns import Segment, Source
from bpe.compat.huggingface.encoding import Encoding
from bpe.errors import UnsupportedTokenizer, shown


def post_process(
    component: dict[str, Any] | None, encodings: list[Encoding], add_special_tokens: bool
) -> Encoding:
    """One or two encodings as one. component: tokenizer.json's post_processor. The encodings may be changed."""
    for index, encoding in enumerate(encodings):
        if component is None and len(encodings) == 1:
            break
        encoding.set_sequence_id(index)
        if component is not None:
            for part in encoding._overflowing:
                part.set_sequence_id(index)
            _set_type(encoding, index)
    if component is not None:
        encodings = _process(component, encodings, add_special_tokens)
    return encodings[0] if len(encodings) == 1 else Encoding.merge(encodings, growing_offsets=False)


def added_count(component: dict[str, Any] | None, is_pair: bool) -> int:
    """How many tokens it adds."""
    if component is None:
        return 0
    match component["type"]:
        case "TemplateProcessing":
            pieces = component["pair" if is_pair else "single"]
            names = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
            return sum(len(component["special_tokens"][name]["ids"]) for name in names)
        case "RobertaProcessing":
            return 4 if is_pair else 2
        case "BertProcessing":
            return 3 if is_pair else 2
        case "Sequence":
            return sum(added_count(each, is_pair) for each in component["processors"])
    return 0


def _process(component: dict[str, Any], encodings: list[Encoding], add: bool) -> list[Encoding]:
    match component["type"]:
        case "Sequence":
            for each in component["processors"]:
                encodings = _process(each, encodings, add)
            return encodings
        case "ByteLevel":
            if component.get("trim_offsets", True):
                _trim(encodings, component.get("add_prefix_space", True))
            for index, encoding in enumerate(encodings):
                encoding.set_sequence_id(index)
            return encodings
        case "TemplateProcessing":
            return _template(component, encodings, add)
        case "RobertaProcessing" | "BertProcessing":
            return _cls_and_sep(component, encodings, add)
    raise UnsupportedTokenizer(f"post_processor: not supported (got {shown(component['type'])})")


def _set_type(encoding: Encoding, type_id: int) -> None:
    encoding._segments = [segment.with_type(type_id) for segment in encoding._segments]


def _trim(encodings: list[Encoding], add_prefix_space: bool) -> None:
    for encoding in encodings:
        for each in (encoding, *encoding._overflowing):
            each._segments = [
                segment.trimmed(add_prefix_space, place == 0) for place, segment in enumerate(each._segments)
            ]


def _special(ids: list[int], tokens: list[str], type_id: int) -> Encoding:
    return Encoding([Segment(Source.special(ids, tokens), 0, len(ids), type_id, special=1)])


def _template(component: dict[str, Any], encodings: list[Encoding], add: bool) -> list[Encoding]:
    made = []
    for piece in component["pair" if len(encodings) == 2 else "single"]:
        if "Sequence" in piece:
            index = int(piece["Sequence"]["id"] != "A")
            encoding = encodings[index].copy()
            _set_type(encoding, piece["Sequence"]["type_id"])
            encoding.set_sequence_id(index)
            made.append(encoding)
        elif add:
            token = component["special_tokens"][piece["SpecialToken"]["id"]]
            made.append(_special(token["ids"], token["tokens"], piece["SpecialToken"]["type_id"]))
    return made


def _cls_and_sep(component: dict[str, Any], encodings: list[Encoding], add: bool) -> list[Encoding]:
    """`cls` text `sep`, then (Roberta) `sep` pair `sep`, or pair `sep`. Roberta's types are all 0."""
    roberta = component["type"] == "RobertaProcessing"
    if roberta:
        if component.get("trim_offsets", True):
            _trim(encodings, component.get("add_prefix_space", True))
        for encoding in encodings:
            _set_type(encoding, 0)
    if not add:
        return encodings
    (sep, sep_id), (cls, cls_id) = component["sep"], component["cls"]
    made = []
    for place, encoding in enumerate(encodings):
        index = min(place, 1)  # a template before it can have made more of them
        type_id = 0 if roberta else index
        first = [(cls, cls_id)] if index == 0 else [(sep, sep_id)] if roberta else []
        front = [_special([id_], [token], 0) for token, id_ in first]
        back = _special([sep_id], [sep], type_id)
        made.append(_around(encoding, front, back, index, 0 if roberta else None))
    return made


def _around(
    encoding: Encoding, front: list[Encoding], back: Encoding, index: int, type_id: int | None
) -> Encoding:
    """The encoding and its overflowing parts between other tokens; only the text's own are of its sequence.

    type_id: that of the text's tokens; None: they keep theirs.
    """
    made = []
    for each in (encoding, *encoding._overflowing):
        plain = Encoding([segment.of_text(type_id) for segment in each._segments])
        plain.set_sequence_id(index)
        made.append(Encoding.merge([*front, plain, back], growing_offsets=False))
    made[0]._overflowing = made[1:]
    return made[0]
