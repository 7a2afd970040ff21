"""An HTTP proxy on loopback that stands before a server and does harm: what a network and a store's own servers do.

    with faulty_proxy("http://127.0.0.1:9000", Faults(seed=3, rate=0.1, kinds=("cut", "503"))) as proxy:
        store = open_store("s3://corpus", s3_options(proxy.url))

A fault strikes a share of the requests by a seeded choice, those that `plan` lists by number, or what a `Strike` says.
By choice it strikes no more than `most` times in a row for one request line, so that a client that tries again must
succeed. Every fault is counted.
"""

from __future__ import annotations

import http.client
import http.server
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

KINDS = (
    "refuse",  # the connection is closed without an answer
    "reset",  # ... by a reset
    "torn",  # ... when half of the request's body has come
    "cut",  # the answer breaks off in its body
    "lost",  # the request reaches the server, the answer does not come back
    "503",
    "500",
    "429",
    "slow",  # the body comes in small pieces with pauses
    "stall",  # no answer for longer than the client's patience
    "short",  # a part that is shorter than asked for, said so in its header
    "less",  # ... or not said so, but in the length of the body
    "more",  # a part with a byte too many
    "etag",  # the answer has another entity tag: the object was written anew
    "expired",  # the credential is refused as expired
    "denied",
    "portal",  # a page of somebody else comes as the answer, as of a network that wants a login
    "region",  # a redirect without a place, as another region's server sends it
)
ORDERS = (
    "wait",  # the request waits before it is passed on, so that others get ahead of it
    "repeat",  # the proxy sends the request twice, and passes on one of the two answers
    "late",  # the connection is closed without an answer, and the request, a put, is passed on some time after that
)
"""What may happen to requests on their way, beside faults: a client must give the same whatever their order."""
HARMLESS = ("refuse", "reset", "torn", "cut", "503", "500", "429", "slow", "short", "less", "more")
"""Faults that a client must get over by itself."""

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "server", "date", "content-length"}
_S3_ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>{}</Message></Error>'


@dataclass(frozen=True)
class Strike:
    """What comes to the requests number `first` to `first` + `count` - 1 of those whose line has a match of `pattern`.

    kind: a fault; "before" and "after" the request is passed on call(port) is done, where port is the client's. One for
    which that returns False is not passed on, or not answered.
    """

    pattern: str
    first: int
    kind: str
    count: int = 1
    call: Callable[[int], bool] = lambda port: True


@dataclass
class Faults:
    """rate: share of requests that are struck; plan: number of a request -> fault; methods: which may be struck."""

    kinds: Sequence[str] = HARMLESS
    rate: float = 0.0
    seed: int = 0
    plan: dict[int, str] = field(default_factory=dict)
    strikes: Sequence[Strike] = ()
    methods: Sequence[str] = ("GET", "HEAD", "PUT", "POST", "DELETE")
    most: int = 3
    stall_seconds: float = 5.0
    slow_seconds: float = 0.02
    late_seconds: float = 0.2  # the most that what waits or comes late does so
    only: str = ""  # a part of the request's path; others pass


class Proxy:
    """A running proxy. url: its address; requests: their lines in order; struck: how often each fault was done;
    condition: of puts if absent, which moto looks at and does in two steps."""

    def __init__(self, target: str, faults: Faults) -> None:
        self.target, self.faults = urlsplit(target), faults
        self.requests: list[str] = []
        self.body_bytes = 0  # of all answers that were passed on
        self.struck: Counter[str] = Counter()
        self._random = random.Random(faults.seed)
        self._in_a_row: Counter[str] = Counter()
        self._matches: Counter[Strike] = Counter()
        self._lock = threading.Lock()
        self.condition = threading.Lock()
        self.ended = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def fault_of(self, method: str, path: str, parts: str) -> str | Strike:
        """Which fault strikes this request, "" for none."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(f"{method} {path} {parts}".rstrip())
            faults, name = self.faults, f"{method} {path} {parts}"
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

    def drawn_seconds(self) -> float:
        """How long something waits or is late."""
        with self._lock:
            return self._random.random() * self.faults.late_seconds

    def drawn_first(self) -> bool:
        """Which of two answers comes back."""
        with self._lock:
            return self._random.random() < 0.5


@contextmanager
def faulty_proxy(target: str, faults: Faults | None = None) -> Iterator[Proxy]:
    """A proxy before the server at `target`, an address like "http://127.0.0.1:9000"."""
    proxy = Proxy(target, faults or Faults())
    thread = threading.Thread(target=proxy.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        proxy.server.shutdown()
        proxy.server.server_close()
        thread.join()


def _handler(proxy: Proxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body of an answer are sent one after the other

        def log_message(self, format: str, *arguments: object) -> None:
            return

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

        def _pass(self) -> None:
            found = proxy.fault_of(self.command, self.path, self.headers.get("range", ""))
            kind = found.kind if isinstance(found, Strike) else found
            if kind == "torn":
                self.rfile.read(int(self.headers.get("content-length", 0)) // 2)
                self._hang_up(reset=True)
                return
            body = self._body()
            if isinstance(found, Strike) and kind == "before" and not found.call(self.client_address[1]):
                self._hang_up()
                return
            if kind in ("refuse", "reset"):
                self._hang_up(reset=kind == "reset")
                return
            if kind in ("503", "500", "429"):
                self._answer(int(kind), _S3_ERROR.format("SlowDown", "Please reduce your request rate."))
                return
            if kind == "stall":
                proxy.ended.wait(proxy.faults.stall_seconds)
                self._hang_up()
                return
            if kind == "portal":
                self._answer(200, "<html><head><title>Log in</title></head><body>Log in</body></html>")
                return
            if kind == "expired":
                self._answer(400, _S3_ERROR.format("ExpiredToken", "The provided token has expired."))
                return
            if kind == "denied":
                self._answer(403, _S3_ERROR.format("AccessDenied", "Access Denied"))
                return
            if kind == "region":
                self._answer(
                    301, _S3_ERROR.format("PermanentRedirect", "The bucket is in this region: eu-west-1")
                )
                return
            if kind == "late":
                threading.Thread(
                    target=self._ask_late, args=(body, proxy.drawn_seconds()), daemon=True
                ).start()
                self._hang_up()
                return
            if kind == "wait":
                proxy.ended.wait(proxy.drawn_seconds())
            status, headers, content = self._ask(body)
            if kind == "repeat" and self.command != "POST":
                again = self._ask(body)
                if not proxy.drawn_first():
                    status, headers, content = again
            is_answered = (
                found.call(self.client_address[1])
                if isinstance(found, Strike) and kind == "after"
                else kind != "lost"
            )
            if not is_answered:
                self._hang_up()
                return
            self._pass_on(kind, status, headers, content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                blocks = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    blocks.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(blocks)
            return self.rfile.read(int(self.headers.get("content-length", 0)))

        def _ask_late(self, body: bytes, seconds: float) -> None:
            time.sleep(seconds)
            with suppress(OSError, http.client.HTTPException):  # the server has ended
                self._ask(body)

        def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            with proxy.condition if "if-none-match" in self.headers else nullcontext():
                return self._answer_of(body)

        def _answer_of(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(
                proxy.target.hostname or "", proxy.target.port, timeout=30
            )
            try:
                headers = {
                    name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP
                }
                if body or self.command in ("PUT", "POST"):
                    headers["content-length"] = str(len(body))
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                content = answer.read()
                found = [
                    (name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP
                ]
                if self.command == "HEAD":
                    found.append(("content-length", answer.getheader("content-length", "0")))
                return answer.status, found, content
            finally:
                connection.close()

        def _pass_on(self, kind: str, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            names = {name.lower(): value for name, value in headers}
            if kind == "etag" and "etag" in names:
                names["etag"] = '"another"'
            if kind == "short" and status == 206 and len(content) > 1:
                content = content[: len(content) // 2]
                begin, _, size = names["content-range"].removeprefix("bytes ").replace("/", "-").split("-")
                names["content-range"] = f"bytes {begin}-{int(begin) + len(content) - 1}/{size}"
            if status == 206 and kind in ("less", "more"):
                content = content[:-1] if kind == "less" else content + b"!"
            # rclone's server sends a part with the status of a whole, which no client must take for a part.
            self.send_response(206 if status == 200 and "content-range" in names else status)
            for name, value in names.items():
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if kind == "cut":
                self.wfile.write(content[: len(content) // 2])
                self._hang_up()
            elif kind == "slow":
                for place in range(0, len(content), max(1, len(content) // 8)):
                    self.wfile.write(content[place : place + max(1, len(content) // 8)])
                    self.wfile.flush()
                    time.sleep(proxy.faults.slow_seconds)
            else:
                self.wfile.write(content)
            proxy.body_bytes += len(content)

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

        def _hang_up(self, reset: bool = False) -> None:
            self.wfile.flush()
            if reset:  # a close with this setting sends a reset in place of an end
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
                )
            else:
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    return Handler
