"""Which objects a URL among the arguments stands for, and what is wrong with it in one line."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tokenmill.errors import BadArgument
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.sources import find_sources
from tokenmill.stores import open_store

pytest.importorskip("obstore", reason="obstore is not installed")

KEYS = ["a.txt", "b.jsonl.gz", "d/1.txt", "d/2.txt", "d/e/3.txt", ".h.txt", "d/.x/4.txt", "d.txt", "z[1].txt"]


@pytest.fixture
def root() -> str:
    url = f"memory://{uuid4().hex}"
    store = open_store(url)
    for key in KEYS:
        store.put(key, key.encode())
    return url


@pytest.mark.parametrize(
    ("argument", "keys"),
    [
        ("", "b.jsonl.gz"),
        ("/", "b.jsonl.gz"),
        ("/a.txt", "a.txt"),
        ("/.h.txt", ".h.txt"),
        ("/d", "d/1.txt d/2.txt d/e/3.txt"),
        ("/d/", "d/1.txt d/2.txt d/e/3.txt"),
        ("/*.txt", "a.txt d.txt z[1].txt"),
        ("/?.txt", "a.txt d.txt"),
        ("/[ad].txt", "a.txt d.txt"),
        ("/z[[]1].txt", "z[1].txt"),
        ("/.*", ".h.txt"),
        ("/d/*", "d/1.txt d/2.txt d/e/3.txt"),
        ("/*/[12].txt", "d/1.txt d/2.txt"),
        ("/**", "a.txt b.jsonl.gz d.txt d/1.txt d/2.txt d/e/3.txt z[1].txt"),
        ("/**/*.txt", "a.txt d.txt d/1.txt d/2.txt d/e/3.txt z[1].txt"),
        ("/d/**/3.txt", "d/e/3.txt"),
    ],
)
def test_what_a_url_stands_for(root: str, argument: str, keys: str) -> None:
    sources = find_sources([root + argument])
    assert [source.path for source in sources] == [f"{root}/{key}" for key in keys.split()]
    for source in sources:
        assert source.version
        assert source.size_bytes == len(source.path) - len(root) - 1
        with source.open() as file:
            assert file.size == source.size_bytes


def test_kinds_options_and_splits_are_kept(root: str) -> None:
    sources = find_sources([f"{root}/b*", f"{root}/d.txt"], [f"{root}/a.txt"], options={"timeout": "9s"})
    assert [source.kind for source in sources] == [Kind("jsonl", "gz"), Kind(), Kind()]
    assert [source.split for source in sources] == [None, None, "validation"]
    assert {source.options for source in sources} == {(("timeout", "9s"),)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["/none.txt"], "/none.txt: "),
        (["/none/"], "/none/: "),
        (["/*.csv.nothing"], r"/\*\.csv\.nothing: "),
        (["/d", "/d/1.txt"], "/d/1.txt: .*/d/1.txt"),
    ],
)
def test_what_is_wrong_is_one_line(root: str, arguments: list[str], says: str) -> None:
    with pytest.raises(BadArgument, match=says) as raised:
        find_sources([root + argument for argument in arguments])
    assert "\n" not in str(raised.value)


def test_all_that_is_wrong_is_told_at_once(root: str) -> None:
    open_store(root).put("x.zip", b"1")
    open_store(root).put("empty.parquet", b"")
    with pytest.raises(BadArgument) as raised:
        find_sources([f"{root}/x.zip", f"{root}/empty.parquet", "s3://", "nosuch://x/y", "none.txt"])
    for part in (
        "x.zip: ",
        "empty.parquet: ",
        "s3://: ",
        "nosuch://x/: ",
        "none.txt: ",
    ):
        assert part in str(raised.value)


def test_a_file_held_out_is_not_among_the_inputs(root: str) -> None:
    sources = find_sources([f"{root}/d"], [f"{root}/d/2.txt"])
    assert [source.path[len(root) :] for source in sources] == ["/d/1.txt", "/d/e/3.txt", "/d/2.txt"]
