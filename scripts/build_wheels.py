"""Wheels for the Pythons of this machine, and each tried: a fresh environment, installed, a first batch.

    scripts/build_wheels [PYTHON...]      default: python3.11 to python3.14 of PATH and of pyenv

In dist/: a wheel of each Python's own ABI and, where there is a Python 3.12 or newer, one of the stable ABI, which is
tried on every such Python. auditwheel, where it is installed, says from which glibc on they run and names them so
(manylinux); without it they are named for this Linux alone. abi3audit, where it is installed, looks whether the stable
wheel asks Python for what the stable ABI lacks. Exits 0 if every wheel gives a first batch, 1 if not.

A PYTHON of another processor, which qemu runs, has its wheels too: compiled here, by a compiler for that processor. On
Debian, as root (pip takes minutes under qemu):

    apt-get install binfmt-support qemu-user-static g++-aarch64-linux-gnu debootstrap
    debootstrap --arch=arm64 --variant=minbase --include=python3-dev,python3-venv,ca-certificates trixie /srv/arm64
    QEMU_LD_PREFIX=/srv/arm64 scripts/build_wheels /srv/arm64/usr/bin/python3
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

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
    wheels = [(built(python), [python]) for python in pythons]
    for machine in {python.machine for python in pythons}:
        newer = [python for python in pythons if python.machine == machine and python.minor >= STABLE]
        if newer:
            stable = built(newer[0], "--config-settings=wheel.py-api=cp312")
            if (abi3audit := shutil.which("abi3audit")) is not None:
                ended(abi3audit, "--strict", str(stable))
            wheels.append((stable, newer))
    results = [tried(wheel, python) for wheel, trials in wheels for python in trials]
    sys.exit(0 if all(results) else 1)


class Python(NamedTuple):
    """An interpreter, the processor it is made for, and its version, 3.minor."""

    path: str
    machine: str
    minor: int


def pythons_here(named: list[str]) -> list[Python]:
    """One of each processor and version, oldest first."""
    names = named or [f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1)]
    found = [path for path in map(shutil.which, names) if path is not None]
    if not named:
        found += map(str, (Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))
    pythons: dict[tuple[str, int], Python] = {}
    for path in found:
        asked = [
            path,
            "-c",
            "import platform, sys, venv; print(platform.machine(), sys.version_info[1])",
        ]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)  # pyenv's stubs may fail
        if answer.returncode != 0:
            continue
        machine, minor = answer.stdout.split()
        if int(minor) >= OLDEST:
            pythons.setdefault((machine, int(minor)), Python(path, machine, int(minor)))
    return [pythons[key] for key in sorted(pythons)]


def built(python: Python, *settings: str) -> Path:
    """The wheel, in dist/."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        pip = environment(Path(folder) / "venv", python)
        if python.machine != platform.machine():
            settings += cross_compiling(python)
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


def cross_compiling(python: Python) -> tuple[str, ...]:
    """What pip is told so that CMake compiles here for another processor."""
    name = f"{python.machine}-linux-gnu-g++"
    compiler = shutil.which(name)
    if compiler is None:
        sys.exit(f"error: {python.path} is made for {python.machine}, and no {name} is on PATH; install it")
    defined = {
        "SYSTEM_NAME": platform.system(),
        "SYSTEM_PROCESSOR": python.machine,
        "CXX_COMPILER": compiler,
        # Debian's pyconfig.h includes the one of its processor from there.
        "CXX_FLAGS": f"-idirafter {Path(python.path).resolve().parents[1] / 'include'}",
    }
    return tuple(f"--config-settings=cmake.define.CMAKE_{name}={value}" for name, value in defined.items())


def tried(wheel: Path, python: Python) -> bool:
    """Whether the wheel, installed into a fresh environment, gives a first batch; says how long both took."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        pip = environment(venv, python)
        started = time.monotonic()
        ended(*pip, "install", str(wheel))
        installed = time.monotonic() - started
        inside = str(venv / "bin" / "python")
        batch = [inside, str(ROOT / "scripts" / "first_batch.py"), str(ROOT / "data" / "sample.txt")]
        done = subprocess.run(batch, cwd=folder, capture_output=True, text=True, check=False)
        whole = time.monotonic() - started
    what = f"{whole:.1f} s to a first batch, {installed:.1f} of them pip install"
    print(
        f"{wheel.name} on {python.path}: {what if done.returncode == 0 else done.stderr.strip()}", flush=True
    )
    return done.returncode == 0


def environment(path: Path, python: Python) -> list[str]:
    """A fresh one, and the command of pip for it: this Python's pip, run by that one."""
    ended(python.path, "-m", "venv", "--without-pip", str(path))
    return [sys.executable, "-m", "pip", "--python", str(path / "bin" / "python"), "--quiet"]


def ended(*command: str) -> None:
    """Run it; an end other than 0 is told with its output, and ours."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
