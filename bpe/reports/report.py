"""The report of a tokenizer: bytes per token by vocabulary size, scripts, unusual entries and unused entries.

Measured on counted pretokens; special tokens are not counted. The curve is exact: each point encodes the text with the
first merges.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from bpe.pretoken_counts.counts import PretokenCounts
from bpe.reports.measuring_encoder import (
    NEVER_IN_UTF8,
    Use,
    check_measurable,
    counts_for,
    first_size,
    is_measurable,
    is_one_pretoken,
    measure_use,
    prefix_encoder,
    texts_of_entries,
    unreachable_ids,
    whole_encoder,
)
from bpe.reports.scripts import is_script, script_of_bytes, scripts_in
from bpe.tokenizer import Tokenizer

LISTED: Final = 20  # entries shown of each kind
_MANY: Final = 400_000  # pretokens examined one by one, in one or two seconds
_LONG_RUN: Final = 8
_SHOWN: Final = 60  # characters of an entry
_ORDINARY: Final = "\t\n\r\u200c\u200d"  # the joiners belong to the writing of many languages


def make_report(
    tokenizer: Tokenizer, counts: PretokenCounts | None, measured_on: str, sizes: Iterable[int] = ()
) -> dict[str, Any]:
    """Return the report as JSON-able values. `report_text` and `report_page` format it.

    counts: the pretokens to measure on; None: describe the entries only.
    measured_on: description of the text.
    sizes: more points of the curve.
    Raises UnsupportedTokenizer for end_of_word_suffix and continuing_subword_prefix.
    """
    check_measurable(tokenizer.text_rules)
    report: dict[str, Any] = {
        "tokenizer": {
            "entries": tokenizer.vocab_size,
            "special_tokens": len(tokenizer.special_tokens),
            "pattern": tokenizer.pattern,
            "fingerprint": tokenizer.fingerprint(),
        },
        **describe_entries(tokenizer),
    }
    if counts is None or len(counts) == 0:
        return report
    counts = counts_for(tokenizer, counts)
    use = measure_use(whole_encoder(tokenizer), counts)
    facts = counts.facts
    report["text"] = {
        "measured_on": measured_on,
        "bytes": use.bytes_total,
        "documents": facts.documents,
        "pretokens": counts.total,
        "distinct_pretokens": len(counts),
        "tokens": use.tokens_total,
        "bytes_per_token": round(use.bytes_per_token, 4),
        "tokens_per_pretoken": round(use.tokens_total / counts.total, 4),
        "pretokens_in_one_token": round(int(counts.counts[use.tokens == 1].sum()) / counts.total, 4),
    }
    if tokenizer.normalizer:
        report["text"]["note"] = (
            f"bytes and pretokens are those after the tokenizer's normalizer, {tokenizer.normalizer}"
        )
    report["curve"] = bytes_per_token_curve(tokenizer, counts, sizes)
    report["scripts"] = script_table(tokenizer, counts, use)
    report["unused"] = unused_entries(tokenizer, use, set(unreachable_ids(tokenizer)))
    return report


def report_bytes(distinct: int) -> int:
    """Return an upper estimate of the memory of `make_report`, in bytes, for a number of distinct pretokens."""
    return 64 * distinct + 400 * min(distinct, 1 << 19) + (32 << 20)


def describe_entries(tokenizer: Tokenizer) -> dict[str, Any]:
    """Describe the longest entries, unusual entries, and (if `is_measurable`) entries that are never produced."""
    entries = texts_of_entries(tokenizer)
    longest = sorted(entries, key=lambda id_: (-len(entries[id_]), id_))[:LISTED]
    strange = {id_: reasons for id_, entry in entries.items() if (reasons := strangeness(entry))}
    strangest = _mixed(
        sorted(strange, key=lambda id_: (-len(strange[id_]), -len(entries[id_]), id_)), strange
    )
    unreachable = unreachable_ids(tokenizer) if is_measurable(tokenizer.text_rules) else []
    by_script = Counter(script_of_bytes(entry) for entry in entries.values())
    return {
        "entries_by_script": dict(by_script.most_common()),
        "longest": [_entry(entries, id_) for id_ in longest],
        "strange": {
            "count": len(strange),
            "by_reason": dict(
                Counter(_kind(reason) for reasons in strange.values() for reason in reasons).most_common()
            ),
            "listed": [_entry(entries, id_) | {"reasons": strange[id_]} for id_ in strangest],
        },
        "unreachable": {
            "count": len(unreachable),
            "listed": [_entry(entries, id_) for id_ in unreachable[:LISTED]],
        },
    }


def _entry(entries: dict[int, bytes], id_: int) -> dict[str, Any]:
    return {"id": id_, "text": entry_text(entries[id_]), "bytes": len(entries[id_])}


def entry_text(entry: bytes) -> str:
    """Return the entry as a printable line: b" caf\\xc3" -> "' caf\\\\xc3'"."""
    text = entry.decode("utf-8", "surrogateescape")
    if len(text) >= _LONG_RUN and len(set(text)) == 1:  # 50 dashes: '-' x 50
        return f"'{_escaped(text[0])}' x {len(text)}"
    shown = "".join(map(_escaped, text))
    return f"'{shown}'" if len(shown) <= _SHOWN else f"'{shown[:_SHOWN]}…"


def _escaped(character: str) -> str:
    """Return a printable character, or its escape. An invalid byte becomes \\xc3."""
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def _mixed(ids: Sequence[int], reasons: dict[int, list[str]]) -> list[int]:
    """Return the first ID of each reason, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    turns = {}
    for place, id_ in enumerate(ids):
        kind = _kind(reasons[id_][0])
        turns[id_] = seen[kind], place
        seen[kind] += 1
    return sorted(turns, key=lambda id_: turns[id_])[:LISTED]


def _kind(reason: str) -> str:
    """Return a reason without the details of one entry."""
    return reason.partition(":")[0]


def strangeness(entry: bytes) -> list[str]:
    """Return the reasons why an entry is unusual; [] for most entries.

    Single bytes and parts of one character are common in byte-level vocabularies.
    """
    if len(entry) == 1:
        return []
    reasons = []
    text = entry.decode("utf-8", "replace")
    if "\ufffd" in text:
        whole = entry.decode("utf-8", "ignore")
        if "\ufffd" in whole:
            reasons.append("holds U+FFFD, left by text that was decoded wrongly")
        elif whole:
            reasons.append("joins parts of characters to whole ones")
        elif sum(byte & 0xC0 == 0xC0 for byte in entry) > 1 or (
            entry[0] & 0xC0 == 0x80 and entry[-1] >= 0xC0
        ):
            reasons.append("joins parts of two characters")
        text = whole
    categories = {unicodedata.category(character) for character in text if character not in _ORDINARY}
    if "Cc" in categories:
        reasons.append("holds control characters")
    if categories & {"Cn", "Co"}:
        reasons.append("holds unassigned or private characters")
    if categories & {"Cf"}:
        reasons.append("holds invisible format characters")
    scripts = scripts_in(text)
    if len(scripts) > 1:
        reasons.append(f"mixes scripts: {' and '.join(scripts[:3])}")
    run = text.strip(" ") if text.strip(" ") else text
    if len(run) >= _LONG_RUN and len(set(run)) == 1:
        reasons.append(f"repeats one character: {len(run)} times")
    return reasons


def bytes_per_token_curve(
    tokenizer: Tokenizer, counts: PretokenCounts, sizes: Iterable[int] = ()
) -> list[dict[str, Any]]:
    """Return [{"vocab_size", "tokens", "bytes_per_token"}] for powers of two, the given sizes and the full size.

    Sizes ascend. They include special tokens, as in `train --vocab-size`.
    """
    specials = len(tokenizer.special_tokens)
    whole = tokenizer.vocab_size
    points = {2**power for power in range(9, 31)} | set(sizes)
    curve = []
    first = first_size(tokenizer) + specials
    for size in sorted(point for point in points if first <= point < whole):
        curve.append(
            _point(size, measure_use(prefix_encoder(tokenizer, size - specials), counts, each_entry=False))
        )
    return [*curve, _point(whole, measure_use(whole_encoder(tokenizer), counts, each_entry=False))]


def _point(vocab_size: int, use: Use) -> dict[str, Any]:
    return {
        "vocab_size": vocab_size,
        "tokens": use.tokens_total,
        "bytes_per_token": round(use.bytes_per_token, 4),
    }


def script_table(tokenizer: Tokenizer, counts: PretokenCounts, use: Use) -> dict[str, Any]:
    """Return {"covered": share of the text's bytes that was examined, "rows": [...]}, by descending bytes.

    Each row has the script, its bytes, share of the bytes, characters and tokens, bytes and characters per token, and
    entries. For a large text, only the most frequent pretokens are examined.
    """
    most = np.argsort(counts.counts, kind="stable")[::-1][:_MANY]
    ends = counts.ends.tolist()
    text = counts.pretoken_bytes.tobytes()
    sums: dict[str, list[int]] = {}
    for place, weight, tokens in zip(
        most.tolist(), counts.counts[most].tolist(), use.tokens[most].tolist(), strict=True
    ):
        pretoken = text[ends[place - 1] if place else 0 : ends[place]]
        row = sums.setdefault(script_of_bytes(pretoken), [0, 0, 0])
        row[0] += weight * len(pretoken)
        row[1] += weight * len(pretoken.decode("utf-8", "replace"))
        row[2] += weight * tokens
    covered = sum(row[0] for row in sums.values())
    entries = Counter(script_of_bytes(entry) for entry in texts_of_entries(tokenizer).values())
    rows = [
        {
            "script": script,
            "bytes": byte_count,
            "share": round(byte_count / covered, 6),
            "characters": characters,
            "tokens": tokens,
            "bytes_per_token": round(byte_count / tokens, 4) if tokens else 0.0,
            "characters_per_token": round(characters / tokens, 4) if tokens else 0.0,
            "entries": entries.get(script, 0),
        }
        for script, (byte_count, characters, tokens) in sorted(sums.items(), key=lambda item: -item[1][0])
    ]
    scripts = {row["script"] for row in rows}
    return {
        "covered": round(covered / use.bytes_total, 4),
        "rows": rows,
        "entries_of_absent_scripts": sum(
            number for script, number in entries.items() if is_script(script) and script not in scripts
        ),
    }


def unused_entries(tokenizer: Tokenizer, use: Use, unreachable: set[int]) -> dict[str, Any]:
    """Describe the entries that do not occur in the text, without those that no text produces."""
    entries, spelled = texts_of_entries(tokenizer), tokenizer.ordinary_entries
    unused = [id_ for id_ in entries if not use.by_id[id_] and id_ not in unreachable]
    impossible = [id_ for id_ in unused if len(entries[id_]) == 1 and entries[id_][0] in NEVER_IN_UTF8]
    left = [id_ for id_ in unused if len(entries[id_]) > 1]
    may_be_cut = (
        [] if tokenizer.core_encoder.leaves_whole else [id_ for id_ in left if _is_text(entries[id_])]
    )
    cut = [id_ for id_ in may_be_cut if not is_one_pretoken(tokenizer, spelled[id_])]
    return {
        "count": len(unused),
        "share": round(len(unused) / max(1, len(entries)), 4),
        "bytes_never_in_utf8": len(impossible),
        "other_single_bytes": len(unused) - len(left) - len(impossible),
        "cut_by_the_pattern": len(cut),
        "listed": [_entry(entries, id_) for id_ in _longest_first(entries, left)],
    }


def _is_text(entry: bytes) -> bool:
    return "\ufffd" not in entry.decode("utf-8", "replace")


def _longest_first(entries: dict[int, bytes], ids: Sequence[int]) -> list[int]:
    return sorted(ids, key=lambda id_: (-len(entries[id_]), id_))[:LISTED]
