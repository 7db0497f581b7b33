"""Authentication by tokens and sessions, each checked against the store every four seconds, and rates of calls."""

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec
from starlette.requests import Request

from windlass.client.app import App
from windlass.core.flow.rate import Rate, TokenBucket, full, refilled, spent, wait_for
from windlass.core.moments import SECOND, Micros
from windlass.core.tokens import Scope, Token, digest_of, id_of
from windlass.errors import ConfigError, StoreUnavailable
from windlass.server.browser import session
from windlass.server.operation import OPEN, Caller, Policy
from windlass.server.problem import Refused
from windlass.server.shared_reads import SharedReads
from windlass.store.clock import since_boot

FRESH: Micros = 4 * SECOND
"""How long the check of a token is valid: a revoked one ends within 5 seconds."""
MAX_KNOWN = 10_000
NOTED_EVERY: Micros = 60 * SECOND
"""How often the last use of a token is written."""
FAILURES = Rate(10, 60 * SECOND, 10)
"""Of wrong tokens from one address."""
_PORT = re.compile(r":[0-9]*$")

Kind = Literal["token", "session"]


class _Known(msgspec.Struct):
    token: Token
    caller: Caller
    at: Micros
    noted: Micros


class RateLimiter:
    """One token bucket per key, for the keys seen last."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._token_buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait(self, key: str) -> Micros:
        """How long this key has to wait; 0: not at all."""
        return wait_for(self._token_bucket(key), self._rate, 1)

    def spend(self, key: str) -> Micros:
        """Count one call and return 0, or return how long it has to wait."""
        token_bucket = self._token_bucket(key)
        if (wait := wait_for(token_bucket, self._rate, 1)) > 0:
            return wait
        self._token_buckets[key] = spent(token_bucket, 1)
        self._token_buckets.move_to_end(key)
        if len(self._token_buckets) > MAX_KNOWN:
            self._token_buckets.popitem(last=False)
        return 0

    def _token_bucket(self, key: str) -> TokenBucket:
        now = since_boot()
        return refilled(self._token_buckets.get(key) or full(self._rate, now), self._rate, now)


class Access:
    """Finds the caller of a request, or refuses it."""

    def __init__(self, app: App, rate: Rate, development: str | None = None, policy: Policy = OPEN) -> None:
        """`development` is the text of a token that is in no store."""
        self._app = app
        self._policy = policy
        self._development = None if development is None else _development(development)
        self._known: OrderedDict[tuple[Kind, bytes], _Known] = OrderedDict()
        self._failures = RateLimiter(FAILURES)
        self._calls = RateLimiter(rate)
        self._checks: SharedReads[tuple[Kind, bytes], _Known | None] = SharedReads(FRESH)
        self._tasks: set[asyncio.Task[None]] = set()

    async def caller(self, request: Request, address: str, csrf: str | None = None) -> Caller:
        """The caller by its bearer token, or by its session; Refused with 401, 403 or 429.

        `csrf` is the CSRF token of a form; None: a change has it in a header.
        """
        kind, text = _credential(request)
        if kind == "session":
            session.check_change(request, text, csrf)
        return self._admitted(await self._find(kind, text, address))

    async def recheck(self, request: Request) -> Caller:
        """The caller of a request that is still open; Refused within 5 seconds after its token or session ended."""
        return (await self._find(*_credential(request), "")).caller

    def credential(self, request: Request) -> Hashable:
        """Open requests with the same credential need only one recheck for all of them."""
        return _key(*_credential(request))

    async def log_in(self, text: str, address: str) -> Token:
        """The token with this text, for a new session; Refused with 401 or 429."""
        known = await self._find("token", text, address)
        self._admitted(known)
        return known.token

    def csrf_token(self, request: Request, caller: Caller) -> str:
        """What a form of this caller must send back; empty: it has no session."""
        cookie = session.cookie_of(request)
        return session.csrf_of(cookie) if cookie else ""

    def forget(self, cookie: str) -> None:
        """Ask the store again at the next use of a session."""
        self._known.pop(_key("session", cookie), None)

    def _admitted(self, known: _Known) -> Caller:
        """The caller, within its rate."""
        if (wait := self._calls.spend(known.token.id)) > 0:
            raise too_many("this token has used up its rate of requests", wait)
        self._note_use(known)
        return known.caller

    def last_known(self, headers: Mapping[str, str]) -> Caller | None:
        """The caller according to the last check of its token: for metrics while the store is away."""
        text = headers.get("authorization", "").partition(" ")[2].strip()
        known = self._known.get(_key("token", text))
        if known is None or _has_expired(known.token):
            return None
        return known.caller

    async def stop(self) -> None:
        """Cancel checks and notes that are in progress."""
        await self._checks.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _verify(self, kind: Kind, text: str) -> Token | None:
        if kind == "session":
            found = await session.token_of(self._app, text)
        else:
            id_ = id_of(text)
            found = None if id_ is None else (id_, digest_of(text))
        return None if found is None else await self._verify_digest(*found)

    async def _verify_digest(self, id_: str, digest: str) -> Token | None:
        if self._development is not None and hmac.compare_digest(digest, self._development[1]):
            return self._development[0]
        return await self._app.tokens.averify_digest(id_, digest)

    async def _find(self, kind: Kind, text: str, address: str) -> _Known:
        key, now = _key(kind, text), since_boot()
        known = self._known.get(key)
        if known is not None and now - known.at < FRESH:
            return known
        # Wrong tokens from the same address do not lock out a token that was valid here.
        if known is None and (wait := self._failures.wait(address)) > 0:
            raise too_many("too many wrong tokens from this address", wait)
        found = await self._checks.get(key, lambda: self._check(kind, text))
        if found is None:
            self._failures.spend(address)
            raise _refused("this token or session is not valid: unknown, revoked or expired")
        return found

    async def _check(self, kind: Kind, text: str) -> _Known | None:
        """Ask the store, and keep the answer."""
        key, now = _key(kind, text), since_boot()
        token = await self._verify(kind, text)
        known = self._known.pop(key, None)
        if token is None:
            return None
        caller = Caller(token.id, token.name, token.rights, self._policy)
        found = self._known[key] = _Known(token, caller, now, known.noted if known else 0)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return found

    def _note_use(self, known: _Known) -> None:
        if (now := since_boot()) - known.noted < NOTED_EVERY and known.noted:
            return
        known.noted = now
        task = asyncio.get_running_loop().create_task(self._write_use(known.token.id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_use(self, id_: str) -> None:
        with contextlib.suppress(StoreUnavailable):  # the next minute's note is as good
            await self._app.tokens.amark_used(id_, time.time_ns() // 1000)


def _credential(request: Request) -> tuple[Kind, str]:
    """The bearer token of a request, or its session."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text:
        return "token", text.strip()
    if cookie := session.cookie_of(request):
        return "session", cookie
    raise _refused("send a token: Authorization: Bearer wl_…")


def _key(kind: Kind, text: str) -> tuple[Kind, bytes]:
    """The kind is in the key: the text of a token is not valid as a session, nor the other way round."""
    return kind, hashlib.sha256(text.encode()).digest()


def serves_host(given: str, names: Collection[str]) -> bool:
    """Whether a Host is this server: an address, localhost, or one of these names.

    A page of another site whose name resolves to this server (DNS rebinding) sends that name.
    """
    name = given.rpartition(":")[0] if _PORT.search(given) else given
    name = name.strip("[]").removesuffix(".").lower()
    if name == "localhost" or name.endswith(".localhost") or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return not given  # browsers always send a Host
    return True


def _has_expired(token: Token) -> bool:
    return token.expires_at is not None and token.expires_at <= datetime.now(UTC)


def _development(text: str) -> tuple[Token, str]:
    """A token that is in no store, and the digest of its text."""
    id_ = id_of(text)
    if id_ is None:
        raise ConfigError("the token for development cannot be read")
    token = Token(id=id_, name="development", scopes=(Scope.ADMIN,), created_at=datetime.now(UTC))
    return token, digest_of(text)


def too_many(title: str, wait: Micros) -> Refused:
    """The refusal of a call beyond a rate."""
    refused = Refused(429, "too_many_requests", title)
    refused.retry_after = max(1, -(-wait // SECOND))
    return refused


def _refused(title: str) -> Refused:
    return Refused(401, "unauthorized", title)
