"""Check that the core runs on any x86-64 machine and compiles for other machines and systems.

    python tools/check_portable.py          after scripts/test, which leaves the object files in build/

SIMD variants are selected at run time, so AVX and later instructions are only allowed in files named for them
(`*_avx2.cpp`, `*_avx512.cpp`) and in functions with such a name. These files must not define weak symbols (inline
functions, templates of the standard library), because the linker keeps one copy for all files. If that copy uses AVX,
an old machine crashes. For other machines and systems (arm64, macOS, Windows), zig compiles the sources without running
them, if it is installed (`pip install ziglang`). ARM64_CXX selects another compiler for arm64. The first source of a
target takes a minute, because zig builds its standard library.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# VEX and EVEX instructions (wide registers, or a mnemonic with v such as vpxor and vmovdqu, but not verr and verw) and
# BMI2. Excludes tzcnt: old machines run it as bsf, and compilers use it where both give the same result.
BEYOND_BASELINE = re.compile(
    r"%[yz]mm|%k[1-7]\b|^\s*[0-9a-f]+:\s+v(?!err|erw)[a-z]|\b(?:lzcnt|pdep|pext|mulx|bzhi)\b"
)
WEAK = set("WVu")
ZIG_TARGETS = ("aarch64-linux-gnu", "aarch64-macos", "x86_64-macos", "x86_64-windows-gnu")
NEEDS_PYTHON = re.compile(r'#include ["<](bindings/|nanobind/|Python\.h)')
_AVX2 = ["-mavx2", "-mbmi", "-mbmi2", "-mpopcnt"]
_AVX512 = [f"-mavx512{part}" for part in ("f", "bw", "vl", "vbmi", "vbmi2")]
VARIANTS = {"_avx2": _AVX2, "_avx512": [*_AVX2, *_AVX512]}


def main() -> None:
    problems = check_objects() + check_targets()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


def check_objects() -> list[str]:
    objects = sorted((ROOT / "build").glob("*/CMakeFiles/*core.dir/**/native/**/*.o"))
    newest = max(map(build_of, objects), key=lambda folder: folder.stat().st_mtime, default=None)
    objects = [path for path in objects if build_of(path) == newest]
    if not objects:
        return ["no object files in build/; run scripts/test first"]
    if not (shutil.which("objdump") and shutil.which("nm")):
        return ["objdump and nm are missing; install binutils"]
    machine = output("objdump", "-f", str(objects[0]))
    if "x86-64" not in machine:
        print("the objects are not for x86-64: nothing to check in them")
        return []
    problems = []
    for path in objects:
        if "avx" in path.name:
            weak = [line for line in output("nm", "-C", str(path)).splitlines() if line[17:18] in WEAK]
            problems += [
                f"{path.name} defines the weak symbol {line[19:]}; keep it out of files with SIMD"
                for line in weak
            ]
        else:
            problems += [f"{path.name}: {function} holds {code}" for function, code in wide_code(path)]
    print(
        f"{len(objects)} object files of {newest}: {'see below' if problems else 'no AVX outside the variants'}"
    )
    return problems


def build_of(path: Path) -> Path:
    """Return the build folder that contains an object file."""
    build = ROOT / "build"
    return build / path.relative_to(build).parts[0]


def wide_code(path: Path) -> list[tuple[str, str]]:
    """Return the first instruction beyond the baseline in each function without a name that allows it."""
    found: dict[str, str] = {}
    function = ""
    for line in output("objdump", "-d", "-C", "--no-show-raw-insn", str(path)).splitlines():
        heading = FUNCTION.match(line)
        if heading:
            function = heading[1]
        elif "avx" not in function.lower() and function not in found and BEYOND_BASELINE.search(line):
            found[function] = line.partition(":")[2].strip()
    return list(found.items())


def check_targets() -> list[str]:
    """Compile the sources for other machines and systems with the available compilers. Return the errors."""
    compilers = {}
    if compiler := os.environ.get("ARM64_CXX") or shutil.which("aarch64-linux-gnu-g++"):
        compilers["arm64"] = compiler
    if find_spec("ziglang") is not None:
        compilers |= {target: f"{sys.executable} -m ziglang c++ -target {target}" for target in ZIG_TARGETS}
    missing = [target for target in ("arm64", *ZIG_TARGETS) if target not in compilers]
    if missing:
        print(f"not checked, for want of a compiler (ARM64_CXX; pip install ziglang): {', '.join(missing)}")
    return [problem for target, compiler in compilers.items() for problem in check_target(target, compiler)]


def check_target(target: str, compiler: str) -> list[str]:
    # The bindings need Python's headers for the target and contain no algorithm.
    sources = [
        source
        for source in sorted(ROOT.glob("**/native/**/*.cpp"))
        if not source.name.startswith("bind")
        and ("avx" not in source.name or target.startswith("x86_64"))
        and "tools" not in source.relative_to(ROOT).parts
        and not NEEDS_PYTHON.search(source.read_text())
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        told = pool.map(lambda source: compiled(source, compiler, Path(folder)), sources)
        problems = [
            f"{source.relative_to(ROOT)} does not compile for {target} without errors and warnings:\n{text}"
            for source, text in zip(sources, told, strict=True)
            if text
        ]
    print(
        f"{len(sources)} sources for {target}: {'see below' if problems else 'compiled without a warning'}",
        flush=True,
    )
    return problems


def compiled(source: Path, compiler: str, folder: Path) -> str:
    """Return the compiler's errors, or ""."""
    flags = [
        "-std=c++20",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wno-missing-field-initializers",
    ]  # as in CMakeLists.txt
    for variant, own in VARIANTS.items():
        flags += own if source.stem.endswith(variant) else []
    words = [*shlex.split(compiler), *flags, f"-I{ROOT / 'bpe' / 'native'}", f"-I{ROOT / 'native'}"]
    words += ["-c", str(source), "-o", str(folder / f"{source.parent.name}-{source.stem}.o")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    failed = done.returncode != 0 or "warning:" in done.stderr.replace("zig: warning:", "")
    return done.stderr if failed else ""


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
