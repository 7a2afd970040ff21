"""What a failed request means, as one line: the URL, the cause, what to do.

A client's own message is never shown whole: it may hold a signed URL. Of it are taken the status, the error code and
message of the answer (XML, as S3, GCS and Azure send it) and the system's reason for a broken connection.
"""

from __future__ import annotations

import re

from tokenmill.errors import printable
from tokenmill.stores.errors import (
    StoreDenied,
    StoreError,
    StoreNotFound,
    UnknownScheme,
    already_there,
    changed,
    not_found,
    unknown_option,
)

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([\w.]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<>]{1,200})</Message>")
_SYSTEM_REASON = re.compile(r'message: "([^"]{1,120})"')
_NAMED_PATH = re.compile(r'Path "([^"]{1,200})"')  # of an error about the name of an object
_DETAILS = "\n\nDebug source"

_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "hf": "HF_TOKEN",
}
_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "az": "AZURE_STORAGE_ENDPOINT", "hf": "HF_ENDPOINT"}
_EXPIRED = {"ExpiredToken", "TokenRefreshRequired", "RequestExpired"}
_WRONG_CREDENTIALS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "AuthenticationFailed",
    "InvalidSecurity",
    "UnrecognizedClientException",
}
_WRONG_REGION = {
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "TemporaryRedirect",
}
_NO_CONTAINER = {"NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "AccountNotFound"}


def status_of(error: BaseException) -> int:
    """The HTTP status of the answer that an error is made of, 0 if there was no answer."""
    found = _STATUS.search(str(error).split(_DETAILS)[0])
    return int(found[1]) if found else 0


def knows_no_range(error: BaseException) -> bool:
    """Whether what answered gives no such part of an object, or no parts at all."""
    return type(error).__name__ == "NotSupportedError" or "non-partial response" in str(error)


def code_of(error: BaseException) -> str:
    """The error code in the answer's body, "" if it has none, as an answer to HEAD."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def explained(error: BaseException, shown: str, scheme: str) -> StoreError:
    """The error of this package that a client's error means for the object or container `shown`."""
    kind, text = type(error).__name__, str(error)
    status, code = status_of(error), code_of(error)
    variables = _CREDENTIALS.get(scheme, "--storage-option")
    said = f" ({code})" if code else f" (status {status})" if status else ""
    if kind == "AlreadyExistsError":
        return already_there(shown)
    if kind in ("PreconditionError", "NotModifiedError"):
        return changed(shown)
    if code in _NO_CONTAINER:
        where = f" and {_ENDPOINTS[scheme]}" if scheme in _ENDPOINTS else ""
        return StoreNotFound(f"{shown}: no such bucket{said}. Check its name{where}.")
    if code in _EXPIRED:
        return StoreDenied(
            f"{shown}: expired credentials{said}. Renew {variables} and run the command again."
        )
    if code in _WRONG_CREDENTIALS:
        return StoreDenied(f"{shown}: rejected credentials{said}. Check {variables}.")
    if code in _WRONG_REGION or "incorrectly configured region" in text or status == 301:
        return StoreDenied(
            f"{shown}: bucket in another region{said}{_message(text)}. Set AWS_REGION to the region of the bucket."
        )
    if code == "RequestTimeTooSkewed":
        return StoreDenied(f"{shown}: wrong clock on this machine{said}. Set the clock.")
    if "169.254.169.254" in text or "metadata.google.internal" in text:
        return StoreDenied(
            f"{shown}: no credentials found. Set {variables}, or pass --storage-option skip_signature=true for a "
            f"public bucket."
        )
    if isinstance(error, FileNotFoundError) or kind == "NotFoundError" or status == 404:
        return not_found(shown)
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        return StoreDenied(f"{shown}: permission denied{said}. Check {variables} and their permissions.")
    if status == 400:
        return StoreDenied(
            f"{shown}: rejected request{said}{_message(text)}. Check {variables} and the region."
        )
    if knows_no_range(error):
        return StoreError(
            f"{shown}: the server does not support range requests (status 206). Download the file first."
        )
    if isinstance(error, ValueError) or kind == "InvalidPathError":
        named = _NAMED_PATH.search(text)
        name = f" {printable(named[1])!r}" if named else ""
        return StoreError(
            f"{shown}: object name{name} with an empty part ('//'), '.', '..' or a control character. Rename it."
        )
    return StoreError(f"{shown}: {_reason(text, status, said)}")


def explained_setting(error: BaseException, shown: str, options: tuple[tuple[str, str], ...]) -> StoreError:
    """The error for settings with which no client can be made; names the option, never its value."""
    text = str(error).split(_DETAILS)[0]
    found = re.search(r"[kK]ey: '?(\w+)", text)
    if found and type(error).__name__ in ("UnknownConfigurationKeyError", "ValueError"):
        return unknown_option(shown, found[1])
    if "Account must be specified" in text:
        return StoreDenied(f"{shown}: missing account name. Set AZURE_STORAGE_ACCOUNT_NAME.")
    names = ", ".join(name for name, _ in options) or "the environment variables of the store"
    for _, value in options:
        text = text.replace(value, "…") if value else text
    return UnknownScheme(
        f"{shown}: invalid settings: {text.splitlines()[0].removesuffix('.')}. Check {names}."
    )


def _message(text: str) -> str:
    found = _MESSAGE.search(text)
    return f": {' '.join(found[1].split()).removesuffix('.')}" if found else ""


def _reason(text: str, status: int, said: str) -> str:
    """Why a request failed that was tried again and again."""
    if status:
        return f"server error after several retries{said}{_message(text)}. Run the command again later."
    system = _SYSTEM_REASON.findall(text)
    if "TimedOut" in text or "Timeout" in text or "timed out" in text:
        return "timeout after several retries. Check the network and the endpoint."
    why = f" ({system[-1]})" if system else ""
    return f"connection failed after several retries{why}. Check the network, the host name and the endpoint."
