"""tokenizer.json and the parts of a tokenizer with this interface, both ways."""

from __future__ import annotations

from typing import Any

from bpe.compat.huggingface.added_token import FLAGS, AddedToken
from bpe.compat.huggingface.added_vocabulary import AddedVocabulary
from bpe.compat.huggingface.models import BPE, Model
from bpe.errors import BadTokenizer, shown
from bpe.formats import huggingface
from bpe.formats.huggingface_components import decoder_to_json, normalizer_to_json, pretokenizer_to_json
from bpe.formats.huggingface_envelope import MODEL, TOP_LEVEL
from bpe.formats.huggingface_postprocessor import padding_from_json, truncation_from_json
from bpe.formats.json_input import expect, expect_list, expect_object, parse
from bpe.normalizers import make_normalizer
from bpe.tokenizer import Tokenizer as CoreTokenizer
from bpe.vocabulary import TextRules

Json = dict[str, Any]


def read_tokenizer(data: bytes) -> tuple[BPE, Json, AddedVocabulary]:
    """(model, components and lengths, added tokens) of a tokenizer.json.

    One that the core does not hold is read all the same if its model is BPE: see plain_model. BadTokenizer or
    UnsupportedTokenizer names the JSON path at fault.
    """
    added = AddedVocabulary()
    try:
        parts, root, keys = huggingface.read_whole(data)
    except BadTokenizer as error:
        root = _plain_root(data, error)
        model = Model.from_json(root["model"])
        for index, item in enumerate(expect_list(root.get("added_tokens") or [], "added_tokens")):
            added.add([_added_token(item, f"added_tokens[{index}]")], model)
        return model, _checked(root), added
    core = CoreTokenizer.from_parts(parts)
    added.take(core.added_tokens)
    return BPE.of_core(core, keys, root["model"]), _checked(root), added


def _plain_root(data: bytes, error: BadTokenizer) -> Json:
    """The document, if all that is wrong is that the core does not hold such a tokenizer; else the error is raised."""
    root = expect_object(parse(data), "tokenizer.json", TOP_LEVEL)
    expect(root.get("version", "1.0"), ["1.0"], "version")
    model = root.get("model")
    if not isinstance(model, dict):
        raise error
    expect(model.setdefault("type", "BPE"), ["BPE"], "model.type")
    expect_object(model, "model", MODEL)
    if not isinstance(model.get("vocab"), dict) or not isinstance(model.get("merges"), list):
        raise error
    return root


def _added_token(item: Any, path: str) -> AddedToken:
    fields = expect_object(item, path, {"id", "content", *FLAGS})
    if not isinstance(fields.get("content"), str):
        raise BadTokenizer(f"{path}.content: must be a text (got {shown(fields.get('content'))})")
    return AddedToken(fields["content"], **{flag: fields[flag] for flag in FLAGS if flag in fields})


def _checked(root: Json) -> Json:
    """The document with lengths in full."""
    return root | {
        "truncation": truncation_from_json(root.get("truncation")),
        "padding": padding_from_json(root.get("padding")),
    }


def settings_of(tokenizer: CoreTokenizer) -> Json:
    """Components and lengths of a tokenizer of this package."""
    parts = tokenizer.parts
    return {
        "normalizer": normalizer_to_json(make_normalizer(tokenizer.normalizer)),
        "pre_tokenizer": pretokenizer_to_json(
            tokenizer.pretokenizer, TextRules.of_text(tokenizer.text_rules)
        ),
        "post_processor": None if parts.post_processor is None else parts.post_processor.component,
        "decoder": decoder_to_json(parts.decoder),
        "truncation": parts.truncation,
        "padding": parts.padding,
    }
