"""A checked vocabulary: which ids stand for which bytes, which pairs merge, which entries are special tokens.

Invariants of a `Vocabulary`: ids are 0 .. 2^31 - 1 (gaps are allowed); the ordinary entries hold each of the 256
bytes once, and no bytes twice; every merge joins two ordinary entries to a third; special tokens are not empty
and take no part in merging. What breaks one of these is refused with one line that names the entry or merge.

An entry is ordinary unless a special token has its id. The exception is an entry that text without the special
token needs as well, a single byte or a part or product of a merge: it is both (Hugging Face's trainer makes such
vocabularies when a special token is one character).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bpe import _core
from bpe.errors import BadArgument, BadTokenizer, shown

MAX_ID: Final = 2**31 - 1  # a flat-tokens dataset stores id * 2 + 1 as uint32

Merges = Sequence[tuple[bytes, bytes]]
SpecialTokens = Collection[str] | Mapping[str, int] | None  # as they are given: texts, perhaps with ids


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """entries: the ordinary ones, by id. merges: lowest rank first; None for a rank file (rank = id, every adjacent
    pair whose bytes together are an entry). ignore_merges: a pretoken that is an entry is emitted at once."""

    entries: dict[int, bytes]
    merges: list[tuple[bytes, bytes]] | None
    special_tokens: dict[str, int]
    ignore_merges: bool

    @cached_property
    def all_entries(self) -> dict[int, bytes]:
        """id -> bytes of ordinary entries and special tokens, by ascending id."""
        return with_special_tokens(self.entries, self.special_tokens)

    @property
    def is_rank_file(self) -> bool:
        """Whether the id of an entry is its rank and all pairs that make an entry merge."""
        return self.merges is None

    @property
    def merge_count(self) -> int:
        """How many merges are listed; 0 for a rank file."""
        return len(self.merges or ())

    @property
    def entry_count(self) -> int:
        """The entries, special tokens included."""
        return len(self.all_entries)

    @property
    def max_id(self) -> int:
        """The highest id."""
        return max(self.all_entries)

    @cached_property
    def listed_merges(self) -> list[tuple[bytes, bytes]]:
        """The merges; for a rank file every split of every entry into two entries, by the entry's rank, then
        by the ranks of its halves. About 4 µs an entry."""
        if self.merges is not None:
            return self.merges
        return every_split(self.entries)

    def make_encoder(
        self, automaton: _core.Automaton | None, tokens: _core.AddedTokens
    ) -> _core.TokenizerCore:
        """A core encoder of it; automaton None: only given pretokens can be encoded."""
        try:
            return _core.TokenizerCore(self.entries, self.merges, tokens, automaton, self.ignore_merges)
        except ValueError as error:
            raise BadTokenizer(str(error)) from None


def with_special_tokens(entries: Mapping[int, bytes], special_tokens: Mapping[str, int]) -> dict[int, bytes]:
    """id -> bytes of the entries and the special tokens, by ascending id."""
    special = {id_: text.encode() for text, id_ in special_tokens.items()}
    return dict(sorted((dict(entries) | special).items()))


def every_split(entries: Mapping[int, bytes]) -> list[tuple[bytes, bytes]]:
    """All pairs of entries whose bytes together are an entry: what a rank file allows to merge, in its order.

    {0: b"a", 1: b"b", 2: b"ab"} -> [(b"a", b"b")]
    """
    id_of = {entry: id_ for id_, entry in entries.items()}
    merges: list[tuple[bytes, bytes]] = []
    for _, entry in sorted(entries.items()):
        splits = []
        for place in range(1, len(entry)):
            left, right = entry[:place], entry[place:]
            if left in id_of and right in id_of:
                splits.append((id_of[left], id_of[right]))
        merges.extend((entries[left_id], entries[right_id]) for left_id, right_id in sorted(splits))
    return merges


def make_vocabulary(
    vocab: Mapping[int, bytes],
    merges: Iterable[tuple[bytes, bytes]] | None,
    special_tokens: SpecialTokens = None,
    ignore_merges: bool | None = None,
) -> Vocabulary:
    """The checked vocabulary; BadTokenizer names the first thing that is wrong.

    vocab may hold the special tokens. Special tokens given without ids have that of the entry of their bytes, or
    the next free ones in their order. ignore_merges None: yes for a rank file, no otherwise.
    """
    entries = dict(vocab)
    merge_list = None if merges is None else [(left, right) for left, right in merges]
    check_ids(entries)
    specials = assign_special_ids(entries, special_tokens)

    in_merges = used_by_merges({text.encode() for text in specials}, merge_list or ())
    special_ids = set(specials.values())
    ordinary = {id_: entry for id_, entry in entries.items() if id_ not in special_ids}
    ordinary_bytes = set(ordinary.values())
    for text, id_ in specials.items():
        entry = text.encode()
        if entry not in ordinary_bytes and (len(entry) == 1 or entry in in_merges):
            ordinary[id_] = entry

    id_of = check_entries(ordinary)
    if merge_list is not None:
        check_merges(merge_list, id_of)
    return Vocabulary(
        entries=dict(sorted(ordinary.items())),
        merges=merge_list,
        special_tokens=specials,
        ignore_merges=merge_list is None if ignore_merges is None else ignore_merges,
    )


def used_by_merges(candidates: Collection[bytes], merges: Merges) -> set[bytes]:
    """Those of the candidates that are a part or the product of a merge."""
    if not candidates:
        return set()
    used = {part for pair in merges for part in pair if part in candidates}
    return used | {left + right for left, right in merges if left + right in candidates}


def check_ids(entries: Mapping[int, bytes]) -> None:
    """Nothing, or BadTokenizer for an id outside 0 .. 2^31 - 1 or an entry that is not bytes."""
    if not entries or (
        {*map(type, entries)} == {int}
        and {*map(type, entries.values())} == {bytes}
        and min(entries) >= 0
        and max(entries) <= MAX_ID
        and all(entries.values())
    ):
        return
    for id_, entry in entries.items():
        if type(id_) is not int or not 0 <= id_ <= MAX_ID:
            raise BadTokenizer(
                f"id {shown(id_)} of entry {shown(entry)}: ids must be whole numbers 0 .. {MAX_ID}"
            )
        if type(entry) is not bytes or not entry:
            raise BadTokenizer(f"entry {id_} is {shown(entry)}: an entry must be one or more bytes")


def check_entries(ordinary: Mapping[int, bytes]) -> dict[bytes, int]:
    """bytes -> id, or BadTokenizer for bytes that two entries share or single bytes that none has."""
    id_of = {entry: id_ for id_, entry in ordinary.items()}
    if len(id_of) < len(ordinary):
        for id_, entry in ordinary.items():
            if id_of[entry] != id_:
                raise BadTokenizer(
                    f"entries {id_} and {id_of[entry]} are both {shown(entry)}: bytes must be unique"
                )
    missing = [byte for byte in range(256) if bytes([byte]) not in id_of]
    if missing:
        raise BadTokenizer(
            f"{len(missing)} of the 256 bytes have no entry, the first is 0x{missing[0]:02x}: a byte-level "
            "vocabulary must hold them all"
        )
    return id_of


def check_merges(merges: Merges, id_of: Mapping[bytes, int]) -> None:
    """Nothing, or BadTokenizer for the first merge of or to something that is no ordinary entry, or given twice."""
    known = id_of.keys()
    if (
        {left for left, _ in merges} <= known
        and {right for _, right in merges} <= known
        and {left + right for left, right in merges} <= known
        and len(set(merges)) == len(merges)
    ):
        return
    seen: dict[tuple[bytes, bytes], int] = {}
    for index, (left, right) in enumerate(merges):
        for part in (left, right):
            if part not in id_of:
                raise BadTokenizer(
                    f"merges[{index}] joins {shown(part)}, which is not an entry of the vocabulary"
                )
        if left + right not in id_of:
            raise BadTokenizer(
                f"merges[{index}] makes {shown(left + right)}, which is not an entry of the vocabulary"
            )
        first = seen.setdefault((left, right), index)
        if first != index:
            raise BadTokenizer(f"merges[{index}] repeats merges[{first}], {shown(left)} and {shown(right)}")


def assign_special_ids(entries: dict[int, bytes], special_tokens: SpecialTokens) -> dict[str, int]:
    """text -> id of each special token, in the order given; `entries` is made to hold them all.

    {5: b"<s>"}, ["<s>", "<t>"] -> {"<s>": 5, "<t>": 6}
    """
    if special_tokens is None:
        return {}
    texts = check_special_texts(special_tokens)
    if isinstance(special_tokens, Mapping):
        assigned = {text: special_tokens[text] for text in texts}
        check_ids({id_: text.encode() for text, id_ in assigned.items()})
    else:
        assigned = find_or_number(texts, entries)
    owner: dict[int, str] = {}
    for text, id_ in assigned.items():
        if owner.setdefault(id_, text) != text:
            raise BadTokenizer(f"special tokens {shown(owner[id_])} and {shown(text)} both have id {id_}")
        if entries.setdefault(id_, text.encode()) != text.encode():
            raise BadTokenizer(
                f"special token {shown(text)} has id {id_}, which is the entry {shown(entries[id_])}"
            )
    return assigned


def check_special_texts(
    special_tokens: Iterable[str], error: type[BadTokenizer | BadArgument] = BadTokenizer
) -> list[str]:
    """The special tokens as a list; an error unless they are different texts of at least a character each."""
    if isinstance(special_tokens, (str, bytes)):
        raise error(f"special tokens must be a list of texts, got the text {shown(special_tokens)}")
    texts = list(special_tokens)
    seen: set[str] = set()
    for text in texts:
        if not isinstance(text, str) or not text:
            raise error(f"special token {shown(text)}: must be a text of at least one character")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error(f"special token {shown(text)} holds a lone surrogate, which UTF-8 can't") from None
        if text in seen:
            raise error(f"special token {shown(text)} is given twice")
        seen.add(text)
    return texts


def find_or_number(texts: Sequence[str], entries: Mapping[int, bytes]) -> dict[str, int]:
    """The ids of the entries with the texts' bytes; texts without an entry get the ids after the highest."""
    wanted = {text.encode() for text in texts}
    found: dict[bytes, int] = {}
    for id_, entry in entries.items():
        if entry in wanted and found.setdefault(entry, id_) != id_:
            raise BadTokenizer(
                f"special token {shown(entry.decode())} could be entry {found[entry]} or {id_}: "
                "give the special tokens as {text: id}"
            )
    next_id = max(entries, default=-1) + 1
    assigned: dict[str, int] = {}
    for text in texts:
        if text.encode() in found:
            assigned[text] = found[text.encode()]
        else:
            assigned[text] = next_id
            next_id += 1
    if next_id > MAX_ID + 1:
        raise BadTokenizer(f"no ids left for the special tokens: ids end at {MAX_ID}")
    return assigned
