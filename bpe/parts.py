"""What a tokenizer is made of. Readers of files return `Parts`, and `Tokenizer.from_parts` makes a tokenizer of them.

`Parts` build the core in their constructor, so whatever threads share is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bpe import _core, text_form
from bpe.added_tokens import AddedToken, core_tokens
from bpe.core_vocabulary import CoreVocabulary
from bpe.decoders import Decoder
from bpe.normalizers import Normalizer, make_normalizer
from bpe.post_processing import PostProcessor
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens, TextRules, Vocabulary, make_vocabulary
from tokenmill.stores.system import cached_property


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
