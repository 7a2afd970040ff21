"""Temporary shards: a resumed run finds them in --scratch, nothing stays there, and merged ones are deleted."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from runs import Inline, convert, error_of, exit_code, stopping_at, tree

OPTIONS: dict[str, Any] = {"text_chunk_bytes": 200, "chunk_tokens": 64}


@pytest.fixture
def clean(here: Path) -> dict[str, bytes]:
    """The dataset, and two folders for shards."""
    for name in ("one", "two"):
        (here / name).mkdir()
    convert(Inline(), output="clean", **OPTIONS)
    return tree("clean")


def left() -> list[Path]:
    return [*Path("one").iterdir(), *Path("two").iterdir(), *Path().glob("*.partial")]


def stop(scratch: str | None = "one", output: str = "out") -> None:
    with pytest.raises(KeyboardInterrupt):
        convert(stopping_at(12), output=output, scratch=scratch, **OPTIONS)


@pytest.mark.parametrize("scratch", [None, "one", "two"])
def test_a_resumed_run_continues_where_the_shards_are(scratch: str | None, clean: dict[str, bytes]) -> None:
    stop()
    assert len(list(Path("one").glob("out-*.shards/*.train.encoded_tokens"))) > 5
    summary = convert(Inline(), scratch=scratch, **OPTIONS)
    assert summary.reused_shards > 5
    assert tree("out") == clean
    assert left() == []


def test_missing_shards_are_made_again(clean: dict[str, bytes]) -> None:
    stop()
    Path("one").rename("gone")  # as on another machine
    Path("one").mkdir()
    assert error_of(Inline(), scratch="nowhere", **OPTIONS, output="new").exit_code == 4
    convert(Inline(), scratch="two", **OPTIONS)
    assert tree("out") == clean
    assert left() == []


@pytest.mark.promise("restart")
@pytest.mark.usefixtures("clean")
def test_a_restart_removes_the_former_folders() -> None:
    stop()
    (folder,) = Path("one").iterdir()
    folder.rename(f"{folder}.removed")  # as if the next run was killed while it removed them
    Path("out.partial/dataset").rename("out.partial/dataset.removed")
    assert exit_code(Inline(), restart=True, seed=5) == 0
    assert left() == []


class Watched(Executor):
    """Runs each task when it is submitted, and keeps the largest size of all temporary shards."""

    largest = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        sizes = [path.stat().st_size for path in Path("out.partial/shards").rglob("*.*") if path.is_file()]
        self.largest = max(self.largest, sum(sizes))
        return future


@pytest.mark.slow
def test_merged_tokens_stayed_on_the_disk_until_their_starts_were_merged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.merge.MERGE_ITEMS", 64)
    (folder / "in.txt").write_text("<|endoftext|>".join(["to be or not to be " * 50] * 100))
    watched = Watched()
    summary = convert(watched, inputs=["in.txt"], text_chunk_bytes=2000, chunk_tokens=64)
    assert watched.largest < 4 * summary.tokens / 2
