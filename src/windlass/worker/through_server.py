"""A worker that reaches its jobs through a REST server: its settings, its stores, and its app."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from windlass.client.app import App
from windlass.core.events import Emit
from windlass.core.moments import SECOND
from windlass.errors import ConfigError
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import ProcessRole
from windlass.worker.config import WorkerConfig
from windlass.worker.store_retry import retry_until_done

if TYPE_CHECKING:
    from windlass.remote.connection import Connection

TOKEN_VARIABLE = "WINDLASS_TOKEN"


def open_worker_store(config: WorkerConfig, address: str, role: ProcessRole) -> Store:
    """The store of a supervisor or a runner: at its address, or behind the server."""
    if not config.server:
        return open_store(address, opener=role)
    # Imported here: only such a worker needs the HTTP client.
    from windlass.remote.work.store import RestStore

    return RestStore(_connection(config), config.concurrency)


def redirect_app(app: App, server: str, token: str) -> None:
    """Let the app of a worker behind a server reach its jobs there; a no-op without a server."""
    if server:
        from windlass.remote.app import redirect

        redirect(app, server, token)


def runnable(app: App, config: WorkerConfig) -> tuple[str, ...]:
    """The types that a worker runs; Windlass's own types need the store itself."""
    return app.registry.types if config.server else app.registry.runnable


def token_in_environment(config: WorkerConfig) -> dict[str, str]:
    """For a handler process of a worker that was given its token."""
    return {TOKEN_VARIABLE: config.token} if config.token else {}


async def with_servers_lease(config: WorkerConfig) -> WorkerConfig:
    """The settings with the lease that the server gives; raises StoreUnavailable, TokenRefused or ConfigError."""
    if not config.server:
        return config
    from windlass.remote.work.session import WorkSession
    from windlass.remote.work.store import rules

    connection = _connection(config)
    try:
        found = await rules(WorkSession(connection))
    finally:
        await connection.close()
    return msgspec.structs.replace(config, lease=round(found.lease * SECOND))


async def ask_lease(config: WorkerConfig, stopping: asyncio.Event, emit: Emit) -> WorkerConfig | None:
    """As `with_servers_lease`, however long the server is away; None if the worker was stopped meanwhile."""
    ask = partial(with_servers_lease, config)
    asking = asyncio.create_task(retry_until_done("asking the server", ask, emit, hopeful=False))
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([asking, stop], return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else None
    finally:
        asking.cancel()
        stop.cancel()
        await asyncio.wait([asking, stop])


def _connection(config: WorkerConfig) -> "Connection":
    try:
        from windlass.remote.connection import Connection
    except ModuleNotFoundError as error:
        raise ConfigError(f"a worker behind a server needs {error.name}: pip install 'windlass[remote]'") from None
    return Connection(config.server, config.token or None, None)
