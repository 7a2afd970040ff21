"""A tokenizer as one flat image: what is slow to find out is in it, so a worker process has it in 20 ms.

    magic, 8 bytes | bytes of header, image and warm cache, 3 x uint64 | XXH64 of all that follows, uint64 |
    header, JSON, padded with spaces to 8 bytes | the core's image (bpe/native/common/image.hpp) | a warm cache, or
    nothing

The warm cache holds common pretokens with their ids as the encoder gave them (`bpe.warm_cache`; CacheImage of
bpe/native/cache/pretoken_cache.hpp); every cache of an encoder starts as a copy of it. Read from a file it is mapped,
so all processes of a machine share its pages. It changes no ids.

An image is read by the form it was written in (`FORM` and the core's version in the header) or refused, never
converted. It is data, not code: the checksum finds damage, and whatever else stands in it, reading stays within its
memory. A cache file holds the SHA-256 of the file it was made from and of the arguments beside; where they differ, or
anything is wrong with it, it is made anew as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bpe import _core
from bpe.core_vocabulary import CoreVocabulary
from bpe.description import Parts
from bpe.errors import BadTokenizer, EnvironmentFailure, shown
from bpe.formats.by_path import files_of, load, read_file
from bpe.output_file import write_file
from bpe.pretokenizer import Pretokenizer, Stage
from bpe.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.counts import PretokenCounts

MAGIC: Final = b"tokmill\x00"
FORM: Final = 1  # raised when the header's fields change
SUFFIX: Final = ".compiled"
_START: Final = struct.Struct("<8sQQQQ")


def compile_parts(parts: Parts, source: str = "", warm_with: Buffer | PretokenCounts | None = None) -> bytes:
    """The image of a tokenizer; source: what `load_cached` is to compare; warm_with: as in `bpe.warm_cache`."""
    warm = b""
    if warm_with is not None:
        from bpe.warm_cache import warm_cache  # what counts is not for those who only encode

        warm = warm_cache(parts, warm_with)
    header: dict[str, Any] = {
        "form": [FORM, _core.IMAGE_VERSION, sys.byteorder],
        "source": source,
        "special_tokens": parts.vocabulary.special_tokens,
        "stages": [[stage.expression, stage.unmatched] for stage in parts.pretokenizer.stages],
        "whole_pretokens": parts.vocabulary.whole_pretokens,
        "normalizer": parts.normalizer,
        "plain_added_tokens": sorted(parts.plain_added_tokens),
        "template": parts.template,
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    image = parts.encoder.image()
    body = text + image + warm
    return _START.pack(MAGIC, len(text), len(image), len(warm), _core.xxh64(body)) + body


def read_compiled(image: Buffer, source: str | None = None) -> Parts:
    """The tokenizer of an image; BadTokenizer says what is wrong with it. source: refuse one of another."""
    view = memoryview(image).cast("B")
    if len(view) < _START.size or bytes(view[:8]) != MAGIC:
        raise BadTokenizer("this is no compiled tokenizer")
    _, header_bytes, image_bytes, warm_bytes, checksum = _START.unpack_from(view)
    body = view[_START.size :]
    if header_bytes + image_bytes + warm_bytes != len(body):
        raise BadTokenizer("the compiled tokenizer is cut short; compile it again")
    if _core.xxh64(body) != checksum:
        raise BadTokenizer("the compiled tokenizer is damaged; compile it again")
    try:
        return _parts_of(body, header_bytes, image_bytes, source)
    except BadTokenizer:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = shown(str(error), 100)
        raise BadTokenizer(f"the compiled tokenizer is damaged ({what}); compile it again") from None


def _parts_of(body: memoryview, header_bytes: int, image_bytes: int, source: str | None) -> Parts:
    header = json.loads(bytes(body[:header_bytes]))
    form = header["form"]
    if form != [FORM, _core.IMAGE_VERSION, sys.byteorder]:
        raise BadTokenizer(f"the compiled tokenizer has another version's form, {form}; compile it again")
    if source is not None and header["source"] != source:
        raise BadTokenizer("the compiled tokenizer was made from another file or with other arguments")
    specials: dict[str, int] = header["special_tokens"]
    pretokenizer = Pretokenizer(tuple(Stage(*stage) for stage in header["stages"]))
    encoder = _core.Encoder.from_image(
        body[header_bytes : header_bytes + image_bytes],
        {text.encode(): id_ for text, id_ in specials.items()},
        pretokenizer.core_pattern,
        header["whole_pretokens"],
    )
    warm = body[header_bytes + image_bytes :]
    if len(warm):
        encoder.start_from_image(warm)
    return Parts(
        CoreVocabulary(encoder, specials, header["whole_pretokens"]),
        pretokenizer,
        header["normalizer"],
        frozenset(header["plain_added_tokens"]),
        header["template"],
    )


def load_cached(
    path: Path,
    pattern: str | Pretokenizer | None,
    special_tokens: SpecialTokens,
    write: bool = True,
    warm_with: Buffer | PretokenCounts | None = None,
) -> Parts:
    """As `formats.by_path.load`, by the image beside the file if it is of this very file; else the image is written.

    write: False leaves the folder as it is. warm_with: write it anew in any case, with a warm cache of this.
    """
    files = files_of(path)
    source = _source(files, pattern, special_tokens)
    cached = files[0].with_name(files[0].name + SUFFIX)
    if warm_with is None or not write:
        # Whatever a cache file holds, the tokenizer's own file has the last word.
        with suppress(BadTokenizer, OSError, ValueError):  # ValueError: an empty file can't be mapped
            return read_compiled(_mapped(cached), source)
    parts = load(path, pattern, special_tokens)
    if not write or _source(files, pattern, special_tokens) != source:
        return parts  # written to in the meantime: which of the two it is, is not known
    with suppress(EnvironmentFailure):  # a folder that can't be written
        write_file(cached, compile_parts(parts, source, warm_with))
    return parts


def compile_beside(path: Path, warm_with: Buffer | PretokenCounts | None = None) -> Path:
    """Write the compiled form of a tokenizer.json beside it, for `load_cached`; its path.

    The file must not be written to meanwhile. EnvironmentFailure where the folder can't be written.
    """
    cached = path.with_name(path.name + SUFFIX)
    write_file(cached, compile_parts(load(path, None, None), _source([path], None, None), warm_with))
    return cached


def _mapped(path: Path) -> mmap.mmap:
    """The file's bytes, read-only and shared. Files are replaced, never written in place (`write_file`)."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _source(files: list[Path], pattern: str | Pretokenizer | None, special_tokens: SpecialTokens) -> str:
    """SHA-256 of all that decides what a tokenizer is that is loaded from files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(read_file(file)).digest())
    specials = list(special_tokens.items()) if isinstance(special_tokens, dict) else special_tokens
    digest.update(repr((pattern, specials)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
