"""Clients of object stores, made by obstore: one per container and process.

Settings come from obstore's environment variables (AWS_*, GOOGLE_*, AZURE_*). Options override them; they have the
same names, with or without the prefix of the store: "aws_region" or "region". Options with another store's prefix are
ignored, and unknown ones raise UnknownScheme.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tokenmill.errors import not_installed, printable, without_panic
from tokenmill.stores.errors import StoreError, UnknownScheme
from tokenmill.stores.store import StorageOptions
from tokenmill.stores.url import Location

if TYPE_CHECKING:
    from obstore.store import MemoryStore, ObjectStore, RetryConfig

SCHEMES = ("s3", "gs", "az", "http", "https", "memory")
_PREFIXES = {"s3": "aws_", "gs": "google_", "az": "azure_", "hf": "hf_"}
# Names of the option for the server's address, without the prefix.
_ENDPOINTS = {"s3": ("endpoint", "endpoint_url", "endpoint_url_s3"), "az": ("endpoint", "storage_endpoint")}
# Limits for connecting, for silence and for a whole request, so that none can hang.
_CLIENT = {"connect_timeout": "10s", "read_timeout": "20s", "timeout": "60s", "allow_http": "true"}
_RETRIES = {"max_retries": 8, "retry_timeout": 90}

_memories: dict[str, MemoryStore] = {}
_first_process: list[int] = []


def client_of(location: Location, options: StorageOptions, retries: bool = True) -> ObjectStore:
    """Return the client of a URL's container. Its keys are relative to the container.

    retries: whether the client repeats failed requests. After a repeated conditional put, it is unknown which writer
    created the object.
    """
    check_process(location.shown)
    if location.scheme == "memory":
        from obstore.store import MemoryStore

        return _memories.setdefault(location.container, MemoryStore())
    own = own_options(location.scheme, options)
    return _client(location._replace(path=""), tuple(sorted(own.items())), retries)


def own_options(scheme: str, options: StorageOptions) -> dict[str, str]:
    """Return the options without those that have another store's prefix."""
    others = tuple(prefix for other, prefix in _PREFIXES.items() if other != scheme)
    return {name: value for name, value in options.items() if not name.lower().startswith(others)}


def check_process(shown: str) -> None:
    """Raise StoreError in a process that was forked after the first request.

    The client's threads do not exist there, so a request would wait forever.
    """
    if not _first_process:
        _first_process.append(os.getpid())
    elif _first_process[0] != os.getpid():
        raise StoreError(
            f"{shown}: cannot connect from a process that was forked after the first request. Start workers with spawn."
        )


@cache
def _client(container: Location, options: tuple[tuple[str, str], ...], retries: bool) -> ObjectStore:
    try:
        from obstore import store
    except ImportError:
        raise UnknownScheme(not_installed(f"{container.scheme}://", "obstore", "remote")) from None
    settings = dict(options)
    _check_address(container, settings)
    retry = _retry_config(container, settings, retries)
    kinds: dict[str, Any] = {"s3": store.S3Store, "gs": store.GCSStore, "az": store.AzureStore}
    name, account = container.container, container.account
    try:
        if container.scheme in kinds:
            config = {**_CLIENT, **({"account_name": account} if account else {}), **settings}
            client: ObjectStore = kinds[container.scheme](name, config=config, retry_config=retry)
            return client
        client_options: Any = {**_CLIENT, **settings}
        if account:
            login = b64encode(unquote(account).encode()).decode()
            client_options["default_headers"] = {"authorization": f"Basic {login}"}
        address = f"{container.scheme}://{name}{container.query}"
        return store.HTTPStore(address, client_options=client_options, retry_config=retry)
    except BaseException as error:
        from tokenmill.stores.causes import explained_setting

        failure = without_panic(error)
        if not isinstance(failure, Exception):
            raise
        raise explained_setting(failure, container.shown, options) from None


def _check_address(container: Location, settings: dict[str, str]) -> None:
    """Raise UnknownScheme for an invalid host, bucket or endpoint, on which the client would panic.

    Empty endpoints, on which it would panic too, are removed from the settings and the environment.
    """
    if re.search(r'[\s"<>\\^`{|}]', container.container):
        raise UnknownScheme(f"{container.shown}: invalid bucket or host name. Correct the URL.")
    names = _ENDPOINTS.get(container.scheme, ())
    variables = {f"{_PREFIXES[container.scheme]}{name}".upper() for name in names}
    options = {name for name in settings if name.lower() in names or name.upper() in variables}
    for places, found in ((settings, options), (os.environ, variables & os.environ.keys())):
        for name in found:
            if not places[name]:
                del places[name]
            elif not _is_address(places[name]) and (places is settings or not options & settings.keys()):
                raise UnknownScheme(
                    f"{container.shown}: {name}: must begin with https:// or http:// and contain a host "
                    f"(got {printable(places[name])})"
                )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and " " not in url
        return is_web and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        return False


def _retry_config(container: Location, settings: dict[str, str], retries: bool) -> RetryConfig:
    """Return when requests are repeated, by the options `max_retries` and `retry_timeout`, which are removed."""
    values = {}
    for name, default in _RETRIES.items():
        text = settings.pop(name, str(default)).removesuffix("s")
        if not text.isdigit() or len(text) > 6:
            raise UnknownScheme(f"{container.shown}: {name}: must be an integer (got {printable(text)})")
        values[name] = int(text)
    return {
        "max_retries": values["max_retries"] if retries else 0,
        "retry_timeout": timedelta(seconds=values["retry_timeout"]),
        "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=10), "base": 2},
    }
