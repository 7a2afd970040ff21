"""A web server with some files. Words in a path choose its behavior."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loopback import Handler, serving


class WebServer:
    """files: decoded path -> content. A path with one of these words behaves accordingly: "norange", "nohead",
    "emptyhead" (HEAD reports a size of 0), "notag" (a time instead of an entity tag), "login" (needs the password
    us:pw), "moved" (a redirect to the path without it). url: its address. requests: in order."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.url = ""


@contextmanager
def web_server(host: str = "127.0.0.1") -> Iterator[WebServer]:
    """A running web server."""
    web = WebServer()

    class WebHandler(Handler):
        def get(self) -> None:
            web.requests.append(f"{self.command} {self.path} {self.headers.get('range', '')}".rstrip())
            path = self.decoded_path
            content = web.files.get(path)
            if "moved" in path:
                self.answer(302, location=self.path.replace("/moved", ""))
            elif "login" in path and self.headers.get("authorization") != "Basic dXM6cHc=":
                self.answer(401)
            elif self.command == "HEAD" and "nohead" in path:
                self.answer(403)
            elif content is None:
                self.answer(404)
            else:
                self._send(path, b"" if self.command == "HEAD" and "emptyhead" in path else content)

        def _send(self, path: str, content: bytes) -> None:
            tag = f'"{hash(web.files[path]):x}"'
            time = "Tue, 24 Nov 2026 13:34:46 GMT"
            headers = {"last-modified": time} if "notag" in path else {"etag": tag}
            if self.headers.get("if-match", tag) != tag:
                self.answer(412)
            elif "norange" in path:
                self.answer(200, content, **headers)
            else:
                self.answer_range(content, **headers)

    with serving(WebHandler, host) as web.url:
        yield web
