r"""Reads SentencePiece's models of type BPE.

A model is a ModelProto (sentencepiece_model.proto): pieces with a score and a type by id, a TrainerSpec, and a
NormalizerSpec. What it becomes is what a tokenizer.json of the same model says, and its ids are those of the
`sentencepiece` library:

- SentencePiece joins the two neighbours whose piece has the highest score, of equal scores the leftmost. Of a piece's
  splits only one can ever come up, since the joins within its characters happen in one order whatever stands around
  them. So the merges are all splits of all pieces by score, and ranks say the same, unless different pieces have one
  score: then they must be runs of one character, such as Llama 2's and Mistral's of spaces, for which it is shown.
- Characters of no piece are their bytes' pieces with byte_fallback, else the unknown piece, one for neighbours.
- White space: add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces become components of the normalizer, in
  the order of SentencePiece's steps. precompiled_charsmap becomes `Charsmap`.
- Control and unknown pieces are special tokens; other than here, SentencePiece never finds them in a text:
  `encode(text, allowed_special=...)` without them is its behaviour.
- User-defined symbols are cut out of the normalized text first: added tokens that are normalized, but for the dummy
  prefix. That is exact where normalizing is done character by character; with white space removed or a charsmap it is
  refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from bpe.added_tokens import AddedToken
from bpe.decoders import ByteFallback, Decoder, Fuse
from bpe.decoders import Component as DecoderComponent
from bpe.decoders import Replace as DecoderReplace
from bpe.decoders import Strip as DecoderStrip
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import unsupported
from bpe.formats.protobuf import Value, fields, float_of
from bpe.normalizers import Charsmap, Component, DummyPrefix, Normalizer, Prepend, Replace
from bpe.parts import Parts, make_parts
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import BYTE_ENTRIES, LOWER_BLOCK, TextRules

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_MODEL_TYPES: Final = {1: "Unigram", 2: "BPE", 3: "word", 4: "character"}
BPE: Final = 2


@dataclass
class Model:
    """What a model says, as far as ids hang on it. pieces: text, score and type by id."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    model_type: int = 1
    byte_fallback: bool = False
    suffixes_whitespace: bool = False
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    denormalizes: bool = False


def is_model(data: bytes) -> bool:
    """Whether it begins as a model does: with a piece that begins with its text. A rank file is base64."""
    return data[:1] == b"\n" and data[2:3] == b"\n"


def read(data: bytes) -> Parts:
    """The tokenizer of a model; BadTokenizer or UnsupportedTokenizer says what is wrong or can't be honoured."""
    return build(read_model(data))


def read_model(data: bytes) -> Model:
    """What the file says; BadTokenizer if it is cut short or damaged."""
    model = Model()
    for number, _, value in fields(memoryview(data)):
        if number == 1:
            model.pieces.append(_piece(_message(value, "pieces"), len(model.pieces)))
        elif number == 2:
            for name, _, setting in fields(_message(value, "trainer_spec")):
                if name == 3:
                    model.model_type = _number(setting, "trainer_spec.model_type")
                elif name == 24:
                    model.suffixes_whitespace = bool(
                        _number(setting, "trainer_spec.treat_whitespace_as_suffix")
                    )
                elif name == 35:
                    model.byte_fallback = bool(_number(setting, "trainer_spec.byte_fallback"))
        elif number == 3:
            for name, _, setting in fields(_message(value, "normalizer_spec")):
                if name == 2:
                    model.charsmap = bytes(_message(setting, "normalizer_spec.precompiled_charsmap"))
                elif name in WHITESPACE:
                    setattr(model, WHITESPACE[name], bool(_number(setting, "normalizer_spec")))
        elif number == 5:
            spec = fields(_message(value, "denormalizer_spec"))
            model.denormalizes = any(name == 2 and setting for name, _, setting in spec)
    return model


WHITESPACE: Final = {3: "add_dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}


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
    if model.suffixes_whitespace:
        raise unsupported("trainer_spec.treat_whitespace_as_suffix", True, "false")
    if model.denormalizes:
        raise UnsupportedTokenizer("denormalizer_spec.precompiled_charsmap: must be empty")
    check_pieces(model)


def build(model: Model) -> Parts:
    """The tokenizer of a model."""
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
        text_rules=TextRules(model.byte_fallback, unknown, fuse_unk=True),
        decoder=decoder_of(model),
    )


def check_pieces(model: Model) -> None:
    """Raise BadTokenizer for what SentencePiece rejects, UnsupportedTokenizer for what has no counterpart here."""
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
        ("precompiled_charsmap", bool(model.charsmap)),
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


def merges_of(scores: dict[str, float]) -> list[tuple[str, str]]:
    """All splits of the pieces, the highest score first, of one score by id, of one piece by the left parts' order.

    scores: of the pieces by ascending id. {"a": -9, "b": -9, "ab": -1, "abb": -2} -> [("a", "b"), ("ab", "b")].
    UnsupportedTokenizer if pieces that have a split have one score, and ranks of merges give other ids.
    """
    number = {text: index for index, text in enumerate(scores)}
    merges: list[tuple[str, str]] = []
    made: dict[float, list[str]] = {}  # by score
    for text, score in sorted(scores.items(), key=lambda piece: -piece[1]):
        splits = [
            (text[:place], text[place:])
            for place in range(1, len(text))
            if text[:place] in scores and text[place:] in scores
        ]
        if splits:
            made.setdefault(score, []).append(text)
            merges += sorted(splits, key=lambda split: number[split[0]])
    for score, texts in made.items():
        if len(texts) > 1 and not _are_runs_that_ranks_join_alike(texts, score, scores, merges):
            raise UnsupportedTokenizer(
                f"pieces: {shown(texts[0])} and {shown(texts[1])} have the same score, so ranks of merges "
                "cannot express "
                f"their order (got {score:g})"
            )
    return merges


def _are_runs_that_ranks_join_alike(
    texts: list[str], score: float, scores: dict[str, float], merges: list[tuple[str, str]]
) -> bool:
    """Whether the pieces of one score are runs of one character, such as spaces, which come out alike by either rule.

    Nothing but runs may hold the character twice, and what holds it once must have a higher score: then all other
    joins are done before, nothing but these joins happens to a run, and what it becomes hangs on its length alone. If a
    run as long as the longest piece becomes that piece, a longer one begins with it by SentencePiece's rule, and by
    ranks: that is so up to twice the length, and then for all, since the two windows of a run that leave out its first
    piece or its last character have a border in common (bpe/native/merge/merge_by_windows.hpp).
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
    return _by_rank(longest, ranks) == [longest] and all(
        _by_place(length, runs) == _by_rank(length, ranks) for length in range(2, 2 * longest + 1)
    )


def _by_place(length: int, runs: set[int]) -> list[int]:
    """The lengths of the pieces that a run becomes if the leftmost two that make a piece are joined first."""
    pieces: list[int] = []
    for _ in range(length):
        pieces.append(1)
        while len(pieces) > 1 and pieces[-2] + pieces[-1] in runs:
            pieces[-2:] = [pieces[-2] + pieces[-1]]
    return pieces


def _by_rank(length: int, ranks: dict[tuple[int, int], int]) -> list[int]:
    """The same if the two of the lowest rank are joined first, the leftmost of these."""
    pieces = [1] * length
    while pairs := [(ranks[pair], place) for place, pair in enumerate(pairwise(pieces)) if pair in ranks]:
        place = min(pairs)[1]
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
    return pieces


def normalizer_of(model: Model) -> tuple[Component, ...]:
    """SentencePiece's steps as components; each is exact for all texts."""
    components: list[Component] = []
    escapes = model.escape_whitespaces
    if model.add_dummy_prefix:
        # A text that is white space alone has no prefix: then the last steps take it away again.
        plain = escapes and not model.charsmap and not model.remove_extra_whitespaces
        has_symbols = any(kind == USER_DEFINED for _, _, kind in model.pieces)
        components.append((DummyPrefix if has_symbols else Prepend)(LOWER_BLOCK if plain else " "))
    if model.charsmap:
        components.append(Charsmap(model.charsmap))
    if model.remove_extra_whitespaces:
        if not model.add_dummy_prefix:
            components.append(Replace(r"\A +", "", is_expression=True))
        components.append(Replace(" {2,}", " ", is_expression=True))
        # U+2581 of the text's own, too.
        components.append(Replace(rf"[ {LOWER_BLOCK}]+\z" if escapes else r" +\z", "", is_expression=True))
    if escapes:
        components.append(Replace(" ", LOWER_BLOCK))
    return tuple(components)


def decoder_of(model: Model) -> Decoder:
    """As the tokenizer.json of such models has it; the space in front goes where encoding puts it or takes it."""
    decoder: list[DecoderComponent] = [DecoderReplace(LOWER_BLOCK, " "), ByteFallback(), Fuse()]
    if model.add_dummy_prefix or model.remove_extra_whitespaces:
        decoder.append(DecoderStrip(" ", 1, 0))
    return Decoder(tuple(decoder))
