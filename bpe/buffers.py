"""Validation of arguments: text, buffers, offsets, output arrays and IDs.

An array of the wrong type raises BadArgument, since its bytes would otherwise be encoded silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, InvalidText, lone_surrogate, shown
from bpe.ragged import Ragged
from tokenmill.inputs._core import validate_utf8

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CALL_ENCODE_BATCH: Final = ". Call encode_batch for a list of texts."
_OFFSETS: Final = "integers of at least 0, such as [0, 3, 7] for texts of 3 and 4 bytes"
_IDS: Final = "a list or an array of integers"


def text_bytes(text: object, where: str) -> bytes:
    """Return the UTF-8 of a text. Raise InvalidText for a lone surrogate, TypeError unless it is a str."""
    if not isinstance(text, str):
        fix = ""
        if isinstance(text, (bytes, bytearray, memoryview)):
            fix = ". Decode it, or pass UTF-8 to encode_documents."
        elif where == "text" and isinstance(text, (list, tuple)):
            fix = _CALL_ENCODE_BATCH
        raise TypeError(f"{where}: must be a str (got {type(text).__name__}){fix}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(lone_surrogate(where, error)) from None


def not_text(text: object, where: str) -> Exception:
    """Return the error for an argument that the core rejected as a text."""
    try:
        text_bytes(text, where)
    except (InvalidText, TypeError) as error:
        return error
    return BadArgument(f"{where}: cannot be encoded")


def check_bytes(buffer: Buffer) -> None:
    """Raise BadArgument unless the buffer is contiguous and of bytes: bytes, bytearray, mmap or uint8[n]."""
    if isinstance(buffer, bytes):
        return
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        fix = _CALL_ENCODE_BATCH if isinstance(buffer, (list, tuple)) else ""
        fix = ". Pass text.encode()." if isinstance(buffer, str) else fix
        raise _wrong("text", "UTF-8 in a buffer such as bytes", buffer, fix) from None
    if view.itemsize != 1 or view.ndim != 1 or not view.contiguous:
        raise _wrong("text", "a contiguous buffer of bytes", buffer)


def check_out(out: NDArray[np.uint32] | None) -> None:
    """Raise BadArgument unless the array is None or a contiguous, writable uint32[n]. The core checks its length."""
    if out is None:
        return
    if not isinstance(out, np.ndarray) or out.dtype != np.uint32 or out.ndim != 1:
        raise _wrong("out", "uint32[n]", out)
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise BadArgument("out: must be contiguous and writable")


def offsets_from(offsets: Any) -> NDArray[np.uint64]:
    """Return offsets as contiguous uint64. Raise BadArgument for negative numbers. The core checks the order."""
    if isinstance(offsets, np.ndarray) and offsets.dtype == np.uint64:
        array = offsets
    else:
        try:
            array = np.asarray(offsets)
        except ValueError:
            raise _wrong("offsets", _OFFSETS, offsets) from None
        if array.dtype.kind not in "iu" or (array.size and array.min() < 0):
            raise _wrong("offsets", _OFFSETS, offsets)
        array = array.astype(np.uint64)
    if array.ndim != 1 or array.size == 0:
        raise _wrong("offsets", "one more than there are documents", offsets)
    return np.ascontiguousarray(array)


def separator_bytes(separator: object) -> bytes:
    """Return the UTF-8 of a separator. Raise BadArgument if it is empty or not valid UTF-8."""
    if not isinstance(separator, (str, bytes)):
        raise _wrong("separator", "str or bytes", separator)
    try:
        found = separator.encode() if isinstance(separator, str) else separator
    except UnicodeEncodeError as error:
        raise BadArgument(lone_surrogate("separator", error)) from None
    if not found:
        raise BadArgument("separator: must not be empty")
    if validate_utf8(found) >= 0:
        raise BadArgument(f"separator: must be valid UTF-8 (got {shown(found)})")
    return found


def unknown_id(where: str, id_: object) -> BadArgument:
    """Return the error for an ID that the vocabulary lacks."""
    return BadArgument(f"{where}: not an ID of this vocabulary (got {shown(id_)})")


def _wrong(name: str, must: str, value: object, fix: str = "") -> BadArgument:
    return BadArgument(f"{name}: must be {must} (got {_named(value)}){fix}")


def bad_ids(ids: object, error: Exception, errors: object = "") -> Exception:
    """Return the error for IDs, or an error handler, that the core rejected with `error`."""
    if isinstance(error, UnicodeDecodeError):
        return error
    if not isinstance(errors, str):
        return BadArgument(f'errors: must be a str such as "replace" (got {shown(errors)})')
    rows = ". Call decode_batch for rows of IDs."
    if isinstance(ids, np.ndarray) and (ids.ndim != 1 or ids.dtype.kind not in "iub"):
        return _wrong("ids", "one-dimensional integers", ids, rows if ids.ndim == 2 else "")
    if isinstance(ids, str):
        return BadArgument(f"ids: must be {_IDS} (got {shown(ids)}). Call encode for the IDs of a text.")
    if isinstance(ids, (list, np.ndarray)):
        for place, id_ in enumerate(ids):
            if isinstance(id_, np.bool_) or not hasattr(id_, "__index__"):
                fix = rows if isinstance(id_, (list, tuple, np.ndarray)) else ""
                return BadArgument(f"ids[{place}]: must be an integer (got {shown(id_)}){fix}")
    elif isinstance(error, TypeError):
        fix = f". Pass [{ids}]." if isinstance(ids, int) else rows if isinstance(ids, Ragged) else ""
        return _wrong("ids", _IDS, ids, fix)
    return BadArgument(str(error).splitlines()[0])


def tokens_from(tokens: Any) -> NDArray[np.uint32]:
    """Return IDs as uint32[n]. Raise BadArgument for an ID beyond 32 bits."""
    if isinstance(tokens, np.ndarray) and tokens.dtype == np.uint32:
        return tokens
    array = np.asarray(tokens)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _wrong("tokens", "one-dimensional integers", tokens)
    ids = array.astype(np.uint32)
    if len(wrong := np.flatnonzero(ids != array)):
        raise unknown_id(f"tokens[{wrong[0]}]", array[wrong[0]])
    return ids


def _named(value: object) -> str:
    if isinstance(value, np.ndarray):
        strided = "" if value.flags.c_contiguous else ", not contiguous"
        return f"{value.dtype}{list(value.shape)}{strided}"  # the name of a dtype lacks the byte order
    return f"{type(value).__name__}"
