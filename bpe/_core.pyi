"""The C++ core of bpe. Encoding, counting and training release the GIL, except for short texts.

Buffers are bytes-like and contiguous. Text must be valid UTF-8 unless a call says that it checks this;
`tokenmill.inputs._core.validate_utf8` checks a text. Offsets are 64-bit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__version__: str

# -- automaton.cpp, text_window.cpp, safe_cut.cpp, utf8.cpp

Start = tuple[int, int, bool]
"""The start of a piece: age in characters (0: stored in a register), the register, whether the piece is dropped."""

class Automaton:
    """Immutable tables that cut texts into pieces. See bpe/pretokenization/tables.py."""

    def __init__(
        self,
        then: NDArray[np.uint8],
        initial: int,
        group_ends: Sequence[int],
        actions: Sequence[tuple[Sequence[Start], Sequence[tuple[int, Start]]]],
        at_end: Sequence[Sequence[Start]],
        oldest_pending: Sequence[Start | None],
        borders: NDArray[np.uint8],
        page_of: NDArray[np.uint16],
        pages: NDArray[np.uint8],
        back: tuple[NDArray[np.uint16], NDArray[np.uint32], NDArray[np.uint16], int] | None = None,
    ) -> None:
        """Build from the fields of Tables, which are not checked."""
    @property
    def drops(self) -> bool:
        """Whether any piece is dropped."""
    @property
    def has_later_phases(self) -> bool: ...
    def followed_by(
        self,
        phases: Sequence[tuple[Normalizer | None, Automaton]],
        from_alphabet: bool,
        asks_for_input: bool,
        stays: bytes,
    ) -> Automaton:
        """Return a copy that also applies later phases to each piece.

        phases: per phase, an optional change of each piece and the automaton that cuts the result.
        from_alphabet: the final pieces are in the byte alphabet.
        asks_for_input: whether the result depends on a piece starting an input.
        stays: a piece of only these bytes is neither changed nor cut.
        """

def pieces(automaton: Automaton, buffer: Buffer) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the byte offsets where the pieces of one text start, and whether each piece is dropped.

    Raise ValueError for text that is not valid UTF-8.
    """

def pretokens(automaton: Automaton, buffer: Buffer) -> tuple[bytes, NDArray[np.uint64]]:
    """Return the pretokens of one text, concatenated, and their ends. The automaton must have later phases.

    Raise ValueError for text that is not valid UTF-8.
    """

def last_safe_cut(automaton: Automaton, buffer: Buffer) -> int:
    """Return an offset p < len(buffer) where the text may be cut whatever follows it, or 0 if none is found.

    For every continuation c, the pieces of buffer + c are the pieces of buffer[:p], then the pieces of buffer[p:] + c.
    In ordinary text p is a few characters before the end. A single long word or run of spaces has no such offset.
    """

def simd_variants() -> list[str]:
    """Return the variants that this machine can run, best first, e.g. ["avx512", "avx2", "portable"]."""

def set_simd_variant(name: str) -> None:
    """Use this variant for objects constructed from now on. Raise ValueError if this machine cannot run it.

    The environment variable BPE_SIMD sets the variant at import.
    """

# -- normalizer.cpp

class Normalizer:
    """The normalizers of a tokenizer.json, applied in order. Immutable and thread-safe.

    Texts are valid UTF-8 without special tokens. See bpe/normalizers.py.
    """

    def __init__(self, steps: Sequence[NormalizerStep]) -> None:
        """Build from steps as listed in bpe/native/normalize/normalizer.hpp.

        Raise ValueError for an unknown kind or an invalid charsmap.
        """

    def apply(self, buffer: Buffer, start: int = 1) -> bytes:
        """Return the normalized text: the same object if it is `bytes` and does not change.

        start: 0 for text after a border, 1 for the start of a section, 2 for the start of an input.
        """

    def last_border(self, buffer: Buffer, place: int) -> int:
        """Return the last border p with 0 < p <= place, or 0 if there is none.

        Text before and after a border can be normalized separately:
        apply(text) == apply(text[:p]) + apply(text[p:], 0). This also holds for every text with the same bytes up
        to the end of the character at p.
        """

    def place_before(self, buffer: Buffer, place: int) -> int:
        """Return the start of the part of the text that becomes the byte at `place` of the normalized text."""

# -- encoder.cpp, special_tokens.cpp, decoder.cpp, content_hash.cpp

class AddedTokens:
    """Added tokens, to be found in two passes."""

    def __init__(
        self,
        tokens: Sequence[tuple[bytes, int, bytes | None, bool, bool, bool]],
        decoded_only: Sequence[tuple[bytes, int]] = (),
    ) -> None:
        """Collect added tokens. Raise ValueError for an empty text, or for a duplicate text in one pass.

        tokens: text, ID, normalized text (None: found before the text is normalized), lstrip, rstrip, single_word.
        decoded_only: text and ID of entries that are never found in text.
        """
    def find(self, buffer: Buffer, normalized: bool) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the matches of one pass in order: spans uint64[2 * n] (start and stop of each) and IDs uint32[n].

        normalized: find the tokens of the second pass, in normalized text. See SpecialTokens::Match.
        """

# byte_level, byte_fallback, fuse_unk, has_spaces (texts have a space where entries have U+2581), unk_id, unk_token,
# prefix and suffix; see TextRules in bpe/vocabulary.py.
TextRules = tuple[bool, bool, bool, bool, int | None, bytes, bytes, bytes]
# The fields of `bpe.decoders.CoreRule`, then the texts of special tokens as decoders see them, with their IDs.
TextDecoding = tuple[Sequence[tuple[bytes, bytes]], bytes, int, dict[bytes, int]]
# Kind, first text or automaton, second text; see native/normalize/normalizer.hpp.
NormalizerStep = tuple[str, bytes | Automaton, bytes]

class EntryFile:
    """The entries and merges of a tokenizer file, before it is known which entries are special tokens."""

    @staticmethod
    def read_model_json(document: bytes) -> EntryFile:
        """Read model.vocab and model.merges of a tokenizer.json, as the text of their JSON strings."""
    @staticmethod
    def read_rank_file(data: bytes) -> EntryFile:
        """Read a rank file: one line `base64 rank` per entry."""
    @staticmethod
    def from_entries(entries: dict[int, bytes], merges: Sequence[tuple[bytes, bytes]] | None) -> EntryFile:
        """Collect entries and merges. Raise TypeError for other types, ValueError for an ID out of range.

        entries: an empty one becomes a text.
        merges: None for a rank file: the rank is the ID, and every adjacent pair that forms an entry merges.
        """
    @staticmethod
    def from_arrays(
        ids: NDArray[np.uint32], ends: NDArray[np.uint64], bytes: bytes, merges: NDArray[np.uint32] | None
    ) -> EntryFile:
        """Collect entries and merges. Raise ValueError for arrays that do not match.

        ids: uint32[n].
        ends: uint64[n], the end of each entry in `bytes`.
        bytes: all entries, concatenated.
        merges: uint32[2 * m], indexes of the left and the right entry of each merge. None for a rank file.
        """
    @property
    def fault(self) -> tuple[str, int, int, int, str] | None:
        """The first malformed item: (kind, index, start, stop, key). data[start:stop] is its value.

        kind: json and utf8 (only start is set), vocab, merges, key, id (with its key), merge or line (with its index).
        """
    def outline(self, document: bytes) -> bytes:
        """Return the tokenizer.json with {} for model.vocab and [] for model.merges. Line numbers stay the same."""
    def spell_bytes(self) -> tuple[int, str] | None:
        """Replace entries and merge parts by the bytes that they spell in GPT-2's byte alphabet.

        Return the index of the first merge with another character and its part, or None. If not None, discard the file.
        """
    def __len__(self) -> int: ...
    @property
    def texts(self) -> dict[str, int]:
        """The keys of model.vocab that are not entries, with their IDs. Raise ValueError for a duplicate key."""
    @property
    def max_id(self) -> int: ...
    def has_id(self, id: int) -> bool: ...
    def find(self, wanted: Sequence[bytes]) -> list[int | None]:
        """Return the ID of each entry, or None, in one pass over all entries."""
    def used_by_merges(self, wanted: Sequence[bytes], prefix_bytes: int = 0) -> list[bytes]:
        """Return the entries that a merge joins or produces. A merge removes prefix_bytes from its right part."""
    def encoder(
        self,
        special_tokens: dict[bytes, int] | AddedTokens,
        automaton: Automaton | None,
        ignore_merges: bool,
        text_rules: TextRules | None = None,
        normalizer: Sequence[NormalizerStep] = (),
        changes: Sequence[NormalizerStep] = (),
        decoding: TextDecoding | None = None,
        cache_bytes: int = 256 << 20,
    ) -> TokenizerCore:
        """Return a core with all merges and entries, without the special tokens that merging does not need.

        special_tokens: added tokens, or a dict of tokens that are found by their bytes alone.
        automaton: cuts texts into pretokens after `changes`. None: only given pretokens can be encoded.
        ignore_merges: emit a pretoken that is an entry without merging.
        text_rules: None if entries are bytes and merging begins with bytes.
        normalizer: steps for the text between added tokens that are found before normalizing.
        changes: steps of the pre-tokenizer, for the text between all added tokens.
        decoding: how to decode entries that are text.
        cache_bytes: maximum size of all caches together.

        Raise ValueError with the location of the first invalid entry or merge: "vocab[5]: ..." or "merges[7]: ...".
        """

class TokenizerCore:
    """An immutable tokenizer. Threads may share it. Its caches are bounded."""

    @staticmethod
    def from_merges(
        merges: NDArray[np.uint32],
        byte_order: bytes,
        first_id: int,
        special_tokens: dict[bytes, int] | AddedTokens,
        automaton: Automaton | None,
        normalizer: Sequence[NormalizerStep] = (),
        changes: Sequence[NormalizerStep] = (),
        memory_limit: int = 0,
        cache_bytes: int = 256 << 20,
    ) -> TokenizerCore:
        """Build a core from training results. Time and memory are linear in the bytes of all entries.

        merges: uint32[m, 2], as train_merges returns it for these bytes.
        byte_order: the 256 bytes in the order of their IDs. An entry per merge follows.
        first_id: ID of the first byte. An entry has its ID in train_merges plus first_id.
        memory_limit: raise MemoryError before the process would use more bytes (0: no limit).

        Raise ValueError for a merge of an entry that is not made yet, or into bytes that are already an entry.
        """
    @property
    def automaton(self) -> Automaton | None:
        """The automaton that cuts texts, if any."""
    @property
    def leaves_whole(self) -> bool:
        """Whether entries are text and the pre-tokenizer cuts no text. Texts are then cut where no merge crosses."""
    @property
    def has_spaces(self) -> bool:
        """Whether texts have spaces where entries have U+2581. Given pretokens must then also have spaces."""
    def some_tokens(self, ids: Sequence[int]) -> AddedTokens:
        """Return the added tokens with these IDs, for the argument `special` of the encoding methods."""
    def arrays(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64], bytes, NDArray[np.uint32] | None]:
        """Return the ordinary entries and the merges as the arguments of `EntryFile.from_arrays`."""
    def __len__(self) -> int:
        """Return the number of entries without special tokens."""
    @property
    def is_rank_file(self) -> bool: ...
    @property
    def merge_count(self) -> int:
        """The number of listed merges, or of the entries of a rank file that merges make."""
    @property
    def max_id(self) -> int: ...
    def entries(self) -> dict[int, bytes]:
        """Return {ID: bytes} by ascending ID, without special tokens."""
    def entry(self, id: int) -> bytes | None: ...
    def entry_lengths(self) -> NDArray[np.uint32]:
        """Return uint32[max_id + 1], the size of each entry in bytes, 0 for an unused ID."""
    def find(self, entry: bytes) -> int | None:
        """Return the ID of the entry with these bytes, or None."""
    def merge_ids(self) -> NDArray[np.uint32]:
        """Return uint32[2 * m], the left and right ID of each merge, lowest rank first.

        For a rank file, return every split of every entry, ordered by the rank of the entry, then of its parts.
        """
    def vocab_json(self, special_keys: Sequence[tuple[int, bytes]]) -> Iterator[bytes]:
        """Write model.vocab of a tokenizer.json by ascending ID.

        special_keys: ID and key (a JSON string with quotes) of each special token, ascending.
        Yield pieces of at most 1 MiB, or of one longer entry, so that the text is never in memory as a whole.
        """
    def merges_json(self, as_pairs: bool) -> Iterator[bytes]:
        """Write model.merges of a tokenizer.json in pieces, as vocab_json does.

        as_pairs: write each merge as ["left","right"] instead of "left right".
        """
    def encode(self, text: str, special: bool | AddedTokens = True) -> list[int]: ...
    def encode_batch(
        self, texts: Sequence[str], threads: int, special: bool | AddedTokens = True
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return tokens uint32[n] and offsets uint64[len(texts) + 1]."""
    def encode_documents(
        self,
        buffer: Buffer,
        separator: bytes,
        threads: int,
        special: bool | AddedTokens = True,
        check: bool = False,
        out: NDArray[np.uint32] | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Encode the documents between separators, one row each: n separators make n + 1 rows.

        buffer: valid UTF-8.
        separator: valid UTF-8 of at least one byte. Separators are found leftmost first.
        check: validate the buffer while encoding it.
        out: memory for at least out_tokens(len(buffer)) tokens. The returned tokens are a view of it, and the rest may
            be overwritten. If a normalizer makes more tokens than fit, the returned tokens are a new array. Reusing
            `out` avoids page faults, and pages that are not needed are never touched.

        Raise ValueError for an invalid separator, for an `out` that is too small, and with `check` for invalid UTF-8.
        """
    def encode_ragged(
        self,
        buffer: Buffer,
        offsets: NDArray[np.uint64],
        threads: int,
        special: bool | AddedTokens = True,
        out: NDArray[np.uint32] | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Encode the texts buffer[offsets[i] : offsets[i + 1]] of valid UTF-8, one row each.

        out: as for encode_documents.

        Raise ValueError for offsets that descend or exceed the buffer, for a text that starts or ends inside a
        character, and for an `out` that is too small.
        """
    def encode_part(
        self, buffer: Buffer, special: bool | AddedTokens, start: int, normalize: bool = True
    ) -> NDArray[np.uint32]:
        """Return the IDs of a part of a text that was cut at a safe offset. The parts have the same IDs as the whole.

        buffer: valid UTF-8.
        start: INSIDE for all parts except the first (`bpe.normalizers`).
        normalize: apply the normalizers; otherwise the text is already normalized.
        """
    @staticmethod
    def out_tokens(buffer_bytes: int) -> int:
        """Return the minimum size of `out` in tokens: one token per byte, and spare tokens for writing ahead."""
    def encode_pretokens(self, buffer: Buffer, ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the IDs of given pretokens, for texts that the core cannot cut.

        buffer: the pretokens, concatenated.
        ends: the end of each pretoken.
        """
    def encode_pretoken_rows(
        self, buffer: Buffer, ends: NDArray[np.uint64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Encode given pretokens as encode_pretokens does, one row each."""
    def decode(self, ids: Sequence[int] | NDArray[Any]) -> bytes:
        """Return the bytes, including special tokens. Raise ValueError with the first unknown ID and its index."""
    def decode_text(self, ids: Sequence[int] | NDArray[Any], errors: str) -> str:
        """Return the text, like bytes.decode("utf-8", errors) of the decoded bytes."""
    def decode_rows(self, tokens: NDArray[np.uint32], offsets: NDArray[np.uint64], errors: str) -> list[str]:
        """Return the text of each row tokens[offsets[i] : offsets[i + 1]].

        Raise ValueError with the row, the index and the ID that is unknown.
        """
    def cache_bytes_used(self) -> int: ...

def id_list(ids: Buffer, start: int, stop: int) -> list[int]:
    """Return ids[start:stop] as a list. ids: contiguous uint32."""

def id_rows(tokens: NDArray[np.uint32], offsets: NDArray[np.uint64]) -> list[list[int]]:
    """Return the rows tokens[offsets[i] : offsets[i + 1]] as lists.

    Raise ValueError for offsets that descend or exceed the tokens.
    """

# -- pretoken_counts.cpp, trainer.cpp

class Session:
    """Encode one text that arrives in parts, in bounded memory. The IDs equal the IDs of the joined parts."""

    def __init__(self, core: TokenizerCore, special: bool | AddedTokens, min_bytes: int) -> None:
        """Start a text. special: the added tokens to recognize. min_bytes: bytes to hold before text is encoded."""
    def feed(self, buffer: Buffer) -> NDArray[np.uint32] | None:
        """Add text and return the IDs that have become certain, or None if there are none.

        buffer: valid UTF-8, cut between characters. It is copied.

        Raise ValueError for a pretoken with merges that span more text than is held.
        """
    def finish(self) -> NDArray[np.uint32] | None:
        """Return the remaining IDs, or None if there are none. The next call to feed() starts a new text."""

class PretokenCounter:
    """Distinct pretokens with exact 64-bit counts."""

    def __init__(self, automaton: Automaton | None) -> None: ...
    def set_normalizer(self, normalizer: Normalizer | None) -> None:
        """Normalize the text between special tokens from now on, before it is cut into pretokens."""
    def count(
        self, buffer: Buffer, special_tokens: Sequence[bytes], threads: int, in_document: bool = False
    ) -> tuple[int, bool]:
        """Count the pretokens of a text. Return the number of documents that start in it and whether it ends in one.

        special_tokens: cut the text and are not counted.
        in_document: whether the text continues a document.

        Raise ValueError for text that is not valid UTF-8. The counts are then incomplete.
        """
    def count_rows(self, buffer: Buffer, offsets: NDArray[np.uint64], threads: int) -> int:
        """Count the pretokens of the rows [offsets[i], offsets[i + 1]). Return the number of non-empty rows.

        Each row is a separate text, in which no special tokens are searched for. Raise ValueError as count does.
        """
    def last_cut(self, buffer: Buffer, special_tokens: Sequence[bytes]) -> int:
        """Return the largest offset where a text that continues may be cut without changing the counts, or 0.

        Without an automaton, return the end of the last special token that later text cannot change.
        """
    def add(self, pretoken_bytes: Buffer, ends: NDArray[np.uint64], counts: NDArray[np.uint64]) -> None:
        """Add counts of given pretokens, e.g. from another pattern or another machine.

        pretoken_bytes: the pretokens, concatenated.
        ends: the end of each pretoken.
        """
    def drain(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the bytes of the pretokens, concatenated, their ends, and their counts. Reset the counter.

        Pretokens are sorted by bytes, so the result does not depend on the number of threads.
        """
    def counted_bytes(self) -> int:
        """Return the memory that grows with the counts: everything except the tables of the threads.

        drain() also needs 16 bytes per pretoken plus its bytes.
        """

def trim_memory() -> None:
    """Return freed memory that malloc still holds to the system, if malloc supports it."""

def return_large_memory() -> None:
    """Make malloc return freed large blocks to the system immediately, if it supports this."""

def count_letters(
    pretoken_bytes: NDArray[np.uint8], ends: NDArray[np.uint64], counts: NDArray[np.uint64], of_text: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the number of occurrences of each letter (uint64) and its positions (uint8, bit p for position p).

    Occurrences are weighted by the counts of the pretokens. Position 1 is the end of a pretoken, 2 not its start, 3
    both and 0 neither.

    of_text: letters are the 0x110000 characters of pretokens that are valid UTF-8, otherwise the 256 bytes.
    """

def letter_ids(
    pretoken_bytes: NDArray[np.uint8],
    ends: NDArray[np.uint64],
    counts: NDArray[np.uint64],
    ids: Sequence[NDArray[np.int32]],
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return the IDs of the letters, concatenated (uint32), and the end of each pretoken in them (uint64[pretokens]).

    ids: per position of count_letters, int32 by letter. A negative ID drops the letter.
    """

def train_merges(
    pretokens: Buffer | NDArray[np.uint32],
    ends: NDArray[np.uint64],
    counts: NDArray[np.uint64],
    new_entries: int,
    tie_break: str,
    min_frequency: int,
    threads: int,
    progress: Callable[[int], None] | None,
    entries: Sequence[bytes] | None = None,
    reserved: Sequence[bytes] = (),
    wide: bool = False,
    first_pairs: int = 1000,
    max_token_bytes: int = 0,
    max_tracked_pairs: int = 0,
    memory_limit: int = 0,
    prefix: str = "",
    suffix: str = "",
    max_token_letters: int = 0,
    letters_are_characters: bool = False,
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return merges uint32[m, 2] and uint64[m], the count of each pair when it was merged.

    pretokens: bytes, or uint32 IDs of `entries`, concatenated.
    ends, counts: the end and the count of each pretoken.
    new_entries: maximum number of merges.
    tie_break: "lexicographic" or "huggingface".
    min_frequency: pairs that occur less often are not merged.
    progress: called about ten times per second with the number of entries so far. An exception or Ctrl-C
        ends the training.
    entries: initial entries by ID, all distinct. If pretokens are bytes, each of the 256 bytes once (None: in numeric
        order). Merge k makes the entry with ID len(entries) + k.
    reserved: byte strings that must not become an entry. No merge makes an existing entry (proof in trainer.hpp).
    first_pairs: pairs listed at first. Tests set a low value, so that lists are rebuilt often.
    wide: use 32-bit IDs and 64-bit offsets for any size, for tests.
    max_token_bytes: longer entries are not made (0: no limit).
    max_token_letters: the same limit without prefix and suffix, in bytes, or in characters if letters_are_characters.
    max_tracked_pairs: maximum number of pairs with counts in memory (0: derived from new_entries). The counts of other
        pairs are computed again when needed.
    memory_limit: raise MemoryError before the process would use more bytes (0: no limit).
    prefix, suffix: of entries within a pretoken and at its end. A merge removes the prefix from its right part. Pairs
        that would make such an entry from ordinary letters are excluded.
    """
