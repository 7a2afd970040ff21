"""Clients of object stores by obstore: which settings they get, and one client for all that lies in a container.

Settings come from obstore's own environment variables (AWS_*, GOOGLE_*, AZURE_*), then from the options, by the same
names with or without the store's prefix: "aws_region" or "region". An option with another store's prefix is not meant
for this one; any other that it does not know is refused.
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
_PREFIXES = {
    "s3": ("aws_",),
    "gs": ("google_",),
    "az": ("azure_",),
    "hf": ("hf_",),
}
# No request can hang: a connection, a silence and a whole request are bounded, and so is the time of all its retries.
_CLIENT: dict[str, str] = {
    "connect_timeout": "10s",
    "read_timeout": "20s",
    "timeout": "60s",
    "allow_http": "true",
}
# Names of the setting that holds the address of the server, without the prefix of the store.
_ENDPOINTS = {"s3": ("endpoint", "endpoint_url", "endpoint_url_s3"), "az": ("endpoint", "storage_endpoint")}
_MAX_RETRIES = 8
_RETRY_SECONDS = 90
_RETRY_OPTIONS = ("max_retries", "retry_timeout")

_memories: dict[str, MemoryStore] = {}
_first_process: list[int] = []


def client_of(location: Location, options: StorageOptions) -> ObjectStore:
    """The client of the container that a URL names, made once a process; keys are those of the container."""
    check_process(location.shown)
    if location.scheme == "memory":
        return _memory(location.container)
    container = location._replace(path="")
    return _client(container, tuple(sorted(own_options(location.scheme, options).items())), False)


def unretried_client_of(location: Location, options: StorageOptions) -> ObjectStore:
    """The same, whose requests are sent once: for puts whose retry can't be told from another writer's put."""
    check_process(location.shown)
    if location.scheme == "memory":
        return _memory(location.container)
    container = location._replace(path="")
    return _client(container, tuple(sorted(own_options(location.scheme, options).items())), True)


def own_options(scheme: str, options: StorageOptions) -> dict[str, str]:
    """The options without those that another store's prefix says are not for this one."""
    others = tuple(prefix for other, prefixes in _PREFIXES.items() if other != scheme for prefix in prefixes)
    return {name: value for name, value in options.items() if not name.lower().startswith(others)}


def check_process(shown: str) -> None:
    """StoreError in a process that was forked after the first request: the client's threads are not in it, so that it
    would wait for ever."""
    if not _first_process:
        _first_process.append(os.getpid())
    elif _first_process[0] != os.getpid():
        raise StoreError(
            f"{shown}: cannot connect from a process that was forked after the first request. Start workers with spawn."
        )


def _memory(name: str) -> MemoryStore:
    """The one store of this name in the process."""
    from obstore.store import MemoryStore

    return _memories.setdefault(name, MemoryStore())


@cache
def _client(container: Location, options: tuple[tuple[str, str], ...], once: bool) -> ObjectStore:
    try:
        from obstore import store
    except ImportError:
        raise UnknownScheme(not_installed(f"{container.scheme}://", "obstore", "remote")) from None
    settings = dict(options)
    _unset_empty_endpoints(container, settings)
    _check_address(container, settings)
    retry = _retry_config(container, settings, once)
    kinds: dict[str, Any] = {"s3": store.S3Store, "gs": store.GCSStore, "az": store.AzureStore}
    try:
        if container.scheme in kinds:
            given = {"account_name": container.account} if container.account else {}
            config = {**_CLIENT, **given, **settings}
            client: ObjectStore = kinds[container.scheme](
                container.container, config=config, retry_config=retry
            )
            return client
        client_options: Any = {**_CLIENT, **settings}
        if container.account:
            login = b64encode(unquote(container.account).encode()).decode()
            client_options["default_headers"] = {"authorization": f"Basic {login}"}
        address = f"{container.scheme}://{container.container}{container.query}"
        return store.HTTPStore(address, client_options=client_options, retry_config=retry)
    except BaseException as error:
        from tokenmill.stores.causes import explained_setting

        failure = without_panic(error)
        if not isinstance(failure, Exception):
            raise
        raise explained_setting(failure, container.shown, options) from None


def _unset_empty_endpoints(container: Location, settings: dict[str, str]) -> None:
    """Remove empty endpoints from the settings and the environment, since the client panics on them."""
    for name, value in _given_endpoints(container.scheme, settings).items():
        if not value:
            del settings[name]
    for name in _endpoint_variables(container.scheme):
        if os.environ.get(name) == "":
            del os.environ[name]


def _endpoint_variables(scheme: str) -> list[str]:
    """Return the variables for the address of the server: "s3" -> ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", ...]."""
    return [f"{_PREFIXES[scheme][0]}{name}".upper() for name in _ENDPOINTS.get(scheme, ())]


def _given_endpoints(scheme: str, settings: dict[str, str]) -> dict[str, str]:
    """Return the settings for the address of the server."""
    names = (name.lower() for name in _endpoint_variables(scheme))
    known = {*names, *_ENDPOINTS.get(scheme, ())}
    return {name: value for name, value in settings.items() if name.lower() in known}


def _check_address(container: Location, settings: dict[str, str]) -> None:
    """Raise UnknownScheme for an endpoint or bucket that is no part of a URL: the client would panic at its first
    request."""
    if re.search(r'[\s"<>\\^`{|}]', container.container):
        raise UnknownScheme(f"{container.shown}: invalid bucket or host name. Correct the URL.")
    variables = {name: os.environ.get(name, "") for name in _endpoint_variables(container.scheme)}
    for name, value in (_given_endpoints(container.scheme, settings) or variables).items():
        if value and not _is_address(value):
            raise UnknownScheme(
                f"{container.shown}: {name}: must begin with https:// or http:// and contain a host "
                f"(got {printable(value)})"
            )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in url
        )
    except ValueError:  # of the port
        return False


def _retry_config(container: Location, settings: dict[str, str], once: bool) -> RetryConfig:
    """How often and how long a request is tried again; takes its own options out of `settings`."""
    values = {}
    for name, default in zip(_RETRY_OPTIONS, (_MAX_RETRIES, _RETRY_SECONDS), strict=True):
        text = settings.pop(name, str(default)).removesuffix("s")
        if not text.isdigit() or len(text) > 6:
            raise UnknownScheme(f"{container.shown}: {name}: must be an integer (got {printable(text)})")
        values[name] = int(text)
    return {
        "max_retries": 0 if once else values["max_retries"],
        "retry_timeout": timedelta(seconds=values["retry_timeout"]),
        "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=10), "base": 2},
    }
