"""Make the page that compares two tokenizers: a text field, and the tokens of both side by side."""

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
MOST_CHARACTERS: Final = 20_000  # limit for typed text: about 50 ms of work per key press
SAMPLE: Final = (
    "Tokenizers cut text into pieces: it's 1234567 of them, or fewer.\n"
    "    def naïve(café): return 'Größe'  # 30 €\n"
    "Привет, мир! 你好，世界。 🙂👍🏽\n"
)


def compare_page(names: tuple[str, str], tokenizers: tuple[Tokenizer, Tokenizer], text: str = SAMPLE) -> str:
    """Return the page. The cost is about one second and 5 compressed bytes per entry for 200,000 entries.

    names: names of the files or repositories.
    text: initial text.

    Raise UnsupportedTokenizer with the name if a page cannot reproduce a tokenizer exactly.
    """
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
    """Return the last parts of the names, or the names if these parts are equal."""
    first, second = (Path(name).name or name for name in names)
    return (first, second) if first != second else names


def _typing(text: str) -> str:
    # HTML drops a newline at the beginning of a textarea.
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
