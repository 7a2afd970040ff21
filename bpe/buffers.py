"""What callers hand over: text, text as bytes, offsets into it, an array to write ids to, ids. BadArgument for others,
since an array of another type, read as bytes, would be encoded without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, InvalidText, shown
from bpe.ragged import Ragged
from tokenmill.inputs._core import validate_utf8

if TYPE_CHECKING:
    from typing_extensions import Buffer


def text_bytes(text: object, where: str) -> bytes:
    """The UTF-8 of a text, or InvalidText for a lone surrogate, TypeError for what is no text."""
    if not isinstance(text, str):
        way = ""
        if isinstance(text, (bytes, bytearray, memoryview)):
            way = "; decode it, or give UTF-8 with its documents to encode_documents"
        elif where == "text" and isinstance(text, (list, tuple)):
            way = "; encode_batch takes a list of texts"
        raise TypeError(f"{where} must be a str, got {type(text).__name__}{way}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(
            f"{where}: character {error.start} ({shown(text[error.start])}) is a lone surrogate, which UTF-8 can't hold"
        ) from None


def not_text(text: object, where: str) -> Exception:
    """The error for what the core did not take as a text."""
    try:
        text_bytes(text, where)
    except (InvalidText, TypeError) as error:
        return error
    return BadArgument(f"{where} could not be encoded")


def check_bytes(buffer: Buffer) -> None:
    """The buffer is contiguous and of bytes: bytes, bytearray, mmap, uint8[n]."""
    if isinstance(buffer, bytes):
        return
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        way = "; encode_batch takes a list of texts" if isinstance(buffer, (list, tuple)) else ""
        way = "; give text.encode()" if isinstance(buffer, str) else way
        raise BadArgument(
            f"the text must be UTF-8 in a buffer such as bytes, got {_named(buffer)}{way}"
        ) from None
    if view.itemsize != 1 or view.ndim != 1 or not view.contiguous:
        raise BadArgument(f"the text must be a contiguous buffer of bytes, got {_named(buffer)}")


def check_out(out: NDArray[np.uint32] | None) -> None:
    """The array, if there is one, is uint32[n] that can be written end to end. How long it must be the core knows."""
    if out is None:
        return
    if not isinstance(out, np.ndarray) or out.dtype != np.uint32 or out.ndim != 1:
        raise BadArgument(f"out must be uint32[n], got {_named(out)}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise BadArgument("out must be contiguous and writeable")


def offsets_from(offsets: Any) -> NDArray[np.uint64]:
    """Offsets as the core takes them, from any whole numbers from 0 on; their order the core checks."""
    if isinstance(offsets, np.ndarray) and offsets.dtype == np.uint64:
        array = offsets
    else:
        try:
            array = np.asarray(offsets)
        except ValueError:
            raise BadArgument(f"offsets must be whole numbers, got {_named(offsets)}") from None
        if array.dtype.kind not in "iu" or (array.size and array.min() < 0):
            raise BadArgument(
                "offsets must be whole numbers from 0 on, such as [0, 3, 7] for texts of 3 and 4 bytes, got "
                f"{_named(offsets)}"
            )
        array = array.astype(np.uint64)
    if array.ndim != 1 or array.size == 0:
        raise BadArgument(f"offsets must be one more than there are documents, got {_named(offsets)}")
    return np.ascontiguousarray(array)


def separator_bytes(separator: object) -> bytes:
    """Return the UTF-8 of a separator. Raise BadArgument if it is empty or not valid UTF-8."""
    if not isinstance(separator, (str, bytes)):
        raise BadArgument(f"separator must be str or bytes, got {_named(separator)}")
    try:
        found = separator.encode() if isinstance(separator, str) else separator
    except UnicodeEncodeError:
        raise BadArgument("separator holds a lone surrogate, which UTF-8 can't hold") from None
    if not found:
        raise BadArgument("separator must not be empty")
    if validate_utf8(found) >= 0:
        raise BadArgument(f"separator must be valid UTF-8, got {found!r}")
    return found


def bad_ids(ids: object, error: Exception, errors: object = "") -> BadArgument:
    """What was wrong with ids, or the name of an error handler, that the core refused with this error."""
    if not isinstance(errors, str):
        return BadArgument(f'errors must be a str such as "replace", got {shown(errors)}')
    rows = "; decode_batch takes rows of ids"
    if isinstance(ids, np.ndarray) and (ids.ndim != 1 or ids.dtype.kind not in "iub"):
        way = rows if ids.ndim == 2 else ""
        return BadArgument(f"ids must be whole numbers in one dimension, got {_named(ids)}{way}")
    if isinstance(ids, str):
        return BadArgument(
            f"ids must be a list or an array of whole numbers, got the text {shown(ids)}; encode makes ids of text"
        )
    if isinstance(ids, (list, np.ndarray)):
        for place, id_ in enumerate(ids):
            if isinstance(id_, np.bool_) or not hasattr(id_, "__index__"):
                way = rows if isinstance(id_, (list, tuple, np.ndarray)) else ""
                return BadArgument(f"ids[{place}] must be a whole number, got {shown(id_)}{way}")
    elif isinstance(error, TypeError):
        way = f"; give [{ids}]" if isinstance(ids, int) else rows if isinstance(ids, Ragged) else ""
        return BadArgument(f"ids must be a list or an array of whole numbers, got {_named(ids)}{way}")
    return BadArgument(str(error).splitlines()[0])


def tokens_from(tokens: Any) -> NDArray[np.uint32]:
    """Ids as the core takes rows of them, from any whole numbers; none is cut to 32 bits."""
    if isinstance(tokens, np.ndarray) and tokens.dtype == np.uint32:
        return tokens
    array = np.asarray(tokens)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadArgument(f"tokens must be whole numbers in one dimension, got {_named(tokens)}")
    ids = array.astype(np.uint32)
    if len(wrong := np.flatnonzero(ids != array)):
        raise BadArgument(f"tokens[{wrong[0]}] = {array[wrong[0]]} is not an id of this vocabulary")
    return ids


def _named(value: object) -> str:
    if isinstance(value, np.ndarray):
        strided = "" if value.flags.c_contiguous else ", not contiguous"
        return f"{value.dtype}{list(value.shape)}{strided}"  # not its name, which tells no byte order
    return f"{type(value).__name__}"
