"""`Tokenizer`: that of tokenizers, by its names, for BPE."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from bpe.compat.huggingface import lengths
from bpe.compat.huggingface.component import SHORT, written
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.engine import Engine
from bpe.compat.huggingface.inputs import check_text, no_text, pair_of, words_of
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.post_process import added_count, post_process
from bpe.compat.huggingface.settings import Settings
from bpe.compat.huggingface.state import text_segment
from bpe.compat.huggingface.tokenizer_file import read_tokenizer, settings_of
from bpe.compat.huggingface.trainers import BpeTrainer, lines_of, texts_of, train
from bpe.errors import BadArgument, BadTokenizer, InvalidText, UnsupportedTokenizer, shown
from bpe.formats.by_path import read_file
from bpe.formats.huggingface import model_options, text_keys
from bpe.hub import locate
from bpe.output_file import open_output_file
from bpe.tokenizer import Tokenizer as CoreTokenizer
from bpe.vocabulary import TextRules

_OFF: Final = {"", "off", "false", "f", "no", "n", "0"}  # values of TOKENIZERS_PARALLELISM


class Tokenizer(Settings):
    """A model, added tokens and what is done before and after; all of it may be changed.

    Other than `bpe.Tokenizer` it adds begin and end tokens unless add_special_tokens=False, and applies the truncation
    and padding of its file. May be used by threads at once as long as none of them changes it.
    """

    # -- files ---------------------------------------------------------------------------------------------------

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """The tokenizer of a tokenizer.json's text; BadTokenizer or UnsupportedTokenizer names the JSON path."""
        return Tokenizer.from_buffer(json.encode())

    @staticmethod
    def from_buffer(buffer: bytes) -> Tokenizer:
        """The tokenizer of a tokenizer.json's bytes."""
        model, settings, added = read_tokenizer(bytes(buffer))
        tokenizer = Tokenizer(model)
        tokenizer._set(settings)
        tokenizer._added = added
        return tokenizer

    @staticmethod
    def from_file(path: str) -> Tokenizer:
        """The tokenizer in a tokenizer.json; errors begin with the path."""
        data = read_file(Path(path))
        try:
            return Tokenizer.from_buffer(data)
        except BadTokenizer as error:
            raise type(error)(f"{path}: {error}") from None

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: str | None = None) -> Tokenizer:
        """The tokenizer in a folder or file, or of the Hugging Face Hub by name, as `bpe.Tokenizer.load` takes them.

        revision: a branch, tag or commit of the hub. BadArgument for a token: the hub's library reads HF_TOKEN.
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
        """The same tokenizer with this interface; of a rank file, too."""
        of_text = TextRules.of_text(tokenizer.text_rules)
        keys = text_keys(tokenizer) if of_text else [(0, text) for text in tokenizer.special_tokens]
        made = Tokenizer(
            BPE.of_core(tokenizer, frozenset(text for _, text in keys), model_options(tokenizer))
        )
        made._set(settings_of(tokenizer))
        made._added.take(tokenizer.added_tokens)
        return made

    def save(self, path: str, pretty: bool = True) -> None:
        """Write tokenizer.json; the file appears complete or not at all."""
        with open_output_file(path) as file:
            file.write(self.to_str(pretty).encode())

    def to_str(self, pretty: bool = False) -> str:
        """The text of tokenizer.json. pretty: over many lines.

        UnsupportedTokenizer for `train_new_from_iterator` of transformers, which would train and return a tokenizer of
        the tokenizers library made from this text. Nothing else that it calls belongs to this package.
        """
        if sys._getframe(1).f_code.co_name == "train_new_from_iterator":
            raise UnsupportedTokenizer(
                "train_new_from_iterator: not supported, as it would return a tokenizer of the tokenizers "
                "library. Train with Tokenizer.train_from_iterator and wrap the result (see "
                "docs/reference/drop-in-apis.md)."
            )
        text = self._model.written(self._root())
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2) if pretty else text

    def _root(self) -> dict[str, Any]:
        """tokenizer.json but for the model."""
        return {
            "version": "1.0",
            "truncation": lengths.truncation_to_json(self._truncation),
            "padding": lengths.padding_to_json(self._padding),
            "added_tokens": [
                {"id": id_, **token.to_json()} for id_, token in sorted(self._added.tokens.items())
            ],
            **{name: self._json(name) for name in self._components},
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer.from_str, (self.to_str(),), self._takes_special_for_text

    def __setstate__(self, state: bool) -> None:
        self.encode_special_tokens = state

    def _to_show(self) -> dict[str, Any]:
        root: dict[str, Any] = {"type": "Tokenizer"} | self._root() | {"model": self._model.to_show()}
        for name in ("truncation", "padding"):
            if root[name] is not None:
                root[name] = {"type": f"{name.capitalize()}Params"} | root[name]
        return root

    def __repr__(self) -> str:
        return written(self._to_show())

    def __str__(self) -> str:
        return written(self._to_show(), SHORT)

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """The encoding of a text or of a pair; is_pretokenized: each is a list of words.

        TypeError for what is no text, a text with a lone surrogate among them.
        """
        finish = self._simple(add_special_tokens)
        if finish is not None and pair is None and not is_pretokenized:
            try:
                ids = finish.engine.ids(sequence)
            except (TypeError, InvalidText):
                raise no_text(sequence) from None
            return Encoding((), finish, sequence, ids, 0, len(ids))
        given = [sequence] if pair is None else [sequence, pair]
        return self._encode_all([given], is_pretokenized, add_special_tokens, 1)[0]

    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """The encodings of texts, pairs of texts (tuples or lists of two), or of words (is_pretokenized).

        All cores are used, one if TOKENIZERS_PARALLELISM is false.
        """
        if isinstance(input, (str, bytes)) or not isinstance(input, Iterable):
            raise TypeError(f"input: must be a list of texts (got {shown(input)})")
        items = input if isinstance(input, list) else list(input)
        threads = 1 if os.environ.get("TOKENIZERS_PARALLELISM", "1").lower() in _OFF else None
        finish = self._simple(add_special_tokens)
        if finish is not None and not is_pretokenized and all(type(item) is str for item in items):
            ids, starts = self._batch_ids(finish.engine, items, threads)
            return [
                Encoding((), finish, text, ids, start, stop)
                for text, start, stop in zip(items, starts, starts[1:], strict=False)
            ]
        given = [pair_of(item, is_pretokenized) for item in items]
        encodings = self._encode_all(given, is_pretokenized, add_special_tokens, threads)
        if self._padding is not None:
            lengths.pad(encodings, self._padding)
        return encodings

    encode_batch_fast = encode_batch  # offsets cost nothing until somebody asks for them

    @staticmethod
    def _batch_ids(engine: Engine, texts: Sequence[str], threads: int | None) -> tuple[memoryview, list[int]]:
        try:
            return engine.batch(texts, threads)
        except (TypeError, InvalidText):
            for text in texts:
                check_text(text)
            raise

    def _encode_all(
        self, given: Sequence[Sequence[Any]], is_pretokenized: bool, add: bool, threads: int | None
    ) -> list[Encoding]:
        """An encoding for each item, which is one sequence or two."""
        engine = self._current().engine
        texts: list[str] = []
        for item in given:
            for sequence in item:
                texts += words_of(sequence) if is_pretokenized else [check_text(sequence)]
        ids, starts = self._batch_ids(engine, texts, threads)
        encodings = []
        at = 0
        for item in given:
            sequences = []
            for type_id, sequence in enumerate(item):
                segments = []
                for word in range(len(sequence) if is_pretokenized else 1):
                    place = word if is_pretokenized else None
                    own = (texts[at], ids, starts[at], starts[at + 1], type_id, place)
                    segments.append(text_segment(engine, *own))
                    at += 1
                sequences.append(Encoding(segments))
            encodings.append(self._finished(sequences, add))
        return encodings

    def _finished(self, sequences: list[Encoding], add: bool) -> Encoding:
        """Truncated, with the tokens around and between, and padded."""
        post_processor = self._json("post_processor")
        if self._truncation is not None:
            added = added_count(post_processor, len(sequences) == 2) if add else 0
            length = self._truncation["max_length"] - added
            if length < 0:
                raise BadArgument(
                    f"max_length: must be at least {added}, the number of added tokens (got {length + added})"
                )
            lengths.truncate(sequences, self._truncation, length)
        encoding = post_process(post_processor, sequences, add)
        if self._padding is not None:
            lengths.pad([encoding], self._padding)
        return encoding

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Truncate, apply the post-processor and pad, as `encode` does after the model."""
        for each in (encoding, pair):
            if not isinstance(each, (Encoding, type(None))):
                raise TypeError(f"encodings: must be Encodings of this package (got {shown(each)})")
        sequences = [each.copy() for each in (encoding, pair) if each is not None]
        return self._finished(sequences, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many tokens are put around a text or a pair."""
        return added_count(self._json("post_processor"), is_pair)

    async def async_encode(self, *args: Any, **named: Any) -> Encoding:
        """`encode` in a thread."""
        return await asyncio.to_thread(self.encode, *args, **named)

    async def async_encode_batch(self, *args: Any, **named: Any) -> list[Encoding]:
        """`encode_batch` in a thread."""
        return await asyncio.to_thread(self.encode_batch, *args, **named)

    async_encode_batch_fast = async_encode_batch

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of the ids; what is no id is left out, bytes that are no text become U+FFFD."""
        return self._current().decoding.text(ids, skip_special_tokens)

    def decode_batch(self, sequences: Iterable[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """The text of each list of ids."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    async def async_decode_batch(self, *args: Any, **named: Any) -> list[str]:
        """`decode_batch` in a thread."""
        return await asyncio.to_thread(self.decode_batch, *args, **named)

    # -- training ------------------------------------------------------------------------------------------------

    def train(self, files: Iterable[str], trainer: BpeTrainer | None = None) -> None:
        """Train the model on the lines of files; see `trainers`."""
        train(self, lines_of(files), trainer)

    def train_from_iterator(
        self, iterator: Iterable[Any], trainer: BpeTrainer | None = None, length: int | None = None
    ) -> None:
        """Train the model on texts, or batches of texts. length changes nothing."""
        train(self, texts_of(iterator), trainer)
