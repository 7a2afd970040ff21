"""--exclude leaves files out, also of an unfinished run that has none of their documents."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from input_kinds import write_kind
from naive_conversion import make_documents, tree
from readings import find_sources

from bpe.__main__ import main as bpe_main
from convert.__main__ import main
from tokenmill.inputs.sources import search_sources
from tokenmill.stores import open_store

WORDS = ["in/**", "--tokenizer", "tok.json", "--quiet", "--workers", "1", "--validation-fraction", "0.2"]


@pytest.fixture
def folder(here: Path) -> Path:
    folder = here / "in"
    for number in range(8):
        sub = folder / f"part-{number % 2}"
        sub.mkdir(parents=True, exist_ok=True)
        write_kind(
            sub / f"{number}",
            make_documents(30, seed=number),
            ["txt.gz", "txt.none", "jsonl.none"][number % 3],
        )
    return folder


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def test_globs_match_the_path_or_its_end(folder: Path) -> None:
    def found(*exclude: str) -> int:
        return len(search_sources(["in"], input_format="text", exclude=exclude)[0])

    assert found() == 8
    assert found("*.jsonl") == 6
    assert found("0.txt.gz") == found("part-0/0.txt.gz") == found("in/part-0/0.*") == 7
    assert found("part-1") == found("part-1/*") == 4
    assert found("0", "art-1", "in/part") == 8
    assert found("*") == 0
    assert [source.path for source in find_sources(["in/part-1"], input_format="text")] == [
        source.path for source in search_sources(["in"], input_format="text", exclude=["part-0"])[0]
    ]


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_folder_that_a_glob_passes_through_was_not_excluded(folder: Path, is_remote: bool) -> None:
    if is_remote:
        pytest.importorskip("obstore", reason="obstore is not installed")
    place = f"memory://{uuid4().hex}/in" if is_remote else "in"
    for name in ("a.txt", "drafts/b.txt", "drafts/more/c.txt", "d/drafts/e.txt", "d/f.txt"):
        open_store(place).put(name, b"text")
    for argument in (f"{place}/**", f"{place}/**/?.txt", *([place] if is_remote else [])):
        found = search_sources([argument], exclude=["drafts", "part-*"]).sources
        assert [source.path for source in found] == [f"{place}/a.txt", f"{place}/d/f.txt"]
    named = search_sources([f"{place}/drafts/*"], exclude=["drafts"]).sources
    assert len(named) == 2


def test_what_no_command_can_read_is_left_out_everywhere(folder: Path, here: Path) -> None:
    (folder / "archive.zip").write_bytes(b"PK")
    (folder / "dangling.txt").symlink_to("nowhere")
    assert main([*WORDS, "--output", "out"]) == 2
    exclude = ["--exclude", "*.zip", "--exclude", "dangling*"]
    assert main([*WORDS, "--output", "out", *exclude]) == 0
    assert bpe_main(["count", "in/**", "--output", "in.counts", "--quiet"]) == 2
    assert bpe_main(["count", "in/**", "--output", "in.counts", "--quiet", *exclude]) == 0
    assert bpe_main(["train", "in/**", "--vocab-size", "270", "--output", "t.json", "--quiet", *exclude]) == 0


@pytest.mark.parametrize("chunk_bytes", ["300", "1000000"])
@pytest.mark.parametrize("how", ["--exclude", "delete"])
def test_an_unfinished_run_accepts_that_a_file_without_documents_in_it_goes(
    how: str, chunk_bytes: str, folder: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = folder / "part-0/6.txt.gz"
    damage(bad)
    words = [*WORDS, "--text-chunk-bytes", chunk_bytes]
    assert main([*words, "--output", "out"]) == 3
    error = capsys.readouterr().err
    assert "--on-error skip" in error
    has_work = (here / "out.partial").exists()
    assert has_work == ("--exclude" in error) == (chunk_bytes == "300")
    more = ["--exclude", "6.txt.gz"] if how == "--exclude" else []
    if how == "delete":
        bad.unlink()
    assert main([*words, "--output", "out", *more]) == 0
    assert main([*words, "--output", "fresh", "--exclude", "6.txt.gz"]) == 0
    assert tree(here / "out") == tree(here / "fresh")


def test_a_file_that_was_left_out_cannot_come_back(
    folder: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder / "part-0/6.txt.gz")
    damage(folder / "part-1/3.txt.gz")
    words = [*WORDS, "--text-chunk-bytes", "300", "--output", "out"]
    assert main(words) == 3
    assert main([*words, "--exclude", "6.txt.gz"]) == 3  # the other one
    assert main(words) == 6
    assert "left out" in capsys.readouterr().err
    both = ["--exclude", "6.txt.gz", "--exclude", "3.txt.gz"]
    assert main([*words, *both]) == 0
    assert main([*words[:-1], "fresh", *both]) == 0
    assert tree(here / "out") == tree(here / "fresh")


def test_a_file_with_documents_in_the_unfinished_run_is_not_let_go(
    folder: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder / "part-0/6.txt.gz")
    words = [*WORDS, "--text-chunk-bytes", "300", "--output", "out"]
    assert main(words) == 3
    assert main([*words, "--exclude", "0.txt.gz"]) == 6
    error = capsys.readouterr().err
    assert "error: in/part-0/0.txt.gz: " in error
    assert "--restart" in error
    assert main([*words, "--exclude", "0.txt.gz", "--exclude", "6.txt.gz", "--restart"]) == 0
