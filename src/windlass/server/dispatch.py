"""From a request to an answer: the caller, the decoded request, its operation, and errors as problems."""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from windlass.client.app import App
from windlass.client.verbs.audit import Actor, acting
from windlass.errors import WindlassError
from windlass.observe.tracing import carrying, incoming
from windlass.server.access import Access
from windlass.server.decode import check_media_type, decode_body, decode_query, read_body
from windlass.server.operation import REQUEST_SECONDS, Answer, Call, Caller, Operation
from windlass.server.problem import MEDIA_TYPE, RETRY_SECONDS, Problem, Refused, problem_of, without_addresses

SAFE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("windlass.server")
_encode = msgspec.json.Encoder().encode


RawHeaders = tuple[tuple[bytes, bytes], ...]
_SAFE: RawHeaders = tuple((name.encode(), value.encode()) for name, value in SAFE_HEADERS.items())
_JSON: RawHeaders = (*_SAFE, (b"content-type", b"application/json"))
_PROBLEM: RawHeaders = (*_SAFE, (b"content-type", MEDIA_TYPE.encode()))


class _Answered(Response):
    """A response whose fixed headers are encoded once for all responses."""

    def __init__(self, body: bytes, status: int, fixed: RawHeaders, id_: str, more: Mapping[str, str]) -> None:
        self.body, self.status_code, self.background = body, status, None
        self.raw_headers = [*fixed, (b"x-request-id", id_.encode()), (b"content-length", b"%d" % len(body))]
        self.raw_headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]


class Dispatcher:
    """Runs operations for requests."""

    def __init__(self, app: App, access: Access, state: Any) -> None:
        self._app = app
        self._access = access
        self._state = state

    async def run(self, operation: Operation, request: Request) -> Response:
        """The answer to a request, or an error as a problem."""
        id_ = request_id(request.headers)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await self._answer(operation, request)
        except Refused as refused:
            return refusal(refused, id_)
        except Exception as error:
            return answer_problem(error, id_, request)
        if isinstance(answer.body, Response):
            answer.body.headers.update({**SAFE_HEADERS, "x-request-id": id_})
            return answer.body
        body = b"" if answer.status == 204 else _encode(answer.body)
        return _Answered(body, answer.status, _JSON, id_, answer.headers)

    async def _answer(self, operation: Operation, request: Request) -> Answer:
        caller = await self.authenticate(request)
        caller.need(operation.scope, changes=operation.changes)
        query = decode_query(request, operation.query)
        text, body = b"", None
        if operation.body is not None:
            text = await read_body(request, operation.max_body)
            if text or not operation.optional_body:
                check_media_type(request.headers)
            body = decode_body(text or b"{}" if operation.optional_body else text, operation.body)
        call = Call(
            app=self._app,
            operation=operation,
            caller=caller,
            path=request.path_params,
            query=query,
            body=body,
            text=text,
            headers=request.headers,
            state=self._state,
            request=request,
        )
        trace = carrying(incoming(request.headers)) if "traceparent" in request.headers else nullcontext()
        with acting(Actor(caller.name, "rest", address_of(request) or None)), trace, caller.hiding_others():
            return await operation.handler(call)

    async def authenticate(self, request: Request) -> Caller:
        """The caller of a request; Refused without a valid token."""
        return await self._access.caller(request, address_of(request))


def address_of(request: Request) -> str:
    """The address of the client, as a configured proxy names it."""
    return request.client.host if request.client else ""


def request_id(headers: Mapping[str, str]) -> str:
    """The caller's X-Request-Id if it is a plain word, else a new one."""
    given = headers.get("x-request-id", "")
    return given if given and _REQUEST_ID.fullmatch(given) else os.urandom(16).hex()


def refusal(refused: Refused, id_: str) -> Response:
    """A refusal as a response."""
    more = dict(refused.headers)
    if refused.problem.status == 401:
        more.setdefault("www-authenticate", 'Bearer realm="windlass"')
    if refused.problem.status in (408, 413):
        more["connection"] = "close"  # the rest of the body is not read
    if refused.retry_after is not None:
        more["retry-after"] = str(refused.retry_after)
    return _response(refused.problem, id_, more)


def answer_problem(error: BaseException, id_: str, request: Request) -> Response:
    """An error as a response."""
    problem = logged_problem(error, id_, request)
    return _response(problem, id_, {"retry-after": str(RETRY_SECONDS)} if problem.status == 503 else {})


def logged_problem(error: BaseException, id_: str, request: Request) -> Problem:
    """An error as a problem that names no server; outages and failures of this server are logged."""
    if isinstance(error, WindlassError):
        problem = problem_of(error)
    elif isinstance(error, TimeoutError):
        problem = Problem(status=503, code="timeout", title="the store took too long", maybe_done=True)
    else:
        problem = Problem(status=500, code="internal", title="the server failed; its log has the request's id")
    if problem.status in (500, 503):
        trace = error if problem.status == 500 else None
        _log.error("%s %s: %s (request %s)", request.method, request.url.path, problem.title, id_, exc_info=trace)
    return without_addresses(error, problem) if isinstance(error, WindlassError) else problem


def _response(problem: Problem, id_: str, more: Mapping[str, str]) -> Response:
    return _Answered(_encode(msgspec.structs.replace(problem, request=id_)), problem.status, _PROBLEM, id_, more)
