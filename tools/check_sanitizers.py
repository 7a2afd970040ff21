"""Run the core's tests and the fuzz targets with the address, undefined behavior and thread sanitizers.

    python tools/check_sanitizers.py [--only address,undefined|thread] [--tests PATH ...] [--executions 500]

Builds the core into build/sanitize-* (a few minutes) and imports it instead of the installed one, with the sanitizer's
runtime preloaded. Runs the tests of the core, then some inputs of the fuzz targets for readers. A report aborts the
process, so the test or input fails. Python and the libraries are not instrumented, so only races in the core are
detected. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNTIMES = {"address,undefined": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
TESTS = (
    *(
        "bpe/test_encoder_core.py",
        "bpe/test_pretoken_cache.py",
        "bpe/test_gathered_misses.py",
        "bpe/test_lent_memory.py",
    ),
    *(
        "bpe/test_long_pretoken.py",
        "bpe/test_recycled_memory.py",
        "bpe/test_trainer.py",
        "bpe/test_counting.py",
    ),
    *("bpe/test_decoder.py", "bpe/test_normalizers.py", "bpe/test_automaton.py", "bpe/test_two_way.py"),
    *(
        "bpe/test_streaming.py",
        "bpe/test_sorted_runs.py",
        "bpe/test_merge_counts.py",
        "bpe/test_vocabulary.py",
    ),
    *(
        "inputs/test_json_lines.py",
        "inputs/test_json_array.py",
        "inputs/test_special_tokens.py",
    ),
    *("inputs/test_utf8.py", "inputs/test_hashes.py"),
    *("flat_tokens/test_row_cut.py", "flat_tokens/test_row_order.py", "flat_tokens/test_format.py"),
    *("flat_tokens/test_token_matches.py", "flat_tokens/test_permutation.py", "convert/test_stored_ids.py"),
)
TARGETS = (
    *(
        "tokenizer.json",
        "vocab.json and merges.txt",
        "rank file",
        "tekken.json",
        "SentencePiece model",
        "charsmap",
    ),
    *(
        "pattern of tiktoken",
        "pattern of tokenizers",
        "counts file",
        "JSON Lines",
        "text",
        "codecs",
        "dataset: bytes",
    ),
)
OPTIONS = {
    # Python does not free all memory at exit. Requests for too much memory are errors of the caller.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:halt_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:report_signal_unsafe=0",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(RUNTIMES))
    parser.add_argument("--tests", nargs="*", help="paths in tests/ (default: tests of the core)")
    parser.add_argument("--executions", type=int, default=500, help="number of inputs per fuzz target")
    options = parser.parse_args()
    failed = []
    tests = TESTS if options.tests is None else tuple(options.tests)
    for kind in [options.only] if options.only else RUNTIMES:
        environment = environment_of(kind, build(kind))
        paths = [str(ROOT / "tests" / test) for test in tests if (ROOT / "tests" / test).exists()]
        if paths and run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:faulthandler", *paths], environment
        ):
            failed.append(f"{kind}: tests")
        if options.executions:
            names = [word for name in TARGETS for word in ("--target", name)]
            command = [sys.executable, "tools/fuzz", "--executions", str(options.executions), *names]
            if run([*command, "--processes", "2", "--findings", f"build/findings-{kind}"], environment):
                failed.append(f"{kind}: fuzz targets")
    print("failed: " + "; ".join(failed) if failed else "no reports")
    return 1 if failed else 0


def build(kind: str) -> Path:
    """Build the core with a sanitizer. Return the folder of its modules."""
    made = ROOT / "build" / f"sanitize-{kind.partition(',')[0]}"
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    settings = [
        f"-DTOKENMILL_SANITIZE={kind}",
        f"-Dnanobind_DIR={nanobind}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    settings += ["-DCMAKE_BUILD_TYPE=None", "-DSKBUILD_PROJECT_VERSION=0"]
    subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(made), *settings], check=True, stdout=subprocess.DEVNULL
    )
    subprocess.run(["cmake", "--build", str(made), "--parallel"], check=True, stdout=subprocess.DEVNULL)
    installed = made / "installed"
    command = ["cmake", "--install", str(made), "--prefix", str(installed)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return installed


def environment_of(kind: str, modules: Path) -> dict[str, str]:
    """Return the environment in which Python imports these modules."""
    compiler = os.environ.get("CXX", "c++")
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in (*RUNTIMES[kind], "libstdc++.so")
    ]
    return {
        **os.environ,
        **OPTIONS,
        "LD_PRELOAD": ":".join(found),
        "PYTHONPATH": f"{ROOT}:{modules}",
        "PYTHONMALLOC": "malloc",
    }


def run(command: list[str], environment: dict[str, str]) -> bool:
    """Run a command. Return whether it failed."""
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
