"""Texts for the benchmarks: unpacked once into data/bench/texts, and Chinese taken out of a text of many languages."""

from __future__ import annotations

import lzma
import re
import shutil
from pathlib import Path

import harness

FOLDER = harness.SAVED / "texts"
HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
KANA = re.compile("[\u3040-\u30ff]")


def unpacked(path: Path) -> Path:
    """The file, or what an *.xz holds; named by what stands before the first dot."""
    if path.suffix != ".xz":
        return path
    plain = FOLDER / f"{path.name.partition('.')[0]}.txt"
    if not plain.exists() or plain.stat().st_mtime < path.stat().st_mtime:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with lzma.open(path) as packed, plain.open("wb") as file:
            shutil.copyfileobj(packed, file)
    return plain


def chinese(path: Path) -> Path:
    """The Chinese documents of a text, as a text: data/bench/texts/zh.txt."""
    separator = harness.SEPARATOR.decode()
    documents = path.read_bytes().decode().split(separator)
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = FOLDER / "zh.txt"
    chosen.write_bytes(separator.join(filter(is_chinese, documents)).encode())
    return chosen


def is_chinese(document: str) -> bool:
    """More than half of the letters are Han, and kana, as Japanese has beside them, fewer than a twentieth."""
    han = len(HAN.findall(document))
    return han * 2 > sum(map(str.isalpha, document)) and len(KANA.findall(document)) * 20 < han
