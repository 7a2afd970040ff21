"""What a tokenizer is made of, and how it is changed."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from bpe.compat.huggingface import arguments, lengths
from bpe.compat.huggingface.added_token import AddedToken, added_token, check_tokens
from bpe.compat.huggingface.added_vocabulary import AddedVocabulary
from bpe.compat.huggingface.component import Component
from bpe.compat.huggingface.decoders import Decoder
from bpe.compat.huggingface.decoding import Decoding
from bpe.compat.huggingface.engine import Engine
from bpe.compat.huggingface.models import BPE, Model
from bpe.compat.huggingface.normalizers import Normalizer
from bpe.compat.huggingface.post_process import added_count
from bpe.compat.huggingface.pre_tokenizers import PreTokenizer
from bpe.compat.huggingface.processors import PostProcessor
from bpe.compat.huggingface.state import Finish, build_engine
from bpe.errors import BadArgument, shown

KINDS: Final[dict[str, type[Component]]] = {
    "normalizer": Normalizer,
    "pre_tokenizer": PreTokenizer,
    "post_processor": PostProcessor,
    "decoder": Decoder,
}


def _component(name: str) -> property:
    """A component that can be set: to one of this package or of tokenizers, or None."""

    def get(self: Settings) -> Any:
        return self._components[name]

    def put(self: Settings, value: Any) -> None:
        self._put(name, KINDS[name].taken(value))

    return property(get, put)


class Built(NamedTuple):
    """Made of the model, the components and the added tokens, and dropped when one of them changes.

    finish: without and with the tokens that the post-processor adds.
    """

    engine: Engine
    decoding: Decoding
    finish: tuple[Finish, Finish]


class Settings:
    """A model, components, added tokens, truncation and padding."""

    def __init__(self, model: BPE) -> None:
        self._model = _checked_model(model).use(self)
        self._components: dict[str, Any] = dict.fromkeys(KINDS)
        self._added = AddedVocabulary()
        self._truncation: dict[str, Any] | None = None
        self._padding: dict[str, Any] | None = None
        self._takes_special_for_text = False
        self._built: Built | None = None

    normalizer = _component("normalizer")
    pre_tokenizer = _component("pre_tokenizer")
    post_processor = _component("post_processor")
    decoder = _component("decoder")

    @property
    def model(self) -> BPE:
        """The model. It may be set to another BPE."""
        return self._model

    @model.setter
    def model(self, model: BPE) -> None:
        self._model = _checked_model(model).use(self)
        self.drop_engine()

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens are taken for text."""
        return self._takes_special_for_text

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._takes_special_for_text = bool(value)
        self.drop_engine()

    @property
    def ignored_tokens(self) -> frozenset[str]:
        """The added tokens that are taken for text."""
        return frozenset(self._added.special) if self._takes_special_for_text else frozenset()

    def _json(self, name: str) -> dict[str, Any] | None:
        component = self._components[name]
        return None if component is None else component.to_json()

    # -- the engine ----------------------------------------------------------------------------------------------

    def drop_engine(self) -> None:
        """Build the engine again when it is next needed."""
        self._built = None

    def _current(self) -> Built:
        """Build the engine unless there is one. Threads that do so at the same time build equal ones."""
        if self._built is not None:
            return self._built
        parts = (self._json("normalizer"), self._json("pre_tokenizer"))
        engine = build_engine(self._model, self._added.tokens, self.ignored_tokens, *parts)
        decoding = Decoding(self._added, self._json("normalizer"), self._model, engine, self.decoder)
        post_processor = self._json("post_processor")
        finish = Finish(engine, post_processor, False), Finish(engine, post_processor, True)
        built = self._built = Built(engine, decoding, finish)
        return built

    def _simple(self, add_special_tokens: bool) -> Finish | None:
        """How to finish an encoding, if IDs and the tokens around them are all of it."""
        if self._truncation is not None or self._padding is not None:
            return None
        finish = self._current().finish[add_special_tokens]
        return finish if finish.is_simple else None

    def _put(self, name: str, component: Any) -> None:
        self._components[name] = component if component is None else component.use(self)
        self.drop_engine()

    # -- vocabulary ----------------------------------------------------------------------------------------------

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        """Add texts or AddedTokens; how many were new or have other flags now."""
        check_tokens(tokens)
        return self._add([added_token(token) for token in tokens])

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        """The same, as special tokens; AddedTokens that are given become special."""
        check_tokens(tokens)
        return self._add([added_token(token, special=True) for token in tokens])

    def _add(self, tokens: list[AddedToken]) -> int:
        count = self._added.add(tokens, self._model)
        self.drop_engine()
        return count

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """text -> id."""
        return dict(self._model.vocab) | (self._added.ids if with_added_tokens else {})

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many entries there are."""
        new = (text for text in self._added.ids if self._model.token_to_id(text) is None)
        return len(self._model) + (sum(1 for _ in new) if with_added_tokens else 0)

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """id -> added token, by ascending id."""
        return copy.deepcopy(dict(sorted(self._added.tokens.items())))

    def token_to_id(self, token: str) -> int | None:
        """The id of an added token or an entry."""
        id_ = self._added.ids.get(arguments.text("token", token))
        return self._model.token_to_id(token) if id_ is None else id_

    def id_to_token(self, id: int) -> str | None:
        """The text of an added token, normalized as it is looked for, or of an entry."""
        return self._current().decoding.token(arguments.id_number("id", id))

    # -- lengths -------------------------------------------------------------------------------------------------

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The arguments of enable_truncation."""
        return copy.copy(self._truncation)

    def enable_truncation(
        self,
        max_length: int,
        stride: int = 0,
        strategy: str = "longest_first",
        direction: str = "right",
        **unknown: Any,
    ) -> None:
        """From now on, at most max_length tokens. ValueError for what can't be."""
        arguments.warn_unknown(unknown)
        given = lengths.truncation_of(max_length, stride, strategy, direction)
        room = given["max_length"] - added_count(self._json("post_processor"), False)
        if 0 <= room < given["stride"]:  # with fewer, texts can still be encoded without the tokens around
            raise BadArgument(
                f"stride: must be at most {room}, the tokens of a text within max_length {max_length} (got "
                f"{stride})"
            )
        self._truncation = given

    def no_truncation(self) -> None:
        """Texts stay whole."""
        self._truncation = None

    @property
    def padding(self) -> dict[str, Any] | None:
        """The arguments of enable_padding."""
        return copy.copy(self._padding)

    def enable_padding(
        self,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
        **unknown: Any,
    ) -> None:
        """From now on, encodings of a batch are as long as the longest, or `length`. ValueError for what can't be."""
        arguments.warn_unknown(unknown)
        self._padding = lengths.padding_of(
            direction, pad_id, pad_type_id, pad_token, length, pad_to_multiple_of
        )

    def no_padding(self) -> None:
        """Encodings stay as long as they are."""
        self._padding = None

    # -- as an object --------------------------------------------------------------------------------------------

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)  # the engine, too, which never changes
        made._model = copy.copy(self._model).use(made)
        made._components = copy.deepcopy(self._components, memo)
        for component in made._components.values():
            if component is not None:
                component.use(made)
        made._added = copy.deepcopy(self._added, memo)
        if made._added.forget():
            made._built = None
        return made

    def _set(self, settings: Mapping[str, Any]) -> None:
        """Take components, truncation and padding as tokenizer.json has them, checked."""
        for name, kind in KINDS.items():
            self._put(name, kind.from_json(settings.get(name)))
        self._truncation = lengths.truncation_from_json(settings.get("truncation"))
        self._padding = lengths.padding_from_json(settings.get("padding"))


def _checked_model(model: Any) -> BPE:
    if not isinstance(model, Model) or not isinstance(model, BPE):
        raise TypeError(f"model: must be a BPE (got {shown(model)})")
    return model
