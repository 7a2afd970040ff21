"""A small conversion from a store to a store with a fault at one of its requests, resumed and checked independently.

`StoreSweep(endpoint, bucket, folder).point(name, at, seed)` returns the first problem, or None. The run must end with a
documented exit code and one line of error. It must not hang, leave a process, or store the manifest of an incomplete
dataset. Then the same command without faults must give the objects of a conversion to a local disk, by a listing and
SHA-256, and leave nothing else in the bucket or on the machine.

Not tried, because no store makes two requests atomic: a driver that pauses between the check of its claim and the
request that follows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from dask_cluster import Cluster
from faulty_proxy import faulty_proxy
from processes import KILLED, Outcome, Started, end_group, start
from runs import sample_documents, tokenizer_bytes
from servers import client_of_another_make, s3_options
from store_faults import HANG_SECONDS, KINDS, Happening, Kind
from strategies import END

from flat_tokens import verify_dataset
from flat_tokens.storage.places import StorePath
from tokenmill.stores import is_url, open_store

# `python -m convert`, but that a run that was killed is taken over at once, each batch of results is put at once, what
# is compressed is several shards, and that tasks may be done by the driver itself.
DRIVER = """
import sys
from functools import partial
from convert.driver import conversion
from convert.__main__ import flush_and_leave, main
from convert.workdir import journal
from tokenmill.stores import lease
from convert.planning import plan
from inline_engine import InlineEngine
lease.TAKEN_OVER_SECONDS = lease.WATCHED_SECONDS = journal.PUT_SECONDS = 0.0
plan.MIN_GIVEN_SHARD_BYTES = 700
if sys.argv[1] == "inline":
    conversion.convert = partial(conversion.convert, executor=InlineEngine())
flush_and_leave(main(sys.argv[2:]))
"""
_TOLD = ("warning: ", "resuming from ", "rebuilt ")  # next to an error


class StoreSweep:
    """The job in a new bucket of the server at `endpoint`, and the dataset that a local disk has of it.

    on_cluster: run on a dask cluster, with the shards elsewhere in the store.

    requests: all requests of a run without faults, in order.
    missed: the number of points after the last request.
    """

    def __init__(self, endpoint: str, bucket: str, folder: Path, on_cluster: bool = False) -> None:
        self._endpoint, self._bucket, self._folder = endpoint, bucket, folder
        self._on_cluster = on_cluster
        self._s3 = client_of_another_make(endpoint)
        self._s3.create_bucket(Bucket=bucket)
        self._points = self.missed = 0
        self._cluster: Cluster | None = None
        (folder / "tok.json").write_bytes(tokenizer_bytes())
        documents = sample_documents(30, seed=4)
        lines = "".join(json.dumps({"text": text}) + "\n" for text in documents[:20])
        self._inputs = {
            "in/bad.txt": END.join(documents[:3]).encode() + b"<|endoftext|>bad \xff<|endoftext|>good",
            "in/en.txt": END.join(documents).encode(),
            "in/lines.jsonl.gz": gzip.compress(lines.encode() + b"{no json\n", mtime=0),
        }
        self._put_inputs()
        local = folder / "local"
        ended = _end(self._start("inline", endpoint, str(local), folder))
        if ended.code:
            raise AssertionError(f"the job fails without a fault: {ended.output}")
        self._expected = {
            path.relative_to(local).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in local.rglob("*")
            if path.is_file()
        }
        with faulty_proxy(endpoint) as proxy:
            ended = _end(self._start("inline", proxy.url, f"s3://{bucket}/out", folder))
            self.requests = proxy.requests
        if ended.code or (wrong := self._wrong("out")):
            raise AssertionError(f"the job fails on a store: {ended.output or wrong}")
        self._empty("out")

    def close(self) -> None:
        """End the processes that it started."""
        if self._cluster is not None:
            self._cluster.close()

    def places(self, name: str) -> list[int]:
        """Where a fault of the kind can be, as a number of the requests that it may happen at."""
        own = [line for line in self.requests if re.search(KINDS[name].of, line)]
        places = range(len(own))
        if name.startswith("input"):  # those that were not listed yet would be others from the beginning
            listing = next(at for at, line in enumerate(own) if "prefix=in%2F" in line)
            places = range(listing + 1, len(own))
        if name.startswith("driver stopped"):  # see above
            return [
                at for at in places if not re.search(r"\?delete|plan\.json", "".join(own[at + 1 : at + 2]))
            ]
        return list(places)

    def point(self, name: str, at: int, seed: int) -> str | None:
        """Return the problem after a fault at request number `at`, or None. seed: for other choices."""
        self._points += 1
        out = f"out-{self._points}"
        temporary = self._folder / out
        temporary.mkdir()
        runs: list[Started] = []
        try:
            return self._point(KINDS[name], at, seed, out, temporary, runs)
        finally:
            for run in runs:
                end_group(run.pid, 0)
            self._put_inputs()
            self._empty(out)

    def _point(
        self, kind: Kind, at: int, seed: int, out: str, temporary: Path, runs: list[Started]
    ) -> str | None:
        def begin(
            engine: str, endpoint: str = self._endpoint, workers: int = 2, patience: str = "20s"
        ) -> Started:
            output = f"s3://{self._bucket}/{out}"
            runs.append(self._start(engine, endpoint, output, temporary, workers, patience))
            return runs[-1]

        def another() -> None:
            elsewhere = temporary / "elsewhere"
            elsewhere.mkdir()
            runs.append(self._start("inline", self._endpoint, f"s3://{self._bucket}/{out}", elsewhere))
            others.append(_end(runs[-1]))
            with suppress(OSError):  # the check at the end reports other files
                elsewhere.rmdir()

        others: list[Outcome] = []
        with ExitStack() as stack:
            happening = Happening(kind, at, seed, self._dask_workers, another, self._change_input)
            stack.callback(happening.let_go)
            happening.proxy = proxy = stack.enter_context(faulty_proxy(self._endpoint, happening.faults))
            happening.run = begin(kind.engine, proxy.url, patience="3s" if kind.fault == "stall" else "20s")
            ended = happening.wait()
            self.missed += not proxy.struck
            if wrong := self._after(ended, kind, out, temporary):
                return wrong
            for other in others:
                if other.hung or other.code not in (0, 6):
                    return f"the run that takes over ends with {other.code}: {other.output[-800:]}"
                if other.code == 0 and (wrong := self._other_objects(out)):
                    return f"what another run finished was harmed: {wrong}"
            if ended.code or kind.is_late:
                self._put_inputs()
                is_published = f"{out}/manifest.json" in self._listed()
                ended = _end(begin("own" if seed % 4 == 0 else "inline", workers=seed % 3 + 1))
                if wrong := self._at_last(ended, is_published):
                    return wrong
        if left := [pid for run in runs for pid in end_group(run.pid)]:
            return f"{len(left)} processes are left"
        if kind.is_late and self._wrong(out) and (wrong := self._at_last(_end(begin("inline")), True)):
            return f"something came late: {wrong}"
        return self._wrong(out) or self._left(temporary)

    def _after(self, ended: Outcome, kind: Kind, out: str, temporary: Path) -> str | None:
        """Return the problem of the run with the fault."""
        if ended.hung:
            return f"it hangs: {ended.output[-800:]}"
        if ended.code not in (0, *kind.codes):
            return f"exit code {ended.code}: {ended.output[-800:]}"
        lines = [line for line in ended.output.splitlines() if not line.startswith(_TOLD)]
        if len(lines) != (ended.code > 0) or not all(line.startswith("tokenmill: error: ") for line in lines):
            return f"exit code {ended.code} with a message of another form: {ended.output[-2000:]}"
        if ended.code == KILLED:  # nothing can remove the temporary folder of its process
            for folder in temporary.glob("tokenmill-*"):
                shutil.rmtree(folder)
        elif left := self._left(temporary):
            return left
        listed = self._listed()
        if ended.code == 0 and f"{out}/manifest.json" not in listed:
            return "exit code 0, but no manifest"
        if f"{out}/manifest.json" in listed and (wrong := self._other_objects(out)):
            return f"published, but {wrong}"
        return self._wrong(out) if ended.code == 0 and not kind.is_late else None

    def _at_last(self, ended: Outcome, is_published: bool) -> str | None:
        """Return the problem of the next run, which has no fault."""
        if ended.hung:
            return f"the next run hangs: {ended.output[-800:]}"
        if ended.code != (6 if is_published else 0) or (
            is_published and "already exists" not in ended.output
        ):
            return f"the next run ends with {ended.code}: {ended.output[-800:]}"
        return None

    # -- an independent reader

    def _listed(self) -> list[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def _other_objects(self, out: str) -> str | None:
        found = {}
        for key in self._listed():
            if key.startswith(f"{out}/"):
                data = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
                found[key.removeprefix(f"{out}/")] = hashlib.sha256(data).hexdigest()
        names = sorted({name for name, _ in found.items() ^ self._expected.items()})
        return f"other objects than those of a local disk: {names}" if names else None

    def _wrong(self, out: str) -> str | None:
        """Return the problem of the result."""
        if wrong := self._other_objects(out):
            return wrong
        others = [key for key in self._listed() if not key.startswith(f"{out}/") and key not in self._inputs]
        if others:
            return f"left in the bucket: {others}"
        dataset = open_store(f"s3://{self._bucket}/{out}", s3_options(self._endpoint))
        return f"not sound: {found}" if (found := verify_dataset(StorePath(dataset)).problems) else None

    def _left(self, temporary: Path) -> str | None:
        names = sorted(path.relative_to(temporary).as_posix() for path in temporary.rglob("*"))
        return f"left on the machine: {names}" if names else None

    # -- what belongs to the job

    def _put_inputs(self) -> None:
        for key, data in self._inputs.items():
            self._s3.put_object(Bucket=self._bucket, Key=key, Body=data)

    def _change_input(self, data: bytes | None) -> None:
        if data is None:
            self._s3.delete_object(Bucket=self._bucket, Key="in/en.txt")
        else:
            self._s3.put_object(Bucket=self._bucket, Key="in/en.txt", Body=data)

    def _empty(self, out: str) -> None:
        for key in self._listed():
            if key.startswith((f"{out}/", f"{out}.partial/", f"{out}.scratch/")):
                self._s3.delete_object(Bucket=self._bucket, Key=key)

    def _start(
        self,
        engine: str,
        endpoint: str,
        output: str,
        temporary: Path,
        workers: int = 2,
        patience: str = "20s",
    ) -> Started:
        command = [sys.executable, "-c", DRIVER, engine, f"s3://{self._bucket}/in/*", "--output", output]
        command += ["--tokenizer", "tok.json", "--text-chunk-bytes", "700", "--chunk-tokens", "256"]
        command += ["--validation-fraction", "0.2", "--zarr-format", "3", "--on-error", "quarantine"]
        command += ["--quiet", "--progress", "none"]
        options = {**s3_options(endpoint), "max_retries": "4", "read_timeout": patience}
        command += [f"--storage-option={name}={value}" for name, value in options.items()]
        if self._on_cluster and is_url(output):
            engine = command[3] = "dask"
            command += ["--scratch", f"{output}.scratch"]
        if engine != "dask":
            command += ["--workers", str(workers)]
        else:
            command += ["--executor", "dask", "--scheduler", self._dask()]
        return start(command, self._folder, {"TMPDIR": str(temporary)})

    def _dask(self) -> str:
        """The address of a cluster of two workers."""
        self._cluster = self._cluster or Cluster(2, 1)
        return self._cluster.address

    def _dask_workers(self) -> list[int]:
        return [] if self._cluster is None else [int(word) for word in self._cluster.ask("pids").split()]


def _end(run: Started) -> Outcome:
    return run.wait(HANG_SECONDS, settles=False)
