"""Loads the tokenizer of a run: a local file, a URL, a repository of the Hugging Face Hub, or a dataset's own."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bpe.errors import BadArgument, BadTokenizer
from bpe.formats.by_path import files_of, read_file
from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput, UsageError, not_regular, printable
from flat_tokens.opening import Dataset
from flat_tokens.storage.entries import LARGEST_TOKENIZER_BYTES
from flat_tokens.storage.files import AbsentFileError
from flat_tokens.storage.places import Place, StorePath, read_whole
from tokenmill.stores import NO_OPTIONS, is_url, open_store, shown_url, split_key

FILE_ENDS = (".json", ".model", ".tiktoken")  # of URLs of tokenizer files; other URLs are pages about a model


def load_tokenizer(
    name: str, storage_options: Mapping[str, str] = NO_OPTIONS
) -> tuple[Tokenizer, dict[str, str]]:
    """Return the tokenizer, ready to encode, and facts on its origin for the manifest.

    {"source_sha256": SHA-256 of its files, "source": "org/model@commit" on the Hugging Face Hub}
    """
    if is_url(name) and shown_url(name).endswith(FILE_ENDS):
        folder, key = split_key(name)
        try:
            with _local_copy(StorePath(open_store(folder, storage_options), key)) as path:
                return _load(path)
        except AbsentFileError:
            raise UsageError(f"{shown_url(name)}: no such object. Check --tokenizer.") from None
    path, source = locate(name)
    tokenizer, facts = _load(path)
    return tokenizer, facts if source is None else {**facts, "source": source}


def _load(path: Path) -> tuple[Tokenizer, dict[str, str]]:
    digest = hashlib.sha256()
    for file in files_of(path):
        if file.exists() and not file.is_file():
            raise not_regular(file)
        digest.update(read_file(file))
    try:
        tokenizer = Tokenizer.load(path)
    except BadArgument:
        raise UsageError(
            f"{path}: rank files contain neither a pattern nor special tokens. Convert it to a tokenizer.json: "
            "bpe.Tokenizer.load(path, pattern=..., special_tokens=...).save('tokenizer.json')."
        ) from None
    tokenizer.encode_documents(b"")  # builds the encoder before workers are forked
    return tokenizer, {"source_sha256": digest.hexdigest()}


def tokenizer_of(dataset: Dataset) -> Tokenizer | None:
    """Return the tokenizer that a dataset includes; None if it includes none.

    Raise BadInput if it is not the tokenizer that the manifest names.
    """
    place = dataset.tokenizer_path
    if place is None:
        return None
    known = (dataset.tokenizer_record or {}).get("sha256")
    with _local_copy(place) as path:
        if known is not None and hashlib.sha256(path.read_bytes()).hexdigest() != known:
            name = printable(str(place))
            raise BadInput(f"{name}: differs from the tokenizer in the manifest. Restore it.")
        return Tokenizer.load(path)


@contextmanager
def _local_copy(place: Place) -> Iterator[Path]:
    """Copy a file to a local path for the context, in which errors name the original."""
    data = read_whole(place, LARGEST_TOKENIZER_BYTES)
    with tempfile.TemporaryDirectory(prefix="tokenizer-") as folder:
        path = Path(folder, place.name)
        path.write_bytes(data)
        try:
            yield path
        except (BadTokenizer, UsageError) as error:
            kind = BadTokenizer if isinstance(error, BadTokenizer) else UsageError
            raise kind(str(error).replace(str(path), printable(str(place)))) from None
