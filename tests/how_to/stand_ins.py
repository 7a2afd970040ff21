"""Small files in the layout of the published ones, for the pages of docs/how-to: same names, columns, compression.

`STAND_INS` has a function for each page that needs files; it fills the current folder. Texts are made up of a seed.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from exchange_layouts import write_datatrove, write_litdata, write_megatron

ROOT = Path(__file__).resolve().parents[2]
WORDS = (
    "the a one every old small river mill wheel miller boy sack flour morning stone water bends turns opens grinds "
    "carries counts slowly early twice behind beside and but then because it is was says grain belt bread oven door"
).split()


def texts(count: int, seed: int, least: int = 30) -> list[str]:
    """So many short texts, no two equal."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        sentences = [
            " ".join(rng.choices(WORDS, k=rng.randint(4, 12))).capitalize() + rng.choice(".!?")
            for _ in range(rng.randint(least // 10, least // 5))
        ]
        made.append(f"No. {number}. " + " ".join(sentences))
    return made


def write_parquet(path: str, row_group_rows: int = 100, **columns: Sequence[Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=row_group_rows)


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def openwebtext() -> None:
    for number in range(3):
        write_parquet(
            f"openwebtext/plain_text/train-{number:05d}-of-00080.parquet", text=texts(100, number, 60)
        )
    outer = {}
    for number in (1, 2):
        files = {f"{at:07d}-{at:032x}.txt": text.encode() for at, text in enumerate(texts(20, 10 + number))}
        outer[f"openwebtext/urlsf_subset00-{number}_data.xz"] = lzma.compress(tar(files))
    Path("urlsf_subset00.tar").write_bytes(tar(outer))


def fineweb_edu() -> None:
    for number in range(2):
        rows = texts(100, number, 120)
        write_parquet(
            f"fineweb-edu/sample/10BT/{number:03d}_00000.parquet",
            text=rows,
            id=[f"<urn:uuid:{at:08x}-0000>" for at in range(len(rows))],
            dump=["CC-MAIN-2024-10"] * len(rows),
            url=[f"https://example.org/{at}" for at in range(len(rows))],
            file_path=["s3://commoncrawl/crawl-data/CC-MAIN-2024-10/x.warc.gz"] * len(rows),
            language=["en"] * len(rows),
            language_score=[0.9] * len(rows),
            token_count=[len(text.split()) for text in rows],
            score=[2.6 + at % 20 / 10 for at in range(len(rows))],
            int_score=[round(2.6 + at % 20 / 10) for at in range(len(rows))],
        )


def tinystories() -> None:
    for name, count in (("train", 200), ("valid", 20)):
        stories = "".join(f"\n{text}\nThe end.\n<|endoftext|>" for text in texts(count, len(name)))
        Path(f"TinyStoriesV2-GPT4-{name}.txt").write_text(f"{stories}\n", encoding="utf-8")
    write_parquet("data/train-00000-of-00004-2d5a1467fff1081b.parquet", text=texts(100, 3))
    write_parquet("data/validation-00000-of-00001-869c898b519ad725.parquet", text=texts(20, 4))


def save_to_disk(folder: str, rows: Sequence[str]) -> None:
    """As `datasets` does it, which writes the folder itself where it is installed."""
    import pyarrow

    shards = 2 if len(rows) > 20 else 1
    try:
        from datasets import Dataset
    except ImportError:
        pass
    else:
        Dataset.from_dict({"text": list(rows)}).save_to_disk(folder, num_shards=shards)
        return
    Path(folder).mkdir(parents=True)
    names = [f"data-{number:05d}-of-{shards:05d}.arrow" for number in range(shards)]
    step = len(rows) // shards
    for number, name in enumerate(names):
        table = pyarrow.table({"text": rows[number * step : (number + 1) * step]})
        with pyarrow.ipc.new_stream(f"{folder}/{name}", table.schema) as writer:
            writer.write_table(table, max_chunksize=10)
    state = {"_data_files": [{"filename": name} for name in names]}
    Path(folder, "state.json").write_text(json.dumps(state))
    Path(folder, "dataset_info.json").write_text("{}")


def huggingface_datasets() -> None:
    save_to_disk("saved/train", texts(120, 1))
    save_to_disk("saved/validation", texts(10, 2))
    Path("saved/dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    save_to_disk("selection", texts(10, 3))
    state = json.loads(Path("selection/state.json").read_text())
    state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    Path("selection/state.json").write_text(json.dumps(state))
    write_parquet("train.parquet", body=texts(50, 4), id=list(range(50)))


def project_files() -> dict[str, bytes]:
    files = {f"project/src/part_{at}.py": f"def part(x):\n    return x + {at}\n".encode() for at in range(29)}
    return files | {
        "project/src/__init__.py": b"",
        "project/README.md": b"# The project\n\nIt adds numbers.\n",
        "project/package.json": b'{\n  "name": "project"\n}\n',
        "project/logo.png": b"\x89PNG\r\n\x1a\n\0\0",
        "project/.github/workflow.yml": b"on: push\n",
    }


def source_code() -> None:
    for name, data in project_files().items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
    Path("project.tar.gz").write_bytes(
        gzip.compress(tar({name.removeprefix("project/"): data for name, data in project_files().items()}))
    )
    sources = [data.decode() for name, data in project_files().items() if name.endswith(".py") and data]
    for language, count in (("python", 206), ("go", 115)):
        write_parquet(
            f"data/{language}/train-00000-of-{count:05d}.parquet",
            content=[source * 9 for source in sources],
            lang=[language] * len(sources),
            ext=["py"] * len(sources),
            size=[9 * len(source) for source in sources],
            max_stars_repo_name=["someone/project"] * len(sources),
        )


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
        lines = [
            json.dumps({"text": " ".join(rng.choices(words, k=40))}, ensure_ascii=False) for _ in range(count)
        ]
        Path(f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def dna() -> None:
    rng = random.Random("dna")
    repeats = ["".join(rng.choices("ACGT", k=20)) for _ in range(40)]
    with Path("genome.fa").open("w") as out:
        for number in range(3):
            sequence = "".join(rng.choices(repeats, k=300)) + "N" * 100 + "acgt" * 50
            lines = [sequence[start : start + 60] for start in range(0, len(sequence), 60)]
            print(f">chr{number + 1} a contig", *lines, sep="\n", file=out)


def ids_of(count: int, seed: int, largest: int, end: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [[*(rng.randint(1, largest) for _ in range(rng.randint(20, 90))), end] for _ in range(count)]


def flat(documents: list[list[int]]) -> list[int]:
    return [id_ for ids in documents for id_ in ids]


def from_nanogpt() -> None:
    Path("data/openwebtext").mkdir(parents=True)
    for name, count in (("train", 200), ("val", 20)):
        documents = ids_of(count, count, 50_255, 50_256)
        np.array(flat(documents), np.uint16).tofile(f"data/openwebtext/{name}.bin")
    tokens = np.array([50_256, *flat(ids_of(30, 7, 50_255, 50_256))[:-1]], np.uint16)
    header = np.zeros(256, np.int32)
    header[:3] = 20240520, 1, len(tokens)
    Path("fineweb_train_000001.bin").write_bytes(header.tobytes() + tokens.tobytes())


def tokenizer(path: str = "tokenizer.json") -> None:
    """600 entries, <|endoftext|> is 0."""
    import bpe

    sample = ["\n".join(texts(300, 9)).encode()]
    bpe.train(sample, 520, ["<|endoftext|>"]).save(path)


def from_megatron() -> None:
    tokenizer()
    write_megatron(Path("owt_text_document"), ids_of(200, 1, 500, 0))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts(100, 2))
    Path("corpus.jsonl").write_text(lines)


def from_datatrove() -> None:
    tokenizer("tok.json")
    Path("tokenized").mkdir()
    Path("filtered").mkdir()
    for number in range(2):
        write_datatrove(Path(f"tokenized/{number:05d}_00000_doc_shuffled.ds"), ids_of(100, number, 500, 0))
        Path(f"tokenized/{number:05d}_00000_doc_shuffled.ds.metadata").write_text("tok.json|2\n5000\n5K")
        rows = [
            json.dumps({"text": text, "id": f"{number}/{at}", "metadata": {"score": 1.0}})
            for at, text in enumerate(texts(100, 20 + number))
        ]
        data = "".join(f"{row}\n" for row in rows).encode()
        Path(f"filtered/{number:05d}.jsonl.gz").write_bytes(gzip.compress(data))


def from_litdata() -> None:
    tokenizer("tok.json")
    Path("litdata").mkdir()
    write_litdata(Path("litdata/train"), ids_of(200, 1, 500, 0))
    write_litdata(Path("litdata/val"), ids_of(20, 2, 500, 0))
    write_litdata(Path("litdata/pictures"), ids_of(20, 3, 500, 0))
    index = Path("litdata/pictures/index.json")
    index.write_text(index.read_text().replace('"no_header_tensor:20"', '"jpeg", "int"'))


def json_lines(path: str, rows: Sequence[dict[str, Any]]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def laptop_to_cluster() -> None:
    for number in range(4):
        json_lines(f"corpus/part-{number}.jsonl", [{"text": text} for text in texts(100, number)])


CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message.content + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
)


def chats() -> None:
    import bpe

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


def choose_a_vocabulary() -> None:
    words = ["".join(random.Random(number).choices(WORDS, k=3)) for number in range(900)]
    rng = random.Random(0)
    for name, count in (("corpus", 300), ("held-out", 40)):
        json_lines(
            f"{name}.jsonl", [{"text": " ".join(rng.choices(WORDS + words, k=60))} for _ in range(count)]
        )


def nothing_lost() -> None:
    tokenizer()
    rows: list[dict[str, Any]] = [{"text": text} for text in texts(100, 8)]
    json_lines("corpus/a.jsonl", [*rows[:20], {"body": "no text"}, *rows[20:60], {"text": ""}])
    json_lines("corpus/b.jsonl", rows[60:])
    with Path("corpus/b.jsonl").open("a") as out:
        out.write('\n{"text": "cut o')
    from convert import ConvertOptions, convert

    convert(
        ConvertOptions(["corpus/b.jsonl"], "tokenizer.json", "copy.zarr", on_error="skip", progress="none")
    )


STAND_INS: dict[str, Callable[[], None]] = {
    "openwebtext": openwebtext,
    "fineweb-edu": fineweb_edu,
    "tinystories": tinystories,
    "huggingface-datasets": huggingface_datasets,
    "source-code": source_code,
    "several-languages": several_languages,
    "dna": dna,
    "from-nanogpt": from_nanogpt,
    "from-megatron": from_megatron,
    "from-datatrove": from_datatrove,
    "from-litdata": from_litdata,
    "laptop-to-cluster": laptop_to_cluster,
    "chats": chats,
    "choose-a-vocabulary": choose_a_vocabulary,
    "nothing-lost": nothing_lost,
}
