"""The components of a tokenizer. Readers of files return `Parts`, and `Tokenizer.from_parts` builds a tokenizer.

The core is built from all components at once, before the `Parts` exist, so threads only share complete objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypedDict

from bpe import _core
from bpe.added_tokens import AddedToken, core_tokens, decoded_texts
from bpe.decoders import Decoder
from bpe.end_tokens import PostProcessor
from bpe.errors import BadTokenizer
from bpe.normalizers import Normalizer, core_steps, make_normalizer
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens, TextRules, Vocabulary, read_vocabulary


@dataclass(frozen=True, eq=False)
class Parts:
    """vocabulary: entries, merges and the core.
    pretokenizer: cuts the text between added tokens.
    normalizer: applied to that text first.
    added_tokens: by ascending ID. None: the special tokens of the vocabulary, without flags.
    post_processor: begin and end tokens.
    truncation, padding: fields of tokenizer.json, stored and never applied.
    decoder: how to decode entries. None: they are bytes.
    """

    vocabulary: Vocabulary
    pretokenizer: Pretokenizer
    normalizer: Normalizer | None = None
    added_tokens: tuple[AddedToken, ...] | None = None
    post_processor: PostProcessor | None = None
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    decoder: Decoder | None = None

    @property
    def core(self) -> _core.TokenizerCore:
        """The tokenizer in the core."""
        return self.vocabulary.core

    def __reduce__(self) -> tuple[Any, ...]:
        of = self.vocabulary
        facts = (of.special_tokens, of.ignore_merges, of.text_rules, dict(of.decoded_only))
        components = (
            self.pretokenizer,
            self.normalizer,
            self.tokens,
            self.post_processor,
            self.truncation,
            self.padding,
            self.decoder,
        )
        return _unpickled, (of.core.arrays(), (*facts, of.unk_id), components)

    @property
    def tokens(self) -> tuple[AddedToken, ...]:
        """The added tokens, by ascending ID."""
        if self.added_tokens is not None:
            return self.added_tokens
        by_id = sorted((id_, text) for text, id_ in self.vocabulary.special_tokens.items())
        return tuple(AddedToken(text, id_) for id_, text in by_id)


def _unpickled(arrays: tuple[Any, ...], facts: tuple[Any, ...], components: tuple[Any, ...]) -> Parts:
    """Build the core again and return the parts. Cost: as for loading, without reading a file."""
    return assemble(_core.EntryFile.from_arrays(*arrays), *facts, *components)


def assemble(
    file: _core.EntryFile,
    special_tokens: dict[str, int],
    ignore_merges: bool,
    text_rules: TextRules | None,
    decoded_only: Mapping[int, str],
    unk_id: int | None,
    pretokenizer: Pretokenizer,
    normalizer: Normalizer | None = None,
    added_tokens: tuple[AddedToken, ...] = (),
    post_processor: PostProcessor | None = None,
    truncation: dict[str, Any] | None = None,
    padding: dict[str, Any] | None = None,
    decoder: Decoder | None = None,
    where: str = "",
) -> Parts:
    """Build the core from entries, merges and components, and return the parts.

    unk_id: ID of the unknown token. where: start of the message of BadTokenizer for an invalid entry or merge.
    """
    components = core_components(pretokenizer, normalizer, added_tokens, decoded_only, text_rules, decoder)
    rules = None if text_rules is None else text_rules.for_core(unk_id)
    try:
        core = file.encoder(ignore_merges=ignore_merges, text_rules=rules, **components)
    except ValueError as error:
        raise BadTokenizer(f"{where}{error}") from None
    vocabulary = Vocabulary(core, special_tokens, ignore_merges, text_rules, decoded_only)
    return Parts(
        vocabulary, pretokenizer, normalizer, added_tokens, post_processor, truncation, padding, decoder
    )


class CoreComponents(TypedDict):
    """Keyword arguments of the functions that build a `_core.TokenizerCore`."""

    special_tokens: _core.AddedTokens
    automaton: _core.Automaton | None
    normalizer: list[_core.NormalizerStep]
    changes: list[_core.NormalizerStep]
    decoding: _core.TextDecoding | None


def core_components(
    pretokenizer: Pretokenizer,
    normalizer: Normalizer | None,
    tokens: Iterable[AddedToken],
    decoded_only: Mapping[int, str],
    text_rules: TextRules | None,
    decoder: Decoder | None,
) -> CoreComponents:
    """Return the components as the core reads them.

    decoded_only: ID -> text of entries that are never found in text. text_rules: None for a byte-level vocabulary.
    """
    tokens = tuple(tokens)
    decoding = None
    if TextRules.of_text(text_rules) and decoder is not None and decoder.core_rule is not None:
        texts = decoded_texts(tokens, normalizer, decoded_only)
        decoding = (*decoder.core_rule, {text.encode(): id_ for id_, text in texts.items()})
    in_core = runs_in_core(pretokenizer, normalizer)
    return CoreComponents(
        special_tokens=core_tokens(tokens, normalizer, decoded_only),
        automaton=pretokenizer.automaton,
        normalizer=core_steps(normalizer) if in_core else [],
        changes=core_steps(pretokenizer.changes) if in_core else [],
        decoding=decoding,
    )


def runs_in_core(pretokenizer: Pretokenizer, normalizer: Normalizer | None) -> bool:
    """Return whether the core can normalize and cut texts. If not, `bpe.regex_encoding` does."""
    preparation = pretokenizer.preparation(normalizer)
    return pretokenizer.automaton is not None and (preparation is None or preparation.core is not None)


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
    decoded_only: Mapping[int, str] = MappingProxyType({}),
) -> Parts:
    """Return the parts for the arguments of `Tokenizer`. Raise BadTokenizer or BadArgument for the first fault.

    decoded_only: ID -> text of entries that encoding never produces.
    """
    added = None
    if not isinstance(special_tokens, (str, bytes, set, frozenset, Mapping, type(None))):
        given = list(special_tokens)
        tokens = [token for token in given if isinstance(token, AddedToken)]
        if tokens and len(tokens) == len({token.text for token in tokens}) == len(given):
            special_tokens = {token.text: token.id for token in tokens}
            added = tuple(sorted(tokens, key=lambda token: token.id))
        else:
            special_tokens = given  # type: ignore[assignment] # read_vocabulary rejects others
    file, specials, unk_id = read_vocabulary(vocab, merges, special_tokens, text_rules)  # type: ignore[arg-type]
    if ignore_merges is None:
        ignore_merges = merges is None
    decoded_only = {**{id_: text for text, id_ in file.texts.items()}, **decoded_only}
    pretokenizer, normalizer = Pretokenizer.from_pattern(pattern), make_normalizer(normalizer)
    if added is None:
        by_id = sorted(specials.items(), key=lambda item: item[1])
        added = tuple(AddedToken(text, id_) for text, id_ in by_id)
    return assemble(
        file,
        specials,
        ignore_merges,
        text_rules,
        decoded_only,
        unk_id,
        pretokenizer,
        normalizer,
        added,
        post_processor,
        decoder=decoder,
    )
