"""The dataset equals a naive conversion, token by token, and its bytes do not depend on how the work was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from naive_conversion import END, Naive, Split, expected_dataset, make_documents, read_dataset, tree

import flat_tokens
from convert import ConvertOptions, Summary, convert
from tokenmill.engines.inline_engine import InlineEngine

CHUNK_BYTES = [1, 2, 3, 7, 13, 64, 1000, None]


def run(
    inputs: Any, tokenizer: Path, output: Path, processes: int = 0, start_method: str = "fork", **more: Any
) -> Summary:
    """Convert in this process, or in `processes` workers."""
    more = {"chunk_tokens": 64, "progress": "none", **more}
    options = ConvertOptions(inputs, str(tokenizer), str(output), workers=max(processes, 1), **more)
    if processes:
        from tokenmill.engines.process_engine import ProcessEngine

        return convert(options, ProcessEngine(processes, start_method))
    return convert(options, InlineEngine())


def check(output: Path, expected: dict[str, Split], summary: Summary) -> None:
    assert read_dataset(output) == expected_dataset(expected)
    for name, split in expected.items():
        counts = summary.splits[name]
        assert counts.documents == split.documents
        assert counts.sequences == len(split.sequences)
        assert counts.empty == split.documents - len(split.sequences)
        assert counts.tokens == len(split.encoded)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of every size that matters: empty, one byte, many documents; with and without a separator at the end."""
    folder = tmp_path_factory.mktemp("corpus")
    files = []
    for index, (count, tail) in enumerate(
        [(40, ""), (0, ""), (1, END), (25, END), (3, END + END), (0, END), (2, "\r\n")]
    ):
        path = folder / f"{index}.txt"
        path.write_bytes((END.join(make_documents(count, seed=index)) + tail).encode())
        files.append(path)
    return files


def test_equal_to_the_naive_conversion_for_any_text_chunk_size_and_number_of_workers(
    corpus: list[Path], tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    expected = naive.convert(corpus, fraction=0.3, seed=7)
    assert all(split.sequences for split in expected.values())
    first: dict[str, bytes] = {}
    rows: list[tuple[int, int | None]] = [(0, size) for size in CHUNK_BYTES if size != 1]
    rows += [(1, 100), (2, 100), (3, 37), (2, None)]
    for processes, chunk_bytes in rows:
        output = tmp_path / f"{processes}-{chunk_bytes}"
        options = {"validation_fraction": 0.3, "seed": 7, "text_chunk_bytes": chunk_bytes}
        summary = run(corpus, tokenizer_path, output, processes, **options)
        check(output, expected, summary)
        first = first or tree(output)
        assert tree(output) == first, (processes, chunk_bytes)
        assert not output.with_name(output.name + ".partial").exists()


def test_spawned_workers_write_the_same_bytes(
    corpus: list[Path], tokenizer_path: Path, tmp_path: Path
) -> None:
    run(corpus, tokenizer_path, tmp_path / "inline", text_chunk_bytes=300)
    run(corpus, tokenizer_path, tmp_path / "spawn", 2, "spawn", text_chunk_bytes=200)
    assert tree(tmp_path / "inline") == tree(tmp_path / "spawn")


@pytest.mark.parametrize("separator", [END, "<|im_start|>", "…", "\n\n", "aa", "aba", "\r\n"], ids=repr)
def test_every_border_in_and_around_separators_and_special_tokens(
    separator: str, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    special = "<|im_start|>" if separator == END else END
    text = f"ab{separator}é{special}b{separator}{separator}{separator[:-1]}x{special}{separator}"
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    expected = naive.convert([path], separator, fraction=0.5)
    first: dict[str, bytes] = {}
    for chunk_bytes in range(1, len(text.encode()) + 1):
        output = tmp_path / str(chunk_bytes)
        summary = run(
            path,
            tokenizer_path,
            output,
            text_chunk_bytes=chunk_bytes,
            separator=separator,
            validation_fraction=0.5,
            compression="none",
        )
        if not first:
            check(output, expected, summary)
            first = tree(output)
        assert tree(output) == first, chunk_bytes


TEXTS = {
    "nothing": b"",
    "one-byte": b"a",
    "no-separator": b"one document, no separator at all\r\n" * 5,
    "one-separator": END.encode(),
    "only-separators": END.encode() * 9,
    "half-separators": b"<|endoftex" * 3 + END.encode() + b"|endoftext|>",
    "crlf": b"one\r\n" + END.encode() + b"\r\ntwo\r\n\r\n" + END.encode() + b"\r\n",
    "multi-byte": "東京都🙂".encode() * 3 + END.encode() + "é".encode(),
    "nul-and-line-ends": b"\x00\x00"
    + END.encode()
    + b"\x0b\x0c\xc2\x85\xe2\x80\xa8\xef\xbb\xbf"
    + END.encode()
    + b"\x00",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_every_shape(name: str, tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXTS[name])
    expected = naive.convert([path])
    for chunk_bytes in (1, 2, 5, None):
        output = tmp_path / f"{chunk_bytes}.zarr"
        check(output, expected, run(path, tokenizer_path, output, text_chunk_bytes=chunk_bytes))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_both_layouts_and_every_compression(
    zarr_format: int, compression: str, corpus: list[Path], tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    expected = naive.convert(corpus, fraction=0.1)
    for chunk_bytes, chunk_tokens in ((50, 3), (500, None)):
        output = tmp_path / f"{chunk_bytes}-{chunk_tokens}"
        options = {"zarr_format": zarr_format, "compression": compression, "chunk_tokens": chunk_tokens}
        summary = run(
            corpus, tokenizer_path, output, text_chunk_bytes=chunk_bytes, validation_fraction=0.1, **options
        )
        check(output, expected, summary)


def test_runs_of_several_write_units_meet(
    corpus: list[Path], tokenizer_path: Path, naive: Naive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (24, 24))  # three units of eight tokens
    expected = naive.convert(corpus, fraction=0.2)
    output = tmp_path / "out"
    check(
        output,
        expected,
        run(corpus, tokenizer_path, output, text_chunk_bytes=99, chunk_tokens=8, validation_fraction=0.2),
    )


def test_validation_by_files(corpus: list[Path], tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    held_out = [corpus[2], corpus[3]]
    rest = [path for path in corpus if path not in held_out]
    expected = naive.convert(rest, fraction=0, validation=held_out)
    # A file that a folder among the inputs holds too is validation only.
    for index, inputs in enumerate((rest, [corpus[0].parent])):
        output = tmp_path / str(index)
        check(output, expected, run(inputs, tokenizer_path, output, validation=held_out, text_chunk_bytes=64))


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_a_document_stays_in_its_split_when_others_are_added(
    fraction: float, corpus: list[Path], tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"validation_fraction": fraction, "seed": 2**64 - 1}
    small = run(corpus[0], tokenizer_path, tmp_path / "small", **options)
    large = run([corpus[0], *corpus[2:]], tokenizer_path, tmp_path / "large", **options)
    check(tmp_path / "small", naive.convert(corpus[:1], fraction=fraction, seed=2**64 - 1), small)
    check(
        tmp_path / "large", naive.convert([corpus[0], *corpus[2:]], fraction=fraction, seed=2**64 - 1), large
    )
    for name in ("train", "validation"):
        few, many = read_dataset(tmp_path / "small")[name], read_dataset(tmp_path / "large")[name]
        assert many[0][: len(few[0])] == few[0]
        assert many[1][: len(few[1])] == few[1]


def test_invalid_bytes_are_replaced_as_python_does_and_counted(
    tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    bad = [b"\xff", b"\xe6\x9d", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"a\xf0\x9f\x99"]
    path = tmp_path / "text.txt"
    path.write_bytes(END.encode().join([b"good", *bad, "東".encode() + b"\x80"]))
    expected = naive.convert([path])
    replaced = sum(part.decode(errors="replace").count("\ufffd") for part in bad) + 1
    for chunk_bytes in (1, 2, 30, None):
        output = tmp_path / f"{chunk_bytes}.zarr"
        summary = run(path, tokenizer_path, output, replace_invalid=True, text_chunk_bytes=chunk_bytes)
        check(output, expected, summary)
        assert summary.replaced == replaced
        assert any("replaced" in line for line in summary.lines())


def test_summary_and_manifest_say_what_came_out(
    corpus: list[Path], tokenizer_path: Path, tmp_path: Path
) -> None:
    import json

    from bpe.tokenizer import Tokenizer

    output = tmp_path / "out.zarr"
    summary = run(corpus, tokenizer_path, output)
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["tokenizer"]["fingerprint"] == Tokenizer.load(output / "tokenizer.json").fingerprint()
    sources = flat_tokens.open(output).sources()
    assert [source["path"] for source in sources] == [str(path) for path in corpus]
    for path, source in zip(corpus, sources, strict=True):
        assert source["bytes"] == path.stat().st_size
    assert manifest["options"]["separator"] == END
    assert sum(manifest["options"]["documents"].values()) == summary.documents
    text = "\n".join(summary.lines(timings=True))
    assert f"{summary.tokens:,} tokens" in text
    assert "verified" in text
    for stage in ("start", "encode", "merge", "verify", "publish"):
        assert f"{stage} " in text
