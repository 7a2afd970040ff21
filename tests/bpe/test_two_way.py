"""Pre-tokenizers with boundaries that depend on distant later text: the core cuts text as tokenizers does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from family_patterns import FAMILY_PATTERNS
from peer_pieces import tokenizers_pieces
from random_patterns import random_pattern, random_text

from bpe import _core
from bpe.errors import BadTokenizer
from bpe.pretokenization import read_oniguruma
from bpe.pretokenization.automaton import automaton_of
from bpe.pretokenization.compiled import core_automaton
from bpe.pretokenization.components import Behavior
from bpe.pretokenization.stage import Stage
from bpe.pretokenization.transitions import NotBoundedError, Transitions
from bpe.pretokenization.two_way import two_way_of
from bpe.pretokenization.two_way_tables import two_way_tables_of

THREES = r"\d{1,3}(?=(?:\d{3})*\b)"
FAR = [THREES, "a*b|a", r"(?:ab|ba|.)+?(?=\s|$)|\s", r"(?:a|aa)+$|(?m:.)"]
SPELLINGS: dict[Behavior, str] = {
    "Isolated": "isolated",
    "Removed": "removed",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}


def two_way(stages: Sequence[Stage]) -> _core.Automaton:
    return core_automaton(two_way_tables_of(two_way_of(Transitions(stages))))


def spans(automaton: _core.Automaton, data: bytes) -> list[bytes]:
    """Return the pieces that are kept."""
    starts, dropped = _core.pieces(automaton, data)
    ends = [*starts[1:].tolist(), len(data)][: len(starts)]
    return [
        data[start:end] for start, end, drop in zip(starts.tolist(), ends, dropped, strict=True) if not drop
    ]


def same(automaton: _core.Automaton, engine: Callable[[str], list[str]], text: str) -> bool:
    return spans(automaton, text.encode()) == [piece.encode() for piece in engine(text) if piece]


@pytest.mark.parametrize("expression", [*FAR, *FAMILY_PATTERNS.values()])
def test_patterns_cut_as_tokenizers_does(expression: str) -> None:
    rng = random.Random(expression)
    automaton = two_way([Stage(read_oniguruma.read(expression))])
    engine = tokenizers_pieces(expression)
    for _ in range(150):
        alphabet = rng.choice(["ab", "ab \n", "12 a", "a'stl 1", "aé中.٣\u0301", "123456789"])
        text = "".join(rng.choices(alphabet, k=rng.choice([0, 1, 3, 9, 40])))
        assert same(automaton, engine, text), text


@pytest.mark.parametrize("seed", range(4))
def test_random_sequences_of_splits(seed: int) -> None:
    from tokenizers import Regex, pre_tokenizers

    rng = random.Random(seed)
    compiled = 0
    while compiled < 8:
        splits = [
            (
                random_pattern(rng, "oniguruma", rng.choice([0, 1])),
                rng.choice(list(SPELLINGS)),
                rng.random() < 0.3,
            )
            for _ in range(rng.choice([1, 1, 2, 3]))
        ]
        try:
            chain = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(e), SPELLINGS[behavior], invert)
                    for e, behavior, invert in splits
                ]
            )
            automaton = two_way(
                [Stage(read_oniguruma.read(e), behavior, invert=invert) for e, behavior, invert in splits]
            )
        except (NotBoundedError, BadTokenizer):
            continue
        except Exception as error:  # tokenizers raises nothing narrower
            if "Onig" not in str(error):
                raise
            continue
        compiled += 1
        for _ in range(10):
            text = random_text(rng, rng.choice([2, 8, 40]))
            engine = [piece.encode() for piece, _ in chain.pre_tokenize_str(text) if piece]
            assert spans(automaton, text.encode()) == engine, (splits, text)


@pytest.mark.parametrize("size", [4_094, 4_095, 4_096, 4_097, 8_192, 50_001])
@pytest.mark.parametrize("before", ["", "a", "é" * 2_000, "word " * 700])
def test_boundaries_decided_by_distant_later_text(size: int, before: str) -> None:
    """A run of digits longer than the lookahead: groups of three from its end, or none if a letter follows."""
    automaton = two_way([Stage(read_oniguruma.read(THREES))])
    digits = "٣12" * (size // 3) + "1" * (size % 3)
    threes = [digits[: size % 3]] * (size % 3 > 0) + [
        digits[place : place + 3] for place in range(size % 3, size, 3)
    ]
    for behind in ("", " more", "é", ". 12345678 and"):
        pieces = [piece.decode() for piece in spans(automaton, (before + digits + behind).encode())]
        if behind == "é":
            assert pieces == [before + digits + behind]
            continue
        rest = [". ", "12", "345", "678", " and"] if "." in behind else [behind]
        assert pieces == [piece for piece in [before, *threes, *rest] if piece]


def test_a_piece_longer_than_the_lookahead() -> None:
    automaton = two_way([Stage(read_oniguruma.read("a*b|a"))])
    for size in (4_095, 4_096, 4_097, 20_000):
        assert [len(piece) for piece in spans(automaton, b"a" * size + b"bab")] == [size + 1, 2]
        assert len(spans(automaton, b"a" * size + b"c")) == size + 1


def test_no_input_backtracks() -> None:
    automaton = two_way([Stage(read_oniguruma.read(r"(?:a|aa|a[ab])+$|(?m:.)"))])
    text = b"a" * 100_000
    assert spans(automaton, text) == [text]
    assert len(spans(automaton, text + b"c")) == 100_001


@pytest.mark.parametrize("behavior", ["Isolated", "Removed"])
def test_a_text_may_be_cut_at_the_reported_offsets(behavior: Behavior) -> None:
    rng = random.Random(1)
    automaton = two_way(
        [Stage(read_oniguruma.read(THREES), behavior), Stage(read_oniguruma.read(r" ?\w+|\s+"))]
    )
    found = 0
    for _ in range(400):
        text = "".join(rng.choices("12ab .\n", k=30)).encode()
        cut = _core.last_safe_cut(automaton, text)
        found += cut > 0
        for behind in (b"", b"1", b"12 ", b"a"):
            whole = spans(automaton, text + behind)
            assert spans(automaton, text[:cut]) + spans(automaton, text[cut:] + behind) == whole
    assert found > 300


def test_is_used_if_no_bounded_memory_suffices() -> None:
    with pytest.raises(NotBoundedError):
        automaton_of(Transitions([Stage(read_oniguruma.read(THREES))]))


def test_tables_with_dangling_targets_are_refused() -> None:
    tables = two_way_tables_of(two_way_of(Transitions([Stage(read_oniguruma.read(THREES))])))
    assert tables.back is not None
    rows, row_of, settled, end = tables.back.rows, tables.back.row_of, tables.back.settled, tables.back.end
    rights = rows.shape[1]

    def made(*back: object) -> None:
        _core.Automaton(
            tables.then,
            tables.initial,
            tables.group_ends,
            (),
            tables.at_end,
            tables.pending,
            tables.borders,
            tables.page_of,
            tables.pages,
            back,  # type: ignore[arg-type]
        )

    made(rows, row_of, settled, end)
    for wrong in (
        (rows, row_of, settled, rights),
        (rows, row_of, settled[:-1], end),
        (rows, row_of[:-1].copy(), settled, end),
        (rows, row_of + np.uint32(len(rows)), settled, end),
        (rows, row_of, np.full_like(settled, rights), end),
        (np.full_like(rows, rights), row_of, settled, end),
    ):
        with pytest.raises(ValueError, match="tables of a pre-tokenizer"):
            made(*wrong)
