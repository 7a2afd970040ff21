"""What verification takes without decoding it, and that it does not take what the codec got wrong."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convert import ConvertOptions, convert
from convert.driver.finish import known_facts
from convert.errors import StorageError
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.verify import verify_dataset
from tokenmill.engines.inline_engine import InlineEngine


@pytest.mark.parametrize(
    ("count", "decoded"), [(0, 0), (1, 1), (63, 63), (64, 32), (100, 34), (1023, 33), (1024, 32), (5000, 157)]
)
def test_all_files_of_few_tokens_are_decoded_and_some_of_many(count: int, decoded: int) -> None:
    facts = {str(number): TokenFacts(1 << 18, 1, 0, number) for number in range(count)}
    known = known_facts(facts)
    assert len(known) == count - decoded
    assert known.items() <= facts.items()
    taken = [number for number in range(count) if str(number) not in known]
    assert len({after - before for before, after in pairwise(taken)}) <= 1


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("which", [0, 3, 9])
def test_bytes_that_the_codec_got_wrong_are_noticed(
    which: int, zarr_format: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, made = CodecChain.encode, 0

    def encode_badly(chain: CodecChain, values: np.ndarray[Any, Any]) -> bytes:
        nonlocal made
        payload = bytearray(encode(chain, values))
        made += values.dtype == np.uint32
        if values.dtype == np.uint32 and made == which + 1:
            payload[len(payload) // 2] ^= 8
        return bytes(payload)

    monkeypatch.setattr(CodecChain, "encode", encode_badly)
    options = ConvertOptions(
        ["en.txt"], "tok.json", "out", progress="none", chunk_tokens=64, zarr_format=zarr_format
    )
    with pytest.raises(StorageError, match=".*encoded_tokens/"):
        convert(options, InlineEngine())
    assert made > which
    assert not (here / "out").exists()


def test_a_dataset_that_is_gone_before_it_is_read_back_was_bad_input(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_and_verify(root: Path, *given: Any) -> Any:
        shutil.rmtree(root)
        return verify_dataset(root, *given)

    monkeypatch.setattr("convert.driver.finish.verify_dataset", remove_and_verify)
    options = ConvertOptions(["en.txt"], "tok.json", "out", progress="none")
    with pytest.raises(StorageError):
        convert(options, InlineEngine())
    monkeypatch.undo()
    monkeypatch.chdir(here)
    convert(options, InlineEngine())
