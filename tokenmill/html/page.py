"""The frame of a page: style, scripts, and a content security policy that blocks the network and all other scripts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib import resources

from tokenmill.html.components import cards, escaped


def page(
    title: str,
    subtitle: str,
    figures: Sequence[tuple[str, str]],
    sections: Sequence[str],
    *,
    kind: str,
    made_by: str,
    mark: str = "",
    scripts: Sequence[str] = (),
    data: Sequence[tuple[str, str]] = (),
) -> str:
    """Return a page as text.

    subtitle: HTML. figures: for `cards`. kind: such as "dataset report". made_by: the command.
    mark: a comment that identifies the file. scripts: additional scripts, which read data, pairs of ID and text.
    """
    style, script = (
        resources.files(__package__).joinpath(f"page.{end}").read_text("utf-8") for end in ("css", "js")
    )
    all_scripts = [script, *scripts]
    digests = [b64encode(sha256(each.encode()).digest()).decode() for each in all_scripts]
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; base-uri 'none'"
    unseen = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
    held = "".join(f'<script type="text/plain" id="{name}">{text}</script>' for name, text in data)
    return (
        f"<!doctype html>\n{mark}{chr(10) if mark else ''}"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}: {kind}</title><style>{style}</style></head><body>"
        f'<header><h1>{escaped(title)}</h1><div class="sub">{subtitle}</div>'
        f"{cards(figures) if figures else ''}</header>"
        f"<main>{''.join(sections)}</main>"
        f"<footer>Made by <code>{escaped(made_by)}</code>. This page works offline.</footer>"
        f'<div id="tip" role="tooltip" hidden></div><div id="live" aria-live="polite" style="{unseen}"></div>{held}'
        + "".join(f"<script>{each}</script>" for each in all_scripts)
        + "</body></html>\n"
    )
