"""Check that `verify` finds any flipped bit in any layout, and that checksums prevent wrong batches.

    python tools/check_flips.py [--flips 200] [--seed 0] [--only LAYOUT]

Prints one line per layout: the flips, the number that `verify` missed, and the results of an epoch over both splits: an
error, correct batches (loaders do not read the bit), or wrong batches. Exit status 1 if verify missed a flip, or if a
layout with checksums gave a wrong batch. To repeat a flip, pass its seed: --seed SEED --flips 1.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import bpe  # noqa: E402
import flat_tokens  # noqa: E402
from convert import ConvertOptions, convert  # noqa: E402
from flat_tokens.verify import verify_dataset  # noqa: E402

END = "<|endoftext|>"
# Zarr format, compression, whether readers check a checksum. Layouts named mask-... have a loss mask.
LAYOUTS = {
    "2-zstd": (2, "zstd", True),
    "2-none": (2, "none", False),
    "3-zstd": (3, "zstd", True),
    "3-none": (3, "none", True),
    "mask-2-zstd": (2, "zstd", True),
    "mask-2-none": (2, "none", False),
    "mask-3-zstd": (3, "zstd", True),
}


def write_corpus(path: Path, rng: random.Random, documents: int) -> None:
    words = ["mill", "stone", "river", "grain", "wheel", "Größe", "水", "🙂", "\n", "1,234"]
    texts = (" ".join(rng.choices(words, k=rng.randrange(1, 300))) for _ in range(documents))
    found = list(texts)
    path.write_text(END.join(found), encoding="utf-8")
    records = ({"prompt": text[:40], "completion": text[40:]} for text in found)
    path.with_suffix(".jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))


def make(folder: Path, layout: str) -> Path:
    """Make a dataset of this layout with several Zarr chunks."""
    zarr_format, compression, _ = LAYOUTS[layout]
    out = folder / layout
    given: dict[str, Any] = {
        "zarr_format": zarr_format,
        "compression": compression,
        "chunk_tokens": 1024,
        "validation_fraction": 0.2,
        "workers": 1,
        "progress": "none",
    }
    tokenizer = str(folder / "tokenizer.json")
    source = folder / "a.txt"
    if layout.startswith("mask-"):
        source = folder / "a.jsonl"
        given |= {"prompt_field": "prompt", "completion_field": "completion"}
    convert(ConvertOptions((str(source),), tokenizer, str(out), **given))
    return out


def epoch(root: Path) -> list[np.ndarray[Any, Any]]:
    """Return all batches of an epoch over both splits, and each single sequence."""
    dataset = flat_tokens.open(str(root))
    found: list[np.ndarray[Any, Any]] = []
    for split in (dataset.train, dataset.validation):
        loader = flat_tokens.Loader(split, seq_len=64, batch_size=4, seed=1)
        for step in range(loader.steps_per_epoch):
            batch = loader.batch(step)
            found += [batch.inputs.copy(), batch.targets.copy(), batch.is_seq_start.copy()]
        found += [split.sequence(number) for number in range(split.seq_count)]
    return found


def outcome(root: Path, expected: list[np.ndarray[Any, Any]]) -> str:
    try:
        found = epoch(root)
    except (flat_tokens.DatasetError, OSError):
        return "error"
    same = len(found) == len(expected) and all(map(np.array_equal, found, expected))
    return "right" if same else "wrong"


def is_found(root: Path) -> bool:
    try:
        return not verify_dataset(str(root)).ok
    except flat_tokens.DatasetError:
        return True


def flip(root: Path, rng: random.Random) -> str:
    """Flip one bit of one file. Every file is equally likely, whatever its size."""
    file = rng.choice(sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size))
    data = bytearray(file.read_bytes())
    bit = rng.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)
    return f"{file.relative_to(root)} bit {bit}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flips", type=int, default=200, help="number of flips per layout")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first flip")
    parser.add_argument("--only", action="append", choices=list(LAYOUTS), help="only these layouts")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "a.txt", random.Random(1), 150)
        write_corpus(folder / "b.txt", random.Random(2), 60)
        trained = bpe.train([str(folder / "a.txt")], 300, special_tokens=[END])
        trained.save(str(folder / "tokenizer.json"))
        for layout in options.only or LAYOUTS:
            has_checksums = LAYOUTS[layout][2]
            sound = make(folder, layout)
            assert not is_found(sound), f"{layout}: verify finds something in a sound dataset"
            expected = epoch(sound)
            missed: list[str] = []
            epochs: Counter[str] = Counter()
            wrong: list[str] = []
            for seed in range(options.seed, options.seed + options.flips):
                broken = folder / "broken"
                shutil.copytree(sound, broken)
                what = f"seed {seed}: {flip(broken, random.Random(f'{layout} {seed}'))}"
                if not is_found(broken):
                    missed.append(what)
                result = outcome(broken, expected)
                epochs[result] += 1
                if result == "wrong":
                    wrong.append(what)
                shutil.rmtree(broken)
            counts = ", ".join(f"{epochs[result]} {result}" for result in ("error", "right", "wrong"))
            sums = "checksums" if has_checksums else "no checksums"
            print(
                f"{layout}: {options.flips} flips, {len(missed)} not found; epochs ({sums}): {counts}",
                flush=True,
            )
            for line in [*missed, *(wrong if has_checksums else [])][:10]:
                print(f"  {line}", flush=True)
            failures += len(missed) + (len(wrong) if has_checksums else 0)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
