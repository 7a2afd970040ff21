"""A user's mistake is one line with its exit code; a bug has exit code 1, its traceback and a request to report it."""

from __future__ import annotations

import errno
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from convert.errors import BrokenInvariant, DataLost
from tokenmill.cli.failures import code_of, ended_by, exit_code_of
from tokenmill.errors import TokenmillError

PACKAGES = (
    "tokenmill",
    "bpe",
    "convert",
    "tokenmill.inputs",
    "tokenmill.engines",
    "flat_tokens",
    "tokenmill.stores",
)
FOREIGN = {
    OSError("x"): 4,
    MemoryError(): 5,
    KeyboardInterrupt(): 130,
    ModuleNotFoundError(name="x"): 2,
    KeyError("x"): 1,
}


def subclasses(of: type[BaseException]) -> set[type[BaseException]]:
    return {of}.union(*(subclasses(child) for child in of.__subclasses__()))


def test_a_bug_was_one_line_that_asked_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_by(BrokenInvariant("3 documents are not 2 written"), debug=False) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(("Traceback", "convert.errors.BrokenInvariant"))
    assert re.search("3 documents are not 2 written.*report it", shown.splitlines()[-1])


@pytest.mark.promise("exit-codes")
def test_every_error_has_an_exit_code_and_a_code_that_the_docs_list() -> None:
    modules = {f"{package}.errors" for package in PACKAGES}
    for name in modules:
        import_module(name)
    codes: dict[str, int] = {}
    for kind in subclasses(TokenmillError):
        if "code" not in vars(kind):  # internal classes have the code of the public class they derive from
            assert kind.__module__ not in modules, kind
            continue
        code = kind.__dict__["code"]
        assert code not in codes, kind
        assert kind.exit_code in range(2, 7) or kind in (TokenmillError, DataLost), kind
        codes[code] = kind.exit_code
    page = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(E-[A-Z]+-\d{3})` \|.*\| (\d+) \|$", page, re.MULTILINE)
    foreign = {code_of(error): exit_code_of(error) or 1 for error in FOREIGN}
    assert {code: int(exit_code) for code, exit_code in rows} == codes | foreign


@pytest.mark.promise("exit-codes")
@pytest.mark.parametrize("error", FOREIGN, ids=repr)
def test_errors_of_python_and_the_system(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_by(error, debug=True) == FOREIGN[error]
    assert f"tokenmill: error [{code_of(error)}]: " in capsys.readouterr().err


def test_a_full_disk_was_shown_with_the_free_space_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {str(tmp_path): 17, ".": 9999}
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free[path]))
    assert ended_by(OSError(errno.ENOSPC, "full", tmp_path / "e"), debug=False) == 4
    assert ended_by(OSError(errno.ENOSPC, "full"), debug=False) == 4
    named, unnamed = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/e: " in named
    assert "17 bytes are free" in named
    assert "bytes" not in unnamed
