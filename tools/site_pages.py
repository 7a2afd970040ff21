"""What mkdocs does not know by itself: pages that lie outside docs/, and those that are made (site_reference.py).

A page keeps its path in the repository, `docs/` in front taken off: README.md links to docs/training.md, which is
training.md of the site, and docs/training.md to ../SECURITY.md, which is SECURITY.md of the site. A link to a file
of the repository that is no page takes the file along. mkdocs tells of links that lead nowhere.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import site_reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OF_THE_ROOT = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(?=[)#])")
CODE = re.compile(r"<code>([^<\n]*)</code>")  # within a line; blocks end with a line break
ROW, SPAN = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`\n]+`")
OPTION = re.compile(r"(?<![\w-])--?\w[\w-]*")
WHOLE = r'<span class="option">\g<0></span>'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages and files of docs/, and all others of the site."""
    for path in OF_THE_ROOT:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for path, text in site_reference.pages().items():
        files.append(File.generated(config, path, content=text))
    linked = {
        target
        for page in files.documentation_pages()
        for link in LINK.findall(page.content_string)
        if (target := target_of(page.src_uri, link)) and (ROOT / target).is_file()
    }
    for target in sorted(linked):
        if site_path(target) not in files.src_uris:
            files.append(File.generated(config, site_path(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with its links as the site has them, and without what hides a bar of code in a table: it would show."""
    source = page.file.src_uri
    if source == "README.md":
        page.meta["hide"] = ["navigation"]  # which is nothing but itself

    def moved(found: re.Match[str]) -> str:
        target = target_of(source, found[1])
        return posixpath.relpath(site_path(target), posixpath.dirname(source)) if target else found[1]

    return ROW.sub(
        lambda row: SPAN.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), LINK.sub(moved, markdown)
    )


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with options that no line breaks: browsers end lines behind a hyphen."""
    return CODE.sub(lambda found: f"<code>{OPTION.sub(WHOLE, found[1])}</code>", html)


def target_of(source: str, link: str) -> str | None:
    """The path in the repository of what a page links to; None for a page that is made, whose links are the site's.

    "training.md", "../SECURITY.md" -> "SECURITY.md"; "README.md", "docs/training.md" -> "docs/training.md"
    """
    if source.startswith(site_reference.FOLDER):
        return None
    folder = "" if source in OF_THE_ROOT else posixpath.join("docs", posixpath.dirname(source))
    return posixpath.normpath(posixpath.join(folder, link))


def site_path(path: str) -> str:
    """ "docs/training.md" -> "training.md"; "SECURITY.md" -> "SECURITY.md"."""
    return path.removeprefix("docs/")
