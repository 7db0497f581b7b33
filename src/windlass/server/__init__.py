"""The REST server: jobs, flows, queues, schedules, statistics, events and workers over HTTP, and the dashboard."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.server.application import asgi
    from windlass.server.mount.wsgi import wsgi

__all__ = ["asgi", "wsgi"]


def __getattr__(name: str) -> Any:
    # `windlass.remote` uses the types of the API without Starlette.
    if name == "asgi":
        from windlass.server.application import asgi

        return asgi
    if name == "wsgi":
        from windlass.server.mount.wsgi import wsgi

        return wsgi
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
