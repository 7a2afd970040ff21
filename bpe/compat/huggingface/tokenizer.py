"""`Tokenizer`, as in tokenizers, for BPE.

A `bpe.Tokenizer` is immutable. This one is mutable: it keeps a core, and builds another when it has changed since.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from bpe.added_tokens import decoded_texts
from bpe.compat.huggingface import arguments, lengths
from bpe.compat.huggingface.added_tokens import AddedToken, AddedVocabulary, added_token
from bpe.compat.huggingface.component import SHORT, short_repr
from bpe.compat.huggingface.decoders import ByteLevel, Decoder
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.engine import Engine, encoding_of
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.normalizers import Normalizer
from bpe.compat.huggingface.pre_tokenizers import PreTokenizer
from bpe.compat.huggingface.processors import PostProcessor, post_process
from bpe.compat.huggingface.trainers import BpeTrainer, lines_of, texts_of, train
from bpe.errors import BadArgument, BadTokenizer, InvalidText, UnsupportedTokenizer, shown
from bpe.formats import huggingface
from bpe.formats.by_path import read_file
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import (
    components_from_json,
    normalizer_from_json,
)
from bpe.hub import locate
from bpe.output_file import open_output_file
from bpe.tokenizer import Tokenizer as CoreTokenizer
from bpe.vocabulary import TextRules

_OFF: Final = {"", "off", "false", "f", "no", "n", "0"}  # values of TOKENIZERS_PARALLELISM
_KINDS: Final = {
    "normalizer": Normalizer,
    "pre_tokenizer": PreTokenizer,
    "post_processor": PostProcessor,
    "decoder": Decoder,
}


class _Built(NamedTuple):
    """Made from the state of a tokenizer.

    engine: returns the engine, which is built when it is first needed.
    processor: a copy of the post-processor, for encodings that are read after it has changed.
    around: without and with special tokens, the IDs before and after a text; None if it does not occur once.
    added: ID -> normalized text of the added tokens. skipped: IDs that decoding can skip.
    """

    state: list[Any]
    engine: Callable[[], Engine]
    processor: PostProcessor | None
    around: list[tuple[list[int], list[int]] | None]
    added: dict[int, str]
    skipped: set[int | None]
    not_byte_level: set[int]  # added tokens that ByteLevel decodes to another text, such as "Ġ"


class Tokenizer:
    """A model, added tokens and components, which can all be changed.

    Unlike `bpe.Tokenizer`, it adds begin and end tokens unless add_special_tokens=False, and applies the truncation and
    padding of its file. Threads may share it while none of them changes it.
    """

    model: BPE
    normalizer: Any  # components of this package or of tokenizers, or None
    pre_tokenizer: Any
    post_processor: Any
    decoder: Any
    encode_special_tokens: bool  # whether special tokens in texts are ordinary text

    def __init__(self, model: BPE) -> None:
        self.__dict__.update(dict.fromkeys(_KINDS))
        self._built: _Built | None = None
        self._added = AddedVocabulary()
        self._truncation: lengths.Parameters | None = None
        self._padding: lengths.Parameters | None = None
        self._loaded: list[Any] | None = None  # `_core_state` of the core that was loaded
        self.encode_special_tokens = False
        self.model = model

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _KINDS:
            value = _KINDS[name].coerce(value)
        elif name == "model" and not isinstance(value, BPE):
            raise TypeError(f"model: must be a BPE (got {shown(value)})")
        elif name == "encode_special_tokens":
            value = bool(value)
        super().__setattr__(name, value)
        if name in ("model", "encode_special_tokens"):
            self._built = None

    def _json(self, name: str) -> dict[str, Any] | None:
        component = getattr(self, name)
        return None if component is None else component.to_json()

    # -- the core ------------------------------------------------------------------------------------------------

    def _current(self) -> _Built:
        """Return the result for the current state. Threads may build equal results at the same time."""
        built, state = self._built, [self.model.values(), *(getattr(self, name) for name in _KINDS)]
        if built is None or built.state != state:
            built = self._built = self._build(copy.deepcopy(state))
        return built

    def _build(self, state: list[Any]) -> _Built:
        added = decoded_texts(self._added.for_core(), normalizer_from_json(self._json("normalizer")), {})
        # Special tokens are skipped by their text, which is an added token or an entry.
        special = self._added.special
        skipped: set[int | None] = {id_ for id_, text in added.items() if text in special}
        entries = {self.model.token_to_id(text) for text in special} - {None, *added}
        not_byte_level = {
            id_
            for id_, text in added.items()
            if text != self._added.tokens[id_].content or to_bytes(text) not in (None, text.encode())
        }
        around = [self._around(add_special_tokens) for add_special_tokens in (False, True)]
        engine = cache(self._build_engine)
        processor = state[1 + list(_KINDS).index("post_processor")]
        return _Built(state, engine, processor, around, added, skipped | entries, not_byte_level)

    def _build_engine(self) -> Engine:
        components = tuple(each for each, _ in components_from_json(self._json("pre_tokenizer")))
        return Engine(self._core(), components, lambda: self.model.vocab, self._ignored())

    def _ignored(self) -> frozenset[str]:
        return frozenset(self._added.special) if self.encode_special_tokens else frozenset()

    def _core(self) -> CoreTokenizer:
        """Return the core that was loaded, if nothing in it has changed, else a new one."""
        if self._loaded is not None and self._loaded == self._core_state():
            assert self.model.core is not None
            return self.model.core
        names = ("truncation", "padding", "post_processor")
        root = self._root() | dict.fromkeys(names) | {"decoder": ByteLevel().to_json()}
        return CoreTokenizer.from_parts(huggingface.read(self.model.document(root).encode()))

    def _core_state(self) -> list[Any]:
        components = copy.deepcopy([self.normalizer, self.pre_tokenizer])
        return [id(self.model), self.model.values(), *components, self._added.for_core()]

    # -- vocabulary ----------------------------------------------------------------------------------------------

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        """Add texts or AddedTokens. Return the number of new tokens and of changed flags."""
        return self._add(tokens, False)

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        """Add special tokens. AddedTokens in the list become special."""
        return self._add(tokens, True)

    def _add(self, tokens: Iterable[Any], special: bool) -> int:
        if isinstance(tokens, str):
            raise TypeError(f"tokens: must be a list (got {shown(tokens)})")
        count = self._added.add([added_token(token, special) for token in tokens], self.model)
        self._built = None
        return count

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Return text -> ID."""
        return dict(self.model.vocab) | (self._added.ids if with_added_tokens else {})

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Return the number of entries."""
        new = [text for text in self._added.ids if self.model.token_to_id(text) is None]
        return len(self.model) + (len(new) if with_added_tokens else 0)

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """Return ID -> added token, by ascending ID."""
        return copy.deepcopy(dict(sorted(self._added.tokens.items())))

    def token_to_id(self, token: str) -> int | None:
        """Return the ID of an added token or an entry."""
        id_ = self._added.ids.get(arguments.text("token", token))
        return self.model.token_to_id(token) if id_ is None else id_

    def id_to_token(self, id: int) -> str | None:
        """Return the text of an entry, or the normalized text of an added token."""
        return self._token(self._current(), arguments.id_number("id", id))

    def _token(self, built: _Built, id_: int) -> str | None:
        return built.added[id_] if id_ in built.added else self.model.id_to_token(id_)

    # -- lengths -------------------------------------------------------------------------------------------------

    @property
    def truncation(self) -> lengths.Parameters | None:
        """The arguments of enable_truncation."""
        return copy.copy(self._truncation)

    def enable_truncation(self, max_length: int, **options: Any) -> None:
        """Truncate encodings to max_length tokens. Raise ValueError for invalid arguments.

        options: stride, strategy and direction, as in `lengths.truncation`.
        """
        parameters = lengths.truncation(max_length, **options)
        left = parameters["max_length"] - self.num_special_tokens_to_add(False)
        if (
            0 <= left < (stride := parameters["stride"])
        ):  # below 0, texts can be encoded without special tokens
            raise BadArgument(
                f"stride: must be at most {left}, the tokens of a text within max_length {max_length} (got {stride})"
            )
        self._truncation = parameters

    def no_truncation(self) -> None:
        """Disable truncation."""
        self._truncation = None

    @property
    def padding(self) -> lengths.Parameters | None:
        """The arguments of enable_padding."""
        return copy.copy(self._padding)

    def enable_padding(self, **options: Any) -> None:
        """Pad encodings to `length`, or to the longest of a batch. Raise ValueError for invalid arguments.

        options: direction, pad_id, pad_type_id, pad_token, length and pad_to_multiple_of, as in `lengths.padding`.
        """
        self._padding = lengths.padding(**options)

    def no_padding(self) -> None:
        """Disable padding."""
        self._padding = None

    # -- files ---------------------------------------------------------------------------------------------------

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """Return the tokenizer in the text of a tokenizer.json. BadTokenizer names the JSON path of a fault."""
        return Tokenizer.from_buffer(json.encode())

    @staticmethod
    def from_buffer(buffer: bytes) -> Tokenizer:
        """Return the tokenizer in the bytes of a tokenizer.json."""
        parts, root, keys = huggingface.read_whole(bytes(buffer))
        core = CoreTokenizer.from_parts(parts)
        return Tokenizer._loaded_from(BPE.of_core(core, keys, root["model"]), core, root)

    @staticmethod
    def from_file(path: str) -> Tokenizer:
        """Return the tokenizer in a tokenizer.json. Errors start with the path."""
        data = read_file(Path(path))
        try:
            return Tokenizer.from_buffer(data)
        except BadTokenizer as error:
            raise type(error)(f"{path}: {error}") from None

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: str | None = None) -> Tokenizer:
        """Return the tokenizer in a folder or file, or on the Hugging Face Hub, as `bpe.Tokenizer.load` does.

        revision: branch, tag or commit. token: must be None, since the library of the hub reads HF_TOKEN.
        """
        if token is not None:
            raise BadArgument("token: not supported by from_pretrained. Set HF_TOKEN.")
        path = Path(identifier, "tokenizer.json")
        if not path.is_file():
            path = locate(identifier, None if revision == "main" else revision).path
        if path.name == "tokenizer.json":
            return Tokenizer.from_file(str(path))
        return Tokenizer.from_tokenizer(CoreTokenizer.load(path))

    @staticmethod
    def from_tokenizer(tokenizer: CoreTokenizer) -> Tokenizer:
        """Return a tokenizer of this package, even one of a rank file, with this interface."""
        as_text = TextRules.of_text(tokenizer.text_rules)
        keys = [text for _, text in huggingface.text_keys(tokenizer)] if as_text else tokenizer.special_tokens
        model = BPE.of_core(tokenizer, frozenset(keys), huggingface.model_options(tokenizer))
        return Tokenizer._loaded_from(model, tokenizer, huggingface.components_of(tokenizer))

    @staticmethod
    def _loaded_from(model: BPE, core: CoreTokenizer, components: dict[str, Any]) -> Tokenizer:
        made = Tokenizer(model)
        for name, kind in _KINDS.items():
            setattr(made, name, kind.from_json(components.get(name)))
        made._added = AddedVocabulary(core.added_tokens)
        made._truncation = lengths.truncation_from_json(core.truncation)
        made._padding = lengths.padding_from_json(core.padding)
        made._loaded = made._core_state()
        return made

    def save(self, path: str, pretty: bool = True) -> None:
        """Write tokenizer.json, atomically."""
        with open_output_file(path) as file:
            file.write(self.to_str(pretty).encode())

    def to_str(self, pretty: bool = False) -> str:
        """Return the text of tokenizer.json. pretty: indented.

        Raise UnsupportedTokenizer if `train_new_from_iterator` of transformers calls it, which would train a tokenizer
        of the tokenizers library made from this text.
        """
        if sys._getframe(1).f_code.co_name == "train_new_from_iterator":
            raise UnsupportedTokenizer(
                "train_new_from_iterator: not supported, as it would return a tokenizer of the tokenizers "
                "library. Train with Tokenizer.train_from_iterator and wrap the result (see "
                "docs/reference/drop-in-apis.md)."
            )
        text = self.model.document(self._root())
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2) if pretty else text

    def _root(self) -> dict[str, Any]:
        """Return tokenizer.json without the model."""
        tokens = sorted(self._added.tokens.items())
        return {
            "version": "1.0",
            "truncation": lengths.truncation_to_json(self._truncation),
            "padding": lengths.padding_to_json(self._padding),
            "added_tokens": [{"id": id_, **token.to_json()} for id_, token in tokens],
            **{name: self._json(name) for name in _KINDS},
        }

    # -- copies and repr -----------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer.from_str, (self.to_str(),), self.encode_special_tokens

    def __setstate__(self, state: bool) -> None:
        self.encode_special_tokens = state

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)  # with the immutable core
        made.model = copy.copy(self.model)
        made._loaded = None if self._loaded is None else [id(made.model), *self._loaded[1:]]
        for name in _KINDS:
            setattr(made, name, copy.deepcopy(getattr(self, name), memo))
        made._added = self._added.copy()
        return made

    def _to_show(self) -> dict[str, Any]:
        root: dict[str, Any] = {"type": "Tokenizer"} | self._root() | {"model": self.model.to_json()}
        for name in ("truncation", "padding"):
            if root[name] is not None:
                root[name] = {"type": f"{name.capitalize()}Params"} | root[name]
        return root

    def __repr__(self) -> str:
        return short_repr(self._to_show())

    def __str__(self) -> str:
        return short_repr(self._to_show(), SHORT)

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Return the encoding of a text or a pair. Raise TypeError for another type and for a lone surrogate.

        is_pretokenized: each sequence is a list of words.
        """
        item = [sequence] if pair is None else [sequence, pair]
        return self._encode([item], is_pretokenized, add_special_tokens, 1)[0]

    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Return the encodings of texts, or of pairs of texts (tuples or lists of two).

        is_pretokenized: each sequence is a list of words.

        Uses all cores, or one if TOKENIZERS_PARALLELISM is false.
        """
        if isinstance(input, (str, bytes)) or not isinstance(input, Iterable):
            raise TypeError(f"input: must be a list of texts (got {shown(input)})")
        threads = 1 if os.environ.get("TOKENIZERS_PARALLELISM", "1").lower() in _OFF else None
        items = [
            [item] if type(item) is str else arguments.input_pair(item, is_pretokenized) for item in input
        ]
        encodings = self._encode(items, is_pretokenized, add_special_tokens, threads)
        if self._padding is not None:
            lengths.pad(encodings, self._padding)
        return encodings

    encode_batch_fast = encode_batch  # offsets are computed on demand

    def _encode(
        self, items: Sequence[Sequence[Any]], is_pretokenized: bool, add: bool, threads: int | None
    ) -> list[Encoding]:
        """Return the encoding of each item of one or two sequences."""
        built = self._current()
        texts: list[str] = []
        for item in items:
            for sequence in item:
                texts += arguments.input_words(sequence) if is_pretokenized else [sequence]
        try:
            batch = built.engine().batch(texts, threads)
        except (TypeError, AttributeError, UnicodeError, InvalidText):
            for text in texts:
                arguments.input_text(text)
            raise
        around = built.around[add]
        is_plain = self._truncation is None and self._padding is None and not is_pretokenized
        batch.around, batch.processor, batch.add = around or ([], []), built.processor, add
        encodings: list[Encoding] = []
        index = 0
        for item in items:
            if around is not None and is_plain and len(item) == 1:
                encodings.append(Encoding.deferred(batch, index))
                index += 1
                continue
            sequences = []
            for type_id, sequence in enumerate(item):
                count = len(sequence) if is_pretokenized else 1
                columns = [batch.columns(each) for each in range(index, index + count)]
                sequences.append(encoding_of(columns, type_id, is_pretokenized))
                index += count
            encodings.append(self._finished(sequences, add))
        return encodings

    def _around(self, add: bool) -> tuple[list[int], list[int]] | None:
        ids = post_process(self.post_processor, [Encoding.special([-1], [""])], add).ids
        index = ids.index(-1) if ids.count(-1) == 1 else None
        return None if index is None else (ids[:index], ids[index + 1 :])

    def _finished(self, sequences: list[Encoding], add: bool) -> Encoding:
        """Truncate, add special tokens and pad."""
        if self._truncation is not None:
            added = self.num_special_tokens_to_add(len(sequences) == 2) if add else 0
            length = self._truncation["max_length"] - added
            if length < 0:
                raise BadArgument(
                    f"max_length: must be at least {added}, the number of added tokens (got {length + added})"
                )
            lengths.truncate(sequences, self._truncation, length)
        encoding = post_process(self.post_processor, sequences, add)
        if self._padding is not None:
            lengths.pad([encoding], self._padding)
        return encoding

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Truncate, apply the post-processor and pad, as `encode` does."""
        for each in (encoding, pair):
            if not isinstance(each, (Encoding, type(None))):
                raise TypeError(f"encodings: must be Encodings of this package (got {shown(each)})")
        sequences = [each.copy() for each in (encoding, pair) if each is not None]
        return self._finished(sequences, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Return the number of tokens that are added to a text or a pair."""
        return 0 if self.post_processor is None else self.post_processor.num_special_tokens_to_add(is_pair)

    async def async_encode(self, *args: Any, **named: Any) -> Encoding:
        """Run `encode` in a thread."""
        return await asyncio.to_thread(self.encode, *args, **named)

    async def async_encode_batch(self, *args: Any, **named: Any) -> list[Encoding]:
        """Run `encode_batch` in a thread."""
        return await asyncio.to_thread(self.encode_batch, *args, **named)

    async_encode_batch_fast = async_encode_batch

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of the IDs. Unknown IDs are skipped, and invalid UTF-8 becomes U+FFFD."""
        given: Any = ids
        if isinstance(given, str) or not hasattr(given, "__getitem__"):
            raise TypeError(f"ids: must be a list of IDs (got {shown(ids)})")
        built = self._current()
        if skip_special_tokens and built.skipped:
            ids = [id_ for id_ in ids if id_ not in built.skipped]
        if isinstance(self.decoder, ByteLevel):
            core = built.engine().tokenizer
            if core.text_rules is None and core.decoder is None and built.not_byte_level.isdisjoint(ids):
                with suppress(BadArgument):  # for an unknown ID
                    return core.decode(ids)
        texts = [self._token(built, arguments.id_number("ids", id_)) for id_ in ids]
        tokens = [text for text in texts if text is not None]
        if self.decoder is None:
            return " ".join(tokens)
        text: str = self.decoder.decode(tokens)
        return text

    def decode_batch(self, sequences: Iterable[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """Return the text of each list of IDs."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    async def async_decode_batch(self, *args: Any, **named: Any) -> list[str]:
        """Run `decode_batch` in a thread."""
        return await asyncio.to_thread(self.decode_batch, *args, **named)

    # -- training ------------------------------------------------------------------------------------------------

    def train(self, files: Iterable[str], trainer: BpeTrainer | None = None) -> None:
        """Train the model on the lines of files. See `trainers`."""
        self._train(lines_of(files), trainer)

    def train_from_iterator(
        self, iterator: Iterable[Any], trainer: BpeTrainer | None = None, length: int | None = None
    ) -> None:
        """Train the model on texts, or on batches of texts. length is ignored."""
        self._train(texts_of(iterator), trainer)

    def _train(self, texts: Iterable[str], trainer: BpeTrainer | None) -> None:
        components = self._json("normalizer"), self._json("pre_tokenizer")
        self.model = train(self.model, self._added.for_core(), self._ignored(), *components, texts, trainer)
        self.add_special_tokens(trainer.special_tokens if trainer is not None else [])
