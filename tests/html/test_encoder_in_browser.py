"""The encoder of the page that compares tokenizers gives the IDs of `Tokenizer.encode` in a browser."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pytest
from text_vocabularies import text_vocabulary

from bpe.added_tokens import AddedToken
from bpe.errors import UncoveredText
from bpe.formats import huggingface
from bpe.normalizers import Form, Lowercase, Normalizer, Prepend, Replace
from bpe.pretokenization.components import ByteLevel, Digits, Metaspace, Punctuation, Split
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import Tokenizer
from bpe.training import train
from tokenmill.compare.page_model import page_model

END = "<|endoftext|>"
CORPUS = f"""The mill by the river grinds 12,345 grains; it's what we've got, isn't it? {END}
Größe, naïve café: été — Привет, мир. 你好，世界 日本語の文 한국어 मिल ไทย 🙂👍🏽 e\u0301\u0323 ﬁ ½ ٣
    def f(x):\n        return x['key'] + 1.5e10  # \t\r\n\n\n ---- ==== ____ <s> ▁▁
"""
PARTS = [
    *CORPUS.split(" "), " ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "ſ", "K", "1", "123456789", "a", "ab", "é",
    "e\u0301", "\u0323\u0301", "\u0345", "가", "\u1100\u1161", "ﬁ", "Å", "\u200d", "\ufeff", "\x00", "𝄞", "\U0010ffff",
    "\u0085", "\u2028", " xyzzy", "what we've", "zap", "中", "▁", "THE", "the", END, "<s>",
    "<0x0A>", "-" * 40, "İ", "Σ", "\u0378", "𞤀",
]  # fmt: skip
THREES = r"\d{1,3}(?=(?:\d{3})*\b)"


def texts(seed: int) -> list[str]:
    rng = random.Random(seed)
    made = ["", " ", "a" * 600, " " * 300, "ri", "xri", "river", "zap", "zap" + END, "xyzzy"]
    made += ["".join(rng.choices("abc", k=6000)), "".join(rng.choices("abé中字𝄞 \n", k=400))]
    made += ["".join(rng.choices(PARTS, k=rng.randint(1, 25))) for _ in range(60)]
    for _ in range(20):
        points = (rng.choice([rng.randrange(0x250), rng.randrange(0xD800)]) for _ in range(20))
        made.append("".join(map(chr, points)))
    return made


def with_pattern(pattern: str | Pretokenizer, **options: Any) -> Tokenizer:
    made = train([CORPUS.encode() * 3], 420, [END])
    return Tokenizer(made.ordinary_entries, made.merges, [END], pattern, **options)


def ranked(pattern: str) -> Tokenizer:
    made = train([CORPUS.encode() * 3], 420, [], pattern)
    by_rank = dict(enumerate(made.ordinary_entries.values()))
    return Tokenizer(by_rank, None, [END], pattern)


def components(*made: Any) -> Callable[[], Tokenizer]:
    return lambda: with_pattern(Pretokenizer(made))


def with_entry(entry: bytes) -> Tokenizer:
    """With an entry that no merge makes and that is emitted anyway."""
    made = with_pattern("llama3")
    return Tokenizer(made.ordinary_entries | {5000: entry}, made.merges, [END], "llama3", ignore_merges=True)


def with_random_merges() -> Tokenizer:
    rng = random.Random(5)
    entries, merges = [bytes([byte]) for byte in range(256)], []
    for _ in range(60):
        left, right = rng.choices([b"a", b"b", b"c", *entries[256:]], k=2)
        if len(left + right) < 9 and (left, right) not in merges:
            merges.append((left, right))
            entries += [left + right] * (left + right not in entries)
    rng.shuffle(merges)
    return Tokenizer(dict(enumerate(entries)), merges, [], "gpt2")


def with_text_entry() -> Tokenizer:
    """The same of a vocabulary of text as `with_entry`."""
    made = of_text("whole")()
    return Tokenizer(
        made.ordinary_entries | {5000: "▁xyzzy".encode()},
        made.merges,
        ["<unk>"],
        made.pretokenizer,
        ignore_merges=True,
        normalizer=made.normalizer,
        text_rules=made.text_rules,
    )


def of_text(name: str) -> Callable[[], Tokenizer]:
    return lambda: Tokenizer.from_parts(huggingface.read(text_vocabulary(name).encode()))


def normalized(*made: Any) -> Callable[[], Tokenizer]:
    return lambda: with_pattern("gpt2", normalizer=Normalizer(made))


def stripping() -> Tokenizer:
    """Added tokens that take white space, and others that are white space."""
    made = train([CORPUS.encode() * 3], 420)
    tokens = [
        AddedToken(END, 1000, rstrip=True),
        AddedToken("<s>", 1001, lstrip=True, rstrip=True),
        AddedToken("--", 1002, lstrip=True, normalized=True),
        AddedToken("\n", 1003),
        AddedToken("we've", 1005),
        AddedToken("what we've", 1006, normalized=True),
        AddedToken("  ", 1004, normalized=True, lstrip=True),
    ]
    return Tokenizer(
        made.ordinary_entries, made.merges, tokens, normalizer=Normalizer((Replace("the", "  "),))
    )


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": lambda: with_pattern("gpt2"),
    "cl100k": lambda: ranked("cl100k"),
    "o200k": lambda: ranked("o200k"),
    "llama3": lambda: with_entry(b" xyzzy"),
    "ends": lambda: with_pattern(r"ri(?=v)|r|[^r]"),
    "two ways": lambda: with_pattern(rf"{THREES}|[^\d]+|\d+"),
    "two ways, removed": components(Split(THREES, "oniguruma", "Removed"), ByteLevel(False, use_regex=False)),
    "leaves out": lambda: with_pattern(r"\p{L}+| +|\d"),
    "prefix": components(ByteLevel(add_prefix_space=True)),
    "stages": components(Split(r"\d{1,3}", "oniguruma"), Punctuation(), ByteLevel(False, use_regex=True)),
    "removed": components(Digits(True), Split(" ", "text", "Removed"), ByteLevel(False, use_regex=False)),
    "blocks": components(Metaspace("Ġ"), ByteLevel(False, use_regex=False)),
    "strips": stripping,
    "random merges": with_random_merges,
    "text entry": with_text_entry,
    "NFC": normalized(Form("NFC")),
    "NFKD": normalized(Form("NFKD")),
    "emptied": normalized(Replace("zap", ""), Prepend("x")),
    "normalized": normalized(Form("NFKC"), Lowercase(), Replace("the", "THE "), Prepend("x")),
    **{
        name: of_text(name)
        for name in (
            "llama",
            "gemma",
            "mistral",
            "metaspace",
            "unknown-fused",
            "whole",
            "byte-merges",
            "random-merges",
            "some-bytes",
        )
    },
}


@pytest.fixture(scope="module")
def encoder(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    page.set_default_timeout(120_000)
    for name in ("text_cuts.js", "encoder.js"):
        page.add_script_tag(content=resources.files("tokenmill.compare").joinpath(name).read_text("utf-8"))
    yield page
    page.close()


ENCODE = """async ([model, texts]) => {
  const tokenizer = await PageTokenizer.read(model);
  return texts.map((text) => {
    try { return tokenizer.encode(text).map((token) => token.id); } catch (error) {
      if (!(error instanceof CannotBeExact)) throw error;
      return error.message;
    }
  });
}"""


@pytest.mark.slow
@pytest.mark.parametrize("name", TOKENIZERS)
def test_ids_are_those_of_encode(name: str, encoder: Any) -> None:
    tokenizer = TOKENIZERS[name]()
    given = texts(len(name))
    found = encoder.evaluate(ENCODE, [base64.b64encode(page_model(tokenizer)).decode(), given])
    refused = 0
    for text, ids in zip(given, found, strict=True):
        if isinstance(ids, str) and "Unicode tables" in ids:  # of the browser
            refused += 1
        elif isinstance(ids, str):
            with pytest.raises(UncoveredText):
                tokenizer.encode(text)
        else:
            assert ids == tokenizer.encode(text), text
    assert refused <= len(given) // 20


def test_what_tokens_stand_for(encoder: Any) -> None:
    """Their bytes together are the text, where nothing changes it."""
    for name in ("gpt2", "llama"):
        tokenizer = TOKENIZERS[name]()
        model = base64.b64encode(page_model(tokenizer)).decode()
        text = "the mill € 𝄞 中\n"
        script = """async ([model, text]) =>
            (await PageTokenizer.read(model)).encode(text).map((token) => token.bytes).join('')"""
        stands = encoder.evaluate(script, [model, text])
        assert stands.encode("latin-1").decode() == (" " if name == "llama" else "") + text


def test_a_browser_of_other_tables_is_found_out(encoder: Any) -> None:
    """Made by a normalize that changes one character more, and one that orders a mark in another way."""
    model = base64.b64encode(page_model(TOKENIZERS["NFC"]())).decode()
    script = """async ([model, text, fault]) => {
      const right = String.prototype.normalize;
      const wrong = new Function("text", "return " + fault);
      String.prototype.normalize = function (form) { return wrong(right.call(this, form)); };
      try { return (await PageTokenizer.read(model)).encode(text).length; } catch (error) { return error.message; }
      finally { String.prototype.normalize = right; }
    }"""
    for text, fault in (
        ("aß", "text.replace('ß', 'ss')"),
        ("a\u0315", "text.replace('\u0315\u0345', '\u0345\u0315')"),
    ):
        message = encoder.evaluate(script, [model, text, fault])
        assert "Unicode tables" in message, (text, message)
        assert isinstance(encoder.evaluate(script, [model, "abc é", fault]), int)
