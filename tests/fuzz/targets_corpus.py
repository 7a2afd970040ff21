"""Targets of corpus: records of every format, and compressed streams."""

from __future__ import annotations

import json
import random
import struct
import sys
import zlib
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from bounded_run import Target
from mutations import LARGEST_BYTES, change_bytes, change_json, change_text

for name in ("", "inputs", "stores"):
    sys.path.insert(0, str(Path(__file__).parents[1] / name))
from input_kinds import PACKED, json_lines, write_kind  # noqa: E402 - found on the paths above
from readings import KeptIntake  # noqa: E402
from strategies import compressed  # noqa: E402

from tokenmill.inputs.documents import Buffers, LongText, Reading  # noqa: E402
from tokenmill.inputs.errors import BadInput  # noqa: E402
from tokenmill.inputs.kinds import kind_of  # noqa: E402
from tokenmill.inputs.rules import IntakeRules, MarkRules  # noqa: E402
from tokenmill.inputs.source_list import Piece, Source  # noqa: E402

DOCUMENTS = ["the mill stands", "", 'a "b"\n\tc', "naïve 你好 🙂\u2028", "x" * 300, "1,2;3\r\n4"]
FORMATS = ("parquet", "arrow", "feather", "csv", "tsv", "tar")


@cache
def _sound(kind: str, seed: int) -> bytes:
    with TemporaryDirectory() as folder:
        return write_kind(Path(folder, "a"), DOCUMENTS * 2, kind, seed=seed).read_bytes()


def _make_records(form: str) -> Callable[[random.Random, Path], Path]:
    def make(rng: random.Random, folder: Path) -> Path:
        kind = f"{form}.{'xz' if form == 'tsv' else 'none'}"
        data = _sound(kind, rng.randrange(2))
        path = folder / f"a.{form}{'.xz' if form == 'tsv' else ''}"
        if form == "tsv":
            rows = compressed(change_bytes(rng, b'id\ttext\n1\ta\n2\t"b\nc"\n' * rng.choice([1, 50])), "xz")
            data = rows if rng.random() < 0.8 else change_bytes(rng, data)
        elif form == "parquet" and rng.random() < 0.7:  # in the metadata, which everything else depends on
            size = int.from_bytes(data[-8:-4], "little")
            start = len(data) - 8 - size
            footer = change_bytes(rng, data[start:-8])
            data = data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"
        elif form == "tar" and rng.random() < 0.7:
            data = _with_another_header(rng, data)
        else:
            data = change_bytes(rng, data)
        path.write_bytes(data)
        return path

    return make


def _with_another_header(rng: random.Random, data: bytes) -> bytes:
    """Change a header of a tar archive and fix its checksum, so that the change is accepted."""
    at = rng.choice([at for at in range(0, len(data), 512) if data[at + 257 : at + 262] == b"ustar"])
    header = bytearray(change_bytes(rng, data[at : at + 512])[:512].ljust(512, b"\0"))
    if rng.random() < 0.5:
        header[156:157] = rng.choice([b"0", b"\0", b"L", b"K", b"x", b"g", b"S", b"5", b"2"])
    if rng.random() < 0.5:
        size = rng.choice([0, 1, 511, 512, 513, 1 << 20, 1 << 32, (1 << 33) - 1])
        header[124:136] = (
            b"%011o\0" % size if rng.random() < 0.7 else b"\x80" + (size << 20).to_bytes(11, "big")
        )
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:at] + bytes(header) + data[at + 512 :]


def make_lines(rng: random.Random, folder: Path) -> Path:
    """Write JSON Lines with changed records or changed text, some lines long, some deeply nested."""
    lines = json_lines(DOCUMENTS * rng.choice([1, 20]), rng.randrange(4)).split(b"\n")
    for _ in range(rng.choice([1, 2, 5])):
        at = rng.randrange(len(lines))
        try:
            lines[at] = change_json(rng, json.loads(lines[at] or b"{}"))
        except (ValueError, RecursionError):  # caused by an earlier change
            lines[at] = change_bytes(rng, lines[at])
    data = b"\n".join(lines)
    (folder / "a.jsonl").write_bytes(change_bytes(rng, data) if rng.random() < 0.4 else data)
    return folder / "a.jsonl"


def make_text(rng: random.Random, folder: Path) -> Path:
    text = "|".join(DOCUMENTS) * rng.choice([1, 100])
    data = change_text(rng, text).encode() if rng.random() < 0.3 else change_bytes(rng, text.encode())
    (folder / "a.txt").write_bytes(data)
    return folder / "a.txt"


def _make_stream(compression: str) -> Callable[[random.Random, Path], Path]:
    def make(rng: random.Random, folder: Path) -> Path:
        """Write an archive with changed members, others between them, and members that expand: many equal bytes."""
        text = b"|".join(document.encode() for document in DOCUMENTS)
        if rng.random() < 0.1:
            text += b"a" * rng.choice([1 << 16, 1 << 22])
        members = [compressed(text, compression, rng.choice([1, 1, 3])) for _ in range(rng.choice([1, 1, 2]))]
        if rng.random() < 0.2:
            members.insert(rng.randrange(2), compressed(text, rng.choice(PACKED)))
        if rng.random() < 0.1:
            members += [compressed(b"", compression)] * rng.choice([1, 100, LARGEST_BYTES // 64])
        data = b"".join(members)
        if compression == "gz" and rng.random() < 0.3:  # the checksum matches, so the text is read
            changed = change_bytes(rng, text)
            data = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + zlib.compress(changed)[2:-4]
            data += struct.pack("<II", zlib.crc32(changed), len(changed))
        else:
            data = change_bytes(rng, data)
        form = rng.choice(["txt", "jsonl"])
        path = folder / f"a.{form}.{compression}"
        path.write_bytes(data)
        return path

    return make


def read_documents(path: Path, marks: MarkRules | None = None) -> None:
    """Read all documents, whole and in three pieces, with both rules for invalid text."""
    status = path.stat()
    source = Source(str(path), status.st_size, status.st_mtime_ns, kind=kind_of(str(path)))
    for count, invalid in ((1, "error"), (3, "replace")):
        intake = KeptIntake(IntakeRules(on_error="skip", invalid=invalid, marks=marks))
        cuts = [status.st_size * number // count for number in range(count + 1)]
        for start, stop in pairwise(cuts):
            with Reading(0, source, Piece(0, start, stop), intake, b"|", Buffers(1 << 16)) as reading:
                for event in reading.documents():
                    for _ in event.pieces if isinstance(event, LongText) else ():
                        pass
        if intake.unreadable:
            raise BadInput(intake.unreadable[0][1])


def read_pairs(path: Path) -> None:
    """Read the same files as records with a loss mask."""
    read_documents(path, MarkRules("text", "text"))


TARGETS = [
    Target("JSON Lines", make_lines, read_documents),
    Target("text", make_text, read_documents),
    *(Target(f"table: {form}", _make_records(form), read_documents, base_bytes=1 << 29) for form in FORMATS),
    Target("records: JSON Lines", make_lines, read_pairs),
    *(
        Target(f"records: {form}", _make_records(form), read_pairs, base_bytes=1 << 29)
        for form in ("parquet", "arrow", "csv")
    ),
    # The zstd decoder has a window of up to 128 MiB, and its output is produced in bounded parts.
    *(
        Target(f"compressed: {form}", _make_stream(form), read_documents, base_bytes=1 << 29)
        for form in PACKED
    ),
]
