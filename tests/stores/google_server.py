"""The part of Google Cloud Storage's XML interface that the client uses. Unlike S3, and like Azure, it rejects the
deletion of a missing object (404)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from xml.sax.saxutils import escape

from loopback import Handler, serving

PAGE_OBJECTS = 20


def google_options(address: str) -> dict[str, str]:
    """The storage options for this server."""
    names = ("client_email", "private_key", "private_key_id")
    account = {"gcs_base_url": address, "disable_oauth": True, **dict.fromkeys(names, "")}
    return {"service_account_key": json.dumps(account)}


@contextmanager
def google_server() -> Iterator[str]:
    """The address of a server on which all buckets are the same empty one."""
    objects: dict[str, bytes] = {}
    uploads: dict[str, dict[int, bytes]] = {}
    lock = threading.Lock()

    class GoogleHandler(Handler):
        @property
        def _key(self) -> str:
            return self.decoded_path.lstrip("/").partition("/")[2]

        def get(self) -> None:
            data = objects.get(self._key)
            if not self._key:
                self._list()
            elif data is None:
                self._reject(404, "NoSuchKey")
            elif self.headers.get("if-match", _tag(data)) != _tag(data):
                self._reject(412, "PreconditionFailed")
            else:
                self._answer(data, etag=_tag(data))

        def put(self) -> None:
            data, query = self.body(), self.query
            with lock:
                if "uploadId" in query:
                    uploads[query["uploadId"]][int(query["partNumber"])] = data
                elif self.headers.get("x-goog-if-generation-match") == "0" and self._key in objects:
                    self._reject(412, "PreconditionFailed")
                    return
                else:
                    objects[self._key] = data
            self._answer(etag=_tag(data))

        def post(self) -> None:
            body, query = self.body(), self.query
            with lock:
                if "uploads" in query:
                    name = f"upload-{len(uploads)}"
                    uploads[name] = {}
                    key = escape(self._key)
                    inner = f"<Bucket>b</Bucket><Key>{key}</Key><UploadId>{name}</UploadId>"
                    self._answer(_xml("InitiateMultipartUploadResult", inner))
                    return
                parts = uploads.pop(query["uploadId"])
                numbers = map(int, re.findall(rb"<PartNumber>(\d+)", body))
                data = objects[self._key] = b"".join(parts[number] for number in numbers)
            tag = f"<ETag>{escape(_tag(data))}</ETag>"
            self._answer(_xml("CompleteMultipartUploadResult", tag), etag=_tag(data))

        def delete(self) -> None:
            with lock:
                is_upload = uploads.pop(self.query.get("uploadId", ""), None) is not None
                if not is_upload and objects.pop(self._key, None) is None:
                    self._reject(404, "NoSuchKey")
                else:
                    self.answer(204)

        def _list(self) -> None:
            after = self.query.get("continuation-token") or self.query.get("start-after", "")
            prefix = self.query.get("prefix", "")
            with lock:
                keys = sorted((key for key in objects if key.startswith(prefix)), key=str.encode)
                keys = [key for key in keys if key.encode() > after.encode()]
                page = keys[:PAGE_OBJECTS]
                inner = "".join(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                    f"<ETag>{escape(_tag(objects[key]))}</ETag><Size>{len(objects[key])}</Size></Contents>"
                    for key in page
                )
            if len(keys) > len(page):
                inner += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
            is_cut = str(len(keys) > len(page)).lower()
            self._answer(_xml("ListBucketResult", f"<IsTruncated>{is_cut}</IsTruncated>{inner}"))

        def _reject(self, status: int, code: str) -> None:
            self.answer(status, _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>"))

        def _answer(self, data: bytes = b"", **headers: str) -> None:
            self.answer_range(data, **headers, **{"last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"})

    with serving(GoogleHandler) as address:
        yield address


def _tag(data: bytes) -> str:
    return f'"{md5(data, usedforsecurity=False).hexdigest()}"'


def _xml(name: str, inner: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inner}</{name}>'.encode()
