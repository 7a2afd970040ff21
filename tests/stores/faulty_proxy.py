"""An HTTP proxy on loopback that injects the faults of networks and stores.

    with faulty_proxy("http://127.0.0.1:9000", Faults(seed=3, rate=0.1, kinds=("cut", "503"))) as proxy:
        store = open_store("s3://corpus", s3_options(proxy.url))

Faults hit a share of the requests by a seeded draw, the requests that `plan` lists by number, or the requests of a
`Strike`. Drawn faults hit the same request line at most `most` times in a row, so a client that retries must succeed.
"""

from __future__ import annotations

import http.client
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from loopback import Handler, serving

ORDERS = (
    "wait",  # the request waits before it is passed on, so that others overtake it
    "repeat",  # the request is sent twice, and one of the two answers is passed on
    "late",  # the connection is closed without an answer, and the request, a put, is passed on later
)
"""Changes to the order of requests, which must not change any result."""
HARMLESS = (
    "refuse",  # the connection is closed without an answer
    "reset",  # ... by a reset
    "torn",  # ... after half of the request's body
    "cut",  # the answer breaks off in its body
    "503",
    "500",
    "429",
    "slow",  # the body comes in small pieces with pauses
    "short",  # a part is shorter than requested, as its header says
    "less",  # ... or as only the length of the body says
    "more",  # a part has one byte too many
)
"""Faults that a client must overcome. There are also:
    lost     the request reaches the server, but its answer is lost
    stall    no answer until the client loses patience
    etag     the answer has another entity tag, as if the object was replaced
    expired, denied, region (a redirect to another region)
    missing  status 404, as Azure and Google answer the deletion of a missing object
    portal   an unrelated page, as from a network that requires a login
"""

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "server", "date", "content-length"}
_S3_ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>{}</Message></Error>'
_THROTTLED = _S3_ERROR.format("SlowDown", "Please reduce your request rate.")
_ANSWERS = {
    "503": (503, _THROTTLED),
    "500": (500, _THROTTLED),
    "429": (429, _THROTTLED),
    "portal": (200, "<html><head><title>Log in</title></head><body>Log in</body></html>"),
    "expired": (400, _S3_ERROR.format("ExpiredToken", "The provided token has expired.")),
    "missing": (404, _S3_ERROR.format("NoSuchKey", "The specified key does not exist.")),
    "denied": (403, _S3_ERROR.format("AccessDenied", "Access Denied")),
    "region": (301, _S3_ERROR.format("PermanentRedirect", "The bucket is in this region: eu-west-1")),
}


@dataclass(frozen=True)
class Strike:
    """A fault for the requests number `first` to `first` + `count` - 1 with a line that matches `pattern`.

    kind: a fault, or "before" or "after" to call call(port of the client) before or after the request is passed on. If
        it returns False, the request is not passed on, or not answered.
    """

    pattern: str
    first: int
    kind: str
    count: int = 1
    call: Callable[[int], bool] = lambda port: True


@dataclass
class Faults:
    """rate: share of requests with a fault. plan: number of a request -> fault. methods: those that may be hit.
    most: drawn faults in a row for one request line. late_seconds: maximum delay. only: part of the paths to hit."""

    kinds: Sequence[str] = HARMLESS
    rate: float = 0.0
    seed: int = 0
    plan: dict[int, str] = field(default_factory=dict)
    strikes: Sequence[Strike] = ()
    methods: Sequence[str] = ("GET", "HEAD", "PUT", "POST", "DELETE")
    most: int = 3
    stall_seconds: float = 5.0
    slow_seconds: float = 0.02
    late_seconds: float = 0.2
    only: str = ""


class Proxy:
    """url: address of the proxy. requests: request lines in order. struck: count per fault. body_bytes: of all answers.
    condition: held during conditional puts, which moto does not do atomically."""

    def __init__(self, target: str, faults: Faults) -> None:
        self.target, self.faults, self.url = urlsplit(target), faults, ""
        self.requests: list[str] = []
        self.body_bytes = 0
        self.struck: Counter[str] = Counter()
        self._random = random.Random(faults.seed)
        self._in_a_row: Counter[str] = Counter()
        self._matches: Counter[Strike] = Counter()
        self._lock = threading.Lock()
        self.condition = threading.Lock()
        self.ended = threading.Event()

    def fault_of(self, method: str, path: str, parts: str) -> str | Strike:
        """Return the fault for a request, or ""."""
        with self._lock:
            name, number, faults = f"{method} {path} {parts}".rstrip(), len(self.requests), self.faults
            self.requests.append(name)
            for strike in faults.strikes:
                if re.search(strike.pattern, name):
                    self._matches[strike] += 1
                    if 0 < self._matches[strike] - strike.first <= strike.count:
                        self.struck[strike.kind] += 1
                        return strike if strike.kind in ("before", "after") else strike.kind
            if faults.only not in path:
                return ""
            kind = faults.plan.get(number, "")
            if not kind and method in faults.methods and self._random.random() < faults.rate:
                kind = self._random.choice(list(faults.kinds))
                if self._in_a_row[name] >= faults.most:
                    kind = ""
            if kind == "late" and method != "PUT":
                kind = "wait"
            self._in_a_row[name] = self._in_a_row[name] + 1 if kind else 0
            if kind:
                self.struck[kind] += 1
            return kind

    def draw_seconds(self) -> float:
        """Draw a delay."""
        with self._lock:
            return self._random.random() * self.faults.late_seconds

    def draw_bool(self) -> bool:
        with self._lock:
            return self._random.random() < 0.5


@contextmanager
def faulty_proxy(target: str, faults: Faults | None = None) -> Iterator[Proxy]:
    """A proxy for the server at `target`, an address like "http://127.0.0.1:9000"."""
    proxy = Proxy(target, faults or Faults())

    with serving(type("ProxyHandler", (_ProxyHandler,), {"proxy": proxy})) as proxy.url:
        try:
            yield proxy
        finally:
            proxy.ended.set()


class _ProxyHandler(Handler):
    proxy: Proxy

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def get(self) -> None:
        proxy = self.proxy
        found = proxy.fault_of(self.command, self.path, self.headers.get("range", ""))
        kind, call = (found.kind, found.call) if isinstance(found, Strike) else (found, None)
        if kind == "torn":
            self.rfile.read(int(self.headers.get("content-length", 0)) // 2)
            self._hang_up(reset=True)
            return
        body = self.body()
        if kind in _ANSWERS:
            status, text = _ANSWERS[kind]
            self.answer(status, text.encode())
        elif kind in ("refuse", "reset"):
            self._hang_up(reset=kind == "reset")
        elif kind == "stall":
            proxy.ended.wait(proxy.faults.stall_seconds)
            self._hang_up()
        elif kind == "late":
            threading.Thread(target=self._ask_late, args=(body, proxy.draw_seconds()), daemon=True).start()
            self._hang_up()
        elif kind == "before" and call is not None and not call(self.client_address[1]):
            self._hang_up()
        else:
            self._pass_on(kind, body, call)

    def _pass_on(self, kind: str, body: bytes, call: Callable[[int], bool] | None) -> None:
        if kind == "wait":
            self.proxy.ended.wait(self.proxy.draw_seconds())
        answer = self._ask(body)
        if kind == "repeat" and self.command != "POST":
            again = self._ask(body)
            answer = answer if self.proxy.draw_bool() else again
        is_lost = kind == "lost" or (
            kind == "after" and call is not None and not call(self.client_address[1])
        )
        if is_lost:
            self._hang_up()
        else:
            self._answer_with(kind, *answer)

    def _ask_late(self, body: bytes, seconds: float) -> None:
        time.sleep(seconds)
        with suppress(OSError, http.client.HTTPException):  # the server has ended
            self._ask(body)

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        target: Any = self.proxy.target
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        if body or self.command in ("PUT", "POST"):
            headers["content-length"] = str(len(body))
        with self.proxy.condition if "if-none-match" in self.headers else nullcontext():
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=30)
            try:
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        kept = {name: value for name, value in found.items() if name not in _HOP_BY_HOP}
        if self.command == "HEAD":
            kept["content-length"] = found.get("content-length", "0")
        return answer.status, kept, content

    def _answer_with(self, kind: str, status: int, headers: dict[str, str], content: bytes) -> None:
        if kind == "etag" and "etag" in headers:
            headers["etag"] = '"another"'
        if kind == "short" and status == 206 and len(content) > 1:
            content = content[: len(content) // 2]
            first, _, size = headers["content-range"].removeprefix("bytes ").replace("/", "-").split("-")
            headers["content-range"] = f"bytes {first}-{int(first) + len(content) - 1}/{size}"
        if status == 206 and kind in ("less", "more"):
            content = content[:-1] if kind == "less" else content + b"!"
        # rclone sends a part with the status of a whole object.
        self.send_response(206 if status == 200 and "content-range" in headers else status)
        if self.command != "HEAD":
            headers["content-length"] = str(len(content))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if kind == "cut":
            self.wfile.write(content[: len(content) // 2])
            self._hang_up()
        elif kind == "slow":
            step = max(1, len(content) // 8)
            for offset in range(0, len(content), step):
                self.wfile.write(content[offset : offset + step])
                self.wfile.flush()
                time.sleep(self.proxy.faults.slow_seconds)
        else:
            self.wfile.write(content)
        self.proxy.body_bytes += len(content)

    def _hang_up(self, reset: bool = False) -> None:
        self.wfile.flush()
        if reset:  # closing with this setting sends a reset
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
            )
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True
