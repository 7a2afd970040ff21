"""A loopback server that answers file downloads like the Hugging Face Hub.

It sends the headers and error codes that huggingface_hub reads: X-Repo-Commit, ETag, X-Linked-ETag and X-Linked-Size
with a redirect for large files, and X-Error-Code for errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 1000  # files of at least this many bytes are redirected


class Hub(ThreadingHTTPServer):
    """repositories: name -> file -> bytes. gated: names that need a request with the token. failing: the status of
    every answer. cut: files break off in the middle. log: method and path of each request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.failing: int | None = None
        self.cut = False
        self.log: list[str] = []

    @property
    def address(self) -> str:
        """Return the value for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"

    def downloaded(self) -> list[str]:
        """List the files with content that was sent."""
        files = (
            line.rsplit("/", 1)[1] for line in self.log if line.startswith("GET /cdn") or "GET /" in line
        )
        return sorted(set(files) & {file for files in self.repositories.values() for file in files})


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        return

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(None)

    def _answer(self, content: bytes | None) -> None:
        hub, path = self.server, unquote(urlsplit(self.path).path)
        hub.log.append(f"{self.command} {path}")
        parts = path.strip("/").split("/")
        if hub.failing is not None:
            return self._send(hub.failing, {})
        if parts[:2] == ["api", "agent-harnesses"]:
            return self._send(404, {})
        if parts[0] == "cdn":
            return self._send_file(hub.repositories["/".join(parts[1:3])]["/".join(parts[3:])], {})
        if parts[:2] == ["api", "models"]:
            repository, revision = "/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main"
        else:
            repository, revision = "/".join(parts[:2]), parts[3]
        if repository not in hub.repositories:
            return self._send(401, {"X-Error-Code": "RepoNotFound"})
        if revision not in ("main", "v1", COMMIT):
            return self._send(404, {"X-Error-Code": "RevisionNotFound"})
        files = hub.repositories[repository]
        if parts[0] == "api":
            return self._send(200, {"Content-Type": "application/json"}, _listing(parts, repository, files))
        if repository in hub.gated and self.headers.get("authorization") != "Bearer hf_secret":
            status = 403 if "authorization" in self.headers else 401
            return self._send(status, {"X-Error-Code": "GatedRepo"})
        headers = {"X-Repo-Commit": COMMIT}
        name = "/".join(parts[4:])
        if name not in files:
            return self._send(404, {"X-Error-Code": "EntryNotFound", **headers})
        data = files[name]
        if len(data) < LARGE:
            return self._send_file(data, headers)
        tag = hashlib.sha256(data).hexdigest()
        headers |= {"X-Linked-ETag": f'"{tag}"', "X-Linked-Size": str(len(data))}
        return self._send(
            302, {**headers, "Location": f"http://localhost:{hub.server_port}/cdn/{repository}/{name}"}
        )

    def _send_file(self, data: bytes, headers: dict[str, str]) -> None:
        headers["ETag"] = f'"{hashlib.sha1(data).hexdigest()}"'
        self._send(200, headers, data)

    def _send(self, status: int, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[: len(content) // 2] if self.server.cut else content)


def _listing(parts: list[str], repository: str, files: dict[str, bytes]) -> bytes:
    if len(parts) > 4 and parts[4] == "tree":
        return json.dumps(
            [
                {"type": "file", "path": file, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for file, data in files.items()
            ]
        ).encode()
    siblings = [{"rfilename": file} for file in files]
    return json.dumps({"id": repository, "sha": COMMIT, "siblings": siblings}).encode()


@contextmanager
def serving() -> Iterator[Hub]:
    """Yield a hub that answers while the context is open."""
    hub = Hub()
    thread = Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()
