"""Small replacements for the corpora that pages download, with the same names and columns and invented texts.

STAND_INS maps a page to the functions that fill the current folder for it.
"""

from __future__ import annotations

import io
import json
import random
import shlex
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange_layouts import write_datatrove, write_litdata, write_megatron

import bpe
from tokenmill.__main__ import main

WORDS = (
    "the a one every old small river mill wheel miller boy sack flour morning stone water bends turns opens grinds "
    "carries counts slowly early twice behind beside and but then because it is was says grain belt bread oven door"
).split()


def texts(count: int, seed: int, least: int = 30) -> list[str]:
    """Return `count` different short texts."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        sentences = [
            " ".join(rng.choices(WORDS, k=rng.randint(4, 12))).capitalize() + rng.choice(".!?")
            for _ in range(rng.randint(least // 10, least // 5))
        ]
        made.append(f"No. {number}. " + " ".join(sentences))
    return made


def write_parquet(path: str, **columns: Sequence[Any]) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path)


def openwebtext() -> None:
    for number in range(3):
        write_parquet(
            f"openwebtext/plain_text/train-{number:05d}-of-00080.parquet", text=texts(100, number, 60)
        )


def fineweb_edu() -> None:
    for number in range(2):
        write_parquet(f"fineweb-edu/sample/10BT/{number:03d}_00000.parquet", text=texts(100, number, 120))


def tinystories() -> None:
    for name, count in (("train", 200), ("valid", 20)):
        stories = "".join(f"\n{text}\nThe end.\n<|endoftext|>" for text in texts(count, len(name)))
        Path(f"TinyStoriesV2-GPT4-{name}.txt").write_text(f"{stories}\n", encoding="utf-8")


def saved_datasets() -> None:
    """Write a DatasetDict with `save_to_disk`."""
    pyarrow = pytest.importorskip("pyarrow")
    for split, rows in (("train", texts(120, 1)), ("validation", texts(10, 2))):
        folder = Path("saved", split)
        folder.mkdir(parents=True)
        table = pyarrow.table({"text": rows})
        with pyarrow.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=10)
        state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "dataset_info.json").write_text("{}")
    Path("saved/dataset_dict.json").write_text('{"splits": ["train", "validation"]}')


def source_code() -> None:
    files = {f"src/part_{at}.py": f"def part(x):\n    return x + {at}\n".encode() for at in range(29)}
    files |= {"src/__init__.py": b"", "README.md": b"# The project\n\nIt adds numbers.\n"}
    files |= {"package.json": b'{\n  "name": "project"\n}\n', "logo.png": b"\x89PNG\r\n\x1a\n\0\0"}
    with tarfile.open("project.tar.gz", "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    content = [data.decode() * 9 for name, data in files.items() if name.endswith(".py") and data]
    for language, count in (("python", 206), ("go", 115)):
        write_parquet(f"data/{language}/train-00000-of-{count:05d}.parquet", content=content)


HINDI = (
    "चक्की नदी के मोड़ पर है हर सुबह चक्कीवाला पानी खोलता है और पहिया घूमने लगता है धीरे फिर तेज़ "
    "आज कितना अनाज लड़का पूछता है"
).split()
GERMAN = (
    "die Mühle am Fluss ist älter als das Dorf früher brachten Bauern ihr Korn mit Ochsenkarren heute kommen Lastwagen"
).split()


def several_languages() -> None:
    for name, words, count in (("en", WORDS, 300), ("de", GERMAN, 150), ("hi", HINDI, 40)):
        rng = random.Random(name)
        words = words + ["".join(rng.choices(words, k=2)) for _ in range(300)]
        json_lines(f"{name}.jsonl", [" ".join(rng.choices(words, k=40)) for _ in range(count)])


def dna() -> None:
    rng = random.Random("dna")
    repeats = ["".join(rng.choices("ACGT", k=20)) for _ in range(40)]
    with Path("genome.fa").open("w") as out:
        for number in range(3):
            sequence = "".join(rng.choices(repeats, k=300)) + "N" * 100 + "acgt" * 50
            lines = [sequence[start : start + 60] for start in range(0, len(sequence), 60)]
            print(f">chr{number + 1} a contig", *lines, sep="\n", file=out)


def ids_of(count: int, seed: int, largest: int, end: int) -> list[list[int]]:
    """Return random documents that end with `end`."""
    rng = random.Random(seed)
    return [[*(rng.randint(1, largest) for _ in range(rng.randint(20, 90))), end] for _ in range(count)]


def from_nanogpt() -> None:
    Path("data/openwebtext").mkdir(parents=True)
    for name, count in (("train", 200), ("val", 20)):
        ids = np.concatenate(ids_of(count, count, 50_255, 50_256))
        ids.astype(np.uint16).tofile(f"data/openwebtext/{name}.bin")
    tokens = np.concatenate([[50_256], *ids_of(30, 7, 50_255, 50_256)])[:-1].astype(np.uint16)
    header = np.zeros(256, np.int32)
    header[:3] = 20240520, 1, len(tokens)
    Path("fineweb_train_000001.bin").write_bytes(header.tobytes() + tokens.tobytes())


def tokenizer(path: str = "tokenizer.json") -> None:
    """Write a tokenizer of 520 entries in which <|endoftext|> is 0."""
    bpe.train(["\n".join(texts(300, 9)).encode()], 520, ["<|endoftext|>"]).save(path)


def dataset(options: str) -> None:
    assert main(shlex.split(f"convert --tokenizer tokenizer.json --workers 1 --quiet {options}")) == 0


def small_dataset() -> None:
    """Write corpus.zarr with 200 documents."""
    tokenizer()
    json_lines("corpus.jsonl", texts(200, 4))
    dataset("corpus.jsonl --append-token '<|endoftext|>' --validation-fraction 0.1 --output corpus.zarr")


def from_megatron() -> None:
    tokenizer()
    write_megatron(Path("owt_text_document"), ids_of(200, 1, 500, 0))
    json_lines("corpus.jsonl", texts(100, 2))


def from_datatrove() -> None:
    tokenizer("tok.json")
    Path("tokenized").mkdir()
    Path("filtered").mkdir()
    for number in range(2):
        write_datatrove(Path(f"tokenized/{number:05d}_00000_doc_shuffled.ds"), ids_of(100, number, 500, 0))
        Path(f"tokenized/{number:05d}_00000_doc_shuffled.ds.metadata").write_text("tok.json|2\n5000\n5K")
        json_lines(f"filtered/{number:05d}.jsonl", texts(100, 20 + number))


def from_litdata() -> None:
    tokenizer("tok.json")
    Path("litdata").mkdir()
    write_litdata(Path("litdata/train"), ids_of(200, 1, 500, 0))
    write_litdata(Path("litdata/val"), ids_of(20, 2, 500, 0))


def json_lines(path: str, rows: Sequence[str | dict[str, Any]]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    records = [{"text": row} if isinstance(row, str) else row for row in rows]
    lines = [f"{json.dumps(record, ensure_ascii=False)}\n" for record in records]
    Path(path).write_text("".join(lines), encoding="utf-8")


def corpus_files() -> None:
    for number in range(4):
        json_lines(f"corpus/part-{number}.jsonl", texts(100, number))


CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message.content + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
)


def chats() -> None:
    Path("model").mkdir()
    sample = [b"what is and it you are welcome thanks be short system user assistant 0123456789"]
    bpe.train(sample, 280, ["<|im_start|>", "<|im_end|>"]).save("model/tokenizer.json")
    Path("model/chat_template.jinja").write_text(CHAT_TEMPLATE)
    rows = []
    for number in range(200):
        turns = (
            ("system", "Be short."),
            ("user", f"What is {number} and {number}?"),
            ("assistant", f"It is {2 * number}."),
            ("user", "Thanks!"),
            ("assistant", "You are welcome."),
        )
        rows.append({"messages": [{"role": role, "content": text} for role, text in turns]})
    json_lines("chats.jsonl", rows)
    json_lines("pairs.jsonl", [{"prompt": f"Count to {n}:", "completion": f" 1 to {n}."} for n in range(50)])


def invented_words() -> None:
    words = ["".join(random.Random(number).choices(WORDS, k=3)) for number in range(900)]
    rng = random.Random(0)
    for name, count in (("corpus", 300), ("held-out", 40)):
        json_lines(f"{name}.jsonl", [" ".join(rng.choices(WORDS + words, k=60)) for _ in range(count)])


def bad_records() -> None:
    tokenizer()
    rows: list[str | dict[str, Any]] = [*texts(100, 8)]
    json_lines("corpus/a.jsonl", [*rows[:20], {"body": "no text"}, *rows[20:60], ""])
    json_lines("corpus/b.jsonl", rows[60:])
    with Path("corpus/b.jsonl").open("a") as out:
        out.write('\n{"text": "cut o')
    dataset("corpus/b.jsonl --on-error skip --output copy.zarr")


STAND_INS: dict[str, Sequence[Callable[[], None]]] = {
    "guides/train-a-tokenizer": (invented_words, several_languages),
    "guides/convert-a-corpus": (bad_records, saved_datasets),
    "guides/recipes": (openwebtext, fineweb_edu, tinystories, source_code, dna),
    "guides/fine-tuning-data": (chats,),
    "guides/pytorch": (small_dataset,),
    "guides/jax": (small_dataset,),
    "guides/evaluate": (small_dataset,),
    "guides/scale-out": (corpus_files,),
    "guides/migrate": (from_nanogpt, from_megatron, from_datatrove, from_litdata),
    "guides/inspect-and-verify": (bad_records,),
}
