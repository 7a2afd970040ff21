"""Check that the compiled core runs on any x86-64 machine: python tools/baseline_instructions.py BUILD_FOLDER

SIMD variants are selected at run time, so AVX and later instructions are only allowed in object files and functions
with avx in their names. These files must not define weak symbols (inline functions, templates of the standard library):
the linker keeps one copy for all files, and a copy with AVX would crash an old machine. Needs objdump and nm.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# VEX and EVEX instructions (wide registers, or mnemonics with v such as vpxor, except verr and verw) and BMI2. Excludes
# tzcnt: old machines run it as bsf, and compilers use it where both give the same result.
LATER = re.compile(r"%[yz]mm|%k[1-7]\b|^\s*[0-9a-f]+:\s+v(?!err|erw)[a-z]|\b(?:lzcnt|pdep|pext|mulx|bzhi)\b")


def output(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def problems_of(path: Path) -> list[str]:
    if "avx" in path.name:
        return [f"weak symbol {line[19:]}" for line in output("nm", "-C", str(path)) if line[17:18] in "WVu"]
    found, function = dict[str, str](), ""
    for line in output("objdump", "-d", "-C", "--no-show-raw-insn", str(path)):
        if heading := FUNCTION.match(line):
            function = heading[1]
        elif "avx" not in function.lower() and LATER.search(line):
            found.setdefault(function, line.partition(":")[2].strip())
    return [f"{function} contains {code}" for function, code in found.items()]


def main() -> int:
    objects = sorted(Path(sys.argv[1]).rglob("*.o"))
    problems = [f"{path.name}: {problem}" for path in objects for problem in problems_of(path)]
    print(*problems, f"{len(objects)} object files, {len(problems)} problems", sep="\n")
    return 1 if problems or not objects else 0


if __name__ == "__main__":
    sys.exit(main())
