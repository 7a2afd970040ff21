"""Write bpe/pretokenization/unicode_sets.json: Unicode properties of both pattern dialects, and letter case.

The tool matches a text of all scalar values with each property. tiktoken defines the Rust dialect and tokenizers the
Oniguruma dialect, so the tables have the Unicode version of these engines.

    python tools/generate_unicode_tables.py > bpe/pretokenization/unicode_sets.json
"""

from __future__ import annotations

import json
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
# Names that only Oniguruma knows, and POSIX brackets.
ONIGURUMA_ONLY = (
    "alnum alpha blank cntrl digit graph lower print punct posixpunct space upper xdigit word".split()
)
BRACKETS = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit word ascii".split()
EITHER = ["any", "assigned", "ascii"]
SCALARS = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+="
Matcher: TypeAlias = Callable[[str, str], "str | None"]


def rust(expression: str, text: str) -> str | None:
    """Return the matched characters of the text, or None if the expression is invalid."""
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
    """Encode numbers with five bits per digit, lowest first; only the last digit is from the lower half of DIGITS."""
    digits: list[str] = []
    for number in numbers:
        while number >= 32:
            digits.append(DIGITS[32 + number % 32])
            number //= 32
        digits.append(DIGITS[number])
    return "".join(digits)


def coded_ranges(ranges: Ranges) -> str:
    """Encode the gap before each range and its length minus one."""
    last = 0
    numbers: list[int] = []
    for start, stop in ranges:
        numbers += [start - last, stop - start - 1]
        last = stop
    return coded(numbers)


def named_sets() -> dict[Ranges, tuple[list[str], list[str]]]:
    """Return the names of each set in the Rust and in the Oniguruma dialect."""
    groups = [group.split("/") for group in [*CATEGORIES, *SCRIPTS, *BINARY, *EITHER, *ONIGURUMA_ONLY]]
    sets: dict[Ranges, tuple[list[str], list[str]]] = {}
    edges = edge_characters()

    def add(dialect: int, match: Matcher, prefix: str, names: Iterable[str], form: str = r"\p{%s}") -> None:
        """Add the sets of these names. Names that agree on the edges of all ranges share one pass over all scalars."""
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
    """Return the first and the last character of each run of equal category and script."""
    edges: set[int] = {0}
    for group in [*CATEGORIES, *SCRIPTS, *BINARY]:
        for start, stop in as_ranges(rust(rf"\p{{{group.split('/')[0]}}}+", SCALARS) or ""):
            edges |= {start - 1, start, stop - 1, stop}
    return "".join(
        chr(edge) for edge in sorted(edges) if 0 <= edge < 0x110000 and not 0xD800 <= edge < 0xE000
    )


def case_classes(match: Matcher, cased: str) -> list[str]:
    """Return the sets of two or more characters that `(?i:x)` matches for some x."""
    apart = "\n".join(cased)  # so that no two neighbors fold to one character
    classes = {match(f"(?i:{character})", apart) or "" for character in cased}
    return sorted(each for each in classes if len(each) > 1)


def several_for_one(cased: str) -> list[tuple[str, str]]:
    """Return the texts of several characters that match one character under (?i) in Oniguruma: ("ss", "ß")."""
    pairs = [(character.casefold(), character) for character in cased if len(character.casefold()) > 1]
    for folded, character in pairs:
        assert oniguruma(f"(?i:{folded})", character) == character, folded
    return sorted(pairs)


def script_runs() -> list[tuple[int, int, int]]:
    """Return (start, stop, script number) of each run of one script, as UnicodeScripts of tokenizers groups them."""
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
    """Return the characters that a component removes."""
    return as_ranges("".join(each for each in SCALARS if not component.pre_tokenize_str(each)))


def tables() -> dict[str, object]:
    """Return the content of unicode_sets.json. bpe/pretokenization/unicode_tables.py describes the fields."""
    sets = []
    for ranges, (rust_names, oniguruma_names) in named_sets().items():
        both = [name for name in rust_names if name in oniguruma_names]
        columns = [both] + [
            [name for name in names if name not in both] for names in (rust_names, oniguruma_names)
        ]
        sets.append([*map(" ".join, columns), coded_ranges(ranges)])
    cased = rust(r"[\p{CWCM}\p{CWCF}\p{Cased}]+", SCALARS) or ""
    classes = case_classes(rust, cased)
    assert classes == case_classes(oniguruma, cased)
    case: list[int] = []
    last = 0
    for each in classes:
        points = [ord(character) for character in each]
        case += [len(points), points[0] - last, *(after - before for before, after in pairwise(points))]
        last = points[0]
    several: list[int] = []
    for folded, character in several_for_one(cased):
        several += [len(folded), *map(ord, folded), ord(character)]
    runs: list[int] = []
    last = 0
    for start, stop, number in script_runs():
        runs += [start - last, stop - start - 1, number]
        last = stop
    digits = pre_tokenizers.Digits(individual_digits=True)
    numeric = "".join(each for each in SCALARS if len(digits.pre_tokenize_str(each + each)) == 2)
    return {
        "generator": f"tiktoken {version('tiktoken')}, tokenizers {version('tokenizers')}",
        "case": coded(case),
        "several_for_one": coded(several),
        "script_runs": coded(runs),
        "punctuation": coded_ranges(removed_by(pre_tokenizers.Punctuation("removed"))),
        "numeric": coded_ranges(as_ranges(numeric)),
        "sets": sets,
    }


def content() -> str:
    """Return the text of unicode_sets.json, one field per line and one set per line."""
    fields = tables()
    sets = fields.pop("sets")
    assert isinstance(sets, list)
    rows = ",\n".join(json.dumps(row) for row in sets)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}," for name, value in fields.items()]
    return "\n".join(["{", *lines, '"sets": [', rows, "]}", ""])


if __name__ == "__main__":
    sys.stdout.write(content())
