"""The server as an ASGI application: routes from the operations, probes, and the OpenAPI document."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from windlass.client.app import App
from windlass.core.flow.rate import parse_rate
from windlass.core.hidden import parse_hidden
from windlass.core.moments import Duration
from windlass.errors import WindlassError
from windlass.server import actions, audit, enqueue, jobs, queues, schedules, stats
from windlass.server.access import Access, serves_host
from windlass.server.browser.login import LogIn
from windlass.server.browser.pages import STYLE, docs_page, html_response
from windlass.server.browser.session import cookie_of, csrf_of
from windlass.server.dashboard.page import Look, check_trace_url
from windlass.server.dashboard.site import Dashboard, Identify, Visitor
from windlass.server.dispatch import SAFE_HEADERS, Dispatcher, address_of, answer_problem, refusal, request_id
from windlass.server.estimates import Estimates
from windlass.server.events import stream
from windlass.server.events.hub import EventHub
from windlass.server.health import Metrics, Probes
from windlass.server.openapi import document
from windlass.server.operation import PREFIX, REQUEST_SECONDS, Operation, Policy
from windlass.server.problem import Refused
from windlass.server.workers import beat, claims, held, settle
from windlass.server.workers.service import WorkerService, check_lease

OPERATIONS: tuple[Operation, ...] = (
    *enqueue.OPERATIONS,
    *actions.OPERATIONS,
    *stats.OPERATIONS,
    *jobs.OPERATIONS,
    *queues.OPERATIONS,
    *schedules.OPERATIONS,
    *audit.OPERATIONS,
    *stream.OPERATIONS,
    *settle.OPERATIONS,
    *beat.OPERATIONS,
    *claims.OPERATIONS,
    *held.OPERATIONS,
)
"""In the order of matching: a fixed path before one with a parameter."""
DEFAULT_RATE = "1000/s"
_CODES = {404: "not_found", 405: "method_not_allowed"}
Endpoint = Callable[[Request], Awaitable[Response]]
Lifespan = Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]


class Application(Starlette):
    """Starlette, with a direct way to operations whose path has no parameter: its own costs as much as the answer."""

    direct: Mapping[tuple[str, str], Endpoint] = {}
    """By method and path."""
    hosts: Collection[str] | None = None
    """Names that it answers for, beside localhost and addresses; None: all."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        found = self._find(scope) if scope["type"] == "http" else None
        if found is None:
            await super().__call__(scope, receive, send)
        else:
            await (await found(Request(scope, receive)))(scope, receive, send)

    def _find(self, scope: Scope) -> Endpoint | None:
        if self.hosts is not None and not serves_host(Headers(scope=scope).get("host", ""), self.hosts):
            return _misdirected
        return self.direct.get((scope["method"], scope["path"]))


class ServerState(msgspec.Struct):
    """What a server keeps between requests."""

    estimates: Estimates
    actions: actions.ActionRunner
    access: Access
    events: EventHub
    workers: WorkerService


def asgi(
    app: App,
    *,
    rate: str = DEFAULT_RATE,
    environment: str = "",
    hosts: Collection[str] | None = None,
    read_only: bool = False,
    hide: Iterable[str] = (),
    trace_url: str = "",
    worker_lease: Duration = "30s",
    development: str | None = None,
) -> Application:
    """The REST server of an app and its dashboard, for any ASGI server. `rate` limits the requests of each token.

    `environment` is shown on every page, such as "production". `hosts` are the names that it answers for, beside
    localhost and addresses (None: all). A `read_only` server refuses every change. `hide` names fields of payloads,
    results and meta that are not shown: `password` at any depth, or a path such as `card.number`. `trace_url` is
    where traces are, with `{trace}` for the id. A worker over REST is taken for dead after a silence of
    `worker_lease`. `development` is the text of a token that is in no store, for `windlass dev`.

    Its `state.probes.stopping = True` makes `/readyz` fail and ends event streams, before the server stops.
    """
    policy = Policy(read_only=read_only, hidden=parse_hidden(hide))
    access = Access(app, parse_rate(rate, "rate"), development, policy)
    probes = Probes(app)
    events = EventHub(app, lambda: probes.stopping)
    workers = WorkerService(app, check_lease(worker_lease), lambda: probes.stopping)
    state = ServerState(Estimates(), actions.ActionRunner(app), access, events, workers)
    dispatcher = Dispatcher(app, access, state)
    look = Look(environment=environment, trace_url=check_trace_url(trace_url), rate=rate)
    dashboard = Dashboard(app, _identifier(access), OPERATIONS, state, look)

    endpoints = [(each, _endpoint(dispatcher, each)) for each in OPERATIONS]
    routes = [
        *(Route(PREFIX + each.path, run, methods=[each.method], name=each.id) for each, run in endpoints),
        *probes.routes,
        Route("/metrics", Metrics(app, access).show),
        *LogIn(app, access, development).routes,
        *_documentation(dispatcher),
        Route("/static/windlass.css", _style),
        *dashboard.routes(),
    ]
    handlers = {HTTPException: _no_route(dashboard)}
    served = Application(routes=routes, lifespan=_lifespan(app, state, probes), exception_handlers=handlers)
    served.router.redirect_slashes = False
    served.hosts = None if hosts is None else frozenset(name.lower() for name in hosts)
    served.direct = {(each.method, PREFIX + each.path): run for each, run in endpoints if "{" not in each.path}
    served.state.probes = probes
    served.state.workers = state.workers
    return served


def _lifespan(app: App, state: ServerState, probes: Probes) -> Lifespan:
    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        probes.stopping = True
        await state.events.stop()
        await state.actions.stop()
        await state.workers.stop()
        await state.access.stop()
        await app.aclose()

    return lifespan


def _endpoint(dispatcher: Dispatcher, operation: Operation) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await dispatcher.run(operation, request)

    return endpoint


def _documentation(dispatcher: Dispatcher) -> list[Route]:
    described = document(OPERATIONS)
    text = msgspec.json.encode(described)

    async def for_programs(request: Request) -> Response:
        return Response(text, headers=SAFE_HEADERS, media_type="application/json")

    async def for_people(request: Request) -> Response:
        cookie = cookie_of(request)
        return html_response(docs_page(described, csrf_of(cookie) if cookie else ""))

    return [
        Route(f"{PREFIX}/openapi.json", _authenticated(dispatcher, for_programs)),
        Route(f"{PREFIX}/docs", _authenticated(dispatcher, for_people, page=True)),
    ]


def _authenticated(dispatcher: Dispatcher, endpoint: Endpoint, *, page: bool = False) -> Endpoint:
    """For callers with a token. A browser without one is led from a page to the log-in."""

    async def guarded(request: Request) -> Response:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await dispatcher.authenticate(request)
        except Refused as refused:
            if page and refused.problem.status == 401 and "text/html" in request.headers.get("accept", ""):
                return RedirectResponse(f"/login?next={request.url.path}", 303, headers=SAFE_HEADERS)
            return refusal(refused, request_id(request.headers))
        except (WindlassError, TimeoutError) as error:
            return answer_problem(error, request_id(request.headers), request)
        return await endpoint(request)

    return guarded


async def _misdirected(request: Request) -> Response:
    host = request.headers.get("host", "")[:100]
    refused = Refused(421, "misdirected_request", f"this server does not answer for {host!r}; see --allowed-host")
    return refusal(refused, request_id(request.headers))


async def _style(request: Request) -> Response:
    return Response(STYLE, headers={**SAFE_HEADERS, "cache-control": "max-age=3600"}, media_type="text/css")


def _identifier(access: Access) -> Identify:
    async def identify(request: Request, csrf: str) -> Visitor:
        caller = await access.caller(request, address_of(request), csrf or None)
        cookie = cookie_of(request)
        return Visitor(caller, csrf_of(cookie) if cookie else "")

    return identify


def _no_route(dashboard: Dashboard) -> Callable[[Request, Exception], Awaitable[Response]]:
    """A path or method that does not exist: a problem for programs, a page for people."""

    async def no_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        refused = Refused(error.status_code, _CODES.get(error.status_code, "refused"), error.detail)
        if not request.url.path.startswith(PREFIX) and "text/html" in request.headers.get("accept", ""):
            return dashboard.failed(request, refused.problem)
        response = refusal(refused, request_id(request.headers))
        response.headers.update(error.headers or {})
        return response

    return no_route
