"""mkdocs hooks: add the pages of the repository's root and the generated pages, and adapt links and tables.

A link to a page of the site becomes relative to the page, whether it is written as a path of the repository or as its
address on GitHub. A link to any other file of the repository leads to GitHub. mkdocs reports links to missing pages.
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
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
REPOSITORY = "https://github.com/tokenmill/tokenmill/blob/main/"
LINK = re.compile(rf"(?<=\]\()({REPOSITORY})?(?!\w+:|#)([^)#\s]+)(?=[)#])")
OPTION = re.compile(r"<code>(-[^<]{1,30})</code>")
ROW, CODE = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`\n]+`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in ROOT_PAGES:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for path, text in site_reference.pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.src_uri
    if source == "README.md":
        page.meta["hide"] = ["navigation"]  # the only page of its tab
    linked = LINK.sub(lambda found: site_link(source, found[2], is_absolute=bool(found[1])), markdown)
    # GitHub needs `a\|b` in a table, Markdown shows the backslash.
    return ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), linked)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return OPTION.sub(r'<code class="option">\1</code>', html)  # browsers break lines after hyphens


def site_link(source: str, link: str, is_absolute: bool = False) -> str:
    """Return the link from a page of the site to a path, relative to the page or to the repository's root.

    "guides/jax.md", "../../SECURITY.md" -> "../SECURITY.md"; "guides/jax.md", "../../tests/a.py" -> an address
    """
    folder = "" if is_absolute or source in ROOT_PAGES else posixpath.join("docs", posixpath.dirname(source))
    path = posixpath.normpath(posixpath.join(folder, link))
    if not path.startswith("docs/") and path not in ROOT_PAGES:
        return REPOSITORY + path
    return posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(source))
