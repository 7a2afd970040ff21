"""Ids back to text."""

from __future__ import annotations

from typing import Any

from bpe.compat.huggingface.added_vocabulary import AddedVocabulary
from bpe.compat.huggingface.arguments import id_number
from bpe.compat.huggingface.decoders import ByteLevel, Decoder
from bpe.compat.huggingface.engine import CoreEngine, Engine
from bpe.compat.huggingface.models import BPE
from bpe.errors import BadArgument, shown
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import normalizer_from_json


class Decoding:
    """Decodes for a tokenizer as it is at a time: byte-level texts in the core, all else by the decoder."""

    def __init__(
        self,
        added: AddedVocabulary,
        normalizer: dict[str, Any] | None,
        model: BPE,
        engine: Engine,
        decoder: Decoder | None,
    ) -> None:
        self._model = model
        self._decoder = decoder
        self._texts = {id_: token.content for id_, token in added.tokens.items()}
        step = normalizer_from_json(normalizer)
        for id_, token in added.tokens.items():
            if token.normalized and step is not None:
                self._texts[id_] = step.of_tokens.apply_to_text(token.content)
        special = added.special
        # By their texts, as they are once normalized: an entry's, where an added token has not taken its id.
        entries = (found for text in special if (found := model.token_to_id(text)) is not None)
        self._special = {id_ for id_, text in self._texts.items() if text in special}
        self._special |= {id_ for id_ in entries if id_ not in self._texts}
        self._core = None
        if (
            isinstance(engine, CoreEngine)
            and isinstance(decoder, ByteLevel)
            and not engine.tokenizer.text_rules
        ):
            self._core = engine.tokenizer
        # Added tokens whose text is not what the decoder makes of it: "Ġ" becomes a space.
        self._other = {
            id_
            for id_, text in self._texts.items()
            if text != added.tokens[id_].content or to_bytes(text) not in (None, text.encode())
        }

    def token(self, id_: int) -> str | None:
        """The text of an id, as the vocabulary spells it."""
        return self._texts[id_] if id_ in self._texts else self._model.id_to_token(id_)

    def text(self, ids: Any, skip_special_tokens: bool) -> str:
        """The text of the ids; what is no id is left out."""
        if isinstance(ids, str) or not hasattr(ids, "__getitem__"):
            raise TypeError(f"ids: must be a list of IDs (got {shown(ids)})")
        if skip_special_tokens and self._special:
            special = self._special
            ids = [id_ for id_ in ids if id_ not in special]
        if self._core is not None and self._other.isdisjoint(ids):
            try:
                return self._core.decode(ids)
            except BadArgument:
                pass  # there is one that is no id
        tokens = [text for id_ in ids if (text := self.token(id_number("id", id_))) is not None]
        return " ".join(tokens) if self._decoder is None else self._decoder.decode(tokens)
