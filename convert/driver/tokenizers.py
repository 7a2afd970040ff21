"""Loads the tokenizer of a run: a local file, a URL, or a repository of the Hugging Face Hub."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bpe.errors import BadArgument, BadTokenizer
from bpe.formats.by_path import files_of, read_file
from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput, UsageError, not_regular, printable
from flat_tokens.storage.entries import LARGEST_TOKENIZER_BYTES
from flat_tokens.storage.files import AbsentFileError
from flat_tokens.storage.places import StorePath, read_whole
from tokenmill.stores import NO_OPTIONS, is_url, open_store, shown_url, split_key

FILE_ENDS = (".json", ".model", ".tiktoken")  # of URLs of tokenizer files; other URLs are pages about a model


def load_tokenizer(
    name: str, storage_options: Mapping[str, str] = NO_OPTIONS, known: str | None = None
) -> tuple[Tokenizer, dict[str, str]]:
    """Return the tokenizer, ready to encode, and facts on its origin for the manifest.

    {"source_sha256": SHA-256 of its files, "source": "org/model@commit" on the Hugging Face Hub}

    known: raise BadInput if its files have another SHA-256.
    """
    if not (is_url(name) and shown_url(name).endswith(FILE_ENDS)):
        path, source = locate(name)
        tokenizer, facts = _load(path, known)
        return tokenizer, facts if source is None else {**facts, "source": source}
    folder, key = split_key(name)
    place = StorePath(open_store(folder, storage_options), key)
    with tempfile.TemporaryDirectory(prefix="tokenizer-") as temporary:
        path = Path(temporary, place.name)
        try:
            path.write_bytes(read_whole(place, LARGEST_TOKENIZER_BYTES))
            return _load(path, known)
        except AbsentFileError:
            raise UsageError(f"{shown_url(name)}: no such object. Check --tokenizer.") from None
        except (BadTokenizer, UsageError) as error:  # about the copy
            kind = BadTokenizer if isinstance(error, BadTokenizer) else UsageError
            raise kind(str(error).replace(str(path), printable(str(place)))) from None


def _load(path: Path, known: str | None) -> tuple[Tokenizer, dict[str, str]]:
    digest = hashlib.sha256()
    for file in files_of(path):
        if file.exists() and not file.is_file():
            raise not_regular(file)
        digest.update(read_file(file))
    if known not in (None, digest.hexdigest()):
        raise BadInput(f"{printable(str(path))}: differs from the tokenizer in the manifest. Restore it.")
    try:
        tokenizer = Tokenizer.load(path)
    except BadArgument:
        raise UsageError(
            f"{path}: rank files contain neither a pattern nor special tokens. Convert it to a tokenizer.json: "
            "bpe.Tokenizer.load(path, pattern=..., special_tokens=...).save('tokenizer.json')."
        ) from None
    tokenizer.encode_documents(b"")  # builds the encoder before workers are forked
    return tokenizer, {"source_sha256": digest.hexdigest()}
