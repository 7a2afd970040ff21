"""tools/fuzz_native: its targets are the files there are, each names a fault of the core that it must find, and the
cheapest ones find theirs and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from native_fuzz.build import TARGETS, Build, NoClangError, core_sources, find_clang, planted_in  # noqa: E402
from native_fuzz.run import run_target  # noqa: E402
from native_fuzz.seeds import KINDS, seeds_of  # noqa: E402

SMALL = {  # what a target needs of the core, if that is little
    "rank_file": "bpe/native/vocabulary/read_rank_file.cpp",
    "matches": "flat_tokens/native/find_matches.cpp",
}


def test_targets_are_the_files() -> None:
    files = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "tools/native").glob("fuzz_*.cpp"))
    listed = subprocess.run(
        [sys.executable, "tools/fuzz_native", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.split() == files
    assert set(KINDS) <= set(files)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_names_the_fault_that_it_must_find(target: str) -> None:
    fault = planted_in(TARGETS[target])
    assert fault.path in core_sources()
    assert fault.source() != fault.path.read_text(encoding="utf-8")
    assert 'extern "C" int LLVMFuzzerTestOneInput(' in TARGETS[target].read_text(encoding="utf-8")
    assert seeds_of(target) == seeds_of(target)
    assert all(seeds_of(target))


@pytest.mark.parametrize("target", SMALL)
def test_a_planted_fault_is_found_and_no_other(target: str, tmp_path: Path) -> None:
    try:
        clang = find_clang()
    except NoClangError as error:
        pytest.skip(str(error))
    build = Build(tmp_path, clang, 2)
    sources = [ROOT / SMALL[target]]
    good = run_target(
        target, build.programs([target], sources)[target], tmp_path / "good", tmp_path / "found", 1, 2000, 20
    )
    assert (good.finding, good.what) == (None, "")
    assert good.executions >= 2000
    bad = run_target(
        target, build.planted(target, sources), tmp_path / "bad", tmp_path / "found", 1, None, 60
    )
    assert bad.finding is not None
    assert bad.finding.parent == tmp_path / "found"
    assert bad.what.startswith(("broken rule: ", "SUMMARY: ")), bad.what
