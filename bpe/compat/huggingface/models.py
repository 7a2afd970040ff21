"""`BPE`, the one model here, by the arguments of `tokenizers.models.BPE`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import Component, Field
from bpe.compat.huggingface.elsewhere import elsewhere
from bpe.compat.huggingface.engine import spelling_of
from bpe.compat.huggingface.plain_model import PlainModel
from bpe.errors import BadArgument
from bpe.formats import huggingface
from bpe.formats.by_path import read_file
from bpe.formats.json_input import parse
from bpe.tokenizer import Tokenizer


class Model(Component):
    """What makes ids of pretokens. Only `BPE` is one here."""


class Token(NamedTuple):
    """A token of a pretoken; offsets: [start, stop) in bytes of it."""

    id: int
    value: str
    offsets: tuple[int, int]

    def as_tuple(self) -> tuple[int, str, tuple[int, int]]:
        """(id, value, offsets)."""
        return tuple(self)  # type: ignore[return-value]


def _text_or_none(name: str, value: Any) -> str | None:
    return None if value is None else arguments.text(name, value)


class BPE(
    Model,
    dropout=Field(None),
    unk_token=Field(None, check=_text_or_none),
    continuing_subword_prefix=Field(None, check=_text_or_none),
    end_of_word_suffix=Field(None, check=_text_or_none),
    fuse_unk=Field(False),
    byte_fallback=Field(False),
    ignore_merges=Field(False),
):
    """Entries and merges. vocab: text -> id; merges: pairs of texts, lowest rank first, or both as files' paths.

    The other arguments are tokenizer.json's.
    """

    def __init__(
        self,
        vocab: Mapping[str, int] | str | None = None,
        merges: Iterable[tuple[str, str]] | str | None = None,
        cache_capacity: int | None = None,
        dropout: float | None = None,
        unk_token: str | None = None,
        continuing_subword_prefix: str | None = None,
        end_of_word_suffix: str | None = None,
        fuse_unk: bool | None = None,
        byte_fallback: bool | None = None,
        ignore_merges: bool | None = None,
        **unknown: Any,
    ) -> None:
        arguments.warn_unknown(unknown)
        super().__init__(
            dropout,
            unk_token,
            continuing_subword_prefix,
            end_of_word_suffix,
            bool(fuse_unk),
            bool(byte_fallback),
            bool(ignore_merges),
        )
        if (vocab is None) != (merges is None):
            raise BadArgument("vocab and merges: must be passed together, or not at all")
        if isinstance(vocab, str) and isinstance(merges, str):
            vocab, merges = BPE.read_file(vocab, merges)
        if isinstance(vocab, str) or isinstance(merges, str):
            raise TypeError("vocab and merges: must both be paths, or neither")
        self._take(dict(vocab or {}), [(left, right) for left, right in merges or ()])
        self._check()

    def _check(self) -> None:
        """BadTokenizer for a merge of what is no entry, or that makes none."""
        vocab, merges = self.__dict__["_vocab"], self.__dict__["_merges"]
        if merges:
            PlainModel(vocab, merges, self.options() | {"dropout": None})

    def _take(self, vocab: dict[str, int], merges: list[tuple[str, str]]) -> None:
        self.__dict__.update(_core=None, _vocab=vocab, _texts=None, _merges=merges)

    @classmethod
    def of_core(cls, tokenizer: Tokenizer, keys: frozenset[str], options: Mapping[str, Any]) -> BPE:
        """The model of a tokenizer in the core. keys: its added tokens that are in model.vocab."""
        model = cls(**{name: options.get(name) for name in cls.fields})
        model.__dict__.update(_core=tokenizer, _keys=keys, _vocab=None, _texts=None, _merges=None)
        return model

    @classmethod
    def learned(cls, vocab: dict[str, int], merges: list[tuple[str, str]], options: Mapping[str, Any]) -> BPE:
        """Make the model of a training without checking its merges."""
        model = cls(**{name: options.get(name) for name in cls.fields})
        model._take(vocab, merges)
        return model

    @property
    def core(self) -> Tokenizer | None:
        """The tokenizer whose entries and merges it has, if they are the core's."""
        core: Tokenizer | None = self.__dict__["_core"]
        return core

    @property
    def special_keys(self) -> list[tuple[int, str]]:
        """(id, text) of the added tokens that are in model.vocab and no entries; by ascending id."""
        core = self.core
        if core is None:
            return []
        decoded_only = core.parts.vocabulary.decoded_only.items()
        return sorted(
            [
                *decoded_only,
                *(
                    (id_, text)
                    for text, id_ in core.special_tokens.items()
                    if text in self.__dict__["_keys"] and core.core_encoder.entry(id_) is None
                ),
            ]
        )

    @property
    def vocab(self) -> dict[str, int]:
        """text -> id of all entries."""
        if self.__dict__["_vocab"] is None:
            core = self.core
            assert core is not None
            spelled = spelling_of(core)
            entries = {spelled(entry): id_ for id_, entry in core.core_encoder.entries().items()}
            self.__dict__["_vocab"] = entries | {text: id_ for id_, text in self.special_keys}
        vocab: dict[str, int] = self.__dict__["_vocab"]
        return vocab

    @property
    def merges(self) -> list[tuple[str, str]]:
        """Pairs of texts, lowest rank first."""
        if self.__dict__["_merges"] is None:
            core = self.core
            assert core is not None
            spelled = spelling_of(core)
            self.__dict__["_merges"] = [(spelled(left), spelled(right)) for left, right in core.merges]
        merges: list[tuple[str, str]] = self.__dict__["_merges"]
        return merges

    def __len__(self) -> int:
        core = self.core
        return len(self.vocab) if core is None else len(core.core_encoder) + len(self.special_keys)

    def __bool__(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        """tokenizer.json's model without entries and merges."""
        return super().to_json()

    def to_json(self) -> dict[str, Any]:
        return self.options() | {"vocab": self.vocab, "merges": [list(pair) for pair in self.merges]}

    def to_show(self) -> dict[str, Any]:
        return self.options() | {"vocab": self.vocab, "merges": self.merges}

    def _read(self, value: dict[str, Any]) -> None:
        super()._read(value)
        pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in value["merges"])
        self._take(value["vocab"], [(left, right) for left, right in pairs])

    def written(self, root: dict[str, Any]) -> str:
        """The text of tokenizer.json; root: all but the model."""
        core = self.core
        if core is None:
            return json.dumps(root | {"model": self.to_json()}, ensure_ascii=False, separators=(",", ":"))
        whole = root | {"model": self.options() | huggingface.STAND_INS}
        pieces = huggingface.with_entries(whole, core.core_encoder, self.special_keys)
        return b"".join(pieces).decode().rstrip()

    def plain(self) -> PlainModel:
        """It in plain Python."""
        return PlainModel(self.vocab, self.merges, self.options())

    def tokenize(self, sequence: str) -> list[Token]:
        """The tokens of a text that is one pretoken. As slow as it is to look at the whole vocabulary."""
        tokens = self.plain().tokens(arguments.text("sequence", sequence))
        ends = list(accumulate(token.size for token in tokens))
        return [
            Token(token.id, token.text, (stop - token.size, stop))
            for token, stop in zip(tokens, ends, strict=True)
        ]

    def get_trainer(self) -> Any:
        """A trainer with its defaults."""
        from bpe.compat.huggingface.trainers import BpeTrainer  # which needs this module

        return BpeTrainer()

    def token_to_id(self, token: str) -> int | None:
        """The id of an entry."""
        return self.vocab.get(arguments.text("token", token))

    def id_to_token(self, id: int) -> str | None:
        """The text of an entry."""
        if self.__dict__["_texts"] is None:
            self.__dict__["_texts"] = {id_: text for text, id_ in reversed(self.vocab.items())}
        text: str | None = self.__dict__["_texts"].get(arguments.id_number("id", id))
        return text

    @staticmethod
    def read_file(vocab: str, merges: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """(entries, merges) of a vocab.json and a merges.txt. BadTokenizer if they can't be read."""
        entries: dict[str, int] = parse(read_file(Path(vocab)))
        # Entries may hold what Python takes for the end of a line, too.
        lines = (line.removesuffix("\r") for line in read_file(Path(merges)).decode().split("\n"))
        pairs = (line.split(" ") for line in lines if line and not line.startswith("#version"))
        return entries, [(left, right) for left, right in pairs]

    @staticmethod
    def from_file(vocab: str, merges: str, **options: Any) -> BPE:
        """The model of a vocab.json and a merges.txt."""
        return BPE(vocab, merges, **options)

    def save(self, folder: str, prefix: str | None = None) -> list[str]:
        """Write vocab.json and merges.txt into the folder; their paths."""
        start = f"{prefix}-" if prefix else ""
        paths = [Path(folder, f"{start}vocab.json"), Path(folder, f"{start}merges.txt")]
        by_id = sorted(self.vocab.items(), key=lambda entry: entry[1])
        paths[0].write_text(json.dumps(dict(by_id), ensure_ascii=False), encoding="utf-8")
        lines = ["#version: 0.2", *(f"{left} {right}" for left, right in self.merges), ""]
        paths[1].write_text("\n".join(lines), encoding="utf-8")
        return list(map(str, paths))


Unigram = elsewhere("Unigram")
WordLevel = elsewhere("WordLevel")
WordPiece = elsewhere("WordPiece")
