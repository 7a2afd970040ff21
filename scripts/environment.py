"""Makes the checkout's own environment, or brings it up to date; prints nothing when there is nothing to do.

    python scripts/environment.py runtime | EXTRA

The environment is `.venv` in the checkout (VENV names another folder). Two stamps in it say what it holds:
the hash of pyproject.toml for which the dependencies of each extra were installed, and the hash of the sources
that the installed package was built from. So a core older than its sources can't go unnoticed, and a run that
finds both stamps current costs some milliseconds. The build requirements live in the environment too and the
build folder is kept: after a change the compiler sees only the files that changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = (ROOT / os.environ.get("VENV", ".venv")).absolute()
VENV_PYTHON = VENV / "bin" / "python"
PACKAGES = (
    "bpe",
    "command_line",
    "convert",
    "corpus",
    "engines",
    "flat_tokens",
    "reports",
    "stores",
    "tokenmill",
)
SOURCES = ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", *PACKAGES)

CPP20_PROBE = "#include <bit>\n#include <span>\nstatic_assert(__cplusplus > 201703L);\nint main() {}\n"


def main() -> None:
    extra = sys.argv[1] if len(sys.argv) > 1 else "runtime"  # an extra of pyproject.toml, or what runs need
    started = time.monotonic()
    dependencies_stamp = VENV / f"tokenmill-dependencies-{extra}"
    package_stamp = VENV / "tokenmill-package"
    dependencies_hash, package_hash = hash_files(["pyproject.toml"]), hash_files(SOURCES)
    stale_dependencies = read_stamp(dependencies_stamp) != dependencies_hash
    stale_package = read_stamp(package_stamp) != package_hash
    if not stale_dependencies and not stale_package:
        return

    if stale_dependencies:
        check_compiler()
        make_venv()
        say(f"installing the dependencies into {shown(VENV)}")
        pip(["install", *build_requirements()])
    say(f"building the package into {shown(VENV)}")
    # `.[extra]` also installs the dependencies; without them the build alone is some seconds faster.
    target = "." if extra == "runtime" else f".[{extra}]"
    pip(["install", "--no-build-isolation", *([] if stale_dependencies else ["--no-deps"]), target])
    # Run from the checkout, its own modules are the ones imported; where Python may not write bytecode every command
    # would compile them anew (a conversion's start 0.48 -> 0.29 s of processor time).
    run([str(VENV_PYTHON), "-m", "compileall", "-q", *PACKAGES], "the package's own modules do not compile")
    if stale_dependencies:
        dependencies_stamp.write_text(dependencies_hash)
    package_stamp.write_text(package_hash)
    say(f"the environment is ready after {time.monotonic() - started:.0f} s")


def check_compiler() -> None:
    """Ends with one line unless a C++20 compiler, Python's headers and the venv module are there."""
    compiler = next(
        filter(None, [os.environ.get("CXX"), *map(shutil.which, ("c++", "g++", "clang++"))]), None
    )
    if compiler is None:
        fail("no C++ compiler found (c++, g++, clang++); install one (Debian: apt install g++) or set CXX")
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.cpp"
        probe.write_text(CPP20_PROBE)
        command = [*compiler.split(), "-std=c++20", "-fsyntax-only", str(probe)]
        works = succeeds(*command)
    if not works:
        fail(f"{compiler} does not compile C++20; GCC 11, Clang 14 or newer does: install one, or set CXX")
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        fail(f"{header} is missing; install Python's headers (Debian: apt install python3-dev)")


def make_venv() -> None:
    if not VENV_PYTHON.exists():
        try:
            import ensurepip
            import venv
        except ImportError as error:
            fail(
                f"this Python has no {error.name} module; install it (Debian: apt install python3-venv),"
                " or name another Python: PYTHON=/path/to/python"
            )
        del ensurepip, venv
        say(f"making the environment {shown(VENV)} with Python {sys.version.split()[0]}")
        run([sys.executable, "-m", "venv", str(VENV)], f"can't make the environment {shown(VENV)}")
    if not succeeds(VENV_PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"):
        fail(f"{shown(VENV)} holds no working Python 3.11 or newer; remove the folder and run this again")
    if not succeeds(VENV_PYTHON, "-c", "import pip"):
        run(
            [str(VENV_PYTHON), "-m", "ensurepip"],
            f"{shown(VENV)} has no pip; remove the folder and run this again",
        )


def build_requirements() -> list[str]:
    """What the build needs: pyproject's list, and cmake and ninja where the machine has none of its own."""
    requirements: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    return (
        requirements
        + ([] if tool_version("cmake") >= (3, 20) else ["cmake>=3.20"])
        + ([] if tool_version("ninja") >= (1, 5) else ["ninja"])
    )


def tool_version(name: str) -> tuple[int, int]:
    """(major, minor) of a command of the machine, (0, 0) if there is none that runs."""
    path = shutil.which(name)
    answer = (
        subprocess.run([path, "--version"], capture_output=True, text=True, check=False) if path else None
    )
    found = re.search(r"(\d+)\.(\d+)", answer.stdout) if answer else None
    return (int(found[1]), int(found[2])) if found else (0, 0)


def hash_files(names: tuple[str, ...] | list[str]) -> str:
    """The hash of these files and folders, by path and content; caches of Python's are left out."""
    paths = [path for name in names for path in ([ROOT / name, *(ROOT / name).rglob("*")])]
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def read_stamp(stamp: Path) -> str:
    return stamp.read_text() if stamp.exists() and VENV_PYTHON.exists() else ""


def pip(arguments: list[str]) -> None:
    # The environment's own tools (cmake, ninja) come first, as in an activated environment.
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    run(command, f"`pip {' '.join(arguments)}` failed; its output is above", os.environ | {"PATH": path})


def succeeds(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run(command: list[str], message: str, environment: dict[str, str] | None = None) -> None:
    """Runs the command in the checkout; a failure shows its output, then the message as the last line."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=null,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout, end="", file=sys.stderr)
        fail(message)


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def say(message: str) -> None:
    print(f"-- {message}", file=sys.stderr, flush=True)


def fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(4)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
