"""A database under limits for each test, on the server of the test run."""

import functools
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.limits.faults import Limits
from tests.support.limits.machine import LimitsProxy
from tests.support.limits.role import for_role, limit_database
from tests.support.servers.folder import at_end
from tests.support.servers.places import postgres_place, shared_server

Prepare = Callable[[str], None]


@functools.cache
def shared_proxy(limits: Limits) -> LimitsProxy:
    """The proxy of this run with these limits: started at the first call."""
    server = urlsplit(shared_server().url)
    assert server.hostname is not None
    proxy = LimitsProxy(server.hostname, server.port or 5432, limits)
    proxy.start()
    at_end(proxy.stop)
    return proxy


def limited_place(folder: Path, migrate: Prepare, limits: Limits) -> str:
    """The address of a folder's database, through the proxy; as `migrate` left it, at first."""
    return shared_proxy(limits).through(limited_place_without_faults(folder, migrate))


def bare_limited_place(folder: Path) -> str:
    """The same without any tables."""
    return shared_proxy(Limits()).through(for_role(postgres_place(folder, _limited)))


def limited_place_without_faults(folder: Path, migrate: Prepare) -> str:
    """The same database for the same role, but not through the proxy."""
    return for_role(postgres_place(folder, _limited_and(migrate)))


def _limited(url: str) -> None:
    limit_database(url)


@functools.cache
def _limited_and(migrate: Prepare) -> Prepare:
    """The same function each time: it names the template."""

    def prepare(url: str) -> None:
        migrate(limit_database(url))

    return prepare
