"""What a tokenizer is: its entries, merges, special tokens and options, under their public names.

Readers of files give `Parts`, writers take a `Description`; neither encodes. `Parts` build the core when they are made,
so whatever is shared between threads is complete. Python objects for each entry are made on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from bpe import _core, text_form
from bpe.added_tokens import AddedToken, core_tokens
from bpe.core_vocabulary import CoreVocabulary
from bpe.decoders import Decoder
from bpe.errors import BadArgument, shown
from bpe.normalizers import NFC, Normalizer, make_normalizer
from bpe.post_processing import PostProcessor
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import MAX_ID, SpecialTokens, TextRules, Vocabulary, make_vocabulary
from tokenmill.inputs.sizes import counted
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Parts:
    """All that a tokenizer consists of, checked. normalizer: what is done to the text first. added_tokens: by ascending
    id; None: those of the vocabulary, without flags. truncation, padding: tokenizer.json's, kept and not applied.
    decoder: what becomes of the entries where ids are decoded; None: they are bytes."""

    vocabulary: Vocabulary | CoreVocabulary
    pretokenizer: Pretokenizer
    normalizer: Normalizer | None = None
    added_tokens: tuple[AddedToken, ...] | None = None
    post_processor: PostProcessor | None = None
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    decoder: Decoder | None = None

    def __post_init__(self) -> None:
        _ = self.core

    @cached_property
    def tokens(self) -> tuple[AddedToken, ...]:
        """The added tokens."""
        if self.added_tokens is not None:
            return self.added_tokens
        by_id = sorted((id_, text) for text, id_ in self.vocabulary.special_tokens.items())
        return tuple(AddedToken(text, id_) for id_, text in by_id)

    @cached_property
    def decoded_tokens(self) -> dict[int, str]:
        """id -> the text that a decoder sees of each added token: Hugging Face's see the normalized one."""
        normalizer = self.normalizer
        return {
            token.id: normalizer.of_tokens.apply_to_text(token.text)
            if token.normalized and normalizer is not None
            else token.text
            for token in self.tokens
        } | dict(self.vocabulary.decoded_only)

    @cached_property
    def has_spaces(self) -> bool:
        """Whether the core works on texts with spaces for U+2581 (`text_form`)."""
        rules = self.vocabulary.text_rules
        has_mark = rules is not None and self.vocabulary.has_entry(text_form.LOWER_BLOCK.encode())
        return text_form.has_spaces(rules, self.pretokenizer, self.normalizer, self.tokens, has_mark)

    @cached_property
    def core_normalizer(self) -> Normalizer | None:
        """The normalizer as the core has it."""
        return text_form.with_spaces(self.normalizer) if self.has_spaces else self.normalizer

    @cached_property
    def _core_changes(self) -> Normalizer | None:
        """What the pre-tokenizer changes, as the core has it."""
        changes = self.pretokenizer.changes
        return text_form.with_spaces(changes) if self.has_spaces else changes

    @cached_property
    def preparation(self) -> Normalizer | None:
        """What is done to a text before the core cuts it: the normalizer, then what the pre-tokenizer changes."""
        if self.core_normalizer is None:
            return self._core_changes
        return self.core_normalizer.then(self._core_changes)

    @cached_property
    def core_tokens(self) -> _core.AddedTokens:
        """The added tokens, as the core looks for them."""
        needless = self._cuts.needless if self._cuts else ()
        return core_tokens(self.tokens, self.core_normalizer, needless, self.vocabulary.decoded_only)

    @property
    def automaton(self) -> _core.Automaton | None:
        """How the core cuts its texts; None where texts are cut here."""
        if self._cuts is not None:
            return self._cuts.automaton
        return self.pretokenizer.automaton_with_spaces if self.has_spaces else self.pretokenizer.automaton

    @cached_property
    def _cuts(self) -> text_form.Cuts | None:
        """How texts are cut if the pre-tokenizer cuts nothing and the merges tell."""
        rules = self.vocabulary.text_rules
        if (
            not TextRules.of_text(rules)
            or self.vocabulary.ignore_merges
            or self.pretokenizer.automaton is None
            or not text_form.cuts_nothing(self.pretokenizer, self.has_spaces)
            or self._first_core.merges_characters
        ):
            return None
        return text_form.cuts_of(self._first_core, rules, self.preparation, self.tokens)

    @cached_property
    def core(self) -> _core.TokenizerCore:
        """The core's form of all this."""
        is_text = self.vocabulary.text_rules is not None
        if not is_text and self.preparation is None:
            return self._first_core
        decoding = None
        if TextRules.of_text(self.vocabulary.text_rules) and self.decoder and self.decoder.core_rule:
            special_tokens = {text.encode(): id_ for id_, text in self.decoded_tokens.items()}
            decoding = (*self.decoder.core_rule, special_tokens)
        normalizer, changes, both = (
            each.core if each is not None else None
            for each in (self.core_normalizer, self._core_changes, self.preparation)
        )
        return self._first_core.with_components(
            self.core_tokens, self.automaton, normalizer, changes, both, decoding
        )

    @cached_property
    def _first_core(self) -> _core.TokenizerCore:
        """The vocabulary alone where entries are text: how such texts are cut may depend on the merges."""
        is_text = self.vocabulary.text_rules is not None
        return self.vocabulary.make_encoder(
            None if is_text else self.pretokenizer.automaton,
            core_tokens(self.tokens, self.core_normalizer, decoded_only=self.vocabulary.decoded_only),
            self.has_spaces,
        )


def make_parts(
    vocab: Mapping[int, bytes],
    merges: Iterable[tuple[bytes, bytes]] | None,
    special_tokens: SpecialTokens | Iterable[AddedToken],
    pattern: str | Pretokenizer,
    *,
    ignore_merges: bool | None = None,
    normalizer: Normalizer | Literal["NFC"] | None = None,
    post_processor: PostProcessor | None = None,
    text_rules: TextRules | None = None,
    decoder: Decoder | None = None,
) -> Parts:
    """The parts that `Tokenizer(...)` says; BadTokenizer or BadArgument names the first thing that is wrong."""
    added = None
    if not isinstance(special_tokens, (str, bytes, Mapping, type(None))):
        given = list(special_tokens)
        tokens = [token for token in given if isinstance(token, AddedToken)]
        if tokens and len(tokens) == len({token.text for token in tokens}) == len(given):
            special_tokens = {token.text: token.id for token in tokens}
            added = tuple(sorted(tokens, key=lambda token: token.id))
        else:
            special_tokens = given  # type: ignore[assignment] # texts, or what make_vocabulary refuses
    vocabulary = make_vocabulary(vocab, merges, special_tokens, ignore_merges, text_rules)  # type: ignore[arg-type]
    return Parts(
        vocabulary,
        Pretokenizer.from_pattern(pattern),
        make_normalizer(normalizer),
        added,
        post_processor,
        decoder=decoder,
    )


class Description:
    """The immutable state of a `Tokenizer`, by its public names."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._vocabulary = parts.vocabulary
        self._encoder = parts.core

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """id -> bytes of every entry, special tokens included, by ascending id; read-only."""
        return MappingProxyType(self._vocabulary.all_entries)

    @property
    def ordinary_entries(self) -> dict[int, bytes]:
        """id -> bytes of the entries that text between special tokens is encoded with, a copy."""
        return dict(self._vocabulary.entries)

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The pairs that merge, lowest rank first; of a rank file, every split of every entry (about 1 µs an entry)."""
        return self._vocabulary.listed_merges

    @property
    def is_rank_file(self) -> bool:
        """Whether the id of an entry is its rank and all pairs that make an entry merge."""
        return self._vocabulary.is_rank_file

    @property
    def ignore_merges(self) -> bool:
        """Whether a pretoken that is an entry is emitted at once, be it reached by merges or not."""
        return self._vocabulary.ignore_merges

    @property
    def text_rules(self) -> TextRules | None:
        """How entries that are text are read; None for a byte-level vocabulary."""
        return self._vocabulary.text_rules

    @property
    def special_tokens(self) -> dict[str, int]:
        """text -> id of the added tokens, those included that are not special to Hugging Face."""
        return dict(self._vocabulary.special_tokens)

    @property
    def added_tokens(self) -> tuple[AddedToken, ...]:
        """The added tokens with their flags, by ascending id."""
        return self._parts.tokens

    @property
    def non_special_added_tokens(self) -> frozenset[str]:
        """Those that are tokens in every text to Hugging Face, and kept when it decodes without special tokens."""
        return frozenset(token.text for token in self._parts.tokens if not token.special)

    @property
    def vocab_size(self) -> int:
        """The number of entries, special tokens included; with gaps in the ids less than max_token_id + 1."""
        return self._vocabulary.entry_count

    @property
    def max_token_id(self) -> int:
        """The highest ID, -1 for an empty vocabulary."""
        return self._vocabulary.max_id

    @property
    def pattern(self) -> str:
        """The name of the pattern, or its expression; several stages are joined by " then "."""
        return self._parts.pretokenizer.description

    @property
    def pretokenizer(self) -> Pretokenizer:
        """How text between special tokens is cut."""
        return self._parts.pretokenizer

    @property
    def normalizer(self) -> Normalizer | Literal["NFC"] | None:
        """What is done to the text between special tokens first; "NFC" if it is that alone, else a `Normalizer`."""
        normalizer = self._parts.normalizer
        return "NFC" if normalizer is not None and normalizer.components == (NFC,) else normalizer

    @property
    def decoder(self) -> Decoder | None:
        """What becomes of the entries where ids are decoded; None for a byte-level vocabulary's, which are bytes."""
        return self._parts.decoder

    @property
    def post_processor(self) -> PostProcessor | None:
        """What `encode` adds to the ids with add_special_tokens=True, and only then."""
        return self._parts.post_processor

    @property
    def truncation(self) -> dict[str, Any] | None:
        """tokenizer.json's, which is kept for `save` and not applied."""
        return self._parts.truncation

    @property
    def padding(self) -> dict[str, Any] | None:
        """tokenizer.json's, which is kept for `save` and not applied."""
        return self._parts.padding

    def token_to_id(self, token: bytes | str) -> int | None:
        """The id of a special token (a text) or an ordinary entry (bytes), or None."""
        if isinstance(token, str):
            return self._vocabulary.special_tokens.get(token)
        if not isinstance(token, bytes):
            raise BadArgument(
                f"token: must be the text of a special token or the bytes of an entry (got {shown(token)})"
            )
        if not token:
            return next((id_ for id_, text in self._vocabulary.decoded_only.items() if not text), None)
        return self._encoder.find(token)

    def id_to_token(self, id_: int) -> bytes | None:
        """The bytes of an entry, or None."""
        if not hasattr(id_, "__index__"):
            raise BadArgument(f"id: must be an integer (got {shown(id_)})")
        if id_ in self._special_by_id:
            return self._special_by_id[id_]
        return self._encoder.entry(id_) if 0 <= id_ <= MAX_ID else None

    @cached_property
    def entry_lengths(self) -> NDArray[np.uint32]:
        """uint32[highest id + 1]: the bytes of each ordinary entry, 0 for an id that is none."""
        return self._encoder.entry_lengths()

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        rule = "rank file" if self.is_rank_file else counted(self._vocabulary.merge_count, "merge")
        return (
            f"<Tokenizer {self.vocab_size:,} entries, {rule}, "
            f"{counted(len(self._vocabulary.special_tokens), 'special token')}, pattern {shown(self.pattern)}>"
        )

    @cached_property
    def _special_by_id(self) -> dict[int, bytes]:
        special = {id_: text.encode() for text, id_ in self._vocabulary.special_tokens.items()}
        return special | {id_: text.encode() for id_, text in self._vocabulary.decoded_only.items()}

    @property
    def parts(self) -> Parts:
        """All that it consists of."""
        return self._parts

    @property
    def core_encoder(self) -> _core.TokenizerCore:
        """The core's form of all that it consists of."""
        return self._encoder
