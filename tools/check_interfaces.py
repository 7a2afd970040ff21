"""Run the tests of tiktoken and tokenizers, and random tokenizers, against bpe.compat, without downloads.

    python tools/check_interfaces.py --tiktoken FOLDER --tokenizers FOLDER
    python tools/check_interfaces.py --drawn FIRST STOP

FOLDER: `tests` of the peer's source distribution (`pip download --no-binary :all: --no-deps NAME`), for tokenizers the
folder in bindings/python. tiktoken's tests need rank files in TIKTOKEN_CACHE_DIR. The tests are copied and import this
package under the peer's name. Tests that need a network are skipped. Prints passed tests, failed tests, and expected
failures (listed below) with the reason.

--drawn: random tokenizer.json files and tiktoken encodings with the seeds FIRST to STOP - 1 (tests/bpe/compat). All
methods are called, and state is changed, in random order. Prints seeds with a difference, and rejections by reason.

Exit code 1 if a test fails that is not listed, or a seed differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent

_SHIMS: Final = {
    "tiktoken": """
import sys
from bpe.compat.tiktoken import core, load, model, registry
sys.modules["tiktoken"] = sys.modules["bpe.compat.tiktoken"]
for module in (core, load, model, registry):
    sys.modules["tiktoken." + module.__name__.rpartition(".")[2]] = module
""",
    "tokenizers": """
import sys
import types
import bpe.compat.huggingface as ours
from bpe.compat.huggingface.arguments import unsupported
sys.modules["tokenizers"] = ours
# Other test files import these two of the legacy classes.
legacy = sys.modules["tokenizers.implementations"] = types.ModuleType("implementations")
for name in ("BertWordPieceTokenizer", "SentencePieceUnigramTokenizer"):
    setattr(ours, name, unsupported(name))
    setattr(legacy, name, unsupported(name))
for name in ("decoders", "models", "normalizers", "pre_tokenizers", "processors", "trainers"):
    sys.modules[f"tokenizers.{name}"] = getattr(ours, name)
""",
}
_OTHER_MODEL: Final = "another model than BPE"
_CUSTOM: Final = "a component written in Python, which would take every text out of the core"
# Part of a test's name -> reason for the expected failure.
LISTED: Final = {
    "test_models.py::TestUnigram": _OTHER_MODEL,
    "test_models.py::TestWordPiece": _OTHER_MODEL,
    "test_models.py::TestWordLevel": _OTHER_MODEL,
    "test_trainers.py::TestWordPieceTrainer": _OTHER_MODEL,
    "test_trainers.py::TestWordLevelTrainer": _OTHER_MODEL,
    "test_trainers.py::TestUnigram": _OTHER_MODEL,
    "test_tokenizer.py::TestTokenizer::test_decode_stream": _OTHER_MODEL,
    "test_tokenizer.py::TestTokenizer::test_unigram_byte_fallback": _OTHER_MODEL,
    "test_serialization.py::TestSerialization::test_repr_str_ellipsis": _OTHER_MODEL,
    "TestCustomNormalizer": _CUSTOM,
    "TestCustomPreTokenizer": _CUSTOM,
    "test_multiprocessing_with_parallelism": "asks for a process that hangs after a fork; these don't",
}
_NEEDS: Final = {"test_tutorial_train_from_iterators.py": "datasets"}  # packages that a test file imports
_MOST_SHOWN: Final = 2000  # characters of a difference
_LINE: Final = re.compile(r"(PASSED|FAILED|ERROR|SKIPPED)\s+(?:\[\d+\] )?(\S+)")


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in _SHIMS:
        parser.add_argument(f"--{name}", metavar="FOLDER", type=Path, help=f"the tests of {name}")
    parser.add_argument(
        "--drawn", metavar=("FIRST", "STOP"), type=int, nargs=2, help="seeds of random tokenizers"
    )
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    if not given:
        parser.error("give --tiktoken, --tokenizers or --drawn")
    unexpected = _check_drawn(*given.pop("drawn")) if "drawn" in given else 0
    for name, folder in given.items():
        if not folder.is_dir():
            parser.error(f"--{name} {folder}: is no folder")
        unexpected += _check(name, folder)
    return 1 if unexpected else 0


def _check_drawn(first: int, stop: int) -> int:
    """Return the number of seeds that differ."""
    sys.path[:0] = [str(_ROOT / folder) for folder in (".", "tests/bpe/compat", "tests/bpe")]
    from drawn import calls, encodings_of_tiktoken

    different = 0
    for compare in (calls, encodings_of_tiktoken):
        for seed in range(first, stop):
            try:
                compare(seed)
            except AssertionError as error:
                different += 1
                print(f"{compare.__name__}, seed {seed}: {str(error)[:_MOST_SHOWN]}", flush=True)
    print(f"{different} of {2 * (stop - first)} differ")
    return different


def _check(name: str, folder: Path) -> int:
    """Return the number of unexpected failures of a peer's tests."""
    outcomes = _outcomes(name, folder)
    failed = [test for test, outcome in outcomes.items() if outcome in ("FAILED", "ERROR")]
    reasons = {test: reason for test in failed for part, reason in LISTED.items() if part in test}
    wrong = [test for test in failed if test not in reasons]
    passed = sum(outcome == "PASSED" for outcome in outcomes.values())
    print(f"{name}: {passed} passed, {len(wrong)} failed, {len(reasons)} listed")
    for test in wrong:
        print(f"  FAILED {test}")
    for test, reason in reasons.items():
        print(f"  listed {test}: {reason}")
    if not passed:
        print("  no test ran")
    return len(wrong) + (not passed)


def _outcomes(name: str, folder: Path) -> dict[str, str]:
    """Return test -> PASSED, FAILED or ERROR."""
    with tempfile.TemporaryDirectory() as temp:
        root = Path(temp, "python")  # some tests require this name
        shutil.copytree(folder, root / "tests")
        (root / "conftest.py").write_text(_SHIMS[name])
        (root / "pytest.ini").write_text("[pytest]\nmarkers =\n    network\n    asyncio\n    timeout\n")
        ignored = [f"--ignore-glob=*{file}" for file, module in _NEEDS.items() if not _has(module)]
        ignored.append(
            "--ignore-glob=*/implementations/*"
        )  # legacy classes, which this package does not have
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*command, "-W", "ignore", "-m", "not network", *ignored, "tests"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    outcomes = {}
    for line in run.stdout.splitlines():
        if match := _LINE.match(line):
            outcomes[match[2]] = match[1]
    if not outcomes:
        print(run.stdout[-2000:], run.stderr[-2000:], file=sys.stderr)
    return outcomes


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


if __name__ == "__main__":
    sys.exit(main())
