"""A web server on loopback that answers each request after a delay, as an object store far away does, and counts them.

    python scripts/bench/slow_server.py FOLDER MILLISECONDS

Prints its address; ends when its standard input does. GET and HEAD, with ranges. `GET /requests` answers with how many
there were since the last time it was asked, without delay.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar


@contextlib.contextmanager
def slow_server(folder: Path, milliseconds: float) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, __file__, str(folder), str(milliseconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


class Connection(asyncio.Protocol):
    """Answers one request after the other; those of other connections meanwhile."""

    requests = 0
    files: ClassVar[dict[str, bytes | mmap.mmap]] = {}
    delay = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            method, path, *_ = head.decode().split(" ")
            if path == "/requests":
                self._answer(method, "200 OK", str(Connection.requests).encode())
                Connection.requests = 0
                continue
            Connection.requests += 1
            asyncio.get_running_loop().call_later(self.delay, self._serve, method, path, head.decode())

    def _serve(self, method: str, path: str, head: str) -> None:
        content = self.files.get(path)
        if content is None:
            self._answer(method, "404 Not Found", b"")
            return
        asked = [line for line in head.split("\r\n") if line.lower().startswith("range: bytes=")]
        if not asked:
            self._answer(method, "200 OK", memoryview(content))
            return
        first, last = asked[0].partition("=")[2].split("-")
        if first:
            begin, stop = int(first), min(int(last) + 1 if last else len(content), len(content))
        else:  # so many bytes at the end
            begin, stop = max(len(content) - int(last), 0), len(content)
        self._answer(
            method,
            "206 Partial Content",
            memoryview(content)[begin:stop],
            f"content-range: bytes {begin}-{stop - 1}/{len(content)}\r\n",
        )

    def _answer(self, method: str, status: str, body: bytes | memoryview, more: str = "") -> None:
        head = f'HTTP/1.1 {status}\r\netag: "1"\r\naccept-ranges: bytes\r\n{more}content-length: {len(body)}\r\n\r\n'
        self._transport.write(head.encode())
        if method != "HEAD" and len(body):
            self._transport.write(body)


async def serve(folder: Path, milliseconds: float) -> None:
    Connection.delay = milliseconds / 1000
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
            Connection.files[f"/{path.relative_to(folder).as_posix()}"] = content
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), float(sys.argv[2])))
