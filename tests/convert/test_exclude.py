"""--exclude leaves files out of a run."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from runs import rejected, run_here, sample_documents, tree
from strategies import END, compressed

from bpe.__main__ import main as bpe_main
from tokenmill.inputs.sources import search_sources
from tokenmill.stores import open_store

SMALL = {"text_chunk_bytes": 300, "validation_fraction": 0.2, "progress": "none"}


@pytest.fixture
def files(folder: Path) -> Path:
    """Eight files in two folders: in/part-0/0.txt.gz, in/part-1/1.txt and so on."""
    for number in range(8):
        path = folder / f"in/part-{number % 2}/{number}.txt{'' if number % 3 else '.gz'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = END.join(sample_documents(30, seed=number)).encode()
        path.write_bytes(text if number % 3 else compressed(text, "gz"))
    return folder / "in"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("exclude", "count"),
    [
        ([], 8),
        (["*.gz"], 5),
        (["0.txt.gz"], 7),
        (["part-0/0.txt.gz"], 7),
        (["in/part-0/0.*"], 7),
        (["part-1"], 4),
        (["part-1/*"], 4),
        (["0", "art-1", "in/part"], 8),
        (["*"], 0),
    ],
    ids=str,
)
@pytest.mark.usefixtures("files")
def test_globs_match_the_path_or_its_end(exclude: list[str], count: int) -> None:
    assert len(search_sources(["in"], exclude=exclude).sources) == count


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.usefixtures("folder")
def test_a_folder_that_a_glob_passes_through_was_not_excluded(is_remote: bool) -> None:
    if is_remote:
        pytest.importorskip("obstore", reason="obstore is not installed")
    place = f"memory://{uuid4().hex}/in" if is_remote else "in"
    for name in ("a.txt", "drafts/b.txt", "drafts/more/c.txt", "d/drafts/e.txt", "d/f.txt"):
        open_store(place).put(name, b"text")
    for argument in (f"{place}/**", f"{place}/**/?.txt", *([place] if is_remote else [])):
        found = search_sources([argument], exclude=["drafts", "part-*"]).sources
        assert [source.path for source in found] == [f"{place}/a.txt", f"{place}/d/f.txt"]
    assert len(search_sources([f"{place}/drafts/*"], exclude=["drafts"]).sources) == 2


def test_files_that_no_command_can_read_are_left_out(files: Path) -> None:
    (files / "archive.zip").write_bytes(b"PK")
    (files / "dangling.txt").symlink_to("nowhere")
    exclude = ["--exclude", "*.zip", "--exclude", "dangling*"]
    rejected(2, "in/**")
    assert run_here("in/**", *exclude)[0] == 0
    count = ["count", "in/**", "--output", "in.counts", "--quiet"]
    assert bpe_main(count) == 2
    assert bpe_main([*count, *exclude]) == 0


def test_an_unfinished_run_with_a_bad_file_resumes_with_skip_but_not_without_the_file(files: Path) -> None:
    cut(files / "part-0/6.txt.gz")
    error = rejected(3, "in/**", **SMALL)
    assert "--on-error skip" in error
    error = rejected(6, "in/**", exclude="6.txt.gz", **SMALL)
    assert "input file count 8 (now 7)" in error
    assert "--restart" in error
    code, out, _ = run_here("in/**", on_error="skip", **SMALL)
    assert code == 0
    assert "reused" in out
    assert run_here("in/**", on_error="skip", output="fresh", **SMALL)[0] == 0
    assert tree("out") == tree("fresh")
