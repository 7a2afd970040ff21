"""Which format a path is, and the tokenizer in it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from bpe.description import Parts
from bpe.errors import BadArgument, BadTokenizer
from bpe.formats import gpt2, huggingface, sentencepiece, tekken, tiktoken
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens

T = TypeVar("T")

# Of a folder's or repository's files the first that is there is taken, vocab.json with merges.txt; then a rank file.
FILE_NAMES: Final = ("tokenizer.json", "tekken.json", "vocab.json", "tokenizer.model")
NO_TOKENIZER: Final = (
    "no tokenizer: neither tokenizer.json, tekken.json, vocab.json with merges.txt, "
    "tokenizer.model nor a *.tiktoken"
)

# Four times the longest known (gemma 3, 33 MB). A corpus named by mistake is refused at once, its memory not taken.
_MOST_BYTES: Final = 1 << 27


def load(path: Path, pattern: str | Pretokenizer | None, special_tokens: SpecialTokens) -> Parts:
    """The parts of the tokenizer in a file or folder; see Tokenizer.load. Errors begin with the file's path."""
    # Reading makes hundreds of thousands of small objects and no cycles; the collector would look through them
    # again and again, a third of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(path, pattern, special_tokens)
    finally:
        if collecting:
            gc.enable()


def _load(path: Path, pattern: str | Pretokenizer | None, special_tokens: SpecialTokens) -> Parts:
    files = files_of(path)
    path = files[0]
    if len(files) == 2:
        vocab_data, merges_data = map(read_file, files)
        vocab = _named(path, lambda: gpt2.read_vocab(vocab_data))
        merges = _named(files[1], lambda: gpt2.read_merges(merges_data))
        return _named(path.parent, lambda: gpt2.build(vocab, merges, pattern or "gpt2", special_tokens))
    data = read_file(path)
    if path.suffix == ".json" or data[:1] == b"{":
        if pattern is not None or special_tokens is not None:
            raise BadArgument(
                f"{path}: a tokenizer.json says its pattern and special tokens itself; give neither"
            )
        return _named(path, lambda: tekken.read(data) if tekken.is_tekken(data) else huggingface.read(data))
    if sentencepiece.is_model(data):
        if pattern is not None or special_tokens is not None:
            raise BadArgument(
                f"{path}: a SentencePiece model says its special tokens itself and has no pattern; give neither"
            )
        return _named(path, lambda: sentencepiece.read(data))
    if pattern is None:
        _named(path, lambda: _check_looks_like_ranks(data))
        raise BadArgument(
            f"{path}: a rank file does not say its pattern; give pattern= (and special_tokens=)"
        )
    return _named(path, lambda: tiktoken.read(data, pattern, special_tokens))


def _check_looks_like_ranks(data: bytes) -> None:
    """BadTokenizer if the file is none of the kinds there are: asking for its pattern would lead nowhere."""
    first_line = data.lstrip()[:1000].split(b"\n")[0]
    try:
        if not len(tiktoken.read_entries(first_line)):
            raise BadTokenizer("it is empty")
    except BadTokenizer:
        raise BadTokenizer(
            "is no tokenizer: neither a tokenizer.json, nor a vocab.json with merges.txt, nor a rank file "
            "(*.tiktoken), nor a model of SentencePiece"
        ) from None


def files_of(path: Path) -> list[Path]:
    """The files that `load(path)` reads: one, or vocab.json and merges.txt; BadTokenizer for a folder without any."""
    if path.is_dir():
        path = _in_folder(path)
    if path.name.endswith(("vocab.json", "merges.txt")):
        both = gpt2.both_paths(path)
        for one, other in (both, both[::-1]):
            if one.exists() and not other.exists():
                raise BadTokenizer(f"{one}: {other.name} is not beside it, and both are needed")
        return list(both)
    return [path]


def _in_folder(folder: Path) -> Path:
    names = [name for name in FILE_NAMES if (folder / name).is_file()]
    if "vocab.json" in names and not (folder / "merges.txt").is_file():
        names.remove("vocab.json")
    if names:
        return folder / names[0]
    ranks = list(folder.glob("*.tiktoken"))
    if len(ranks) == 1:
        return ranks[0]
    if ranks:
        raise BadTokenizer(
            f"{folder}: the folder holds {len(ranks)} rank files (*.tiktoken); name one of them"
        )
    if (folder / "vocab.json").is_file():
        return folder / "vocab.json"
    raise BadTokenizer(f"{folder}: the folder holds {NO_TOKENIZER}")


def read_file(path: Path) -> bytes:
    """The file's bytes; BadTokenizer if it can't be read, or is far longer than any tokenizer."""
    try:
        if path.is_file():
            if path.stat().st_size <= _MOST_BYTES:
                return path.read_bytes()
        else:  # a pipe, which has no size, or a device, which may have no end
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) <= _MOST_BYTES:
                return data
    except OSError as error:
        raise BadTokenizer(
            f"{path}: can't read the tokenizer: {error.strerror}{_why_missing(path)}"
        ) from None
    raise BadTokenizer(f"{path}: is no tokenizer, it has more than {_MOST_BYTES:,} bytes")


def _why_missing(path: Path) -> str:
    if path.exists():
        return ""
    if path.parts[0].startswith("~"):
        return f"; ~ is expanded by the shell alone, and not in quotes: {path.expanduser()}"
    return "" if path.suffix or len(path.parts) > 1 else "; one of the Hugging Face Hub is named ORG/MODEL"


def _named(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except (BadTokenizer, BadArgument) as error:
        raise type(error)(f"{path}: {error}") from None
