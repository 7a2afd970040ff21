"""Find the test files of a module: first the files named after it, then the closest ones by imports.

Coverage per test misses lines in worker processes and in commands, and costs a run of the whole suite. Imports cost
nothing and are always up to date.
"""

from __future__ import annotations

import ast
from collections import deque
from functools import cache
from pathlib import Path

PACKAGES = ("bpe", "convert", "flat_tokens", "tokenmill")
# Tests of the C++ in a folder, for files without a test of the same name.
NATIVE_TESTS = {
    "bpe/native/train": (
        "bpe/test_trainer bpe/test_training bpe/test_merge_counts bpe/test_sorted_runs "
        "bpe/test_count_sums bpe/test_spilling bpe/test_counting bpe/test_counts_file "
        "bpe/test_reference_trainer bpe/test_training_of_text bpe/test_training_alphabet "
        "bpe/test_components"
    ),
    "bpe/native/merge": "bpe/test_merge_pretoken bpe/test_encoding bpe/test_streaming bpe/test_walk_words",
    "bpe/native/encode": (
        "bpe/test_encoding bpe/test_decoder bpe/test_streaming bpe/test_tokenizer bpe/test_normalized_text"
    ),
    "bpe/native/cache": "bpe/test_pretoken_cache bpe/test_walk_keys bpe/test_encoding",
    "bpe/native/pretokenize": (
        "bpe/test_pretokenize bpe/test_automaton bpe/test_patterns bpe/test_two_way "
        "bpe/test_counting bpe/test_streaming bpe/test_encoding bpe/test_matrix "
        "bpe/test_uncovered_text bpe/test_components"
    ),
    "bpe/native/normalize": (
        "bpe/test_normalizers bpe/test_normalized_text bpe/test_formats_sentencepiece "
        "bpe/test_unicode_tables bpe/test_normalized_counts bpe/test_components"
    ),
    "bpe/native/vocabulary": (
        "bpe/test_vocabulary bpe/test_formats bpe/test_text_vocabulary bpe/test_encoding "
        "bpe/test_tokenizer_json bpe/test_tokenizer"
    ),
    "native/text": (
        "inputs/test_special_tokens inputs/test_utf8 bpe/test_added_tokens "
        "bpe/test_training_alphabet bpe/test_encoding bpe/test_pretokenize"
    ),
    "native/simd": (
        "inputs/test_utf8 inputs/test_special_tokens bpe/test_pretokenize bpe/test_walk_keys "
        "bpe/test_encoding bpe/test_merge_pretoken"
    ),
    "native/common": (
        "bpe/test_memory_promise bpe/test_encoding bpe/test_recycled_memory inputs/test_hashes "
        "bpe/test_training bpe/test_count_sums"
    ),
    "bpe/native/bindings": (
        "bpe/test_arguments bpe/test_buffers bpe/test_ragged bpe/test_tokenizer bpe/test_trainer "
        "bpe/test_encoding bpe/test_decoder bpe/test_pretokenize bpe/test_formats "
        "bpe/test_ids_file"
    ),
    "tokenmill/inputs/native": ("inputs/test_json_lines inputs/test_sources"),
    "convert/native": ("convert/contract/test_naive"),
    "flat_tokens/native": (
        "flat_tokens/test_row_cut flat_tokens/test_permutation contract/test_packs "
        "flat_tokens/test_token_matches flat_tokens/test_loader contract/test_verified"
    ),
}


class Covering:
    """The imports of a tree."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules = {
            ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
            for package in PACKAGES
            for path in sorted((root / package).rglob("*.py"))
        }
        self._tests = sorted((root / "tests").rglob("test_*.py"))
        self._distances = {test: self._from(test) for test in self._tests}

    def tests(self, path: str) -> list[str]:
        """Return the test files of a source file, most relevant first. Paths are relative to the root."""
        if not path.endswith(".py"):
            return self._native(path)
        stem = Path(path).stem
        module = ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")
        ranked = []
        for test in self._tests:
            name = test.relative_to(self._root).as_posix()
            distance = self._distances[test].get(module)
            namesake = test.stem == f"test_{stem}"
            if distance is not None or namesake:
                other = not name.startswith(f"tests/{path.split('/')[0]}/")
                ranked.append((not namesake, distance or 0, other, name))
        return [name for *_, name in sorted(ranked)]

    def _native(self, path: str) -> list[str]:
        stem = Path(path).stem
        folder = max((name for name in NATIVE_TESTS if path.startswith(name)), key=len, default="")
        listed = [f"tests/{name}.py" for name in NATIVE_TESTS.get(folder, "").split()]
        namesakes = [
            test.relative_to(self._root).as_posix() for test in self._tests if test.stem == f"test_{stem}"
        ]
        found = [name for name in dict.fromkeys([*namesakes, *listed]) if (self._root / name).exists()]
        return found

    def _from(self, test: Path) -> dict[str, int]:
        """Return the modules that a test imports, with the number of imports in between."""
        distances: dict[str, int] = {}
        waiting = deque([(test, 0)])
        while waiting:
            path, distance = waiting.popleft()
            for name in self._imports(path):
                if name not in distances and distance < 4:
                    distances[name] = distance
                    waiting.append((self._modules[name], distance + 1))
        return distances

    @cache  # noqa: B019 - one object, for the whole run
    def _imports(self, path: Path) -> tuple[str, ...]:
        """Return the modules that a file names.

        This includes names in strings: modules of a table for late imports, in full ("package.module") or, in the file
        that imports them, by their last part ("jsonl"), and packages that a test runs as commands.
        """
        names: dict[str, None] = {}
        text = path.read_text()
        below = ".".join(path.relative_to(self._root).parts[:-1]) + "."
        late = [name for name in self._modules if "import_module" in text and name.startswith(below)]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                wanted = [name for name in late if name.endswith(f".{node.value}")]
                wanted += [node.value] if "." in node.value else []
                wanted += [f"{node.value}.__main__"] if node.value in PACKAGES else []
            elif isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                wanted = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                helper = path.with_name(f"{node.module}.py")  # in tests: a file in the same folder
                if "tests" in path.parts and helper.exists() and helper != path:
                    names.update(dict.fromkeys(self._imports(helper)))
            else:
                continue
            names.update((name, None) for name in wanted if name in self._modules)
        return tuple(names)
