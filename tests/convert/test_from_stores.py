"""Inputs on stores give the dataset of the same files on a disk. Missing and changed objects are one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hub_files import hub_server
from runs import (
    ENVIRONMENT,
    Inline,
    arrays,
    command,
    convert,
    error_of,
    rejected,
    run_here,
    sample_documents,
    sources_of,
    tree,
)
from servers import BUCKET, KEY, SECRET, client_of_another_make, s3_options
from strategies import END, compressed
from web_server import web_server

from flat_tokens import verify_dataset
from tokenmill.__main__ import main as tokenmill
from tokenmill.stores import Store, open_store

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = pytest.mark.usefixtures("here")
NAMES = ["a", "b/c", "b/d e"]
SMALL = {"text_chunk_bytes": 1000}


class Place(NamedTuple):
    """A URL or path, and the options of its store."""

    url: str
    options: dict[str, str]

    @property
    def store(self) -> Store:
        return open_store(self.url, self.options)


def on_server(moto: str) -> Place:
    return Place(f"s3://{BUCKET}/{uuid4().hex}/corpus", s3_options(moto))


@pytest.fixture(params=["memory", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    """The store of a corpus: the memory of this process, or a server."""
    if request.param == "memory":
        return Place(f"memory://{uuid4().hex}/corpus", {})
    return on_server(request.getfixturevalue("moto"))


def json_lines(documents: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in documents).encode()


def parquet(documents: list[str]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"number": list(range(len(documents))), "text": documents, "more": ["x" * 50] * len(documents)}
    sink = pyarrow.BufferOutputStream()
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), sink, row_group_size=17)
    data: bytes = sink.getvalue().to_pybytes()
    return data


FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "txt": lambda documents: END.join(documents).encode(),
    "jsonl": json_lines,
    "jsonl.gz": lambda documents: compressed(json_lines(documents), "gz"),
    "txt.xz": lambda documents: compressed(END.join(documents).encode(), "xz"),
    "parquet": parquet,
}


def put_corpus(store: Store, *forms: str) -> None:
    """Store three files of each form in folders."""
    for form in forms:
        for number, name in enumerate(NAMES):
            store.put(f"{name}.{form}", FORMS[form](sample_documents(40 + 30 * number, seed=number)))


def run(place: Place, output: str = "out", **more: Any) -> dict[str, bytes]:
    given = {"inputs": [place.url], "storage_options": place.options, **SMALL, **more}
    with ThreadPoolExecutor(2) as executor:
        convert(executor, output=output, **given)
    return arrays(output)


def on_disk(*forms: str) -> dict[str, bytes]:
    put_corpus(open_store("corpus"), *forms)
    return run(Place("corpus", {}), "disk")


def settings(options: dict[str, str]) -> list[str]:
    return [f"--storage-option={name}={value}" for name, value in options.items()]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_dataset_is_that_of_the_files_on_a_disk(form: str, place: Place) -> None:
    put_corpus(place.store, form)
    assert run(place) == on_disk(form)
    sources = sources_of("out")
    assert [source["path"] for source in sources] == [f"{place.url}/{name}.{form}" for name in NAMES]
    for source, name in zip(sources, NAMES, strict=True):
        assert source["version"] == place.store.head(f"{name}.{form}").version
    assert not verify_dataset(Path("out")).problems
    assert "3 files" in run_here(place.url, *settings(place.options), output="new", dry_run=True)[1]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["options", "environment"])
def test_worker_processes_read_for_themselves(by: str, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, more = on_server(moto), settings(s3_options(moto))
    put_corpus(place.store, "jsonl")
    if by == "environment":
        names = {"AWS_ENDPOINT_URL": moto, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        for name, value in names.items():
            monkeypatch.setitem(ENVIRONMENT, name, value)
        more = []
    done = command(f"{place.url}/**", *more, workers=2, progress="none", **SMALL)
    assert done[::2] == (0, "")
    assert arrays("out") == on_disk("jsonl")
    assert not any(SECRET.encode() in path.read_bytes() for path in Path("out").rglob("*") if path.is_file())


@pytest.mark.slow
def test_markers_of_folders_are_no_objects(moto: str) -> None:
    """Consoles of stores put an empty object "data/" for a folder."""
    place = on_server(moto)
    put_corpus(place.store, "txt")
    place.store.put("b-/x.txt", b"between the names of a folder and of its marker")
    expected, client = run(place, "without"), client_of_another_make(moto)
    prefix = place.url.removeprefix(f"s3://{BUCKET}/")
    for marker in ("", "b/", "none/", "none.parquet/"):
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/{marker}", Body=b"")
    assert run(place) == expected
    output = f"{place.url}.zarr"
    convert(Inline(), inputs=[place.url], output=output, storage_options=place.options)
    for marker in ("/", "/train/", "/other/"):
        client.put_object(Bucket=BUCKET, Key=f"{prefix}.zarr{marker}", Body=b"")
    assert verify_dataset(open_store(output, place.options)).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["rewritten", "removed"])
@pytest.mark.parametrize("form", FORMS)
def test_an_object_that_changes_after_the_plan(form: str, harm: str, place: Place) -> None:
    put_corpus(place.store, form)

    def change(number: int) -> None:
        if number == 0:
            if harm == "removed":
                place.store.delete([f"b/c.{form}"])
            else:
                place.store.put(f"b/c.{form}", FORMS[form](sample_documents(70, seed=99)))

    error = error_of(Inline(change), inputs=[place.url], storage_options=place.options, **SMALL)
    assert error.exit_code == 3
    assert re.search(rf"b/c.*{form}", str(error))
    assert not Path("out").exists()


# -- errors


@pytest.mark.parametrize(
    ("url", "change", "text", "code"),
    [
        ("s3://no-such-bucket/x", {}, "NoSuchBucket.*AWS_ENDPOINT_URL", 2),
        (f"s3://{BUCKET}/none.txt", {}, "none.txt: ", 2),
        (f"s3://{BUCKET}/x", {"endpoint": "http://127.0.0.1:9", "max_retries": "0"}, "connection failed", 4),
    ],
)
def test_an_object_that_does_not_exist(
    url: str, change: dict[str, str], text: str, code: int, moto: str
) -> None:
    error = rejected(code, url, *settings({**s3_options(moto), **change}))
    assert re.search(text, error)
    assert SECRET not in error
    assert not list(Path().glob("out*"))


@pytest.mark.parametrize(
    "line",
    [
        ["convert", "--tokenizer", "tok.json", "--output", "out"],
        ["count", "--pattern", "gpt2", "--output", "out.counts"],
        ["verify"],
    ],
)
def test_a_panic_of_an_extension_module_was_a_traceback(
    line: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    options = settings({**s3_options("http://127.0.0.1:9"), "access_key_id": "a\nb"})
    assert tokenmill([line[0], f"s3://{BUCKET}/x", *line[1:], *options]) == 4
    error = capfd.readouterr().err
    assert "Traceback" not in error
    assert error.splitlines()[-1].startswith(f"tokenmill: error: s3://{BUCKET}/x")


# -- other servers


def test_files_of_a_web_server() -> None:
    expected = on_disk("parquet")
    with web_server() as server:
        for name in NAMES:
            server.files[f"/{name}.parquet"] = Path(f"corpus/{name}.parquet").read_bytes()
        urls = [f"{server.url}/{name}.parquet?sig=secret" for name in ("a", "b/c", "b/d%20e")]
        assert run(Place("", {}), inputs=urls) == expected
    assert not any(b"secret" in data for data in tree("out").values())
    assert sources_of("out")[0]["path"] == f"{server.url}/a.parquet?…"


def test_a_dataset_of_the_hub() -> None:
    pytest.importorskip("huggingface_hub")
    expected = on_disk("jsonl")
    with hub_server() as hub:
        hub.commit({f"d/{name}.jsonl": Path(f"corpus/{name}.jsonl").read_bytes() for name in NAMES})
        assert run(Place("hf://datasets/someone/texts/d", {"endpoint": hub.url})) == expected
