"""The server as an ASGI application: routes from the operations, probes, and the OpenAPI document."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windlass.client.app import App
from windlass.core.flow.rate import Rate, parse_rate
from windlass.server import actions, audit, enqueue, jobs, queues, schedules, stats
from windlass.server.access import Access
from windlass.server.dashboard.site import Dashboard, Visitor
from windlass.server.dispatch import SAFE_HEADERS, Dispatcher, refusal, request_id
from windlass.server.estimates import Estimates
from windlass.server.health import Probes
from windlass.server.openapi import STYLE, document, page
from windlass.server.operation import PREFIX, Operation
from windlass.server.problem import Refused

OPERATIONS: tuple[Operation, ...] = (
    *enqueue.OPERATIONS,
    *actions.OPERATIONS,
    *jobs.OPERATIONS,
    *queues.OPERATIONS,
    *schedules.OPERATIONS,
    *stats.OPERATIONS,
    *audit.OPERATIONS,
)
"""In the order of matching: a fixed path before one with a parameter."""
DEFAULT_RATE = "1000/s"
_CODES = {404: "not_found", 405: "method_not_allowed"}
Endpoint = Callable[[Request], Awaitable[Response]]


class ServerState(msgspec.Struct):
    """What a server keeps between requests."""

    estimates: Estimates
    actions: actions.ActionRunner


def asgi(app: App, *, rate: str = DEFAULT_RATE, environment: str = "") -> Starlette:
    """The REST server of an app and its dashboard, for any ASGI server. `rate` limits the requests of each token.

    `environment` is shown on every page, such as "production".

    Its `state.probes.stopping = True` makes `/readyz` fail, before the server stops.
    """
    limit: Rate = parse_rate(rate, "rate")
    state = ServerState(Estimates(), actions.ActionRunner(app))
    access = Access(app, limit)
    dispatcher = Dispatcher(app, access, state)
    probes = Probes(app)

    async def identify(request: Request, csrf: str) -> Visitor:
        return Visitor(await dispatcher.authenticate(request), "")

    dashboard = Dashboard(app, identify, OPERATIONS, state, environment=environment)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        probes.stopping = True
        await state.actions.stop()
        await access.stop()
        await app.aclose()

    routes = [_route(dispatcher, operation) for operation in OPERATIONS]
    routes += [
        Route("/healthz", probes.live),
        Route("/readyz", probes.ready),
        Route("/startupz", probes.started),
        *_documentation(dispatcher),
        *dashboard.routes(),
    ]

    async def no_route(request: Request, error: Exception) -> Response:
        """A path or method that does not exist: a problem for programs, a page for people."""
        assert isinstance(error, HTTPException)
        refused = Refused(error.status_code, _CODES.get(error.status_code, "refused"), error.detail)
        if not request.url.path.startswith(PREFIX) and "text/html" in request.headers.get("accept", ""):
            return dashboard.failed(request, refused.problem)
        response = refusal(refused, request_id(request.headers))
        response.headers.update(error.headers or {})
        return response

    served = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: no_route})
    served.router.redirect_slashes = False
    served.state.probes = probes
    return served


def _route(dispatcher: Dispatcher, operation: Operation) -> Route:
    async def endpoint(request: Request) -> Response:
        return await dispatcher.run(operation, request)

    return Route(PREFIX + operation.path, endpoint, methods=[operation.method], name=operation.id)


def _documentation(dispatcher: Dispatcher) -> list[Route]:
    described = document(OPERATIONS)
    texts = {
        "openapi.json": (msgspec.json.encode(described).decode(), "application/json"),
        "docs": (page(described), "text/html; charset=utf-8"),
        "docs.css": (STYLE, "text/css"),
    }

    def serving(name: str) -> Endpoint:
        text, kind = texts[name]

        async def endpoint(request: Request) -> Response:
            try:
                await dispatcher.authenticate(request)
            except Refused as refused:
                return refusal(refused, request_id(request.headers))
            headers = {**SAFE_HEADERS, "content-security-policy": "default-src 'none'; style-src 'self'"}
            return Response(text, headers=headers, media_type=kind)

        return endpoint

    return [Route(f"{PREFIX}/{name}", serving(name)) for name in texts]
