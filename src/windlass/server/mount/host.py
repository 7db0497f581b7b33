"""Callers of a mounted server: the surrounding app names them and their scopes."""

import asyncio
import hmac
import inspect
import os
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Scope as AsgiScope

from windlass.core.names import check_key
from windlass.core.tokens import Rights, check_names, check_scopes
from windlass.errors import ConfigError, InvalidInput
from windlass.server.access import FRESH, Access, too_many
from windlass.server.browser.session import CSRF_FIELD, check_origin, csrf_of
from windlass.server.operation import Caller
from windlass.server.problem import Refused
from windlass.store.clock import since_boot

Grant = tuple[str, Iterable[str], Iterable[str]]
"""A name for the audit, scopes, and the queues that it is limited to (none: all)."""
Auth = Callable[[Request], Grant | Awaitable[Grant | None] | None]
CSRF_COOKIE = "windlass_csrf"
SCOPE_KEY = "windlass.csrf"
"""In the scope of a request: its cookie, or the new one that the answer sets."""
CALLER_KEY = "windlass.caller"
"""In the scope of an open request: its caller, and when `auth` was called."""
ANSWER_KEY = "windlass.answer"
"""In the scope of a request that `auth` answered by an HTTPException: its redirects get no prefix."""
MAX_CALLER_NAME = 254
"""Bytes: the maximum of an e-mail address."""
ASK_SECONDS = 5.0
"""For `auth`, while a request is open."""
_SAFE = ("GET", "HEAD")
_CODES = {401: "unauthorized", 404: "not_found", 429: "too_many_requests", 503: "unavailable"}


def check_auth(auth: Any) -> Auth:
    """The setting, if it can be called."""
    if not callable(auth):
        raise ConfigError(f"auth should be a function of the request, not {type(auth).__name__}")
    return auth  # type: ignore[no-any-return]


class HostAccess(Access):
    """Finds the caller by a token of Windlass, else by `auth`."""

    def __init__(self, auth: Auth, *args: Any) -> None:
        super().__init__(*args)
        self._auth = auth

    async def caller(self, request: Request, address: str, csrf: str | None = None) -> Caller:
        """The caller; Refused with 401, 403 or 429. A change needs the CSRF token of a page, or a bearer token,
        which pages of other sites cannot send.
        """
        if _has_our_token(request):
            return await super().caller(request, address, csrf)
        found = await self._ask(request)
        if not _has_bearer(request):
            self._check_change(request, found, csrf)
        if (wait := self._calls.spend(found.id)) > 0:
            raise too_many("this caller has used up its rate of requests", wait)
        return found

    async def recheck(self, request: Request) -> Caller:
        """The caller of a request that is still open; `auth` is called again every four seconds."""
        if _has_our_token(request):
            return await super().recheck(request)
        # Not in its `state`, which the surrounding app may share between requests of many callers.
        known: tuple[int, Caller] | None = request.scope.get(CALLER_KEY)
        if known is None or since_boot() - known[0] >= FRESH:
            known = request.scope[CALLER_KEY] = (since_boot(), await self._ask_again(request))
        return known[1]

    def credential(self, request: Request) -> Hashable:
        """The request itself: `auth` may read anything in it."""
        return super().credential(request) if _has_our_token(request) else request

    def csrf_token(self, request: Request, caller: Caller) -> str:
        """The CSRF token that a form of this caller must send back."""
        return "" if _has_our_token(request) else csrf_of(f"{request.scope[SCOPE_KEY]}.{caller.name}")

    async def _ask_again(self, request: Request) -> Caller:
        """Without an answer the stream ends; a TimeoutError would count as an outage of the store."""
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await self._ask(request)
        except TimeoutError:
            raise Refused(
                503, "timeout", "the app around this server did not answer whether the caller is still allowed"
            ) from None

    async def _ask(self, request: Request) -> Caller:
        try:
            answer: Any = self._auth(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except HTTPException as error:
            request.scope[ANSWER_KEY] = True
            raise _answer_of(error) from None
        if answer is None:
            raise Refused(401, "unauthorized", "the app around this server does not let this caller in")
        try:
            name, scopes, queues = answer
            rights = Rights(
                scopes=frozenset(check_scopes(scopes)), queues=frozenset(check_names(tuple(queues), "queues"))
            )
            return Caller(f"host:{check_key(name, 'name', MAX_CALLER_NAME)}", name, rights, self._policy)
        except (TypeError, ValueError, InvalidInput) as error:
            problem = f"auth must return None, or a name, scopes and queues: {error}"
            raise ConfigError(problem) from None

    def _check_change(self, request: Request, caller: Caller, given: str | None) -> None:
        if request.method in _SAFE:
            return
        check_origin(request.headers)
        sent = request.headers.get(f"x-{CSRF_FIELD}-token") if given is None else given
        if sent is None or not hmac.compare_digest(sent.encode(), self.csrf_token(request, caller).encode()):
            raise Refused(403, "csrf", "send the CSRF token of the dashboard's pages")


def _answer_of(error: HTTPException) -> Refused:
    """An HTTP error of the surrounding app, with its status, headers and detail."""
    # FastAPI allows any JSON as detail.
    detail: Any = error.detail
    title = detail if isinstance(detail, str) else msgspec.json.encode(detail).decode()
    refused = Refused(error.status_code, _CODES.get(error.status_code, "refused"), title)
    given = {name.lower(): value for name, value in (error.headers or {}).items()}
    refused.headers = {name: value for name, value in given.items() if not name.startswith("content-")}
    return refused


def csrf_cookie(scope: AsgiScope) -> tuple[str, bool]:
    """The cookie that a caller's forms are bound to, and whether it is new."""
    found = Request(scope).cookies.get(CSRF_COOKIE, "")
    is_old = len(found) == 64 and found.isalnum() and found.isascii()
    return (found, False) if is_old else (os.urandom(32).hex(), True)


def _has_our_token(request: Request) -> bool:
    return request.headers.get("authorization", "").partition(" ")[2].strip().startswith("wl_")


def _has_bearer(request: Request) -> bool:
    return request.headers.get("authorization", "").lower().startswith("bearer ")
