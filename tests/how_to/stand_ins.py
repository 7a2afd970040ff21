"""Small files in the layout of the published ones, for the pages of docs/how-to: same names, columns, compression.

`STAND_INS` has a function for each page that needs files; it fills the current folder. Texts are made up of a seed.
"""

from __future__ import annotations

import io
import lzma
import random
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORDS = (
    "the a one every old small river mill wheel miller boy sack flour morning stone water bends turns opens grinds "
    "carries counts slowly early twice behind beside and but then because it is was says grain belt bread oven door"
).split()


def texts(count: int, seed: int, least: int = 30) -> list[str]:
    """So many short texts, no two equal."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        sentences = [
            " ".join(rng.choices(WORDS, k=rng.randint(4, 12))).capitalize() + rng.choice(".!?")
            for _ in range(rng.randint(least // 10, least // 5))
        ]
        made.append(f"No. {number}. " + " ".join(sentences))
    return made


def write_parquet(path: str, row_group_rows: int = 100, **columns: Sequence[Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=row_group_rows)


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def openwebtext() -> None:
    for number in range(3):
        write_parquet(f"openwebtext/plain_text/train-{number:05d}-of-00080.parquet", text=texts(100, number, 60))
    outer = {}
    for number in (1, 2):
        files = {f"{at:07d}-{at:032x}.txt": text.encode() for at, text in enumerate(texts(20, 10 + number))}
        outer[f"openwebtext/urlsf_subset00-{number}_data.xz"] = lzma.compress(tar(files))
    Path("urlsf_subset00.tar").write_bytes(tar(outer))


def fineweb_edu() -> None:
    for number in range(2):
        rows = texts(100, number, 120)
        write_parquet(
            f"fineweb-edu/sample/10BT/{number:03d}_00000.parquet",
            text=rows,
            id=[f"<urn:uuid:{at:08x}-0000>" for at in range(len(rows))],
            dump=["CC-MAIN-2024-10"] * len(rows),
            url=[f"https://example.org/{at}" for at in range(len(rows))],
            file_path=["s3://commoncrawl/crawl-data/CC-MAIN-2024-10/x.warc.gz"] * len(rows),
            language=["en"] * len(rows),
            language_score=[0.9] * len(rows),
            token_count=[len(text.split()) for text in rows],
            score=[2.6 + at % 20 / 10 for at in range(len(rows))],
            int_score=[round(2.6 + at % 20 / 10) for at in range(len(rows))],
        )


def tinystories() -> None:
    for name, count in (("train", 200), ("valid", 20)):
        stories = "".join(f"\n{text}\nThe end.\n<|endoftext|>" for text in texts(count, len(name)))
        Path(f"TinyStoriesV2-GPT4-{name}.txt").write_text(f"{stories}\n", encoding="utf-8")
    write_parquet("data/train-00000-of-00004-2d5a1467fff1081b.parquet", text=texts(100, 3))
    write_parquet("data/validation-00000-of-00001-869c898b519ad725.parquet", text=texts(20, 4))


STAND_INS: dict[str, Callable[[], None]] = {
    "openwebtext": openwebtext,
    "fineweb-edu": fineweb_edu,
    "tinystories": tinystories,
}
