"""What a tokenizer is made of at a time, and the engine that is built of it.

Building waits until something is encoded: who adds tokens one by one pays once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bpe import _core
from bpe.added_tokens import AddedToken as CoreToken
from bpe.compat.huggingface.added_token import FLAGS, AddedToken
from bpe.compat.huggingface.columns import Columns, Segment, Source
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.engine import CoreEngine, Engine, PlainEngine
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.post_process import post_process
from bpe.compat.huggingface.text_engine import TextEngine
from bpe.errors import BadTokenizer
from bpe.formats import huggingface
from bpe.formats.huggingface_components import (
    components_from_json,
    decoder_to_json,
    is_byte_level,
    normalizer_from_json,
    pretokenizer_from_json,
)
from bpe.tokenizer import Tokenizer as CoreTokenizer
from bpe.vocabulary import TextRules

Json = dict[str, Any]
_BYTE_LEVEL: Json = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def build_engine(
    model: BPE,
    added: Mapping[int, AddedToken],
    ignored: frozenset[str],
    normalizer: Json | None,
    pre_tokenizer: Json | None,
) -> Engine:
    """The engine of these; ignored: added tokens that are taken for text.

    The core's where it holds such a tokenizer, else one in plain Python. BadTokenizer or UnsupportedTokenizer if
    neither does.
    """
    components = tuple(component for component, _ in components_from_json(pre_tokenizer))
    tokens = added_tokens(added)
    try:
        tokenizer = _in_core(model, tokens, normalizer, pre_tokenizer)
    except BadTokenizer:
        return PlainEngine(model.plain(), tokens, ignored, normalizer_from_json(normalizer), components)
    if tokenizer.text_rules is None:
        return CoreEngine(tokenizer, components, ignored)
    return TextEngine(tokenizer, components, ignored, lambda: model.vocab)


def added_tokens(added: Mapping[int, AddedToken]) -> tuple[CoreToken, ...]:
    """The added tokens as the core has them, by ascending ID."""
    return tuple(
        CoreToken(token.content, id_, **{flag: getattr(token, flag) for flag in FLAGS})
        for id_, token in sorted(added.items())
    )


def _in_core(
    model: BPE, tokens: tuple[CoreToken, ...], normalizer: Json | None, pre_tokenizer: Json | None
) -> CoreTokenizer:
    root = {
        "added_tokens": [{"id": token.id, **_content_of(token)} for token in tokens],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "decoder": _BYTE_LEVEL,
    }
    if model.core is None:
        root["model"] = model.to_json()
        return CoreTokenizer.from_parts(huggingface.read(json.dumps(root).encode()))
    if TextRules.of_text(model.core.text_rules) and is_byte_level(
        component for component, _ in components_from_json(pre_tokenizer)
    ):
        # The core would take the entries for bytes, and needs all 256 of them.
        return CoreTokenizer.from_parts(huggingface.read(model.written(root).encode()))
    before = model.core.parts
    wanted = (
        normalizer_from_json(normalizer),
        pretokenizer_from_json(pre_tokenizer, TextRules.of_text(model.core.text_rules)),
        tokens,
    )
    ignore_merges = bool(model.options()["ignore_merges"])
    known = (before.normalizer, before.pretokenizer, before.tokens)
    if wanted == known and ignore_merges == before.vocabulary.ignore_merges:
        return model.core
    root["decoder"] = decoder_to_json(before.decoder)
    return CoreTokenizer.from_parts(huggingface.read(model.written(root).encode()))


def _content_of(token: CoreToken) -> Json:
    return {"content": token.text} | {flag: getattr(token, flag) for flag in FLAGS}


class Finish:
    """How an encoding is made of the ids of one text: the engine and the post-processor as they are now.

    front, back: the ids that are put around, `added` of them; None where it is not as simple as that.
    """

    def __init__(self, engine: Engine, post_processor: Json | None, add_special_tokens: bool) -> None:
        self.engine = engine
        self._post_processor = post_processor
        self._adds = add_special_tokens
        mark = Source.special([-1], [""])
        ids = post_process(post_processor, [Encoding([Segment(mark, 0, 1)])], add_special_tokens).ids
        self.is_simple = ids.count(-1) == 1
        place = ids.index(-1) if self.is_simple else 0
        self.front, self.back = ids[:place], ids[place + 1 :]
        self.added = len(ids) - 1

    def encoding(self, text: str, ids: Any, start: int, stop: int) -> Encoding:
        """The encoding of a text whose ids are known, ids[start:stop]."""
        plain = Encoding([text_segment(self.engine, text, ids, start, stop)])
        return post_process(self._post_processor, [plain], self._adds)


def text_segment(
    engine: Engine, text: str, ids: Any, start: int, stop: int, type_id: int = 0, word: int | None = None
) -> Segment:
    """The segment of a text. ids: a list, or a buffer of which [start, stop) are its own. word: which word it is."""

    def own_ids() -> list[int]:
        return ids if isinstance(ids, list) else _core.id_list(ids, start, stop)

    def columns() -> Columns:
        made = engine.columns(text)
        return made if word is None else made._replace(words=[word] * len(made.ids))

    return Segment(Source(own_ids, stop - start, columns), 0, stop - start, type_id)
