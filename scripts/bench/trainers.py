"""Every trainer behind the same call, so that one loop measures them all.

Each takes (file, limit in bytes, vocab_size, threads), loads what it needs, and gives the function to time; that one
returns merges, the number of entries, or a function that gets the merges out once the clock has stopped. All train on
GPT-2's pattern but those that name another, and sentencepiece, which has its own way to cut text.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import harness
import published
from tokenizer_files import byte_alphabet

Merges = list[tuple[bytes, bytes]]
SEPARATOR = harness.SEPARATOR.decode()

_BYTE_OF = {character: byte for byte, character in enumerate(byte_alphabet())}

Trainer = Callable[[Path, float, int, int], Callable[[], "Merges | int | Callable[[], Merges]"]]


def ours(
    tie_break: Literal["lexicographic", "huggingface"] = "lexicographic",
    pattern: str | None = None,
    like: str | None = None,
) -> Trainer:
    def make(
        path: Path, limit_bytes: float, vocab_size: int, threads: int
    ) -> Callable[[], Callable[[], Merges]]:
        from bpe.training import train  # `bpe.train` would import it within the time

        # The trainer reads files; the others get text in memory. Its time includes reading (from the page cache).
        file = first_documents(path, limit_bytes)

        def run() -> Callable[[], Merges]:
            tokenizer = train(
                [file],
                vocab_size=vocab_size,
                special_tokens=[SEPARATOR],
                pattern=pattern,
                like=like,
                tie_break=tie_break,
                threads=threads,
            )
            if file != path:
                file.unlink()
            return lambda: list(tokenizer.merges)

        return run

    return make


def first_documents(path: Path, limit_bytes: float) -> Path:
    """The file if it is within the limit, else a temporary one of its first documents, as `read_text` has them.

    Copied by a process of its own, so that the text does not count as memory of this one.
    """
    if path.stat().st_size <= limit_bytes:
        return path
    handle, name = tempfile.mkstemp(suffix=".txt")
    os.close(handle)
    script = "import sys, pathlib, harness; p = pathlib.Path; a = sys.argv; "
    script += "p(a[2]).write_bytes(harness.read_text(p(a[1]), float(a[3])))"
    folder = Path(__file__).parent
    subprocess.run(
        [sys.executable, "-c", script, path.absolute(), name, str(limit_bytes)], cwd=folder, check=True
    )
    return Path(name)


def gigatoken(path: Path, limit_bytes: float, vocab_size: int, threads: int) -> Callable[[], Merges]:
    import gigatoken

    text = harness.read_text(path, limit_bytes)

    def run() -> Merges:
        merges: Merges = gigatoken.train_bpe(text, vocab_size, [SEPARATOR], separator=harness.SEPARATOR)[1]
        return merges

    return run


def rustbpe(path: Path, limit_bytes: float, vocab_size: int, threads: int) -> Callable[[], int]:
    import rustbpe

    documents = harness.read_text(path, limit_bytes).decode().split(SEPARATOR)
    tokenizer = rustbpe.Tokenizer()

    def run() -> int:
        tokenizer.train_from_iterator(iter(documents), vocab_size - 1, pattern=published.GPT2)
        return int(tokenizer.vocab_size) + 1  # it has no special tokens

    return run


def tokenizers(
    path: Path, limit_bytes: float, vocab_size: int, threads: int
) -> Callable[[], Callable[[], Merges]]:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    specials, alphabet = [SEPARATOR], ByteLevel.alphabet()
    return _of_tokenizers(tokenizer, path, limit_bytes, vocab_size, specials, alphabet, of_byte_alphabet)


def tokenizers_of_text(
    path: Path, limit_bytes: float, vocab_size: int, threads: int
) -> Callable[[], Callable[[], Merges]]:
    """As Llama 2's: entries are text or bytes, a pretoken is a word with the space before it."""
    from tokenizers import Tokenizer, normalizers
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Split

    space = "\u2581"
    tokenizer = Tokenizer(BPE(fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(space), normalizers.Replace(" ", space)])
    tokenizer.pre_tokenizer = Split(space, "merged_with_next")
    specials = [SEPARATOR, *(f"<0x{byte:02X}>" for byte in range(256))]
    return _of_tokenizers(tokenizer, path, limit_bytes, vocab_size, specials, [], str.encode)


def _of_tokenizers(
    tokenizer: Any,
    path: Path,
    limit_bytes: float,
    vocab_size: int,
    specials: list[str],
    alphabet: list[str],
    to_bytes: Callable[[str], bytes],
) -> Callable[[], Callable[[], Merges]]:
    from tokenizers.trainers import BpeTrainer

    documents = harness.read_text(path, limit_bytes).decode().split(SEPARATOR)
    trainer = BpeTrainer(
        vocab_size=vocab_size, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )

    def batches() -> Iterator[list[str]]:
        for start in range(0, len(documents), 1000):
            yield documents[start : start + 1000]

    def merges() -> Merges:
        found = json.loads(tokenizer.to_str())["model"]["merges"]
        return [(to_bytes(left), to_bytes(right)) for left, right in found]

    def run() -> Callable[[], Merges]:
        tokenizer.train_from_iterator(batches(), trainer)
        return merges

    return run


def of_byte_alphabet(entry: str) -> bytes:
    """An entry in the byte alphabet, as bytes."""
    return bytes(map(_BYTE_OF.__getitem__, entry))


def gigabpe(
    path: Path, limit_bytes: float, vocab_size: int, threads: int
) -> Callable[[], Callable[[], Merges]]:
    import gigabpe

    file = first_documents(path, limit_bytes)

    def run() -> Callable[[], Merges]:
        merges = gigabpe.train_bpe(
            [str(file)],
            vocab_size,
            special_tokens=[SEPARATOR],
            pretokenizer="bytelevel",
            threads=threads,
        )[1]
        return lambda: [(of_byte_alphabet(left), of_byte_alphabet(right)) for left, right in merges]

    return run


def ffbpe(path: Path, limit_bytes: float, vocab_size: int, threads: int) -> Callable[[], int]:
    import ffbpe

    documents = harness.read_text(path, limit_bytes).decode().split(SEPARATOR)

    def run() -> int:
        model = ffbpe.train_bpe(iter(documents), vocab_size=vocab_size, special_tokens=[SEPARATOR])
        return len(model.vocab)

    return run


def sentencepiece(path: Path, limit_bytes: float, vocab_size: int, threads: int) -> Callable[[], int]:
    import sentencepiece

    file = first_documents(path, limit_bytes)
    model = io.BytesIO()

    def run() -> int:
        sentencepiece.SentencePieceTrainer.train(
            input=str(file),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            byte_fallback=True,
            normalization_rule_name="identity",
            max_sentence_length=1 << 20,  # longer lines are left out of the training
            num_threads=threads,
            minloglevel=2,
        )
        return int(sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size())

    return run


TRAINERS: dict[str, Trainer] = {
    "tokenmill": ours(),
    "tokenmill, huggingface rule": ours("huggingface"),
    "tokenmill, cl100k": ours(pattern=published.CL100K),
    "tokenmill, qwen-3.5": ours(pattern=published.QWEN35),
    "tokenmill, o200k": ours(pattern=published.O200K),
    "tokenmill, tekken": ours(pattern=published.TEKKEN),
    "tokenmill, llama-2": ours("huggingface", like="llama-2"),
    "gigatoken": gigatoken,
    "gigabpe": gigabpe,
    "rustbpe": rustbpe,
    "ffbpe": ffbpe,
    "sentencepiece": sentencepiece,
    "tokenizers": tokenizers,
    "tokenizers, llama-2": tokenizers_of_text,
}
