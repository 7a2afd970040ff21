"""Automata of pre-tokenizers cut text as tokenizers does; the core runs the same tables (test_pieces.py)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import regex
from family_patterns import FAMILY_PATTERNS
from numpy.typing import NDArray
from peer_pieces import tiktoken_pieces, tokenizers_pieces
from random_patterns import random_pattern, random_text

from bpe import _core
from bpe.errors import BadTokenizer
from bpe.patterns import PATTERNS
from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.automaton import Actions, Start, automaton_of
from bpe.pretokenization.compiled import _never_cut, compiled_of, core_automaton, table_phases_of
from bpe.pretokenization.components import (
    Behavior,
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Component,
    Digits,
    FixedLength,
    Punctuation,
    Split,
    Whitespace,
    WhitespaceSplit,
)
from bpe.pretokenization.stage import Stage
from bpe.pretokenization.stages import phases_of
from bpe.pretokenization.tables import GROUPS, Border, Tables, tables_of
from bpe.pretokenization.transitions import NotBoundedError, Transitions

SPELLINGS: dict[Behavior, str] = {
    "Isolated": "isolated",
    "Removed": "removed",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
ALPHABETS = [
    "ab1 .,'\n",
    "aB中1 \n\r\t",
    "'stlLrReE ",
    "aé\u0301ǅʰ 2½٣ſ",
    " \u3000\xa0\n",
    "12٣ a-_/!(",
    "中文。，a \n",
]


def tables(stages: Sequence[Stage]) -> Tables:
    return tables_of(automaton_of(Transitions(stages)))


def starts_of(of: Tables, text: str) -> list[tuple[int, bool]]:
    """Return (start of a piece in characters, whether it is dropped) with the core's algorithm, one character at a
    time.
    """
    state = of.initial
    registers = [0] * 4
    found: set[tuple[int, bool]] = set()
    place = 0

    def at(start: Start) -> int:
        return place - start.age if start.age else registers[start.register]

    def add(starts: Sequence[Start]) -> None:
        found.update((at(start), start.drops) for start in starts)

    for character in text:
        code_point = ord(character)
        class_ = of.pages[of.page_of[code_point // 64], code_point % 64]
        state = int(of.then[class_, state])
        place += 1
        group = sum(state >= end for end in of.group_ends)
        due = GROUPS[group] if group < len(GROUPS) else of.actions[state - of.group_ends[-1]]
        add(due.certain)
        for register, value in [(register, at(start)) for register, start in due.registers]:
            registers[register] = value
    add(of.at_end[state])
    return sorted(found)


def pieces(of: Tables, text: str) -> list[str]:
    """Return the pieces that are kept."""
    starts = starts_of(of, text)
    check_borders(of, text, {start for start, _ in starts})
    stops = [*(start for start, _ in starts[1:]), len(text)][: len(starts)]
    return [text[start:stop] for (start, drops), stop in zip(starts, stops, strict=True) if not drops]


def check_borders(of: Tables, text: str, starts: set[int]) -> None:
    """Check that boundaries decided by two characters hold here."""
    class_of = of.pages[of.page_of].reshape(-1)
    for place in range(1, len(text)):
        border = of.borders[class_of[ord(text[place - 1])], class_of[ord(text[place])]]
        if border != Border.DEPENDS:
            assert (border == Border.CUT) == (place in starts), (text, place)


def texts(rng: random.Random, count: int) -> list[str]:
    made = ["", "a", " ", "\n"]
    for _ in range(count):
        alphabet = rng.choice(ALPHABETS)
        made.append("".join(rng.choices(alphabet, k=rng.choice([1, 2, 3, 5, 9, 30]))))
        made.append(random_text(rng, rng.choice([2, 8, 40])))
    return made


@pytest.mark.parametrize("family", FAMILY_PATTERNS)
def test_families_cut_as_both_engines_do(family: str) -> None:
    expression = FAMILY_PATTERNS[family]
    rng = random.Random(family)
    some = texts(rng, 40)
    try:
        for read, engine in (
            (read_oniguruma.read, tokenizers_pieces(expression)),
            (read_rust.read, tiktoken_pieces(expression, some)),
        ):
            cut = tables([Stage(read(expression), gaps_are_errors=read is read_rust.read)])
            for text in some:
                assert pieces(cut, text) == [piece for piece in engine(text) if piece], repr(text)
    except NotBoundedError:
        assert "(?=(?:" in expression  # groups of three digits, counted from the end of their run


def by_tokenizers(splits: Sequence[tuple[str, Behavior, bool]]) -> Callable[[str], list[str]]:
    from tokenizers import Regex, pre_tokenizers

    chain = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), SPELLINGS[behavior], invert)
            for expression, behavior, invert in splits
        ]
    )
    return lambda text: [piece for piece, _ in chain.pre_tokenize_str(text) if piece]


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", SPELLINGS)
@pytest.mark.parametrize("expression", ["a|b+", r"\s+(?!\S)|\p{N}{2}", "(?<=a)b|1*?2", r"(?>a?)b|\b1"])
def test_every_behavior(expression: str, behavior: Behavior, invert: bool) -> None:
    rng = random.Random(7)
    cut = tables([Stage(read_oniguruma.read(expression), behavior, invert=invert)])
    reference = by_tokenizers([(expression, behavior, invert)])
    for text in ["".join(rng.choices("ab12 \n", k=rng.randint(0, 12))) for _ in range(150)]:
        assert pieces(cut, text) == reference(text), repr(text)


@pytest.mark.parametrize("seed", range(6))
def test_random_sequences_of_splits(seed: int) -> None:
    rng = random.Random(seed)
    compiled = 0
    while compiled < 12:
        splits = [
            (
                random_pattern(rng, "oniguruma", rng.choice([0, 0, 1])),
                rng.choice(list(SPELLINGS)),
                rng.random() < 0.3,
            )
            for _ in range(rng.choice([1, 1, 2, 3]))
        ]
        try:
            reference = by_tokenizers(splits)
            cut = tables(
                [Stage(read_oniguruma.read(e), behavior, invert=invert) for e, behavior, invert in splits]
            )
        except (NotBoundedError, BadTokenizer):
            continue
        except Exception as error:  # tokenizers raises nothing narrower
            if "Onig" not in str(error):
                raise
            continue
        compiled += 1
        for text in texts(rng, 4):
            assert pieces(cut, text) == reference(text), (splits, text)


def components_by_tokenizers(components: Sequence[Component]) -> Callable[[str], list[str]]:
    from tokenizers import Regex, pre_tokenizers

    made = []
    for component in components:
        match component:
            case Split():
                pattern = component.expression if component.dialect == "text" else Regex(component.expression)
                made.append(pre_tokenizers.Split(pattern, SPELLINGS[component.behavior], component.invert))
            case Digits():
                made.append(pre_tokenizers.Digits(component.individual_digits))
            case Punctuation():
                made.append(pre_tokenizers.Punctuation(SPELLINGS[component.behavior]))
            case CharDelimiterSplit():
                made.append(pre_tokenizers.CharDelimiterSplit(component.delimiter))
            case FixedLength():
                made.append(pre_tokenizers.FixedLength(component.length))
            case _:
                made.append(getattr(pre_tokenizers, type(component).__name__)())
    chain = pre_tokenizers.Sequence(made)
    return lambda text: [piece for piece, _ in chain.pre_tokenize_str(text) if piece]


@pytest.mark.parametrize(
    "components",
    [
        (Digits(),),
        (Digits(individual_digits=True),),
        (Punctuation(),),
        (Punctuation("Contiguous"), Digits()),
        (Punctuation("MergedWithNext"),),
        (Whitespace(),),
        (WhitespaceSplit(), Punctuation("MergedWithPrevious")),
        (BertPreTokenizer(),),
        (CharDelimiterSplit("a"),),
        (FixedLength(3),),
        (Split("a.", "text"), Digits()),
        (Split(r"\p{N}{1,3}", "oniguruma"), Split("[一-龥]+", "oniguruma"), Whitespace()),
    ],
    ids=str,
)
def test_components(components: tuple[Component, ...]) -> None:
    cut = tables(phases_of(components).phases[0].stages())
    reference = components_by_tokenizers(components)
    for text in texts(random.Random(3), 60):
        assert pieces(cut, text) == reference(text), repr(text)


def test_byte_level_is_gpt2s_expression() -> None:
    from tokenizers import pre_tokenizers

    reference = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut = tables(phases_of([ByteLevel(add_prefix_space=False)]).phases[0].stages())
    for text in texts(random.Random(4), 60):
        spans = [span for _, span in reference.pre_tokenize_str(text)]
        assert pieces(cut, text) == [text[start:stop] for start, stop in spans], repr(text)


def test_one_of_several_lookbehinds_may_match_the_start() -> None:
    expression = r"(?<=\Aa)b+|(?<=c)d+|."
    cut = tables([Stage(read_oniguruma.read(expression))])
    rng = random.Random(7)
    for _ in range(300):
        text = "".join(rng.choices("abcd", k=rng.randrange(1, 9)))
        assert pieces(cut, text) == regex.findall(expression, text), text


def test_without_components_a_text_is_one_piece() -> None:
    assert pieces(tables(phases_of([]).phases[0].stages()), "a b\n c") == ["a b\n c"]


@pytest.mark.parametrize("expression", [r"\d{1,3}(?=(?:\d{3})*\b)", "a*b|a"])
def test_dependence_on_a_distant_end_is_unbounded(expression: str) -> None:
    with pytest.raises(NotBoundedError):
        automaton_of(Transitions([Stage(read_oniguruma.read(expression))]))


@pytest.mark.parametrize("words", [5, 40])
def test_steps_over_two_bytes_and_over_one(variant: str, words: int) -> None:
    """The core steps over two bytes at a time when tables are small. Test sizes around its window sizes."""
    letters = [chr(0x61 + number) if number < 26 else chr(0x100 + 29 * number) for number in range(2 * words)]
    expression = "|".join(map("".join, zip(letters[::2], letters[1::2], strict=True))) + r"| +(?! )|\n\n?"
    cut = tables([Stage(read_oniguruma.read(expression))])
    small = len(cut.then) ** 2 * len(set(cut.then[-1].tolist())) < 1 << 15
    assert small == (words == 5)
    automaton = core_automaton(cut)
    rng = random.Random(words)
    borders = [32, 64, 128, 512, 1024, 2048, 4096, 8192]
    for size in [1, 2, 3, *(border + more for border in borders for more in (-1, 0, 1, 2))]:
        pool = letters if size % 2 else letters[:4] * 5
        text = "".join(rng.choices([*pool, " ", "\n", "中"], k=size))
        ends = np.cumsum([0, *(len(character.encode()) for character in text)])
        starts, dropped = _core.pieces(automaton, text.encode())
        expected = [(int(ends[start]), drops) for start, drops in starts_of(cut, text)]
        assert list(zip(starts.tolist(), dropped.tolist(), strict=True)) == expected, size


def test_pieces_are_left_out_at_the_start_of_every_window() -> None:
    automaton = compiled_of((WhitespaceSplit(),)).automaton
    starts, dropped = _core.pieces(automaton, b" ab" * 6000)
    assert starts.tolist() == [start for word in range(6000) for start in (3 * word, 3 * word + 1)]
    assert dropped.tolist() == [True, False] * 6000


def test_bytes_that_are_never_cut_apart() -> None:
    found = _never_cut(automaton_of(Transitions([Stage(read_oniguruma.read(r"\d|!"))])), range(128))
    assert set(b"abcxyzABC,.?") <= found
    assert not found & set(b"0123456789!")


@pytest.mark.parametrize("repeats", [1, 100, 200, 1000])
def test_a_long_piece_whose_first_character_needs_a_register(repeats: int) -> None:
    """The register already held a later part of the piece, and the piece was cut there."""
    lower, title, upper = "\u6587", "\u01c5", "\u212a"
    text = f"{lower}{upper * 3}%{lower}{upper * 6}{(lower * 4 + title * 2) * repeats}{lower}"
    ends = np.cumsum([len(match.encode()) for match in regex.findall(PATTERNS["o200k"], text)])
    starts, _ = _core.pieces(compiled_of((Split(PATTERNS["o200k"], "rust"),)).automaton, text.encode())
    assert starts.tolist() == [0, *ends[:-1].tolist()]


def with_last_row(tables: Tables, state: int) -> NDArray[np.uint8]:
    then = tables.then.copy()
    then[-1] = state
    return then


def bad_tables(tables: Tables, back: Tables) -> dict[str, list[Tables]]:
    """Return tables with one fault each, by the rule that reports it."""
    of_back = back.back
    assert of_back is not None
    rights = of_back.rows.shape[1]

    def with_back(**changed: object) -> Tables:
        return replace(back, back=replace(of_back, **changed))

    def with_end(start: Start) -> Tables:
        return replace(tables, at_end=((start,), *tables.at_end[1:]))

    first, behind = tables.group_ends[2:]  # for states without a pending group
    assert behind < len(tables.at_end)
    long_group = (tables.group_ends[3] + 1, *tables.group_ends[1:])
    return {
        "rows of 256 states and pages of 64": [
            replace(tables, then=tables.then[:, :255].copy()),
            replace(tables, pages=tables.pages[:, :63].copy()),
            replace(tables, initial=256),
        ],
        "a row for each class": [replace(tables, then=tables.then[:1])],
        "states in groups": [
            replace(tables, group_ends=long_group),
            replace(tables, group_ends=(0, 0, 0, 256), actions=(Actions((), ()),)),
        ],
        "what is due by state": [
            replace(tables, initial=len(tables.at_end)),
            replace(tables, at_end=tables.at_end[:-1]),
            replace(tables, pending=tables.pending[:-1]),
        ],
        "nothing due behind a byte within": [
            replace(tables, then=with_last_row(tables, state)) for state in (first - 1, behind)
        ],
        "nothing due before a text": [replace(tables, initial=state) for state in (first - 1, behind)],
        "states that there are": [replace(tables, then=np.full_like(tables.then, len(tables.at_end)))],
        "pages of code points": [replace(tables, page_of=np.zeros(1 << 16, np.uint16))],
        "pages that there are": [
            replace(tables, page_of=np.full_like(tables.page_of, len(tables.pages))),
        ],
        "classes that there are": [replace(tables, pages=np.full_like(tables.pages, len(tables.then)))],
        "a start within reach": [with_end(Start(9, 0, False)), with_end(Start(1, 4, False))],
        "too many actions at once": [replace(tables, at_end=((Start(1, 0, False),) * 9, *tables.at_end[1:]))],
        "right contexts that there are": [
            with_back(end=rights),
            with_back(rows=np.full_like(of_back.rows, rights)),
        ],
        "what is to the left by state": [
            with_back(settled=of_back.settled[:-1]),
            with_back(row_of=of_back.row_of[:-1]),
        ],
        "settled by a right context": [with_back(settled=np.full_like(of_back.settled, rights))],
        "rows that there are": [with_back(row_of=np.full_like(of_back.row_of, len(of_back.rows)))],
    }


def test_tables_with_targets_out_of_range_are_refused() -> None:
    def tables_by(pattern: str) -> Tables:
        return table_phases_of((Split(pattern, "oniguruma"),)).tables[0]

    tables, back = tables_by(r"\p{L}+|\s+(?!\S)|\d{2}(?=!!)|\d"), tables_by(r"\d{1,3}(?=(?:\d{3})*\b)")
    core_automaton(tables)
    core_automaton(back)
    for rule, changed in bad_tables(tables, back).items():
        for each in changed:
            with pytest.raises(ValueError, match=rule):
                core_automaton(each)
