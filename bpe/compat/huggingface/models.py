"""`BPE`, the only supported model, as in `tokenizers.models`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import Component
from bpe.compat.huggingface.engine import Engine
from bpe.errors import BadArgument, BadTokenizer, shown
from bpe.formats import huggingface
from bpe.formats.by_path import read_file
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.json_input import parse
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import TextRules


class Model(Component):
    """Turns pretokens into IDs."""


class Token(NamedTuple):
    """A token of a pretoken. offsets: [start, stop) in bytes."""

    id: int
    value: str
    offsets: tuple[int, int]

    def as_tuple(self) -> tuple[int, str, tuple[int, int]]:
        """Return (id, value, offsets)."""
        return tuple(self)  # type: ignore[return-value]


@dataclass(eq=False, repr=False, init=False)
class BPE(Model):
    """Entries and merges.

    vocab: text -> ID, or the path of a vocab.json.
    merges: pairs of texts, lowest rank first, or the path of a merges.txt.
    Other arguments: as in tokenizer.json.
    """

    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False

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
        self.dropout, self.unk_token = dropout, unk_token
        self.continuing_subword_prefix = continuing_subword_prefix
        self.end_of_word_suffix = end_of_word_suffix
        self.fuse_unk, self.byte_fallback = bool(fuse_unk), bool(byte_fallback)
        self.ignore_merges = bool(ignore_merges)
        if (vocab is None) != (merges is None):
            raise BadArgument("vocab and merges: must be passed together, or not at all")
        if isinstance(vocab, str) and isinstance(merges, str):
            vocab, merges = BPE.read_file(vocab, merges)
        if isinstance(vocab, str) or isinstance(merges, str):
            raise TypeError("vocab and merges: must both be paths, or neither")
        self._set(dict(vocab or {}), [(left, right) for left, right in merges or ()])
        prefix = len(continuing_subword_prefix or "")
        for rank, (left, right) in enumerate(self.merges):
            for entry in (left, right, left + right[prefix:]):
                if entry not in self.vocab:
                    raise BadTokenizer(f"model.merges[{rank}]: not an entry (got {shown(entry)})")

    def _set(
        self,
        vocab: dict[str, int] | None,
        merges: list[tuple[str, str]] | None,
        core: Tokenizer | None = None,
        keys: frozenset[str] = frozenset(),
    ) -> None:
        self.__dict__.update(_core=core, _keys=keys, _vocab=vocab, _texts=None, _merges=merges)

    @classmethod
    def of_core(cls, tokenizer: Tokenizer, keys: frozenset[str], options: Mapping[str, Any]) -> BPE:
        """Return the model of a tokenizer of the core. keys: its added tokens that are in model.vocab."""
        model = cls.learned({}, [], options)
        model._set(None, None, tokenizer, keys)
        return model

    @classmethod
    def learned(cls, vocab: dict[str, int], merges: list[tuple[str, str]], options: Mapping[str, Any]) -> BPE:
        """Return a trained model, without checking its merges."""
        model = cls(**{field.name: options.get(field.name) for field in cls._fields()})
        model._set(vocab, merges)
        return model

    @property
    def core(self) -> Tokenizer | None:
        """The tokenizer that has the entries and merges, None if they are in Python."""
        core: Tokenizer | None = self.__dict__["_core"]
        return core

    @property
    def _special_keys(self) -> list[tuple[int, str]]:
        """(ID, text) of the added tokens that are in model.vocab but not entries; by ascending ID."""
        if self.core is None:
            return []
        encoder, keys = self.core.core_encoder, self.__dict__["_keys"]
        special = {id_: text for text, id_ in self.core.special_tokens.items() if text in keys}
        outside = {id_: text for id_, text in special.items() if encoder.entry(id_) is None}
        return sorted([*self.core.parts.vocabulary.decoded_only.items(), *outside.items()])

    def _spelled(self, entry: bytes) -> str:
        assert self.core is not None
        return entry.decode() if TextRules.of_text(self.core.text_rules) else to_characters(entry)

    @property
    def vocab(self) -> dict[str, int]:
        """Text -> ID of all entries."""
        if self.__dict__["_vocab"] is None:
            assert self.core is not None
            entries = {self._spelled(entry): id_ for id_, entry in self.core.core_encoder.entries().items()}
            self.__dict__["_vocab"] = entries | {text: id_ for id_, text in self._special_keys}
        vocab: dict[str, int] = self.__dict__["_vocab"]
        return vocab

    @property
    def merges(self) -> list[tuple[str, str]]:
        """Pairs of texts, lowest rank first."""
        if self.__dict__["_merges"] is None:
            assert self.core is not None
            self.__dict__["_merges"] = [tuple(map(self._spelled, pair)) for pair in self.core.merges]
        merges: list[tuple[str, str]] = self.__dict__["_merges"]
        return merges

    def __len__(self) -> int:
        core = self.core
        return len(self.vocab) if core is None else len(core.core_encoder) + len(self._special_keys)

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> BPE:
        made = BPE.__new__(BPE)
        made.__dict__.update(self.__dict__)
        return made

    def fields(self) -> list[Any]:
        """Return the options in the order of the class."""
        return [self.__dict__[field.name] for field in self._fields()]

    def options(self) -> dict[str, Any]:
        """Return tokenizer.json's model without entries and merges."""
        return super().to_json()

    def to_json(self) -> dict[str, Any]:
        return self.options() | {"vocab": self.vocab, "merges": self.merges}

    def __setstate__(self, state: bytes | dict[str, Any]) -> None:
        value = json.loads(state) if isinstance(state, bytes) else state
        super().__setstate__(value)
        self._set(value["vocab"], [(left, right) for left, right in value["merges"]])

    def document(self, root: dict[str, Any]) -> str:
        """Return the text of a tokenizer.json with this model. root: everything else."""
        core = self.core
        if core is None:
            return json.dumps(root | {"model": self.to_json()}, ensure_ascii=False, separators=(",", ":"))
        whole = root | {"model": self.options() | huggingface.STAND_INS}
        pieces = huggingface.with_entries(whole, core.core_encoder, self._special_keys)
        return b"".join(pieces).decode().rstrip()

    def tokenize(self, sequence: str) -> list[Token]:
        """Return the tokens of one pretoken. Builds the model in the core on each call."""
        arguments.text("sequence", sequence)
        if not sequence:
            return []
        core = Tokenizer.from_parts(huggingface.read(self.document({}).encode()))
        ids, sizes = Engine(core, (), lambda: self.vocab).encode_text_pretoken(sequence)
        ends = list(accumulate(sizes))
        return [
            Token(id_, self.id_to_token(id_) or "", (stop - size, stop))
            for id_, size, stop in zip(ids, sizes, ends, strict=True)
        ]

    def get_trainer(self) -> Any:
        """Return a trainer with default options."""
        from bpe.compat.huggingface.trainers import BpeTrainer  # which needs this module

        return BpeTrainer()

    def token_to_id(self, token: str) -> int | None:
        """Return the ID of an entry."""
        return self.vocab.get(arguments.text("token", token))

    def id_to_token(self, id: int) -> str | None:
        """Return the text of an entry."""
        if self.__dict__["_texts"] is None:
            self.__dict__["_texts"] = {id_: text for text, id_ in reversed(self.vocab.items())}
        text: str | None = self.__dict__["_texts"].get(arguments.id_number("id", id))
        return text

    @staticmethod
    def read_file(vocab: str, merges: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Return the entries of a vocab.json and the merges of a merges.txt. Raise BadTokenizer for invalid files."""
        entries: dict[str, int] = parse(read_file(Path(vocab)))
        # Other line separators may be part of entries.
        lines = (line.removesuffix("\r") for line in read_file(Path(merges)).decode().split("\n"))
        pairs = (line.split(" ") for line in lines if line and not line.startswith("#version"))
        return entries, [(left, right) for left, right in pairs]

    @staticmethod
    def from_file(vocab: str, merges: str, **options: Any) -> BPE:
        """Return the model of a vocab.json and a merges.txt."""
        return BPE(vocab, merges, **options)

    def save(self, folder: str, prefix: str | None = None) -> list[str]:
        """Write vocab.json and merges.txt into the folder. Return their paths."""
        start = f"{prefix}-" if prefix else ""
        paths = [Path(folder, f"{start}vocab.json"), Path(folder, f"{start}merges.txt")]
        by_id = sorted(self.vocab.items(), key=lambda entry: entry[1])
        paths[0].write_text(json.dumps(dict(by_id), ensure_ascii=False), encoding="utf-8")
        lines = ["#version: 0.2", *(f"{left} {right}" for left, right in self.merges), ""]
        paths[1].write_text("\n".join(lines), encoding="utf-8")
        return list(map(str, paths))


Unigram = arguments.unsupported("Unigram")
WordLevel = arguments.unsupported("WordLevel")
WordPiece = arguments.unsupported("WordPiece")
