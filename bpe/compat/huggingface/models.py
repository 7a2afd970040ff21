"""`BPE`, the only supported model, as in `tokenizers.models`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import Component
from bpe.compat.huggingface.engine import Engine
from bpe.errors import BadArgument, BadTokenizer, shown
from bpe.formats import huggingface
from bpe.formats.by_path import read_file
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.huggingface import MODEL
from bpe.formats.json_input import anything, parse
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import TextRules

_TEXTS: Final = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
_FLAGS: Final = ("fuse_unk", "byte_fallback", "ignore_merges")
_FIELDS: Final = {"dropout": (anything, None)} | {name: MODEL[name] for name in (*_TEXTS, *_FLAGS)}

Merges = list[tuple[str, str]]


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


class BPE(Model):
    """Entries and merges, in Python or in a tokenizer of the core.

    vocab: text -> ID, or the path of a vocab.json.
    merges: pairs of texts, lowest rank first, or the path of a merges.txt.
    options: dropout, unk_token, continuing_subword_prefix, end_of_word_suffix, fuse_unk, byte_fallback, ignore_merges
        as in tokenizer.json. cache_capacity is ignored.
    """

    keys = MappingProxyType({name: name for name in _FIELDS})
    fields = MappingProxyType(_FIELDS)

    def __init__(
        self,
        vocab: Mapping[str, int] | str | None = None,
        merges: Iterable[tuple[str, str]] | str | None = None,
        cache_capacity: int | None = None,
        dropout: float | None = None,
        **options: Any,
    ) -> None:
        arguments.warn_unknown(options.keys() - {*self.keys})
        if (vocab is None) != (merges is None):
            raise BadArgument("vocab and merges: must be passed together, or not at all")
        if isinstance(vocab, str) and isinstance(merges, str):
            vocab, merges = BPE.read_file(vocab, merges)
        if isinstance(vocab, str) or isinstance(merges, str):
            raise TypeError("vocab and merges: must both be paths, or neither")
        self._set({**options, "dropout": dropout}, dict(vocab or {}), [(a, b) for a, b in merges or ()])
        prefix = len(options.get("continuing_subword_prefix") or "")
        for rank, (left, right) in enumerate(self.merges):
            for entry in (left, right, left + right[prefix:]):
                if entry not in self.vocab:
                    raise BadTokenizer(f"model.merges[{rank}]: not an entry (got {shown(entry)})")

    def _set(
        self,
        options: Mapping[str, Any],
        vocab: dict[str, int] | None,
        merges: Merges | None,
        core: Tokenizer | None = None,
        keys: frozenset[str] = frozenset(),
    ) -> BPE:
        for name in self.keys:
            self._put(name, bool(options.get(name)) if name in _FLAGS else options.get(name))
        self.__dict__.update(core=core, _keys=keys, _vocab=vocab, _texts=None, _merges=merges)
        return self

    @classmethod
    def of_core(cls, tokenizer: Tokenizer, keys: frozenset[str], options: Mapping[str, Any]) -> BPE:
        """Return the model of a tokenizer of the core. keys: its added tokens that are in model.vocab."""
        return cls.__new__(cls)._set(options, None, None, tokenizer, keys)

    @classmethod
    def learned(cls, vocab: dict[str, int], merges: Merges, options: Mapping[str, Any]) -> BPE:
        """Return a trained model, without checking its merges."""
        return cls.__new__(cls)._set(options, vocab, merges)

    core: Tokenizer | None  # has the entries and merges; None if they are in Python

    def _special_keys(self, core: Tokenizer) -> list[tuple[int, str]]:
        """Return (ID, text) of the added tokens that are in model.vocab but not entries; by ascending ID."""
        special = {id_: text for text, id_ in core.special_tokens.items() if text in self.__dict__["_keys"]}
        outside = {id_: text for id_, text in special.items() if core.core_encoder.entry(id_) is None}
        return sorted([*core.parts.vocabulary.decoded_only.items(), *outside.items()])

    @staticmethod
    def _spelled(core: Tokenizer, entry: bytes) -> str:
        return entry.decode() if TextRules.of_text(core.text_rules) else to_characters(entry)

    @property
    def vocab(self) -> dict[str, int]:
        """Text -> ID of all entries."""
        vocab: dict[str, int] | None = self.__dict__["_vocab"]
        if vocab is None:
            assert self.core is not None
            entries = self.core.core_encoder.entries()
            vocab = {self._spelled(self.core, entry): id_ for id_, entry in entries.items()}
            vocab |= {text: id_ for id_, text in self._special_keys(self.core)}
            self.__dict__["_vocab"] = vocab
        return vocab

    @property
    def merges(self) -> Merges:
        """Pairs of texts, lowest rank first."""
        merges: Merges | None = self.__dict__["_merges"]
        if merges is None:
            core = self.core
            assert core is not None
            merges = [(self._spelled(core, left), self._spelled(core, right)) for left, right in core.merges]
            self.__dict__["_merges"] = merges
        return merges

    def __len__(self) -> int:
        core = self.core
        return len(self.vocab) if core is None else len(core.core_encoder) + len(self._special_keys(core))

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> BPE:
        made = BPE.__new__(BPE)
        made.__dict__.update(self.__dict__)
        return made

    def values(self) -> list[Any]:
        """Return the options in the order of `keys`."""
        return [self.__dict__[name] for name in self.keys]

    def options(self) -> dict[str, Any]:
        """Return tokenizer.json's model without entries and merges."""
        return super().to_json()

    def to_json(self) -> dict[str, Any]:
        return self.options() | {"vocab": self.vocab, "merges": self.merges}

    def __setstate__(self, state: bytes | dict[str, Any]) -> None:
        value = json.loads(state) if isinstance(state, bytes) else state
        self._set(value, value["vocab"], [(left, right) for left, right in value["merges"]])

    def document(self, root: dict[str, Any]) -> str:
        """Return the text of a tokenizer.json with this model. root: everything else."""
        if self.core is None:
            return json.dumps(root | {"model": self.to_json()}, ensure_ascii=False, separators=(",", ":"))
        whole = root | {"model": self.options() | huggingface.STAND_INS}
        pieces = huggingface.with_entries(whole, self.core.core_encoder, self._special_keys(self.core))
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
    def read_file(vocab: str, merges: str) -> tuple[dict[str, int], Merges]:
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
