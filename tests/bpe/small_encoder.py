"""A small vocabulary with entries that no merge reaches, its encoder by each rule, and difficult texts."""

from __future__ import annotations

from pretoken_ends import automaton_of

from bpe import _core
from bpe.reference import count_pretokens, train

BYTES = [bytes([value]) for value in range(256)]
SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "  It's 1234567 o'clock;\n\n\twe'll see\u00a0— naïve façade, ÆØÅ.",
    "def f(x):\n    return x ** 2  # squared\r\n",
    "漢字とカタカナ、한국어 그리고 русский язык уменьшить",
    "🙂🙃👩‍👩‍👧 e\u0301 \u200d ﬁ ½ ٣٤ \x00\x7f",
    "-----------------------------------------------------------------=====",
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ==" * 9,
    " " * 70 + "x" + "\n" * 20,
    "internationalization " * 3,
]
SPECIAL = {"<|endoftext|>": 5000, "<|pad|>": 5001, "<|pad|>>": 5002, "EOT": 5003}
SEPARATOR = b"<|endoftext|>"


MERGES = train(count_pretokens(SENTENCES), 400)
ENTRIES = dict(enumerate(dict.fromkeys(BYTES + [left + right for left, right in MERGES])))
# Entries that no merge reaches: one is a pretoken of the sentences, another is part of a pretoken.
ENTRIES |= {4000: b" fo", 4001: "字と".encode(), 4002: b"-" * 41, 4003: b"internationalizatio"}


def core(rule: str, pattern: str | None = "gpt2", **options: int) -> _core.TokenizerCore:
    special = {text.encode(): id_ for text, id_ in SPECIAL.items()}
    return _core.EntryFile.from_entries(ENTRIES, None if rule == "ranks" else MERGES).encoder(
        special, pattern and automaton_of(pattern), rule != "merges", **options
    )


RULES = ["merges", "merges whole", "ranks"]
