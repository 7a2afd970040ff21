"""Outputs of races: a folder, or a store that is reached through a proxy with faults, as an independent reader sees it.

words(): options of the command. found(): path -> MD5 of the output. remains(): files next to the output.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

from faulty_proxy import Proxy
from runs import tree
from servers import BUCKET, client_of_another_make, s3_options

from flat_tokens import verify_dataset
from flat_tokens.storage.places import StorePath
from tokenmill.stores import open_store

NAME = "out"
_OF_OTHERS = re.compile("dask-scratch-space|(tokenmill-)?[a-z0-9_]{8}")  # the last is of a killed driver


class FolderPlace:
    """`out` in the folder of the corpus."""

    temporary: Path | None = None

    def __init__(self, root: Path) -> None:
        self._root = root
        self.output = NAME

    def words(self, scratch: str) -> list[str]:
        """Return further options. scratch: "" or "folder"."""
        if scratch:
            (self._root / "scratch").mkdir(exist_ok=True)
        return ["--scratch", "scratch"] if scratch else []

    def clear(self) -> None:
        for name in (NAME, f"{NAME}.partial", "scratch"):
            shutil.rmtree(self._root / name, ignore_errors=True)

    def is_published(self) -> bool:
        return (self._root / NAME).exists()

    def found(self) -> dict[str, str]:
        return {name: md5(data).hexdigest() for name, data in tree(self._root / NAME).items()}

    def remains(self) -> list[str]:
        left = [f"{NAME}.partial"] if (self._root / f"{NAME}.partial").exists() else []
        return left + [f"scratch/{path.name}" for path in (self._root / "scratch").glob("*")]

    def problems(self) -> list[str]:
        """Return the problems that `flat_tokens verify` finds."""
        return list(verify_dataset(self._root / NAME).problems)


class StorePlace:
    """`<prefix>/out` in a bucket of the server at `endpoint`, which runs reach through the proxy.

    temporary: the folder for temporary files of the runs, which must be empty at the end.
    """

    def __init__(self, endpoint: str, prefix: str, root: Path, proxy: Proxy) -> None:
        self._endpoint, self._prefix, self._root, self.proxy = endpoint, prefix, root, proxy
        self._s3 = client_of_another_make(endpoint)
        self.output = f"s3://{BUCKET}/{prefix}/{NAME}"
        self.temporary: Path = root / "temporary"

    def words(self, scratch: str) -> list[str]:
        """scratch: "", "folder" or "store"."""
        words = [
            f"--storage-option={name}={value}"
            for name, value in {
                **s3_options(self.proxy.url),
                "max_retries": "6",
                "read_timeout": "20s",
            }.items()
        ]
        if scratch == "folder":
            (self._root / "scratch").mkdir(exist_ok=True)
            return [*words, "--scratch", str(self._root / "scratch")]
        return [*words, "--scratch", f"s3://{BUCKET}/{self._prefix}/scratch"] if scratch else words

    def put(self, key: str, data: bytes) -> None:
        """An object below the prefix."""
        self._s3.put_object(Bucket=BUCKET, Key=f"{self._prefix}/{key}", Body=data)

    def got(self, key: str) -> bytes:
        """An object below the prefix."""
        data: bytes = self._s3.get_object(Bucket=BUCKET, Key=f"{self._prefix}/{key}")["Body"].read()
        return data

    def listed(self, folder: str) -> Iterator[tuple[str, str]]:
        """(key below the folder, MD5) of the objects in a folder below the prefix."""
        prefix = f"{self._prefix}/{folder}/"
        pages: Any = self._s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        for page in pages:
            for entry in page.get("Contents", ()):
                yield entry["Key"].removeprefix(prefix), entry["ETag"].strip('"')  # none is put in parts

    def clear(self, folders: tuple[str, ...] = (NAME, f"{NAME}.partial", "scratch")) -> None:
        for folder in folders:
            for key, _ in list(self.listed(folder)):
                self._s3.delete_object(Bucket=BUCKET, Key=f"{self._prefix}/{folder}/{key}")
        for name in ("scratch", "temporary"):
            shutil.rmtree(self._root / name, ignore_errors=True)
        self.temporary.mkdir()

    def is_published(self) -> bool:
        return any(key == "manifest.json" for key, _ in self.listed(NAME))

    def found(self) -> dict[str, str]:
        return dict(self.listed(NAME))

    def remains(self) -> list[str]:
        left = [f"{NAME}.partial/{key}" for key, _ in self.listed(f"{NAME}.partial")]
        left += [f"scratch/{key}" for key, _ in self.listed("scratch")]
        left += [f"scratch/{path.name}" for path in (self._root / "scratch").glob("*")]
        return left + temporary_files(self.temporary)

    def problems(self) -> list[str]:
        """Return the problems that `flat_tokens verify` finds."""
        store = open_store(self.output, s3_options(self._endpoint))
        return list(verify_dataset(StorePath(store)).problems)


def temporary_files(folder: Path) -> list[str]:
    """Return remaining files, except from dask and from Python's test whether the folder is writable."""
    return [f"temporary/{path.name}" for path in folder.glob("*") if not _OF_OTHERS.fullmatch(path.name)]


Place = FolderPlace | StorePlace
