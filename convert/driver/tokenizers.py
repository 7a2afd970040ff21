"""The tokenizer of a run: a file here or on a store, one of the Hugging Face Hub, or what a dataset brought along."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.errors import BadArgument, BadTokenizer
from bpe.formats.by_path import files_of, read_file
from bpe.hub import locate
from bpe.tokenizer import Tokenizer
from convert.errors import BadInput, UsageError, not_regular, printable
from tokenmill.stores import NO_OPTIONS, is_url, open_store, shown_url, split_key

if TYPE_CHECKING:
    from flat_tokens.opening import Dataset
    from flat_tokens.storage.places import Place

FILE_ENDS = (".json", ".model", ".tiktoken")  # of a URL that names a file, and no page about a model


def load_tokenizer(
    name: str, storage_options: Mapping[str, str] = NO_OPTIONS
) -> tuple[Tokenizer, dict[str, str]]:
    """The tokenizer, ready to encode, and what the manifest says of its source.

    {"source_sha256": the SHA-256 of the file or files it was read from}, and "source": "org/model@commit" for one of
    the Hugging Face Hub. name: of a store by its URL; storage_options: of that store.

    The digest of the file stands in for the fingerprint where only equality counts: the fingerprint needs the
    canonical tokenizer.json, which is made while the workers encode.
    """
    if is_url(name) and shown_url(name).endswith(FILE_ENDS):
        from flat_tokens.storage.files import AbsentFileError
        from flat_tokens.storage.places import StorePath

        folder, key = split_key(name)
        try:
            with _copy_of(StorePath(open_store(folder, storage_options), key)) as path:
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
    tokenizer.encode_documents(b"")  # builds the encoder, once, before the workers are forked
    return tokenizer, {"source_sha256": digest.hexdigest()}


def tokenizer_of(dataset: Dataset) -> Tokenizer | None:
    """The tokenizer that a dataset brought along, None if it brought none; BadInput if it is not the one that the
    manifest names."""
    place = dataset.tokenizer_path
    if place is None:
        return None
    known = (dataset.tokenizer_record or {}).get("sha256")
    with _copy_of(place) as path:
        if known is not None and hashlib.sha256(path.read_bytes()).hexdigest() != known:
            raise BadInput(
                f"{printable(str(place))}: differs from the tokenizer in the manifest. Restore it."
            )
        return Tokenizer.load(path)


@contextmanager
def _copy_of(place: Place) -> Iterator[Path]:
    """A file that holds what is at a place, in a context in which errors name the place."""
    from flat_tokens.storage.entries import LARGEST_TOKENIZER_BYTES
    from flat_tokens.storage.places import read_whole

    data = read_whole(place, LARGEST_TOKENIZER_BYTES)
    with tempfile.TemporaryDirectory(prefix="tokenizer-") as folder:
        path = Path(folder, place.name)
        path.write_bytes(data)
        try:
            yield path
        except (BadTokenizer, UsageError) as error:
            kind = BadTokenizer if isinstance(error, BadTokenizer) else UsageError
            raise kind(str(error).replace(str(path), printable(str(place)))) from None
