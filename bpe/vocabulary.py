"""Entries, merges and special tokens of a tokenizer, and the rules for entries that are text.

- IDs are in [0, 2^31). Gaps are allowed.
- Ordinary entries are distinct. They include each of the 256 bytes unless they are text (`TextRules`).
- Every merge joins two ordinary entries to a third.
- Special tokens are not empty and take no part in merging.

The core checks entries and merges, whether they come from a file or from Python.

An entry is ordinary unless a special token has its ID. The exception is an entry that text without the special
token needs as well, one that merging begins with or a part or product of a merge: it is both (Hugging Face's trainer
makes such vocabularies when a special token is one character).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from bpe import _core
from bpe.errors import BadArgument, BadTokenizer, lone_surrogate, shown
from bpe.formats.byte_alphabet import to_bytes
from tokenmill.stores.system import cached_property

MAX_ID: Final = 2**31 - 1  # a flat-tokens dataset stores id * 2 + 1 as uint32

Merges = Sequence[tuple[bytes, bytes]]
SpecialTokens = Collection[str] | Mapping[str, int] | None  # texts, optionally with IDs


@dataclass(frozen=True)
class TextRules:
    """Rules of a vocabulary that is not purely byte-level: the initial symbols and the handling of unknown characters.

    Entries are the UTF-8 of the texts in the file, such as "▁the". The initial symbols are the entries of the
    pretoken's characters. All but the first start with `continuing_subword_prefix`, and the last ends with
    `end_of_word_suffix`.

    A character without an entry becomes, with byte_fallback, the entries `<0x00>` to `<0xFF>` of its bytes if all of
    them exist. Otherwise it becomes unk_token, and fuse_unk joins adjacent unknown tokens into one. Without unk_token
    it is dropped.

    A merge drops the prefix of its right part: "a" and "##b" make "ab".
    byte_level: entries are bytes and merging begins with bytes. A byte without an entry is an unknown character.
    """

    byte_fallback: bool = False
    unk_token: str | None = None
    fuse_unk: bool = False
    end_of_word_suffix: str = ""
    continuing_subword_prefix: str = ""
    byte_level: bool = False

    @staticmethod
    def of_text(rules: TextRules | None) -> TypeGuard[TextRules]:
        """Return whether entries are text rather than bytes."""
        return rules is not None and not rules.byte_level

    @property
    def affixes(self) -> tuple[bytes, bytes]:
        """The prefix and the suffix of entries."""
        return self.continuing_subword_prefix.encode(), self.end_of_word_suffix.encode()

    @property
    def unk_entry(self) -> bytes | None:
        """The bytes of the unknown token, which may be an ordinary entry."""
        if self.unk_token is None:
            return None
        entry = to_bytes(self.unk_token) if self.byte_level else None
        return self.unk_token.encode() if entry is None else entry

    def unk_id(self, entries: Mapping[int, bytes]) -> int | None:
        """Return the ID of the unknown token among the entries, special tokens included, or None."""
        return next((id_ for id_, entry in entries.items() if entry == self.unk_entry), None)

    def for_core(self, unk_id: int | None, has_spaces: bool = False) -> _core.TextRules:
        """Return the rules as the core reads them.

        has_spaces: texts have a space for U+2581, even if no normalizer makes U+2581 of it.
        """
        return (
            self.byte_level,
            self.byte_fallback,
            self.fuse_unk,
            has_spaces,
            unk_id,
            self.unk_entry or b"",
            *self.affixes,
        )

    def join(self, left: bytes, right: bytes) -> bytes:
        """Return the product of a merge."""
        return left + right[len(self.continuing_subword_prefix.encode()) :]

    def made_of_unknown(self, merges: Merges) -> set[bytes]:
        """Return the entries that unknown characters become, and all products of merges of these."""
        found = {*BYTE_ENTRIES} if self.byte_fallback else set()
        found |= {self.unk_entry} if self.unk_entry is not None else set()
        made: set[bytes] = {*found}
        while made:
            made = {
                self.join(left, right) for left, right in merges if left in found or right in found
            } - found
            found |= made
        return found

    def begins(self, entry: bytes) -> bool:
        """Return whether an entry can be an initial symbol: a byte entry, or one character with optional affixes."""
        prefix, suffix = self.affixes
        for start in (entry, entry.removeprefix(prefix)):
            for symbol in (start, start.removesuffix(suffix)):
                if len(symbol if self.byte_level else symbol.decode()) <= 1:
                    return True
        return self.byte_fallback and entry in BYTE_ENTRIES


# Byte entries of a text vocabulary: b"<0x00>" -> 0 to b"<0xFF>" -> 255.
BYTE_ENTRIES: Final = {b"<0x%02X>" % byte: byte for byte in range(256)}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The entries and merges in the core. Python objects for them are made on first use.

    core: ordinary entries and merges.
    special_tokens: text -> ID.
    ignore_merges: whether a pretoken that is an entry is emitted at once.
    text_rules: None for a byte-level vocabulary.
    decoded_only: ID -> text of the entries that encoding never produces: the empty entry, and keys of a byte-level
        vocabulary outside its byte alphabet.
    """

    core: _core.TokenizerCore
    special_tokens: dict[str, int]
    ignore_merges: bool
    text_rules: TextRules | None = None
    decoded_only: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_rank_file(self) -> bool:
        """Whether the ID of an entry is its rank and all pairs that make an entry merge."""
        return self.core.is_rank_file

    @property
    def merge_count(self) -> int:
        """The number of listed merges; 0 for a rank file."""
        return 0 if self.is_rank_file else self.core.merge_count

    @cached_property
    def entry_count(self) -> int:
        """The number of entries, special tokens included."""
        added = sum(self.core.entry(id_) is None for id_ in self.special_tokens.values())
        return len(self.core) + added + len(self.decoded_only)

    @property
    def max_id(self) -> int:
        """The highest ID; -1 for an empty vocabulary."""
        return max((self.core.max_id, *self.special_tokens.values(), *self.decoded_only))

    @property
    def unk_id(self) -> int | None:
        """The ID of the unknown token, if there is one."""
        rules = self.text_rules
        if rules is None or rules.unk_token is None or rules.unk_entry is None:
            return None
        id_ = self.core.find(rules.unk_entry)
        if id_ is None:
            id_ = self.special_tokens.get(rules.unk_token)
        texts = {text: each for each, text in self.decoded_only.items()}
        return texts.get(rules.unk_token) if id_ is None else id_

    @cached_property
    def entries(self) -> dict[int, bytes]:
        """ID -> bytes of the ordinary entries, by ascending ID."""
        return self.core.entries()

    @cached_property
    def all_entries(self) -> dict[int, bytes]:
        """ID -> bytes of ordinary entries and special tokens, by ascending ID."""
        special = {id_: text.encode() for text, id_ in self.special_tokens.items()}
        unreached = {id_: text.encode() for id_, text in self.decoded_only.items()}
        return dict(sorted((self.entries | special | unreached).items()))

    @cached_property
    def listed_merges(self) -> list[tuple[bytes, bytes]]:
        """The merges, lowest rank first. For a rank file every split of every entry into two entries, by the rank of
        the entry, then by the ranks of its halves."""
        entries = self.entries
        ids = self.core.merge_ids().tolist()
        return [(entries[left], entries[right]) for left, right in zip(ids[::2], ids[1::2], strict=True)]


LOWER_BLOCK: Final = "\u2581"  # stands for a space in text entries


def exchange_spaces(text: bytes) -> bytes:
    """Return a text or an entry with spaces for U+2581 and U+2581 for spaces."""
    return b" ".join(part.replace(b" ", LOWER_BLOCK.encode()) for part in text.split(LOWER_BLOCK.encode()))


def warning_of_missing_bytes(vocabulary: Vocabulary) -> str:
    """List the bytes that lack an entry, such as "c0-c1 f5-ff", and their effect; return "" if none is missing."""
    rules = vocabulary.text_rules
    if rules is None or not rules.byte_level or any(rules.affixes):
        return ""
    missing = {byte for byte in range(256) if vocabulary.core.find(bytes([byte])) is None}
    spans = [[byte, byte] for byte in sorted(missing) if byte - 1 not in missing]
    for span in spans:
        while span[1] + 1 in missing:
            span[1] += 1
    if not spans:
        return ""
    listed = " ".join(f"{first:02x}" + (f"-{last:02x}" if last > first else "") for first, last in spans)
    effect = "omits them" if rules.unk_token is None else f"replaces them with {shown(rules.unk_token)}"
    return f"no entries for the bytes {listed}. Encoding {effect}."


def read_vocabulary(
    vocab: Mapping[int, bytes],
    merges: Iterable[tuple[bytes, bytes]] | None,
    special_tokens: SpecialTokens,
    text_rules: TextRules | None,
) -> tuple[_core.EntryFile, dict[str, int], int | None]:
    """Return entries and merges for the core, text -> ID of the special tokens, and the ID of the unknown token.

    vocab may hold the special tokens and one empty entry, which encoding never produces. A special token without an ID
    gets the ID of the entry with its bytes, else the next free ID, in order. Raise BadTokenizer for a fault in them.
    """
    entries = dict(vocab)
    check_ids(entries)
    empty = [id_ for id_, entry in entries.items() if not entry]
    if len(empty) > 1:
        raise BadTokenizer(f"vocab: only one entry may be empty (got IDs {empty[:2]})")
    given = set(entries.values())
    specials = assign_special_ids(entries, special_tokens)
    if text_rules is not None:
        check_text_entries(entries, merges is not None, text_rules)
    unk_id = None if text_rules is None else text_rules.unk_id(entries)
    special_ids = set(specials.values())
    ordinary = {entry for id_, entry in entries.items() if id_ not in special_ids}
    for id_ in special_ids:  # the core decides which of the others are ordinary too
        entry = entries[id_]
        only_special = len(entry) > 1 if merges is None else text_rules is not None and entry not in given
        if only_special or entry in ordinary:
            del entries[id_]
    pairs = None if merges is None else [(left, right) for left, right in merges]
    try:
        return _core.EntryFile.from_entries(entries, pairs), specials, unk_id
    except TypeError as error:
        raise BadTokenizer(str(error)) from None


def check_text_entries(entries: Mapping[int, bytes], has_merges: bool, rules: TextRules) -> None:
    """Raise BadTokenizer if entries are not text as the rules require."""
    if not has_merges:
        raise BadTokenizer("text_rules: must be None for a rank file")
    if not rules.byte_level:
        for id_, entry in entries.items():
            try:
                entry.decode()
            except UnicodeDecodeError:
                raise BadTokenizer(f"vocab[{id_}]: must be valid UTF-8 (got {shown(entry)})") from None
    if rules.unk_entry is not None and rules.unk_entry not in entries.values():
        raise BadTokenizer(f"unk_token: not an entry of the vocabulary (got {shown(rules.unk_token)})")


def check_ids(entries: Mapping[int, bytes]) -> None:
    """Raise BadTokenizer for an ID outside [0, 2^31) or an entry that is not bytes."""
    for id_, entry in entries.items():
        if type(id_) is not int or not 0 <= id_ <= MAX_ID:
            raise BadTokenizer(
                f"entry {shown(entry)}: ID must be an integer from 0 to {MAX_ID} (got {shown(id_)})"
            )
        if type(entry) is not bytes:
            raise BadTokenizer(f"vocab[{id_}]: must be bytes (got {shown(entry)})")


def assign_special_ids(entries: dict[int, bytes], special_tokens: SpecialTokens) -> dict[str, int]:
    """Return text -> ID of each special token, in the given order, and add missing ones to `entries`.

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
            raise BadTokenizer(
                f"special_tokens: {shown(owner[id_])} and {shown(text)} have the same ID {id_}"
            )
        if entries.setdefault(id_, text.encode()) != text.encode():
            raise BadTokenizer(
                f"special_tokens: ID {id_} of {shown(text)} belongs to the entry {shown(entries[id_])}"
            )
    return assigned


def check_special_texts(
    special_tokens: Iterable[str], error: type[BadTokenizer | BadArgument] = BadTokenizer
) -> list[str]:
    """Return the special tokens as a list. Raise BadTokenizer unless they are distinct non-empty texts."""
    if isinstance(special_tokens, (str, bytes)):
        raise error(f"special_tokens: must be a list of strings (got {shown(special_tokens)})")
    if isinstance(special_tokens, (set, frozenset)):
        raise error("special_tokens: must be a list, since the order determines the IDs (got a set)")
    texts = list(special_tokens)
    seen: set[str] = set()
    for text in texts:
        if not isinstance(text, str) or not text:
            raise error(f"special_tokens: must be non-empty strings (got {shown(text)})")
        try:
            text.encode()
        except UnicodeEncodeError as fault:
            raise error(lone_surrogate("special_tokens", fault)) from None
        if text in seen:
            raise error(f"special_tokens: duplicate (got {shown(text)})")
        seen.add(text)
    return texts


def find_or_number(texts: Sequence[str], entries: Mapping[int, bytes]) -> dict[str, int]:
    """Return text -> ID of the entry with its bytes. Texts without an entry get the IDs after the highest."""
    wanted = {text.encode() for text in texts}
    found: dict[bytes, int] = {}
    for id_, entry in entries.items():
        if entry in wanted and found.setdefault(entry, id_) != id_:
            raise BadTokenizer(
                f"special_tokens: {shown(entry.decode())} matches the entries {found[entry]} and {id_}. "
                "Pass the special tokens as {text: id}."
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
        raise BadTokenizer(f"special_tokens: no IDs left above the entries (largest ID: {MAX_ID})")
    return assigned
