"""Which format a path is, and the tokenizer in it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from bpe.description import Parts
from bpe.errors import BadArgument, BadTokenizer
from bpe.formats import folder, gpt2, huggingface, sentencepiece, tekken, tiktoken
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
    in_folder = path.is_dir()
    files = files_of(path)
    path = files[0]
    settings = folder.Settings()
    if pattern is None and _companions(path, in_folder):
        settings = folder.read_settings(path.parent)
    if path.name.endswith("vocab.json"):
        return _load_pair(path, files[1], settings, pattern, special_tokens)
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
        return _named(path, lambda: folder.read_sentencepiece(data, settings))
    if pattern is None:
        _named(path, lambda: _check_looks_like_ranks(data))
        raise BadArgument(
            f"{path}: a rank file does not say its pattern; give pattern= (and special_tokens=)"
        )
    return _named(path, lambda: tiktoken.read(data, pattern, special_tokens))


def _load_pair(
    vocab_path: Path,
    merges_path: Path,
    settings: folder.Settings,
    pattern: str | Pretokenizer | None,
    special_tokens: SpecialTokens,
) -> Parts:
    vocab_data, merges_data = read_file(vocab_path), read_file(merges_path)
    vocab = _named(vocab_path, lambda: gpt2.read_vocab(vocab_data))
    merges = _named(merges_path, lambda: gpt2.read_merges(merges_data))
    where = vocab_path.parent
    if settings.is_empty:
        return _named(where, lambda: gpt2.build(vocab, merges, pattern or "gpt2", special_tokens))
    if special_tokens is not None:
        raise BadArgument(
            f"{where}: {folder.CONFIG} and the files next to it say the special tokens themselves. Give pattern=, too, "
            "to ignore them."
        )
    return _named(where, lambda: folder.read_pair(vocab, merges, settings))


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
    """List the files that `load(path)` reads: one, or vocab.json and merges.txt, and the configuration next to them.

    BadTokenizer for a folder without any.
    """
    in_folder = path.is_dir()
    if in_folder:
        path = _in_folder(path)
    if path.name.endswith(("vocab.json", "merges.txt")):
        both = gpt2.both_paths(path)
        for one, other in (both, both[::-1]):
            if one.exists() and not other.exists():
                raise BadTokenizer(f"{one}: {other.name} is not beside it, and both are needed")
        return [*both, *_companions(both[0], in_folder)]
    return [path, *_companions(path, in_folder)]


def _companions(path: Path, in_folder: bool) -> list[Path]:
    """List the configuration files of a vocabulary. A SentencePiece model named by its own path is complete."""
    if path.name != "vocab.json" and not (path.name == "tokenizer.model" and in_folder):
        return []
    return [path.with_name(name) for name in folder.COMPANIONS if path.with_name(name).is_file()]


def _in_folder(path: Path) -> Path:
    names = [name for name in FILE_NAMES if (path / name).is_file()]
    if "vocab.json" in names and not (path / "merges.txt").is_file():
        names.remove("vocab.json")
    if {"tokenizer.json", "tekken.json"} <= {*names}:
        warnings.warn(
            f"{path}: the folder holds tokenizer.json and tekken.json; tokenizer.json is read. Its pattern is wrong "
            "in some of Mistral's folders. To read tekken.json, name it.",
            stacklevel=2,
        )
    if names:
        return path / names[0]
    ranks = list(path.glob("*.tiktoken"))
    if len(ranks) == 1:
        return ranks[0]
    if ranks:
        raise BadTokenizer(f"{path}: the folder holds {len(ranks)} rank files (*.tiktoken); name one of them")
    if (path / "vocab.json").is_file():
        return path / "vocab.json"
    raise BadTokenizer(f"{path}: the folder holds {NO_TOKENIZER}")


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
