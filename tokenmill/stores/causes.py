"""Turn the error of a client into one line: the URL, the cause, what to do.

A client's own message may contain a signed URL. Only these parts of it are shown: the HTTP status, the error code and
message of the answer (XML of S3, GCS and Azure), and the system's reason for a broken connection.
"""

from __future__ import annotations

import re

from tokenmill.errors import printable
from tokenmill.stores import errors
from tokenmill.stores.errors import StoreDenied, StoreError, StoreNotFound, StoreUnavailable, UnknownScheme

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([\w.]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<>]{1,200})</Message>")
_SYSTEM_REASON = re.compile(r'message: "([^"]{1,120})"')
_NAMED_PATH = re.compile(r'Path "([^"]{1,200})"')
_DETAILS = "\n\nDebug source"

_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "hf": "HF_TOKEN",
}
_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "az": "AZURE_STORAGE_ENDPOINT", "hf": "HF_ENDPOINT"}
# Error codes of the servers.
_NO_CONTAINER = "NoSuchBucket ContainerNotFound InvalidBucketName AccountNotFound".split()
_EXPIRED = "ExpiredToken TokenRefreshRequired RequestExpired".split()
_REJECTED = (
    "InvalidAccessKeyId SignatureDoesNotMatch InvalidToken AuthenticationFailed InvalidSecurity "
    "UnrecognizedClientException"
).split()
_REGION = (
    "PermanentRedirect TemporaryRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException"
).split()


def status_of(error: BaseException) -> int:
    """Return the HTTP status in an error, or 0 if there was no answer."""
    found = _STATUS.search(str(error).split(_DETAILS)[0])
    return int(found[1]) if found else 0


def code_of(error: BaseException) -> str:
    """Return the error code in the body of an answer. Answers to HEAD have none: ""."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def knows_no_range(error: BaseException) -> bool:
    """Return whether the server does not support this kind of range, or no ranges at all."""
    return type(error).__name__ == "NotSupportedError" or "non-partial response" in str(error)


def explained(error: BaseException, shown: str, scheme: str) -> StoreError:
    """Return the StoreError for a client's error about the object or container `shown`."""
    kind, text, status, code = type(error).__name__, str(error), status_of(error), code_of(error)
    if kind == "AlreadyExistsError":
        return errors.already_there(shown)
    if kind in ("PreconditionError", "NotModifiedError"):
        return errors.changed(shown)
    of, cause = _cause(error, kind, text, status, code)
    message, reasons, path = _MESSAGE.search(text), _SYSTEM_REASON.findall(text), _NAMED_PATH.search(text)
    answer = f" ({code})" if code else f" (status {status})" if status else ""
    told = cause.format(
        answer=answer,
        message=answer + (f": {' '.join(message[1].split()).removesuffix('.')}" if message else ""),
        reason=f" ({reasons[-1]})" if reasons else "",
        name=f" {printable(path[1])!r}" if path else "",
        endpoint=_ENDPOINTS.get(scheme, "the endpoint"),
        variables=_VARIABLES.get(scheme, "--storage-option"),
    )
    return of(f"{shown}: {told}")


def _cause(
    error: BaseException, kind: str, text: str, status: int, code: str
) -> tuple[type[StoreError], str]:
    """Return the class of the error, and the cause and what to do."""
    if code in _NO_CONTAINER:
        return StoreNotFound, "no such bucket{answer}. Check its name and {endpoint}."
    if code in _EXPIRED:
        return StoreDenied, "expired credentials{answer}. Renew {variables} and run the command again."
    if code in _REJECTED:
        return StoreDenied, "rejected credentials{answer}. Check {variables}."
    if code in _REGION or status == 301 or "incorrectly configured region" in text:
        return StoreDenied, "bucket in another region{message}. Set AWS_REGION to the region of the bucket."
    if code == "RequestTimeTooSkewed":
        return StoreDenied, "wrong clock on this machine{answer}. Set the clock."
    if "169.254.169.254" in text or "metadata.google.internal" in text:
        public = "or pass --storage-option skip_signature=true for a public bucket"
        return StoreDenied, f"no credentials found. Set {{variables}}, {public}."
    if isinstance(error, FileNotFoundError) or kind == "NotFoundError" or status == 404:
        return StoreNotFound, "not found. Check whether it was removed or renamed."
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        return StoreDenied, "permission denied{answer}. Check {variables} and their permissions."
    if knows_no_range(error):
        return StoreError, "the server does not support range requests. Download the file first."
    if isinstance(error, ValueError) or kind == "InvalidPathError":
        parts = "an empty part ('//'), '.', '..' or a control character"
        return StoreError, f"object name{{name}} with {parts}. Rename it."
    if status in (408, 409, 429) or (status >= 500 and status != 501) or code == "RequestTimeout":
        return StoreUnavailable, "server error after several retries{message}. Run the command again later."
    if status:
        return StoreDenied, "rejected request{message}. Check {variables} and the region."
    if "TimedOut" in text or "Timeout" in text or "timed out" in text:
        return StoreUnavailable, "timeout after several retries. Check the network and the endpoint."
    network = "Check the network, the host name and the endpoint."
    return StoreUnavailable, f"connection failed after several retries{{reason}}. {network}"


def explained_setting(error: BaseException, shown: str, options: tuple[tuple[str, str], ...]) -> StoreError:
    """Return the error for settings that a client rejects. It names the option and never shows its value."""
    text = str(error).split(_DETAILS)[0]
    found = re.search(r"[kK]ey: '?(\w+)", text)
    if found and type(error).__name__ in ("UnknownConfigurationKeyError", "ValueError"):
        return errors.unknown_option(shown, found[1])
    if "Account must be specified" in text:
        return StoreDenied(f"{shown}: missing account name. Set AZURE_STORAGE_ACCOUNT_NAME.")
    for _, value in options:
        text = text.replace(value, "…") if value else text
    names = ", ".join(name for name, _ in options) or "the environment variables of the store"
    reason = text.splitlines()[0].removesuffix(".")
    return UnknownScheme(f"{shown}: invalid settings: {reason}. Check {names}.")
