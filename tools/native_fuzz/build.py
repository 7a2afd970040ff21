"""Incremental build of the core and the fuzz targets by clang with libFuzzer and sanitizers.

An object is compiled again if one of its source files is newer. Each clang and each set of options has a separate
folder.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TARGETS: Final = {
    path.stem.removeprefix("fuzz_"): path for path in sorted(ROOT.glob("tools/native/fuzz_*.cpp"))
}
NATIVE_FOLDERS: Final = (
    "native",
    "bpe/native",
    "tokenmill/inputs/native",
    "flat_tokens/native",
    "convert/native",
)
SANITIZERS: Final = "address,undefined"
FLAGS: Final = (
    *("-std=c++20", "-O2", "-gline-tables-only", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"),
    "-fno-sanitize-coverage=trace-cmp",  # halves the time; dictionaries have the constants
    *("-Wall", "-Wextra", "-Wno-missing-field-initializers", "-pthread"),
    *(f"-I{ROOT / folder}" for folder in NATIVE_FOLDERS),
    f"-I{ROOT / 'tools/native'}",
)
# As in CMakeLists.txt.
_AVX2: Final = ("-mavx2", "-mbmi", "-mbmi2", "-mpopcnt")
VARIANT_FLAGS: Final = {
    "variant_avx2": _AVX2,
    "variant_avx512": (*_AVX2, *(f"-mavx512{part}" for part in ("f", "bw", "vl", "vbmi", "vbmi2"))),
}


class NoClangError(Exception):
    """No installed clang can build fuzz targets."""


class BuildError(Exception):
    """The error messages of clang."""


def find_clang() -> str:
    """Return the command of a clang with libFuzzer and sanitizers. NoClangError names the packages to install."""
    named = os.environ.get("CLANGXX", "")
    for name in [named] if named else ["clang++", *(f"clang++-{number}" for number in range(22, 11, -1))]:
        if shutil.which(name) and _has_runtimes(name):
            return name
    raise NoClangError(
        f"{named or 'clang++'} does not build fuzz targets here; install clang with its runtimes (Debian: clang "
        "libclang-rt-dev or libclang-common-14-dev, Fedora: clang compiler-rt), or name it: CLANGXX=clang++-18"
    )


def _has_runtimes(clang: str) -> bool:
    command = [clang, f"-fsanitize=fuzzer,{SANITIZERS}", "-x", "c++", "-", "-o", os.devnull]
    source = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }'
    return subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode == 0


def core_sources() -> list[Path]:
    """Return all sources except the Python bindings and the variants of other machines."""
    found = [
        path
        for folder in NATIVE_FOLDERS
        for path in sorted((ROOT / folder).rglob("*.cpp"))
        if not path.name.startswith("bind") and path.name != "id_lists.cpp"
    ]
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    return [path for path in found if is_x86 or path.stem not in VARIANT_FLAGS]


@dataclass(frozen=True)
class Planted:
    """A small fault that a target must find: a replacement of text in a file of the core."""

    path: Path
    before: str
    after: str

    def source(self) -> str:
        text = self.path.read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.path} has {self.before!r} {text.count(self.before)} times, not once")
        return text.replace(self.before, self.after)


def planted_in(target: Path) -> Planted:
    """Return the fault in the header comment of a target."""
    opening = " ".join(
        re.findall(r"^// ?(.*)$", target.read_text(encoding="utf-8").partition("#include")[0], re.M)
    )
    found = re.search(r"planted: (\S+): `(.+?)` -> `(.*?)`", opening)
    if not found:
        raise ValueError(
            f"{target} does not say which fault it must find: planted: FILE: `before` -> `after`"
        )
    return Planted(ROOT / found[1], found[2], found[3])


class Build:
    """Builds programs in a folder."""

    def __init__(self, folder: Path, clang: str, processes: int) -> None:
        version = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
        settings = hashlib.sha256(repr((version, FLAGS, VARIANT_FLAGS)).encode()).hexdigest()[:12]
        self._folder, self._clang, self._processes = folder / f"build-{settings}", clang, processes
        self._folder.mkdir(parents=True, exist_ok=True)

    def programs(self, targets: Iterable[str], sources: Iterable[Path] | None = None) -> dict[str, Path]:
        """Return the program of each target. sources: sources of the core that they need (default: all)."""
        core = core_sources() if sources is None else list(sources)
        chosen = {name: TARGETS[name] for name in targets}
        with ThreadPoolExecutor(self._processes) as pool:
            objects = dict(
                zip([*core, *chosen.values()], pool.map(self._object, [*core, *chosen.values()]), strict=True)
            )
            of_core = [objects[path] for path in core]
            made = pool.map(lambda item: self._link(item[0], [objects[item[1]], *of_core]), chosen.items())
            return dict(zip(chosen, made, strict=True))

    def planted(self, target: str, sources: Iterable[Path] | None = None) -> Path:
        """Return the program of a target with its planted fault in the core."""
        core = core_sources() if sources is None else list(sources)
        fault = planted_in(TARGETS[target])
        source = self._folder / f"planted-{target}-{fault.path.name}"
        _write_if_changed(source, fault.source())
        if fault.path.suffix == ".hpp":
            raise ValueError(f"{fault.path}: a fault is planted in a source, not in a header")
        with ThreadPoolExecutor(self._processes) as pool:
            paths = [source, TARGETS[target], *(path for path in core if path != fault.path)]
            flags = VARIANT_FLAGS.get(fault.path.stem, ())
            include = f"-I{fault.path.parent}"
            first = pool.submit(self._object, source, (*flags, include))
            return self._link(f"planted-{target}", [first.result(), *pool.map(self._object, paths[1:])])

    def _object(self, source: Path, flags: tuple[str, ...] = ()) -> Path:
        name = str(source.relative_to(ROOT) if source.is_relative_to(ROOT) else source.name).replace("/", ".")
        made = self._folder / f"{name}.o"
        if not _is_current(made):
            options = (
                *FLAGS,
                *VARIANT_FLAGS.get(source.stem, ()),
                *flags,
                f"-fsanitize=fuzzer-no-link,{SANITIZERS}",
            )
            self._run(*options, "-MMD", "-MF", f"{made}.d", "-c", str(source), "-o", str(made))
        return made

    def _link(self, name: str, objects: list[Path]) -> Path:
        program = self._folder / name
        newest = max(path.stat().st_mtime_ns for path in objects)
        if not program.exists() or program.stat().st_mtime_ns < newest:
            self._run(f"-fsanitize=fuzzer,{SANITIZERS}", "-pthread", *map(str, objects), "-o", str(program))
        return program

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            [self._clang, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildError(f"{self._clang} {' '.join(arguments)}\n{done.stderr}")


def _is_current(made: Path) -> bool:
    """Return whether none of its source files is newer."""
    rules = Path(f"{made}.d")
    if not made.exists() or not rules.exists():
        return False
    files = rules.read_text(encoding="utf-8").replace("\\\n", " ").partition(": ")[2].split()
    since = made.stat().st_mtime_ns
    return all(Path(file).exists() and Path(file).stat().st_mtime_ns < since for file in files)


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
