"""Probes: /healthz, /readyz and /startupz answer anyone, and say only ok or not."""

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse

from windlass.client.app import App
from windlass.errors import WindlassError

READY_SECONDS = 2.0


class Probes:
    """Whether this server is alive, started, and able to answer."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.stopping = False
        self._started = False

    async def live(self, request: Request) -> PlainTextResponse:
        """The event loop turns."""
        return _said(True)

    async def ready(self, request: Request) -> PlainTextResponse:
        """The store answers, and the server does not stop."""
        return _said(not self.stopping and await self._answers())

    async def started(self, request: Request) -> PlainTextResponse:
        """The store has answered once."""
        self._started = self._started or await self._answers()
        return _said(self._started)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._app.workers.alist()
        except (WindlassError, TimeoutError):
            return False
        return True


def _said(ok: bool) -> PlainTextResponse:
    return PlainTextResponse("ok\n" if ok else "not ok\n", 200 if ok else 503)
