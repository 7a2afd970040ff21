"""Faults that only the last checks can find: nothing is published, and the next run is right."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from runs import Inline, convert, error_of, tree

from convert.encode import encode_task
from convert.errors import BrokenInvariant
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.verify import verify_dataset
from tokenmill.cli.failures import exit_code_of


@pytest.mark.promise("complete")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("which", [0, 3, 9])
@pytest.mark.usefixtures("here")
def test_a_codec_that_damages_a_chunk(which: int, zarr_format: int) -> None:
    encode, made = CodecChain.encode, 0

    def encode_badly(chain: CodecChain, values: np.ndarray[Any, Any]) -> bytes:
        nonlocal made
        payload = bytearray(encode(chain, values))
        made += values.dtype == np.uint32
        if values.dtype == np.uint32 and made == which + 1:
            payload[len(payload) // 2] ^= 8
        return bytes(payload)

    with mock.patch.object(CodecChain, "encode", encode_badly):
        error = error_of(Inline(), chunk_tokens=64, zarr_format=zarr_format)
    assert error.exit_code == 4
    assert "encoded_tokens/" in str(error)
    assert made > which
    assert not Path("out").exists()


@pytest.mark.usefixtures("here")
def test_a_dataset_that_is_gone_before_it_is_read_back_was_bad_input() -> None:
    def remove_and_verify(root: Path, *given: Any) -> Any:
        shutil.rmtree(root)
        return verify_dataset(root, *given)

    with mock.patch("convert.driver.conversion.verify_dataset", remove_and_verify):
        assert error_of(Inline()).exit_code == 4
    convert(Inline())
    convert(Inline(), output="clean")
    assert tree("out") == tree("clean")


@pytest.mark.promise("complete")
@pytest.mark.promise("no-loss")
@pytest.mark.usefixtures("here")
def test_a_lost_document_is_never_published() -> None:
    encode = encode_task.encode_chunk

    def lose_a_document(chunk: Any, *more: Any, **named: Any) -> Any:
        result = encode(chunk, *more, **named)
        if chunk.index != 4:
            return result
        (record,) = result.records
        train = record.train._replace(documents=record.train.documents + 1)
        return result._replace(records=[replace(record, train=train)])

    with (
        mock.patch.object(encode_task, "encode_chunk", lose_a_document),
        pytest.raises(BrokenInvariant, match="chunk 4") as caught,
    ):
        convert(Inline(), text_chunk_bytes=200)
    assert not Path("out").exists()
    assert exit_code_of(caught.value) is None  # a command shows its traceback
