"""What callers write, as README, docstrings and pages show it: never run, checked by scripts/lint (mypy, pyright)."""

from pathlib import Path

import bpe
import convert
import flat_tokens
import tokenmill
from convert import ConvertOptions

options = ConvertOptions(["en.txt"], "tokenizer.json", "en.zarr", workers=2)
others = ConvertOptions([Path("en.txt")], Path("tokenizer.json"), Path("en.zarr"), validation=["valid.txt"])
inputs: tuple[str, ...] = others.inputs
summary: convert.Summary = convert.convert(options)

trained = bpe.train(
    ["corpus.txt"],
    vocab_size=32_000,
    special_tokens=["<|endoftext|>"],
    pattern="gpt2",
    tie_break="lexicographic",
    threads=None,
)
trained.save("tokenizer.json")
ids: list[int] = bpe.Tokenizer.load("tokenizer.json").encode("Hello", allowed_special=())
own = bpe.Tokenizer({0: b"a", 1: b"b", 2: b"ab"}, [(b"a", b"b")], special_tokens=None, pattern="gpt2")
rows: bpe.Ragged = own.encode_batch(["a", "b"], threads=None)
documents: bpe.Ragged = own.encode_documents(b"a<|endoftext|>b", separator="<|endoftext|>", threads=1)
count: int = sum(1 for _ in own.encode_iterable(["a", "b"])) + own.vocab_size + len(own.merges)
text: str = own.decode(ids)
raw: bytes = own.decode_bytes(ids)

dataset = flat_tokens.open("owt.zarr")
first = dataset.train.sequence(0), dataset["validation"].row(5, length=1024), dataset.train.seq_count
loader = flat_tokens.Loader(dataset.train, seq_len=1024, batch_size=64, seed=0, rank=0, world_size=1)
shape: tuple[int, ...] = loader.batch(0).inputs.shape
packs = flat_tokens.PackedSequences(
    dataset.train, max_seq_len=2048, padding_id=0, max_packs=None, split_across_pack=False
)
pack: flat_tokens.Pack = packs[0]

tokenmill.train(["corpus.txt"], vocab_size=32_000, special_tokens=["<|endoftext|>"]).save("tokenizer.json")
tokenmill.convert(tokenmill.ConvertOptions(["corpus.txt"], "tokenizer.json", "corpus.zarr"))
batch = tokenmill.Loader(tokenmill.open("corpus.zarr").train, seq_len=1024, batch_size=8).batch(0)
version: str = tokenmill.__version__
