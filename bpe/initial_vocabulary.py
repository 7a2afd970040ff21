"""The initial vocabulary of a training run: the entries before the first merge, and the pretokens spelled in them.

It consists of an alphabet, or of the entries of a tokenizer that training continues from.

Alphabet: a letter is a byte (default: all 256) or a character of the text. With initial_alphabet or limit_alphabet, it
holds the initial letters and those of the text, most frequent first. Letters outside it are removed from the pretokens,
which makes their neighbours adjacent. With a continuing_subword_prefix, letters after the start of a pretoken have
separate entries; with an end_of_word_suffix, letters at its end; with both, letters in both positions too.

IDs have this order: special tokens; with byte fallback the 256 byte entries (`<0x00>` to `<0xFF>`); letters (characters
by code point, bytes in GPT-2's printable order); letters with the suffix, with the prefix and with both in the same
order (unspecified in BpeTrainer); merges. Merges and IDs equal those of Hugging Face's BpeTrainer with the same
normalizer, pre-tokenizer and initial tokens, with two exceptions:

- In BpeTrainer, text that spells a special token, a byte entry ("<0x41>"), the prefix or the suffix gets the ID of that
  entry. Here no merge produces such text.
- Its tokenizers lose bytes without an entry. Here these bytes get the last IDs, which vocab_size does not count.

Continued tokenizer: its entries keep their IDs, and new special tokens and merges follow. The tokenizer encodes each
pretoken before training. New merges rank after all old merges, so encoding applies the old merges first. Characters
without an entry become unknown tokens or bytes. No merge joins these, so pretokens are cut there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import BadArgument, BadTokenizer, NotEnoughMemory, shown
from bpe.formats.byte_alphabet import BYTES_BY_CHARACTER, to_bytes
from bpe.like import TextRule
from bpe.parts import Parts, core_components, make_parts
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.memory import check_room
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import BYTE_ENTRIES, TextRules, Vocabulary
from tokenmill.inputs.sizes import counted

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.memory import MemoryBudget

# Concatenated bytes or indices of entries; end offset of each pretoken and its count, both uint64[pretokens].
Pretokens = tuple["Buffer | NDArray[np.uint32]", NDArray[np.uint64], NDArray[np.uint64]]

BYTES: Final = tuple(bytes([byte]) for byte in BYTES_BY_CHARACTER)
_POSITIONS: Final = range(4)  # position in a pretoken, as bits: 1 at the end, 2 after the start


@dataclass(frozen=True, eq=False)
class InitialVocabulary:
    """The entries before the first merge.

    rule: normalizer, pre-tokenizer and kind of entries.
    added_tokens: special tokens, by ID.
    vocab: ID -> bytes of all entries that vocab_size counts, special tokens included.
    entries: bytes of the entries that can be merged, by index in the core.
    reserved: byte strings that no new entry may have.
    last: entries after the merges, which vocab_size does not count.
    pretokens: spells counted pretokens in the entries, and raises NotEnoughMemory if the result does not fit.
    continued: tokenizer that training continues from.
    """

    rule: TextRule
    added_tokens: Sequence[AddedToken]
    vocab: dict[int, bytes]
    entries: Sequence[bytes]
    reserved: Sequence[bytes]
    pretokens: Callable[[PretokenCounts, MemoryBudget | None], Pretokens]
    last: Sequence[bytes] = ()
    continued: Tokenizer | None = None

    @property
    def note(self) -> str:
        """A note on byte entries that vocab_size does not count, or ""."""
        if not self.last:
            return ""
        return (
            f"alphabet: {counted(len(self.last), 'byte')} outside of it took no part in merging. Their entries are "
            "added to vocab_size."
        )

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """Return the tokenizer with one more entry per pair. Raise NotEnoughMemory if its entries do not fit.

        pairs: uint32[merges, 2], indices of entries. Merge k makes entry len(entries) + k.
        """
        rule, old = self.rule, self.continued
        if old is None and rule.text_rules is None and not self.last:
            return self._byte_tokenizer(pairs, budget)
        if budget is not None:
            check_room(500 * (len(self.vocab) + len(self.last) + len(pairs)), "the vocabulary", budget)
        entries = list(self.entries)
        merges = [] if old is None else list(old.merges)
        for left, right in pairs.tolist():
            merges.append((entries[left], entries[right]))
            rules = rule.text_rules
            entries.append(b"".join(merges[-1]) if rules is None else rules.join(*merges[-1]))
        new = [*entries[len(self.entries) :], *self.last]
        parts = make_parts(
            self.vocab | dict(enumerate(new, max(self.vocab, default=-1) + 1)),
            merges,
            self.added_tokens,
            rule.pretokenizer,
            ignore_merges=old is not None and old.ignore_merges,
            normalizer=rule.normalizer,
            post_processor=None if old is None else old.post_processor,
            text_rules=rule.text_rules,
            decoder=rule.decoder,
        )
        if old is not None:
            parts = replace(parts, truncation=old.truncation, padding=old.padding)
        return Tokenizer.from_parts(parts)

    def _byte_tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """Build a tokenizer of all bytes in the core, without Python objects for entries."""
        rule, specials = self.rule, {token.text: token.id for token in self.added_tokens}
        components = core_components(rule.pretokenizer, rule.normalizer, self.added_tokens, {}, None, None)
        try:
            core = _core.TokenizerCore.from_merges(
                pairs,
                b"".join(BYTES),
                len(specials),
                components["special_tokens"],
                components["automaton"],
                components["normalizer"],
                components["changes"],
                memory_limit=0 if budget is None else budget.limit_bytes,
            )
        except MemoryError:
            if budget is None:
                raise
            raise NotEnoughMemory(
                f"vocabulary: {len(pairs) + 256:,} entries need more than {budget.words}. Limit their length "
                f"(--max-token-bytes {MAX_TOKEN_BYTES} or less), choose a smaller vocabulary, or allow more memory."
            ) from None
        except ValueError as error:
            raise BadTokenizer(str(error)) from None
        return Tokenizer.from_parts(
            Parts(Vocabulary(core, specials, False), rule.pretokenizer, rule.normalizer)
        )


def initial_letters(
    initial_alphabet: Iterable[str] | None, limit_alphabet: int | None, of_text: bool
) -> list[int]:
    """Return the code points of an initial alphabet, or its bytes, given as characters of the byte alphabet.

    The first character of a longer string counts. Raise BadArgument for a character outside the byte alphabet ("Ġ" is
    the space), and for more letters than limit_alphabet, since BpeTrainer would drop arbitrary ones.
    """
    found: list[int] = []
    needed = "strings" if of_text else 'characters of the byte alphabet, such as "a", or "Ġ" for the space'
    for text in initial_alphabet or ():
        first = text[:1] if isinstance(text, str) else None
        letter = first if of_text or first is None else to_bytes(first)
        if letter is None:
            raise BadArgument(f"initial_alphabet: must be {needed} (got {shown(text)})")
        found += letter if isinstance(letter, bytes) else map(ord, letter)
    if limit_alphabet is not None and limit_alphabet < len(set(found)):
        raise BadArgument(
            f"limit_alphabet: must be at least {len(set(found))}, the number of "
            f"{'characters' if of_text else 'bytes'} in initial_alphabet (got {limit_alphabet}). Raise the limit, or "
            "shorten initial_alphabet."
        )
    return found


def alphabet_vocabulary(
    counts: PretokenCounts,
    special_tokens: Sequence[str],
    rule: TextRule,
    initial_alphabet: Iterable[str] | None = None,
    limit_alphabet: int | None = None,
) -> InitialVocabulary:
    """Return the alphabet of counted text, or all bytes if entries are bytes and the alphabet is not restricted.

    Among equally rare letters, the first are dropped (arbitrary in BpeTrainer). Raise BadArgument like
    `initial_letters`, or if a special token spells the entry of a letter.
    """
    rules = rule.text_rules
    if rules is not None and rules.unk_token not in special_tokens:
        rules = replace(rules, unk_token=None)
        rule = replace(rule, text_rules=rules)
    prefix, suffix = (b"", b"") if rules is None else rules.affixes
    bits = 2 * (prefix != b"") + (suffix != b"")  # of the positions that have separate entries
    separate = [position for position in _POSITIONS if position & bits == position]
    restricted = rule.of_text or initial_alphabet is not None or limit_alphabet is not None
    if restricted:
        letters_at = _letters(counts, rule.of_text, bits, initial_alphabet, limit_alphabet)
    else:
        letters_at = dict.fromkeys(separate, BYTES_BY_CHARACTER)

    def spelled(letter: int, position: int) -> bytes:
        plain = chr(letter).encode() if rule.of_text else bytes([letter])
        return prefix * (position >> 1) + plain + suffix * (position & 1)

    every = [spelled(letter, position) for position in separate for letter in letters_at[position]]
    letters = list(dict.fromkeys(every))
    specials = [token.encode() for token in special_tokens]
    if rules is not None and (same := set(letters).intersection(specials)):
        raise BadArgument(
            f"special_tokens: same spelling as an entry of the alphabet (got {shown(min(same).decode())}). Choose "
            "another."
        )
    byte_entries = BYTE_ENTRIES if rules is not None and rules.byte_fallback else ()
    in_bytes = not rule.of_text and bits == 0
    last: list[bytes] = []
    if restricted and not rule.of_text:
        every = [spelled(byte, position) for position in separate for byte in BYTES_BY_CHARACTER]
        known = set(letters)
        last = [entry for entry in every if entry not in known]

    def in_letters(counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """Spell the pretokens without letters outside the alphabet."""
        if budget is not None:
            check_room(4 * counts.pretoken_bytes.nbytes + 8 * len(counts), "the ids of the letters", budget)
        index_of = {entry: index for index, entry in enumerate(letters)}
        made = {position: np.full(0x110000 if rule.of_text else 256, -1, np.int32) for position in separate}
        for position, found in letters_at.items():
            made[position][list(found)] = (
                found if in_bytes else [index_of[spelled(letter, position)] for letter in found]
            )
        indices, ends = _core.letter_ids(*counts.arrays, [made[position & bits] for position in _POSITIONS])
        # Bytes take a quarter of the memory of indices.
        return indices.astype(np.uint8).data if in_bytes else indices, ends, counts.counts

    return InitialVocabulary(
        rule,
        [AddedToken(token, id_) for id_, token in enumerate(special_tokens)],
        dict(enumerate([*specials, *byte_entries, *letters])),
        BYTES if in_bytes else letters,
        () if rules is None else [*specials, *byte_entries],
        in_letters if restricted or not in_bytes else _in_bytes,
        last,
    )


def _in_bytes(counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
    return counts.pretoken_bytes.data, counts.ends, counts.counts


def _letters(
    counts: PretokenCounts,
    of_text: bool,
    bits: int,
    initial_alphabet: Iterable[str] | None,
    limit_alphabet: int | None,
) -> dict[int, Sequence[int]]:
    """Return the letters with an entry, for each position that has separate entries, in the order of their IDs.

    Letters are bytes or code points. Position 0 has all letters.
    """
    occurrences, positions = _core.count_letters(*counts.arrays, of_text)
    initial = initial_letters(initial_alphabet, limit_alphabet, of_text)
    order = np.arange(len(occurrences)) if of_text else np.array(BYTES_BY_CHARACTER)
    kept = occurrences > 0
    kept[initial] = True
    over = 0 if limit_alphabet is None else int(kept.sum()) - limit_alphabet
    if over > 0:
        candidates = order[kept[order] & ~np.isin(order, initial)]
        kept[candidates[np.argsort(occurrences[candidates], kind="stable")[:over]]] = False
    letters = order[kept[order]]
    placed: dict[int, Sequence[int]] = {0: letters.tolist()}
    for position in _POSITIONS[1:]:
        if position & bits == position:
            seen_at = sum(1 << each for each in _POSITIONS if each & bits == position)
            placed[position] = letters[positions[letters] & seen_at > 0].tolist()
    return placed


def continued_vocabulary(old: Tokenizer, more_special_tokens: Sequence[str]) -> InitialVocabulary:
    """Return the entries of a tokenizer with more special tokens.

    Raise BadArgument for a tokenizer without a list of merges, or a special token that is an entry of it.
    """
    if old.is_rank_file:
        raise BadArgument(
            "continue_from: a rank file has no list of merges, which continued training needs. Save "
            "the tokenizer as tokenizer.json (Tokenizer.save), and continue from that file."
        )
    for text in more_special_tokens:
        if old.token_to_id(text.encode()) is not None:
            raise BadArgument(
                f"special_tokens: already an entry of the tokenizer (got {shown(text)}). Choose another."
            )
    added = [AddedToken(text, id_) for id_, text in enumerate(more_special_tokens, old.max_token_id + 1)]
    texts = [*old.special_tokens, *more_special_tokens]
    rules = old.text_rules
    if TextRules.of_text(rules):  # with byte fallback, also the byte entries that the tokenizer lacks
        also = list(BYTE_ENTRIES) if rules.byte_fallback else []
    else:  # files spell entries in the byte alphabet, so these would have the spelling of a special token
        also = [entry for text in texts if (entry := to_bytes(text)) is not None]
    entries = [entry for _, entry in sorted(old.ordinary_entries.items())]
    return InitialVocabulary(
        TextRule.of(old),
        [*old.added_tokens, *added],
        dict(old.vocab) | {token.id: token.text.encode() for token in added},
        entries,
        [*(text.encode() for text in texts), *also],
        partial(_in_entries, old, entries),
        continued=old,
    )


def _in_entries(
    old: Tokenizer, entries: Sequence[bytes], counts: PretokenCounts, budget: MemoryBudget | None
) -> Pretokens:
    """Encode the pretokens with the tokenizer. entries: its ordinary entries by ID."""
    if budget is not None:  # at most one ID per byte, and buffers to encode a block
        needed = 4 * counts.pretoken_bytes.nbytes + 32 * len(counts) + 16 * counts.largest_block_bytes()
        check_room(needed, "encoding the pretokens", budget)
    rules = old.text_rules
    encoder = _core.EntryFile.from_entries(old.ordinary_entries, old.merges).encoder(
        {},
        None,
        old.ignore_merges,
        None if rules is None else rules.for_core(rules.unk_id(old.vocab)),
        cache_bytes=1 << 20,  # small, since each pretoken occurs once
    )
    unknown = set() if rules is None else rules.made_of_unknown(old.merges)
    index_of = np.full(old.max_token_id + 1, -1, np.int64)
    index_of[sorted(old.ordinary_entries)] = np.arange(len(entries))
    index_of[[id_ for id_, entry in old.vocab.items() if entry in unknown]] = -1
    indices = np.empty(len(counts.pretoken_bytes), np.uint32)  # untouched pages take no memory
    ends: list[NDArray[np.uint64]] = [counts.ends[:0]]
    weights = [counts.counts[:0]]
    size = 0
    for text, byte_ends, block_weights in counts.blocks():
        tokens, rows = encoder.encode_pretoken_rows(text.data, byte_ends)
        found, stops = index_of[tokens], rows[1:]
        cuts = np.flatnonzero(found < 0).astype(np.uint64)
        if len(cuts):  # a pretoken also ends before each cut, and cuts are dropped
            of_cuts = block_weights[np.searchsorted(stops, cuts, "right")]
            stops = np.concatenate([stops, cuts])
            order = np.argsort(stops, kind="stable")
            stops, block_weights = stops[order], np.concatenate([block_weights, of_cuts])[order]
            stops -= np.searchsorted(cuts, stops, "left").astype(np.uint64)
            found = found[found >= 0]
        ends.append(stops + np.uint64(size))
        weights.append(block_weights)
        indices[size : size + len(found)] = found
        size += len(found)
    return indices[:size], np.concatenate(ends), np.concatenate(weights)
