"""The sources that arguments name, on a disk and on a store; all problems are reported at once."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from uuid import uuid4

import pytest
from readings import find_sources

from tokenmill.errors import BadArgument
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.sources import search_sources
from tokenmill.stores import open_store

KEYS = ["a.txt", "b.jsonl.gz", "d/1.txt", "d/2.txt", "d/e/3.txt", ".h.txt", "d/.x/4.txt", "d.txt", "z[1].txt"]


@pytest.fixture(params=["disk", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty folder, the current one if it is on the disk."""
    monkeypatch.chdir(tmp_path)
    if request.param == "disk":
        return "."
    pytest.importorskip("obstore", reason="obstore is not installed")
    return f"memory://{uuid4().hex}"


@pytest.fixture
def root(folder: str) -> str:
    """The folder with some files. The content of a file is its name."""
    write(folder, *KEYS)
    return folder


def write(folder: str, *names: str) -> None:
    store = open_store(folder)
    for name in names:
        store.put(name, name.encode())


def paths(folder: str, *inputs: str, validation: tuple[str, ...] = ()) -> list[str]:
    """The paths of the sources of arguments in a folder, as paths in it."""
    given = [[f"{folder}/{name}" for name in names] for names in (inputs, validation)]
    return [source.path.removeprefix(f"{folder}/") for source in find_sources(*given)]


@pytest.mark.promise("input-formats")
@pytest.mark.parametrize(
    ("argument", "names"),
    [
        ("", "b.jsonl.gz"),
        ("a.txt", "a.txt"),
        (".h.txt", ".h.txt"),
        ("d", "d/1.txt d/2.txt d/e/3.txt"),
        ("d/", "d/1.txt d/2.txt d/e/3.txt"),
        ("*.txt", "a.txt d.txt z[1].txt"),
        ("?.txt", "a.txt d.txt"),
        ("[ad].txt", "a.txt d.txt"),
        ("z[[]1].txt", "z[1].txt"),
        (".*", ".h.txt"),
        ("d/*", "d/1.txt d/2.txt d/e/3.txt"),
        ("*/[12].txt", "d/1.txt d/2.txt"),
        ("**", "a.txt b.jsonl.gz d.txt d/1.txt d/2.txt d/e/3.txt z[1].txt"),
        ("**/*.txt", "a.txt d.txt d/1.txt d/2.txt d/e/3.txt z[1].txt"),
        ("d/**/3.txt", "d/e/3.txt"),
    ],
)
def test_arguments_name_files_folders_and_globs(root: str, argument: str, names: str) -> None:
    assert paths(root, argument) == names.split()
    for source in find_sources([f"{root}/{argument}"]):
        with source.open() as file:
            assert file.size == source.size_bytes == len(source.path) - len(root) - 1


def test_order_kinds_and_splits(root: str) -> None:
    assert paths(root, "d.txt", "d") == ["d.txt", "d/1.txt", "d/2.txt", "d/e/3.txt"]
    inputs, validation = [f"{root}/b*", f"{root}/d"], [f"{root}/a.txt", f"{root}/d/2.txt"]
    sources = find_sources(inputs, validation, options={"timeout": "9s"})
    assert [source.kind for source in sources] == [Kind("jsonl", "gz"), *[Kind()] * 4]
    assert [source.split for source in sources] == [None, None, None, "validation", "validation"]
    if "://" in root:
        assert {source.options for source in sources} == {(("timeout", "9s"),)}


def test_all_problems_are_reported_at_once(root: str) -> None:
    write(root, "x.zip")
    open_store(root).put("empty.parquet", b"")
    arguments = ["x.zip", "empty.parquet", "none.txt", "none/", "*.nothing", "d", "d/1.txt"]
    with pytest.raises(BadArgument) as caught:
        find_sources([*(f"{root}/{argument}" for argument in arguments), "s3://", "nosuch://x/y"])
    for part in (*(f"{argument}: " for argument in arguments if argument != "d"), "s3://: ", "nosuch://x/: "):
        assert part in str(caught.value)
    assert str(caught.value).isprintable()


ABOUT = (
    "README.md LICENSE dataset_infos.json config.json x.metadata.json page.html paper.pdf cover.jpg old.zip"
)


@pytest.mark.parametrize(
    ("names", "data", "input_format"),
    [
        (f"{ABOUT} .gitattributes data/a.parquet data/b.parquet", "data/a.parquet data/b.parquet", "auto"),
        (f"{ABOUT} notes.txt a.jsonl b.json.gz c/d.csv", "a.jsonl b.json.gz c/d.csv", "auto"),
        (f"{ABOUT} a.txt b.txt.gz notes.md", "a.txt b.txt.gz notes.md", "auto"),
        ("README.md LICENSE docs/README.md docs/a.md", "docs/README.md docs/a.md", "auto"),
        ("README.md LICENSE", "LICENSE README.md", "auto"),
        ("train/a.jsonl train/README.md validation/b.jsonl", "train/a.jsonl validation/b.jsonl", "auto"),
        ("config.json data.json", "data.json", "auto"),
        ("README.md a.jsonl b.csv c.log", "a.jsonl", "jsonl"),
        ("README.md c.log d/e.log", "c.log d/e.log", "jsonl"),
        ("README.md a.py b.json c.html d.png e.zip f.parquet", "README.md a.py b.json c.html d.png", "text"),
    ],
)
def test_files_about_the_data_were_read_as_data(
    folder: str, names: str, data: str, input_format: str
) -> None:
    folder = f"{folder}/cloned"
    write(folder, *names.split())
    found = search_sources([folder], input_format=input_format)
    assert [source.path.removeprefix(f"{folder}/") for source in found.sources] == data.split()
    assert found.problems == []
    others = [name for name in names.split() if name not in data.split() and not name.startswith(".")]
    assert sum(f"{folder}/{name}" in found.note for name in others) == min(len(others), 5)
    for name in others:  # named directly or by a glob
        named = search_sources([folder, f"{folder}/{name[:-1]}*"], input_format=input_format)
        if not name.endswith((".pdf", ".jpg", ".zip", "f.parquet")):
            assert f"{folder}/{name}" in [source.path for source in named.sources]


def test_a_folder_without_data_is_named(folder: str) -> None:
    folder = f"{folder}/pages"
    write(folder, *(f"{number:02}.html" for number in range(12)))
    with pytest.raises(BadArgument, match=f"^.*{folder}.*{folder}.*/00.html"):
        find_sources([folder])
    for argument, input_format in ((f"{folder}/*", "auto"), (folder, "text")):
        found = search_sources([argument], input_format=input_format)
        assert len(found.sources) == 12
        assert len(found.marked_up) == (12 if input_format == "auto" else 0)


def test_a_dataset_in_a_folder_of_texts_was_read_as_texts(folder: str) -> None:
    names = ["a.txt", "made.zarr/zarr.json", "made.zarr/train/zarr.json", "made.zarr/quarantine.jsonl"]
    write(f"{folder}/texts", *names)
    for argument in ("texts", "texts/*", "texts/**", "**"):
        with pytest.raises(BadArgument, match=rf"{folder}.*texts/made\.zarr"):
            find_sources([f"{folder}/{argument}"])
    for name in ("texts/a.txt", "texts/made.zarr/quarantine.jsonl"):
        assert paths(folder, name) == [name]


@pytest.fixture
def saved(folder: str) -> str:
    """A dataset of two splits, each of two files, as save_to_disk writes it."""
    state = {"_data_files": [{"filename": "data-1.arrow"}, {"filename": "data-0.arrow"}]}
    for split in ("train", "test"):
        write(f"{folder}/both/{split}", "data-0.arrow", "data-1.arrow", "cache-1.arrow", "dataset_info.json")
        open_store(folder).put(f"both/{split}/state.json", json.dumps(state).encode())
    open_store(folder).put("both/dataset_dict.json", b'{"splits": ["train", "test"]}')
    return folder


def test_the_files_of_a_saved_dataset_in_the_order_of_its_list(saved: str) -> None:
    expected = [f"both/{split}/data-{number}.arrow" for split in ("train", "test") for number in (1, 0)]
    assert paths(saved, "both") == expected
    assert paths(saved, "both/test/") == expected[2:]
    write(f"{saved}/lines", "state.json")  # a name that any folder may have
    assert paths(saved, "lines/") == ["lines/state.json"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("both/dataset_dict.json", b"[]", ""),
        ("both/dataset_dict.json", b'{"splits": ["gone"]}', "gone"),
        ("both/test/state.json", b'{"_data_files": [{"filename": "gone.arrow"}]}', "gone.arrow"),
        ("both/test/state.json", b'{"_indices_data_files": [{}], "_data_files": []}', "flatten_indices"),
    ],
)
def test_a_damaged_list_is_refused(saved: str, name: str, content: bytes, says: str) -> None:
    open_store(saved).put(name, content)
    with pytest.raises(BadArgument, match=f"{name}: .*{says}"):
        find_sources([f"{saved}/both"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(".", "corpus/b.txt", "corpus/Z.txt", "corpus/deep/c", "single.txt")
    return tmp_path


def test_names_of_every_kind(here: Path) -> None:
    names = [b"\xff\xfe", b"new\nline", b"-x", "עברית".encode(), b"n" * 255]
    (here / "odd").mkdir()
    for name in names:
        (here / "odd" / os.fsdecode(name)).write_bytes(b"x")
    found = [os.fsencode(source.path) for source in find_sources(["odd"])]
    assert found == [b"odd/" + name for name in sorted(names)]


def test_links_pipes_and_missing_files(here: Path) -> None:
    (here / "elsewhere").mkdir()
    (here / "elsewhere/d.txt").write_text("d")
    (here / "corpus/link").symlink_to(here / "elsewhere")
    assert "corpus/link/d.txt" in [source.path for source in find_sources(["corpus"])]
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    (here / "dangling").symlink_to("nowhere")
    (here / "loop").symlink_to("loop")
    (here / "corpus/up").symlink_to(here / "corpus")
    inputs = "missing *.none fifo socket /dev/zero dangling loop corpus -".split()
    with pytest.raises(BadArgument) as caught:
        find_sources(inputs)
    expected = "- missing *.none fifo socket /dev/zero dangling loop corpus/up".split()
    assert re.findall(r"(?:^|\. )(\S+): ", str(caught.value)) == expected


def test_the_same_file_under_several_names(here: Path) -> None:
    (here / "soft").symlink_to("single.txt")
    for name in ("one", "two", "three", "four"):
        os.link("single.txt", name)
    for other in ("one", "soft", "./single.txt"):
        with pytest.raises(BadArgument, match=r"single\.txt"):
            find_sources(["single.txt", other])
    # However often the inputs name a file, it is validation only if that names it.
    found = find_sources(["one", "two", "corpus"], ["three"])
    assert [(s.path, s.split) for s in found if "corpus" not in s.path] == [("three", "validation")]
    with pytest.raises(BadArgument) as caught:
        find_sources(["one", "two", "three"])
    repeated = re.findall(r"(?:^|\. )(\S+): .*? (one|two)\b", str(caught.value))
    assert repeated == [("two", "one"), ("three", "two")]
    with pytest.raises(BadArgument, match="four"):
        find_sources(["one", "two"], ["three", "four"])
    Path("corpus/d.jsonl").write_text("{}")  # so texts in the folder are not data
    for inputs, validation in ((["corpus"], ["corpus/b.txt"]), (["corpus", "corpus/b.txt"], [])):
        found = find_sources(inputs, validation)
        assert [source.path for source in found] == ["corpus/d.jsonl", "corpus/b.txt"]
