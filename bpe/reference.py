"""Training and encoding in plain Python: the specification of the C++ core and the oracle of its tests.

It is complete but slow: training counts all pairs again after each merge. The next merge is the pair with the highest
count. The tie break selects the pair with the greater byte strings (`lexicographic`) or with the lower IDs
(`huggingface`, IDs in the order of `printable_bytes`). Encoding a pretoken applies the allowed merge of lowest rank,
leftmost first, until none is left.

Source of the algorithm: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
Units" (2016), over bytes as in GPT-2 (Radford et al., 2019).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.patterns import PATTERNS

if TYPE_CHECKING:
    from bpe.vocabulary import TextRules

Pair = tuple[int, int]


def printable_bytes() -> list[int]:
    """Return the 256 byte values in GPT-2's printable order: the 188 printable Latin-1 bytes, then the other 68.

    Hugging Face numbers its byte alphabet in this order, so the huggingface tie rule depends on it.
    """
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    return printable + sorted(set(range(256)).difference(printable))


# -- pretokens ---------------------------------------------------------------------------------------------------


def cut_at_special_tokens(text: str, special_tokens: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Cut `text` at special tokens: leftmost first, and the longest at one offset. Skip empty parts.

    "a<s>b", ["<s>"] -> ("a", False), ("<s>", True), ("b", False)
    """
    longest_first = sorted(special_tokens, key=len, reverse=True)
    if not longest_first:
        if text:
            yield text, False
        return
    start = 0
    for match in regex.finditer("|".join(map(regex.escape, longest_first)), text):
        if match.start() > start:
            yield text[start : match.start()], False
        yield match.group(), True
        start = match.end()
    if start < len(text):
        yield text[start:], False


def pretokenize(text: str, pattern: str = "gpt2") -> list[bytes]:
    """Return the pretokens of a text without special tokens. `pattern` is a name in `PATTERNS` or an expression.

    "Hello world" -> [b"Hello", b" world"]. Raise ValueError for text between the matches.
    """
    expression = PATTERNS.get(pattern, pattern)
    pretokens = [match.group() for match in regex.finditer(expression, text) if match.group()]
    if "".join(pretokens) != text:
        raise ValueError(f"pattern: does not match all of {text!r} (got {pattern!r})")
    return [pretoken.encode() for pretoken in pretokens]


def count_pretokens(
    texts: Iterable[str], special_tokens: Sequence[str] = (), pattern: str = "gpt2"
) -> Counter[bytes]:
    """Count each pretoken. Special tokens cut the text and are not counted."""
    counts: Counter[bytes] = Counter()
    for text in texts:
        for part, is_special in cut_at_special_tokens(text, special_tokens):
            if not is_special:
                counts.update(pretokenize(part, pattern))
    return counts


# -- training ----------------------------------------------------------------------------------------------------


def train(
    pretoken_counts: Mapping[bytes, int],
    new_entries: int,
    tie_break: str = "lexicographic",
    min_frequency: int = 1,
    max_token_bytes: int | None = MAX_TOKEN_BYTES,
    first_entries: Sequence[bytes] | None = None,
    first_merges: Sequence[tuple[bytes, bytes]] = (),
    ignore_merges: bool = False,
    reserved: Collection[bytes] = (),
    text_rules: TextRules | None = None,
    max_token_letters: int | None = None,
) -> list[tuple[bytes, bytes]]:
    """Return the merges that add `new_entries` entries, in order, or fewer if no pair is left.

    Each merge adds a new entry, since merges never produce the same bytes twice (proof in native/train/trainer.hpp). A
    pair is merged only if it occurs at least max(1, min_frequency) times.

    {b"aab": 2, b"ab": 1}, 2 -> [(b"a", b"b"), (b"a", b"ab")]

    max_token_bytes: length limit of new entries (None, 0: no limit).
    first_entries: initial entries by ID (None: the 256 bytes). A pair with the bytes of one is never merged.
    first_merges: initial merges, lowest rank first. They encode the pretokens before training.
    reserved: bytes that no new entry may have.
    text_rules: entries are text. A merge drops the prefix of its right part. It must not produce a prefix or suffix
        from characters of the text (`looks_like_affix`). Pretokens are cut at unknown characters and bytes.
    max_token_letters: limit in characters, without prefix and suffix.
    """
    entries = list(first_entries or (bytes([byte]) for byte in printable_bytes()))
    first_count = len(entries)
    taken = {*entries, *reserved}
    join = bytes.__add__ if text_rules is None else text_rules.join
    id_of = {entry: id_ for id_, entry in enumerate(entries)}
    ranks = {pair: rank for rank, pair in enumerate(first_merges)}
    pretokens: list[list[int]] = []
    weights: list[int] = []
    made_of_unknown = set() if text_rules is None else text_rules.made_of_unknown(first_merges)
    unknown = {id_of[entry] for entry in made_of_unknown if entry in id_of}
    for pretoken, weight in pretoken_counts.items():
        if text_rules is None:
            parts = [encode_pretoken(pretoken, id_of, ranks, ignore_merges)]
        else:
            ids = encode_text_pretoken(pretoken.decode(), id_of, ranks, text_rules, ignore_merges)
            parts = cut_out(ids, unknown)
        pretokens += parts
        weights += [weight] * len(parts)

    def is_barred(pair: Pair) -> bool:
        left, right = entries[pair[0]], entries[pair[1]]
        merged = join(left, right)
        return (
            0 < (max_token_bytes or 0) < len(merged)
            or 0 < (max_token_letters or 0) < letter_count(left, text_rules) + letter_count(right, text_rules)
            or merged in taken
            or (text_rules is not None and looks_like_affix(left, right, text_rules))
        )

    def order(pair: Pair) -> tuple[bytes, bytes] | tuple[int, int]:
        left, right = pair
        return (-left, -right) if tie_break == "huggingface" else (entries[left], entries[right])

    merges: list[tuple[bytes, bytes]] = []
    barred: set[Pair] = set()  # once barred, a pair stays barred
    while len(entries) < first_count + new_entries:
        counts: Counter[Pair] = Counter()
        for ids, weight in zip(pretokens, weights, strict=True):
            for pair in pairwise(ids):
                counts[pair] += weight
        while (
            best := max(counts.keys() - barred, key=lambda p: (counts[p], order(p)), default=None)
        ) is not None:
            if not is_barred(best):
                break
            barred.add(best)
        if best is None or counts[best] < max(1, min_frequency):
            break
        left, right = best
        merges.append((entries[left], entries[right]))
        pretokens = [replace_pair(ids, best, len(entries)) for ids in pretokens]
        entries.append(join(entries[left], entries[right]))
        taken.add(entries[-1])
    return merges


def replace_pair(ids: Sequence[int], pair: Pair, new_id: int) -> list[int]:
    """Replace each occurrence of `pair`, from left to right: [1, 1, 1], (1, 1), 9 -> [9, 1]."""
    out: list[int] = []
    position = 0
    while position < len(ids):
        if tuple(ids[position : position + 2]) == pair:
            out.append(new_id)
            position += 2
        else:
            out.append(ids[position])
            position += 1
    return out


def cut_out(ids: Sequence[int], unknown: Collection[int]) -> list[list[int]]:
    """Split a sequence at unknown IDs: [1, 2, 9, 3], {9} -> [[1, 2], [3]]."""
    parts: list[list[int]] = [[]]
    for id_ in ids:
        if id_ in unknown:
            parts.append([])
        else:
            parts[-1].append(id_)
    return parts


def looks_like_affix(left: bytes, right: bytes, rules: TextRules) -> bool:
    """Return whether characters of the text give the merged entry a false prefix or suffix.

    Prefix "##": True for "#" and "###", which give the text "##". False for "##a" and "##b", which give "##ab".
    """
    prefix, suffix = rules.affixes
    added, merged = right[len(prefix) :], rules.join(left, right)
    return (
        prefix != b"" and merged.startswith(prefix) and not (left.startswith(prefix) and left != prefix)
    ) or (suffix != b"" and merged.endswith(suffix) and not (added.endswith(suffix) and added != suffix))


def letter_count(entry: bytes, rules: TextRules | None) -> int:
    """Return the length of an entry: in bytes, or for text in characters without prefix and suffix."""
    if rules is None:
        return len(entry)
    prefix, suffix = rules.affixes
    if entry != prefix:
        entry = entry.removeprefix(prefix)
    if entry != suffix:
        entry = entry.removesuffix(suffix)
    return len(entry.decode())


# -- encoding ----------------------------------------------------------------------------------------------------


def encode_pretoken(
    pretoken: bytes,
    id_of: Mapping[bytes, int],
    ranks: Mapping[tuple[bytes, bytes], int] | None,
    ignore_merges: bool = False,
) -> list[int]:
    """Return the IDs of one pretoken.

    id_of: bytes of an entry -> its ID.
    ranks: allowed pairs, lowest first. None for a rank file: an adjacent pair may merge if its joined bytes are an
        entry, and the ID of that entry is the rank.
    ignore_merges: emit a pretoken that is an entry at once. Rank files imply this.
    """
    if ignore_merges and pretoken in id_of:
        return [id_of[pretoken]]
    return merge_symbols([bytes([byte]) for byte in pretoken], id_of, ranks)


def encode_text_pretoken(
    pretoken: str,
    id_of: Mapping[bytes, int],
    ranks: Mapping[tuple[bytes, bytes], int],
    rules: TextRules,
    ignore_merges: bool = False,
) -> list[int]:
    """Return the IDs of one pretoken by `TextRules`, for text entries or a byte-level vocabulary that lacks some bytes.

    id_of: includes the unknown token. Bytes without an entry are dropped before merging: without "x", "axb" -> "ab".
    """
    data = pretoken.encode()
    if ignore_merges and data in id_of:
        return [id_of[data]]
    symbols: list[bytes] = []
    pending: list[bytes] = []  # an unknown token that may be fused with the next
    unknown = [rules.unk_entry] if rules.unk_entry is not None else []
    units = [bytes([byte]) for byte in data] if rules.byte_level else [each.encode() for each in pretoken]
    for place, unit in enumerate(units):
        prefix, suffix = rules.affixes
        symbol = (prefix if place > 0 else b"") + unit + (suffix if place + 1 == len(units) else b"")
        of_bytes = [b"<0x%02X>" % byte for byte in symbol]
        if symbol in id_of:
            symbols += [*pending, symbol]
            pending = []
        elif rules.byte_fallback and all(each in id_of for each in of_bytes):
            symbols += of_bytes  # before the pending token, as in Hugging Face tokenizers
        else:
            symbols += pending if not rules.fuse_unk else []
            pending = unknown
    return merge_symbols([*symbols, *pending], id_of, ranks, len(rules.continuing_subword_prefix.encode()))


def merge_symbols(
    parts: list[bytes],
    id_of: Mapping[bytes, int],
    ranks: Mapping[tuple[bytes, bytes], int] | None,
    prefix_bytes: int = 0,
) -> list[int]:
    """Return the IDs after merging entries. A merge drops `prefix_bytes` bytes from its right part."""

    def rank(place: int) -> float:
        left, right = parts[place], parts[place + 1]
        if ranks is None:
            return id_of.get(left + right, float("inf"))
        return ranks.get((left, right), float("inf"))

    while len(parts) > 1:
        place = min(range(len(parts) - 1), key=rank)  # min returns the leftmost of equal ranks
        if rank(place) == float("inf"):
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1][prefix_bytes:]]
    return [id_of[part] for part in parts]


def encode(
    text: str,
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]] | None,
    special_tokens: Mapping[str, int] | None = None,
    pattern: str = "gpt2",
    ignore_merges: bool | None = None,
    text_rules: TextRules | None = None,
) -> list[int]:
    """Return the IDs of a text.

    merges: None for a rank file, which emits whole pretokens at once.
    vocab: may include the special tokens. They take no part in merging, except entries that ordinary text needs: a part
        or product of a merge, or a single byte without another entry.
    """
    special_tokens = special_tokens or {}
    special_ids = set(special_tokens.values())
    id_of = {entry: id_ for id_, entry in vocab.items() if id_ not in special_ids}
    in_merges = {part for left, right in merges or () for part in (left, right, left + right)}
    for token, id_ in special_tokens.items():
        entry = token.encode()
        if entry not in id_of and (len(entry) == 1 or entry in in_merges):
            id_of[entry] = id_
    ranks = None if merges is None else {pair: rank for rank, pair in enumerate(merges)}
    whole = merges is None if ignore_merges is None else ignore_merges
    ids: list[int] = []
    for part, is_special in cut_at_special_tokens(text, special_tokens):
        if is_special:
            ids.append(special_tokens[part])
        else:
            for pretoken in pretokenize(part, pattern):
                if text_rules is None or ranks is None:
                    ids.extend(encode_pretoken(pretoken, id_of, ranks, whole))
                else:
                    ids.extend(encode_text_pretoken(pretoken.decode(), id_of, ranks, text_rules, whole))
    return ids
