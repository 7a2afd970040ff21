"""A vocabulary that lives in the core; Python's objects of it are made when somebody asks for them.

Files are read straight into the core: 200,000 entries and 450,000 merges as dictionaries and tuples would cost a
second and 150 MB, and who only encodes never looks at one of them. It answers as a `Vocabulary` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bpe import _core
from bpe.vocabulary import TextRules, with_special_tokens
from tokenmill.stores.system import cached_property


@dataclass(frozen=True, eq=False)
class CoreVocabulary:
    """encoder: holds the ordinary entries and the merge rule. special_tokens: text -> id, known to the encoder too.
    decoded_only: id -> text of the entries that encoding never produces."""

    encoder: _core.TokenizerCore
    special_tokens: dict[str, int]
    ignore_merges: bool
    text_rules: TextRules | None = None
    decoded_only: Mapping[int, str] = field(default_factory=dict)

    def has_entry(self, entry: bytes) -> bool:
        """Whether these bytes are an ordinary entry."""
        return self.encoder.find(entry) is not None

    @property
    def is_rank_file(self) -> bool:
        """Whether the id of an entry is its rank and all pairs that make an entry merge."""
        return self.encoder.is_rank_file

    @property
    def merge_count(self) -> int:
        """How many merges are listed; 0 for a rank file."""
        return 0 if self.is_rank_file else self.encoder.merge_count

    @cached_property
    def entry_count(self) -> int:
        """The entries, special tokens included."""
        added = sum(self.encoder.entry(id_) is None for id_ in self.special_tokens.values())
        return len(self.encoder) + added + len(self.decoded_only)

    @property
    def max_id(self) -> int:
        """The highest ID, -1 for an empty vocabulary."""
        return max((self.encoder.max_id, *self.special_tokens.values(), *self.decoded_only))

    @cached_property
    def entries(self) -> dict[int, bytes]:
        """The ordinary entries, by ascending id."""
        return self.encoder.entries()

    @cached_property
    def all_entries(self) -> dict[int, bytes]:
        """id -> bytes of ordinary entries and special tokens, by ascending id."""
        return with_special_tokens(self.entries, self.special_tokens, self.decoded_only)

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]] | None:
        """Lowest rank first; None for a rank file."""
        return None if self.is_rank_file else self.listed_merges

    @cached_property
    def listed_merges(self) -> list[tuple[bytes, bytes]]:
        """The merges; of a rank file every split of every entry into two entries."""
        entries = self.entries
        ids = self.encoder.merge_ids().tolist()
        return [(entries[left], entries[right]) for left, right in zip(ids[::2], ids[1::2], strict=True)]

    def make_encoder(
        self, automaton: _core.Automaton | None, tokens: _core.AddedTokens, has_spaces: bool = False
    ) -> _core.TokenizerCore:
        """The encoder, which was made with its automaton, tokens and rules."""
        return self.encoder
