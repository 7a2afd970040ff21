"""A user's mistake is one line with its exit code; a bug has exit code 1, its traceback and a request to report it."""

from __future__ import annotations

import errno
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from convert.errors import BrokenInvariant, DataLost
from flat_tokens.errors import FlatTokensError
from tokenmill.cli.failures import ended_by, exit_code_of
from tokenmill.stores.errors import TokenmillError

MODULES = (
    "bpe.errors",
    "convert.errors",
    "tokenmill.inputs.errors",
    "tokenmill.engines.errors",
    "flat_tokens.errors",
    "tokenmill.stores.errors",
)


def subclasses(of: type[BaseException]) -> set[type[BaseException]]:
    return {of}.union(*(subclasses(child) for child in of.__subclasses__()))


def test_a_bug_was_one_line_that_asked_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_by(BrokenInvariant("3 documents are not 2 written"), debug=False) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(("Traceback", "convert.errors.BrokenInvariant"))
    assert "3 documents are not 2 written" in shown.splitlines()[-1]
    assert "report it" in shown.splitlines()[-1]


def test_every_error_of_a_user_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for name in MODULES:
        import_module(name)
    for kind in subclasses(TokenmillError) | subclasses(FlatTokensError):
        code = getattr(kind, "exit_code", None)
        assert code in range(2, 7) or (code == 1 and kind in (TokenmillError, FlatTokensError, DataLost)), (
            kind
        )
    for error, expected in (
        (OSError("x"), 4),
        (MemoryError(), 5),
        (KeyboardInterrupt(), 130),
        (KeyError("x"), None),
    ):
        assert exit_code_of(error) == expected
    assert ended_by(DataLost("damaged"), debug=False) == 1
    assert capsys.readouterr().err == "tokenmill: error: damaged\n"


def test_a_full_disk_was_shown_with_the_free_space_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {str(tmp_path / "e"): 17, ".": 9999}
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free[str(path)]))
    assert ended_by(OSError(errno.ENOSPC, "full"), debug=False, output=tmp_path / "e") == 4
    assert ended_by(OSError(errno.ENOSPC, "full"), debug=False) == 4
    named, unnamed = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/e" in named
    assert "17 bytes are free" in named
    assert "bytes" not in unnamed
