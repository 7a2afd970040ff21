r"""Reader and writer of SentencePiece models of type BPE.

A model is a ModelProto (sentencepiece_model.proto): pieces with text, score and type by ID, a TrainerSpec, and a
NormalizerSpec. IDs equal the IDs of the `sentencepiece` library:

- SentencePiece merges the adjacent pair that forms the piece of highest score, leftmost first. Only one split of a
  piece can occur, because merging its characters has one order in any context. Therefore the merges are all splits of
  all pieces, ranked by score. Example: {"a": -9, "b": -9, "c": -9, "bc": -1, "ab": -2, "abc": -3} gives the merges
  b+c, a+b, a+bc, ab+c. In any text, "abc" becomes a, bc and then abc, so ab+c is listed and never applied.
- Ranks cannot express equal scores, except for runs of one character, such as the spaces of Llama 2 and Mistral.
- A character without a piece becomes the pieces of its bytes with byte_fallback. Otherwise adjacent characters without
  a piece become one unknown piece.
- add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces become components of the normalizer, in
  SentencePiece's order. precompiled_charsmap becomes `Charsmap`.
- Control and unknown pieces are special tokens. SentencePiece never finds them in text, like
  `encode(text, allowed_special=())`.
- User-defined symbols are matched in the normalized text, without the dummy prefix. They become added tokens with
  normalized=True, which is exact if normalization works character by character. Other normalizers are not supported.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from bpe.added_tokens import AddedToken
from bpe.decoders import ByteFallback, Decoder, Fuse
from bpe.decoders import Component as DecoderComponent
from bpe.decoders import Replace as DecoderReplace
from bpe.decoders import Strip as DecoderStrip
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import not_storable, unsupported
from bpe.formats.protobuf import Value, bytes_field, fields, float_field, float_of, varint_field
from bpe.normalizers import Charsmap, Component, DummyPrefix, Normalizer, Prepend, Replace
from bpe.parts import Parts, make_parts
from bpe.pretokenization.components import Split
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import BYTE_ENTRIES, LOWER_BLOCK, TextRules

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_MODEL_TYPES: Final = {1: "Unigram", 2: "BPE", 3: "word", 4: "character"}
BPE: Final = 2


@dataclass
class Model:
    """The fields of a model that affect IDs. pieces: text, score and type by ID."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    model_type: int = 1
    treat_whitespace_as_suffix: int = 0
    byte_fallback: int = 0
    precompiled_charsmap: bytes = b""
    add_dummy_prefix: int = 1
    remove_extra_whitespaces: int = 1
    escape_whitespaces: int = 1
    denormalizer: bytes = b""


# Number of a field in its message -> attribute of a Model.
_TRAINER: Final = {3: "model_type", 24: "treat_whitespace_as_suffix", 35: "byte_fallback"}
NORMALIZER: Final = {
    2: "precompiled_charsmap",
    3: "add_dummy_prefix",
    4: "remove_extra_whitespaces",
    5: "escape_whitespaces",
}
_MESSAGES: Final = {
    2: ("trainer_spec", _TRAINER),
    3: ("normalizer_spec", NORMALIZER),
    5: ("denormalizer_spec", {2: "denormalizer"}),
}


def is_model(data: bytes) -> bool:
    """Return whether the data starts like a model: with a piece of a text, and a score or type after it."""
    if len(data) < 4 or data[0] != 0x0A or data[2] != 0x0A:
        return False
    return data[1] == data[3] + 2 or data[data[3] + 4 :][:1] in (b"\x15", b"\x18")


def read(data: bytes) -> Parts:
    """Read a model. Raise BadTokenizer or UnsupportedTokenizer for a malformed or unsupported one."""
    return build(read_model(data))


def read_model(data: bytes) -> Model:
    """Read the fields of a model. Raise BadTokenizer if it is truncated or damaged."""
    model = Model()
    for number, _, value in fields(memoryview(data)):
        if number == 1:
            model.pieces.append(_piece(_message(value, "pieces"), len(model.pieces)))
        elif number in _MESSAGES:
            where, names = _MESSAGES[number]
            for key, _, setting in fields(_message(value, where)):
                if name := names.get(key):
                    is_number = isinstance(getattr(model, name), int)
                    read = _number if is_number else lambda *given: bytes(_message(*given))
                    setattr(model, name, read(setting, f"{where}.{name}"))
    return model


def _piece(message: memoryview, id_: int) -> tuple[str, float, int]:
    text, score, kind = "", 0.0, NORMAL
    for number, _, value in fields(message):
        if number == 1:
            try:
                text = str(_message(value, f"pieces[{id_}]"), "utf-8")
            except UnicodeDecodeError:
                raise BadTokenizer(f"pieces[{id_}]: not valid UTF-8") from None
        elif number == 2 and not isinstance(value, int) and len(value) == 4:
            score = float_of(value)
        elif number == 3:
            kind = _number(value, f"pieces[{id_}].type")
    return text, score, kind


def _message(value: Value, where: str) -> memoryview:
    if isinstance(value, int):
        raise BadTokenizer(f"{where}: must be bytes (got a number)")
    return value


def _number(value: Value, where: str) -> int:
    if not isinstance(value, int):
        raise BadTokenizer(f"{where}: must be a number (got bytes)")
    return value


def check_model(model: Model) -> None:
    """Raise UnsupportedTokenizer or BadTokenizer for a model of another kind, or one that contradicts itself."""
    if model.model_type != BPE:
        name = _MODEL_TYPES.get(model.model_type, str(model.model_type))
        raise unsupported("trainer_spec.model_type", name, "BPE")
    if model.treat_whitespace_as_suffix:
        raise unsupported("trainer_spec.treat_whitespace_as_suffix", True, "false")
    if model.denormalizer:
        raise UnsupportedTokenizer("denormalizer_spec.precompiled_charsmap: must be empty")
    check_pieces(model)


def build(model: Model) -> Parts:
    """Build the tokenizer of a model."""
    check_model(model)
    pieces = list(enumerate(model.pieces))
    unknown = next(text for _, (text, _, kind) in pieces if kind == UNKNOWN)
    normalizer = Normalizer(components) if (components := normalizer_of(model)) else None
    symbols = [text for _, (text, _, kind) in pieces if kind == USER_DEFINED]
    if symbols:
        _check_symbols(model, symbols)
    tokens = [
        AddedToken(text, id_, special=kind != USER_DEFINED, normalized=kind == USER_DEFINED)
        for id_, (text, _, kind) in pieces
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]
    scores = {text: score for text, score, kind in model.pieces if kind == NORMAL}
    return make_parts(
        {id_: text.encode() for id_, (text, _, _) in pieces},
        [(left.encode(), right.encode()) for left, right in merges_of(scores)],
        tokens,
        Pretokenizer(()),
        normalizer=normalizer,
        text_rules=TextRules(bool(model.byte_fallback), unknown, fuse_unk=True),
        decoder=decoder_of(model),
    )


def check_pieces(model: Model) -> None:
    """Raise BadTokenizer for pieces that SentencePiece rejects, and UnsupportedTokenizer for unsupported ones."""
    seen: dict[str, int] = {}
    for id_, (text, score, kind) in enumerate(model.pieces):
        where = f"pieces[{id_}] {shown(text)}"
        if not text or "\0" in text or seen.setdefault(text, id_) != id_:
            raise BadTokenizer(f"{where}: must be a unique, non-empty text without NUL")
        if kind == UNUSED or not NORMAL <= kind <= BYTE:
            raise UnsupportedTokenizer(
                f"{where}: unsupported type (got {'UNUSED' if kind == UNUSED else kind})"
            )
        if not math.isfinite(score):
            raise BadTokenizer(f"{where}: score must be finite (got {score})")
        if kind in (UNKNOWN, CONTROL) and len(text) == 1:
            raise UnsupportedTokenizer(f"{where}: a special piece must have more than one character")
        if kind == BYTE and (not model.byte_fallback or text.encode() not in BYTE_ENTRIES):
            raise BadTokenizer(f"{where}: not a byte piece of byte_fallback (<0x00> to <0xFF>)")
    kinds = [kind for _, _, kind in model.pieces]
    if kinds.count(UNKNOWN) != 1:
        raise BadTokenizer(f"pieces: must have one unknown piece (got {kinds.count(UNKNOWN)})")
    if model.byte_fallback and kinds.count(BYTE) != 256:
        raise BadTokenizer(f"pieces: must have all 256 bytes with byte_fallback (got {kinds.count(BYTE)})")


def _check_symbols(model: Model, symbols: list[str]) -> None:
    first = shown(symbols[0])
    for name, is_set in (
        ("remove_extra_whitespaces", model.remove_extra_whitespaces),
        ("precompiled_charsmap", bool(model.precompiled_charsmap)),
    ):
        if is_set:
            raise UnsupportedTokenizer(
                f"normalizer_spec.{name}: not supported with user-defined symbols, as IDs would differ from "
                f"SentencePiece (first symbol: {first})"
            )
    for symbol in symbols:
        if " " in symbol:
            raise UnsupportedTokenizer(
                f"pieces: a user-defined symbol must not contain a space (got {shown(symbol)})"
            )


def splits(text: str, pieces: Container[str]) -> list[tuple[str, str]]:
    """Return the splits of a text into two pieces, by the length of the left one."""
    places = ((text[:place], text[place:]) for place in range(1, len(text)))
    return [(left, right) for left, right in places if left in pieces and right in pieces]


def merges_of(scores: dict[str, float]) -> list[tuple[str, str]]:
    """Return all splits of the pieces, by descending score, then by ID, then by the ID of the left part.

    scores: score by piece, by ascending ID. {"a": -9, "b": -9, "ab": -1, "abb": -2} -> [("a", "b"), ("ab", "b")].
    Raise UnsupportedTokenizer if pieces have equal scores and ranks of merges would give other IDs.
    """
    number = {text: index for index, text in enumerate(scores)}
    merges: list[tuple[str, str]] = []
    made: dict[float, list[str]] = {}  # by score
    for text, score in sorted(scores.items(), key=lambda piece: -piece[1]):
        if found := splits(text, scores):
            made.setdefault(score, []).append(text)
            merges += sorted(found, key=lambda split: number[split[0]])
    for score, texts in made.items():
        if len(texts) > 1 and not _are_runs_that_ranks_join_alike(texts, score, scores, merges):
            raise UnsupportedTokenizer(
                f"pieces: {shown(texts[0])} and {shown(texts[1])} have the same score, so ranks of merges cannot "
                f"express their order (got {score:g})"
            )
    return merges


def _are_runs_that_ranks_join_alike(
    texts: list[str], score: float, scores: dict[str, float], merges: list[tuple[str, str]]
) -> bool:
    """Return whether pieces of equal score are runs of one character for which both rules give the same result.

    Example: pieces of 1, 2 and 4 spaces, with equal scores for 2 and 4. Leftmost first, 5 spaces become 2+1+1+1, then
    2+2+1, then 4+1. By rank (1+1 before 2+2), they become 2+2+1 and then 4+1.

    No other piece may contain the character twice, and a piece that contains it once must have a higher score. Then all
    other merges happen first, and the result for a run depends only on its length. If a run of the longest piece's
    length becomes that piece, every longer run starts with it under both rules. It suffices to compare lengths up to
    twice the longest piece: for longer runs, the two windows without the first piece and without the last character
    share a boundary (bpe/native/merge/merge_by_windows.hpp).
    """
    character = texts[0][0]
    runs = {len(text) for text in scores if set(text) == {character}}
    if not all(set(text) == {character} for text in texts) or len(texts) != len(runs - {1}):
        return False
    for text, other in scores.items():
        if set(text) != {character} and character in text and (character * 2 in text or other <= score):
            return False
    ranks = {
        (len(left), len(right)): rank
        for rank, (left, right) in enumerate(merges)
        if set(left + right) == {character}
    }
    longest = max(runs)
    return _merged_by_rank(longest, ranks) == [longest] and all(
        _merged_leftmost(length, runs) == _merged_by_rank(length, ranks)
        for length in range(2, 2 * longest + 1)
    )


def _merged_leftmost(length: int, runs: set[int]) -> list[int]:
    """Return the lengths of the pieces of a run if the leftmost pair that forms a piece merges first."""
    pieces: list[int] = []
    for _ in range(length):
        pieces.append(1)
        while len(pieces) > 1 and pieces[-2] + pieces[-1] in runs:
            pieces[-2:] = [pieces[-2] + pieces[-1]]
    return pieces


def _merged_by_rank(length: int, ranks: dict[tuple[int, int], int]) -> list[int]:
    """Return the lengths of the pieces of a run if the pair of the lowest rank merges first."""
    pieces = [1] * length
    while pairs := [(ranks[pair], place) for place, pair in enumerate(pairwise(pieces)) if pair in ranks]:
        place = min(pairs)[1]
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
    return pieces


def normalizer_of(model: Model) -> tuple[Component, ...]:
    """Return SentencePiece's steps as components. Each is exact for all texts."""
    components: list[Component] = []
    escapes = model.escape_whitespaces
    if model.add_dummy_prefix:
        # Text of white space only gets no prefix. The last steps remove the prefix again.
        plain = escapes and not model.precompiled_charsmap and not model.remove_extra_whitespaces
        has_symbols = any(kind == USER_DEFINED for _, _, kind in model.pieces)
        components.append((DummyPrefix if has_symbols else Prepend)(LOWER_BLOCK if plain else " "))
    if model.precompiled_charsmap:
        components.append(Charsmap(model.precompiled_charsmap))
    if model.remove_extra_whitespaces:
        if not model.add_dummy_prefix:
            components.append(Replace(r"\A +", "", is_expression=True))
        components.append(Replace(" {2,}", " ", is_expression=True))
        # Includes U+2581 from the text.
        components.append(Replace(rf"[ {LOWER_BLOCK}]+\z" if escapes else r" +\z", "", is_expression=True))
    if escapes:
        components.append(Replace(" ", LOWER_BLOCK))
    return tuple(components)


def decoder_of(model: Model) -> Decoder:
    """Return the decoder. It removes a leading space if encoding adds or removes one."""
    decoder: list[DecoderComponent] = [DecoderReplace(LOWER_BLOCK, " "), ByteFallback(), Fuse()]
    if model.add_dummy_prefix or model.remove_extra_whitespaces:
        decoder.append(DecoderStrip(" ", 1, 0))
    return Decoder(tuple(decoder))


# -- writing -----------------------------------------------------------------------------------------------------------


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
