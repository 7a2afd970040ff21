"""Wheels for the Pythons of this machine, and each tried: a fresh environment, installed, a first batch.

    scripts/build_wheels [PYTHON...]      default: python3.11 to python3.14 of PATH and of pyenv

In dist/: a wheel of each Python's own ABI and, where there is a Python 3.12 or newer, one of the stable ABI, which is
tried on every such Python. auditwheel, where it is installed, says from which glibc on they run and names them so
(manylinux); without it they are named for this Linux alone. abi3audit, where it is installed, looks whether the stable
wheel asks Python for what the stable ABI lacks. Exits 0 if every wheel gives a first batch, 1 if not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
OLDEST, NEWEST, STABLE = 11, 14, 12  # of Python 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    pythons = pythons_here(parser.parse_args().pythons)
    if not pythons:
        sys.exit("error: no Python 3.11 or newer found; name one: scripts/build_wheels /path/to/python")
    wheels = [(built(python), [minor]) for minor, python in pythons.items()]
    newer = [minor for minor in pythons if minor >= STABLE]
    if newer:
        stable = built(pythons[newer[0]], "--config-settings=wheel.py-api=cp312")
        if (abi3audit := shutil.which("abi3audit")) is not None:
            ended(abi3audit, "--strict", str(stable))
        wheels.append((stable, newer))
    failed = 0
    for wheel, minors in wheels:
        for minor in minors:
            failed += not tried(wheel, pythons[minor])
    sys.exit(1 if failed else 0)


def pythons_here(named: list[str]) -> dict[int, str]:
    """Minor version -> interpreter, oldest first."""
    names = named or [f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1)]
    found = [path for path in map(shutil.which, names) if path is not None]
    if not named:
        found += map(str, (Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))
    pythons: dict[int, str] = {}
    for path in found:
        asked = [path, "-c", "import sys, venv; print(sys.version_info[1])"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)  # pyenv's stubs may fail
        if answer.returncode == 0 and int(answer.stdout) >= OLDEST:
            pythons.setdefault(int(answer.stdout), path)
    return dict(sorted(pythons.items()))


def built(python: str, *settings: str) -> Path:
    """The wheel, in dist/."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment(Path(folder) / "venv", python)
        pip = [str(Path(folder) / "venv" / "bin" / "python"), "-m", "pip", "--quiet"]
        ended(*pip, "wheel", "--no-deps", "--wheel-dir", folder, *settings, str(ROOT))
        (wheel,) = Path(folder).glob("*.whl")
        DIST.mkdir(exist_ok=True)
        path = DIST / wheel.name
        auditwheel = shutil.which("auditwheel")
        if auditwheel is not None and sys.platform == "linux":
            repaired = Path(folder) / "repaired"
            ended(auditwheel, "repair", "--wheel-dir", str(repaired), str(wheel))
            (wheel,) = repaired.glob("*.whl")
            path = DIST / wheel.name
        shutil.move(wheel, path)
    print(
        f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, built in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return path


def tried(wheel: Path, python: str) -> bool:
    """Whether the wheel, installed into a fresh environment, gives a first batch; says how long both took."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        environment(venv, python)
        started = time.monotonic()
        inside = str(venv / "bin" / "python")
        ended(inside, "-m", "pip", "--quiet", "install", str(wheel))
        installed = time.monotonic() - started
        batch = [inside, str(ROOT / "scripts" / "first_batch.py"), str(ROOT / "data" / "sample.txt")]
        done = subprocess.run(batch, cwd=folder, capture_output=True, text=True, check=False)
        whole = time.monotonic() - started
    what = f"{whole:.1f} s to a first batch, {installed:.1f} of them pip install"
    print(f"{wheel.name} on {python}: {what if done.returncode == 0 else done.stderr.strip()}", flush=True)
    return done.returncode == 0


def environment(path: Path, python: str) -> None:
    ended(python, "-m", "venv", str(path))


def ended(*command: str) -> None:
    """Run it; an end other than 0 is told with its output, and ours."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
