"""Write the data of a tokenizer for a page as one compressed block: entries, merges, pre-tokenizer tables, and rules.

The block is compressed with gzip. It has the size of the header (uint32, little-endian), the header in JSON, and the
arrays in the order of the header, which lists [name, type, number of items] for each. Entries are stored by ascending
ID. A merge is stored as the entry that it makes and the length of the left part. Both grow slowly from one to the next,
so most differences fit in one byte.
"""

from __future__ import annotations

import gzip
import json
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadTokenizer, UnsupportedPattern, UnsupportedTokenizer, shown
from bpe.normalizers import ByteLevel, Component, Form, Lowercase, Normalizer, Prefix, Prepend, Replace
from bpe.pretokenization.compiled import TablePhases, table_phases_of
from bpe.pretokenization.tables import GROUPS, Tables
from bpe.tokenizer import Tokenizer
from tokenmill.compare.normal_forms import changed_characters

MOST_BYTES: Final = 16 << 20  # of a block in a page; Gemma 3 needs a quarter of it

Arrays = list[tuple[str, NDArray[Any]]]


def page_model(tokenizer: Tokenizer) -> bytes:
    """Return the block. Raise UnsupportedTokenizer if a page cannot reproduce the tokenizer exactly."""
    arrays: Arrays = []
    header = {
        "ignoreMerges": tokenizer.ignore_merges,
        "isRankFile": tokenizer.is_rank_file,
        "text": _text_rules(tokenizer),
        "tokens": _added_tokens(tokenizer),
        "normalizer": _steps(_components(tokenizer.parts.normalizer), arrays),
        **_pretokenizer(tokenizer, arrays),
    }
    _add_entries(tokenizer, arrays)
    listed = [[name, array.dtype.name, len(array)] for name, array in arrays]
    head = json.dumps(header | {"arrays": listed}, separators=(",", ":")).encode()
    little = [array.astype(array.dtype.newbyteorder("<")).tobytes() for _, array in arrays]
    block = gzip.compress(b"".join([len(head).to_bytes(4, "little"), head, *little]), 9, mtime=0)
    if len(block) > MOST_BYTES:
        raise UnsupportedTokenizer(
            f"too large for a page (got {len(block):,} bytes compressed, the limit is {MOST_BYTES:,})"
        )
    return block


# -- rules -------------------------------------------------------------------------------------------------------


def _not_in_page(what: str) -> str:
    return f"{what}: not supported in a page"


def _text_rules(tokenizer: Tokenizer) -> dict[str, Any] | None:
    rules = tokenizer.text_rules
    if rules is None:
        return None
    if rules.byte_level or rules.end_of_word_suffix or rules.continuing_subword_prefix:
        raise UnsupportedTokenizer(
            _not_in_page("end_of_word_suffix, continuing_subword_prefix, or a vocabulary that lacks bytes")
        )
    unk_id = None
    if rules.unk_token is not None:
        entry = rules.unk_token.encode()
        unk_id = next(id_ for id_, each in tokenizer.vocab.items() if each == entry)
    return {
        "byteFallback": rules.byte_fallback,
        "fuseUnk": rules.fuse_unk,
        "unkId": unk_id,
        "hasSpaces": tokenizer.core_encoder.has_spaces,
    }


def _added_tokens(tokenizer: Tokenizer) -> list[list[Any]]:
    """Return [text, ID, normalized text or None, lstrip, rstrip] for each token."""
    rows: list[list[Any]] = []
    normalizer = tokenizer.parts.normalizer
    for token in tokenizer.added_tokens:
        if token.single_word:
            raise UnsupportedTokenizer(_not_in_page(f"added token {shown(token.text)} with single_word"))
        normalized = None
        if token.normalized:
            normalized = token.text if normalizer is None else normalizer.of_tokens.apply_to_text(token.text)
        rows.append([token.text, token.id, normalized, token.lstrip, token.rstrip])
    return rows


def _components(normalizer: Normalizer | None) -> tuple[Component, ...]:
    return () if normalizer is None else normalizer.components


def _steps(components: tuple[Component, ...], arrays: Arrays) -> list[list[Any]]:
    """Return the steps of the normalizer for the page. Checksums of its characters are added to the arrays."""
    steps: list[list[Any]] = []
    for component in components:
        match component:
            case Form(name):
                _add_checksums(name, component, arrays)
                steps.append(["form", name])
            case Lowercase():
                _add_checksums("lowercase", component, arrays)
                steps.append(["lowercase"])
            case Prepend(text):
                steps.append(["prepend", text])
            case Prefix(text, input_only):
                steps.append(["prefix", text, input_only])
            case Replace(pattern, content, False) if pattern:
                steps.append(["replace", pattern, content])
            case ByteLevel():
                steps.append(["bytes"])
            case _:
                raise UnsupportedTokenizer(_not_in_page(f"normalizer {type(component).__name__}"))
    return steps


def _add_checksums(name: str, component: Component, arrays: Arrays) -> None:
    if not any(each == name for each, _ in arrays):
        points, sums = changed_characters(component, isinstance(component, Form))
        arrays += [(name, varints(differences(points))), (name + " sums", sums)]


# -- the pre-tokenizer --------------------------------------------------------------------------------------------


def _pretokenizer(tokenizer: Tokenizer, arrays: Arrays) -> dict[str, Any]:
    try:
        known: TablePhases = table_phases_of(tokenizer.pretokenizer.components)
    except UnsupportedPattern as error:
        raise UnsupportedTokenizer(_not_in_page(f"pattern that needs the regex package ({error})")) from None
    if any(phase.asks_for_input for phase in known.phases[1:]):
        raise UnsupportedTokenizer(_not_in_page("pre_tokenizer that inserts text before the first piece"))
    phases = []
    for number, (phase, tables) in enumerate(zip(known.phases, known.tables, strict=True)):
        phases.append({"changes": _steps(phase.changes, arrays), **_tables(tables, f"{number}.", arrays)})
    return {
        "phases": phases,
        "fromAlphabet": known.from_alphabet,
        "gapsAreErrors": known.gaps_are_errors and len(phases) == 1,
    }


def _tables(tables: Tables, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Return the fields of `Tables` for the page. due[state]: actions after the character that led to the state."""
    arrays += [
        (prefix + "then", tables.then.reshape(-1)),
        (prefix + "pageOf", tables.page_of),
        (prefix + "pages", tables.pages.reshape(-1)),
    ]
    if tables.back is not None:
        back = tables.back
        arrays += [(prefix + "rows", back.rows.reshape(-1)), (prefix + "rowOf", back.row_of.reshape(-1))]
        return {"initial": tables.initial, "end": back.end, "rights": back.rows.shape[1]}
    due = []
    for state in range(len(tables.at_end)):
        group = sum(state >= end for end in tables.group_ends)
        due.append(GROUPS[group] if group < len(GROUPS) else tables.actions[state - tables.group_ends[-1]])
    return {
        "initial": tables.initial,
        "due": [[list(each.certain), list(each.registers)] for each in due],
        "atEnd": tables.at_end,
    }


# -- entries and merges -------------------------------------------------------------------------------------------


def _add_entries(tokenizer: Tokenizer, arrays: Arrays) -> None:
    entries = tokenizer.ordinary_entries
    index_of = {entry: index for index, entry in enumerate(entries.values())}
    arrays += [
        ("ids", varints(differences(np.fromiter(entries, np.int64, len(entries))))),
        ("lengths", varints(np.fromiter(map(len, entries.values()), np.int64, len(entries)))),
        ("entries", np.frombuffer(b"".join(entries.values()), np.uint8)),
    ]
    if tokenizer.is_rank_file:
        return
    merges = tokenizer.merges
    made = np.fromiter((index_of[left + right] for left, right in merges), np.int64, len(merges))
    steps = differences(made)
    arrays += [
        ("made", varints(np.where(steps < 0, -2 * steps - 1, 2 * steps))),
        ("leftLengths", varints(np.fromiter((len(left) for left, _ in merges), np.int64, len(merges)))),
    ]


def differences(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the difference of each number from the previous one, starting from 0: [5, 3] -> [5, -2]."""
    made = values.copy()
    made[1:] -= values[:-1]
    return made


def varints(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Encode nonnegative numbers as bytes of seven bits, lowest first. Bit 7 is set in all but the last byte of each.

    [5, 300] -> [5, 0xAC, 0x02]
    """
    if len(values) and values.min() < 0:
        raise BadTokenizer("values: must be ascending")
    columns = []
    left = values.astype(np.uint64)
    more = np.ones(len(values), np.bool_)
    while more.any():
        low = (left & np.uint64(0x7F)).astype(np.uint8)
        left >>= np.uint64(7)
        columns.append((low | np.where(left > 0, 0x80, 0).astype(np.uint8), more))
        more = left > 0
    if not columns:
        return np.empty(0, np.uint8)
    used = np.stack([mask for _, mask in columns], axis=1)
    return np.stack([column for column, _ in columns], axis=1)[used].astype(np.uint8)
