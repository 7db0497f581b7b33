"""/healthz, /readyz and /startupz need no token, and answer only ok or not; /metrics needs the scope `read`."""

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from windlass.client.app import App
from windlass.core.tokens import Scope
from windlass.errors import StoreUnavailable, WindlassError
from windlass.observe.exposition import expose
from windlass.observe.families import Family, process_families
from windlass.observe.process import want_figures
from windlass.observe.store_gauges import READ_SECONDS, no_store, store_families
from windlass.server.access import Access
from windlass.server.dispatch import SAFE_HEADERS, address_of, refusal, request_id
from windlass.server.operation import Caller, MissingScope, OutsideLimits
from windlass.server.problem import Refused

READY_SECONDS = 2.0


class Probes:
    """Whether this server is alive, started, and able to answer."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.stopping = False
        self._started = False

    @property
    def routes(self) -> list[Route]:
        """The probes of orchestrators."""
        return [Route("/healthz", self.live), Route("/readyz", self.ready), Route("/startupz", self.started)]

    async def live(self, request: Request) -> PlainTextResponse:
        """The event loop runs."""
        return _said(True)

    async def ready(self, request: Request) -> PlainTextResponse:
        """The store answers, and the server is not stopping."""
        return _said(not self.stopping and await self._answers())

    async def started(self, request: Request) -> PlainTextResponse:
        """The store has answered once."""
        return _said(self._started or await self._answers())

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._app.workers.alist()
        except (WindlassError, TimeoutError):
            return False
        self._started = True
        return True


class Metrics:
    """What this process counted, and the gauges of its store."""

    def __init__(self, app: App, access: Access) -> None:
        self._app = app
        self._access = access
        self._figures = want_figures()

    async def show(self, request: Request) -> Response:
        """A scrape: it waits at most a second for the store, and works without it for a token checked before."""
        until = asyncio.get_running_loop().time() + READ_SECONDS
        try:
            caller, answers = await self._caller(request, until)
            _check_rights(caller)
        except Refused as refused:
            return refusal(refused, request_id(request.headers))
        gauges = await self._gauges(until) if answers else no_store()
        families = [*process_families(self._figures.read()), *gauges]
        kind, text = expose(families, request.headers.get("accept", ""))
        return Response(text, headers={**SAFE_HEADERS, "content-type": kind})

    async def _caller(self, request: Request, until: float) -> tuple[Caller, bool]:
        """The caller, and whether the store answers."""
        try:
            async with asyncio.timeout_at(until):
                return await self._access.caller(request, address_of(request)), True
        except (StoreUnavailable, TimeoutError):
            if (caller := self._access.last_known(request.headers)) is None:
                raise Refused(503, "store_unavailable", "the store does not answer") from None
            return caller, False

    async def _gauges(self, until: float) -> list[Family]:
        try:
            async with asyncio.timeout_at(until):
                return await store_families(await self._app._ready())
        except (WindlassError, TimeoutError):
            return no_store()


def _check_rights(caller: Caller) -> None:
    if not caller.rights.allows(Scope.READ):
        error = MissingScope(Scope.READ)
        raise Refused(403, error.code, str(error))
    if caller.rights.is_limited:
        raise Refused(403, OutsideLimits.code, "metrics are of all queues and types, and this token is limited")


def _said(ok: bool) -> PlainTextResponse:
    return PlainTextResponse("ok\n" if ok else "not ok\n", 200 if ok else 503)
