"""Create the environments that the benchmarks run in: `python3 benchmarks/environments.py` (scripts/bench setup).

.bench-venv has a build of this checkout and the competitors of the group `bench`. Releases that cannot share an
environment with them have their own: .bench-venv-rc (tokenizers 1.0) and, with --loading, .bench-venv-loading (PyTorch
and the loaders, about 9 GB). A requirement that cannot be installed is skipped, and its reason appears in the results.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MAIN, RC, LOADING = ".bench-venv", ".bench-venv-rc", ".bench-venv-loading"
GROUPS = {MAIN: "bench", RC: "bench-rc", LOADING: "bench-loading"}  # dependency groups of pyproject.toml
HAVE_OURS = (MAIN, LOADING)
RECORD = "benchmark.json"
# Everything that affects a build.
SOURCES = (".", ":!benchmarks", ":!docs", ":!tests", ":!scripts", ":!*.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--loading", action="store_true", help="also the environment of the loading benchmark"
    )
    options = parser.parse_args()
    for name in (MAIN, RC, *([LOADING] if options.loading else [])):
        create(name)


def create(name: str) -> None:
    """Create or update one environment; record its build and the missing requirements."""
    folder = ROOT / name
    if not python(name).exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    missing = {}
    for requirement in requirements(name):
        print(f"{name}: {requirement}", flush=True)
        if reason := install(name, [requirement]):
            missing[requirement] = reason
    if name in HAVE_OURS:
        print(f"{name}: this checkout", flush=True)
        wheel = build_wheel()
        if reason := install(name, [wheel]) or install(name, ["--force-reinstall", "--no-deps", wheel]):
            sys.exit(f"error: the checkout could not be installed: {reason}")
    modified = bool(_git("status", "--short", "--untracked-files=no", "--", *SOURCES))
    record = {"missing": missing, "commit": _git("rev-parse", "--short", "HEAD"), "modified": modified}
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


@functools.cache
def build_wheel() -> str:
    """Build this checkout once and return the path of the wheel."""
    folder = ROOT / MAIN / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    if reason := run_pip(MAIN, ["wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]):
        sys.exit(f"error: the checkout could not be built: {reason}")
    return str(next(folder.glob("*.whl")))


def install(name: str, arguments: list[str]) -> str | None:
    return run_pip(name, ["install", "-q", *arguments])


def run_pip(name: str, arguments: list[str]) -> str | None:
    """Return None, or the last error of pip."""
    command = [str(python(name)), "-m", "pip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return next((line for line in reversed(done.stderr.splitlines()) if "ERROR" in line), "pip failed")


def requirements(name: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned: list[str] = project["dependency-groups"][GROUPS[name]]
    return pinned


def python(name: str) -> Path:
    return ROOT / name / "bin" / "python"


def missing() -> dict[str, str]:
    """Return the requirements that could not be installed, with the reason."""
    return {key: reason for name in GROUPS for key, reason in _record(name).get("missing", {}).items()}


def build() -> str:
    """Return the commit of the installed build: "1a2b3c4", or "1a2b3c4 with changes". Exit if the sources changed."""
    record = _record(MAIN)
    if not record:
        sys.exit("error: there is no .bench-venv; run scripts/bench setup")
    if record["modified"]:
        return f"{record['commit']} with changes"
    if _git("diff", "--name-only", str(record["commit"]), "--", *SOURCES):
        sys.exit("error: the sources changed since .bench-venv was built; run scripts/bench setup")
    return str(record["commit"])


def versions() -> dict[str, str]:
    """Return the versions of tokenmill and the pinned packages. tokenizers 1.0 is "tokenizers (rc)"."""
    found: dict[str, str] = {}
    for name in GROUPS:
        names = [re.split(r"[=<>\[]", line)[0] for line in requirements(name)]
        script = "import importlib.metadata as m, json, sys; print(json.dumps({d.metadata['Name'].lower(): d.version"
        script += " for d in m.distributions()}))"
        if not python(name).exists():
            continue
        done = subprocess.run([str(python(name)), "-c", script], capture_output=True, text=True, check=True)
        installed = json.loads(done.stdout)
        suffix = " (rc)" if name == RC else ""
        found |= {f"{each}{suffix}": installed[each] for each in names if each in installed}
    return found


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _record(name: str) -> dict[str, Any]:
    path = ROOT / name / RECORD
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return content


if __name__ == "__main__":
    main()
