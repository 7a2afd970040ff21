"""Which files are read, in which order, and what is refused: all of it at once."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from uuid import uuid4

import pytest

from tokenmill.errors import BadArgument
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.sources import find_sources, require_unchanged, search_sources
from tokenmill.stores import open_store


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in "corpus/b.txt corpus/a.txt corpus/Z.txt corpus/deep/er/c corpus/.hidden single.txt".split():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def paths(*inputs: str, validation: tuple[str, ...] = ()) -> list[str]:
    return [source.path for source in find_sources(inputs, validation)]


def test_arguments_keep_their_order_and_folders_and_globs_are_sorted(here: Path) -> None:
    in_folder = ["corpus/Z.txt", "corpus/a.txt", "corpus/b.txt", "corpus/deep/er/c"]
    assert paths("single.txt", "corpus") == ["single.txt", *in_folder]
    assert paths("corpus", "./single.txt") == [*in_folder, "./single.txt"]
    assert paths("corpus/*.txt") == in_folder[:3]
    assert paths("**/*.txt") == [*in_folder[:3], "single.txt"]


def test_sizes_and_splits(here: Path) -> None:
    sources = find_sources(["corpus"], ["single.txt", "corpus/a.txt"])
    assert [(s.path, s.split) for s in sources] == [
        ("corpus/Z.txt", None),
        ("corpus/b.txt", None),
        ("corpus/deep/er/c", None),
        ("single.txt", "validation"),
        ("corpus/a.txt", "validation"),
    ]
    assert all(source.size_bytes == len(source.path) for source in sources)


def test_names_of_every_kind(here: Path) -> None:
    names = [b"\xff\xfe", b"new\nline", b"-x", "עברית".encode(), b"n" * 255]
    folder = here / "odd"
    folder.mkdir()
    for name in names:
        (folder / os.fsdecode(name)).write_bytes(b"x")
    assert [os.fsencode(path) for path in paths("odd")] == [b"odd/" + name for name in sorted(names)]


def test_links_are_followed(here: Path) -> None:
    (here / "elsewhere").mkdir()
    (here / "elsewhere/d.txt").write_text("d")
    (here / "corpus/link").symlink_to(here / "elsewhere")
    assert "corpus/link/d.txt" in paths("corpus")


def test_all_problems_are_reported_at_once(here: Path) -> None:
    os.mkfifo(here / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    (here / "dangling").symlink_to("nowhere")
    (here / "loop").symlink_to("loop")
    (here / "corpus/up").symlink_to(here / "corpus")
    (here / "packed.zip").touch()
    inputs = "missing *.none fifo socket /dev/zero dangling loop corpus packed.zip -".split()
    with pytest.raises(BadArgument) as caught:
        find_sources([*inputs, "single.txt", "single.txt"])
    expected = "- missing *.none fifo socket /dev/zero dangling loop corpus/up packed.zip single.txt".split()
    assert re.findall(r"(?:^|\. )(\S+): ", str(caught.value)) == expected


ABOUT = (
    "README.md LICENSE dataset_infos.json config.json x.metadata.json page.html paper.pdf cover.jpg old.zip"
)


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize(
    ("names", "data", "input_format"),
    [
        (f"{ABOUT} .gitattributes data/a.parquet data/b.parquet", "data/a.parquet data/b.parquet", "auto"),
        (f"{ABOUT} notes.txt a.jsonl b.json.gz c/d.csv", "a.jsonl b.json.gz c/d.csv", "auto"),
        (f"{ABOUT} a.txt b.txt.gz notes.md", "a.txt b.txt.gz notes.md", "auto"),
        ("README.md LICENSE docs/README.md docs/a.md", "docs/README.md docs/a.md", "auto"),
        ("README.md LICENSE", "LICENSE README.md", "auto"),
        ("README.md more.md", "more.md", "auto"),
        ("train/a.jsonl train/README.md validation/b.jsonl", "train/a.jsonl validation/b.jsonl", "auto"),
        ("config.json data.json", "data.json", "auto"),
        ("README.md a.jsonl b.csv c.log", "a.jsonl", "jsonl"),
        ("README.md c.log d/e.log", "c.log d/e.log", "jsonl"),
        ("README.md a.py b.json c.html d.png e.zip f.parquet", "README.md a.py b.json c.html d.png", "text"),
    ],
)
def test_files_about_the_data_were_read_as_data(
    here: Path, names: str, data: str, input_format: str, is_remote: bool
) -> None:
    folder = "cloned"
    if is_remote:
        pytest.importorskip("obstore", reason="obstore is not installed")
        folder = f"memory://{uuid4().hex}/cloned"
    store = open_store(folder)
    for name in names.split():
        store.put(name, name.encode())
    found = search_sources([folder], input_format=input_format)
    assert [source.path.removeprefix(f"{folder}/") for source in found.sources] == data.split()
    assert found.problems == []
    others = [name for name in names.split() if name not in data.split() and not name.startswith(".")]
    assert bool(others) == bool(found.note)
    assert "\n" not in found.note
    assert sum(f"{folder}/{name}" in found.note for name in others) == min(len(others), 5)
    for name in others:  # by its name or by a glob, each is read that can be
        named = search_sources([folder, f"{folder}/{name[:-1]}*"], input_format=input_format)
        if not name.endswith((".pdf", ".jpg", ".zip", "f.parquet")):
            assert f"{folder}/{name}" in [source.path for source in named.sources]


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_folder_without_data_is_named(here: Path, is_remote: bool) -> None:
    folder = f"memory://{uuid4().hex}/pages" if is_remote else "pages"
    if is_remote:
        pytest.importorskip("obstore", reason="obstore is not installed")
    for number in range(12):
        open_store(folder).put(f"{number:02}.html", b"<p>")
    with pytest.raises(BadArgument, match=f"^.*{folder}.*{folder}.*/00.html"):
        find_sources([folder])
    for argument, input_format in ((f"{folder}/*", "auto"), (folder, "text")):
        found = search_sources([argument], input_format=input_format)
        assert len(found.sources) == 12
        assert len(found.marked_up) == (12 if input_format == "auto" else 0)
    open_store(folder).put("a.pdf", b"%PDF-1.4")
    with pytest.raises(BadArgument, match=rf"^.*{folder}.*/a\.pdf"):
        find_sources([f"{folder}/a.pdf"])


def test_a_file_that_a_folder_leaves_out_may_be_held_out(here: Path) -> None:
    Path("corpus/d.jsonl").write_text("{}")
    assert paths("corpus", validation=("corpus/a.txt",)) == ["corpus/d.jsonl", "corpus/a.txt"]
    assert paths("corpus", "corpus/a.txt") == ["corpus/d.jsonl", "corpus/a.txt"]
    with pytest.raises(BadArgument, match=r"corpus/a\.txt.*corpus/a\.txt"):
        find_sources(["corpus", "corpus/a.txt", "corpus/a.txt"])


@pytest.mark.parametrize("metadata", [".zgroup", "zarr.json"])
def test_a_dataset_in_a_folder_of_texts_was_read_as_texts(here: Path, metadata: str) -> None:
    for place in ("texts/made.zarr", "texts/made.zarr/train"):
        (here / place).mkdir(parents=True)
        (here / place / metadata).write_text("{}")
    (here / "texts/a.txt").write_text("the mill")
    (here / "texts/made.zarr/quarantine.jsonl").write_text("{}")
    for argument in ("texts", "texts/*", "texts/**", "**", "**/*.jsonl", "texts/**/quarantine*"):
        with pytest.raises(BadArgument, match=r"texts/made\.zarr"):
            find_sources([argument])
    for named in ("texts/a.txt", "texts/made.zarr/quarantine.jsonl"):
        assert [source.path for source in find_sources([named])] == [named]


def test_a_dataset_among_objects_was_read_as_texts() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    store = open_store("memory://datasets-among/texts")
    for key in ("a.txt", "made.zarr/manifest.json", "made.zarr/train/zarr.json", "made.zarr/zarr.json"):
        store.put(key, b"{}")
    url = "memory://datasets-among/texts"
    with pytest.raises(BadArgument, match=rf"^.*{url}.*/made\.zarr"):
        find_sources([url])
    assert len(find_sources([f"{url}/*.txt"])) == 1


def test_the_same_file_under_two_names(here: Path) -> None:
    os.link("single.txt", "hard")
    (here / "soft").symlink_to("single.txt")
    for other in ("hard", "soft", "./single.txt"):
        with pytest.raises(BadArgument, match=r"single\.txt"):
            find_sources(["single.txt", other])


def test_changes_are_noticed(here: Path) -> None:
    (source,) = find_sources(["single.txt"])
    require_unchanged(source, Path("single.txt").stat())
    os.utime("single.txt", ns=(1, 1))
    with pytest.raises(BadInput, match=r"single\.txt"):
        require_unchanged(source, Path("single.txt").stat())
    (here / "single.txt").write_text("longer than before")
    with pytest.raises(BadInput):
        require_unchanged(source, Path("single.txt").stat())


def test_times_that_64_bits_do_not_hold(here: Path) -> None:
    for mtime_ns in (-(10**18), 15 * 10**18):  # 1938, 2445
        os.utime("single.txt", ns=(0, mtime_ns))
        (source,) = find_sources(["single.txt"])
        require_unchanged(source, Path("single.txt").stat())


def test_copies_among_inputs_and_validation(here: Path) -> None:
    for name in ("one", "two", "three", "four"):
        os.link("single.txt", name)
    # However often the inputs name a file, it is validation only if that names it.
    found = find_sources(["one", "two", "corpus"], ["three"])
    assert [(s.path, s.split) for s in found if "corpus" not in s.path] == [("three", "validation")]
    with pytest.raises(BadArgument) as caught:
        find_sources(["one", "two", "three"])
    assert re.findall(r"(?:^|\. )(\S+): .*? (one|two)\b", str(caught.value)) == [
        ("two", "one"),
        ("three", "two"),
    ]
    with pytest.raises(BadArgument, match="four"):
        find_sources(["one", "two"], ["three", "four"])
