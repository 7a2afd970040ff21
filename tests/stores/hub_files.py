"""The part of the Hugging Face Hub that hf:// uses: the commits of a dataset, its files, ranges of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from loopback import Handler, serving

REPO = "datasets/someone/texts"


class HubServer:
    """branch: the commit of main. token: what readers must send, or None. failures: how many of the next requests get
    a 503. requests: in order. url: its address."""

    def __init__(self) -> None:
        self._commits: dict[str, dict[str, bytes]] = {}
        self.branch = self.url = ""
        self.token: str | None = None
        self.failures = 0
        self.requests: list[str] = []
        self.commit({})

    def commit(self, files: dict[str, bytes]) -> None:
        """Make a commit with these files. Earlier ones can still be read."""
        self.branch = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self._commits[self.branch] = files

    def files(self, revision: str) -> dict[str, bytes] | None:
        """Return the files of a commit or of main, or None."""
        return self._commits.get(self.branch if revision == "main" else revision)


def _entry(path: str, content: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def _folder(path: str) -> dict[str, object]:
    return {"type": "directory", "path": path, "size": 0, "oid": "0" * 40}


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """A running Hub."""
    hub = HubServer()

    class HubHandler(Handler):
        def get(self) -> None:
            body, path = self.body(), self.decoded_path
            hub.requests.append(f"{self.command} {self.path} {self.headers.get('range', '')}".rstrip())
            if hub.failures:
                hub.failures -= 1
                self._answer(503)
            elif hub.token and self.headers.get("authorization") != f"Bearer {hub.token}":
                self._answer(401, {"error": "Invalid credentials"}, "RepoNotFound")
            elif found := re.fullmatch(f"/api/{REPO}(?:/revision/([^/]+))?", path):
                self._describe(found[1] or "main")
            elif found := re.fullmatch(f"/api/{REPO}/tree/([^/]+)/?(.*)", path):
                self._list(found[1], found[2])
            elif found := re.fullmatch(f"/api/{REPO}/paths-info/([^/]+)", path):
                self._look_up(found[1], body)
            elif found := re.fullmatch(f"/{REPO}/resolve/([^/]+)/(.+)", path):
                content = (hub.files(found[1]) or {}).get(found[2])
                if content is None:
                    self._answer(404, {"error": "Entry not found"}, "EntryNotFound")
                else:
                    self.answer_range(content, **{"content-type": "application/octet-stream"})
            else:
                self._answer(404, {"error": "Repository not found"}, "RepoNotFound")

        def _describe(self, revision: str) -> None:
            if hub.files(revision) is None:
                self._answer(404, {"error": "Invalid rev id"}, "RevisionNotFound")
                return
            sha = hub.branch if revision == "main" else revision
            self._answer(200, {"id": REPO.removeprefix("datasets/"), "sha": sha, "siblings": [], "tags": []})

        def _list(self, revision: str, folder: str) -> None:
            files = hub.files(revision) or {}
            below = [path for path in sorted(files) if not folder or path.startswith(f"{folder}/")]
            if folder and not below:
                self._answer(404, {"error": "no such folder"}, "EntryNotFound")
                return
            depth = folder.count("/") + 1 if folder else 0
            parts = [path.split("/") for path in below]
            folders = {"/".join(names[:level]) for names in parts for level in range(depth + 1, len(names))}
            if "recursive=true" not in self.path.lower():
                folders = {name for name in folders if name.count("/") == depth}
                below = [path for path in below if path.count("/") == depth]
            entries = [*map(_folder, sorted(folders)), *(_entry(path, files[path]) for path in below)]
            self._answer(200, entries)

        def _look_up(self, revision: str, body: bytes) -> None:
            files = hub.files(revision) or {}
            text = body.decode()
            wanted = json.loads(text)["paths"] if text.startswith("{") else re.findall(r"paths=([^&]*)", text)
            found = []
            for path in map(unquote, wanted):
                if path in files:
                    found.append(_entry(path, files[path]))
                elif any(name.startswith(f"{path}/") for name in files):
                    found.append(_folder(path))
            self._answer(200, found)

        def _answer(self, status: int, content: object = None, code: str = "") -> None:
            extra = {"x-error-code": code} if code else {}
            self.answer(status, json.dumps(content).encode(), **{"content-type": "application/json"}, **extra)

    with serving(HubHandler) as hub.url:
        yield hub
