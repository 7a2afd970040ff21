"""The page that compares two tokenizers: a place to type, and on both sides what each makes of it."""

from __future__ import annotations

import base64
import html
from importlib import resources
from pathlib import Path
from typing import Final

from bpe.errors import UnsupportedTokenizer, printable
from bpe.tokenizer import Tokenizer
from tokenmill.compare.page_model import page_model
from tokenmill.html.components import SERIES, escaped, heads, legend, pair, section, table
from tokenmill.html.page import page

MARK: Final = "<!-- tokenmill comparison -->"
MOST_CHARACTERS: Final = 20_000  # that one may type: some 50 ms of work a key
SAMPLE: Final = (
    "Tokenizers cut text into pieces: it's 1234567 of them, or fewer.\n"
    "    def naïve(café): return 'Größe'  # 30 €\n"
    "Привет, мир! 你好，世界。 🙂👍🏽\n"
)


def compare_page(names: tuple[str, str], tokenizers: tuple[Tokenizer, Tokenizer], text: str = SAMPLE) -> str:
    """The page. names: of the files or repositories. text: what it begins with.

    UnsupportedTokenizer, with the name, for one that a page can't do exactly. Cost: about a second for 200,000 entries;
    the page holds some 5 bytes of each entry, compressed."""
    models = []
    for name, tokenizer in zip(names, tokenizers, strict=True):
        try:
            models.append(base64.b64encode(page_model(tokenizer)).decode())
        except UnsupportedTokenizer as error:
            raise UnsupportedTokenizer(f"{printable(name)}: {error}") from None
    shown = _short_names(names)
    scripts = [
        resources.files(__package__).joinpath(f"{part}.js").read_text("utf-8")
        for part in ("text_cuts", "encoder", "comparison")
    ]
    return page(
        f"{shown[0]} and {shown[1]}",
        "Type or paste text. Both tokenizers encode it like <code>tokenmill encode</code>, including special tokens.",
        [],
        [_typing(text), _sides(shown), _facts(shown, names, tokenizers)],
        kind="comparison of tokenizers",
        made_by="tokenmill compare",
        mark=MARK,
        scripts=scripts,
        data=[(f"model-{number}", model) for number, model in enumerate(models)],
    )


def _short_names(names: tuple[str, str]) -> tuple[str, str]:
    """Their last parts, where these differ."""
    first, second = (Path(name).name or name for name in names)
    return (first, second) if first != second else names


def _typing(text: str) -> str:
    # The first line end of a textarea's text is left out by HTML.
    area = (
        f'<textarea id="typed" rows="6" maxlength="{MOST_CHARACTERS}" spellcheck="false" autocapitalize="off" '
        f'autocomplete="off" dir="auto" aria-label="Text">\n{html.escape(text)}</textarea>'
    )
    return section("Text", f'{area}<p class="note" id="verdict" aria-live="polite"></p>')


def _sides(names: tuple[str, str]) -> str:
    sides = []
    for name, series in zip(names, SERIES, strict=True):
        label = f"tokens of {name}; arrow keys move between tokens"
        sides.append(
            f'<div><h3>{legend(name, series)}</h3><p class="note" id="{series}-facts"></p>'
            f'<p class="t" id="{series}-tokens" dir="auto" tabindex="0" role="group" aria-label="{escaped(label)}"></p>'
            f'<details open><summary>IDs</summary><p class="t ids" id="{series}-ids" tabindex="0"></p></details></div>'
        )
    note = (
        "Each box is a token. Tokens that form one character together share a box. Hover, tap, or use the arrow keys "
        "to see IDs and bytes. An outline marks tokens with boundaries that the other tokenizer does not have."
    )
    return section("Tokens", pair(sides), note)


def _facts(shown: tuple[str, str], names: tuple[str, str], tokenizers: tuple[Tokenizer, Tokenizer]) -> str:
    rows = [
        ["entries", *(f"{each.vocab_size:,}" for each in tokenizers)],
        ["special tokens", *(f"{len(each.special_tokens):,}" for each in tokenizers)],
        ["merges", *(_merges(each) for each in tokenizers)],
        ["entries are", *("text" if each.text_rules else "bytes" for each in tokenizers)],
        ["normalizer", *(escaped(str(each.normalizer or "none")) for each in tokenizers)],
        ["pattern", *(f'<span class="wrap">{escaped(each.pattern)}</span>' for each in tokenizers)],
        ["file", *(f'<span class="wrap">{escaped(name)}</span>' for name in names)],
    ]
    return section("Tokenizers", table(["", *heads(shown)], rows, "bars facts"))


def _merges(tokenizer: Tokenizer) -> str:
    return (
        "every pair that forms an entry"
        if tokenizer.is_rank_file
        else f"{tokenizer.parts.vocabulary.merge_count:,}"
    )
