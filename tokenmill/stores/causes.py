"""What a failed request means, as one line: the URL, the cause, what to do.

A client's own message is never shown whole: it may hold a signed URL. Of it are taken the status, the error code and
message of the answer (XML, as S3, GCS and Azure send it) and the system's reason for a broken connection.
"""

from __future__ import annotations

import re

from tokenmill.errors import printable
from tokenmill.stores.errors import (
    AlreadyThere,
    StoreChanged,
    StoreDenied,
    StoreError,
    StoreNotFound,
    UnknownScheme,
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
        return AlreadyThere(f"{shown} exists already; another run has written it")
    if kind in ("PreconditionError", "NotModifiedError"):
        return StoreChanged(f"{shown} was written to since the work was planned; run the command again")
    if code in _NO_CONTAINER:
        where = f" and {_ENDPOINTS[scheme]}" if scheme in _ENDPOINTS else ""
        return StoreNotFound(f"{shown}: there is no such bucket{said}; check its name{where}")
    if code in _EXPIRED:
        return StoreDenied(
            f"{shown}: the credentials have expired{said}; renew {variables} and run the command again"
        )
    if code in _WRONG_CREDENTIALS:
        return StoreDenied(f"{shown}: the store does not accept the credentials{said}; check {variables}")
    if code in _WRONG_REGION or "incorrectly configured region" in text or status == 301:
        return StoreDenied(
            f"{shown}: the bucket lies in another region{said}{_message(text)}; set AWS_REGION to its own"
        )
    if code == "RequestTimeTooSkewed":
        return StoreDenied(f"{shown}: the clock of this machine is wrong{said}; set it")
    if "169.254.169.254" in text or "metadata.google.internal" in text:
        return StoreDenied(
            f"{shown}: no credentials were found; set {variables}, or --storage-option skip_signature=true for a "
            f"public bucket"
        )
    if isinstance(error, FileNotFoundError) or kind == "NotFoundError" or status == 404:
        return StoreNotFound(f"{shown} is not there; was it removed or renamed?")
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        return StoreDenied(f"{shown}: permission denied{said}; check {variables} and what they allow")
    if status == 400:
        return StoreDenied(
            f"{shown}: the store refuses the request{said}{_message(text)}; check {variables} and the region"
        )
    if knows_no_range(error):
        return StoreError(
            f"{shown}: the server does not give parts of a file (status 206), which reading needs; download it first"
        )
    if isinstance(error, ValueError) or kind == "InvalidPathError":
        named = _NAMED_PATH.search(text)
        name = f" {printable(named[1])!r}" if named else ""
        return StoreError(
            f"{shown}: the name of an object{name} has an empty part ('//'), the part '.' or '..', or a control "
            "character; rename it"
        )
    return StoreError(f"{shown}: {_reason(text, status, said)}")


def explained_setting(error: BaseException, shown: str, options: tuple[tuple[str, str], ...]) -> StoreError:
    """The error for settings with which no client can be made; names the option, never its value."""
    text = str(error).split(_DETAILS)[0]
    found = re.search(r"[kK]ey: '?(\w+)", text)
    if found and type(error).__name__ in ("UnknownConfigurationKeyError", "ValueError"):
        return UnknownScheme(
            f"{shown}: there is no storage option {found[1]!r} for this store; leave it away"
        )
    if "Account must be specified" in text:
        return StoreDenied(f"{shown}: no account is named; set AZURE_STORAGE_ACCOUNT_NAME")
    names = ", ".join(name for name, _ in options) or "the environment variables of the store"
    for _, value in options:
        text = text.replace(value, "…") if value else text
    return UnknownScheme(f"{shown}: these settings do not work: {text.splitlines()[0]}; check {names}")


def _message(text: str) -> str:
    found = _MESSAGE.search(text)
    return f": {' '.join(found[1].split())}" if found else ""


def _reason(text: str, status: int, said: str) -> str:
    """Why a request failed that was tried again and again."""
    if status:
        return f"the server failed again and again{said}{_message(text)}; run the command again later"
    system = _SYSTEM_REASON.findall(text)
    if "TimedOut" in text or "Timeout" in text or "timed out" in text:
        return "the server did not answer in time, again and again; check the network and the endpoint"
    why = f" ({system[-1]})" if system else ""
    return f"the connection failed again and again{why}; check the network, the name and the endpoint"
