"""Conversions of one corpus from disk and from stores give the same bytes; what changes or is not there is one line."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from faulty_proxy import HARMLESS, Faults, faulty_proxy
from hub_files import hub_server
from naive_conversion import END, make_documents, tree
from servers import BUCKET, KEY, SECRET, client_of_another_make, moto_server, s3_options
from stopped_runs import leave_partial, options
from web_server import web_server

import flat_tokens
from convert import convert
from convert.__main__ import main
from convert.driver.conversion import dry_run
from convert.errors import BadInput, Refused
from convert.planning.plan import make_plan
from flat_tokens import verify_dataset
from tokenmill.__main__ import main as tokenmill
from tokenmill.cli.failures import exit_code_of
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.stores import Store, StoreChanged, StoreNotFound, open_store

pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with moto_server() as address:
        yield address


class Place(NamedTuple):
    """A URL or path, and the options of its store."""

    url: str
    options: dict[str, str]

    @property
    def store(self) -> Store:
        return open_store(self.url, self.options)


def text(documents: list[str]) -> bytes:
    return END.join(documents).encode()


def json_lines(documents: list[str]) -> bytes:
    return "".join(json.dumps({"text": document}) + "\n" for document in documents).encode()


def parquet(documents: list[str]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"number": list(range(len(documents))), "text": documents, "more": ["x" * 50] * len(documents)}
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(columns), sink, row_group_size=17)
    data: bytes = sink.getvalue().to_pybytes()
    return data


FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "txt": text,
    "jsonl": json_lines,
    "jsonl.gz": lambda documents: gzip.compress(json_lines(documents), mtime=0),
    "txt.xz": lambda documents: lzma.compress(text(documents)),
    "parquet": parquet,
}


def put_corpus(store: Store, form: str) -> None:
    """Some files of one form, in folders."""
    for number, name in enumerate(["a", "b/c", "b/d e"]):
        documents = make_documents(40 + 30 * number, seed=number)
        store.put(f"{name}.{form}", FORMS[form](documents))


def arrays(dataset: Path) -> dict[str, bytes]:
    """The files of a dataset without its manifest and the list of its sources."""
    files = tree(dataset)
    own = ("manifest.json", "sources.jsonl")
    return {name: content for name, content in files.items() if not name.lower().endswith(own)}


@pytest.fixture(params=["memory", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    """Where a corpus is put: this process's memory, or a server."""
    if request.param == "memory":
        return Place(f"memory://{uuid4().hex}/corpus", {})
    return Place(f"s3://{BUCKET}/{uuid4().hex}/corpus", s3_options(request.getfixturevalue("moto")))


def run(place: Place, output: str = "out", **more: Any) -> dict[str, bytes]:
    given = {"inputs": (place.url,), "storage_options": place.options, "text_chunk_bytes": 1000, **more}
    with ThreadPoolExecutor(2) as executor:
        convert(options(output=output, **given), executor)
    return arrays(Path(output))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_dataset_from_disk_and_from_a_store(here: Path, form: str, place: Place) -> None:
    put_corpus(open_store(here / "corpus"), form)
    put_corpus(place.store, form)
    expected = run(Place("corpus", {}), "disk")
    assert run(place) == expected
    sources = flat_tokens.open("out").sources()
    assert [source["path"] for source in sources] == [
        f"{place.url}/{name}.{form}" for name in ("a", "b/c", "b/d e")
    ]
    assert all(
        source["version"] == place.store.head(source["path"][len(place.url) + 1 :]).version
        for source in sources
    )
    assert not verify_dataset(Path("out")).problems


def test_markers_of_folders_were_taken_for_objects(here: Path, moto: str) -> None:
    """Consoles of stores put an empty object "data/" for a folder."""
    place = Place(f"s3://{BUCKET}/{uuid4().hex}/corpus", s3_options(moto))
    put_corpus(place.store, "txt")
    place.store.put("b-/x.txt", b"between the names of a folder and of its marker")
    expected = run(place, "without")
    client = client_of_another_make(moto)
    prefix = place.url.removeprefix(f"s3://{BUCKET}/")
    for marker in ("", "b/", "none/", "none.parquet/"):
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/{marker}", Body=b"")
    assert run(place) == expected
    output = f"{place.url}.zarr"
    with ThreadPoolExecutor(2) as executor:
        convert(options(inputs=(place.url,), output=output, storage_options=place.options), executor)
    for marker in ("/", "/train/", "/other/"):
        client.put_object(Bucket=BUCKET, Key=f"{prefix}.zarr{marker}", Body=b"")
    assert verify_dataset(open_store(output, place.options)).problems == ()


@pytest.mark.parametrize("key", ["b//c.txt", "b/./c.txt"])
def test_a_key_that_cannot_be_read_is_named(
    here: Path, moto: str, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was "the connection failed"."""
    prefix, client = uuid4().hex, client_of_another_make(moto)
    client.put_object(Bucket=BUCKET, Key=f"{prefix}/{key}", Body=b"x")
    settings = [f"--storage-option={name}={value}" for name, value in s3_options(moto).items()]
    for named in (f"s3://{BUCKET}/{prefix}", f"s3://{BUCKET}/{prefix}/{key}"):
        assert main([named, "--tokenizer", "tok.json", "--output", "out", "--quiet", *settings]) in (2, 4)
        error = capfd.readouterr().err
        assert f"{prefix}/{key}" in error
        assert error.count("\n") == 1
    client.delete_object(Bucket=BUCKET, Key=f"{prefix}/{key}")


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "--tokenizer", "tok.json", "--output", "out"],
        ["count", "--pattern", "gpt2", "--output", "out.counts"],
        ["verify"],
    ],
)
def test_a_panic_of_an_extension_module_was_a_traceback(
    here: Path, command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    settings = {**s3_options("http://127.0.0.1:9"), "access_key_id": "a\nb"}
    given = [f"--storage-option={name}={value}" for name, value in settings.items()]
    assert tokenmill([command[0], f"s3://{BUCKET}/x", *command[1:], *given]) == 4
    error = capfd.readouterr().err
    assert "Traceback" not in error
    assert error.splitlines()[-1].startswith(f"tokenmill: error: s3://{BUCKET}/x")


def test_worker_processes_read_for_themselves(
    here: Path, moto: str, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(f"s3://{BUCKET}/{uuid4().hex}/corpus", s3_options(moto))
    put_corpus(open_store(here / "corpus"), "jsonl")
    put_corpus(place.store, "jsonl")
    expected = run(Place("corpus", {}), "disk")
    settings = [f"--storage-option={name}={value}" for name, value in place.options.items()]
    command = [f"{place.url}/**", "--tokenizer", "tok.json", "--output", "out", "--text-chunk-bytes", "1000"]
    assert main([*command, "--workers", "2", "--quiet", *settings]) == 0, capfd.readouterr().err
    assert arrays(Path("out")) == expected
    for path in Path("out").rglob("*"):  # what a run is told of credentials is not kept
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes()


def test_settings_by_environment_variables(here: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(f"s3://{BUCKET}/{uuid4().hex}/corpus", s3_options(moto))
    put_corpus(place.store, "txt")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert run(Place(place.url, {}))


def test_a_dry_run_looks_into_objects(here: Path, place: Place) -> None:
    for form in FORMS:
        put_corpus(place.store, form)
    lines = dry_run(options(inputs=(f"{place.url}/**",), storage_options=place.options))
    assert any("15 files" in line for line in lines), lines


def test_a_run_goes_on_where_nothing_changed_and_is_refused_else(
    here: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_corpus(place.store, "txt")
    leave_partial(monkeypatch, inputs=(place.url,), storage_options=place.options)
    place.store.put("a.txt", b"another text")
    with pytest.raises(Refused, match="a.txt"):
        convert(options(inputs=(place.url,), storage_options=place.options), InlineEngine())
    put_corpus(place.store, "txt")
    if place.options:  # the version follows from the content; in memory it is a number that grows
        convert(options(inputs=(place.url,), storage_options=place.options), InlineEngine())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("harm", ["rewritten", "removed"])
def test_an_object_that_changes_between_plan_and_read(
    here: Path, place: Place, form: str, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_corpus(place.store, form)

    def harm_done(*arguments: Any, **more: Any) -> Any:
        if harm == "removed":
            place.store.delete([f"b/c.{form}"])
        else:
            place.store.put(f"b/c.{form}", FORMS[form](make_documents(70, seed=99)))
        return make_plan(*arguments, **more)

    monkeypatch.setattr("convert.driver.conversion.make_plan", harm_done)
    kind = StoreNotFound if harm == "removed" else StoreChanged
    with pytest.raises(kind, match=f"b/c..*{form}") as raised:
        run(place)
    assert exit_code_of(raised.value) == 3
    assert not Path("out").exists()


def test_a_bad_record_of_an_object_is_named(here: Path, place: Place) -> None:
    place.store.put("bad.jsonl", b'{"text": "a"}\n' * 100 + b'{"no": 1}\n')
    with pytest.raises(BadInput, match=f"{place.url}.*/bad.jsonl.*line 101"):
        run(place)


@pytest.mark.parametrize(
    ("url", "change", "says", "code"),
    [
        (
            "s3://no-such-bucket/x",
            {},
            "s3://no-such-bucket.*NoSuchBucket.*AWS_ENDPOINT_URL",
            2,
        ),
        ("s3://no-such-bucket/", {}, "s3://no-such-bucket", 2),
        (f"s3://{BUCKET}/x", {"endpoint": "127.0.0.1:9"}, "endpoint: .*127.0.0.1:9", 2),
        (f"s3://{BUCKET}/none.txt", {}, "none.txt: ", 2),
        (f"s3://{BUCKET}/none*", {}, "none", 2),
        (f"s3://{BUCKET}/", {"bogus": "1"}, "'bogus'", 2),
        (f"s3://{BUCKET}/x", {"endpoint": "http://127.0.0.1:9", "max_retries": "0"}, "connection failed", 4),
    ],
)
def test_what_is_not_there_is_one_line(
    here: Path,
    moto: str,
    url: str,
    change: dict[str, str],
    says: str,
    code: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = [f"--storage-option={name}={value}" for name, value in {**s3_options(moto), **change}.items()]
    assert main([url, "--tokenizer", "tok.json", "--output", "out", "--quiet", *settings]) == code
    error = capfd.readouterr().err
    assert re.search(says, error)
    assert error.count("\n") == 1
    assert SECRET not in error
    assert list(Path().glob("out*")) == []


@pytest.mark.parametrize("text", ["-", "=", "name", "name=", "=value", ""])
def test_an_option_is_a_name_and_a_value(here: Path, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["en.txt", "--tokenizer", "tok.json", "--output", "out", f"--storage-option={text}"]) == 2
    assert "error: --storage-option" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["denied", "region", "expired"])
def test_what_a_store_does_not_allow_is_one_line(
    here: Path, moto: str, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with faulty_proxy(moto, Faults(kinds=(kind,), rate=1.0, most=1000)) as proxy:
        settings = [f"--storage-option={name}={value}" for name, value in s3_options(proxy.url).items()]
        command = [f"s3://{BUCKET}/x", "--tokenizer", "tok.json", "--output", "out", "--quiet", *settings]
        assert main(command) == 4
        assert len(proxy.requests) <= 3
    error = capfd.readouterr().err
    assert {"denied": "AccessDenied", "region": "AWS_REGION", "expired": "ExpiredToken"}[kind] in error
    assert error.count("\n") == 1


def test_faults_on_the_way_leave_no_trace(here: Path, moto: str) -> None:
    place = Place(f"s3://{BUCKET}/{uuid4().hex}/corpus", s3_options(moto))
    for form in FORMS:
        put_corpus(place.store, form)
    expected = run(place, "clean")
    kinds = [kind for kind in HARMLESS if kind != "slow"]
    with faulty_proxy(moto, Faults(kinds=kinds, rate=0.15, seed=4, most=2)) as proxy:
        assert run(Place(place.url, s3_options(proxy.url))) == expected
        assert sum(proxy.struck.values()) > 5


def test_files_of_a_web_server(here: Path) -> None:
    put_corpus(open_store(here / "corpus"), "parquet")
    expected = run(Place("corpus", {}), "disk")
    with web_server() as server:
        for name in ("a", "b/c", "b/d e"):
            server.files[f"/{name}.parquet"] = (here / f"corpus/{name}.parquet").read_bytes()
        urls = [f"{server.url}/{name}.parquet?sig=secret" for name in ("a", "b/c", "b/d%20e")]
        assert run(Place("", {}), inputs=tuple(urls)) == expected
    sources = Path("out/sources.jsonl").read_text()
    assert "secret" not in sources + Path("out/manifest.json").read_text()
    assert json.loads(sources.splitlines()[0])["path"] == f"{server.url}/a.parquet?…"


def test_a_dataset_of_the_hub(here: Path) -> None:
    pytest.importorskip("huggingface_hub")
    put_corpus(open_store(here / "corpus"), "jsonl")
    expected = run(Place("corpus", {}), "disk")
    with hub_server() as hub:
        hub.commit(
            {
                f"d/{name}.jsonl": (here / f"corpus/{name}.jsonl").read_bytes()
                for name in ("a", "b/c", "b/d e")
            }
        )
        assert run(Place("hf://datasets/someone/texts/d", {"endpoint": hub.url})) == expected
