"""tiktoken's rank file: a line `base64(bytes) rank` an entry. The rank is the id and the priority of merging.

It holds neither the pattern nor special tokens; merges follow from the ranks (every adjacent pair whose bytes
together are an entry), and a pretoken that is an entry is emitted at once.

A tokenizer with listed merges becomes a rank file with the same ids if the merges make the entries in the order
of their ids and each entry's bytes encode to that entry; then no other split of an entry ever stands side by
side (both parts would lie in a stretch that no merge has crossed, and there the listed merges come first).
"""

from __future__ import annotations

import binascii

import numpy as np

from bpe import _core
from bpe.description import Description, Parts, make_parts
from bpe.errors import BadTokenizer, shown
from bpe.formats import bulk
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens, every_split


def read(data: bytes, pattern: str | Pretokenizer, special_tokens: SpecialTokens) -> Parts:
    """The tokenizer of a rank file; errors name the line. Special tokens without ids follow the highest rank.

    Files of the regular form are read by the core (`bpe.formats.bulk`), all others and all errors line by line here.
    """
    return bulk.read_ranks(data, pattern, special_tokens) or read_lines(data, pattern, special_tokens)


def read_lines(data: bytes, pattern: str | Pretokenizer, special_tokens: SpecialTokens) -> Parts:
    """The same by Python objects alone."""
    ranks = read_ranks(data)
    entries = set(ranks.values())
    for text in special_tokens or ():
        if isinstance(text, str) and text.encode(errors="surrogatepass") in entries:
            raise BadTokenizer(f"special token {shown(text)} is an ordinary entry of the rank file")
    return make_parts(ranks, None, special_tokens, pattern)


def read_ranks(data: bytes) -> dict[int, bytes]:
    """rank -> bytes. b"IQ== 0\\n" -> {0: b"!"}. BadTokenizer names the line that is no such pair or repeats a rank."""
    ranks: dict[int, bytes] = {}
    for index, line in enumerate(data.split(b"\n")):
        if not line.strip():
            continue
        try:
            encoded, rank_text = line.split()
            entry = binascii.a2b_base64(encoded, strict_mode=True)
            if not rank_text.isdigit():
                raise ValueError
            rank = int(rank_text)
        except ValueError:
            text = line.decode("utf-8", "replace")
            raise BadTokenizer(f"line {index + 1} is {shown(text)}, must be `base64 rank`") from None
        if rank in ranks:
            raise BadTokenizer(f"line {index + 1} gives rank {rank} a second time")
        ranks[rank] = entry
    return ranks


def to_ranks(tokenizer: Description) -> bytes:
    """The rank file of a tokenizer's ordinary entries, by rank; BadTokenizer if its ids would change."""
    entries = tokenizer.ordinary_entries
    if not tokenizer.is_rank_file:
        check_ranks_do(entries, tokenizer.merges, tokenizer.whole_pretokens)
    lines = [
        binascii.b2a_base64(entry, newline=False) + b" %d\n" % id_ for id_, entry in sorted(entries.items())
    ]
    return b"".join(lines)


def check_ranks_do(
    entries: dict[int, bytes], merges: list[tuple[bytes, bytes]], whole_pretokens: bool
) -> None:
    """Nothing, or BadTokenizer if ranks equal to the ids do not merge as the list does."""
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
                f"merges[{index}] makes {shown(product)} with id {id_of[product]} after id {highest}: "
                "in a rank file ids must follow the order of the merges"
            )
        highest = id_of[product]
    unreached = first_unreached(entries, merges)
    if unreached is None or (whole_pretokens and set(merges) == set(every_split(entries))):
        return
    raise BadTokenizer(
        f"entry {unreached} ({shown(entries[unreached])}) is not what its bytes encode to, but would be in a rank file"
    )


def first_unreached(entries: dict[int, bytes], merges: list[tuple[bytes, bytes]]) -> int | None:
    """The lowest id whose bytes, as a pretoken, the merges do not turn into that one id; None if there is none."""
    encoder = _core.Encoder(entries, merges, {}, None, False)
    for id_, entry in sorted(entries.items()):
        ids = encoder.encode_pretokens(entry, np.array([len(entry)], np.uint64))
        if len(ids) != 1 or ids[0] != id_:
            return id_
    return None
