"""A Hugging Face Hub on loopback that knows what hf:// asks of one: a dataset's commit, its files, parts of them."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

REPO = "datasets/someone/texts"


class HubServer:
    """files: path in the repository -> content; changing it makes a new commit, and older ones stay readable.
    token: what a reader must send, None for none; failures: how many of the next requests get a 503."""

    def __init__(self) -> None:
        self._commits: dict[str, dict[str, bytes]] = {}
        self.branch = ""
        self.token: str | None = None
        self.failures = 0
        self.requests: list[str] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.commit({})

    def commit(self, files: dict[str, bytes]) -> None:
        """Make `files` what the branch main holds."""
        self.branch = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self._commits[self.branch] = files

    def files(self, revision: str) -> dict[str, bytes] | None:
        """Of a commit or of main; None if there is no such revision."""
        return self._commits.get(self.branch if revision == "main" else revision)


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """A running one."""
    server = HubServer()
    thread = threading.Thread(target=server.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join()


def _entry(path: str, content: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def _handler(hub: HubServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: object) -> None:
            return

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(f"{self.command} {self.path} {self.headers.get('range', '')}".rstrip())
            if hub.failures:
                hub.failures -= 1
                self._answer(503)
            elif hub.token and self.headers.get("authorization") != f"Bearer {hub.token}":
                self._answer(401, {"error": "Invalid credentials"}, code="RepoNotFound")
            elif found := re.fullmatch(f"/api/{REPO}(?:/revision/([^/]+))?", path):
                self._about(found[1] or "main")
            elif found := re.fullmatch(f"/api/{REPO}/tree/([^/]+)/?(.*)", path):
                self._tree(found[1], found[2])
            elif found := re.fullmatch(f"/api/{REPO}/paths-info/([^/]+)", path):
                self._paths(found[1], body)
            elif found := re.fullmatch(f"/{REPO}/resolve/([^/]+)/(.+)", path):
                self._content(found[1], found[2])
            else:
                self._answer(404, {"error": "Repository not found"}, code="RepoNotFound")

        do_HEAD = do_POST = do_GET  # noqa: N815

        def _about(self, revision: str) -> None:
            if hub.files(revision) is None:
                self._answer(404, {"error": "Invalid rev id"}, code="RevisionNotFound")
            else:
                sha = hub.branch if revision == "main" else revision
                self._answer(
                    200, {"id": REPO.removeprefix("datasets/"), "sha": sha, "siblings": [], "tags": []}
                )

        def _tree(self, revision: str, folder: str) -> None:
            files = hub.files(revision) or {}
            below = [path for path in sorted(files) if not folder or path.startswith(f"{folder}/")]
            if folder and not below:
                self._answer(404, {"error": "no such folder"}, code="EntryNotFound")
                return
            depth = folder.count("/") + 1 if folder else 0
            parts = [path.split("/") for path in below]
            folders = {"/".join(names[:level]) for names in parts for level in range(depth + 1, len(names))}
            if "recursive=true" not in self.path.lower():
                folders = {name for name in folders if name.count("/") == depth}
                below = [path for path in below if path.count("/") == depth]
            entries = [
                {"type": "directory", "path": name, "size": 0, "oid": "0" * 40} for name in sorted(folders)
            ]
            self._answer(200, [*entries, *(_entry(path, files[path]) for path in below)])

        def _paths(self, revision: str, body: bytes) -> None:
            files = hub.files(revision) or {}
            text = body.decode()
            asked = json.loads(text)["paths"] if text.startswith("{") else re.findall(r"paths=([^&]*)", text)
            found = []
            for path in map(unquote, asked):
                if path in files:
                    found.append(_entry(path, files[path]))
                elif any(name.startswith(f"{path}/") for name in files):
                    found.append({"type": "directory", "path": path, "size": 0, "oid": "0" * 40})
            self._answer(200, found)

        def _content(self, revision: str, path: str) -> None:
            content = (hub.files(revision) or {}).get(path)
            if content is None:
                self._answer(404, {"error": "Entry not found"}, code="EntryNotFound")
                return
            begin, _, last = self.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
            part = content[int(begin) : int(last) + 1 if last else None]
            place = f"bytes {begin}-{int(begin) + len(part) - 1}/{len(content)}"
            self._send(206, part, **{"content-range": place, "content-type": "application/octet-stream"})

        def _answer(self, status: int, content: object = None, code: str = "") -> None:
            extra = {"x-error-code": code} if code else {}
            self._send(status, json.dumps(content).encode(), **{"content-type": "application/json"}, **extra)

        def _send(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    return Handler
