"""Will the core run on any x86-64 machine, and does it compile for arm64?

    python scripts/check_portable.py          after scripts/test, which leaves the object files in build/

SIMD is chosen at run time, so instructions of AVX and later may stand only in files named for them
(`*_avx2.cpp`, `*_avx512.cpp`) or in functions whose name says so. And such a file must not define weak symbols
(inline functions, templates of the standard library): the linker keeps one copy for all files, perhaps the one with
AVX, and an old machine would run it. For arm64 the sources are compiled, not run; ARM64_CXX names the compiler,
e.g. `aarch64-linux-gnu-g++` or `python -m ziglang c++ -target aarch64-linux-gnu`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# VEX and EVEX instructions: wide registers, or a mnemonic with v (vpxor, vmovdqu; not verr, verw); and BMI2. Not tzcnt:
# it is bsf with a prefix that old machines ignore, and compilers use it where both agree.
BEYOND_BASELINE = re.compile(
    r"%[yz]mm|%k[1-7]\b|^\s*[0-9a-f]+:\s+v(?!err|erw)[a-z]|\b(?:lzcnt|pdep|pext|mulx|bzhi)\b"
)
WEAK = set("WVu")


def main() -> None:
    problems = check_objects() + check_arm64()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


def check_objects() -> list[str]:
    objects = sorted((ROOT / "build").glob("*/CMakeFiles/*core.dir/*/native/**/*.o"))
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
    """The folder of a build that an object file lies in."""
    build = ROOT / "build"
    return build / path.relative_to(build).parts[0]


def wide_code(path: Path) -> list[tuple[str, str]]:
    """The first instruction beyond the baseline of each function whose name does not announce it."""
    found: dict[str, str] = {}
    function = ""
    for line in output("objdump", "-d", "-C", "--no-show-raw-insn", str(path)).splitlines():
        heading = FUNCTION.match(line)
        if heading:
            function = heading[1]
        elif "avx" not in function.lower() and function not in found and BEYOND_BASELINE.search(line):
            found[function] = line.partition(":")[2].strip()
    return list(found.items())


def check_arm64() -> list[str]:
    compiler = os.environ.get("ARM64_CXX") or shutil.which("aarch64-linux-gnu-g++")
    if compiler is None:
        print("no compiler for arm64 (ARM64_CXX, aarch64-linux-gnu-g++): not checked")
        return []
    problems = []
    # The bindings need Python's headers for arm64 and hold no algorithm; AVX variants are built for x86-64 alone.
    sources = [
        s
        for s in sorted(ROOT.glob("*/native/**/*.cpp"))
        if not s.name.startswith("bind")
        and "avx" not in s.name
        and "scripts" not in s.relative_to(ROOT).parts
    ]
    with tempfile.TemporaryDirectory() as folder:
        flags = [
            "-std=c++20",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wno-missing-field-initializers",
        ]  # as CMakeLists.txt has them
        for source in sources:
            target = str(Path(folder) / f"{source.stem}.o")
            command = [
                *shlex.split(compiler),
                *flags,
                f"-I{ROOT / 'bpe' / 'native'}",
                "-c",
                str(source),
                "-o",
                target,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0 or "warning:" in done.stderr.replace("zig: warning:", ""):
                print(done.stderr, end="", file=sys.stderr)
                problems.append(f"{source.name} does not compile for arm64 without errors and warnings")
    print(f"{len(sources)} sources for arm64: {'see below' if problems else 'compiled without a warning'}")
    return problems


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
