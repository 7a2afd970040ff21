"""Detect the format of a tokenizer file or folder, and load the tokenizer."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Final

from bpe.errors import BadArgument, BadTokenizer
from bpe.formats import folder, gpt2, huggingface, sentencepiece, tekken, tiktoken
from bpe.formats.faults import within
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import SpecialTokens

# The first existing file of a folder or repository is read; vocab.json needs merges.txt. A rank file comes last.
FILE_NAMES: Final = ("tokenizer.json", "tekken.json", "vocab.json", "tokenizer.model")
NO_TOKENIZER: Final = (
    "contains no tokenizer. Expected tokenizer.json, tekken.json, vocab.json with merges.txt, tokenizer.model or "
    "*.tiktoken."
)

# Four times the largest known file (Gemma 3, 33 MB). A corpus passed by mistake fails without being read.
_MAX_BYTES: Final = 1 << 27


def load(path: Path, pattern: str | Pretokenizer | None, special_tokens: SpecialTokens) -> Parts:
    """Load the tokenizer in a file or folder; see Tokenizer.load. Errors begin with the path of the file."""
    # Reading creates hundreds of thousands of small objects and no cycles. Collecting would take a third of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(files_of(path), pattern, special_tokens)
    finally:
        if collecting:
            gc.enable()


def _load(files: list[Path], pattern: str | Pretokenizer | None, special_tokens: SpecialTokens) -> Parts:
    path = files[0]
    settings = folder.read_settings(file for file in files[1:] if pattern is None and file.suffix == ".json")
    if path.name.endswith("vocab.json"):
        return _load_pair(path, files[1], settings, pattern, special_tokens)
    data = read_file(path)
    is_json = path.suffix == ".json" or data[:1] == b"{"
    with within(path):
        if is_json or sentencepiece.is_model(data):
            if pattern is not None or special_tokens is not None:
                raise BadArgument(
                    "contains its own pattern and special tokens. Leave pattern and special_tokens out."
                )
            if not is_json:
                return folder.read_sentencepiece(data, settings)
            return tekken.read(data) if tekken.is_tekken(data) else huggingface.read(data)
        if pattern is None:
            _check_looks_like_ranks(data)
            raise BadArgument("a rank file contains no pattern. Pass pattern= (and special_tokens=).")
        return tiktoken.read(data, pattern, special_tokens)


def _load_pair(
    vocab_path: Path,
    merges_path: Path,
    settings: folder.Settings,
    pattern: str | Pretokenizer | None,
    special_tokens: SpecialTokens,
) -> Parts:
    vocab_data, merges_data = read_file(vocab_path), read_file(merges_path)
    with within(vocab_path):
        vocab = gpt2.read_vocab(vocab_data)
    with within(merges_path):
        merges = gpt2.read_merges(merges_data)
    with within(vocab_path.parent):
        if settings.is_empty:
            return gpt2.build(vocab, merges, pattern or "gpt2", special_tokens)
        if special_tokens is not None:
            raise BadArgument(
                f"{folder.CONFIG} and the files next to it set the special tokens. Leave special_tokens out, or pass "
                "pattern= too to ignore those files."
            )
        return folder.read_pair(vocab, merges, settings)


def _check_looks_like_ranks(data: bytes) -> None:
    """Raise BadTokenizer for a file of an unknown format."""
    first_line = data.lstrip()[:1000].split(b"\n")[0]
    try:
        if not len(tiktoken.read_entries(first_line)):
            raise BadTokenizer("empty file")
    except BadTokenizer:
        raise BadTokenizer(
            "not a tokenizer. Expected tokenizer.json, vocab.json with merges.txt, a rank file (*.tiktoken) or a "
            "SentencePiece model."
        ) from None


def files_of(path: Path) -> list[Path]:
    """Return the files that `load(path)` reads: a tokenizer file or a pair of files, and their configuration.

    Raise BadTokenizer for a folder without a tokenizer.
    """
    in_folder = path.is_dir()
    if in_folder:
        path = _in_folder(path)
    if path.name.endswith(("vocab.json", "merges.txt")):
        both = gpt2.both_paths(path)
        for one, other in (both, both[::-1]):
            if one.exists() and not other.exists():
                raise BadTokenizer(f"{one}: {other.name} is missing next to it")
        return [*both, *_companions(both[0], in_folder)]
    return [path, *_companions(path, in_folder)]


def _companions(path: Path, in_folder: bool) -> list[Path]:
    """Return the configuration files of a vocabulary. A SentencePiece model passed as a file is complete."""
    if path.name != "vocab.json" and not (path.name == "tokenizer.model" and in_folder):
        return []
    return [path.with_name(name) for name in folder.COMPANIONS if path.with_name(name).is_file()]


def _in_folder(path: Path) -> Path:
    names = [name for name in FILE_NAMES if (path / name).is_file()]
    if "vocab.json" in names and not (path / "merges.txt").is_file():
        names.remove("vocab.json")
    if {"tokenizer.json", "tekken.json"} <= {*names}:
        warnings.warn(
            f"{path}: contains tokenizer.json and tekken.json. Reading tokenizer.json; some Mistral repositories have "
            "a wrong pattern in it. Pass the path of tekken.json to read that file.",
            stacklevel=2,
        )
    if names:
        return path / names[0]
    ranks = list(path.glob("*.tiktoken"))
    if len(ranks) == 1:
        return ranks[0]
    if ranks:
        raise BadTokenizer(f"{path}: contains {len(ranks)} rank files (*.tiktoken). Name one of them.")
    if (path / "vocab.json").is_file():
        return path / "vocab.json"
    raise BadTokenizer(f"{path}: {NO_TOKENIZER}")


def read_file(path: Path) -> bytes:
    """Read a file. Raise BadTokenizer if it cannot be read, or is far larger than any tokenizer."""
    try:
        if path.is_file():
            if path.stat().st_size <= _MAX_BYTES:
                return path.read_bytes()
        else:  # a pipe, which has no size, or a device, which may have no end
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            if len(data) <= _MAX_BYTES:
                return data
    except OSError as error:
        raise BadTokenizer(f"{path}: {error.strerror}{_why_missing(path)}") from None
    raise BadTokenizer(f"{path}: too large for a tokenizer (more than {_MAX_BYTES:,} bytes)")


def _why_missing(path: Path) -> str:
    if path.exists():
        return ""
    if path.parts[0].startswith("~"):
        return f". Only the shell expands ~, and not in quotes. Pass {path.expanduser()}"
    return (
        ""
        if path.suffix or len(path.parts) > 1
        else ". For a tokenizer of the Hugging Face Hub, pass ORG/MODEL."
    )
