"""The server in a WSGI app, by a2wsgi: one event loop in a thread, and no requests that stay open."""

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from windlass.client.app import App
from windlass.errors import ConfigError
from windlass.server.application import asgi
from windlass.server.mount.host import Auth

try:
    from a2wsgi import ASGIMiddleware
except ModuleNotFoundError:
    raise ConfigError("a WSGI app needs a2wsgi: pip install 'windlass[wsgi]'") from None

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def wsgi(app: App, *, auth: Auth, **options: Any) -> Wsgi:
    """The REST server of an app and its dashboard, to be mounted in a WSGI app; the options are those of `asgi`.

    A WSGI server has a thread for each request, so none stays open: the event stream and claims that wait are
    refused, and pages poll. Needs a2wsgi: `pip install 'windlass[wsgi]'`.
    """
    return PerProcess(lambda: asgi(app, auth=auth, waits=False, **options))


class PerProcess:
    """Makes the server at the first request of each process: a fork does not copy the thread of its event loop."""

    def __init__(self, make: Callable[[], Any]) -> None:
        make()  # a wrong setting is refused now
        self._make = make
        self._made: tuple[int, Wsgi] | None = None
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        made = self._made
        if made is None or made[0] != os.getpid():
            made = self._make_once()
        return made[1](environ, start_response)

    def _make_once(self) -> tuple[int, Wsgi]:
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                served: Any = ASGIMiddleware(self._make())
                self._made = (os.getpid(), served)
            return self._made
