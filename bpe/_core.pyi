"""The C++ core as Python sees it. Every call releases the GIL around its loop; buffers are bytes-like and contiguous.

Text given to the core must be valid UTF-8 where a call says so; `inputs._core.validate_utf8` finds out. Offsets
are 64-bit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

__version__: str

# -- automaton.cpp, text_window.cpp, safe_cut.cpp, utf8.cpp

Start = tuple[int, int, bool]
"""Where a piece starts: characters back (0: in a register), the register, whether the piece is left out."""

class Automaton:
    """The tables by which texts are cut into pieces; immutable. See bpe/pretokenization/tables.py."""

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
        """The fields of Tables; ValueError for tables that lead out of one another."""
    @property
    def drops(self) -> bool:
        """Whether any piece is left out."""
    @property
    def has_later_phases(self) -> bool: ...
    def followed_by(
        self,
        phases: Sequence[tuple[Normalizer | None, Automaton]],
        from_alphabet: bool,
        asks_for_input: bool,
        stays: bytes,
    ) -> Automaton:
        """The same with more done to each piece: of each phase a change, then what cuts it.

        from_alphabet: in the end pieces are in the byte alphabet. asks_for_input: whether it makes a difference that a
        piece begins an input. stays: pieces of these bytes are left as they are.
        """

def pieces(automaton: Automaton, buffer: Buffer) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(where the pieces of one text start, whether each is left out), in bytes. ValueError if it is not UTF-8."""

def pretokens(automaton: Automaton, buffer: Buffer) -> tuple[bytes, NDArray[np.uint64]]:
    """(the pretokens of one text end to end, their ends), for an automaton with later phases. ValueError as pieces."""

def last_safe_cut(automaton: Automaton, buffer: Buffer) -> int:
    """A 0 <= p < len(buffer), near the end, at which the text may be cut whatever follows it (0 if none is found).

    For every continuation c, the pieces of buffer + c are those of buffer[:p] and then those of buffer[p:] + c.
    p stands between two characters of buffer that make it certain; a text that is one long word or space has none.
    """

def simd_variants() -> list[str]:
    """The variants this machine can run, best first, e.g. ["avx512", "avx2", "portable"]."""

def set_simd_variant(name: str) -> None:
    """Use this variant from now on (BPE_SIMD in the environment does it at import). ValueError if it can't run."""

# -- normalizer.cpp

class Normalizer:
    """The normalizers of a tokenizer.json, one after the other; immutable, so threads may share one.

    Texts are valid UTF-8 without special tokens. See bpe/normalizers.py.
    """

    def __init__(self, steps: Sequence[NormalizerStep]) -> None:
        """steps: (kind, first, second) as bpe/native/normalize/normalizer.hpp lists them. ValueError names what is
        not known or not sound."""

    def apply(self, buffer: Buffer, start: int = 1) -> bytes:
        """The text after all steps; the same object if it is `bytes` and stays as it is.

        start: 0 for a part behind a border, 1 for what begins a text, 2 for what begins an input.
        """

    def last_border(self, buffer: Buffer, place: int) -> int:
        """The last p with 0 < p <= place before which and from which on the text may be normalized apart; 0: none.

        apply(text) == apply(text[:p]) + apply(text[p:], 0), and so for each text that goes on as this one to behind
        the character at p.
        """

    def place_before(self, buffer: Buffer, place: int) -> int:
        """Where the byte at `place` of the normalized text comes from: the start of what was normalized with it."""

# -- encoder.cpp, special_tokens.cpp, decoder.cpp, content_hash.cpp

class AddedTokens:
    """Added tokens, to be looked for in two passes."""

    def __init__(
        self,
        tokens: Sequence[tuple[bytes, int, bytes | None, bool, bool, bool]],
        decoded_only: Sequence[tuple[bytes, int]] = (),
    ) -> None:
        """Collect added tokens. ValueError for an empty text, or for a text given twice in one pass.

        tokens: text, ID, normalized text (None: found before the text is normalized), lstrip, rstrip, single_word.
        decoded_only: text and ID of entries that are never found in text.
        """
    def find(self, buffer: Buffer, normalized: bool) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """(start and stop of each, uint64[2 * n]; ids, uint32[n]) of one pass, in order; see SpecialTokens::Match."""

# byte_level, byte_fallback, fuse_unk, has_spaces (texts have a space where entries have U+2581), unk_id, unk_token,
# prefix, suffix: see bpe/vocabulary.py's TextRules.
TextRules = tuple[bool, bool, bool, bool, int | None, bytes, bytes, bytes]
# The fields of `bpe.decoders.CoreRule`, then the texts that decoders see of special tokens, and their IDs.
TextDecoding = tuple[Sequence[tuple[bytes, bytes]], bytes, int, dict[bytes, int]]
# Kind, first text or automaton, second text: see native/normalize/normalizer.hpp.
NormalizerStep = tuple[str, bytes | Automaton, bytes]

class EntryFile:
    """The entries and merges of a tokenizer file, before it is known which entries are special tokens."""

    @staticmethod
    def read_model_json(document: bytes) -> EntryFile:
        """Read model.vocab and model.merges of a tokenizer.json, as the text of their JSON strings."""
    @staticmethod
    def read_rank_file(data: bytes) -> EntryFile:
        """Read a rank file: a line `base64 rank` per entry."""
    @staticmethod
    def from_arrays(
        ids: NDArray[np.uint32], ends: NDArray[np.uint64], bytes: bytes, merges: NDArray[np.uint32] | None
    ) -> EntryFile:
        """Collect entries and merges. ValueError for arrays that do not match.

        ids: uint32[n]. ends: uint64[n], where each entry ends in `bytes`.
        merges: uint32[2 * m], indexes of the left and the right entry of each. None for a rank file.
        """
    @property
    def fault(self) -> tuple[str, int, int, int, str] | None:
        """The first malformed item: (kind, index, start, stop, key). data[start:stop] is its value.

        kind: json and utf8 (only start is set), vocab, merges, key, id (with its key), merge or line (with its index).
        """
    def outline(self, document: bytes) -> bytes:
        """Return the tokenizer.json with {} for model.vocab and [] for model.merges. Lines keep their numbers."""
    def spell_bytes(self) -> tuple[int, str] | None:
        """Replace entries by the bytes that they spell in GPT-2's byte alphabet.

        Return the index and the part of a merge with another character, if there is one.
        """
    def __len__(self) -> int: ...
    @property
    def texts(self) -> dict[str, int]:
        """The keys of model.vocab that are no entries, with their IDs. ValueError for a duplicate key."""
    @property
    def max_id(self) -> int: ...
    def has_id(self, id: int) -> bool: ...
    def find(self, wanted: Sequence[bytes]) -> list[int | None]:
        """Return the IDs of entries in one pass over all entries."""
    def used_by_merges(self, wanted: Sequence[bytes], prefix_bytes: int = 0) -> list[bytes]:
        """Return the entries that a merge joins or produces. It removes prefix_bytes from its right part."""
    def encoder(
        self,
        special_tokens: dict[bytes, int] | AddedTokens,
        automaton: Automaton | None,
        ignore_merges: bool,
        text_rules: TextRules | None = None,
        normalizer: Sequence[NormalizerStep] = (),
        changes: Sequence[NormalizerStep] = (),
        decoding: TextDecoding | None = None,
    ) -> TokenizerCore:
        """Return a core with all merges and entries, without the special tokens that merging does not need.

        ValueError as for TokenizerCore, for two entries with one ID, and for a merge that is listed twice.
        """

class TokenizerCore:
    """An immutable tokenizer. Threads may share it; its caches are bounded."""

    def __init__(
        self,
        entries: dict[int, bytes],
        merges: Sequence[tuple[bytes, bytes]] | None,
        special_tokens: dict[bytes, int] | AddedTokens,
        automaton: Automaton | None,
        ignore_merges: bool,
        text_rules: TextRules | None = None,
        normalizer: Sequence[NormalizerStep] = (),
        changes: Sequence[NormalizerStep] = (),
        decoding: TextDecoding | None = None,
        cache_bytes: int = 256 << 20,
    ) -> None:
        """Build a core. ValueError names the entry or merge at fault.

        entries: without special tokens.
        merges: None for a rank file: the rank is the ID, and every adjacent pair that is an entry merges.
        special_tokens: added tokens, or a dict of those that are found by their bytes alone.
        automaton: cuts texts into pretokens after `changes`. None: only given pretokens can be encoded.
        ignore_merges: emit a pretoken that is an entry at once.
        normalizer: steps for the text between added tokens that are found before normalizing.
        changes: steps of the pre-tokenizer, for the text between all added tokens.
        decoding: how to decode entries that are text.
        cache_bytes: size of all caches together.
        """

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
        """An encoder of what a training made. merges: uint32[m, 2] as train_merges gives them for these bytes.

        Ids are those of train_merges less first_id: the 256 bytes as byte_order has them, then an entry for each merge.
        Linear in the bytes of all entries, in time and memory. memory_limit: MemoryError before the process would
        take more; 0: no limit. ValueError for a merge of what is not made yet, or of bytes that are an entry.
        """
    @property
    def automaton(self) -> Automaton | None:
        """How texts are cut."""
    @property
    def leaves_whole(self) -> bool:
        """Whether entries are text and the pre-tokenizer cuts no text. Then texts are cut where no merge reaches."""
    @property
    def has_spaces(self) -> bool:
        """Whether texts have spaces where entries have U+2581. Then given pretokens must have spaces, too."""
    def some_tokens(self, ids: Sequence[int]) -> AddedTokens:
        """Return the added tokens with these IDs, as `special` of the calls that encode."""
    def arrays(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64], bytes, NDArray[np.uint32] | None]:
        """Return the ordinary entries and the merges as `EntryFile.from_arrays` reads them."""
    def __len__(self) -> int:
        """The entries, without special tokens."""
    @property
    def is_rank_file(self) -> bool: ...
    @property
    def merge_count(self) -> int:
        """Listed merges; of a rank file, entries that merges make."""
    @property
    def max_id(self) -> int: ...
    def entries(self) -> dict[int, bytes]:
        """id -> bytes by ascending id, without special tokens."""
    def entry(self, id: int) -> bytes | None: ...
    def entry_lengths(self) -> NDArray[np.uint32]:
        """uint32[max_id + 1]: the bytes of each entry, 0 for an id that is none."""
    def find(self, entry: bytes) -> int | None:
        """The id of the entry with these bytes."""
    def merge_ids(self) -> NDArray[np.uint32]:
        """uint32[2 * m]: ids of left and right of each merge, lowest rank first; of a rank file every split of every
        entry, by the entry's rank, then by those of its halves."""
    def vocab_json(self, special_keys: Sequence[tuple[int, bytes]]) -> Iterator[bytes]:
        """tokenizer.json's model.vocab by ascending id; special_keys: id and key (JSON, with quotes), ascending.

        In pieces of 1 MiB, or of one entry where that is longer, so the text never lies in memory whole.
        """
    def merges_json(self, as_pairs: bool) -> Iterator[bytes]:
        """tokenizer.json's model.merges: ["left","right"] or "left right" each; in pieces, as vocab_json."""
    def encode(self, text: str, special: bool | AddedTokens = True) -> list[int]: ...
    def encode_batch(
        self, texts: Sequence[str], threads: int, special: bool | AddedTokens = True
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """tokens uint32[n], offsets uint64[len(texts) + 1]."""
    def encode_documents(
        self,
        buffer: Buffer,
        separator: bytes,
        threads: int,
        special: bool | AddedTokens = True,
        check: bool = False,
        out: NDArray[np.uint32] | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """A row a document of valid UTF-8, cut at each separator, leftmost first: n separators, n + 1 rows.

        check: ValueError if the buffer is not valid UTF-8, found while encoding; else it must be. ValueError for a
        separator that is not.
        out: the tokens go there and the returned ones are a view of it; what lies behind them is overwritten too. A
        normalizer may make them too many for it; then they lie elsewhere.
        ValueError if it has less room than out_tokens(len(buffer)). Used again and again it saves the page faults of
        fresh arrays; room that is never reached is never touched.
        """
    def encode_ragged(
        self,
        buffer: Buffer,
        offsets: NDArray[np.uint64],
        threads: int,
        special: bool | AddedTokens = True,
        out: NDArray[np.uint32] | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """A row for each text [offsets[i], offsets[i + 1]) of valid UTF-8; out as for encode_documents.

        ValueError for a text that begins or ends inside a character.
        """
    def encode_part(
        self, buffer: Buffer, special: bool | AddedTokens, start: int, normalize: bool = True
    ) -> NDArray[np.uint32]:
        """The IDs of a part of a text of valid UTF-8, cut where any continuation allows it.

        start: INSIDE for all parts but the first (`bpe.normalizers`).
        normalize: apply the normalizers; otherwise that was done before.
        """
    @staticmethod
    def out_tokens(buffer_bytes: int) -> int:
        """The room encode_documents asks of out: a token a byte, and some to write ahead."""
    def encode_pretokens(self, buffer: Buffer, ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Ids of given pretokens (of what the core cannot cut), end to end in buffer."""
    def encode_pretoken_rows(
        self, buffer: Buffer, ends: NDArray[np.uint64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """The same with a row for each."""
    def decode(self, ids: Sequence[int] | NDArray[Any]) -> bytes:
        """The bytes, special tokens included. ValueError names the first id that is not an entry and its place."""
    def decode_text(self, ids: Sequence[int] | NDArray[Any], errors: str) -> str:
        """The text, as bytes.decode("utf-8", errors) makes it of the bytes."""
    def decode_rows(self, tokens: NDArray[np.uint32], offsets: NDArray[np.uint64], errors: str) -> list[str]:
        """The text of each row tokens[offsets[i] : offsets[i + 1]]. ValueError names row, place and id at fault."""
    def cache_bytes_used(self) -> int: ...

def id_list(ids: Buffer, start: int, stop: int) -> list[int]:
    """ids[start:stop] of contiguous uint32, as a list."""

def id_rows(tokens: NDArray[np.uint32], offsets: NDArray[np.uint64]) -> list[list[int]]:
    """The rows tokens[offsets[i] : offsets[i + 1]] as lists. ValueError for offsets that do not ascend within them."""

# -- pretoken_counts.cpp, trainer.cpp

class Session:
    """Encode one text that arrives in parts, in bounded memory. The IDs are those of the joined parts."""

    def __init__(self, core: TokenizerCore, special: bool | AddedTokens, min_bytes: int) -> None:
        """special: the added tokens to recognize. min_bytes: bytes to hold before text is encoded."""
    def feed(self, buffer: Buffer) -> NDArray[np.uint32] | None:
        """Return the IDs that have become certain, if any. buffer: valid UTF-8, cut between characters; copied.

        Raise ValueError for a pretoken whose merges span more text than is held.
        """
    def finish(self) -> NDArray[np.uint32] | None:
        """Return the remaining IDs, if any. The next text starts afresh."""

class PretokenCounter:
    """Distinct pretokens with exact 64-bit counts."""

    def __init__(self, automaton: Automaton | None) -> None: ...
    def set_normalizer(self, normalizer: Normalizer | None) -> None:
        """Applied from now on to the text between special tokens; its pretokens are those of the normalized text."""
    def count(
        self, buffer: Buffer, special_tokens: Sequence[bytes], threads: int, in_document: bool = False
    ) -> tuple[int, bool]:
        """How many documents start in a text, and whether it ends within one; adds its pretokens.

        It is cut at the special tokens, which are not counted. in_document: it goes on with a document.
        ValueError for text that is not valid UTF-8; what was counted is then incomplete.
        """
    def count_rows(self, buffer: Buffer, offsets: NDArray[np.uint64], threads: int) -> int:
        """How many of the rows [offsets[i], offsets[i + 1]) are not empty; adds their pretokens, each row a text by
        itself, with nothing in it to be cut at. ValueError as for count."""
    def last_cut(self, buffer: Buffer, special_tokens: Sequence[bytes]) -> int:
        """The largest place where a text that goes on after buffer may be cut without changing counts; 0: none.

        Without an automaton, the end of the last special token that no longer one could be.
        """
    def add(self, pretoken_bytes: Buffer, ends: NDArray[np.uint64], counts: NDArray[np.uint64]) -> None:
        """Add given pretokens with their counts (another pattern, another machine's counts)."""
    def __len__(self) -> int: ...
    def items(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
        """Pretoken bytes end to end, their ends, their counts; sorted by bytes, so the same for any thread count."""
    def drain(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
        """The same, after which the counter is empty and its memory given back."""
    def memory_bytes(self) -> int:
        """What the counts take; items() and drain() take 16 bytes for each pretoken, and its bytes, beside."""
    def counted_bytes(self) -> int:
        """What of that grows with what is counted: all but the tables of the threads."""

def trim_memory() -> None:
    """Give what malloc keeps of freed memory back to the system, where malloc can do so."""

def return_large_memory() -> None:
    """From now on have malloc give back what is large as soon as it is freed, where malloc can do so."""

def count_letters(
    pretoken_bytes: NDArray[np.uint8], ends: NDArray[np.uint64], counts: NDArray[np.uint64], of_text: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """By letter, uint64: how often it occurs, each pretoken as often as its count; uint8: at which places, bit p for p.

    Place 1 is the end of a pretoken, 2 not its beginning, 3 both, 0 neither. Letters are the 256 bytes or, of_text, the
    0x110000 characters: the pretokens must be valid UTF-8 then.
    """

def letter_ids(
    pretoken_bytes: NDArray[np.uint8],
    ends: NDArray[np.uint64],
    counts: NDArray[np.uint64],
    ids: Sequence[NDArray[np.int32]],
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """(uint32: the letters' ids end to end, uint64[pretokens]: where those of each pretoken end).

    ids: by place as above, int32 by letter; a letter below 0 is left out.
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
    """merges uint32[m, 2], pair counts uint64[m] at the time of the merge.

    pretokens: bytes, or uint32 ids of entries, end to end. entries: those there are already, by id, all different; of
    pretokens that are bytes, each byte once; None: the bytes by value. Merge k makes the entry of id len(entries) + k.
    A merge never makes bytes that are an entry (proof in trainer.hpp) or reserved. prefix, suffix: of entries within a
    pretoken and at its end; a merge takes the prefix from its right part and makes no such letters of text.
    progress(entries so far) is called ten times a second; what it raises ends the training, and so does Ctrl-C.
    max_token_bytes: longer entries are not made; 0: no limit. max_token_letters: the same without prefix and suffix, in
    bytes or characters. memory_limit: MemoryError before the
    process would take more bytes; 0: no limit. For tests: wide has ids of 32 and places of 64 bits whatever the sizes;
    with a low first_pairs lists are written often, with few max_tracked_pairs pairs are forgotten and counted again; 0:
    as many as is best.
    """
