"""The OpenAPI document of the server, for programs and as a page for people."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from windlass.errors import WindlassError
from windlass.server.browser.pages import docs_page, html_response
from windlass.server.browser.session import cookie_of, csrf_of
from windlass.server.dispatch import SAFE_HEADERS, Dispatcher, answer_problem, refusal, request_id
from windlass.server.mount.prefix import ROOT_KEY
from windlass.server.openapi import document
from windlass.server.operation import PREFIX, REQUEST_SECONDS, Operation
from windlass.server.problem import Refused

Endpoint = Callable[[Request], Awaitable[Response]]


def documentation(dispatcher: Dispatcher, operations: Sequence[Operation], *, own_login: bool) -> list[Route]:
    """The routes of the OpenAPI document and of the page that shows it; both need a token."""
    described = document(operations)
    text = msgspec.json.encode(described)

    async def for_programs(request: Request) -> Response:
        root = request.scope.get(ROOT_KEY)
        found = msgspec.json.encode({**described, "servers": [{"url": root}]}) if root else text
        return Response(found, headers=SAFE_HEADERS, media_type="application/json")

    async def for_people(request: Request) -> Response:
        cookie = cookie_of(request) if own_login else None
        return html_response(docs_page(described, csrf_of(cookie) if cookie else ""))

    return [
        Route(f"{PREFIX}/openapi.json", _authenticated(dispatcher, for_programs)),
        Route(f"{PREFIX}/docs", _authenticated(dispatcher, for_people, page=own_login)),
    ]


def _authenticated(dispatcher: Dispatcher, endpoint: Endpoint, *, page: bool = False) -> Endpoint:
    """An endpoint for callers with a token; a browser without one is redirected from a page to the log-in."""

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
