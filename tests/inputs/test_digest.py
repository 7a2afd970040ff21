"""Digests of a file's blocks and edges: the same however its bytes are seen, read again only where they were not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import xxhash

from tokenmill.inputs import digest
from tokenmill.inputs.digest import BlockDigests, first_changed
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.text_window import TextWindow

BLOCK = 100


class Watched(TextWindow):
    """Counts what is asked of it."""

    asked = 0

    def view(self, start: int, stop: int) -> memoryview:
        self.asked += stop - start
        return super().view(start, stop)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(digest, "READ_BYTES", 30)


def test_they_are_those_of_the_bytes_however_these_are_seen(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = tmp_path / "file"
    for _ in range(300):
        data = rng.randbytes(rng.choice([1, 99, 100, 101, 250, 730]))
        path.write_bytes(data)
        start = rng.randrange(len(data))
        stop = rng.randint(start + 1, len(data))
        own = BlockDigests(start, stop, len(data))
        own.need(needed := rng.randint(-1, start), rng.randint(stop, len(data) + 1))
        place, all_seen = 0, True
        while place < len(data):  # from the beginning on, now and then with a gap
            size = rng.choice([1, 7, 64, 300])
            if rng.random() < 0.95:
                own.see(place, memoryview(data[place : place + size]))
            else:
                all_seen = False
            place += size
        with Watched(Source(str(path), len(data), 0)) as window:
            edges = own.edges(window)
            blocks = own.finish(window)
            if all_seen and start == 0:
                assert window.asked == 0
        first = -(-start // BLOCK) * BLOCK
        behind = max(first, min(-(-stop // BLOCK) * BLOCK, len(data)))
        expected = [data[place : place + BLOCK] for place in range(first, behind, BLOCK)]
        assert blocks == b"".join(xxhash.xxh64(block).digest() for block in expected)
        for edge_start, edge_stop, found in edges:
            assert found == xxhash.xxh64(data[edge_start:edge_stop]).hexdigest()
        covered = {place for edge in edges for place in range(*edge[:2])} | set(range(first, behind))
        assert covered.issuperset(range(max(0, needed), stop))
        assert first_changed(Source(str(path), len(data), 0), edges) is None
        if edges:
            changed = rng.choice(edges)
            place = rng.randrange(*changed[:2])
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            found_at = first_changed(Source(str(path), len(data), 0), edges)
            assert found_at is not None
            assert found_at[0] <= place < found_at[1]
