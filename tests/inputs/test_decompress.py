"""All members of a compressed file are read; a file cut off anywhere, or damaged, is an error that says where."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tokenmill.inputs.decompress import DecompressedFile
from tokenmill.inputs.errors import BadInput
from tokenmill.stores import open_file


def zstd(data: bytes, **options: object) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True, **options).compress(data)  # type: ignore[arg-type]


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}
TEXT = "".join(random.Random(1).choices("abc déf\n", k=3000)).encode()


def read(path: Path, compression: str, at_once: int = 1 << 16, window: int = 128 << 20) -> bytes:
    out, buffer = bytearray(), memoryview(bytearray(at_once))
    with open_file(str(path)) as opened:
        file = DecompressedFile(opened, str(path), compression, window)
        while got := file.readinto(buffer):
            out += buffer[:got]
        assert file.readinto(buffer) == 0
        assert file.used_bytes == path.stat().st_size or not out
    return bytes(out)


@pytest.mark.parametrize("damage", ["none", "cut", "flip"])
def test_gzip_data_are_the_same_with_and_without_the_faster_library(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(damage)
    path = tmp_path / "file"
    for _ in range(60):
        data = b"".join(
            gzip.compress(rng.randbytes(rng.choice([0, 1, 300, 50_000])) * rng.choice([1, 2, 30]), level)
            for level in rng.choices([0, 1, 6, 9], k=rng.randint(1, 4))
        )
        place = rng.randrange(len(data))
        if damage == "cut":
            data = data[:place]
        elif damage == "flip":
            data = data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
        path.write_bytes(data)
        found = []
        for has_library in (True, False):
            with monkeypatch.context() as patch:
                if not has_library:
                    patch.setitem(sys.modules, "zlib_ng", None)
                try:
                    found.append(read(path, "gz"))
                except BadInput as error:
                    found.append(str(error).partition("(")[0].encode())
        assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("seed", range(3))
def test_members_that_give_much_for_little(compression: str, seed: int, tmp_path: Path) -> None:
    """Text after members that gave more than a MiB for their last 256 KiB was lost, or the file was refused."""
    rng = random.Random(seed)
    path = tmp_path / "file"
    for _ in range(3):
        members = [
            rng.randbytes(rng.choice([0, 1, 300, 20_000, 50_000])) * rng.choice([1, 2, 30, 60])
            for _ in range(rng.randint(2, 5))
        ]
        path.write_bytes(b"".join(map(COMPRESS[compression], members)) + bytes(rng.choice([0, 0, 512])))
        at_once = rng.choice([1000, 1 << 16, 1 << 20, 4 << 20])
        assert read(path, compression, at_once) == b"".join(members)


@pytest.mark.parametrize("compression", COMPRESS)
def test_a_flipped_byte_is_found_or_harmless(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = COMPRESS[compression](TEXT)
    rng = random.Random(2)
    found = 0
    for _ in range(150):
        place = rng.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
        try:
            assert read(path, compression) == TEXT  # a bit of a time, or one that has no meaning
        except BadInput:
            found += 1
    assert found > 100


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("text", [TEXT, TEXT * 900], ids=["small", "large"])
def test_zeros_may_follow_but_nothing_else(compression: str, text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = COMPRESS[compression](text)
    path.write_bytes(whole + bytes(512))
    assert read(path, compression) == text
    path.write_bytes(whole + bytes(512) + whole)
    assert read(path, compression) == text + text
    path.write_bytes(whole + b"more text")
    with pytest.raises(BadInput, match=f"byte .*{len(whole)}.*{len(whole)}"):
        read(path, compression)
    path.write_bytes(b"plain text")
    with pytest.raises(BadInput):
        read(path, compression)


def test_zstd_frames_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    unsized = stream.compress(TEXT) + stream.flush()
    skippable = b"\x52\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"index"
    path.write_bytes(skippable + unsized + skippable + zstd(b"end") + skippable)
    assert read(path, "zst") == TEXT + b"end"
    path.write_bytes(zstd(TEXT) + skippable[:-1])
    with pytest.raises(BadInput):
        read(path, "zst")


@pytest.mark.promise("limits")
def test_a_window_beyond_the_limit_names_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = random.Random(4).randbytes(3 << 20)
    parameters = zstandard.ZstdCompressionParameters(window_log=22, enable_ldm=False)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(stream.compress(data) + stream.flush())
    assert read(path, "zst") == data
    with pytest.raises(BadInput):
        read(path, "zst", window=1 << 20)
    path.write_bytes(lzma.compress(TEXT, preset=6))
    assert read(path, "xz") == TEXT
    with pytest.raises(BadInput, match="--max-window-bytes"):
        read(path, "xz", window=1 << 20)
