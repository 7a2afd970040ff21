"""--validation-docs: the documents with the smallest hashes of the whole corpus, however it is cut and read."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash
from input_kinds import KINDS, write_kind
from naive_conversion import END, Naive, expected_dataset, read_dataset, tree
from test_input_kinds import run

from convert.errors import BadInput

DOCUMENTS = [f"document {index} of many" for index in range(40)] + ["", "twice", "", "twice"]


def expected(naive: Naive, documents: list[str], count: int, seed: int, special: bool) -> object:
    """The dataset if the `count` smallest hashes, and those equal to the last, are validation."""
    hashes = sorted(xxhash.xxh64_intdigest(text.encode(), seed) for text in documents if text)
    last = hashes[min(count, len(hashes)) - 1] if count else -1
    splits = naive.convert_documents([], special)
    for text in documents:
        own = xxhash.xxh64_intdigest(text.encode(), seed)
        split = splits["validation" if own <= last or count > len(hashes) else "train"]
        split.documents += 1
        if text:
            split.sequences.append(naive.ids(text.encode(), special))
    return expected_dataset(splits)


@pytest.mark.parametrize("kind", ["txt.none", "txt.gz", "jsonl.none", "jsonl.zst", "parquet.none"])
def test_the_smallest_hashes_are_held_out(
    kind: str, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    assert kind in KINDS
    path = write_kind(tmp_path / "input", DOCUMENTS, kind)
    first: dict[str, bytes] = {}
    for processes, chunk_bytes in ((0, 50), (2, 200), (3, 333), (0, None)):
        output = tmp_path / f"{processes}-{chunk_bytes}"
        run(
            path,
            tokenizer_path,
            output,
            processes,
            text_chunk_bytes=chunk_bytes,
            validation_docs=7,
            validation_fraction=None,
            seed=5,
        )
        assert read_dataset(output) == expected(naive, DOCUMENTS, 7, 5, kind.startswith("txt"))
        first = first or tree(output)
        assert tree(output) == first


@pytest.mark.parametrize("count", [0, 1, 2, 41, 42, 43, 1000])
def test_every_number_of_documents(count: int, tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    path = write_kind(tmp_path / "input", DOCUMENTS, "jsonl.none")
    output = tmp_path / "out"
    summary = run(path, tokenizer_path, output, validation_docs=count, validation_fraction=None)
    assert read_dataset(output) == expected(naive, DOCUMENTS, count, 0, False)
    assert summary.splits["validation"].sequences in (min(count, 42), count + 1)


def test_copies_stay_together(tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text(END.join(["same"] * 9))
    summary = run(path, tokenizer_path, tmp_path / "out", validation_docs=1, validation_fraction=None)
    assert (summary.splits["train"].documents, summary.splits["validation"].documents) == (0, 9)


def test_a_long_document_and_bad_ones(
    tokenizer_path: Path, naive: Naive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 50)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", 50)
    documents = ["a", "long " * 100, "b", "c"]
    path = tmp_path / "in.txt"
    bad = ("bad " * 60).encode() + b"\xff"
    path.write_bytes(END.encode().join([*(d.encode() for d in documents), bad, b"\xfe"]))
    options = {"validation_docs": 2, "validation_fraction": None}
    with pytest.raises(Exception, match=r"in\.txt: byte"):
        run(path, tokenizer_path, tmp_path / "no", **options)
    for seed in range(8):
        run(path, tokenizer_path, tmp_path / f"{seed}", seed=seed, on_error="skip", **options)
        assert read_dataset(tmp_path / f"{seed}") == expected(naive, documents, 2, seed, True)
    with pytest.raises(BadInput):
        run(path, tokenizer_path, tmp_path / "few", on_error="skip", max_errors=1, **options)


def test_the_corpus_is_not_read_for_it_once_more_after_an_interruption(
    tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kind(tmp_path / "input", DOCUMENTS, "txt.none")
    options = {"validation_docs": 7, "validation_fraction": None, "text_chunk_bytes": 100}
    run(path, tokenizer_path, tmp_path / "clean", **options)

    def fail(*_: object, **__: object) -> None:
        raise BadInput("no more")

    def fail_to_encode() -> None:
        with monkeypatch.context() as patch:
            patch.setattr("convert.encode.encode_task.encode_chunk", fail)
            with pytest.raises(BadInput):
                run(path, tokenizer_path, tmp_path / "out", **options)

    fail_to_encode()
    kept = tmp_path / "out.partial/journal"
    text = kept.read_text()
    for damaged in ("", text[:-1], text.replace("7", "8"), text.replace('d": ', 'd": -'), "[]"):
        kept.write_text(damaged)
        fail_to_encode()
        assert kept.read_text() == damaged + text  # the corpus was read again
    monkeypatch.setattr("convert.driver.choose_held_out.smallest_hashes", fail)
    run(path, tokenizer_path, tmp_path / "out", **options)
    assert tree(tmp_path / "out") == tree(tmp_path / "clean")
