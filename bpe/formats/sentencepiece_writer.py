"""Writer of SentencePiece models for tokenizers with text entries. `sentencepiece` describes the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import not_storable
from bpe.formats.protobuf import bytes_field, float_field, varint_field
from bpe.formats.sentencepiece import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    NORMALIZER,
    UNKNOWN,
    USER_DEFINED,
    Model,
    check_pieces,
    decoder_of,
    normalizer_of,
    splits,
)
from bpe.normalizers import Charsmap, DummyPrefix, Prepend, Replace
from bpe.pretokenization.components import Split
from bpe.vocabulary import BYTE_ENTRIES, LOWER_BLOCK, TextRules

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

_FORM: Final = "a SentencePiece model"


def to_model(tokenizer: Tokenizer) -> bytes:
    """Return a model with which the `sentencepiece` library gives the same IDs. Special tokens become control pieces.

    Raise UnsupportedTokenizer for a tokenizer that a model cannot express.
    """
    rules = tokenizer.text_rules
    if not TextRules.of_text(rules):
        raise not_storable("byte-level vocabulary", _FORM)
    if rules.end_of_word_suffix or rules.continuing_subword_prefix:
        raise not_storable("end_of_word_suffix and continuing_subword_prefix", _FORM)
    if rules.unk_token is None or not (rules.fuse_unk or rules.byte_fallback):
        raise not_storable("vocabulary without unk_token, or without fuse_unk and byte_fallback", _FORM)
    if tokenizer.ignore_merges:
        raise not_storable("ignore_merges", _FORM)
    model = _settings_of(tokenizer, rules.byte_fallback)
    model.pieces = _pieces_of(tokenizer, rules)
    try:
        check_pieces(model)
    except BadTokenizer as error:
        raise UnsupportedTokenizer(f"SentencePiece model: {error}") from None
    _check_splits(tokenizer, dict.fromkeys(text for text, _, kind in model.pieces if kind == NORMAL))
    return _to_bytes(model, rules.unk_token)


def _settings_of(tokenizer: Tokenizer, byte_fallback: bool) -> Model:
    """Return the model without pieces that has the normalizer and the decoder of this tokenizer."""
    # Splitting before each U+2581 changes nothing if no merge crosses it.
    at_words = tokenizer.pretokenizer.components == (Split(LOWER_BLOCK, "text", "MergedWithNext"),)
    needless = at_words and all(
        LOWER_BLOCK not in (left + right).decode()[1:] for left, right in tokenizer.merges
    )
    if tokenizer.pretokenizer.components and not (needless or tokenizer.core_encoder.leaves_whole):
        raise not_storable(f"pre_tokenizer {tokenizer.pretokenizer.description}", _FORM)
    normalizer = tokenizer.parts.normalizer
    components = () if normalizer is None else normalizer.components
    charsmap = next((each.charsmap for each in components if isinstance(each, Charsmap)), b"")
    for number in range(8):
        model = Model(
            model_type=BPE,
            byte_fallback=byte_fallback,
            precompiled_charsmap=charsmap,
            add_dummy_prefix=bool(number & 1),
            remove_extra_whitespaces=bool(number & 2),
            escape_whitespaces=bool(number & 4),
        )
        if normalizer_of(model) == tuple(
            Prepend(each.text) if isinstance(each, DummyPrefix) else each for each in components
        ):
            break
    else:
        raise not_storable(f"normalizer {normalizer or 'none'}", _FORM)
    if tokenizer.decoder != decoder_of(model):
        raise not_storable("decoder that does not match the normalizer", _FORM)
    return model


def _pieces_of(tokenizer: Tokenizer, rules: TextRules) -> list[tuple[str, float, int]]:
    """Return pieces by ID. Scores are as in training: 0 for the product of the first merge, then -1, then -2."""
    entries = tokenizer.vocab
    if tokenizer.max_token_id != len(entries) - 1:
        raise not_storable("IDs with gaps", _FORM)
    products = dict.fromkeys(left + right for left, right in tokenizer.merges)
    scores = {product: -float(number) for number, product in enumerate(products)}
    for entry in entries.values():
        scores.setdefault(entry, -float(len(scores)))
    tokens = {token.id: token for token in tokenizer.added_tokens}
    symbols = [token.text for token in tokenizer.added_tokens if not token.special]
    escape, prefix = Replace(" ", LOWER_BLOCK), DummyPrefix(LOWER_BLOCK)
    components = () if (normalizer := tokenizer.parts.normalizer) is None else normalizer.components
    if symbols and components not in ((escape,), (prefix, escape)):
        raise not_storable(
            f"added token {shown(symbols[0])} that is not special, with this normalizer", _FORM
        )
    pieces = []
    for id_, entry in entries.items():
        text, kind, token = entry.decode(), NORMAL, tokens.get(id_)
        if text == rules.unk_token:
            kind = UNKNOWN
        elif token is not None:
            kind = CONTROL if token.special else USER_DEFINED
            looks = token.lstrip or token.rstrip or token.single_word
            if looks or (
                kind == USER_DEFINED and (" " in text or (LOWER_BLOCK in text and not token.normalized))
            ):
                raise not_storable(
                    f"added token {shown(text)}, which SentencePiece would match in other text", _FORM
                )
        elif rules.byte_fallback and entry in BYTE_ENTRIES:
            kind = BYTE
        pieces.append((text, scores[entry] if kind == NORMAL else 0.0, kind))
    return pieces


def _check_splits(tokenizer: Tokenizer, normal: dict[str, None]) -> None:
    """Raise UnsupportedTokenizer if SentencePiece would merge other pairs, or in another order.

    SentencePiece merges any split of a piece, this tokenizer only listed pairs. Both agree if each piece is the result
    of merging its characters, or has all its splits in the list. The splits of a piece must be adjacent in the list.
    """
    listed: dict[str, int] = {}
    last = ""
    for left, right in tokenizer.merges:
        product = (left + right).decode()
        if product not in normal or left.decode() not in normal or right.decode() not in normal:
            raise not_storable(
                f"merge of {shown(left.decode())} and {shown(right.decode())}, which uses an added token or a byte",
                _FORM,
            )
        if product != last and product in listed:
            raise not_storable(f"merges of {shown(product)}, which are not adjacent in the list", _FORM)
        listed[product] = listed.get(product, 0) + 1
        last = product
    for text in normal:
        if len(splits(text, normal)) != listed.get(text, 0):
            entry = text.encode()
            if len(tokenizer.encode_pretokens(entry, np.array([len(entry)], np.uint64))) != 1:
                raise not_storable(f"entry {shown(text)}, which merges do not produce", _FORM)


def _to_bytes(model: Model, unk_token: str) -> bytes:
    ids = {text: id_ for id_, (text, _, _) in enumerate(model.pieces)}
    pieces = b"".join(
        bytes_field(
            1,
            bytes_field(1, text.encode())
            + float_field(2, score)
            + (b"" if kind == NORMAL else varint_field(3, kind)),
        )
        for text, score, kind in model.pieces
    )
    trainer = (
        varint_field(3, model.model_type)
        + varint_field(4, len(model.pieces))
        + varint_field(35, model.byte_fallback)
        + varint_field(40, ids[unk_token])
        + bytes_field(45, unk_token.encode())
    )
    settings = ((number, getattr(model, name)) for number, name in NORMALIZER.items())
    normalizer = b"".join(
        (bytes_field if isinstance(value, bytes) else varint_field)(number, value)
        for number, value in settings
    )
    return pieces + bytes_field(2, trainer) + bytes_field(3, normalizer)
