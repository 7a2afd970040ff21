"""Base of the HTTP servers of the tests, which listen on loopback."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Handler(http.server.BaseHTTPRequestHandler):
    """One request. Subclasses define `get`, which also answers HEAD, and other methods if they differ."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are sent separately

    def get(self) -> None:
        raise NotImplementedError

    def put(self) -> None:
        self.get()

    def post(self) -> None:
        self.get()

    def delete(self) -> None:
        self.get()

    def do_GET(self) -> None:
        self.get()

    def do_HEAD(self) -> None:
        self.get()

    def do_PUT(self) -> None:
        self.put()

    def do_POST(self) -> None:
        self.post()

    def do_DELETE(self) -> None:
        self.delete()

    def log_message(self, format: str, *arguments: object) -> None:
        return

    @property
    def decoded_path(self) -> str:
        return unquote(urlsplit(self.path).path)

    @property
    def query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in found.items()}

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        blocks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            blocks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(blocks)

    def range_of(self, size: int) -> tuple[int, int] | None:
        """Return the requested [start, stop), or None for all."""
        first, dash, last = self.headers.get("range", "").removeprefix("bytes=").partition("-")
        if not dash:
            return None
        if not first:
            return max(size - int(last), 0), size
        return int(first), min(int(last) + 1, size) if last else size

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_range(self, data: bytes, **headers: str) -> None:
        """Answer with the requested part of `data`, or with status 416 if it begins at the end."""
        part = self.range_of(len(data))
        if part is None:
            self.answer(200, data, **headers)
        elif part[0] >= len(data):
            self.answer(416)
        else:
            place = f"bytes {part[0]}-{part[1] - 1}/{len(data)}"
            self.answer(206, data[slice(*part)], **headers, **{"content-range": place})


class _Server6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextmanager
def serving(handler: Any, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a running server."""
    kind = _Server6 if ":" in host else http.server.ThreadingHTTPServer
    server = kind((host, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
