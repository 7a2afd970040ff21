"""A web server on loopback with some files: with ranges or without, with entity tags or times, or refusing HEAD."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit


class WebServer:
    """files: path -> content, decoded. A path that contains a word of these behaves so: "norange", "nohead",
    "emptyhead" (tells HEAD a size of 0), "notag" (a time in place of a tag), "login" (asks for a password), "moved" (a
    redirect to the path without it)."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def web_server() -> Iterator[WebServer]:
    """A running one."""
    server = WebServer()
    thread = threading.Thread(target=server.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join()


def _handler(server: WebServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: object) -> None:
            return

        def do_GET(self) -> None:
            server.requests.append(f"{self.command} {self.path} {self.headers.get('range', '')}".rstrip())
            path = unquote(urlsplit(self.path).path)
            content = server.files.get(path)
            if "moved" in path:
                self._answer(302, location=self.path.replace("moved/", ""))
            elif "login" in path and self.headers.get("authorization") != "Basic dXM6cHc=":
                self._answer(401)
            elif self.command == "HEAD" and "nohead" in path:
                self._answer(403)
            elif self.command == "HEAD" and "emptyhead" in path:
                self._answer(200, b"", etag=f'"{hash(content):x}"')
            elif content is None:
                self._answer(404)
            else:
                self._send(path, content)

        do_HEAD = do_GET  # noqa: N815

        def _send(self, path: str, content: bytes) -> None:
            tag = f'"{hash(content):x}"'
            mark = {"last-modified": "Tue, 24 Nov 2026 13:34:46 GMT"} if "notag" in path else {"etag": tag}
            asked = self.headers.get("range", "")
            if self.headers.get("if-match", tag) != tag:
                self._answer(412)
            elif not asked or "norange" in path:
                self._answer(200, content, **mark)
            else:
                begin, _, last = asked.removeprefix("bytes=").partition("-")
                if not begin:  # the last bytes
                    begin, last = str(max(len(content) - int(last), 0)), ""
                part = content[int(begin) : int(last) + 1 if last else None]
                if not part:
                    self._answer(416)
                    return
                mark["content-range"] = f"bytes {begin}-{int(begin) + len(part) - 1}/{len(content)}"
                self._answer(206, part, **mark)

        def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    return Handler
