"""Write bpe/pretokenization/unicode_ranges.py: the sets that properties name in the dialects of patterns, letter case.

Each set is read off the engines themselves, whose Unicode version decides what a tokenizer does: tiktoken for Rust's
dialect, tokenizers for Oniguruma's. Text of all scalars is matched with the property as pattern.

    python tools/generate_unicode_tables.py > bpe/pretokenization/unicode_ranges.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import pairwise
from typing import TypeAlias

import tiktoken
from tokenizers import Regex, pre_tokenizers

Ranges: TypeAlias = tuple[tuple[int, int], ...]

# Aliases without case, underscores and spaces, by PropertyValueAliases.txt and PropertyAliases.txt of Unicode 16.0.

CATEGORIES = """
c/other lc/casedletter cc/cntrl/control cf/format pe/closepunctuation cn/unassigned co/privateuse
m/mark/combiningmark pc/connectorpunctuation cs/surrogate sc/currencysymbol pd/dashpunctuation
nd/digit/decimalnumber me/enclosingmark pf/finalpunctuation pi/initialpunctuation l/letter nl/letternumber
zl/lineseparator ll/lowercaseletter lm/modifierletter lo/otherletter lt/titlecaseletter lu/uppercaseletter
sm/mathsymbol mc/spacingmark mn/nonspacingmark sk/modifiersymbol n/number no/othernumber ps/openpunctuation
po/otherpunctuation so/othersymbol p/punct/punctuation zp/paragraphseparator s/symbol z/separator
zs/spaceseparator
""".split()
SCRIPTS = """
adlm/adlam aghb/caucasianalbanian ahom hluw/anatolianhieroglyphs arab/arabic armn/armenian
armi/imperialaramaic avst/avestan bali/balinese bamu/bamum bass/bassavah batk/batak beng/bengali
bhks/bhaiksuki bopo/bopomofo brah/brahmi brai/braille bugi/buginese buhd/buhid cakm/chakma
cans/canadianaboriginal cari/carian cham cher/cherokee chrs/chorasmian zyyy/common copt/qaac/coptic
cpmn/cyprominoan cprt/cypriot xsux/cuneiform cyrl/cyrillic dsrt/deseret deva/devanagari diak/divesakuru
dogr/dogra dupl/duployan egyp/egyptianhieroglyphs elba/elbasan elym/elymaic ethi/ethiopic gara/garay
geor/georgian glag/glagolitic gong/gunjalagondi gonm/masaramgondi goth/gothic gran/grantha grek/greek
gujr/gujarati gukh/gurungkhema guru/gurmukhi hani/han hang/hangul rohg/hanifirohingya hano/hanunoo
hatr/hatran hebr/hebrew hira/hiragana hmng/pahawhhmong hmnp/nyiakengpuachuehmong hrkt/katakanaorhiragana
hung/oldhungarian qaai/zinh/inherited phli/inscriptionalpahlavi prti/inscriptionalparthian ital/olditalic
java/javanese kthi/kaithi kali/kayahli kana/katakana knda/kannada kawi khar/kharoshthi
kits/khitansmallscript khmr/khmer khoj/khojki sind/khudawadi krai/kiratrai lana/taitham laoo/lao latn/latin
lepc/lepcha limb/limbu lina/lineara linb/linearb lisu lyci/lycian lydi/lydian mahj/mahajani maka/makasar
mlym/malayalam mand/mandaic mani/manichaean marc/marchen medf/medefaidrin mtei/meeteimayek mend/mendekikakui
merc/meroiticcursive mero/meroitichieroglyphs miao/plrd modi mong/mongolian mroo/mro mult/multani
mymr/myanmar nbat/nabataean nagm/nagmundari nand/nandinagari narb/oldnortharabian newa talu/newtailue
nkoo/nko nshu/nushu ogam/ogham olck/olchiki perm/oldpermic xpeo/oldpersian sogo/oldsogdian
sarb/oldsoutharabian orkh/oldturkic ougr/olduyghur onao/olonal orya/oriya osge/osage osma/osmanya
palm/palmyrene pauc/paucinhau phag/phagspa phlp/psalterpahlavi phnx/phoenician rjng/rejang runr/runic
samr/samaritan saur/saurashtra sgnw/signwriting shrd/sharada shaw/shavian sidd/siddham sinh/sinhala
sogd/sogdian sora/sorasompeng soyo/soyombo sund/sundanese sunu/sunuwar sylo/sylotinagri syrc/syriac
tglg/tagalog tagb/tagbanwa tale/taile tavt/taiviet takr/takri taml/tamil tang/tangut tnsa/tangsa telu/telugu
tfng/tifinagh thaa/thaana thai tibt/tibetan tirh/tirhuta todr/todhri toto tutg/tulutigalari ugar/ugaritic
zzzz/unknown vaii/vai vith/vithkuqi wcho/wancho wara/warangciti yezi/yezidi yiii/yi zanb/zanabazarsquare
""".split()
BINARY = """
ahex/asciihexdigit alpha/alphabetic bidic/bidicontrol bidim/bidimirrored ci/caseignorable cased
cwcf/changeswhencasefolded cwcm/changeswhencasemapped cwl/changeswhenlowercased cwt/changeswhentitlecased
cwu/changeswhenuppercased dash di/defaultignorablecodepoint dep/deprecated dia/diacritic emoji
ecomp/emojicomponent emod/emojimodifier ebase/emojimodifierbase epres/emojipresentation
extpict/extendedpictographic ext/extender grbase/graphemebase grext/graphemeextend grlink/graphemelink
hex/hexdigit hyphen idsb/idsbinaryoperator idst/idstrinaryoperator idsu/idsunaryoperator
idcompatmathcontinue idcompatmathstart idc/idcontinue ids/idstart ideo/ideographic joinc/joincontrol
loe/logicalorderexception lower/lowercase math mcm/modifiercombiningmark nchar/noncharactercodepoint
oalpha/otheralphabetic odi/otherdefaultignorablecodepoint ogrext/othergraphemeextend oidc/otheridcontinue
oids/otheridstart olower/otherlowercase omath/othermath oupper/otheruppercase patsyn/patternsyntax
patws/patternwhitespace pcm/prependedconcatenationmark qmark/quotationmark radical ri/regionalindicator
sterm/sentenceterminal sd/softdotted term/terminalpunctuation uideo/unifiedideograph upper/uppercase
vs/variationselector space/wspace/whitespace xidc/xidcontinue xids/xidstart
""".split()
# Sets that only Oniguruma has a name for, and those that are no properties.
ONIGURUMA_ONLY = (
    "alnum alpha blank cntrl digit graph lower print punct posixpunct space upper xdigit word".split()
)
BRACKETS = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit word ascii".split()
EITHER = ["any", "assigned", "ascii"]
SCALARS = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+="
Matcher: TypeAlias = Callable[[str, str], "str | None"]


def rust(expression: str, text: str) -> str | None:
    """The characters of the text that are in some match; None where the expression is no valid one."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    try:
        encoding = tiktoken.Encoding("probe", pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    except ValueError:
        return None
    return bytes(encoding.encode_ordinary(text)).decode()


def oniguruma(expression: str, text: str) -> str | None:
    try:
        split = pre_tokenizers.Split(Regex(expression), "removed", invert=True)
    except Exception:  # tokenizers raises nothing narrower
        return None
    return "".join(piece for piece, _ in split.pre_tokenize_str(text))


def as_ranges(characters: str) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for point in map(ord, characters):
        if ranges and ranges[-1][1] == point:
            ranges[-1] = (ranges[-1][0], point + 1)
        else:
            ranges.append((point, point + 1))
    return tuple(ranges)


def coded(numbers: Iterable[int]) -> str:
    """Five bits a digit, lowest first; all digits of a number but its last are from the upper half of DIGITS."""
    digits: list[str] = []
    for number in numbers:
        while number >= 32:
            digits.append(DIGITS[32 + number % 32])
            number //= 32
        digits.append(DIGITS[number])
    return "".join(digits)


def coded_ranges(ranges: Ranges) -> str:
    """How far each range begins behind the one before, and its length less one."""
    last = 0
    numbers: list[int] = []
    for start, stop in ranges:
        numbers += [start - last, stop - start - 1]
        last = stop
    return coded(numbers)


def named_sets() -> dict[Ranges, tuple[list[str], list[str]]]:
    """Each set with its names in Rust's dialect and in Oniguruma's."""
    groups = [group.split("/") for group in [*CATEGORIES, *SCRIPTS, *BINARY, *EITHER, *ONIGURUMA_ONLY]]
    sets: dict[Ranges, tuple[list[str], list[str]]] = {}
    edges = edge_characters()

    def add(dialect: int, match: Matcher, prefix: str, names: Iterable[str], form: str = r"\p{%s}") -> None:
        """Aliases are probed on the edges of all ranges; over all scalars only those that differ there."""
        probed: dict[str, Ranges] = {}
        for name in names:
            short = match(form % f"{prefix}{name}", edges)
            if short is None:
                continue
            if short not in probed:
                found = match(form % f"{prefix}{name}" + "+", SCALARS)
                assert found is not None
                probed[short] = as_ranges(found)
            listed = sets.setdefault(probed[short], ([], []))[dialect]
            if prefix + name not in listed:
                listed.append(prefix + name)

    for names in groups:
        add(0, rust, "", names)
        add(1, oniguruma, "", names)
    for names in (group.split("/") for group in CATEGORIES):
        add(0, rust, "gc=", names)
    for names in (group.split("/") for group in SCRIPTS):
        add(0, rust, "sc=", names)
        add(0, rust, "scx=", names)
    for letter in "dsw":
        add(0, rust, "", ["\\" + letter], "%s")
    for letter in "dswh":
        add(1, oniguruma, "", ["\\" + letter], "%s")
        add(1, oniguruma, "", [f"[\\{letter}]"], "%s")
    for name in BRACKETS:
        add(1, oniguruma, "", [f"[:{name}:]"], "[%s]")
    return sets


def edge_characters() -> str:
    """The first and the last character of each run of equal category and script."""
    edges: set[int] = {0}
    for group in [*CATEGORIES, *SCRIPTS, *BINARY]:
        for start, stop in as_ranges(rust(rf"\p{{{group.split('/')[0]}}}+", SCALARS) or ""):
            edges |= {start - 1, start, stop - 1, stop}
    return "".join(
        chr(edge) for edge in sorted(edges) if 0 <= edge < 0x110000 and not 0xD800 <= edge < 0xE000
    )


def case_classes(match: Matcher, cased: str) -> list[str]:
    """The characters that `(?i:x)` matches for some x, where they are several."""
    apart = "\n".join(cased)  # no two of them next to each other are letters that fold to one
    classes = {match(f"(?i:{character})", apart) or "" for character in cased}
    return sorted(each for each in classes if len(each) > 1)


def several_for_one(cased: str) -> list[tuple[str, str]]:
    """What Oniguruma takes for a character under (?i) where that is several: ("ss", "ß")."""
    pairs = [(character.casefold(), character) for character in cased if len(character.casefold()) > 1]
    for folded, character in pairs:
        assert oniguruma(f"(?i:{folded})", character) == character, folded
    return sorted(pairs)


def script_runs() -> list[tuple[int, int, int]]:
    """(start, stop, number of the script) of each run of characters that tokenizers' UnicodeScripts takes for one."""
    cut = pre_tokenizers.UnicodeScripts().pre_tokenize_str
    known = "".join(character for character in SCALARS if cut(character))
    examples: list[str] = []
    runs: list[tuple[int, int, int]] = []
    for run, _ in cut(known):
        number = next((i for i, other in enumerate(examples) if len(cut(other + run[0])) == 1), len(examples))
        if number == len(examples):
            examples.append(run[0])
        runs += [(start, stop, number) for start, stop in as_ranges(run)]
    return runs


def removed_by(component: pre_tokenizers.PreTokenizer) -> Ranges:
    """The characters that a component leaves nothing of."""
    return as_ranges("".join(each for each in SCALARS if not component.pre_tokenize_str(each)))


def lines(text: str, indent: str) -> list[str]:
    """The text as string literals of a hundred characters a line."""
    rows = [text[start : start + 100].replace("\\", "\\\\") for start in range(0, len(text), 100)]
    return [f'{indent}"{row}"' for row in rows or [""]]


def module() -> str:
    out = [
        f'"""Written by tools/generate_unicode_tables.py with tiktoken {version("tiktoken")} and tokenizers '
        f"{version('tokenizers')}; do not edit.",
        "",
        "Unicode 16.0. NAMES: a set's names in both dialects, in Rust's alone, in Oniguruma's alone. RANGES: how far",
        "each range of it begins behind the one before, and its length less one, in DIGITS: five bits a digit, lowest",
        "first, all but the last from the upper half. CASE, of both: how many are one under (?i), the",
        "first as the distance from the first before, each other as that from the one before. The last table:",
        "how many characters, these, and the one that is the same under (?i). PUNCTUATION and NUMERIC, as RANGES:",
        "what components of tokenizers take for that; SCRIPT_RUNS: each with its script.",
        '"""',
        "",
        "# fmt: off",
        f'DIGITS = "{DIGITS}"',
        "NAMES: tuple[tuple[str, str, str], ...] = (",
    ]
    sets = named_sets()
    for rust_names, onig_names in sets.values():
        both = [name for name in rust_names if name in onig_names]
        columns = [both] + [
            [name for name in names if name not in both] for names in (rust_names, onig_names)
        ]
        parts = [lines(" ".join(column), "     ") for column in columns]
        out += ["    (", *(line for part in parts for line in [*part[:-1], part[-1] + ","]), "    ),"]
    out += [")", "RANGES: tuple[str, ...] = ("]
    for ranges in sets:
        rows = lines(coded_ranges(ranges), "    ")
        out += [*rows[:-1], rows[-1] + ","]
    out.append(")")
    cased = rust(r"[\p{CWCM}\p{CWCF}\p{Cased}]+", SCALARS) or ""
    classes = case_classes(rust, cased)
    assert classes == case_classes(oniguruma, cased)
    numbers: list[int] = []
    last = 0
    for each in classes:
        points = [ord(character) for character in each]
        numbers += [len(points), points[0] - last, *(after - before for before, after in pairwise(points))]
        last = points[0]
    out += ["CASE = (", *lines(coded(numbers), "    "), ")"]
    numbers = []
    for folded, character in several_for_one(cased):
        numbers += [len(folded), *map(ord, folded), ord(character)]
    out += ["ONIGURUMA_SEVERAL_FOR_ONE = (", *lines(coded(numbers), "    "), ")"]
    numbers = []
    last = 0
    for start, stop, number in script_runs():
        numbers += [start - last, stop - start - 1, number]
        last = stop
    out += ["SCRIPT_RUNS = (", *lines(coded(numbers), "    "), ")"]
    apart = {
        "PUNCTUATION": removed_by(pre_tokenizers.Punctuation("removed")),
        "NUMERIC": as_ranges(
            "".join(
                each
                for each in SCALARS
                if len(pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str(each + each)) == 2
            )
        ),
    }
    for name, ranges in apart.items():
        out += [f"{name} = (", *lines(coded_ranges(ranges), "    "), ")"]
    return "\n".join([*out, ""])


if __name__ == "__main__":
    sys.stdout.write(module())
