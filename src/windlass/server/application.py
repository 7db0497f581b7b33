"""The server as an ASGI application: routes from the operations, probes, and the OpenAPI document."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from windlass.client.app import App
from windlass.core.flow.rate import parse_rate
from windlass.core.hidden import parse_hidden
from windlass.core.moments import Duration
from windlass.errors import WindlassError
from windlass.server.access import Access, serves_host
from windlass.server.api import (
    actions,
    audit,
    dead_groups,
    enqueue,
    flows,
    jobs,
    live_workers,
    queues,
    schedules,
    stats,
    webhooks,
)
from windlass.server.api.estimates import Estimates
from windlass.server.browser.login import LogIn
from windlass.server.browser.pages import STYLE
from windlass.server.dashboard.page import Look, check_trace_url
from windlass.server.dashboard.site import Dashboard, Identify, Visitor
from windlass.server.dispatch import SAFE_HEADERS, Dispatcher, address_of, refusal, request_id
from windlass.server.documentation import Endpoint, documentation
from windlass.server.events import stream
from windlass.server.events.hub import EventHub
from windlass.server.health import Metrics, Probes
from windlass.server.mount.host import Auth, HostAccess, check_auth
from windlass.server.mount.prefix import ROOT_KEY, PrefixedAnswer, without_prefix
from windlass.server.operation import PREFIX, Operation, Policy
from windlass.server.problem import Refused
from windlass.server.workers import beat, claims, held, settle
from windlass.server.workers.service import WorkerService, check_lease

OPERATIONS: tuple[Operation, ...] = (
    *enqueue.OPERATIONS,
    *actions.OPERATIONS,
    *stats.OPERATIONS,
    *live_workers.OPERATIONS,
    *dead_groups.OPERATIONS,
    *jobs.OPERATIONS,
    *flows.OPERATIONS,
    *queues.OPERATIONS,
    *schedules.OPERATIONS,
    *audit.OPERATIONS,
    *webhooks.OPERATIONS,
    *stream.OPERATIONS,
    *settle.OPERATIONS,
    *beat.OPERATIONS,
    *claims.OPERATIONS,
    *held.OPERATIONS,
)
"""In the order of matching: a fixed path before one with a parameter."""
DEFAULT_RATE = "1000/s"
STOP_SECONDS = 3.0
"""For each part of a server that stops: the store may be away."""
_log = logging.getLogger("windlass.server")
NOT_ALLOWED = 405
_CODES = {404: "not_found", NOT_ALLOWED: "method_not_allowed"}
Lifespan = Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]


class Application(Starlette):
    """Starlette, without its router for paths that have no parameter: routing costs as much as the answer."""

    direct: Mapping[tuple[str, str], Endpoint] = {}
    """By method and path."""
    hosts: Collection[str] | None = None
    """Host names that it answers for, beside localhost and IP addresses; None: all."""
    has_auth: bool = False
    """Whether the surrounding app identifies callers."""
    waits: bool = True
    """Whether requests may stay open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and (self.has_auth or scope.get("root_path")):
            scope = without_prefix(scope)
            send = PrefixedAnswer(scope, send, live=self.waits).send
        found = self._find(scope) if scope["type"] == "http" else None
        if found is None:
            await super().__call__(scope, receive, send)
        else:
            await (await found(Request(scope, receive)))(scope, receive, send)

    def lifespan(self) -> contextlib.AbstractAsyncContextManager[None]:
        """To be entered in the lifespan of the surrounding app: Starlette does not run those of mounted apps."""
        return self.router.lifespan_context(self)  # type: ignore[return-value]

    def _find(self, scope: Scope) -> Endpoint | None:
        if scope.get(ROOT_KEY) and not self.has_auth:
            return _mounted_without_auth
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
    auth: Auth | None = None,
    waits: bool = True,
) -> Application:
    """The REST server of an app and its dashboard, for any ASGI server. `rate` limits the requests of each token.

    `environment`, such as "production", is shown on every page. `hosts` are the host names that it answers for,
    beside localhost and IP addresses (None: all). A `read_only` server refuses every change. `hide` names fields of
    payloads, results and meta that are not shown: `password` at any depth, or a path such as `card.number`.
    `trace_url` is the address of a trace, with `{trace}` for its id. A worker over REST counts as dead after
    `worker_lease` without a call. `development` is the text of a token that is in no store, for `windlass dev`.

    To be mounted in another app it needs `auth`: a function, plain or async, that gets each request without a token
    of Windlass, and returns a name, scopes and queues (none: all), or None to refuse it; an HTTPException that it
    raises is the answer. Enter `lifespan()` in the lifespan of the other app. Without `waits`, requests that stay
    open are refused: event streams, and claims that wait.

    Its `state.probes.stopping = True` makes `/readyz` fail and ends event streams, before the server stops.
    """
    policy = Policy(read_only=read_only, hidden=parse_hidden(hide), waits=waits)
    settings = (app, parse_rate(rate, "rate"), development, policy)
    access = Access(*settings) if auth is None else HostAccess(check_auth(auth), *settings)
    probes = Probes(app)
    events = EventHub(app, lambda: probes.stopping)
    workers = WorkerService(app, check_lease(worker_lease), lambda: probes.stopping)
    state = ServerState(Estimates(app), actions.ActionRunner(app), access, events, workers)
    dispatcher = Dispatcher(app, access, state)
    look = Look(environment=environment, trace_url=check_trace_url(trace_url), rate=rate, own_login=auth is None)
    dashboard = Dashboard(app, _identifier(access), OPERATIONS, state, look)
    own_login = LogIn(app, access, development).routes if auth is None else []
    more = [*probes.routes, Route("/metrics", Metrics(app, access).show), *own_login, *dashboard.routes()]
    served = _application(dispatcher, dashboard, more, _lifespan(app, state, probes), own_login=auth is None)
    served.hosts = None if hosts is None else frozenset(name.lower() for name in hosts)
    served.has_auth, served.waits = auth is not None, waits
    served.state.probes, served.state.workers = probes, state.workers
    return served


def _application(
    dispatcher: Dispatcher, dashboard: Dashboard, more: list[Route], lifespan: Lifespan, *, own_login: bool
) -> Application:
    """The application with its routes: operations, their documentation, and more."""
    endpoints = [(each, _endpoint(dispatcher, each)) for each in OPERATIONS]
    routes = [
        *(Route(PREFIX + each.path, run, methods=[each.method], name=each.id) for each, run in endpoints),
        *documentation(dispatcher, OPERATIONS, own_login=own_login),
        Route("/static/windlass.css", _style),
        *more,
    ]
    made = Application(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _no_route(dashboard)})
    made.router.redirect_slashes = False
    made.direct = {(each.method, PREFIX + each.path): run for each, run in endpoints if "{" not in each.path}
    return made


def _lifespan(app: App, state: ServerState, probes: Probes) -> Lifespan:
    workers = state.workers
    parts = (
        state.events,
        state.actions,
        workers.polls,
        workers.groups,
        workers.workers,
        state.estimates,
        state.access,
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        probes.stopping = True
        await asyncio.gather(*(_end(part.stop) for part in parts))
        await _end(app.aclose)

    return lifespan


async def _end(stop: Callable[[], Awaitable[None]]) -> None:
    """Stop a part for at most STOP_SECONDS; an error is logged, so that the other parts stop too."""
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await stop()
    except (WindlassError, TimeoutError) as error:
        _log.warning("stopping without the store: %s", str(error) or "it does not answer")
    except Exception:
        _log.exception("stopping failed in part")


def _endpoint(dispatcher: Dispatcher, operation: Operation) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await dispatcher.run(operation, request)

    return endpoint


async def _mounted_without_auth(request: Request) -> Response:
    said = "windlass.server.asgi(app) is mounted in another app without auth=, a function that identifies callers"
    _log.error("%s (%s)", said, request.scope[ROOT_KEY])
    return refusal(Refused(500, "mounted_without_auth", said), request_id(request.headers))


async def _misdirected(request: Request) -> Response:
    host = request.headers.get("host", "")[:100]
    refused = Refused(421, "misdirected_request", f"this server does not answer for {host!r}; see --allowed-host")
    return refusal(refused, request_id(request.headers))


async def _style(request: Request) -> Response:
    return Response(STYLE, headers={**SAFE_HEADERS, "cache-control": "max-age=3600"}, media_type="text/css")


def _identifier(access: Access) -> Identify:
    async def identify(request: Request, csrf: str) -> Visitor:
        caller = await access.caller(request, address_of(request), csrf or None)
        return Visitor(caller, access.csrf_token(request, caller))

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
        if error.status_code == NOT_ALLOWED:
            response.headers["allow"] = ", ".join(sorted(_methods(request)))
        return response

    return no_route


def _methods(request: Request) -> set[str]:
    """The methods of a path: Starlette names those of the first operation only."""
    found = (each for each in request.app.routes if isinstance(each, Route))
    return {name for each in found if each.matches(request.scope)[0] is not Match.NONE for name in each.methods or ()}
