"""tiktoken's rank file: a line `base64(bytes) rank` per entry. The rank is the ID and the priority of merging.

The file contains neither the pattern nor special tokens. Every adjacent pair with the bytes of an entry merges, and a
pretoken that is an entry is emitted without merging.

A tokenizer with listed merges can be written as a rank file with the same IDs if the merges produce the entries in the
order of their IDs and each entry encodes to itself. Then no other split of an entry becomes adjacent: both parts would
be in a span that no merge has crossed, where the listed merges come first.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, shown
from bpe.formats.faults import must_be, not_storable
from bpe.parts import Parts, assemble
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens, assign_special_ids

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer

_FORM: Final = "a rank file"


def read(data: bytes, pattern: str | Pretokenizer, special_tokens: SpecialTokens) -> Parts:
    """Read a rank file. Errors name the line. Special tokens without IDs follow the highest rank."""
    return from_entries(read_entries(data), pattern, special_tokens)


def read_entries(data: bytes) -> _core.EntryFile:
    """Read the entries of a rank file. BadTokenizer names the first malformed line."""
    file = _core.EntryFile.read_rank_file(data)
    if file.fault is not None:
        _, index, start, stop, _ = file.fault
        raise must_be(f"line {index + 1}", "`base64 rank`", data[start:stop].decode("utf-8", "replace"))
    return file


def from_entries(file: _core.EntryFile, pattern: str | Pretokenizer, special_tokens: SpecialTokens) -> Parts:
    """Build the tokenizer of entries, with their ranks as IDs, and of special tokens."""
    # Tokens without IDs follow the highest rank.
    highest = {} if isinstance(special_tokens, Mapping) else {file.max_id: b""}
    specials = assign_special_ids(highest, special_tokens)
    entries = file.find([text.encode() for text in specials])
    for text, entry_id in zip(specials, entries, strict=True):
        if entry_id is not None:
            raise BadTokenizer(
                f"special_tokens: already an ordinary entry of the rank file (got {shown(text)})"
            )
        if file.has_id(specials[text]):
            raise BadTokenizer(f"special_tokens: ID {specials[text]} of {shown(text)} belongs to an entry")
    pretokenizer = Pretokenizer.from_pattern(pattern)
    decoded_only = {id_: text for text, id_ in file.texts.items()}  # the empty entry
    added = sorted((AddedToken(text, id_) for text, id_ in specials.items()), key=lambda token: token.id)
    return assemble(file, specials, True, None, decoded_only, None, pretokenizer, None, tuple(added))


def to_ranks(tokenizer: Tokenizer) -> bytes:
    """Return the rank file of a tokenizer. Raise BadTokenizer if its IDs would change."""
    if tokenizer.text_rules is not None:
        raise not_storable("text entries and a vocabulary that lacks bytes", _FORM)
    if tokenizer.normalizer is not None:
        raise not_storable(f"normalizer {tokenizer.normalizer}", _FORM)
    entries = tokenizer.ordinary_entries
    if not tokenizer.is_rank_file:
        check_ranks_do(entries, tokenizer.merges, tokenizer.ignore_merges)
    for id_, text in tokenizer.parts.vocabulary.decoded_only.items():
        if text:
            raise not_storable(f"entry {id_} ({shown(text)}), which is outside the byte alphabet", _FORM)
        entries[id_] = b""
    return rank_file((entry, id_) for id_, entry in sorted(entries.items()))


def rank_file(ranked: Iterable[tuple[bytes, int]]) -> bytes:
    """Return the rank file of entries and ranks, in the given order."""
    return b"".join(
        (binascii.b2a_base64(entry, newline=False) or b"=") + b" %d\n" % rank for entry, rank in ranked
    )


def check_ranks_do(entries: dict[int, bytes], merges: list[tuple[bytes, bytes]], ignore_merges: bool) -> None:
    """Raise BadTokenizer if ranks equal to the IDs do not merge as the list does."""
    id_of = {entry: id_ for id_, entry in entries.items()}
    highest = -1
    made: set[bytes] = set()
    for index, (left, right) in enumerate(merges):
        product = left + right
        if product in made:
            continue
        made.add(product)
        if id_of[product] < highest:
            raise BadTokenizer(
                f"merges[{index}]: IDs must follow the order of the merges in a rank file (got {id_of[product]} for "
                f"{shown(product)} after {highest})"
            )
        highest = id_of[product]
    unreached = first_unreached(entries, merges)
    if unreached is None or (ignore_merges and set(merges) == _every_merge(entries)):
        return
    raise BadTokenizer(
        f"entry {unreached}: merges do not produce it, but a rank file would (got {shown(entries[unreached])}). Save "
        "the tokenizer as tokenizer.json."
    )


def _every_merge(entries: dict[int, bytes]) -> set[tuple[bytes, bytes]]:
    """Return all pairs of entries that concatenate to an entry."""
    ids = _core.EntryFile.from_entries(entries, None).encoder({}, None, True).merge_ids().tolist()
    return {(entries[left], entries[right]) for left, right in zip(ids[::2], ids[1::2], strict=True)}


def first_unreached(entries: dict[int, bytes], merges: list[tuple[bytes, bytes]]) -> int | None:
    """Return the lowest ID of an entry that merging its own bytes does not produce; None if there is none."""
    encoder = _core.EntryFile.from_entries(entries, merges).encoder({}, None, False)
    for id_, entry in sorted(entries.items()):
        ids = encoder.encode_pretokens(entry, np.array([len(entry)], np.uint64))
        if len(ids) != 1 or ids[0] != id_:
            return id_
    return None
