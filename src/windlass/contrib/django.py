"""Django in a worker: what Django does before and after a request, done before and after an attempt."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from windlass.client.app import App
from windlass.client.tasks.context import Context


def fresh_connections(app: App) -> None:
    """Close database connections that are broken or too old, before and after each attempt of every task.

    Django does this around requests only. Without it a thread of a worker keeps a connection that a restart of the
    server has closed, and every handler in that thread fails. `CONN_MAX_AGE` and `CONN_HEALTH_CHECKS` of the settings
    then mean the same for jobs as for requests.
    """
    app.middleware(skip_others=True)(_around_plain)
    app.middleware(skip_others=True)(_around_async)


def _around_plain(ctx: Context, call_next: Callable[[], Any]) -> Any:
    close_old_connections()
    try:
        return call_next()
    finally:
        close_old_connections()


async def _around_async(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    """In the thread in which `async def` handlers use the ORM: connections belong to threads."""
    close = sync_to_async(close_old_connections)
    await close()
    try:
        return await call_next()
    finally:
        await close()
