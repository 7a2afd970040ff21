"""An output is refused where it would be among what is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from readings import find_sources

from convert.errors import UsageError
from convert.workdir.overlaps import overlaps
from tokenmill.inputs.sources import refuse


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("corpus/b.txt", "corpus/a.txt", "corpus/deep/er/c", "single.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        (["corpus"], "corpus/out.zarr"),
        (["corpus"], "corpus/deep/../new/out"),
        (["link"], "corpus/out"),
        (["corpus"], "corpus"),
        (["single.txt"], "./single.txt"),
        (["corpus/deep/er/c"], "corpus/deep"),
        (["corpus/deep/er/c"], "corpus/deep/er"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_output_among_the_inputs(inputs: list[str], output: str, here: Path) -> None:
    (here / "link").symlink_to("corpus")
    with pytest.raises(UsageError) as caught:
        refuse([*overlaps(inputs, find_sources(inputs), output)])
    assert str(caught.value).startswith(f"{output}: ")
    assert inputs[0].removesuffix("/c") in str(caught.value)


def test_an_output_beside_the_inputs_is_fine(here: Path) -> None:
    for inputs, output in ((["corpus/a.txt", "single.txt"], "corpus/out.zarr"), (["corpus"], "corpus.zarr")):
        assert not [*overlaps(inputs, find_sources(inputs), output)]
