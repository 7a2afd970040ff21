"""The pages in a real browser, as wide as a desktop and a phone: nothing is cut, too small or misaligned."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe.__main__ import main as run_bpe
from bpe.tokenizer import Tokenizer
from convert.__main__ import main as run_convert
from flat_tokens.__main__ import main as run_flat_tokens
from tokenmill.compare.__main__ import main as run_compare

END = "<|endoftext|>"
EXPRESSION = r" ?\p{L}[\p{L}\p{M}]*|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+|long enough to be folded"
PAGES = ("tokenizer", "no text", "text entries", "dataset", "compare")
LONG = "ÃÂ" * 64 + " " + "-" * 90 + " " + "antidisestablishmentarianism" * 4


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind, by name."""
    here = tmp_path_factory.mktemp("pages")
    rng = random.Random(0)
    words = "the mill by river grinds Größe naïve Привет мир 你好 世界 मिल ᓄᓇᕗᑦ 123 4567 can't 🙂 \u200b aПb".split()
    text = "\n".join(" ".join(rng.choices(words, k=rng.randint(1, 60))) + END for _ in range(300))
    (here / "text.txt").write_text(text + f" {LONG}" * 9)
    corpus, made = here / "text.txt", {name: here / f"{name.replace(' ', '-')}.html" for name in PAGES}
    other = "a-rather-long-name-of-a.tokenizer.json"
    for name, *words in (
        ("mine.json", "--vocab-size", 1000, "--max-token-bytes", 0, "--pattern", EXPRESSION),
        (other, "--vocab-size", 500, "--pattern", "cl100k"),
        ("of-text.json", "--vocab-size", 600, "--like", "llama-2"),
    ):
        run(run_bpe, "train", corpus, "--quiet", "--special-token", END, *words, "--output", here / name)
    run(run_bpe, "report", here / "mine.json", corpus, "--output", made["tokenizer"])
    run(run_bpe, "report", here / "mine.json", "--output", made["no text"])
    run(run_bpe, "report", here / "of-text.json", corpus, "--output", made["text entries"])
    run(run_compare, here / "mine.json", here / other, "--output", made["compare"])
    dataset = here / "mill.zarr"
    run(
        run_convert, corpus, "--tokenizer", here / "mine.json", "--output", dataset, "--quiet", "--workers", 1
    )
    run(run_flat_tokens, "report", dataset, "--output", made["dataset"])
    return made


def run(command: Any, *words: object) -> None:
    assert command(list(map(str, words))) == 0


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """opened(name, width, scheme): the page, which must request nothing and log no error."""
    contexts, complaints, asked = [], [], []

    def open_page(name: str, width: int, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(pages[name].as_uri())
        if name == "compare":
            page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith("file:") for url in asked)
    assert len(asked) == len(contexts)


FAULTS_OF_A_PAGE = """(width) => {
  const found = [];
  const say = (what, element) => {
    found.push(`${what}: ${element.tagName} ${element.className} ${element.textContent.trim().slice(0, 40)}`);
  };
  const scrolls = (element) => element.closest(".scroll, textarea, #live");
  if (document.documentElement.scrollWidth > width) found.push("the page is too wide");
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true }) || scrolls(element)) continue;
    const own = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (own && parseFloat(style.fontSize) < 10) say("too small", element);
    if (own && (box.right > width + 0.5 || box.left < -0.5)) say("outside", element);
    const card = element.closest(".t") ? null : element.closest("section, .cards li");
    if (own && card && box.right > card.getBoundingClientRect().right + 0.5) say("out of its card", element);
    const inner = /^T[HD]$/.test(element.tagName) ? element : null;
    if (inner && inner.scrollWidth > inner.clientWidth + 1) say("out of its cell", inner);
    if (own && element.scrollWidth > element.clientWidth + 1 && style.overflowX === "hidden") say("cut", element);
  }
  for (const table of document.querySelectorAll("table")) {
    const columns = new Map();
    for (const bar of table.querySelectorAll(".track i")) {
      const at = bar.closest("td").cellIndex, left = Math.round(bar.getBoundingClientRect().left * 10);
      if (columns.has(at) && columns.get(at) !== left) say("begins elsewhere", bar.closest("tr"));
      columns.set(at, left);
    }
  }
  for (const row of document.querySelectorAll(".axis, .ticks, thead tr")) {
    let last = -Infinity;
    for (const label of row.querySelectorAll("span:not(.key), th")) {
      const range = document.createRange();
      range.selectNodeContents(label);
      const box = range.getBoundingClientRect();
      if (!box.width || label.querySelector("span") || scrolls(label)) continue;
      if (!label.checkVisibility({ visibilityProperty: true })) continue;
      if (box.left < last) say("over the one before", label);
      last = box.right;
    }
  }
  return found;
}"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width"),
    [(name, 390) for name in PAGES] + [(name, 1280) for name in ("tokenizer", "dataset", "compare")],
)
def test_a_page_is_readable(name: str, width: int, opened: Any) -> None:
    page = opened(name, width, "dark" if width == 390 else "light")
    assert page.evaluate(FAULTS_OF_A_PAGE, width) == []
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
    assert page.evaluate(FAULTS_OF_A_PAGE, width) == []


TIPS = {"dataset": "sequences", "compare": "token "}


@pytest.mark.parametrize("name", TIPS)
def test_arrow_keys_show_tips_of_bars_and_tokens(name: str, opened: Any) -> None:
    page = opened(name, 390)
    page.locator(".plot, .t[role]").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.wait_for_selector("#tip:not([hidden])")
    assert TIPS[name] in page.locator("#tip").inner_text()
    box = page.locator("#tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_a_long_entry_is_unfolded(opened: Any) -> None:
    page = opened("tokenizer", 390)
    entry = page.locator("td details.fold").first
    assert entry.bounding_box()["height"] < 60  # two lines
    entry.locator("summary").click()
    assert entry.locator(":scope > .t").is_visible()
    assert not entry.locator("summary .t").is_visible()


def test_typed_text_is_encoded_by_both_tokenizers(opened: Any, pages: dict[str, Path]) -> None:
    folder = pages["compare"].parent
    both = [Tokenizer.load(folder / name) for name in ("mine.json", "a-rather-long-name-of-a.tokenizer.json")]
    page = opened("compare", 390)
    for text in ("", "the mill 1234567", f"Größe 🙂\u202e{END}\n\t<b>x</b>", "can't " * 200):
        page.locator("#typed").fill(text)
        for side, tokenizer in zip(("first", "second"), both, strict=True):
            ids = tokenizer.encode(text)
            rate = f"{len(text.encode()) / len(ids):.2f}" if ids else "–"
            wanted = f"{len(ids):,} token{'s' if len(ids) != 1 else ''}, {rate} bytes per token"
            page.wait_for_function(
                "([id, text]) => document.getElementById(id).textContent === text",
                arg=[f"{side}-facts", wanted],
            )
            assert page.locator(f"#{side}-ids").text_content() == " ".join(map(str, ids))
            shown = page.evaluate(
                "(id) => Array.from(document.querySelectorAll(`#${id}-tokens i`), (each) => each.title)", side
            )
            assert " ".join(tip.split("id", 1)[1].split(",")[0].lstrip("s ") for tip in shown) == " ".join(
                map(str, ids)
            )
        assert page.evaluate(FAULTS_OF_A_PAGE, 390) == []
    assert page.locator("#first-tokens b").count() == 0


def test_differences_are_outlined(opened: Any, pages: dict[str, Path]) -> None:
    page = opened("compare", 1280)
    page.locator("#typed").fill("can't mills")
    page.wait_for_function("() => document.getElementById('first-ids').textContent.split(' ').length < 12")
    for side in ("first", "second"):
        assert page.locator(f"#{side}-tokens i.differs").count() > 0
    page.locator("#typed").fill("\n")
    page.wait_for_function(
        "() => document.getElementById('verdict').textContent.includes('boundaries are the same')"
    )
    assert page.locator("i.differs").count() == 0
