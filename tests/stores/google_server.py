"""Google's Cloud Storage on loopback, as much of its XML interface as the client uses, with what S3 has not: an object
that is not there can't be deleted (404), as it can't be in Azure."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from itertools import islice
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE_OBJECTS = 20


def google_options(address: str) -> dict[str, str]:
    """The storage options for a server here."""
    names = ("client_email", "private_key", "private_key_id")
    account = {"gcs_base_url": address, "disable_oauth": True, **dict.fromkeys(names, "")}
    return {"service_account_key": json.dumps(account)}


@contextmanager
def google_server() -> Iterator[str]:
    """The address of a server with every bucket, all of them one and empty."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler())
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler() -> type[http.server.BaseHTTPRequestHandler]:
    objects: dict[str, bytes] = {}
    uploads: dict[str, dict[int, bytes]] = {}
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: object) -> None:
            return

        @property
        def _key(self) -> str:
            return unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]

        @property
        def _query(self) -> dict[str, str]:
            found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
            return {name: values[0] for name, values in found.items()}

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("content-length", 0)))

        def do_GET(self) -> None:
            if not self._key:
                self._list()
                return
            data = objects.get(self._key)
            if data is None:
                self._refused(404, "NoSuchKey")
            elif self.headers.get("if-match", _tag(data)) != _tag(data):
                self._refused(412, "PreconditionFailed")
            elif found := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("range", "")):
                first, last = found.groups()
                start = int(first) if first else max(len(data) - int(last), 0)
                stop = min(int(last) + 1, len(data)) if first and last else len(data)
                if start >= len(data):
                    self._refused(416, "InvalidRange")
                    return
                part = {"content-range": f"bytes {start}-{stop - 1}/{len(data)}"}
                self._answered(206, data[start:stop], etag=_tag(data), **part)
            else:
                self._answered(200, data, etag=_tag(data))

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            data, query = self._body(), self._query
            with lock:
                if "uploadId" in query:
                    uploads[query["uploadId"]][int(query["partNumber"])] = data
                elif self.headers.get("x-goog-if-generation-match") == "0" and self._key in objects:
                    self._refused(412, "PreconditionFailed")
                    return
                else:
                    objects[self._key] = data
            self._answered(200, etag=_tag(data))

        def do_POST(self) -> None:
            body, query = self._body(), self._query
            with lock:
                if "uploads" in query:
                    name = f"upload-{len(uploads)}"
                    uploads[name] = {}
                    key = escape(self._key)
                    answer = f"<Bucket>b</Bucket><Key>{key}</Key><UploadId>{name}</UploadId>"
                    self._answered(200, _xml("InitiateMultipartUploadResult", answer))
                    return
                numbers = map(int, re.findall(rb"<PartNumber>(\d+)", body))
                parts = uploads.pop(query["uploadId"])
                data = objects[self._key] = b"".join(parts[number] for number in numbers)
            tag = f"<ETag>{escape(_tag(data))}</ETag>"
            self._answered(200, _xml("CompleteMultipartUploadResult", tag), etag=_tag(data))

        def do_DELETE(self) -> None:
            with lock:
                if uploads.pop(self._query.get("uploadId", ""), None) is None:
                    found = objects.pop(self._key, None)
                    if found is None:
                        self._refused(404, "NoSuchKey")
                        return
            self._answered(204)

        def _list(self) -> None:
            query = self._query
            after = query.get("continuation-token") or query.get("start-after", "")
            with lock:
                keys = sorted(objects, key=str.encode)
                behind = (
                    key
                    for key in keys
                    if key.startswith(query.get("prefix", "")) and key.encode() > after.encode()
                )
                page = list(islice(behind, PAGE_OBJECTS))
                more = next(behind, None) is not None
                found = "".join(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                    f"<ETag>{escape(_tag(objects[key]))}</ETag><Size>{len(objects[key])}</Size></Contents>"
                    for key in page
                )
            if more:
                found += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
            self._answered(
                200, _xml("ListBucketResult", f"<IsTruncated>{str(more).lower()}</IsTruncated>{found}")
            )

        def _refused(self, status: int, code: str) -> None:
            self._answered(status, _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>"))

        def _answered(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler


def _tag(data: bytes) -> str:
    return f'"{md5(data, usedforsecurity=False).hexdigest()}"'


def _xml(name: str, inner: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inner}</{name}>'.encode()
