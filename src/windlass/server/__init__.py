"""The REST server: jobs, queues, schedules and statistics over HTTP, on the verbs of the client alone."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.server.application import asgi
    from windlass.server.mount.wsgi import wsgi

__all__ = ["asgi", "wsgi"]


def __getattr__(name: str) -> Any:
    # The types of the API are of use without Starlette, to `windlass.remote` for example.
    if name == "asgi":
        from windlass.server.application import asgi

        return asgi
    if name == "wsgi":
        from windlass.server.mount.wsgi import wsgi

        return wsgi
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
