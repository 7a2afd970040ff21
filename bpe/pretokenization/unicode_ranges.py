"""Written by tools/generate_unicode_tables.py with tiktoken 0.14.0 and tokenizers 0.23.3; do not edit.

Unicode 16.0. NAMES: a set's names in both dialects, in Rust's alone, in Oniguruma's alone. RANGES: how far
each range of it begins behind the one before, and its length less one, in DIGITS: five bits a digit, lowest
first, all but the last from the upper half. CASE, of both: how many are one under (?i), the
first as the distance from the first before, each other as that from the one before. The last table:
how many characters, these, and the one that is the same under (?i). PUNCTUATION and NUMERIC, as RANGES:
what components of tokenizers take for that; SCRIPT_RUNS: each with its script.
"""

# fmt: off
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+="
NAMES: tuple[tuple[str, str, str], ...] = (
    (
     "c other",
     "gc=c gc=other",
     "",
    ),
    (
     "lc casedletter",
     "gc=lc gc=casedletter",
     "",
    ),
    (
     "cc cntrl control",
     "gc=cc gc=cntrl gc=control",
     "[:cntrl:]",
    ),
    (
     "cf format",
     "gc=cf gc=format",
     "",
    ),
    (
     "pe closepunctuation",
     "gc=pe gc=closepunctuation",
     "",
    ),
    (
     "cn unassigned",
     "gc=cn gc=unassigned",
     "",
    ),
    (
     "co privateuse",
     "gc=co gc=privateuse",
     "",
    ),
    (
     "m mark combiningmark",
     "gc=m gc=mark gc=combiningmark",
     "",
    ),
    (
     "pc connectorpunctuation",
     "gc=pc gc=connectorpunctuation",
     "",
    ),
    (
     "cs",
     "",
     "surrogate",
    ),
    (
     "sc currencysymbol",
     "gc=sc gc=currencysymbol",
     "",
    ),
    (
     "pd dashpunctuation",
     "gc=pd gc=dashpunctuation",
     "",
    ),
    (
     "nd digit decimalnumber \\d",
     "gc=nd gc=digit gc=decimalnumber",
     "[\\d] [:digit:]",
    ),
    (
     "me enclosingmark",
     "gc=me gc=enclosingmark",
     "",
    ),
    (
     "pf finalpunctuation",
     "gc=pf gc=finalpunctuation",
     "",
    ),
    (
     "pi initialpunctuation",
     "gc=pi gc=initialpunctuation",
     "",
    ),
    (
     "l letter",
     "gc=l gc=letter",
     "",
    ),
    (
     "nl letternumber",
     "gc=nl gc=letternumber",
     "",
    ),
    (
     "zl lineseparator",
     "gc=zl gc=lineseparator",
     "",
    ),
    (
     "ll lowercaseletter",
     "gc=ll gc=lowercaseletter",
     "",
    ),
    (
     "lm modifierletter",
     "gc=lm gc=modifierletter",
     "",
    ),
    (
     "lo otherletter",
     "gc=lo gc=otherletter",
     "",
    ),
    (
     "lt titlecaseletter",
     "gc=lt gc=titlecaseletter",
     "",
    ),
    (
     "lu uppercaseletter",
     "gc=lu gc=uppercaseletter",
     "",
    ),
    (
     "sm mathsymbol",
     "gc=sm gc=mathsymbol",
     "",
    ),
    (
     "mc spacingmark",
     "gc=mc gc=spacingmark",
     "",
    ),
    (
     "mn nonspacingmark",
     "gc=mn gc=nonspacingmark",
     "",
    ),
    (
     "sk modifiersymbol",
     "gc=sk gc=modifiersymbol",
     "",
    ),
    (
     "n number",
     "gc=n gc=number",
     "",
    ),
    (
     "no othernumber",
     "gc=no gc=othernumber",
     "",
    ),
    (
     "ps openpunctuation",
     "gc=ps gc=openpunctuation",
     "",
    ),
    (
     "po otherpunctuation",
     "gc=po gc=otherpunctuation",
     "",
    ),
    (
     "so othersymbol",
     "gc=so gc=othersymbol",
     "",
    ),
    (
     "p punct punctuation",
     "gc=p gc=punct gc=punctuation",
     "",
    ),
    (
     "zp paragraphseparator",
     "gc=zp gc=paragraphseparator",
     "",
    ),
    (
     "s symbol",
     "gc=s gc=symbol",
     "",
    ),
    (
     "z separator",
     "gc=z gc=separator",
     "",
    ),
    (
     "zs spaceseparator",
     "gc=zs gc=spaceseparator",
     "",
    ),
    (
     "adlm adlam",
     "sc=adlm sc=adlam",
     "",
    ),
    (
     "aghb caucasianalbanian",
     "sc=aghb sc=caucasianalbanian",
     "",
    ),
    (
     "ahom",
     "sc=ahom scx=ahom",
     "",
    ),
    (
     "hluw anatolianhieroglyphs",
     "sc=hluw sc=anatolianhieroglyphs scx=hluw scx=anatolianhieroglyphs",
     "",
    ),
    (
     "arab arabic",
     "sc=arab sc=arabic",
     "",
    ),
    (
     "armn armenian",
     "sc=armn sc=armenian",
     "",
    ),
    (
     "armi imperialaramaic",
     "sc=armi sc=imperialaramaic scx=armi scx=imperialaramaic",
     "",
    ),
    (
     "avst avestan",
     "sc=avst sc=avestan",
     "",
    ),
    (
     "bali balinese",
     "sc=bali sc=balinese scx=bali scx=balinese",
     "",
    ),
    (
     "bamu bamum",
     "sc=bamu sc=bamum scx=bamu scx=bamum",
     "",
    ),
    (
     "bass bassavah",
     "sc=bass sc=bassavah scx=bass scx=bassavah",
     "",
    ),
    (
     "batk batak",
     "sc=batk sc=batak scx=batk scx=batak",
     "",
    ),
    (
     "beng bengali",
     "sc=beng sc=bengali",
     "",
    ),
    (
     "bhks bhaiksuki",
     "sc=bhks sc=bhaiksuki scx=bhks scx=bhaiksuki",
     "",
    ),
    (
     "bopo bopomofo",
     "sc=bopo sc=bopomofo",
     "",
    ),
    (
     "brah brahmi",
     "sc=brah sc=brahmi scx=brah scx=brahmi",
     "",
    ),
    (
     "brai braille",
     "sc=brai sc=braille scx=brai scx=braille",
     "",
    ),
    (
     "bugi buginese",
     "sc=bugi sc=buginese",
     "",
    ),
    (
     "buhd buhid",
     "sc=buhd sc=buhid",
     "",
    ),
    (
     "cakm chakma",
     "sc=cakm sc=chakma",
     "",
    ),
    (
     "cans canadianaboriginal",
     "sc=cans sc=canadianaboriginal scx=cans scx=canadianaboriginal",
     "",
    ),
    (
     "cari carian",
     "sc=cari sc=carian",
     "",
    ),
    (
     "cham",
     "sc=cham scx=cham",
     "",
    ),
    (
     "cher cherokee",
     "sc=cher sc=cherokee",
     "",
    ),
    (
     "chrs chorasmian",
     "sc=chrs sc=chorasmian scx=chrs scx=chorasmian",
     "",
    ),
    (
     "zyyy common",
     "sc=zyyy sc=common",
     "",
    ),
    (
     "copt qaac coptic",
     "sc=copt sc=qaac sc=coptic",
     "",
    ),
    (
     "cpmn cyprominoan",
     "sc=cpmn sc=cyprominoan",
     "",
    ),
    (
     "cprt cypriot",
     "sc=cprt sc=cypriot",
     "",
    ),
    (
     "xsux cuneiform",
     "sc=xsux sc=cuneiform scx=xsux scx=cuneiform",
     "",
    ),
    (
     "cyrl cyrillic",
     "sc=cyrl sc=cyrillic",
     "",
    ),
    (
     "dsrt deseret",
     "sc=dsrt sc=deseret scx=dsrt scx=deseret",
     "",
    ),
    (
     "deva devanagari",
     "sc=deva sc=devanagari",
     "",
    ),
    (
     "diak divesakuru",
     "sc=diak sc=divesakuru scx=diak scx=divesakuru",
     "",
    ),
    (
     "dogr dogra",
     "sc=dogr sc=dogra",
     "",
    ),
    (
     "dupl duployan",
     "sc=dupl sc=duployan",
     "",
    ),
    (
     "egyp egyptianhieroglyphs",
     "sc=egyp sc=egyptianhieroglyphs scx=egyp scx=egyptianhieroglyphs",
     "",
    ),
    (
     "elba elbasan",
     "sc=elba sc=elbasan",
     "",
    ),
    (
     "elym elymaic",
     "sc=elym sc=elymaic scx=elym scx=elymaic",
     "",
    ),
    (
     "ethi ethiopic",
     "sc=ethi sc=ethiopic",
     "",
    ),
    (
     "gara garay",
     "sc=gara sc=garay",
     "",
    ),
    (
     "geor georgian",
     "sc=geor sc=georgian",
     "",
    ),
    (
     "glag glagolitic",
     "sc=glag sc=glagolitic",
     "",
    ),
    (
     "gong gunjalagondi",
     "sc=gong sc=gunjalagondi",
     "",
    ),
    (
     "gonm masaramgondi",
     "sc=gonm sc=masaramgondi",
     "",
    ),
    (
     "goth gothic",
     "sc=goth sc=gothic",
     "",
    ),
    (
     "gran grantha",
     "sc=gran sc=grantha",
     "",
    ),
    (
     "grek greek",
     "sc=grek sc=greek",
     "",
    ),
    (
     "gujr gujarati",
     "sc=gujr sc=gujarati",
     "",
    ),
    (
     "gukh gurungkhema",
     "sc=gukh sc=gurungkhema",
     "",
    ),
    (
     "guru gurmukhi",
     "sc=guru sc=gurmukhi",
     "",
    ),
    (
     "hani han",
     "sc=hani sc=han",
     "",
    ),
    (
     "hang hangul",
     "sc=hang sc=hangul",
     "",
    ),
    (
     "rohg hanifirohingya",
     "sc=rohg sc=hanifirohingya",
     "",
    ),
    (
     "hano hanunoo",
     "sc=hano sc=hanunoo",
     "",
    ),
    (
     "hatr hatran",
     "sc=hatr sc=hatran scx=hatr scx=hatran",
     "",
    ),
    (
     "hebr hebrew",
     "sc=hebr sc=hebrew",
     "",
    ),
    (
     "hira hiragana",
     "sc=hira sc=hiragana",
     "",
    ),
    (
     "hmng pahawhhmong",
     "sc=hmng sc=pahawhhmong scx=hmng scx=pahawhhmong",
     "",
    ),
    (
     "hmnp nyiakengpuachuehmong",
     "sc=hmnp sc=nyiakengpuachuehmong scx=hmnp scx=nyiakengpuachuehmong",
     "",
    ),
    (
     "hung oldhungarian",
     "sc=hung sc=oldhungarian",
     "",
    ),
    (
     "qaai zinh inherited",
     "sc=qaai sc=zinh sc=inherited",
     "",
    ),
    (
     "phli inscriptionalpahlavi",
     "sc=phli sc=inscriptionalpahlavi scx=phli scx=inscriptionalpahlavi",
     "",
    ),
    (
     "prti inscriptionalparthian",
     "sc=prti sc=inscriptionalparthian scx=prti scx=inscriptionalparthian",
     "",
    ),
    (
     "ital olditalic",
     "sc=ital sc=olditalic scx=ital scx=olditalic",
     "",
    ),
    (
     "java javanese",
     "sc=java sc=javanese",
     "",
    ),
    (
     "kthi kaithi",
     "sc=kthi sc=kaithi",
     "",
    ),
    (
     "kali kayahli",
     "sc=kali sc=kayahli",
     "",
    ),
    (
     "kana katakana",
     "sc=kana sc=katakana",
     "",
    ),
    (
     "knda kannada",
     "sc=knda sc=kannada",
     "",
    ),
    (
     "kawi",
     "sc=kawi scx=kawi",
     "",
    ),
    (
     "khar kharoshthi",
     "sc=khar sc=kharoshthi scx=khar scx=kharoshthi",
     "",
    ),
    (
     "kits khitansmallscript",
     "sc=kits sc=khitansmallscript scx=kits scx=khitansmallscript",
     "",
    ),
    (
     "khmr khmer",
     "sc=khmr sc=khmer scx=khmr scx=khmer",
     "",
    ),
    (
     "khoj khojki",
     "sc=khoj sc=khojki",
     "",
    ),
    (
     "sind khudawadi",
     "sc=sind sc=khudawadi",
     "",
    ),
    (
     "krai kiratrai",
     "sc=krai sc=kiratrai scx=krai scx=kiratrai",
     "",
    ),
    (
     "lana taitham",
     "sc=lana sc=taitham scx=lana scx=taitham",
     "",
    ),
    (
     "laoo lao",
     "sc=laoo sc=lao scx=laoo scx=lao",
     "",
    ),
    (
     "latn latin",
     "sc=latn sc=latin",
     "",
    ),
    (
     "lepc lepcha",
     "sc=lepc sc=lepcha scx=lepc scx=lepcha",
     "",
    ),
    (
     "limb limbu",
     "sc=limb sc=limbu",
     "",
    ),
    (
     "lina lineara",
     "sc=lina sc=lineara",
     "",
    ),
    (
     "linb linearb",
     "sc=linb sc=linearb",
     "",
    ),
    (
     "lisu",
     "sc=lisu",
     "",
    ),
    (
     "lyci lycian",
     "sc=lyci sc=lycian",
     "",
    ),
    (
     "lydi lydian",
     "sc=lydi sc=lydian",
     "",
    ),
    (
     "mahj mahajani",
     "sc=mahj sc=mahajani",
     "",
    ),
    (
     "maka makasar",
     "sc=maka sc=makasar scx=maka scx=makasar",
     "",
    ),
    (
     "mlym malayalam",
     "sc=mlym sc=malayalam",
     "",
    ),
    (
     "mand mandaic",
     "sc=mand sc=mandaic",
     "",
    ),
    (
     "mani manichaean",
     "sc=mani sc=manichaean",
     "",
    ),
    (
     "marc marchen",
     "sc=marc sc=marchen scx=marc scx=marchen",
     "",
    ),
    (
     "medf medefaidrin",
     "sc=medf sc=medefaidrin scx=medf scx=medefaidrin",
     "",
    ),
    (
     "mtei meeteimayek",
     "sc=mtei sc=meeteimayek scx=mtei scx=meeteimayek",
     "",
    ),
    (
     "mend mendekikakui",
     "sc=mend sc=mendekikakui scx=mend scx=mendekikakui",
     "",
    ),
    (
     "merc meroiticcursive",
     "sc=merc sc=meroiticcursive scx=merc scx=meroiticcursive",
     "",
    ),
    (
     "mero meroitichieroglyphs",
     "sc=mero sc=meroitichieroglyphs",
     "",
    ),
    (
     "miao plrd",
     "sc=miao sc=plrd scx=miao scx=plrd",
     "",
    ),
    (
     "modi",
     "sc=modi",
     "",
    ),
    (
     "mong mongolian",
     "sc=mong sc=mongolian",
     "",
    ),
    (
     "mroo mro",
     "sc=mroo sc=mro scx=mroo scx=mro",
     "",
    ),
    (
     "mult multani",
     "sc=mult sc=multani",
     "",
    ),
    (
     "mymr myanmar",
     "sc=mymr sc=myanmar",
     "",
    ),
    (
     "nbat nabataean",
     "sc=nbat sc=nabataean scx=nbat scx=nabataean",
     "",
    ),
    (
     "nagm nagmundari",
     "sc=nagm sc=nagmundari scx=nagm scx=nagmundari",
     "",
    ),
    (
     "nand nandinagari",
     "sc=nand sc=nandinagari",
     "",
    ),
    (
     "narb oldnortharabian",
     "sc=narb sc=oldnortharabian scx=narb scx=oldnortharabian",
     "",
    ),
    (
     "newa",
     "sc=newa scx=newa",
     "",
    ),
    (
     "talu newtailue",
     "sc=talu sc=newtailue scx=talu scx=newtailue",
     "",
    ),
    (
     "nkoo nko",
     "sc=nkoo sc=nko",
     "",
    ),
    (
     "nshu nushu",
     "sc=nshu sc=nushu scx=nshu scx=nushu",
     "",
    ),
    (
     "ogam ogham",
     "sc=ogam sc=ogham scx=ogam scx=ogham",
     "",
    ),
    (
     "olck olchiki",
     "sc=olck sc=olchiki scx=olck scx=olchiki",
     "",
    ),
    (
     "perm oldpermic",
     "sc=perm sc=oldpermic",
     "",
    ),
    (
     "xpeo oldpersian",
     "sc=xpeo sc=oldpersian scx=xpeo scx=oldpersian",
     "",
    ),
    (
     "sogo oldsogdian",
     "sc=sogo sc=oldsogdian scx=sogo scx=oldsogdian",
     "",
    ),
    (
     "sarb oldsoutharabian",
     "sc=sarb sc=oldsoutharabian scx=sarb scx=oldsoutharabian",
     "",
    ),
    (
     "orkh oldturkic",
     "sc=orkh sc=oldturkic",
     "",
    ),
    (
     "ougr olduyghur",
     "sc=ougr sc=olduyghur",
     "",
    ),
    (
     "onao olonal",
     "sc=onao sc=olonal",
     "",
    ),
    (
     "orya oriya",
     "sc=orya sc=oriya",
     "",
    ),
    (
     "osge osage",
     "sc=osge sc=osage",
     "",
    ),
    (
     "osma osmanya",
     "sc=osma sc=osmanya scx=osma scx=osmanya",
     "",
    ),
    (
     "palm palmyrene",
     "sc=palm sc=palmyrene scx=palm scx=palmyrene",
     "",
    ),
    (
     "pauc paucinhau",
     "sc=pauc sc=paucinhau scx=pauc scx=paucinhau",
     "",
    ),
    (
     "phag phagspa",
     "sc=phag sc=phagspa",
     "",
    ),
    (
     "phlp psalterpahlavi",
     "sc=phlp sc=psalterpahlavi",
     "",
    ),
    (
     "phnx phoenician",
     "sc=phnx sc=phoenician scx=phnx scx=phoenician",
     "",
    ),
    (
     "rjng rejang",
     "sc=rjng sc=rejang scx=rjng scx=rejang",
     "",
    ),
    (
     "runr runic",
     "sc=runr sc=runic",
     "",
    ),
    (
     "samr samaritan",
     "sc=samr sc=samaritan",
     "",
    ),
    (
     "saur saurashtra",
     "sc=saur sc=saurashtra scx=saur scx=saurashtra",
     "",
    ),
    (
     "sgnw signwriting",
     "sc=sgnw sc=signwriting scx=sgnw scx=signwriting",
     "",
    ),
    (
     "shrd sharada",
     "sc=shrd sc=sharada",
     "",
    ),
    (
     "shaw shavian",
     "sc=shaw sc=shavian",
     "",
    ),
    (
     "sidd siddham",
     "sc=sidd sc=siddham scx=sidd scx=siddham",
     "",
    ),
    (
     "sinh sinhala",
     "sc=sinh sc=sinhala",
     "",
    ),
    (
     "sogd sogdian",
     "sc=sogd sc=sogdian",
     "",
    ),
    (
     "sora sorasompeng",
     "sc=sora sc=sorasompeng scx=sora scx=sorasompeng",
     "",
    ),
    (
     "soyo soyombo",
     "sc=soyo sc=soyombo scx=soyo scx=soyombo",
     "",
    ),
    (
     "sund sundanese",
     "sc=sund sc=sundanese scx=sund scx=sundanese",
     "",
    ),
    (
     "sunu sunuwar",
     "sc=sunu sc=sunuwar",
     "",
    ),
    (
     "sylo sylotinagri",
     "sc=sylo sc=sylotinagri",
     "",
    ),
    (
     "syrc syriac",
     "sc=syrc sc=syriac",
     "",
    ),
    (
     "tglg tagalog",
     "sc=tglg sc=tagalog",
     "",
    ),
    (
     "tagb tagbanwa",
     "sc=tagb sc=tagbanwa",
     "",
    ),
    (
     "tale taile",
     "sc=tale sc=taile",
     "",
    ),
    (
     "tavt taiviet",
     "sc=tavt sc=taiviet scx=tavt scx=taiviet",
     "",
    ),
    (
     "takr takri",
     "sc=takr sc=takri",
     "",
    ),
    (
     "taml tamil",
     "sc=taml sc=tamil",
     "",
    ),
    (
     "tang tangut",
     "sc=tang sc=tangut",
     "",
    ),
    (
     "tnsa tangsa",
     "sc=tnsa sc=tangsa scx=tnsa scx=tangsa",
     "",
    ),
    (
     "telu telugu",
     "sc=telu sc=telugu",
     "",
    ),
    (
     "tfng tifinagh",
     "sc=tfng sc=tifinagh",
     "",
    ),
    (
     "thaa thaana",
     "sc=thaa sc=thaana",
     "",
    ),
    (
     "thai",
     "sc=thai",
     "",
    ),
    (
     "tibt tibetan",
     "sc=tibt sc=tibetan",
     "",
    ),
    (
     "tirh tirhuta",
     "sc=tirh sc=tirhuta",
     "",
    ),
    (
     "todr todhri",
     "sc=todr sc=todhri",
     "",
    ),
    (
     "toto",
     "sc=toto",
     "",
    ),
    (
     "tutg tulutigalari",
     "sc=tutg sc=tulutigalari",
     "",
    ),
    (
     "ugar ugaritic",
     "sc=ugar sc=ugaritic scx=ugar scx=ugaritic",
     "",
    ),
    (
     "",
     "",
     "zzzz unknown",
    ),
    (
     "vaii vai",
     "sc=vaii sc=vai scx=vaii scx=vai",
     "",
    ),
    (
     "vith vithkuqi",
     "sc=vith sc=vithkuqi scx=vith scx=vithkuqi",
     "",
    ),
    (
     "wcho wancho",
     "sc=wcho sc=wancho scx=wcho scx=wancho",
     "",
    ),
    (
     "wara warangciti",
     "sc=wara sc=warangciti scx=wara scx=warangciti",
     "",
    ),
    (
     "yezi yezidi",
     "sc=yezi sc=yezidi",
     "",
    ),
    (
     "yiii yi",
     "sc=yiii sc=yi",
     "",
    ),
    (
     "zanb zanabazarsquare",
     "sc=zanb sc=zanabazarsquare scx=zanb scx=zanabazarsquare",
     "",
    ),
    (
     "ahex asciihexdigit",
     "",
     "xdigit \\h [\\h] [:xdigit:]",
    ),
    (
     "alpha alphabetic",
     "",
     "[:alpha:]",
    ),
    (
     "bidic bidicontrol",
     "",
     "",
    ),
    (
     "",
     "bidim bidimirrored",
     "",
    ),
    (
     "ci caseignorable",
     "",
     "",
    ),
    (
     "cased",
     "",
     "",
    ),
    (
     "cwcf changeswhencasefolded",
     "",
     "",
    ),
    (
     "cwcm changeswhencasemapped",
     "",
     "",
    ),
    (
     "cwl changeswhenlowercased",
     "",
     "",
    ),
    (
     "cwt changeswhentitlecased",
     "",
     "",
    ),
    (
     "cwu changeswhenuppercased",
     "",
     "",
    ),
    (
     "dash",
     "",
     "",
    ),
    (
     "di defaultignorablecodepoint",
     "",
     "",
    ),
    (
     "dep deprecated",
     "",
     "",
    ),
    (
     "dia diacritic",
     "",
     "",
    ),
    (
     "emoji",
     "",
     "",
    ),
    (
     "ecomp emojicomponent",
     "",
     "",
    ),
    (
     "emod emojimodifier",
     "",
     "",
    ),
    (
     "ebase emojimodifierbase",
     "",
     "",
    ),
    (
     "epres emojipresentation",
     "",
     "",
    ),
    (
     "extpict extendedpictographic",
     "",
     "",
    ),
    (
     "ext extender",
     "",
     "",
    ),
    (
     "grbase graphemebase",
     "",
     "",
    ),
    (
     "grext graphemeextend",
     "",
     "",
    ),
    (
     "grlink graphemelink",
     "",
     "",
    ),
    (
     "hex hexdigit",
     "",
     "",
    ),
    (
     "hyphen",
     "",
     "",
    ),
    (
     "idsb idsbinaryoperator",
     "",
     "",
    ),
    (
     "idst idstrinaryoperator",
     "",
     "",
    ),
    (
     "idsu idsunaryoperator",
     "",
     "",
    ),
    (
     "idcompatmathcontinue",
     "",
     "",
    ),
    (
     "idcompatmathstart",
     "",
     "",
    ),
    (
     "idc idcontinue",
     "",
     "",
    ),
    (
     "ids idstart",
     "",
     "",
    ),
    (
     "ideo ideographic",
     "",
     "",
    ),
    (
     "joinc joincontrol",
     "",
     "",
    ),
    (
     "loe logicalorderexception",
     "",
     "",
    ),
    (
     "lower lowercase",
     "",
     "[:lower:]",
    ),
    (
     "math",
     "",
     "",
    ),
    (
     "mcm modifiercombiningmark",
     "",
     "",
    ),
    (
     "nchar noncharactercodepoint",
     "",
     "",
    ),
    (
     "oalpha otheralphabetic",
     "",
     "",
    ),
    (
     "odi otherdefaultignorablecodepoint",
     "",
     "",
    ),
    (
     "ogrext othergraphemeextend",
     "",
     "",
    ),
    (
     "oidc otheridcontinue",
     "",
     "",
    ),
    (
     "oids otheridstart",
     "",
     "",
    ),
    (
     "olower otherlowercase",
     "",
     "",
    ),
    (
     "omath othermath",
     "",
     "",
    ),
    (
     "oupper otheruppercase",
     "",
     "",
    ),
    (
     "patsyn patternsyntax",
     "",
     "",
    ),
    (
     "patws patternwhitespace",
     "",
     "",
    ),
    (
     "pcm prependedconcatenationmark",
     "",
     "",
    ),
    (
     "qmark quotationmark",
     "",
     "",
    ),
    (
     "radical",
     "",
     "",
    ),
    (
     "ri regionalindicator",
     "",
     "",
    ),
    (
     "sterm sentenceterminal",
     "",
     "",
    ),
    (
     "sd softdotted",
     "",
     "",
    ),
    (
     "term terminalpunctuation",
     "",
     "",
    ),
    (
     "uideo unifiedideograph",
     "",
     "",
    ),
    (
     "upper uppercase",
     "",
     "[:upper:]",
    ),
    (
     "vs variationselector",
     "",
     "",
    ),
    (
     "space wspace whitespace \\s",
     "",
     "[\\s] [:space:]",
    ),
    (
     "xidc xidcontinue",
     "",
     "",
    ),
    (
     "xids xidstart",
     "",
     "",
    ),
    (
     "any",
     "",
     "",
    ),
    (
     "assigned",
     "",
     "",
    ),
    (
     "ascii",
     "",
     "[:ascii:]",
    ),
    (
     "alnum",
     "",
     "[:alnum:]",
    ),
    (
     "blank",
     "",
     "[:blank:]",
    ),
    (
     "",
     "graph",
     "",
    ),
    (
     "",
     "",
     "graph [:graph:]",
    ),
    (
     "",
     "print",
     "",
    ),
    (
     "",
     "",
     "print [:print:]",
    ),
    (
     "",
     "",
     "posixpunct [:punct:]",
    ),
    (
     "",
     "word \\w",
     "",
    ),
    (
     "",
     "",
     "word \\w",
    ),
    (
     "",
     "scx=adlm scx=adlam",
     "",
    ),
    (
     "",
     "scx=aghb scx=caucasianalbanian",
     "",
    ),
    (
     "",
     "scx=arab scx=arabic",
     "",
    ),
    (
     "",
     "scx=armn scx=armenian",
     "",
    ),
    (
     "",
     "scx=avst scx=avestan",
     "",
    ),
    (
     "",
     "scx=beng scx=bengali",
     "",
    ),
    (
     "",
     "scx=bopo scx=bopomofo",
     "",
    ),
    (
     "",
     "scx=bugi scx=buginese",
     "",
    ),
    (
     "",
     "scx=buhd scx=buhid",
     "",
    ),
    (
     "",
     "scx=cakm scx=chakma",
     "",
    ),
    (
     "",
     "scx=cari scx=carian",
     "",
    ),
    (
     "",
     "scx=cher scx=cherokee",
     "",
    ),
    (
     "",
     "scx=zyyy scx=common",
     "",
    ),
    (
     "",
     "scx=copt scx=qaac scx=coptic",
     "",
    ),
    (
     "",
     "scx=cpmn scx=cyprominoan",
     "",
    ),
    (
     "",
     "scx=cprt scx=cypriot",
     "",
    ),
    (
     "",
     "scx=cyrl scx=cyrillic",
     "",
    ),
    (
     "",
     "scx=deva scx=devanagari",
     "",
    ),
    (
     "",
     "scx=dogr scx=dogra",
     "",
    ),
    (
     "",
     "scx=dupl scx=duployan",
     "",
    ),
    (
     "",
     "scx=elba scx=elbasan",
     "",
    ),
    (
     "",
     "scx=ethi scx=ethiopic",
     "",
    ),
    (
     "",
     "scx=gara scx=garay",
     "",
    ),
    (
     "",
     "scx=geor scx=georgian",
     "",
    ),
    (
     "",
     "scx=glag scx=glagolitic",
     "",
    ),
    (
     "",
     "scx=gong scx=gunjalagondi",
     "",
    ),
    (
     "",
     "scx=gonm scx=masaramgondi",
     "",
    ),
    (
     "",
     "scx=goth scx=gothic",
     "",
    ),
    (
     "",
     "scx=gran scx=grantha",
     "",
    ),
    (
     "",
     "scx=grek scx=greek",
     "",
    ),
    (
     "",
     "scx=gujr scx=gujarati",
     "",
    ),
    (
     "",
     "scx=gukh scx=gurungkhema",
     "",
    ),
    (
     "",
     "scx=guru scx=gurmukhi",
     "",
    ),
    (
     "",
     "scx=hani scx=han",
     "",
    ),
    (
     "",
     "scx=hang scx=hangul",
     "",
    ),
    (
     "",
     "scx=rohg scx=hanifirohingya",
     "",
    ),
    (
     "",
     "scx=hano scx=hanunoo",
     "",
    ),
    (
     "",
     "scx=hebr scx=hebrew",
     "",
    ),
    (
     "",
     "scx=hira scx=hiragana",
     "",
    ),
    (
     "",
     "scx=hung scx=oldhungarian",
     "",
    ),
    (
     "",
     "scx=qaai scx=zinh scx=inherited",
     "",
    ),
    (
     "",
     "scx=java scx=javanese",
     "",
    ),
    (
     "",
     "scx=kthi scx=kaithi",
     "",
    ),
    (
     "",
     "scx=kali scx=kayahli",
     "",
    ),
    (
     "",
     "scx=kana scx=katakana",
     "",
    ),
    (
     "",
     "scx=knda scx=kannada",
     "",
    ),
    (
     "",
     "scx=khoj scx=khojki",
     "",
    ),
    (
     "",
     "scx=sind scx=khudawadi",
     "",
    ),
    (
     "",
     "scx=latn scx=latin",
     "",
    ),
    (
     "",
     "scx=limb scx=limbu",
     "",
    ),
    (
     "",
     "scx=lina scx=lineara",
     "",
    ),
    (
     "",
     "scx=linb scx=linearb",
     "",
    ),
    (
     "",
     "scx=lisu",
     "",
    ),
    (
     "",
     "scx=lyci scx=lycian",
     "",
    ),
    (
     "",
     "scx=lydi scx=lydian",
     "",
    ),
    (
     "",
     "scx=mahj scx=mahajani",
     "",
    ),
    (
     "",
     "scx=mlym scx=malayalam",
     "",
    ),
    (
     "",
     "scx=mand scx=mandaic",
     "",
    ),
    (
     "",
     "scx=mani scx=manichaean",
     "",
    ),
    (
     "",
     "scx=mero scx=meroitichieroglyphs",
     "",
    ),
    (
     "",
     "scx=modi",
     "",
    ),
    (
     "",
     "scx=mong scx=mongolian",
     "",
    ),
    (
     "",
     "scx=mult scx=multani",
     "",
    ),
    (
     "",
     "scx=mymr scx=myanmar",
     "",
    ),
    (
     "",
     "scx=nand scx=nandinagari",
     "",
    ),
    (
     "",
     "scx=nkoo scx=nko",
     "",
    ),
    (
     "",
     "scx=perm scx=oldpermic",
     "",
    ),
    (
     "",
     "scx=orkh scx=oldturkic",
     "",
    ),
    (
     "",
     "scx=ougr scx=olduyghur",
     "",
    ),
    (
     "",
     "scx=onao scx=olonal",
     "",
    ),
    (
     "",
     "scx=orya scx=oriya",
     "",
    ),
    (
     "",
     "scx=osge scx=osage",
     "",
    ),
    (
     "",
     "scx=phag scx=phagspa",
     "",
    ),
    (
     "",
     "scx=phlp scx=psalterpahlavi",
     "",
    ),
    (
     "",
     "scx=runr scx=runic",
     "",
    ),
    (
     "",
     "scx=samr scx=samaritan",
     "",
    ),
    (
     "",
     "scx=shrd scx=sharada",
     "",
    ),
    (
     "",
     "scx=shaw scx=shavian",
     "",
    ),
    (
     "",
     "scx=sinh scx=sinhala",
     "",
    ),
    (
     "",
     "scx=sogd scx=sogdian",
     "",
    ),
    (
     "",
     "scx=sunu scx=sunuwar",
     "",
    ),
    (
     "",
     "scx=sylo scx=sylotinagri",
     "",
    ),
    (
     "",
     "scx=syrc scx=syriac",
     "",
    ),
    (
     "",
     "scx=tglg scx=tagalog",
     "",
    ),
    (
     "",
     "scx=tagb scx=tagbanwa",
     "",
    ),
    (
     "",
     "scx=tale scx=taile",
     "",
    ),
    (
     "",
     "scx=takr scx=takri",
     "",
    ),
    (
     "",
     "scx=taml scx=tamil",
     "",
    ),
    (
     "",
     "scx=tang scx=tangut",
     "",
    ),
    (
     "",
     "scx=telu scx=telugu",
     "",
    ),
    (
     "",
     "scx=tfng scx=tifinagh",
     "",
    ),
    (
     "",
     "scx=thaa scx=thaana",
     "",
    ),
    (
     "",
     "scx=thai",
     "",
    ),
    (
     "",
     "scx=tibt scx=tibetan",
     "",
    ),
    (
     "",
     "scx=tirh scx=tirhuta",
     "",
    ),
    (
     "",
     "scx=todr scx=todhri",
     "",
    ),
    (
     "",
     "scx=toto",
     "",
    ),
    (
     "",
     "scx=tutg scx=tulutigalari",
     "",
    ),
    (
     "",
     "scx=yezi scx=yezidi",
     "",
    ),
    (
     "",
     "scx=yiii scx=yi",
     "",
    ),
    (
     "",
     "",
     "[\\w] [:word:]",
    ),
)
RANGES: tuple[str, ...] = (
    "0V=2W1D0gM1637010K0jC0c11o1130t17R36GM0W60m11x11b3Dx11n11F0S110B4V7h20X508121M0701241912147132051P13"
    "06321M07020202110532132164016H9309030M0702051A030311E41C670308121M0702051912136332051I92062304220102"
    "22232C3523041151DL4D030N0G190304620311141A6M030N0A051903046252041A03BD030p103063G1Q030I2O09011721360"
    "1085A13Bw13Ta1201050O010N1501070A14Ve20a13d10a10F0Da1c601411vB041701041f1041X1041701041F0v1041Z21W12"
    "Q5s2161zK2v26M8O8KBD0302B+21A5A5E0B5v26h14c29V0C3C312g115Ai13Q5B2+11X20T1B5A5E1Vm1j20c57y12F2+14h11B"
    "7h14sG161c116180101010V1r10F0E160J13090B4Q4n1F21R0D2X1EX1Ei43wKLBKqu11W10zA4j101411u162DO87070707070"
    "707070+3X1Q0v2Bs6Pm20s21d34h10+20s28m10jpS2t18yAJu57k6120108Kx12A5u17c27C5q3AU2k20B3X10t18E1A1d3NS96"
    "161687070y13+31A5azABN3n13WW2=d6kB1g3b17B54Q050102020z3FzD1s161Vg15p10J04350d43+5261616132707C21C0Q0"
    "J020F1EX1x3433j12u20D21k1k1X4T2n1ES3a18U4h14U0b13Ef1+41A5a13a13e17q1AC0F07020B0F07022q1Bt98M98N60g10"
    "9a26110i102211N0e279l1J024X12R41=1u13K1o10248030T133A696W2Vd13C8s12T1R4Q64B7l2f2s1p1Cp16k17A5c12T72l"
    "6V0g10312F3s1i17g1LQb1SJN8k23a18+105CP6A5r10I7d18W30KAI0l1z1701040F0B5x14A5408121M0702050A1213115147"
    "1725AA01110c10A0111040A0272Sy205Te27Ab5s11c1X1b2AA5DIw15A5KRR1F3Nu5y1Z3p2B81118020U021C8Ab281k11BQe2"
    "7p2Cf26Ar5Y1DA590j10E9T2W11M0Ee27020i12102097A56020b102066Ar9P6H0f12Tq21Eo1CxSb3l305Aa6ho2Z3CmX1FM9x"
    "y34dIur6w1bs1vH6V0A3n20A5U169c29A070L4JlDw1b6x2a3h23v16H=15A2Du=57sc1e1Act8407020Z9E1S311D47iCZe2h34"
    "D296A14=w3w75qDh2k11N8q3x1s79d11g27m3Kc2v3KBKBt28Pc4r20d2021112140C01070X20418070S040501270qA1a91+LE"
    "50FlY1V56q670H1702054+1W11l3j12E1A32=9VGw141lEg1r6h131=E704020F0b61Ge1i23A32mOa2h2z1X640R0201110A040"
    "101513101010302011101010101020114070404010A0H43050Hp12j8i13a3BF1F0F0b19k5t1TCi13962D6v4uU3H2D2t33=25"
    "C31EC3u17A5e17U1C32z1qABE1D2A4u16F1B596p40c3bW1Wtf1VwX45+61Yq5Dnf7EkJXj2+GXl1hw44WZ4lgtLm7lm=5",
    "X2P6Pw10AM1U1Y6134l61QW632132106012101J1o21g48b51b19e1tu2b110502g122WLr225Ya2A5g122W2h1=1C1X1b3r8252"
    "b125271010101U2q11610321633254C5216b8040291034601010131540235440q11xp2x32c36331Cb11050oeUj1IRc4j21M3"
    "31z1211017O130rPg1587l2WwJ6C4fW1P6Pbb1l2W3Z14Z1q3A1E16111A1E1611Zs1o1Do1z2LALwu2=1WhL=1WiPq21c211202"
    "1231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O17qv191J65rk2Z2",
    "0V=2W1",
    "j50og15M0W60n10WC1m20hv30y=14Q4n1419lqt10v72Xc40F0Yx8FWZY13lc57cqhO0U=2",
    "f10p10V0zr3010+w10fj20t10F0wJ010U0+X10101010101010m20W1010101010qC010101010101010101010W2010X10bX101"
    "01010i10101010iD0101010103010101021+ep10v60T01010101010101030H01010g50p10V02020",
    "uR1637010K0jC0c11o1130t17R36Ak80y11b3Dx11n11F0S110B4V024j708121M0701241912147132051P1306321M07020202"
    "110532132164016H9309030M0702051A030311E41C670308121M0702051912136332051I9206230422010222232C35230411"
    "51DL4D030N0G190304620311141A6M030N0A051903046252041A03BD030p103063G1Q030I2O090117213601085A13Bw13Ta1"
    "201050O010N1501070A14Ve20a13d10a10F0Da1c601411vB041701041f1041X1041701041F0v1041Z21W12Q5s2161zK2v26M"
    "8O8KBD0302B+21A5A5Q5v26h14c29V0C3C312g115Ai13Q5B2+11X20T1B5A5E1Vm1j20c57y12F2+14h11B7h14sG161c116180"
    "101010V1r10F0E160J13090b30C1R0D2X1EX1Ei43wKLBKqu11W10zA4j101411u162DO87070707070707070+3X1Q0v2Bs6Pm2"
    "0s21d34h10+20s28m10jpS2t18yAJu57k6120108Kx12A5u17c27C5q3AU2k20B3X10t18E1A1d3NS96161687070y13+31A5azA"
    "BN3n13kp81g3b17B54Q050102020z3FzD1s161Vg15p10J04350d4110+5261616132707951C0Q0J020F1EX1x3433j12u20D21"
    "k1k1X4T2n1ES3a18U4h14U0b13Ef1+41A5a13a13e17q1AC0F07020B0F07022q1Bt98M98N60g109a26110i102211N0e279l1J"
    "024X12R41=1u13K1o10248030T133A696W2Vd13C8s12T1R4Q64B7l2f2s1p1Cp16k17A5c12T72l6V0g10312F3s1i17g1LQb1S"
    "JN8k23a18a2911P6A5r10I7d18W30KAI0l1z1701040F0B5x14A5408121M0702050A12131151471725AA01110c10A0111040A"
    "0272Sy205Te27Ab5s11c1X1b2AA5DIw15A5KRR1F3Nu5y1Z3p2B81118020U021C8Ab281k11BQe27p2Cf26Ar5Y1DA590j10E9T"
    "2W11M0Ee27020i12102097A56020b102066Ar9P6H0f12Tq21Eo1CxSb3l305Aa6ho2Z3CsY19xy34dIur6w1bs1vH6V0A3n20A5"
    "U169c29A070L4JlDw1b6x2a3h23v16H=15A2Du=57sc1e1Act8407020Z9E1S311D47iCZe2h34D296A18xw3w75qDh2k11N8q3x"
    "1s79d11Y6Kc2v3KBKBt28Pc4r20d2021112140C01070X20418070S040501270qA1a91+LE50FlY1V56q670H1702054+1W11l3"
    "j12E1A32=9VGw141lEg1r6h131=E704020F0b61Ge1i23A32mOa2h2z1X640R0201110A0401015131010103020111010101010"
    "20114070404010A0H43050Hp12j8i13a3BF1F0F0b19k5t1TCi13962D6v4uU3H2D2t33=25C31EC3u17A5e17U1C32z1qABE1D2"
    "A4u16F1B596p40c3bW1Wtf1VwX45+61Yq5Dnf7EkJXj2+GXl1hw44WZ4mYtL1TW3=3m7lm=1+==11+==11",
    "WWu1=d6WuXSz==12z==1",
    "WOl3p86d8i110111110e2Am1KG0b36252113Z10UQx2Aw1890O3181214h12x18g1N1W1s121H16A1T2u1016212290A1Q022u10"
    "14412230U130B2u10171212K1M512u1016212272A1U0x14321390e14t1016121371B1T2u1016121371B1F0C3t1116121390A"
    "1T2c20451017I1z1026C7Y3028B6f21R0101041n1J115A1Z190a3JN342122633DB10A3=L2oT3S2T1U1W2V90j1210r31Y10s3"
    "B4Bx64v191S20m1Un14l1Gc18C2UCu1Dm1Ju421K406022c6=1mMW1+=22j40W3VgH5f31qkT319W11m21m803040N440p21o1HQ"
    "HD0c17PCi13l1Da10Z2DC081j12o1012215110f1451i7711mvJ0XNFGFjU0Y70r44cq121153e1240b51zH3X24z91l23c2An13"
    "w32r1Ef1021A3j1A70z12a1DG1i10C2m1D8311y2B6020z4BL3t1116212290A12634Z281020131410E1o2HN0n2Jh7628R1o2G"
    "g3Cb3EW8Er7511231011j462630S9e1613809Ak1FrC717o2L1Dw3530111610Y241114xA39110m1634N0bd506EecBHWk24x16"
    "uW101s173n20B1hbJ1Xp4j12M+G4358726U3q42xz1s14n180E0M41Emg161G261114a30W56tB0z13yF3+71WN6j36rzbOl7",
    "=20=+71J0+kt11O2l70",
    "",
    "a10z33fd10x30oF1oF170r70d80bI0xi20ac2W1txX10ZkL0i30w40x6131s=73+um10mj20",
    "j10yg10p10Xo30bW10fW25Xm3020V140S0+D0J0l30mip11b10A0f50Wp30+90",
    "m19cn19c49c69yC9s39s39s39s39s39s39s39s39s39W39s39c29s89c29cw19c19i99W49c5969s59s29c4969ckY19cL9c19c6"
    "9M9s29sC9suK9ci19ca2969yO9W49y19m49s89sA9s39sB9c396Ji29cD9c39sK9s29s79c29cD9skG9cf29s29c49sG9sxN9qs2"
    "n1Wg29cD9sF9t79rQ9sq49",
    "ea11qn50+m1312hiX12",
    "x50zw7030S0ek30104020F030",
    "h50ix702120P0ek30104020F030",
    "X2P6Pl10A0405M1U1fE4BE47010X441123106012101J1o21g48b51b1206e1d2Q43j1g1Z111Y310F171A220G01TTu2B0OW191"
    "405L409030NO7A5N15Hf1w1r130I079FF47212L16103330G0D112E1A085412L16111111V310J2G8121L16111430I0F1N0B72"
    "12L16111430U112F0H015321331101131323BM0q17121M1F30Q22021U047121M191430V111F1H8121e120G05282O55H3N181"
    "026w1l111C6w1110141N101911902410L3W10=171Z1R4p3g1K0G5433031724CC0Hb110502g11iA132610132e1132W1132610"
    "132E1u1132Y2b1FGr2253hJ2G1P5g2677HDIEHEC12Fp1Z1040Z2u2742X1105b2AUn1T24Bh14Ps1M9q1o20z2k1H7s1TD1Ah1Q"
    "Z1f12AZ12A5g122f131511305=5W2r8252b125271010101U2q11610321633254C5216q30D0GCb3040291034601010131A235"
    "440q11xp2a76331Cb110502t170GM9616161616161616m20rE1g14514r2621v2135g11z2HVm1FWG=j6W2iqLZ2j12i83FA1Kk"
    "1GU2b2n182c32Y2211017LF12131MTp1En1+153011BRAMPS7k1S0G419A41e1N217KM303n11031242010O22A72C5252596161"
    "g11D6o3TZzACM4m1ae8jB2f3c16C450191C141011111h3X1gBI=12r1e1Bq341c4a1P6PBu235252522Z1B1P1I111E2DY1w3bC"
    "S3m1l1VDJ176b1AT2Z147m1z4IZ14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAPc2t"
    "161W20F3121Sg1S3SZ171RRr1ALAIDHk3e2t1o1Do1DZ1c1R9Mw7f161G2x1SA08Lg1Hk1KRMCq1v1120Di1W1OQZ1T0208Y130C"
    "l1E3L010Z1H1OJ1=1610131E197k1c17212L16111430I0C4U910201b110P010i1q1I3K2Ul1K110u5k1f13a1l1K0x1g1D0d2Q"
    "b16v5h1q3=1V72027111NF010+272c1G010S0Ad170L0Bj1J0Ie2d6W1V81a1H0n1Tm36111b1L0P5111VE0dAIF01C1X1y30l2v"
    "Sc7Z6io2W3FlX1H5Pwy35cIvr6TYt1uH7UHk2HTIl1G3VK5ImDi1p6=1W4g250Y2CW2110St=58rc1f19dt8316111Y9F0T220E3"
    "8hCae2g35C3879cx5q21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O17qv1U65b8z1o4i1A6G0XA"
    "TIh1aFRa7T20lF613111E1a6x1Z270qb131Q1110201913101060401010121110201010101011102316131310191G52141Gag"
    "4=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "kt52lp2Y123+p30P8E2hrT9moMq1iE080c44gX8k3",
    "eX80",
    "X3Pw10f1N1710101010101010101010101010101010101010101010101010101011101010101010101110101010101010101"
    "0101010101010101010101010101020101220102031402032202010102011102030102122602020101010101010101110101"
    "01010101010112010301010101010101010101010101010101010101010101010101010101016202110401010101a21QX601"
    "03032I0RY11132101010101010101010101014102021p1l11010101010101010101010101010101010901010101010101010"
    "1010101010101010101010101010101010102010101010101110101010101010101010101010101010101010101010101010"
    "1010101010101010101010101010101010101010101010m1e1dw2g122uN5Ya2810r3h1=1C1X1c30101010101010101010101"
    "0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101010181010101010101010101010101010101010101010101010101010101010101010101010101"
    "010101010101010101010101885A78785A7878D2787878411603211832187A211o803130R04040218340r10hr2l110311010"
    "1040111550101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "10101011701040Cb11050peU010101010101010101010101010101010101010101010J010101010101010101010101010d40"
    "1010101010121010101010101010101010101010101010101010101010101010101010101017101020101010104010201210"
    "101010101010101010505010101010101010401020301010101010Q030rPg1587l2WwJ6C4fX1Pjc1d1e4Z1x4A1E1611Zu1o1"
    "z3Lwv2VWiLVwiPPQ61HQPQ310161AQPQPQPQPQPQPQPQPQRSO15QO15QO15QO15QO1510qv191J65tl2X1",
    "mLH4BE47010b4050+E0c70a51j8140V09030W50d50qc10=30rH0ws10h30ZJ0mE5k5+1D0Y1a1nL0D0GC=+21n70=50rE0h1450"
    "X31z22suR0Yd15k80o30S1v38m20N0f3231rE0M0f40i30L1d3390cWL0j11W=151f118pi10W10mkN3yF2e11cHCW2110iWG316"
    "11nXCz1f66jT0=Y10",
    "g50F0W8043m60xPQ43j1V19Z111Y310O1A220G01TTu2B0OW1LLg1O7A5N15He1x1r130I079GE47212L16103330G0D112E1A08"
    "5412L16111111V310J2G8121L16111430I0F1N0B7212L16111430U112F0H015321331101131323BM0q17121M1F30Q22021U0"
    "47121M191430V111F1H8121e120G05282O55H3N181026w1l111C5x1110141N1019119024N3W10=171Z1R4p3g1K0G54330317"
    "24CC0n3eA132610132e1132W1132610132E1u1132Y2b1Fn3hJ2G1P5g2677HDIEHEC12Fp1e10Z2Y11q1742X1105b2AUn1T24B"
    "h14Ps1M9q1m5k1H7s1TD1Ah1QZ1f12ATn33151130wX13t=2t1OM9616161616161616dH0r104r2801v2405g11z2HVm1FWG=j6"
    "W2qmK1sZ1Z2d18h84FA1Y20n1b2f50d303612131MTp1En1+153011BRAMPS7k1j1428A41e1N217KF15303n11031242010O13A"
    "70E525259616n4Y1TZzACM4m1ae8jB2f3Z20191C141011111h3X1gBI=12r1e1Bq341c4f391i12U35252522Z1B1P1I111E2DY"
    "1w3bCS3m1l1VDJ176b1AT2Z147W4j2Y3d18p1y2p1Cs99LA7u45201h111302MAM9UX2I11ALAPc2t161W20F3121Sg1S3SZ171R"
    "Rr1ALAIDHk3e2t5Z1c1310m9f161G2x1SA08Lg1Hk1KRMCq1v1120Di1W1OQZ1T0208Y130Cl1E3L010Z1H1OJ1=1610131E197k"
    "1c17212L16111430I0C4U910201b110P010i1q1I3K2Ul1K110u5k1f13a1l1K0x1g1D0d2Qb16v5h1p672027111NF010+272c1"
    "G010S0Ad170L0Bj1J0Ie2d6W1V81a1H0n1Tm36111b1L0P5111VE0dAIF01C1X1y30l2vSc7Z6io2W3FlX1H5Pwy35cIvr6TYt1u"
    "H7UHk2HTIl1p1K5IpDd1rCg250l5t=58rc1f19tt8Y9F0T220E38hCae2g35C3879mp80rFi1X10XATIh1aFQb7T20lF613111E1"
    "a6xf131Q1110201913101060401010121110201010101011102316131310191G52141Gag4=sf1W1vX46z62Xq5Emf7FjJYj2z"
    "GYl1gw45=Y4",
    "bE02020c10ri778787C0F0l10",
    "X2Pb3M16X1010101010101010101010101010101010101010101010101010101020101010101010102010101010101010101"
    "0101010101010101010101010101110103110111223111231111010111020111210113070202020101010101010102010101"
    "0101010101020201210101010101010101010101010101010101010101010101010101010107111201310101010X90103080"
    "601210111G18Z10223010101010101010101010105020112o1m1010101010101010101010101010101010901010101010101"
    "0101010101010101010101010101010101010101110101010101020101010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010101010101010102b1fw2b11050oMr2pa206g122WA010101010101010101010101"
    "0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101010901010101010101010101010101010101010101010101010101010101010101010101010101"
    "010101010101010101010109785A78785B010101087e23C3C3C4B3c8040322220346010101323A150z10yp2l1m1012201010"
    "1310208210101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "101010801040jgU010101010101010101010101010101010101010101010J010101010101010101010101010d40101010101"
    "01030101010101010101010101010101010101010101010101010101010101010A0101110101010401020103010101010101"
    "01010101414101010101010101310113050101010O0hvLPbc1d1e4Z1y4A1E1611gt1o1z4Lwv2VWiLVWjPPQPQPQ0112021231"
    "7QPQ1132716R113141036RPQPQPQPQPQPUOX1OX1OX1OX1OX10rf4X1",
    "h10G2z1010j1040b10V0+N0lG2xn60D0d12D2h40d1460a245140202070V12010Vh8W11w20UOe15rE090s17l30mA42UAFW8Y4"
    "M+14V2X8m1K25y+p10uP012a50G2z1010Z4063Xj31nfo10P0V0P0V0P0V0P0V0P0iv51",
    "Ze20t10228311o11w126121A0h10w12Y20w128011r11w10106121A0c31113212A0f12z13z11w1014211191S0E1w125212A0g"
    "11h2267I1gA1=10h51406021P1A226L12520A2up10U0X407711wA3224115W71w1010901185n40m10501411z10U04120y1022"
    "1031m1781h50L0sv41p=T120u21o1Fk41l10m114122k3121O0j1010j302150j71111110pWP010=30j1241p30O1x10m1291D0"
    "z223110g52V1w1113212290A1q227020131110b328130g32601320j726320n328110j301160d301140b8290t7511402010k4"
    "28340q20T1+10tC0E0g307020r644110+A1C0m118110elG2an3s1e31phO165",
    "WOl3p84f8i110111110e2Am1KG0b36252113Z10UQx2Aw1890O3181214h12x18g1N1Vt1010474036A1T0w104380K1Q021v104"
    "1412230U130B1v10441140K1M510w1020138071B1U0z10C0o1030t1012521371B1T0w10206051K1S1v114380K1T0e207210w"
    "2026C7Y3028B6f21R01010t1D14115A1Z190c33151121P142G3D02160F0=L2oT2T1U1U1W2116802A90j1210r31Y10s324190"
    "62x6120w10161010276920m1D1Fn13m10141050e18C1W132112u10113012w1721u421C16406031c6=1mMC403B+=22j40W3Vg"
    "H3h31qkT049W11m21m803040P150t41QHD0c17PAk12m102321d10Z252121C080l10p1012215110g1180k702040mvJ0XNFGFj"
    "U0Y70r44cq121153e1240b51zH3X24z91l23c2An13x30s1Ef1021A2n132170z12a1417+10C1q18A320=2220116020z4037L1"
    "v1130b1634c25D01010E1r272210N0q25104111k736111R1r272011g30102510b30102314Z8811W811040m432140W19e1523"
    "809522k1C11sC61510o2L261111w3530111610e213010xA1B1q145010N0bd506EecBB32Wk24x16uW10=13n20ubJ1Xp4j12MW"
    "H2H726U3q42xz1s14n180E0M41Emg161G261114a30W56tB0z13yF3+71WN6j36rzbOl7",
    "+2010d20604030fG3CD56101Gr30E1Ye10qv5012B2D2D2D1ya41ZpTM91d31mU0E1cYKGxR010Y50tWz14",
    "m19u315022Xj19c49c69yC9s3945i39s39s3925k3Cp3986d39e367Ij39W39s39c2Ji89c29lMJnR2l7969M9i99W4Ab5969s59"
    "s29c4969sW103569c6o124sMx1k2LsJTfh10fO0P8E2tA3g49U71EW19d1EWxS9y59WA5w49c19c69M9s29sC9suK9jFi1Cu1H1r"
    "AQa13T080c44g69kT7P6d18h24M5W512F2j1W28q11U2h24e37O7f16gA5m1969s8U+49g13m36c4TW49y19m497Jx79sA9s39sB"
    "9c396Ji2BaDIz29sK9s2SZ79c29cD9c3KhX1k3XcF9cf29s29c4916kG9c8MvoN9ck1JCJi3OrY1n1Wg29cD9sF9t79iM8W49tOw"
    "11213i2i11EYUCZt29",
    "o515022rf25uB5u32b46v66H8nD9rX1JpZ19WF0rq103569c6Ff10sMx1k2LsJTfh10qa13g49U71EW19d1EmhT5ncMi1X23H1rA"
    "Qa13qf17P6d18h24M5W512F2j1W28q11U2h24e37O7f16gA5WBU+49g13m36c4JxBJbg11kD8dRIpQKcyI6+OMfXPJCJi3Okg58X"
    "Tw11213i2i11EYUC",
    "e10o10V0+r3010+w10+h2030c10t10F0wJ010U0+X10101010101010m20W1010101010qC010101010101010101010W2010X10"
    "bX10101010P0I0101010iD0101010103010101020Xfp10t60T01010101010101030H01010g50o10V03020",
    "X1212201011A131R0a2050E170+L080oE5f10s102020i11K111D012g23c30h1Df72s1EV0b81A0i40u30v30cC0C0lB0w20A1e"
    "5E10m30g2441l35h50aJ8bO0y32d21z4212b1513v91u61W4615W51A6S2y33x14+11W27B0YQ1878823223A1019wa3311m30l4"
    "1422028111021A41923101C22iD2v10z50YWT1j82Z30A0p35yB3s21e1210n11l10X3CG1y33+31G1v70anK620M0K123321372"
    "6011r4212201011A131R0a1021wC2yK0m10+C0dN0d60V0m88c10m36Y26v23uT4i13z56j3113+33m11l2340D012u25h30g911"
    "1o34A110e30w7Mf32SCi20Y42y70e82x40y27p2214z29t60=24g11bK1g2Cl50mZ14yx21xpE1b40X2480eH2d93dA0ybJ0dl74"
    "px20+Q1",
    "c50204010nU0g81=31k60A0J1t70ZG0rB0Y4510a40l60f10dC2F01225K01010b47151153b61mN9pM0oM0z4X1XB998Zi11131"
    "1A0116510101040B1E01110w1194231111161U21101Ui874J262m21TPd16d2MAn2j2Ms5181r18k31t7i1h1W2=7WGl1L16c12"
    "V1e3b75bB1k1P1u2Cr6QF40D1C0L161mA149W1b190GUBT80FVAc1F=9Wk6=1mqLs1XR3A110zH2csKF=30j12aF03041D1v98v1"
    "G221C30l1i1wp11lI0sZ30ra274GgwI350sgK0Zx3l7GpDy4p3y1r7Ac12x152M17T4y1LX230w5s2fb1=Ft13o171D11es10yw2"
    "0X40nMh14Z3CE2E1E1a1NW5u1SDh14871E5w4w75tM4G3C3s34+26B40FB4t1896d18T2B41+1pACD2C395t17E2A687o41x2",
    "X121513A131Q210R010Z105030A13030+L080oE5f11p10102020i11K111D012g23c30h1Df72s1EV0b81A0i40u30v30cC0C0l"
    "B0w20A1e5E10b13d20g2441l35h50aJ8t40jJ0i11k22d21z4212b1Av91u61W4615W51A6S2y33x14+11W27B0yPN8J1C1BU1E1"
    "vJ3T1zX1Dl21V9pCL=13W11xN311m30l4k11V2BZD2492BG0C0Y30w20YWT1j82Z30A0p35yB3s21e1210n11l10X3CG1y33+31G"
    "1v70ogK1m69MY11D104011r421513A131Q210R01016wC2yK0m10+C0dN0d60V0m88c10m36Y26v23nE0+90d54i13z56j3113+3"
    "3m11l2340D012u25h30g9111o34A110e30w7Mf32SCi20Y42y70e82x40y27p2214z29t60=24g11bK1g2Cl50mZ14yx21xpE1b4"
    "0X2480eH2d93dA0ybJ0dl74px20+Q1",
    "fX80",
    "a1060G2V010R010Z141120132030U0V0gE3CD56101Gr30E1m30h40g82s322021k60A0J1t7071e40fB161r70+30Y47a40l60f"
    "10b60X62F01225K01010b47151153b61mN9pM0jB0aB0z4X1XB998WY1012B2D2D2D1b20D0d12D2JW1=111311A012551010104"
    "0B1445310w114tB4S2+7MAn2j2MdJi1m12UAoCM+14V2rB2V1e3b75bB1k1P1u2Cr6QF40D1C0L161x21p7149W1b190GUBT80FV"
    "Ac1F=9Wk6=1mqLs1vHM91d31z43A3zH2X70E1zzJ0e4GzBF=30i13Y301220w4060G2V010R010X4616D1v98v1G221C30l1i1wp"
    "11lI0bM1lj20ra2SgwI350sgK0Zx3l7GpDy4p3y1r7Ac12x152M17T4y1LX230w5s2gR0P0V0P0V0P0V0P0V0P0y1=Ft13o171D1"
    "1es10lD0ij2030z30XE1k8h14Z3CE2E1E1a1NW5u1SDh14871E5w4tU4G3C3s34+26B40FB4t1896d18T2B41+1pACD2C395t17E"
    "2A687o41x2",
    "W10=30=k50=h2AT150l10Wz30",
    "W10=30=k50=h2Aa10l10Wz30",
    "Wew3h24941",
    "mfX2p1B0",
    "Wub2Q2E4M",
    "WWn2cI",
    "Wm14151D121V19BP1h31X1m2l1m7U115g21Smoy1o3GgB2l22r170W1Fm341c4Zx3UZ22t13Wut131Q111020191310106040101"
    "0121110201010101011102316131310191G52141Gq11",
    "nf1b12n122Ziz14",
    "WYY2L18",
    "WuY2r136",
    "Wu6i21n1",
    "Wrf1t2eem1uH",
    "msw2T25",
    "W+6p183",
    "Wi2317212L1610332821238041142O",
    "WWd281i11DAS",
    "gN1vmBg1m3V",
    "WWa2j24Z190",
    "WWA=7",
    "Wm6R21",
    "Ww5J",
    "Wea2q11H",
    "WW5=JmHb2wjW2F",
    "WrW2m1",
    "Wmg1s19D2923",
    "Wz4r225oxb1l2",
    "mzZ2R",
    "0W2Q5Qk11E14N0V0XEc1542Jq30906010zJ060E030W10y40aG0X41vc10rC3Y90ll12d21h6110jc10D073151220bOB2s21A3A"
    "1EHW1=1b112251Q1Gf124vKMAL=SW8pJ2V1e3WGz2oCK101OF743x2130w21p4FW1b190m1=1Vm2l10u2d5Wk6=1WeMX1c32b59q"
    "70W50hC0E1okK1m69MY11I13p401VQ5QAA0j11W2616A4Y824i138m2Cp1i1a7Qajk13yw3v76pDy4p3y1r7Ac12z13G817T4y1r"
    "6JCJCs29Od4q21c2112021231B10161W21327161R131410361pA2Z92n1nZ5Z2i2y1YMh14Z3CE2E1E1a1Aj5u1P11Dh14871E5"
    "w4tU4G3C3s34+26B40FB4t1896d18T2B41+1pACD2C395t17E2A687o41b3dWXO0U=2",
    "YVDmaAp356",
    "myh2Y3",
    "WWY25201h1113020",
    "WWe2vSc3k314BZ6",
    "WW1a42e5mw5AW50i20dZ4VWYU=2kyL1Wmu1z1X10",
    "WWX2l2",
    "We2m24E2PWxd1VWmS9",
    "Wec262027111T112B99",
    "WWc2x1",
    "WWl3g35C387923",
    "WWi2rY1Awy3",
    "WeX2d1",
    "W=Z2M",
    "Wm4e2132610132e1132W1132610132E1u1132Y22V3Pcl6M9616161616161616YfV525259616nbl2613111E",
    "WgZ2b13S81",
    "Wb4b110502g113my2g122WY4b11050",
    "WWB=2Wzi361G261114",
    "Whd25111a1111579",
    "Wed26111h130111889",
    "mvW2Q",
    "Wua2317212L1611142821222060562634",
    "mR3122310401012101J1+1EFcf64o1444q20WAL252b125271010101U2q11E1D251I2218d90+nY10wkLk2H0=Yq1b2",
    "Xq2218121L16111429121220F32B76",
    "Weu2v1",
    "Xm2215412L16111111201441223073107G",
    "WqBP1u2Cr6l1010P8E3aU=j6W2=lKWeMjB2f3eeT1C1kWa1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "We4=7kn71X8z2n3UX2UXtTSZKZzACM4m1az9U35252522",
    "WeZ2d189",
    "Wv5K",
    "WdY2I1154",
    "ni1s18Q45efz1P1410111119",
    "XYCr262Xx=2+8I0T2jbG0",
    "Wuw2b2A9161K5I",
    "Weu3i13D2941",
    "WaZ2o1Do175",
    "WOl3r81aEAQ0WN3xg4UXG21C16406031c6=1iG1Y6W1vv33h31bhp1FGDlU0Y70wY40a+k1j12MWH2H726U3owhOl7",
    "WxY2I57",
    "WwY2L27",
    "WuW2Z192",
    "Wig1j22941",
    "Waa2Y2A0",
    "Weg1j110",
    "XbCv222m7Fm6k11t2kWp191i1oYi13161110=82o10E3",
    "Wa3C121M19142812137161132912",
    "Wud2G1e13S",
    "WmY231157121S224978",
    "a=x20xu6rEf10",
    "Wy5z22969cFV",
    "Wma2H1k1",
    "mra2w159",
    "Wgx2v1",
    "Wn6+11S2A696D",
    "Xq3110141N101M2410161923",
    "X2P6Pl10F05M1U1WEd14xm6b16m1535C1b2X2=7nB0D0GCj4160R0He1ts2VYrUb33Y2211017LDmPg11813syJ6wW1P6PbX251f"
    "118bwr1U65",
    "WW7t13E32",
    "We6U1B4B403B",
    "WmX2s99LA7",
    "WWW2B1P1I111E2DY1w3",
    "mcf1l1mrU0",
    "WqW2S",
    "WfY2P50",
    "mga2c1",
    "Wtd2O",
    "We3C121o112154F2P",
    "WY2R20",
    "WsY2c14B",
    "mZd2V2L1D",
    "Wox2w2",
    "Wtg1Mf6j129",
    "WWw3a62F",
    "WjY2N4J2j1",
    "WiY2V",
    "Wux2g24u17G",
    "Wmb2a2B9",
    "WW61201J6u27g1rj=1C",
    "Wow2U1941",
    "Wqa2610131E1A",
    "WW4=4Wgc1UX3VmYRJ",
    "WaY2U88",
    "mcv3f1",
    "Wjc272j12A",
    "WqY2V",
    "WWb2x214",
    "Wi6h14P6A31",
    "W+1w122",
    "X=x20kiGhC",
    "Wq5S",
    "mY7l1",
    "mwW2g1",
    "WzW2Z14D",
    "WuZ2d1",
    "WpY2V",
    "WWZ2e2",
    "mxZ2P",
    "mkv3g140",
    "Xu2217212L1611142821227241142H",
    "mbX2Z14Z1",
    "WaX2T29",
    "WZY2V",
    "Wsc2u1",
    "WYg1t1",
    "WyY2H73C6",
    "WeY2R30",
    "mfg1Z1B0",
    "Wr5g23A",
    "WW2j12E",
    "Wag1b28B",
    "WWs3hKF41E",
    "Wia2=2",
    "mYX2l1",
    "Wib2r12b1",
    "Xi321H3N181026304510176922i=W2J",
    "mvZ2f1",
    "mca2O79",
    "moc2o2",
    "Wy6=1W87",
    "W+c2X1E9",
    "WWg1i1",
    "Wu1D1x122m8A",
    "Wu5L90",
    "Wx5C1211",
    "mg6T24",
    "Wqg1Y2O4",
    "Wqb2v169",
    "Yy2115321331101131323B4432132060EKb+a2n1D0",
    "W=x20Vt=58=NWG8",
    "mpw2k219",
    "WW3C121M1F281213711220232978",
    "mfBt171E0",
    "Wy1n1",
    "Xm3v15R",
    "Wu3d21Z14c11Z11E1641",
    "Wab2d289",
    "WkX2p1",
    "mqu3U",
    "Wya2910201b119102013191181",
    "WyW2T10",
    "uR1637010K0jC0c11o1130t17R36Ak80y11b3Dx11n11F0S110B4V024j708121M0701241912147132051P1306321M07020202"
    "110532132164016H9309030M0702051A030311E41C670308121M0702051912136332051I9206230422010222232C35230411"
    "51DL4D030N0G190304620311141A6M030N0A051903046252041A03BD030p103063G1Q030I2O090117213601085A13Bw13Ta1"
    "201050O010N1501070A14Ve20a13d10a10F0Da1c601411vB041701041f1041X1041701041F0v1041Z21W12Q5s2161zK2v26M"
    "8O8KBD0302B+21A5A5Q5v26h14c29V0C3C312g115Ai13Q5B2+11X20T1B5A5E1Vm1j20c57y12F2+14h11B7h14sG161c116180"
    "101010V1r10F0E160J13090b30C1R0D2X1EX1Ei43wKLBKqu11W10zA4j101411u162DO87070707070707070+3X1Q0v2Bs6Pm2"
    "0s21d34h10+20s28m10jpS2t18yAJu57k6120108Kx12A5u17c27C5q3AU2k20B3X10t18E1A1d3NS96161687070y13+31A5azA"
    "BN3n13WW2=d6kB1g3b17B54Q050102020z3FzD1s161Vg15p10J04350d4110+5261616132707951C0Q0J020F1EX1x3433j12u"
    "20D21k1k1X4T2n1ES3a18U4h14U0b13Ef1+41A5a13a13e17q1AC0F07020B0F07022q1Bt98M98N60g109a26110i102211N0e2"
    "79l1J024X12R41=1u13K1o10248030T133A696W2Vd13C8s12T1R4Q64B7l2f2s1p1Cp16k17A5c12T72l6V0g10312F3s1i17g1"
    "LQb1SJN8k23a18a2911P6A5r10I7d18W30KAI0l1z1701040F0B5x14A5408121M0702050A12131151471725AA01110c10A011"
    "1040A0272Sy205Te27Ab5s11c1X1b2AA5DIw15A5KRR1F3Nu5y1Z3p2B81118020U021C8Ab281k11BQe27p2Cf26Ar5Y1DA590j"
    "10E9T2W11M0Ee27020i12102097A56020b102066Ar9P6H0f12Tq21Eo1CxSb3l305Aa6ho2Z3CsY19xy34dIur6w1bs1vH6V0A3"
    "n20A5U169c29A070L4JlDw1b6x2a3h23v16H=15A2Du=57sc1e1Act8407020Z9E1S311D47iCZe2h34D296A18xw3w75qDh2k11"
    "N8q3x1s79d11Y6Kc2v3KBKBt28Pc4r20d2021112140C01070X20418070S040501270qA1a91+LE50FlY1V56q670H1702054+1"
    "W11l3j12E1A32=9VGw141lEg1r6h131=E704020F0b61Ge1i23A32mOa2h2z1X640R0201110A04010151310101030201110101"
    "0101020114070404010A0H43050Hp12j8i13a3BF1F0F0b19k5t1TCi13962D6v4uU3H2D2t33=25C31EC3u17A5e17U1C32z1qA"
    "BE1D2A4u16F1B596p40c3bW1Wtf1VwX45+61Yq5Dnf7EkJXj2+GXl1hw44WZ4mYtL1TW3=3m7lm=5",
    "Wef1h9",
    "mhX2A1E16111A1E1611",
    "Wsu3v150",
    "Wbc2o2C0",
    "WqZ2f11221",
    "WWe1ia13s1",
    "Wmc2d2",
    "m1975Q5",
    "X2P6Pl10A0405M1U1fE4BE47010s20TH1123106012101J1o21g48b51b1206e1d1D101111108Q43TA5t116Eb3174742A220Gl"
    "1Da3OW191405N2IJO7A5N15808f1AB366h21F124EDI17212L16103337212110804114C1A04215412L1611111144412140731"
    "0H5B218121L16111438121130F3L34217212L161114372121914114D0G115321331101131323B4432123060e1C121M1F3712"
    "1281122023S317121M1914371212816113D2CC121e1271212105374M5121H3N181026851017I1Dv15660p1110141N101I122"
    "41060E3W10=171Z14I4F1Z1Z2s11024G=1A32b110502g11iA132610132e1132W1132610132E1u1132Y2b1FGr2253hJ2G1P5g"
    "23A7JBKCJCC1211Cp12IE040Z2u27g15b2AU1B48NT24Bh14Ps1R4+12Jo10N1B2n1p11E17p1f123Ah11AEs1M2AZ12A5g122f1"
    "31511305=5JX1Br8252b125271010101U2q11610321633254C5216q30D0GCb3040291034601010131A235440He1jPp1su1a7"
    "6331Cb110502t170GM96161616161616161Vl10rE2P874244r2621v2135g11z2HVm1FWG=j6W2iqLZ2j12i83FA1Kk1573m3d1"
    "82c32Y2211017LJ1W1Op1CZ210i153012AW15Y1DS3o11BF0GFA41s19DIM3a21010O22F23B5252596161g11D6w3LZzACM4m1a"
    "e8jB2f3c16C45B1C141011111h3X1gBI=12r1e1Bq341c4a1P6PBu235252522Z1B1P1I111E2DY1w3b2q1h8S3m1l1VDT5g15T2"
    "Z14714g1z4IZ14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAPc2t161W231157121Sg"
    "1S3SZ171RRr1ALAIDHk3e2t1o1Do1Dd1Y1R305Mw7f11131G2t103SA08Lg1Hk1KRM9b2h14Au190DONo1H38Y1309=11391A010"
    "Z1H1X12063+1610131E197u1N317212L161114372121306056S910201b119102013113010i1X21213K2UX22110u5r126P5Y1"
    "+11030x1r120d2Q2DL6v5u1d3=1V72027111T112123z272j1251011Ro129Hd250Ie2d6W1V81i11610n1T2L1Df26111h13011"
    "121021O5111a1111310dAM9G1e132l30l2vSc3k3HZ6io2W3FlX1H5Pwy35cIvr6k1ns1uH7UHk2HTIl1G3VK5ImDi1p6=1W4g24"
    "u17GW2110C1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387940Xx5q21c2112021231B10161W21327161R131410361p"
    "A2O1O1U1O1U1O1U1O1U1O17qv1U65r661G2611145z1X10m3i1A6G0XATIh1aFRa7T20lF613111E1a6x1Z23030qb131Q111020"
    "1913101060401010121110201010101011102316131310191G52141GqJP6P6Psp3=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw4"
    "5=Y4",
    "ym10nl61Q4t13",
    "e11I010S010T010j10F0+p33zw11yi21A1s11E1n50W633530313313101048501H539110171V2350912I5194214N2F83K171z"
    "X1Dg2023111253523DpCL251D807530441124401221A521CI13201020135162O1B14311214g1271d150103452403410W80ZG"
    "33111E129h17hD927znp1551Y51I010S010T0101111txr10v10v10v10v10",
    "d1060B0Z1010d2040104021tF=541409110x76l6050n1i110111110i10B5AA10Z10AKG0b371913X1010UQx2Aw1A4020ONh12"
    "i107158f1v1t1010474036A1D0F0w104380K1Q021v1041412230U130B1v10441140K1M510w1020138071B1U0z10C0o1030t1"
    "012521371B1T0w10206051K1S1v114380K1T0e207210w2026B8Y30289016f21R01010t1D14115A1Z190c33151121P142G3D0"
    "2160F0+20WJ2oT2T1U1U1W2116802A3050j14p10X21Y10s32419062x6120w10161010276920d108Un13m10141050e18C1W13"
    "2112u10113012w1721W25o221C16406031o1+1D0Y1a3zD012B2D2D2D1C481A02024n141910D0GCp1W1hy21n32z30F0W3Vl10"
    "rE0a133450z25z22suR0Yd15k80Y331910S3m21EX1k20N2d3231803040P150t41QHD0c17PAk12m102321H0L1Y252121C080Z"
    "10B0p1012215110R0E15110a3492v302040mvJ0p4GzHF30CFY1020f507060B0Z1010l10j11Z20L2XG0Y70r44bW151f118cI2"
    "1153e1240b51zH3c10Q410x91l23c2An13x30s1Ef1021A2n13212040A0o12a1417+10C1q18A320=2220116020z4037L1v113"
    "0b1634c25D01010E1r272210N0q25104111k736111R1r272011g30102510b30102314Z8811W811040m432140W19e15238095"
    "22k1C11sC61510o2L261111w3530111610e213010xA1B1q145010N0rc5G6EecBB32Wk24x1693yF2e11YF0=1GW2111hWG3161"
    "1+a3113yo4j12MWH29F26U3q42xz1s14n180E0M41Emg161G2611145z1X10W5DmB0z13xF4+71WN6j37lr24XWZO0U=2W4l7",
    "X2P6Pl10A0405M1U1Y6134l61Z171U4W30g132123106012101J1o21g48b51b19e1tu2b110502g113WLr225Ya2A5g122W2=5W"
    "2r8252b125271010101U2q11610321633254C5216q30D0GCb3040291034601010131540235440HV31nPp1su1a76331Cb1105"
    "0oeUj1ITa4b3331z1211017L412rPg11D6l2WwJ6C4fW1P6Pbb1l2W3Z14Z1q3A1E16111A1E1611ZE0221f118bc1o1Do1z2LAL"
    "wu2=1WhL=1WiPq21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O17qv191J65b8z1oa2Z2i=1P6P6"
    "P",
    "X2Pw20AM17W10101010101010101010101010101010101010101010101010101010201010101010101011101010101010101"
    "0101010101010101010101010101011101010111011122311123111101011102011121011307111111010101010101010201"
    "01010101010101021101210101010101010101010101010101010101010101010101010101010107111201310101010s70g1"
    "0103080601210111G18M0C231101010101010101010101010112110112o1m101010101010101010101010101010101090101"
    "0101010101010101010101010101010101010101010101010111010101010102010101010101010101010101010101010101"
    "010101010101010101010101010101010101010101010101010101010102b1m10uu2b11050gP5Ya296g122WA010101010101"
    "0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101010101010101010512010101010101010101010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010109785A78785B010101087Gl122255225B3C45225f903160j1FJ0oPPmv1l1m101"
    "2201010131020821010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010801040jgU010101010101010101010101010101010101010101010J010101010101010101010101010d4010"
    "101010101030101010101010101010101010101010101010101010101010101010101010A010111010101040102010301010"
    "101010101010101414101010101010101310113050101010O0wRl2WwJ6C4fW1Pbc1d1e4Z1y4A1E1611gt1o1z4Lwv2VWiLVWr"
    "UX1",
    "X2P6Pw10AM1U1=11p21R2D21104y21H6Q1110113113142011207020113550A1c50g132132106012101J1k13W1141a48b51b1"
    "Ac1uu2b110502g122WLr225Ya2A5g122v5030G0n3x4201r3252b125271010101U2q11610321633254C5216f903160R0HV31n"
    "Pp1su1m311117b37331Cb11050oeUj1IRc4D2z19E32241O1T2146O1yQ0Sl2WwJ6C4fW1P6Pbb1l2W3Z14Z1q3A1E16111A1E16"
    "11Zs1o1Do1z2LALwu2=1WhL=1WqUZ2",
    "X2Pb3M16X1010101010101010101010101010101010101010101010101010101020101010101010102010101010101010101"
    "0101010101010101010101010101110103110111223111231111010111020111210113071111110101010101010102010101"
    "0101010101021101210101010101010101010101010101010101010101010101010101010107111201310101010X90103080"
    "601210111G18Z108010101010101010101010105020112o1m101010101010101010101010101010101090101010101010101"
    "0101010101010101010101010101010101010111010101010102010101010101010101010101010101010101010101010101"
    "010101010101010101010101010101010101010101010102b1fw2b11050oMr2pa206g122WA01010101010101010101010101"
    "0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101090101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010109785A78785B010101087O7878784B4B3C4B4f903160j1FJ0oPPmv1l1m1012201010131020821010"
    "1010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010801040"
    "jgU010101010101010101010101010101010101010101010J010101010101010101010101010d40101010101010301010101"
    "01010101010101010101010101010101010101010101010101010A0101110101010401020103010101010101010101014141"
    "01010101010101310113050101010O0hvLPbc1d1e4Z1y4A1E1611gt1o1z4Lwv2VWiLVWrUX1",
    "X3Pw10f1N1710101010101010101010101010101010101010101010101010101010201010101010101110101010101010101"
    "0101010101010101010101010101020101220102030502032202010102040203010203010401111101010101010101011101"
    "0101010101010121010301010101010101010101010101010101010101030101010101010101080211040101010151110113"
    "113142011207020113550A1c50h10103032I0RY11132101010101010101010101014102020q1l11010101010101010101010"
    "1010101010109010101010101010101010101010101010101010101010101010102010101010101110101010101010101010"
    "1010101010101010101010101010101010101010101010101010101010101010101010101010n1c1mp35Ya2810k7030G0o30"
    "1010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "1010101010101010101010101010101010101010101010165010101010101010101010101010101010101010101010101010"
    "1010101010101010101010101010101010101010101885A78785A7878D2787878411603211832187A211sA0X1F40hQPcw1l1"
    "10311010106020A0101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "10101010101010801040Cb11050peU010101010101010101010101010101010101010101010J010101010101010101010101"
    "010d4010101010101030101010101010101010101010101010101010101010101010101010101010A0102010101010404011"
    "20101010101010101010B01010101010101040102030501010Q0yQ0Sl2WwJ6C4fX1Pjc1d1e4Z1x4A1E1611Zu1o1z3Lwv2VWi"
    "LVYrUX1",
    "X3Pw10f1N1710101010101010101010101010101010101010101010101010101010201010101010101110101010101010101"
    "0101010101010101010101010101020101220102030502032202010102040203010203010511111101010101010101110101"
    "0101010101011111030101010101010101010101010101010101010103010101010101010108021104010101015111011311"
    "3142011207020113550A1c50h10103032I0RY11132101010101010101010101014102020q1l1101010101010101010101010"
    "1010101010901010101010101010101010101010101010101010101010101010201010101010111010101010101010101010"
    "10101010101010101010101010101010101010101010101010101010101010101010101010n1c1ew2g122uN5Ya2810k7030G"
    "0o30101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "1010101010101010101010101010101010101010101010101016501010101010101010101010101010101010101010101010"
    "10101010101010101010101010101010101010101010101885A78785A7878D2q1114010321140332187A21140nA0X1F40hQP"
    "cw1l110311010106020A01010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010801040Cb11050peU010101010101010101010101010101010101010101010J0101010101010101010"
    "10101010d4010101010101030101010101010101010101010101010101010101010101010101010101010A01020101010104"
    "0401120101010101010101010B01010101010101040102030501010Q0yQ0Sl2WwJ6C4fX1Pjc1d1e4Z1x4A1E1611Zu1o1z3Lw"
    "v2VWiLVYrUX1",
    "j10yg10p10Xo30bW10fW25z10d10F0cC0aW3020V140S0+D0J0l30mip11b10A0f50Wp30+90",
    "j50XL0iM0Yw21po11r24x=14Q4n1Fqd40xap1Fl70W50l28dbl13lc57bqhO==3",
    "fA0ff10Ze2010fX21bc25vL1sctR0",
    "+2010d20604021tF+41755H14091z74n60t1G1Q101110c4741c414132Z2Qx2Aw1AY11+37f19GRz10G033S0g20G0k30G0k30G"
    "0l12y10G070t30k30G0k30G0j31G0y30l30C510h30D4h21R0101041Y2211+10m3011e1144P610A1XM2qT1U0q4A90xA2a90K7"
    "20m1E2Ae30F0c18s11w10B1Y21W25o2O406022o1+1v2Bb1AzD012B2D2D2D1md32z90wF5f33=20ohT0C110S1o21EX1c32j31C"
    "0b10t40RHv13a10=20C0a10r42X23p10a3492W41mvJ0XOFk8010l10j11Z20yN0=a151f118zJ240b51xH5c10Q4lC2c2An13W6"
    "0f10e21u31+10i2092e31o51m21G0O634v2211D1=2030x31x71+30s31p30j81Y8140y40p20I0n20bD0Y8011n20fD1N0id5Ev"
    "cB0Wk24x16qH1YHGm21+=F31611Xu7j12MWH2358726U3Yq3z1Y66tB0z13+N1WN6j3212",
    "Z106059l3040jy70C0u60M0w25F1lB1C0c50PA42d60d71A090w1314902021204020112030318250105BB1201110I021I5101"
    "131502141B15120511011K155132040202510201010603060A1F02040104210B1m1290E0E0qB1lE2J1p1040wc10C0vI010gh"
    "l30g60W51C1E029h2P11N0K028L1k5X12l321122o2221c81+1B51N7127C0232041D120819052C28220104060306r2m1b2572"
    "24930113029Z7B40x8k1191u5m3C395t17E2A68",
    "Z106059p+70r60hft10s+y1PxF4mj13ipXO=2",
    "x=y34",
    "zm90x60G3tZp30y122022r312ALI3042127010O0f6140L041k5234p20G290B0=H02087609922u10z111110H21Cb72g18",
    "wu81j633020fG1L1o1Bh10J0D081H1518050L0711040207041S0Z10104210z12O0E0xQ1p1040kbn30g60+5029h2P10O0K024"
    "12L1k5W1C81b21LCg144CG303c2101w52+1D31NI0Q1D0s2q2m1b260322243B178Z7B40x8k1191u5m3C395t17E2A68",
    "f5040jy70C0u60M0w25F1lB1C0=20c20PA42d60d71A090w13151B1n3Ar32A1010603060A1F02040104210B4j1290E0E0qB1l"
    "E2J1p1040wc10C0vI010chl3=7D2V0y15C1E029Iu1REA0K028139nD5z98f8m1=3q3Br2g1C3u17A5e17Un2Ck1191uDW8zV",
    "t50uG1kR0vD0sJ0f40v20mN0=30Zg20u10ZJ0kC0a20fy40h14d31z22suR0sl10YU0M0f40i30L1xZL0mW21hk10R040dc10b90"
    "q31oF2lc10fbK1ya1110ugS1nb10qQ2",
    "W1+2X1C1nIm372546101J1=67b51b12n122k101020209Q45H9B01j1LF1a38061204V201TTu2B0Eg1963N4090307E1O501A5U"
    "Hf1v1s110138312792S1117212L1610333011612110D1124N5015412L1611111142O310792210C018121L16111433801130F"
    "14B708117212L16111430206121F1124HB015321331101131323B5011321230LK6217121M1F3033J2202149791A121M19143"
    "12011O1114912EA121e1201152121142194P211H3N18102691667922Cl111B78Cb1110141N1019119024109923W1N2Q10101"
    "D1Z1I05024n17151Cb1i14060212O233F4C11251E1d110502uB132610132e1132W1132610132E1u1132Y25S3P6r2252yK3u2"
    "7HDI319HEC12Fp1207711B839696A596u2742X1105b2AU43224115703f124Bh14P6A3u1213t110901185D9696Ds2l1A3371S"
    "9B2V416t1102210Dl1815E3z15g12AB0D0731512205=5W2r8252b125271010101U2q11E1D251I22181A5N7m1G12Q1C3W1=1h"
    "44vKMALpu12V1tA315i110502t171FM9616161616161616X1z2Y1P1u2Cr6Qv16F1r24a35g11z21r29l11ipS3s19xAKk140AV"
    "2l2258j6211017LF12131O24496t18Z2ABOC1b18OB0CT6l11141211C1A461O1e16121B21710292V1o11031242010OG27B525"
    "2596161x14q31113396ZzACM4m1ae8jB2f3c16C4501N141011111y3GyD2r170W1FG9MY11I13441c44y42U352525223616D12"
    "B1P1I111E2DY1w3524i13t21C30l1i1Z4S3m1GQ4Z19T5b1AT1a14Dg1z4296Z14Z14d18p1BB1E16111A1E16113p1Cs99LA7O5"
    "1f118b25201h111302M1d288m1I115W13Q50W2t14J2k1F3121SA8787=1W1a16B9r13S2Q5P73C6m2e2t1o1Do17f1C96b18N81"
    "m6U1f13021G2x1d18LB8MH43c1RKM901r1F64T1120Cm1412113EO799Z1509H8Y112Bp19017411F1JBH1R314511=1610131E1"
    "A6k112D98117212L161114301013212130C6S910201b11011F011301211d1t181301K1012Ul111601110202389c5k1116320"
    "2Qa1o1811023B96CJg1101181696JSQ3011409Mv5k19020a3o2C72027111N1411631299c272f18313R0Ad1614790613j1D02"
    "8De279s5X1E9681b1E015AS3VP07020h26111b1L09965111a141101079s9I239E1Z1813Ms20Fn1DwSc3k314BZ6io2Y3DlX1H"
    "5Pwy35cIvr6TC239cs1uH7U194m2196T70Al17EA9161K5ImDv1c6w2b3g25t1BCW23St=58rc1f19dt8316111Y9F0T220E38hC"
    "ae2g35C38792020Wx3v76pDy4p3y1r7Ac12x152M17T4y1LX230w3JCJCs29Od4q21c2112021231B10161W21327161R1314103"
    "61pA2Z92nHt13o171D16qZ1U65b8z1o4i1A62941WATIh14950mER49s6T2A40WF613111E1a628m1Z2704941nOZ2i2y1Y631Q1"
    "110201913101060401010121110201010101011102316131310191G52141Gq11k8h14Z3CE2E1E1a1Aj5u1SDh14871E5w4tU4"
    "G3C3s34+26B40FB4t1896d18T2B41+1pACD2C395t17E2A687o41b3cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "WOl3p86d8i110111110e2Am1KG0b36252113Z10UQx2Aw1890O3181214h12x18g1N1Vt1010474036A1T0w1010238090A1Q021"
    "v1041412230U130B1v10441140K1M510w1011138072A1U0x1010C090e1030t1012521371B1T0w102110321371B1S1v111023"
    "8090A1T0e2040221080n2026C7Y3028B6f21R01010t1D14115A1Z190c33151121P142G3D02160F0=L2oT3S2T1U1W2116802A"
    "90j1210r31Y10s32419062x6120w10161010276920m1Un13m1942c18C1W1325u10113014u1721u421C16406031c6=1iG0Z6W"
    "1+=22j40W3VgH5f31qkT319W11m21m803040P150t41QHD0c17PA10i12m10232120a10Z252121C080l10p1012215110g1180k"
    "702040mvJ0XNFGFkB1zI0Y70r44cq121153e1240b51zH3X24z91l23c2An13x30s1Ef1021A2n132170z12a1417+10C1q18108"
    "320=22236020z4037L1v111010C090E634Z20251020124210E1r272210N0n202510201111h70236111R1r272011g301027b3"
    "0102314Z8811r70A340m432140W19e1523809522k1C11sC61510o2L261111w3530111610e213010xA1B1q1452N0bd506EecB"
    "B32Wk24x16uW10=13n20B1hbJ1Xp4j12M+G4358726U3q42xz1s14n180E0M41Emg161G261114a30W56tB0z13yF3+71WN6j36r"
    "sbO=2W4l7",
    "jg20=30=30=30=30=30=30=30j31G0y30l30=30f60q51vs11U0z40jK0Z70b31c21hi40cqU0b10t40k40i30r90s70noN0cm10"
    "f10E0v10v31h40q30q50Y30W42n30=30y70=30s30q30j80Z81X50p20I0n20bD0a81n20fD1ilG0",
    "m1975Q5fr=1975Q5",
    "j10=30yc10xp40fW21bm30ZN0dhp10f50t20",
    "m=B129nF0",
    "o=B1",
    "+=B1",
    "o5150sz703A1EpB040M0Ybj30P0V0P0V0P0V0P0V0P0",
    "Ym8040M0Ybj30P0V0P0V0P0V0P0V0P0",
    "m197P401Pl10A010205M1U1fE4BE47010Hq311231064101J1o21g4142b51b1206e18i1101111108Q43TA5f24b317291I20Gw"
    "12a3Er140202j1IR4A5N158g21W4291I17212L1610332821238041142BA0102215412L16111111201441223073107FB21812"
    "1L16111429121220F329961217212L1611142821227241142910G115321331101131323B4432132060E9GC121M1F28121371"
    "12202329G317121M19142812137161132912CC121o11214537429A5121H3N181026304510176921Dv15E19d1110141N101M2"
    "410161923W10N169B01010491Z14J1H1Z190v1f26j22b110502g11iA132610132e1132W1132610132E1u1132Y22298EFGr22"
    "53hJ2G1P5g23A7L9LBJCC1211Cp2304129X121A6u27g15b2AU1B4BAd124Bh14P6Ab1R4+11S2A69D08D1Fn1i239H8Cp3Ct189"
    "3m12A5g122G21c15rG252b125271010101U2q11610321633254C5216F1n11J0S0D0GCp1C403BH0402910256010101F235440"
    "He1tp2a768Cb110502t170FN96161616161616161VbG2PE14244r2261+25g11z2HVm1FWG=j6W2iqLZ2j12i83RKl1491o3b18"
    "2c32Y2211017Lr140Jp1Cb2A96N301m12Z1CS3W2EA6U1s19D296M3e2O22F24A5252596161g11D6w311296ZzACM4m1ae8jB2f"
    "3c16C45B1C141011111h3X1gBI=12r1e1B4FGF31O2W141c4J97P401PAv235252522Z1B1P1I111E2DY1w3b2q1e40Y4S3m1F0V"
    "VDT5g15T2Z14714g1z4296Z14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAPc2t161W"
    "231157121S2240W1S3SZ171TPr1ALAIDHk3e2t1o1Do1Dd1896b1341Mw7f11131G2t1W1A08W1VLg1KRM9c2VF9x170DO796q11"
    "9438Z1209a2431C10Z1H1a163+1610131E197w1596317212L1611141921222060562634B910201b11910201317D1Tg25943U"
    "b21089c5r128N5Y1W230B9c1u1796JSQ2E4966v5w1b3f2L72027111T1128C9c272j12711R+1808f230Ie2d6W1F9681i118F9"
    "OT2L1Df26111h13011188965111a1111579s9M9G1e134DAr20l2vSc3k3HZ6io2W3FlX1GLAwy35cIvr6v1cs1uH7U196k2196T"
    "24Bs193C99K5ImDi139c6=1W4g24u17GW2111B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387931nY49cGj12M+G435"
    "8726U3q42xDq21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O172n1WGs14n180E0M41EmY1U65r6"
    "61G2611145z1X10m3i13D2940XAUHv1sEf1s6g1bF613111E1a6B6f1h249cb131Q11102019131010604010101211102010101"
    "01011102316131310191G52141Gqf39cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
    "X2P6Pl10A0405M1U1fE4BE47010X441123106012101J1o21g48b51b1206e1d2Q43j1g1Z111Y310F171A220G01TTu2B0OW191"
    "405L409030NO7A5N15Hf1w1r130I079FF47212L16103330G0D112E1A085412L16111111V310J2G8121L16111430I0F1N0B72"
    "12L16111430U112F0H015321331101131323BM0q17121M1F30Q22021U047121M191430V111F1H8121e120G05282O55H3N181"
    "026w1l111C6w1110141N101911902410L3W10=171Z1R4p3g1K0G5433031724CC0Hb110502g11iA132610132e1132W1132610"
    "132E1u1132Y2b1FGr2253hJ2G1P5g23A7HDIEHEC12Fp1Z1040Z2u27e1105b2AUn1T24Bh14Ps1M9q1o20z2k1H7s1TD1Ah1QZ1"
    "f12AZ12A5g122f131511305=5W2r8252b125271010101U2q11610321633254C5216q30D0GCb30402910256010101F235440H"
    "e1tp2a76331Cb110502t170GM9616161616161616cH2P874244r2441v2135g11z2HVm1FWG=j6W2iqLZ2j12i83FA1Kk1GU2l2"
    "d182c32Y2211017LF12131MTp1En1+153011BRAMPS7k1S0G419A41e1N217KM303n11031242010O22A72C5252596161g11D6o"
    "3TZzACM4m1ae8jB2f3c16C450191C141011111h3X1gBI=12r1e1Bq341c4a1P6PBu235252522Z1B1P1I111E2DY1w3b2q1h8S3"
    "m1l1VDT5b1AT2Z14714g1z4IZ14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAPc2t16"
    "1W20F3121Sg1S3SZ171RRr1ALAIDHk3e2t1o1Do1DZ1c1R9Mw7f161G2x1SA08Lg1Hk1KRMCq1v1120Di1W1OQZ1T0208Y130Cl1"
    "E3L010Z1H1OJ1=1610131E197k1c17212L16111430I0C4U910201b110P010i1q1I3K2Ul1K110u5k1f13a1l1K0x1g1D0d2Qb1"
    "6v5h1q3=1V72027111NF010+272c1G010S0Ad170L0Bj1J0Ie2d6W1V81a1H0n1Tm36111b1L0P5111VE0dAIF01C1X1y30l2vSc"
    "3k3HZ6io2W3FlX1H5Pwy35cIvr6TYt1uH7UHk2HTIl1G3VK5ImDi1p6=1W4g250Y2CW2110St=58rc1f19dt8316111Y9F0T220E"
    "38hCae2g35C3879cx5q21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O17qv1U65b8z1o4i1A6G0X"
    "ATIh1aFRa7T20lF613111E1a6x1Z270qb131Q1110201913101060401010121110201010101011102316131310191G52141Ga"
    "g4=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "cWC1P8E2bU=j6W2=lKWeMjB2f3geT0Rt=58rc1f19dZ9hCaeJ=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "iW81",
    "Wo34x34mt2220wda112011",
    "X3Pl10A040a1N171010101010101010101010101010101010101010101010101010101110101010101010111010101010101"
    "0101010101010101010101010101010102010122010203140203220201010201110203010212260202010101010101010111"
    "010101010101010112010301010101010101010101010101010101010101010101010101010101016202110401010101a21Z"
    "171U4W30h10103023I0RY11132101010101010101010101014102021p1l11010101010101010101010101010101010901010"
    "1010101010101010101010101010101010101010101010102010101010101110101010101010101010101010101010101010"
    "1010101010101010101010101010101010101010101010101010101010m1e1dw2g113uN5Ya2810r3=5X20101010101010101"
    "0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101010101010181010101010101010101010101010101010101010101010101010101010101010101"
    "010101010101010101010101010101885A78785A7878D2787878411603211832187A211v30D0GCj303130R04040218340X1F"
    "40hQPcw1l1103110101040111730101010101010101010101010101010101010101010101010101010101010101010101010"
    "10101010101010101010101011701040Cb11050peU010101010101010101010101010101010101010101010J010101010101"
    "010101010101012b401010101010121010101010101010101010101010101010101010101010101010101010101910102010"
    "1010104010201210101010101010101010505010101010101010401020301010101010M21012rPg11D6l2WwJ6C4fX1Pjc1d1"
    "e4Z1x4A1E1611ZE0221f118be1o1z3Lwv2VWiLVwiPPQ61HQPQ310161AQPQPQPQPQPQPQPQPQRSO15QO15QO15QO15QO1510qv1"
    "91J65b8z1qb2X1",
    "h10G2V0T010j1040b10V0uM220Q122lG2jm60R2B030D0E3L4B4X2C403144I04029102560312112153D10a2N1511414V1061E"
    "h883K1w20UQ10O0B6zD1C945412134E01025B751v1010T392mA=1W8=Fm1K25y+p10tP510Y50G2T010T010Z4063Xj31mpn1q2"
    "1c2112021231B10161W21327161R131410361pA2Z92n1Wm531Q1110201913101060401010121110201010101011102316131"
    "310191G52141Gq11",
    "qo1120Z406031XF11230V0",
    "mk=1VkG1+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11+==11",
    "bQ0TCWID10111110e2Am1C16G0b36432140Z10UFc3Ab31381213g30y1B366Js112E1152A1T2w162121A0A1T2w14412140U13"
    "0B2w171211L1M242w16212191A1U0x143212A0e14v16121281B1T2w16121281B1F0C3w161212A0A1T2h251017I1z1026I0Z3"
    "02511G0Z5I9A1Z1k3B1023N342122633DB10A3qp11U1U1U1Y2Iy51Y10s3B48+64v192Jg21B2n14m1Ey12U821v1Ao1IyCX1Xs"
    "1p1sd2VqZU7Y11YB080N4u21o1F10v10c14SBj13m1Bb10Z2DC081j12o10122150i1450j77pvJ0tY24cq121153qO3X20XA1l2"
    "0Z82r1Dj11B2j1890z12a1BI1v12m1CE1y28206020z49N3w162121A0A1q2810201311d3C12g3Hj7626T1o2E10g3Ad3DX8Ct7"
    "511213010k462540S9g1413IAk1DtC716p2L1Dw353011121030Y241113yA39110m1632zkGGWn301s173z21ibJ0Xx861G2611"
    "14a30tb20e=1P6P6P",
    "lQ0lm31po11lb20+d40xnp10l28dWWQ01TW3=3m7lm3",
    "+j20O0cB0O0c30O0e7010411191d30O0t30F0rf20U0WW10501051b30d21uW10XX41ZfU0i30zkL1Wn40q30e80E090W3090201"
    "250W70C0n70c80vJ0C0Zm10kbK1phO165jrhO=2",
    "t50lM0X=38ep10nn11jd40fpp10",
    "ba61na20L0ix31",
    "g50F0rF871U4W30q10Xi30lX3+1D0Y1a1nL0D0GCp6FmQPoy11+mU1o60X4231YR390sWN0221f118rZs1z1",
    "+20nR220Q121WX70R2B0W13O1E1X2C403144I04029103460312112153354h24231111101421414H2110161061Y93e5110O0H"
    "0zD1C854512134E01025O1v1010T391sA1V9pCL=13W11ZZr101040p6010Xcr1q21c2112021231B10161W21327161R1314103"
    "61pA2O1O1U1O1U1O1U1O1U1O172n1Wm531Q1110201913101060401010121110201010101011102316131310191G52141G",
    "Wh8FcQPWZp3P6P6P",
    "X1EA6Q310Q3Y1610111011404030N0V0uu7N8E2I19n9lMW5rJUhZ1WG=3XC24OF0jep11b81",
    "94I0a30ey71O1",
    "Wm15t60n10WC1m20w+X20F0",
    "Y1040Z40F0yw77P1dm30fE3D2Xnp13z5040w21",
    "WqBP1u2Cr6",
    "cly3P",
    "X10C0G0fg10p42q50h12s70z101031b91at11sO041bO0c61z41j1050w91YB3Y51A121T2x51X21aT0N192lb32o90D0M1jD0yd"
    "T0k81Z7030+B1s21=20u41p42m41v70cnK021x1031f50C0G0X20qt21zd14i13z51r33=32X4160G1u2111i30g91r31rB15Ef3"
    "1v72bG010x71t21aD1qL1g21fvI1b40X21B0fH1e90cmJ0el70",
    "f31a60v80U0q10K0WA0Y3010fe60p10D030a40z40bD0s61ov20bzf31o11o11o11o11o11o11o11o11o11o11o11o11ca20n91Q"
    "0",
    "X10A010B130+P080XG0v10e20E012q50h1A10h71s1517V0b81qd11i5045t91rO7bO0y32d21z4230d1321w91YB3Y51A112T2x"
    "54+11aT0N192lb32o90D040A01131iD1xdT1j82Z74+B1s21=20t42p42=30G1v70cnK021v1213f50A010B130X2020wX10m10c"
    "a10d60s91u45a25v23uT4i13z56m33=32X4160G1u24i30g91r32C1cB33Ef31v72bG010x71t2141+C2j10bK1g21hf14vlH1b4"
    "0X22A0fH1d91cmJ0dl73",
    "WWD=j6W2=lKkmM11011A0101122skX2=sf1W1vX46z62Xq5Emf7FjJYj4gw45=Y4",
    "X2Pb3M16X1010101010101010101010101010101010101010101010101010101020101010101010102010101010101010101"
    "0101010101010101010101010101110103110111223111231111010111020111210113070202020101010101010102010101"
    "0101010101020201210101010101010101010101010101010101010101010101010101010107111201310101010X90103080"
    "601210111G18Z10223010101010101010101010105020112o1m1010101010101010101010101010101010901010101010101"
    "0101010101010101010101010101010101010101110101010101020101010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010101010101010102b1fw2b11050oMr2pa206g122WA010101010101010101010101"
    "0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101010901010101010101010101010101010101010101010101010101010101010101010101010101"
    "010101010101010101010109785A78785B010101087e23C3C3C4B3c8040322220346010101323A150QFJ0oPPmv1l1m101220"
    "1010131020821010101010101010101010101010101010101010101010101010101010101010101010101010101010101010"
    "1010101010801040jgU010101010101010101010101010101010101010101010J010101010101010101010101010d4010101"
    "010101030101010101010101010101010101010101010101010101010101010101010A010111010101040102010301010101"
    "010101010101414101010101010101310113050101010O0hvLPbc1d1e4Z1y4A1E1611gt1o1z4Lwv2VWiLVWjPPQPQPQ011202"
    "12317QPQ1132716R113141036RPQPQPQPQPQPUOX1OX1OX1OX1OX10rf4X1kW2P6P6P",
    "hW6210mlv1FmtWQl7",
    "94I0a30Q0=k50=h2AT150l10Wz30",
    "m197P401Pl10A010205M1U1fE4BE47010Hq311321064101J1o21g4142b51b1206e18i1101111108Q43TA5f24b317291I20Gw"
    "12a3Er140202j1IR4A5N158g21W4291I17212L1610332821238041142BA0102215412L16111111201441223073107FB21812"
    "1L16111429121220F329961217212L1611142821227241142910G115321331101131323B4432132060E9GC121M1F28121371"
    "12202329G317121M19142812137161132912CC121o11214537429A5121H3N181026304510176921Dv15E19d1110141N101M2"
    "410161923W10N169B01010491Z14J1H1Z190v1f26j22b110502g11iA132610132e1132W1132610132E1u1132Y22298EFGr22"
    "53hJ2G1P5g23A7L9LBJCC1211Cp2304129X121A6u27g15b2AU1B4BAd124Bh14P6Ab1R4+11S2A69D08D1Fn1i239H8Cp3Ct189"
    "3m12A5g122G21c15rG252b125271010101U2q11610321633254C5216F1n11J0S0D0GCp1C403BH0402910256010101F235440"
    "He1tp2a768Cb110502t170FN96161616161616161VbG2PE14244r221221+25g11z2HVm1FWG=j6W2iqLZ2j12i83RKl1491o3b"
    "182c32Y2211017Lr140Jp1Cb2A96N301m12Z1CS3W2EA6U1s19D296M3e2O22F24A5252596161g11D6w311296ZzACM4m1ae8jB"
    "2f3c16C45B1C141011111h3X1g46v6I=12r1e196FGF31O2X1010301010101z3J97P401PAv235252522Z1B1P1I111E2DY1w3b"
    "2q1e40Y4S3m1F0VVDT5g15T2Z14714g1z4296Z14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX"
    "2I11ALAPc2t161W231157121S2240W1S3SZ171TPr1ALAIDHk3e2t1o1Do1Dd1896b1341Mw7f11131G2t1W1A08W1VLg1KRM9c2"
    "VF9x170DO796q119438Z1209a2431C10Z1H1a163+1610131E197w1596317212L1611141921222060562634B910201b119102"
    "01317D1Tg25943Ub21089c5r128N5Y1W230B9c1u1796JSQ2E4966v5w1b3f2L72027111T1128C9c272j12711R+1808f230Ie2"
    "d6W1F9681i118F9OT2L1Df26111h13011188965111a1111579s9M9G1e134DAr20l2vSc3k3HZ6io2W3FlX1GLAwy35cIvr6v1c"
    "s1uH7U196k2196T24Bs193C99K5ImDi139c6=1W4g24u17GW2111B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387931"
    "nY49cGj12M+G4358726U3q42xDq21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O172n1WGs14n18"
    "0E0M41EmY1U65r661G2611145z1X10m3i13D2940XAUHv1sEf1s6g1bF613111E1a6B6f1h249cb131Q11102019131010604010"
    "10121110201010101011102316131310191G52141Gqf39cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
    "X2P6Pl10A0405M1U1fE4BE47010X441132106012101J1o21g48b51b1206e1d2Q43j1g1Z111Y310F171A220G01TTu2B0OW191"
    "405L409030NO7A5N15Hf1w1r130I079FF47212L16103330G0D112E1A085412L16111111V310J2G8121L16111430I0F1N0B72"
    "12L16111430U112F0H015321331101131323BM0q17121M1F30Q22021U047121M191430V111F1H8121e120G05282O55H3N181"
    "026w1l110D6w1110141N101910A02410L3W10=171Z1R4p3g1K0G5433031724CC0Hb110502g11iA132610132e1132W1132610"
    "132E1u1132Y2b1FGr2253hJ2G1P5g23A7HDIEHEC12Fp1Z1040Z2u27e1105b2AUn1T24Bh14Ps1M9q1o20z2k1H7s1TD1Ah1QZ1"
    "f12AZ12A5g122f131511305=5W2r8252b125271010101U2q11610321633254C5216q30D0GCb30402910256010101F235440H"
    "e1tp2a76331Cb110502t170GM9616161616161616cH2P874244r2621v2135g11z2HVm1FWG=j6W2iqLZ2j12i83FA1Kk1GU2l2"
    "d182c32Y2211017LF12131MTp1En1+153011BRAMPS7k1S0G419A41e1N217KM303n11031242010O22A72C5252596161g11D6o"
    "3TZzACM4m1ae8jB2f3c16C450191C141011111h3X1g46v6I=12r1e19t3010301010101z3a1P6PBt12U35252522Z1B1P1I111"
    "E2DY1w3b2q1h8S3m1l1VDT5b1AT2Z14714g1z4IZ14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9"
    "UX2I11ALAPc2t161W20F3121Sg1S3SZ171RRr1ALAIDHk3e2t1o1Do1DZ1c1R9Mw7f161G2x1SA08Lg1Hk1KRMCq1v1120Di1W1O"
    "QZ1T0208Y130Cl1E3L010Z1H1OJ1=1610131E197k1c17212L16111430I0C4U910201b110P010i1q1I3K2Ul1K110u5k1f13a1"
    "l1K0x1g1D0d2Qb16v5h1q3=1V72027111NF010+272c1G010S0Ad170L0Bj1J0Ie2d6W1V81a1H0n1Tm36111b1L0P5111VE0dAI"
    "F01C1X1y30l2vSc3k3HZ6io2W3FlX1H5Pwy35cIvr6TYt1uH7UHk2HTIl1G3VK5ImDi1p6=1W4g250Y2CW2110St=58rc1f19dt8"
    "316111Y9F0T220E38hCae2g35C3879cx5q21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O17qv1U"
    "65b8z1o4i1A6G0XATIh1aFRa7T20lF613111E1a6x1Z270qb131Q111020191310106040101012111020101010101110231613"
    "1310191G52141Gag4=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "0==r1WW2==dW1",
    "0tR2546101J1iC1b12n1221s18Q45Bj81x12a3Ew12m12E1R201A5U115i717212L1610332821238041142O2215412L1611111"
    "1201441223073107GA218121L16111429121220F32B761217212L1611142821227241142HA115321331101131323B4432132"
    "060EK5C121M1F28121371122023297L121M19142812137161132912CC121o112154F2P121H3N181026304510176922Cv14Sb"
    "1110141N101M2410161923W1d21Z14c11Z11E1Cb1b610502uB132610132e1132W1132610132E1u1132Y22V3P6r2252yK3u27"
    "L9N9JCC1211Cz229696P6u27g15b2AU1B4B403f124Bh14P6A3z12W21S2A696D2Un1i21b58x13E3z15g12A8g15rG252b12527"
    "1010101U2q11E1D251I22181a31B2Q1C3W1FW1Fh44vKMALpu12V1yA5i110502t171EN96161616161616161z3Y1P1u2Cr6Ql2"
    "1r22c35g11z21r29l11ipS3s19xAKt58j6211017Lw1396t18b28B6p3BT3j21A4W11s19D292c3ORA5252596161x14z3296ZzA"
    "CM4m1aW2jp62f3c16C45P141011111y3GyD2r170W1f16o11I13441c4201z5352525223616A42B1P1I111E2DY1w3524i13t21"
    "C30l1j1Y4S3m1FR4Z19T5g15T1a14Dg1z4296Z14Z14d18p1BB1E16111A1E16113p1Cs99LA7O51f118b25201h111302M1d288"
    "m1I115W13Q50W2t14J2n11157121S2249787=1W1c14B9r13S2Q5P73C6m2e2t1o1Do17j1896b13S81m6U1f11221G2t1h18f1M"
    "Pc1RKM9j24Z19Z2A02O796q11H8c19=21JBH1k1+1610131E1A6w1596317212L1611141921222060562634B910201b1191020"
    "13191181Tx214Ud289c5r12b1Y1a2B96CJv1696JSQ2E4Mv5x1a3o2C72027111T112B99c272j12ARd28o2De279s5X1E9681i1"
    "1DAS3V2L1Df26111h13011188965111a1111579s9O7G1e13Sr20Fn1DwSc3k314BZ6io2Y3DrY1Awy35cIvr6v1cs1uH7U194m2"
    "196T25Ab2A9161K5ImDv1c6w2b3g24u17GW24B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387927yw3v76pDi2j12M9"
    "p3y1r7Ac12X6Lb2w3JCJCs29Od4q21c2112021231B10161W21327161R131410361pA2Z92zLF41EmY1U65r661G2611145z1X1"
    "0m3i13D2941WAUHv150mEf1s6g140WF613111E1a62Ff1h24941nOZ2i2y1Y631Q111020191310106040101012111020101010"
    "1011102316131310191G52141Gq11k8h14Z3CE2E1E1a1Aj5u1SDh14871E5w4tU4G3C3s34+26B40FB4t1896d18T2B41+1pACD"
    "2C395t17E2A687o41b3cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4nYtL0U=2W4l7mm=1z==12z==1",
    "0=3",
    "m197P6Pl10A0405M1U1fE4BE47010s20TH1123106012101J1o21g48b51b1206e1d1D101111108Q43TA5t11G4b317474F20Gl"
    "1Da3Eg191405N2IJO7A5N15808f1AB366h21F124E291I17212L161033372121108041142BA04215412L16111111444121407"
    "3107FB218121L16111438121130F329934217212L1611143721219141142910G115321331101131323B4432123060E9GC121"
    "M1F3712128112202329G317121M19143712128161132912CC121e127121210537429A5121H3N1810268510176921Dv156602"
    "9d1110141N101I122410602923W10V9M71Z14I4F1Z1Z2s1102E6j22b110502g11iA132610132e1132W1132610132E1u1132Y"
    "2b1FGr2253hJ2G1P5g23A7JBKCJCC1211Cp12IE04039c196u27g15b2AU1B48Dd124Bh14P69c1R4+12JB969D0N1B2n1p11E17"
    "39c1f12v11AEs1993m12A5g122f131511305=5JX1Br8252b125271010101U2q11610321633254C5216q30D0GCb3040291034"
    "601010131A235440He1jPp1su1a76331Cb110502t170GM96161616161616161Vl10rE2P874244r2621v2135g11z2HVm1FWG="
    "j6W2iqLZ2j12i83RKk1573m3d182c32Y2211017LJ1W1Op1CZ210A9O5301j15Y1DS3o11BFA6U1s19D296M3a21010O22F23B52"
    "52596161g11D6w3596ZzACM4m1ae8jB2f3c16C45B1C141011111h3X1gBI=12r1e1Bq341c4J97P6PBu235252522Z1B1P1I111"
    "E2DY1w3b2q1h8S3m1l1VDT5g15T2Z14714g1z4296Z14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MA"
    "M9UX2I11ALAPc2t161W231157121Sg1S3SZ171RRr1ALAIDHk3e2t1o1Do1Dd1896b1305Mw7f11131G2t103SA08Lg1Hk1KRM9b"
    "2W1914Au190DO796o139438Y1309=1139C10Z1H1X12063+1610131E197u1796317212L161114372121306056S910201b1191"
    "02013113010i1X212135952UX2211089c5r126P5Y1+11030B9c1r120796JSQ2D5966v5u1d3f2L72027111T112123D9c272j1"
    "251011Ro129Hd250Ie2d6W1F9681i11610F9OT2L1Df26111h130111210218965111a111131079s9M9G1e132F9s20l2vSc3k3"
    "HZ6io2W3FlX1H5Pwy35cIvr6k119cs1uH7U196k2196TIl1G3C99K5ImDi139c6=1W4g24u17GW2110C1Et=58rc1f19dt831611"
    "1Y9F0T220E38hCae2g35C387940nY49cu1q21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O172n1"
    "Wu1U65r661G2611145z1X10m3i1A62940XATIh149sER49s6T2AbF613111E1a6x1Z2303049cb131Q111020191310106040101"
    "0121110201010101011102316131310191G52141GqJP6P6Pcp29cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "90M0=30=k50=h2Aa10l10Wz30",
    "X1z2Y1B1fM2546101J1iC1b12n1221s18Q45HL1=51l12w12a3Ew12m12E1R201A5U8g21W517212L1610332821238041142O22"
    "15412L16111111201441223073107GA218121L16111429121220F32B761217212L1611142821227241142HA1153213311011"
    "31323B4432132060EK5C121M1F28121371122023297L121M19142812137161132912CC121o112154F2P121H3N18102630451"
    "0176922Cv14Sb1110141N101M2410161923W1d21Z14c11Z11E1Cb1b610502uB132610132e1132W1132610132E1u1132Y22V3"
    "P6r2252=J1R3u27L9N9JCC1211Cz229696D1A6u27g15b2AU1B4B403f124Bh14P6A3z12W21S2A696D2Un1i21b58x13E3z15g1"
    "2A8g15rG252b125271010101U2q11E1D251I2218HN8k1H12Q1C3W1FW1Fh44vKMALpu12V1yA5i110502t171EN961616161616"
    "16161z3Y1P1u2Cr6QF1+11r22c35g11z21r29l11ipS3s19xAKt58j6211017Lw1396t18b28B6p3BT3j21A4W11s19D292c3ORA"
    "5252596161x14z3296ZzACM4m1ae8jB2f3c16C45P141011111y3GyD2r170W1f16o11I13441c44z5352525223616D12B1P1I1"
    "11E2DY1w3524i13t21C30l1j1Y4S3m1FR4Z19T5g15T1a14Dg1z4296Z14Z14d18p1BB1E16111A1E16113p1Cs99LA7O51f118b"
    "25201h111302M1d288m1I115W13Q50W2t14J2n11157121S2249787=1W1c14B9r13S2Q5P73C6m2e2t1o1Do17j1896b13S81m6"
    "U1f11221G2t1h18f1MPc1RKM9j24Z19z114DO796q11H8c19=21JBH1k1+1610131E1A6w1596317212L1611141921222060562"
    "634B910201b119102013191181Tx214Ud289c5r12b1Y1a2B96CJv1696JSQ2E4Mv5x1a3o2C72027111T112B99c272j12ARd28"
    "o2De279s5X1E9681i11DAS3V2L1Df26111h13011188965111a1111579s9O7G1e13Sr20Fn1DwSc3k314BZ6io2Y3DlX1GLAwy3"
    "5cIvr6v1cs1uH7U194m2196T25Ab2A9161K5ImDv1c6w2b3g24u17GW24B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C3"
    "87923Wx3v76pDi2j12M9p3y1r7Ac12f28l3Lb2w3JCJCs29Od4q21c2112021231B10161W21327161R131410361pA2Z92zLF41"
    "EmY1U65r661G2611145z1X10m3i13D2941WAUHv150mEf1s6g140WF613111E1a62Ff1h24941nOZ2i2y1Y631Q1110201913101"
    "060401010121110201010101011102316131310191G52141Gq11k8h14Z3CE2E1E1a1Aj5u1SDh14871E5w4tU4G3C3s34+26B4"
    "0FB4t1896d18T2B41+1pACD2C395t17E2A687o41b3cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
    "X1z2Y1sM2546101J1iC1b12n1221s18Q45Bj81x12a3Ew12m12E1R201A5U115i717212L1610332821238041142O2215412L16"
    "111111201441223073107GA218121L16111429121220F32B761217212L1611142821227241142HA115321331101131323B44"
    "32132060EK5C121M1F28121371122023297L121M19142812137161132912CC121o112154F2P121H3N181026304510176922C"
    "v14Sb1110141N101M2410161923W1d21Z14c11Z11E1Cb1b610502uB132610132e1132W1132610132E1u1132Y22V3P6r2252="
    "J1R3u27L9N9JCC1211Cz229696P6u27g15b2AU1B4B403f124Bh14P6A3z12W21S2A696D2Un1i21b58x13E3z15g12A8g15rG25"
    "2b125271010101U2q11E1D251I2218CS241k1141B2Q1C3W1FW1Fh44vKMALpu12V1yA5i110502t171EN96161616161616161z"
    "3Y1P1u2Cr6QF1+11r22c35g11z21r29l11ipS3s19xAKt58j6211017Lw1396t18b28B6p3BT3j21A4W11s19D292c3ORA525259"
    "6161x14z3296ZzACM4m1aW2jp62f3c16C45P141011111y3GyD2r170W1f16o11I13441c4201z5352525223616A42B1P1I111E"
    "2DY1w3524i13t21C30l1j1Y4S3m1FR4Z19T5g15T1a14Dg1z4296Z14Z14d18p1BB1E16111A1E16113p1Cs99LA7O51f118b252"
    "01h111302M1d288m1I115W13Q50W2t14J2n11157121S2249787=1W1c14B9r13S2Q5P73C6m2e2t1o1Do17j1896b13S81m6U1f"
    "11221G2t1h18f1MPc1RKM9j24Z19Z2A02O796q11H8c19=21JBH1k1+1610131E1A6w1596317212L1611141921222060562634"
    "B910201b119102013191181Tx214Ud289c5r12b1Y1a2B96CJv1696JSQ2E4Mv5x1a3o2C72027111T112B99c272j12ARd28o2D"
    "e279s5X1E9681i11DAS3V2L1Df26111h13011188965111a1111579s9O7G1e13Sr20Fn1DwSc3k314BZ6io2Y3DrY1Awy35cIvr"
    "6v1cs1uH7U194m2196T25Ab2A9161K5ImDv1c6w2b3g24u17GW24B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387927"
    "yw3v76pDi2j12M9p3y1r7Ac12X6Lb2w3JCJCs29Od4q21c2112021231B10161W21327161R131410361pA2Z92zLF41EmY1U65r"
    "661G2611145z1X10m3i13D2941WAUHv150mEf1s6g140WF613111E1a62Ff1h24941nOZ2i2y1Y631Q111020191310106040101"
    "0121110201010101011102316131310191G52141Gq11k8h14Z3CE2E1E1a1Aj5u1SDh14871E5w4tU4G3C3s34+26B40FB4t189"
    "6d18T2B41+1pACD2C395t17E2A687o41b3cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4nYtL0U=2W4l7mm=1z==12z==1",
    "W1+2X1C1fM2546101J1iC1b12n1221s18Q45HL1=51l12w12a3Ew12m12E1R201A5U8g21W517212L1610332821238041142O22"
    "15412L16111111201441223073107GA218121L16111429121220F32B761217212L1611142821227241142HA1153213311011"
    "31323B4432132060EK5C121M1F28121371122023297L121M19142812137161132912CC121o112154F2P121H3N18102630451"
    "0176922Cv14Sb1110141N101M2410161923W1d21Z14c11Z11E1Cb1b610502uB132610132e1132W1132610132E1u1132Y22V3"
    "P6r2252yK3u27L9N9JCC1211Cz229696D1A6u27g15b2AU1B4B403f124Bh14P6A3z12W21S2A696D2Un1i21b58x13E3z15g12A"
    "8g15rG252b125271010101U2q11E1D251I22181A5P5m1G12Q1C3W1FW1Fh44vKMALpu12V1yA5i110502t171EN961616161616"
    "16161z3Y1P1u2Cr6Ql21r22c35g11z21r29l11ipS3s19xAKt58j6211017Lw1396t18b28B6p3BT3j21A4W11s19D292c3ORA52"
    "52596161x14z3296ZzACM4m1ae8jB2f3c16C45P141011111y3GyD2r170W1f16o11I13441c44z5352525223616D12B1P1I111"
    "E2DY1w3524i13t21C30l1j1Y4S3m1FR4Z19T5g15T1a14Dg1z4296Z14Z14d18p1BB1E16111A1E16113p1Cs99LA7O51f118b25"
    "201h111302M1d288m1I115W13Q50W2t14J2n11157121S2249787=1W1c14B9r13S2Q5P73C6m2e2t1o1Do17j1896b13S81m6U1"
    "f11221G2t1h18f1MPc1RKM9j24Z19z114DO796q11H8c19=21JBH1k1+1610131E1A6w1596317212L161114192122206056263"
    "4B910201b119102013191181Tx214Ud289c5r12b1Y1a2B96CJv1696JSQ2E4Mv5x1a3o2C72027111T112B99c272j12ARd28o2"
    "De279s5X1E9681i11DAS3V2L1Df26111h13011188965111a1111579s9O7G1e13Sr20Fn1DwSc3k314BZ6io2Y3DlX1GLAwy35c"
    "Ivr6v1cs1uH7U194m2196T25Ab2A9161K5ImDv1c6w2b3g24u17GW24B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387"
    "923Wx3v76pDi2j12M9p3y1r7Ac12f28l3Lb2w3JCJCs29Od4q21c2112021231B10161W21327161R131410361pA2Z92zLF41Em"
    "Y1U65r661G2611145z1X10m3i13D2941WAUHv150mEf1s6g140WF613111E1a62Ff1h24941nOZ2i2y1Y631Q111020191310106"
    "0401010121110201010101011102316131310191G52141Gq11k8h14Z3CE2E1E1a1Aj5u1SDh14871E5w4tU4G3C3s34+26B40F"
    "B4t1896d18T2B41+1pACD2C395t17E2A687o41b3cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
    "W1+2X1tM2546101J1iC1b12n1221s18Q45Bj81x12a3Ew12m12E1R201A5U115i717212L1610332821238041142O2215412L16"
    "111111201441223073107GA218121L16111429121220F32B761217212L1611142821227241142HA115321331101131323B44"
    "32132060EK5C121M1F28121371122023297L121M19142812137161132912CC121o112154F2P121H3N181026304510176922C"
    "v14Sb1110141N101M2410161923W1d21Z14c11Z11E1Cb1b610502uB132610132e1132W1132610132E1u1132Y22V3P6r2252y"
    "K3u27L9N9JCC1211Cz229696P6u27g15b2AU1B4B403f124Bh14P6A3z12W21S2A696D2Un1i21b58x13E3z15g12A8g15rG252b"
    "125271010101U2q11E1D251I22181d12w11B2Q1C3W1FW1Fh44vKMALpu12V1yA5i110502t171EN96161616161616161z3Y1P1"
    "u2Cr6Ql21r22c35g11z21r29l11ipS3s19xAKt58j6211017Lw1396t18b28B6p3BT3j21A4W11s19D292c3ORA5252596161x14"
    "z3296ZzACM4m1aW2jp62f3c16C45P141011111y3GyD2r170W1f16o11I13441c4201z5352525223616A42B1P1I111E2DY1w35"
    "24i13t21C30l1j1Y4S3m1FR4Z19T5g15T1a14Dg1z4296Z14Z14d18p1BB1E16111A1E16113p1Cs99LA7O51f118b25201h1113"
    "02M1d288m1I115W13Q50W2t14J2n11157121S2249787=1W1c14B9r13S2Q5P73C6m2e2t1o1Do17j1896b13S81m6U1f11221G2"
    "t1h18f1MPc1RKM9j24Z19Z2A02O796q11H8c19=21JBH1k1+1610131E1A6w1596317212L1611141921222060562634B910201"
    "b119102013191181Tx214Ud289c5r12b1Y1a2B96CJv1696JSQ2E4Mv5x1a3o2C72027111T112B99c272j12ARd28o2De279s5X"
    "1E9681i11DAS3V2L1Df26111h13011188965111a1111579s9O7G1e13Sr20Fn1DwSc3k314BZ6io2Y3DrY1Awy35cIvr6v1cs1u"
    "H7U194m2196T25Ab2A9161K5ImDv1c6w2b3g24u17GW24B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387927yw3v76p"
    "Di2j12M9p3y1r7Ac12X6Lb2w3JCJCs29Od4q21c2112021231B10161W21327161R131410361pA2Z92zLF41EmY1U65r661G261"
    "1145z1X10m3i13D2941WAUHv150mEf1s6g140WF613111E1a62Ff1h24941nOZ2i2y1Y631Q1110201913101060401010121110"
    "201010101011102316131310191G52141Gq11k8h14Z3CE2E1E1a1Aj5u1SDh14871E5w4tU4G3C3s34+26B40FB4t1896d18T2B"
    "41+1pACD2C395t17E2A687o41b3cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4nYtL0U=2W4l7mm=1z==12z==1",
    "X1EA6Q5Q3Y18111320122030N0V0gE3CD56101Gr30805110k30h40t65f1122k10102020i11H9B012g23c3090A0J11De7341m"
    "1EV0f10x61A0X416110u30v31+30Y47y307040g60f10w30g20F0A1b5M25K0101013d20u17151Cl35k21x20aJ8d19c30iJ1i1"
    "1k22d21z4213a1Ar9031u4X1U1W4615W51AG9By33x14+11W27B0fN012B2D2D2D1HN8k1R4B4HW1=111311A0125510101040B1"
    "445310w114vKMAn2j2MrJU=U2V1e3b75E311m30l4k11j1Y1P1u2Cr6QF133OF05152x2130w20q4149W1b190GUBT80FVAc1F=9"
    "Wk6=1mqLs1t11j82Z30A0p358M91d31z43A3w13s21e1210n11l10X3CG1y33N2a31G1f30E1=30zvJ0e4GxBH=30i13G9MY11I1"
    "3r4EA6Q5QAw3616D1Y82q18v1G221C30l1i1YD0m10+C0dN0V1c50V0m88c10e20d16Y26v23nE0V1z80d54i13z56j3113+33m1"
    "1l2340D012u25h30g9111o34A110e30w7Mf32SCi20Y43x70e82x40y27p2214z29t60=24g11bK1g2Cb4SD0mZ14yx21xpE1b40"
    "X2841dH2d93dA0vbJ020Wx3l7GpDy4p3y1r7Ac12x152M17T4y1LX230w5s2gR0P0V0P0V0P0V0P0V0P0y1=Ft13o171D16Zs10l"
    "D0=N0+Q1iQ030z30XE1k8h14Z3CE2E1E1a1NW5u1SDh14871E5w4tU4G3C3s34+26B40FB4t1896d18T2B41+1pACD2C395t17E2"
    "A687o41x2",
    "m197P401Pl10A0405M1U1fE4BE47010Hq31123106012101J1o21g41i51b1206e18i1101111108Q43TA5f24b317291I20Gw12"
    "a3Er140202j1IR4A5N158g21W4291I17212L1610332821238041142BA0102215412L16111111201441223073107FB218121L"
    "16111429121220F329961217212L1611142821227241142910G115321331101131323B4432132060E9GC121M1F2812137112"
    "202329G317121M19142812137161132912CC121o11214537429A5121H3N181026304510176921Dv15E19d1110141N101M241"
    "0161923W10N169B01010491Z14J1H1Z190v1f26j22b110502g11iA132610132e1132W1132610132E1u1132Y222W1FGr2253h"
    "J2G1P5g23A7L9LBJCC1211Cp2304129X121A6u27g15b2AU1B4BAd124Bh14P69c1R4+11S2A69D08Un1i239H8Cp3Ct1893m12A"
    "5g122G21c15rG252b125271010101U2q11610321633254C5216F1n11J0S0D0GCp1W1H040291034601010131A235440He1jPp"
    "1su1a768Cb110502t170FN96161616161616161Vl10rE2PE14244r221221v2135g11z2HVm1FWG=j6W2iqLZ2j12i83RKo1191"
    "o3b182c32Y2211017Lr140Jp1Cb2A96N301m12Z1CS3W2EA6U1s19D296M3e2O22F24A5252596161g11D6w311296ZzACM4m1ae"
    "8jB2f3c16C45B1C141011111h3X1gBI=12r1e1B4FGF31O2W141c4J97P401PBu235252522Z1B1P1I111E2DY1w3b2q1e40Y4S3"
    "m1F0VVDT5g15T2Z14714g1z4296Z14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAPc2"
    "t161W231157121S2240W1S3SZ171TPr1ALAIDHk3e2t1o1Do1Dd1896b1341Mw7f11131G2t1W1A08W1VLg1KRM9c2VF9x170DO7"
    "96q119438Z1209a2431C10Z1H1a163+1610131E197w1596317212L1611141921222060562634B910201b11910201317D1Tg2"
    "5943Ub21089c5r128N5Y1W230B9c1u1796JSQ2E4966v5w1b3f2L72027111T1128C9c272j12711R+1808f230Ie2d6W1F9681i"
    "118F9OT2L1Df26111h13011188965111a1111579s9M9G1e134DAr20l2vSc3k3HZ6io2W3FlX1GLAwy35cIvr6v1cs1uH7U196k"
    "2196T24Bs193C99K5ImDi139c6=1W4g24u17GW2111B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387931nY49cGj12M"
    "+G4358726U3q42xDq21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O172n1WGs14n180E0M41EmY1"
    "U65r661G2611145z1X10m3i13D2940XAUHv1sEf1s6g1bF613111E1a6B6f1h249cb131Q111020191310106040101012111020"
    "1010101011102316131310191G52141GqJP6P6Pcp29cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
    "m197P401Pl10711031121M1U1fE4BE47010Hq31123106012101J1o21g41i51b1206e18i1101111108Q43TA5f24b317291I20"
    "Gw12a3Er140202j1IR4A5N158g21W4291I17212L1610332821238041142BA0102215412L16111111201441223073107FB218"
    "121L16111429121220F329961217212L1611142821227241142910G115321331101131323B4432132060E9GC121M1F281213"
    "7112202329G317121M19142812137161132912CC121o11214537429A5121H3N181026304510176921Dv15E19d1110141N101"
    "M2410161923W10N169B01010491Z14J1H1Z190v1f26j22b110502g11iA132610132e1132W1132610132E1u1132Y222W1FGr2"
    "253hJ2G1P5g23A7L9LBJCC1211Cp2304129X121A6u27g15b2AU1B4BAd124Bh14P69c1R4+11S2A69D08Un1i239H8Cp3Ct1893"
    "m12A5g122G21c15rG252b125271010101U2q11610321633254C5216Y21J0S0D0GCp1W1H040291034601010131A235440He1j"
    "Pp1su1a768Cb110502t170FN96161616161616161Vl10rE2PE14244r221221v2135g11z2HVm1FWG=j6W2iqLZ2j12i83RKo11"
    "91o3b182c32Y2211017Lr140Jp1Cb2A96N301m12Z1CS3W2EA6U1s19D296M3e2O22F24A5252596161g11D6w311296ZzACM4m1"
    "ae8jB2f3c16C45B1C141011111h3X1gBI=12r1e1B4FGF31O2W141c4J97P401PBu235252522Z1B1P1I111E2DY1w3b2q1e40Y4"
    "S3m1F0VVDT5g15T2Z14714g1z4296Z14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAP"
    "c2t161W231157121S2240W1S3SZ171TPr1ALAIDHk3e2t1o1Do1Dd1896b1341Mw7f11131G2t1W1A08W1VLg1KRM9c2VF9x170D"
    "O796q119438Z1209a2431C10Z1H1a163+1610131E197w1596317212L1611141921222060562634B910201b11910201317D1T"
    "g25943Ub21089c5r128N5Y1W230B9c1u1796JSQ2E4966v5w1b3f2L72027111T1128C9c272j12711R+1808f230Ie2d6W1F968"
    "1i118F9OT2L1Df26111h13011188965111a1111579s9M9G1e134DAr20l2vSc3k3HZ6io2W3FlX1GLAwy35cIvr6v1cs1uH7U19"
    "6k2196T24Bs193C99K5ImDi139c6=1W4g24u17GW2111B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387931nY49cGj1"
    "2M+G4358726U3q42xDq21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O172n1WGs14n180E0M41Em"
    "Y1U65r661G2611145z1X10m3i13D2940XAUHv1sEf1s6g1bF613111E1a6B6f1h249cb131Q1110201913101060401010121110"
    "201010101011102316131310191G52141GqJP6P6Pcp29cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
    "=m10W10km60nl30+rk3h24941",
    "aO0i10i10nkW2p1B0",
    "Wm141s61X1m2l1m7U115g21Slw50nl30kep1o3GyD2r170W1Fm341c4ZVRax2UZ22t13Wut131Q1110201913101060401010121"
    "110201010101011102316131310191G52141Gq11",
    "eO0eHb12n122Ziz14",
    "t50uhB1kct1r136",
    "yL0qq11H1Q317212L1610332821238041142Ons401021108080204022v=Y10",
    "dM012D0G1reB2491CA32060Z609g1m3Vbap11w84",
    "Wm6R21lzZ10",
    "rv519J",
    "cl29mo19sbW2q11H",
    "t50Yz7020pk30kZr1m1",
    "WO21061M1B1kZ4r225oxb1l2",
    "0W2Q5Qk11B1114N0V0XE2191030181015542J+306010zJ0t60aG0yg10rC3dX4B2W11U1911161A3A1EHW1=1b112251Q1Gf124"
    "vKMAL=SW8pJ2V1e3WGM1N2913101PYD030D0D0L0nGNV0n1EC3X595=2V0Wk6=1eeMPc32mU0E1arK9MK2B1I13p401VQ5Q5=361"
    "6A4oCCp1i1Zmo1v76pDy4p3y1r7Ac12z13G817T4y1r6JCJCs2R6d4q21c2112021231B10161W21327161R131410361pA2Z92n"
    "1nZ5Z2i2y1YMh14Z3CE2E1E1a1Aj5u1P11Dh148N5w4tU4G3C3s34+26B40FB4t1896d18T2B41+1pACD2C395t17E2A687o41b3"
    "dWXO0U=2",
    "t50eI03110i31i3DmaAp356t80ecr1R",
    "WeW21kqBY3",
    "WeW224i138Ws15201h1113020",
    "yL0Z221010102050k7l9mw5AW50i20=30d=3VZ20y=T=2kyL1Wmu1z1X10",
    "yL0Zo1o22g1mw4c111sV0=vX19c5VWmS9",
    "ah2BWsd19c+Rx1",
    "t50lI110O1tuA0ZkZ3g35C387927",
    "t50jI0wlW2d1",
    "kO0nt3e2132610132e1132W1132610132E1u1132Y22V3Pcl6M9616161616161616YfV525259616nbl2613111E",
    "im10E030WvX2b13S81",
    "t50nc10su2b110502l1my2g122wS0bb3b11050Z80",
    "t50hI010+B020X80nx20+w30bz2=2ZF0hXU0mik261G261114",
    "t50ib21w=a25111a1111579",
    "ah21wya26111h130111889",
    "t50iI120e10+==1Q",
    "ng21H1WKDyc4011U231sV0lmy1317212L1611141921222060562634xY3110",
    "t50eI1201010A0k1020g172310401012101J1+1EFcf64o1444q22+9L252b125271010101U2q11E1D251I2218+20e60+nY10w"
    "kLk2H0=Yq1b2",
    "ng21H1x8218121L16111429121220F32B76mfd19",
    "bh20wyr2v1",
    "ng21H1x4215412L16111111201441223073107Gvjd19",
    "t50ekBP1u2Cr6QF121C1C1C2068x50q4FW1b190m1d1u1m1FBp10u2OA4W3U1=j6W2=lKWu17ulKjB2f3hR1w84yZS1C1kxOH+s7"
    "1kj3=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4",
    "We4=7Xm72491CE260Z60r1z2n3UX2UXtTSZKZzACM4m1fo91w84w1U35252522",
    "im10E030W10p40hnX2d189",
    "Wv5M",
    "dO1eKs18Q45efz1P1410111119",
    "XWC2491CG510413r227w21egp11w84A0j11XZi1+8I0T2jbG0",
    "wY8020pk30F0+nt1o1Do175",
    "lO0201B1136202F111H1413ml11xg4UpNr11014iG1Y6Vmet1FGDlU0Yep1j12MWH2H726U3owhOl7",
    "Wig1j21A41",
    "ch29Xc90+lU9cYQY2A0",
    "Weg1l1",
    "bO0T0zcB2491CG51041x233=2m7Fm6k11t2jto11w8+1mYi13161110=82o10E3",
    "ng21H1wOC121M19142812137161132912y+301160N010xvY15",
    "ct29Wgd19ckQH1k1",
    "ah21gsd19spQw159",
    "X2P6Pl10C0205M1U1WE30A01210901064RE1110C0227111c10504Cr81gc11ez10aW3b16m1535C1b2v107=7l90X20D0GCp20v"
    "1160R0He1ts2VtC0edU7Qb33Y2211017LDk90XGg11813syJ6wW1P6PbX251f118bwr1U65",
    "bh20wy3U1B4B403B",
    "deW2i1ic1s99LA7",
    "WWW2B1P1I111E2DY1w3524i138",
    "yL0G0yfB1acTl1mrU0",
    "wY80bnu1S",
    "t50vhB0kts1P50",
    "t50ib2BWsd19seQc1",
    "ng21H1wSC121o112154F2Pww30N0zvY12",
    "Wo10=FR20",
    "Wo10=ZX2c14B",
    "zY80Yfw1V",
    "mXg19ckRa2B9",
    "WW6P6u27g1ay10n+3153qov1C",
    "cp29mWY2610131E1A",
    "WW4=4kac10n5UX3VmYRJ",
    "ah21WS9v=308070rvY15ghS72j12A",
    "im10E030WDw122+fz11",
    "t50eI052A0lB0is=1g1",
    "wY80rk30lkt1e2",
    "Wo10nbX20zZ1P",
    "ah21gZt3g140",
    "ng21H1xC217212L1611142821227241142HYh40N0",
    "XO02060i20tgW2Z14Z1",
    "YW6110fX20o+30zXUt1",
    "Wo10=fX2H73C6",
    "Wr5u2",
    "WW2j12Eol90",
    "ng20by40102120lwY1520dgQ=2",
    "t50uyW2l1",
    "ah21xW121H3N181026304510176922zt30kdz1J",
    "Wo10ldY2f1",
    "WO1109020S030kac2X1E9",
    "ah21W49mmd1i1",
    "ZO12110L0227110xM0E120W10AAQ0l4D1x122m8Aji5010",
    "Wu5L90L1",
    "rv51f1C1211",
    "WO15130pf39ce2T24",
    "ah21gsd19coRv169",
    "ng21H1yG115321331101131323B4432132060EK=c40uWZ10jmQ010t11Za3n1D0",
    "m=BFlF0mll20Vt=58=NWG8",
    "ng21H1wKC121M1F281213711220232978wY40N0",
    "YO0102010cnAt171E0",
    "im10E120W29s8n1Woz10A0",
    "yL0Q0h10j10ls2v15R",
    "Wu3d21Z14c11Z11E1641jX83",
    "ng21H1iy40zvY19cYRd289",
    "XO020209010g20XpW2p1",
    "yL0p+t3U",
    "cd39YW4010xvY15x50kqQ910201b119102013191181",
    "im10E030W29sWY2f11221",
    "XWC15927=60auRia13s1wqM4",
    "m197P401Pl10A0405M1U1fE4BE47010Hq31123106012101J1o21g41i51b1206e18i1101111108Q43TA5f24b317291I20Gw12"
    "a3Er140202j1IR4A5N158g21W4291I17212L1610332821238041142BA0102215412L16111111201441223073107FB218121L"
    "16111429121220F329961217212L1611142821227241142910G115321331101131323B4432132060E9GC121M1F2812137112"
    "202329G317121M19142812137161132912CC121o11214537429A5121H3N181026304510176921Dv15E19d1110141N101M241"
    "0161923W10N169B01010491Z14J1H1Z190v1f26j22b110502g11iA132610132e1132W1132610132E1u1132Y222W1FGr2253h"
    "J2G1P5g23A7L9LBJCC1211Cp2304129X121A6u27g15b2AU1B4BAd124Bh14P69c1R4+11S2A69D08Un1i239H8Cp3Ct1893m12A"
    "5g122G21c15rG252b125271010101U2q11610321633254C5216Y21J0S0D0GCp1W1H040291034601010131A235440He1jPp1s"
    "u1a768Cb110502t170FN96161616161616161Vl10rE2PE14244r221221v2135g11z2HVm1FWG=j6W2iqLZ2j12i83RKo1191o3"
    "b182c32Y2211017Lr140Jp1Cb2A96N301m12Z1CS3W2EA6U1s19D296M3e2O22F24A5252596161g11D6w311296ZzACM4m1ae8j"
    "B2f3c16C45B1C141011111h3X1gBI=12r1e1B4FGF31O2W141c4J97P401PBu235252522Z1B1P1I111E2DY1w3b2q1e40Y4S3m1"
    "F0VVDT5g15T2Z14714g1z4296Z14Z14d18p1CA1E16111A1E16113p1Cs99LA7O51f118b25201h111302MAM9UX2I11ALAPc2t1"
    "61W231157121S2240W1S3SZ171TPr1ALAIDHk3e2t1o1Do1Dd1896b1341Mw7f11131G2t1W1A08W1VLg1KRM9c2VF9x170DO796"
    "q119438Z1209a2431C10Z1H1a163+1610131E197w1596317212L1611141921222060562634B910201b11910201317D1Tg259"
    "43Ub21089c5r128N5Y1W230B9c1u1796JSQ2E4966v5w1b3f2L72027111T1128C9c272j12711R+1808f230Ie2d6W1F9681i11"
    "8F9OT2L1Df26111h13011188965111a1111579s9M9G1e134DAr20l2vSc3k3HZ6io2W3FlX1GLAwy35cIvr6v1cs1uH7U196k21"
    "96T24Bs193C99K5ImDi139c6=1W4g24u17GW2111B1Et=58rc1f19dt8316111Y9F0T220E38hCae2g35C387931nY49cGj12M+G"
    "4358726U3q42xDq21c2112021231B10161W21327161R131410361pA2O1O1U1O1U1O1U1O1U1O172n1WGs14n180E0M41EmY1U6"
    "5r661G2611145z1X10m3i13D2940XAUHv1sEf1s6g1bF613111E1a6B6f1h249cb131Q11102019131010604010101211102010"
    "10101011102316131310191G52141GqJP6P6Pcp29cW1=sf1W1vX46z62Xq5Emf7FjJYj2zGYl1gw45=Y4mgtLl7",
)
CASE = (
    "2X2W121W121W121W121W121W121W121W121W121W131W1=b821W121W121W121W121W121W121W131W1i821W121W121W121W121"
    "W121W121W13x2dNW12BW121W121W121W121W131W1cY821W121W121W121W121W121W121W121W121W121W121W121W121W121W1"
    "21W121W121W122W121W121W121W121W121W121W121=j72W1v321122122122122122122122122122122122122122122122122"
    "1221221221221221221221241221221231221221221221221221221231221221221221221221221221221221221221221221"
    "22122122122122122122122123122122123Z621o621122122k621122j621j621123l221g621h621122j621l621X321p621n6"
    "21122Z521Xof121p621r621Y421s621122122122w621122w623122w621122v621v621122122x621124123u13511331133112"
    "3122122122122122122122123122122122122122122122122133112312412212212212212212212212212212212212212212"
    "2122122122122122124122122122122122122122122128hnA21123enA21=nA21=nA21123b221d221122122122122122=mA21"
    "ymA21+mA2Algf125hgf123dhf121eff121agf124agf121tlA21Xgf125zlA2CdlA25Zgf125gff12Mref121oef14d5q2W1bW72"
    "h1122124125Y421Y421Y422q327c122b121b121b122W222=121=121ZY721W131W1U21W121W131W1W221W121W141W1PZ132W1"
    "s121W122W121W121W131W1M31W1m132V121W121W131W1F21W121W131W1zg721W121W125pX72V829122122122122122122122"
    "122122122122124725123126m221m221m221m221m221m221m221m221m221m221m221m221m221m221m221m221W121W131W1kY"
    "621W131W1jY621W121W121W121W121W121W121W121W121W131W1aY621W121W131W1YY641W1YY6121W121W121W121W121W121"
    "W121W131W1yX621W121W121W121W121W12n11321aX62212212212212212212212212212212212212212212212A1221221221"
    "22122122122122122122122122122122122122122122122122122122122122122122122F2112212212212212212212312212"
    "2122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122"
    "122122122122122122122122122122122122123m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m"
    "121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m12gw2WZ721WZ"
    "721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ"
    "721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ721WZ722WZ726WZ723W+221W+"
    "221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+"
    "221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+221W+"
    "221W+223W+221W+221W+22XLm+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b1"
    "21m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+"
    "b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121"
    "m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b1"
    "21m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+b121m+"
    "b12182182182182182183pa2YkY112112m7amY124ct32HunY12o312212212212212212212212212212212212212212212212"
    "21221221221221221221221221221221221221221221221221221221221221221221221221221221221221221221221321w1"
    "2212212212212212212212212212212212212212212212212212212212212212212212212212212C12212212212212212212"
    "2122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122"
    "12212212212212212212212282182182182182182182182982182182182182182B8218218218218218218218298218218218"
    "2182182182182982182182182182182C822822822829821821821821821821821829g221g221s221s221s221s221a321a321"
    "W421W421m321m321+321+3238218218218218218218218298218218218218218218218298218218218218218218218298218"
    "2292G92D82182F82182472E92=9S2k1G21G21G21G21G21G21G21G21G21G21G21G21G21G21G21G2K12pPQ21Q21Q21Q21Q21Q2"
    "1Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q21Q2nv1m121m121m121m121m121m121m121m121m121m"
    "121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m121m"
    "121m121m121m121m121m121m121m121m121m121m121m121m121m12n112712212212712312B12212212212212212212212212"
    "2122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122122"
    "12212212212212212212212912212512kgU12212212212212412212212212212212212212212212212212212212212212212"
    "K12212212212212212212212212212212212212212e412212212212212212212412212212212212212212212212212212212"
    "212212212212212212212212212212212212212212212212212212212B122123122122122122125125122122m12212212212"
    "212212212212212212212BWT2112212212212212212212212512212312412612212212R12muK12yW1W121W121W121W121W12"
    "1W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W12cc1e121e121e121e"
    "121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e"
    "121e121e121e121e121e121e121e121e121e121e121e12f4e121e121e121e121e121e121e121e121e121e121e121e121e121"
    "e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e121e12z4d121d12"
    "1d121d121d121d121d121d121d121d121d122d121d121d121d121d121d121d121d121d121d121d121d121d121d121d122d12"
    "1d121d121d121d121d121d122d121d12ht1W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W"
    "221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W221W"
    "221W221W221W221W221W221W221W221W221W22+4W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121"
    "W121W121W121W121W121W121W12xv2W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W1"
    "21W121W121W121W121W121W121W121W121W121W121W121W121W121W12XiLW121W121W121W121W121W121W121W121W121W121"
    "W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W121W12XrUY121Y121Y1"
    "21Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y121Y1"
    "21Y121Y121Y121Y121Y121Y1"
)
ONIGURUMA_SEVERAL_FOR_ONE = (
    "2X3+Lwq72c3c3Wu+13c3c3f3Zu+13c3c3i3au+12c3f3Xu+12c3i3Yu+12e3nPsq72f3dOm92g3iOmF2p3p3=62p3p3+q72p3q3b"
    "u+12p3q3cu+12q3eOtq72t3gOuq72v3gOvq72yLk3fA2iTvTqz72kTvTa+72nTYQsz73nTYQvTtz72nTvTpz72nTvTyz72tTYQc+"
    "73tTYQvTd+72tTvTZ+72tTvTi+73vTeOWOo+73vTeOXOmS3vTeOXOp+73vTeOYQt+72vTYQs+72XUpOa=73bUeOWOY=73bUeOXOm"
    "T3bUeOXOZ=73bUeOYQd=72bUpOmw73bUpOWOow73bUpOXOqw73bUpOYQsw72bUYQc=72fUYQs=73fUYQvTt=72fUvTp=72fUvTy="
    "72kUvTq=72bh1Yi1di12qh1bh1qu+12qh1hh1ru+12qh1jh1tu+12qh1sh1pu+12+h1sh1su+12Wu7vTWy72Wu7vTey72Xu7vTXy"
    "72Xu7vTfy72Yu7vTYy72Yu7vTgy72Zu7vTZy72Zu7vThy72au7vTay72au7vTiy72bu7vTby72bu7vTjy72cu7vTcy72cu7vTky7"
    "2du7vTdy72du7vTly72Wv7vTmy72Wv7vTuy72Xv7vTny72Xv7vTvy72Yv7vToy72Yv7vTwy72Zv7vTpy72Zv7vTxy72av7vTqy72"
    "av7vTyy72bv7vTry72bv7vTzy72cv7vTsy72cv7vT+y72dv7vTty72dv7vT=y72Wx7vTWz72Wx7vTez72Xx7vTXz72Xx7vTfz72Y"
    "x7vTYz72Yx7vTgz72Zx7vTZz72Zx7vThz72ax7vTaz72ax7vTiz72bx7vTbz72bx7vTjz72cx7vTcz72cx7vTkz72dx7vTdz72dx"
    "7vTlz72mx7vToz72qx7vTY+72yx7vTo=7"
)
SCRIPT_RUNS = (
    "0V01V00P10500P10k100010E00010400M10000U10000WE10c100410400120J00l33034000024234000004404000004000024"
    "1041J41+140D50F40a460130e561b172671c171000072271s188Q8548B490000590000D90101090000V90000990A30P90030"
    "h390000X190DA1x1A22A0l190n1BEw1C5j1D2ED1RE20EX2K9179MD90000S90m2F0130GF0100PF03G17G21G2LG16G10G33G28"
    "G21G23G80G41G14G2LG52H15H41H2LH16H11H11H11H20H14H41H22H30H73H10H7FHB2I18I12I1LI16I11I14I29I12I12I20I"
    "F3I2BI70I72J17J21J2LJ16J11J14J28J21J22J81J41J14J2HJA1K15K32K13K31K10K11K31K32K3BK44K32K13K20K60KEKK5"
    "3L17L12L1ML1FL37L12L13L71L12L53L29L87L03M17M12M1MM19M14M28M12M13M71M70M13M29M11ME2N17N12N1e1N27N12N1"
    "5N4FN2PN21O1HO3NO18O10O26O30O45O10O17O69O22OCv1P4000RPb11Q10Q21Q10Q20Q63Q16Q12Q10Q10Q21Q1CQ12Q24Q10Q"
    "15Q29Q23QW1d2R1Z1R4c1R1Z1R1ER16R03001Rb1=4S0b1T10T50T2g1T00003T0=7U0e2V13V26V10V13V2e1V13V2W1V13V26V"
    "10V13V2EV1u1V13V2Y2V2VV3PV6r2W125W12=JX10SY13g2Z10200AZ17Ca116a1BKb10109Jc1CCd112d111d1Cz2e129e169e1"
    "61f101000f100008f119f16t2f18g1f15b2X1AUg11Bg14Bg140g13Bg10Th124h1Bh1i14Pi16Ai131i10Ve10Rj121j10+1k11"
    "Sk12Ak169k16Dk12E3X2h2l14i1l13=1m10p1n183n10t1o13Eo132o10l1p1086t17m18230000C30000630300030500030101"
    "136b110440060m110440310440C10060b210040r135430=710L42542b142542741041041041U42q141E41D42541I42241841"
    "B00130s201A00012A00010E01C13U0HW13Fb100040200110500010Q00010G00e110204kJ01c10PA0L=S00=7q10pJ02V02X10"
    "3B0170Q30Gk1r11k1r11V10p355650b1T10T50T2t1s171s1E0s10MV96V16V16V16V16V16V16V16V1V60a20x1Pt11u2t1Cr6t"
    "1QB044000t100000t10O008t103301U07003t10301r2t121301002t10000v2t100003t15e123z2U1F00Q25Z10CFt10UU1=10"
    "0UU0m200k1t11t2t10d500rj6t1A=100rkKt1g1ia1u13s1u19l1v10h9w1K=260t2x18X100b310200Z11171=1810h1y14906t"
    "1z18b2+18B+16TF2j1=100000=10Z1W2B0W20SU3j2X210009X241X20US1s1Y29DY229Y223Y20VS0Y2Z2O4Z20Ma2A5V25V25V"
    "96V16V1g11000081004Al2W10j1a229a26ZzAUCMU4m1Uae8jBt12f3t1c161C475P81481081181181980n39HgB9010G=192r1"
    "9e1D92F30906D30160Y101I01304491c492001V00P10500P10A009t10000i1t10100UU35U25U25U22U360160A402Bb21Pb21"
    "Ib211b21Eb22Db2Y1w3b25204i103800k241B0404l1i10003Y4Sc23m1d2F030Q04Z1e2CQf25g1g25Th210h20Z1i24Di2g1l2"
    "j20l1k20Tl229l26Z1m24Z1m24d1n28p1o2B0o2m4s9p29Lp2A7p2u45q220q21h1q211q230q220q20Lr218r20Vs20Ut288t2m"
    "1Iu211u254u20Rv230v20Pw250w2W2Vx20Ny24Jy22j1y203z211z257z212z21Qz242z248z288z27V+20V=2W1c1W34BW39r1X"
    "336X30LY327Y30IZ357Z30Ha373a3C6a3m2e2b3t1o1c3Do1c375c3WBU9XCj2d34Td3F0d30X2e3EOf379f36q1g31Dg3Cc1h39"
    "j2i32Fi31JOBHj31h1j3X26k310k313k31Ek31Ak36w1l359l363m317m321m32Lm316m311m314m328m321m322m320m360m356"
    "m326m334m3h4v2n310n310n3Y1d2o389o3c5r1p32b1p3Y1a2q3B9q36Cf1Jt1r389r3s1Ps33Es34Fs3WBo2t3C0t3WEu1u3d88"
    "v31i1v31Dv3ASv33Vw32Lw31Dw3fQvSx3c3k3x314x3BZ6x3yr2kX1y3n+3cIz3vj8uHx17U+319+341+3W3T=325=3Ab2W4A9W4"
    "16W41KW45IW4mRa2X4Bk1X4GGX4W20Y4Vi=5Y4JoNY4je91t1+=2g3Z45CZ438Z479Z423Z4030yw4r70Ac102z100230G007301"
    "00630T00330w10Nb24w5s209H0k4q201c201102002102301B01001601W201302701601R01301401003601pA02Z902n100hKa"
    "4F4a41Ea4mg16r11Gr126r111r114r1r+1a6b42Fb4f1g2c459c441c4Wb1391Q9119109209199139109109609409109109129"
    "1191092091091091091091191092391691391391091991G95291491G9q119k8h104Z30CE02E01E01a10AC03U01x104y10v1P"
    "000t1010Dh10480710k5oU0DC03609p30Cq20h1B04t108906d108T0Y3E01708002B01B04E0X1H0k100=n1ssf1t1f1qX4t1Bz"
    "6t12Xq5t1+gAzGt1ZlXM00U=20W4l73"
)
PUNCTUATION = (
    "X1EA6Q5Q3Y105030A13030+L080oE5f11p10102020i11K111D021g23c30h1Df72s1EV0b81A0=B0ZO0w20A1e5E10b13d20g24"
    "41l35h50aJ8t40iJ1i11k22d21z4212b1Av91u61W4615i56x43x14+11W27B0yPN8J1C1BU1E1vJ3T1zX1Dl21V9pCL=13W11xN"
    "311m30l4k11I+D2492BG0C0Y30w20YWT1j82Z30A0p35yB3s21e1210n11l10X3CG1y33+31G1v70ogK1m69MY11D104011r4215"
    "13A131Q210R01016wC2yK0m10+C0dN0d60V0m88c10m36Y26v23gb16j3113+33m11l2430D012u25h30yG0w7Mf32u72nf34vlH"
    "1b40X2480wgK0dl74"
)
NUMERIC = (
    "m19u315022Xj19c49c69yC9s3945i39s39s3925k3Cp3986d39e367Ij39W39s39c2Ji89c29lMJnR2l7969M9i99W4Ab5969s59"
    "s29c4969sW103569c6o124sMx1k2LsJTfh10fO0P8E2tA3g49U71EW19d1EWxS9y59WA5w49c19c69M9s29sC9suK9jFi1Cu1H1r"
    "AQa13T080c44g69kT7P6d18h24M5W512F2j1W28q11U2h24e37O7f16gA5m1969s8U+49g13m36c4TW49y19m497Jx79sA9s39sB"
    "9c396Ji2BaDIz29sK9s2SZ79c29s19cB9c3KhX1k3XcF9cf29s29c4916kG9c8MzA2vdN9ck1JCJi3OrY1n1Wg29cD9sF9t79iM8"
    "W49tOw11213i2i11EYUCZt29"
)
