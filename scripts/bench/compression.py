"""How small does the dataset get, and at what speed is it written and read?

The tokens of the text as the format stores them (uint32, id * 2 + start) go through each compression in blocks of one
zarr chunk, on one thread, without files. Every block must come back as it was. Repetitive text gains more than prose
from the web does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import numcodecs
import numpy as np
from encoders import Ours
from numpy.typing import NDArray

from flat_tokens.storage.codecs import CodecChain

Encoded = NDArray[np.uint32]
SHUFFLE, BITSHUFFLE, NO_SHUFFLE = 1, 2, 0


class AsWritten:
    """What datasets are written with by default: zstd 1 with checksum, its matches searched by tokens."""

    def __init__(self) -> None:
        self._zstd = numcodecs.Zstd(1, checksum=True)
        self._chain = CodecChain.from_configs([], self._zstd.get_config())

    def encode(self, chunk: Encoded) -> bytes:
        return self._chain.encode(chunk)

    def decode(self, block: bytes) -> Any:
        return self._zstd.decode(block)


def codecs() -> dict[str, Any]:
    blosc = functools.partial(numcodecs.Blosc)
    return {
        "none": None,
        "lz4 1": numcodecs.LZ4(),
        "Blosc lz4 1, bitshuffle": blosc("lz4", 1, BITSHUFFLE),
        "Blosc zstd 1, no shuffle": blosc("zstd", 1, NO_SHUFFLE),
        "zstd -5": numcodecs.Zstd(-5),
        "zstd 1": numcodecs.Zstd(1),
        "zstd 1 with checksum": numcodecs.Zstd(1, checksum=True),
        "zstd 1 with checksum, matches of tokens (default)": AsWritten(),
        "zstd 3": numcodecs.Zstd(3),
    }


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument(
        "--chunk-tokens", type=int, default=2**18, help="tokens a zarr chunk (default 262144)"
    )
    options = harness.parse(parser)
    numcodecs.blosc.set_nthreads(1)
    machine = harness.facts()
    rows: list[harness.Row] = []
    texts = []
    for path in options.corpus:
        text = harness.read_text(path, options.limit_mb * 1e6)
        texts.append(harness.describe(path, text))
        tokens = encoded_tokens(text, options.tokenizer)
        chunks = [
            tokens[start : start + options.chunk_tokens]
            for start in range(0, len(tokens), options.chunk_tokens)
        ]
        rows += measure(path.stem, chunks, options.turns)
    note = f"zarr chunks of {options.chunk_tokens:,} tokens; all came back as they were"
    harness.save("compression", machine, rows, texts, [note])


def measure(name: str, chunks: list[Encoded], turns: int) -> list[harness.Row]:
    token_count = sum(map(len, chunks))
    stored: dict[str, list[Any]] = {}
    writers: dict[str, Callable[[], float]] = {}
    readers: dict[str, Callable[[], float]] = {}
    for codec_name, codec in codecs().items():
        stored[codec_name] = compress(codec, chunks)
        for chunk, block in zip(chunks, decompress(codec, stored[codec_name]), strict=True):
            assert np.array_equal(chunk, np.frombuffer(block, dtype=np.uint32)), codec_name
        writers[codec_name] = functools.partial(seconds, compress, codec, chunks)
        readers[codec_name] = functools.partial(seconds, decompress, codec, stored[codec_name])
    written, read = harness.take_turns(writers, turns), harness.take_turns(readers, turns)
    rows = []
    for codec_name in codecs():
        write, back = (harness.summary(each[codec_name], token_count) for each in (written, read))
        rows.append(
            {
                "text": name,
                "compression": codec_name,
                "bytes_per_token": sum(len(bytes(block)) for block in stored[codec_name]) / token_count,
                "write, M tokens/s": write["mb_per_s"],
                "read, M tokens/s": back["mb_per_s"],
                "spread": max(write["spread"], back["spread"]),
                "turns": write["turns"],
            }
        )
    return rows


def seconds(function: Callable[[Any, Any], Any], codec: Any, blocks: list[Any]) -> float:
    return harness.timed(lambda: function(codec, blocks))[0]


def compress(codec: Any, chunks: list[Encoded]) -> list[Any]:
    return [chunk.tobytes() if codec is None else codec.encode(chunk) for chunk in chunks]


def decompress(codec: Any, blocks: list[Any]) -> list[Any]:
    return [bytearray(block) if codec is None else codec.decode(block) for block in blocks]


def encoded_tokens(text: bytes, tokenizer: Path) -> Encoded:
    """uint32[tokens] as `encoded_tokens` of the format holds them; empty documents leave no trace."""
    ours = Ours(tokenizer, 1)
    ragged = ours.encode(ours.fresh(), text)
    encoded: Encoded = np.asarray(ragged.tokens, dtype=np.uint32) * np.uint32(2)
    offsets = np.asarray(ragged.offsets).astype(np.int64)
    encoded[offsets[:-1][np.diff(offsets) > 0]] += 1
    return encoded


if __name__ == "__main__":
    main()
