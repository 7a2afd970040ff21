"""A tokenizer as one flat image: what is slow to find out is in it, so a worker process has it in 20 ms.

    magic, 8 bytes | bytes of header and image, 2 x uint64 | XXH64 of all that follows, uint64 |
    header, JSON, padded with spaces to 8 bytes | the core's image (native/common/image.hpp)

An image is what pickling sends to other processes. It is read by the form it was written in (`FORM` and the core's
version in the header) or refused, never converted. It is data, not code: the checksum finds damage, and whatever else
stands in it, reading stays within its memory. No file is made of it: the ids would be those of the image, whatever the
tokenizer's own file says.
"""

from __future__ import annotations

import json
import struct
import sys
from dataclasses import asdict, astuple
from typing import TYPE_CHECKING, Any, Final

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, shown
from bpe.formats.huggingface_decoder import decoder_from_json, decoder_to_json
from bpe.formats.huggingface_normalizer import normalizer_from_json, normalizer_to_json
from bpe.parts import Parts, core_components
from bpe.post_processing import PostProcessor
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import TextRules, Vocabulary
from tokenmill.inputs._core import xxh64

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAGIC: Final = b"tokmill\x00"
FORM: Final = 7  # raised when the header's fields change
_START: Final = struct.Struct("<8sQQQ")


def compile_parts(parts: Parts) -> bytes:
    """The image of a tokenizer."""
    header: dict[str, Any] = {
        "form": [FORM, _core.IMAGE_VERSION, sys.byteorder],
        "added_tokens": [astuple(token) for token in parts.tokens],
        "pretokenizer": parts.pretokenizer.to_data(),
        "ignore_merges": parts.vocabulary.ignore_merges,
        "normalizer": normalizer_to_json(parts.normalizer),
        "post_processor": None if parts.post_processor is None else astuple(parts.post_processor),
        "truncation": parts.truncation,
        "padding": parts.padding,
        "decoded_only": [*parts.vocabulary.decoded_only.items()],
        "text_rules": None if parts.vocabulary.text_rules is None else asdict(parts.vocabulary.text_rules),
        "decoder": None if parts.decoder is None else [decoder_to_json(parts.decoder)],
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    image = parts.core.image()
    body = text + image
    return _START.pack(MAGIC, len(text), len(image), xxh64(body)) + body


def read_compiled(image: Buffer) -> Parts:
    """The tokenizer of an image; BadTokenizer says what is wrong with it."""
    view = memoryview(image).cast("B")
    if len(view) < _START.size or bytes(view[:8]) != MAGIC:
        raise BadTokenizer("compiled tokenizer: not the format of a compiled tokenizer")
    _, header_bytes, image_bytes, checksum = _START.unpack_from(view)
    body = view[_START.size :]
    if header_bytes + image_bytes != len(body):
        raise BadTokenizer("compiled tokenizer: truncated. Compile it again.")
    if xxh64(body) != checksum:
        raise BadTokenizer("compiled tokenizer: wrong checksum. Compile it again.")
    try:
        return _parts_of(body, header_bytes)
    except BadTokenizer:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = shown(str(error), 100)
        raise BadTokenizer(f"compiled tokenizer: damaged ({what}). Compile it again.") from None


def _parts_of(body: memoryview, header_bytes: int) -> Parts:
    header = json.loads(bytes(body[:header_bytes]))
    form = header["form"]
    if form != [FORM, _core.IMAGE_VERSION, sys.byteorder]:
        raise BadTokenizer(
            f"compiled tokenizer: written by an incompatible version (got format {form}). Compile it again."
        )
    added = tuple(AddedToken(*token) for token in header["added_tokens"])
    pretokenizer = Pretokenizer.from_data(header["pretokenizer"])
    normalizer = normalizer_from_json(header["normalizer"])
    post = header["post_processor"]
    decoded_only = {int(id_): text for id_, text in header["decoded_only"]}
    text_rules = None if header["text_rules"] is None else TextRules(**header["text_rules"])
    decoder = None if header["decoder"] is None else decoder_from_json(*header["decoder"])
    core = _core.TokenizerCore.from_image(
        body[header_bytes:],
        ignore_merges=header["ignore_merges"],
        **core_components(pretokenizer, normalizer, added, decoded_only, text_rules, decoder),
    )
    special_tokens = {token.text: token.id for token in added}
    return Parts(
        Vocabulary(core, special_tokens, header["ignore_merges"], text_rules, decoded_only),
        pretokenizer,
        normalizer,
        added,
        PostProcessor(post[0], tuple(post[1]), tuple(post[2])) if post else None,
        header["truncation"],
        header["padding"],
        decoder,
    )
