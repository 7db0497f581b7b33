"""Sessions of browsers: a cookie instead of the header Authorization, after a log-in by a token.

A session is a document with the digest of its secret, so all servers of the store share it. It ends after 12 hours,
by a log-out, and when its token is revoked or rotated.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from windlass.client.app import App
from windlass.core.ids import is_id, new_id
from windlass.core.moments import SECOND, Micros
from windlass.core.tokens import Token, digest_of
from windlass.server.problem import Refused

KIND = "session"
LENGTH: Micros = 12 * 3600 * SECOND
MAX_SESSIONS = 10_000
"""When there are more, the oldest end."""
CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"
_SAFE = ("GET", "HEAD")
_SAME_SITE = ("same-origin", "none")


class _Stored(msgspec.Struct, frozen=True):
    token: str
    token_digest: str
    digest: str


_decoder = msgspec.json.Decoder(_Stored)


def cookie_name(secure: bool) -> str:
    """The name of the cookie; with HTTPS, one that browsers accept only from this host."""
    return "__Host-windlass" if secure else "windlass"


def cookie_of(request: Request) -> str | None:
    """The session that a browser sends."""
    # Starlette parses leniently: a malformed cookie of another program on this host must not hide the session's.
    return request.cookies.get(cookie_name(is_secure(request)))


def is_secure(request: Request) -> bool:
    """Whether the browser uses HTTPS, to this server or to a configured proxy."""
    return bool(request.scope["scheme"] == "https")


def drop_cookie(request: Request, response: Response) -> None:
    """Make the browser forget its session."""
    secure = is_secure(request)
    response.delete_cookie(cookie_name(secure), secure=secure, httponly=True, samesite="strict")


def csrf_of(cookie: str) -> str:
    """The CSRF token, which a change by a browser must send too: other sites cannot read or guess it."""
    return hmac.new(cookie.encode(), b"csrf", hashlib.sha256).hexdigest()


async def begin(app: App, text: str, token: Token) -> str:
    """A new session of a token; returns its cookie."""
    id_, secret = new_id(), os.urandom(32).hex()
    stored = _Stored(token.id, digest_of(text), _digest(secret))
    documents = (await app._ready()).documents
    await documents.add(KIND, id_, msgspec.json.encode(stored).decode(), LENGTH)
    await documents.trim(KIND, MAX_SESSIONS, 100)
    return f"{id_}.{secret}"


async def token_of(app: App, cookie: str) -> tuple[str, str] | None:
    """The id and the digest of the token that began a valid session."""
    id_, _, secret = cookie.partition(".")
    if not is_id(id_):
        return None
    document = (await (await app._ready()).documents.get(KIND, [id_]))[0]
    if document is None:
        return None
    stored = _decoder.decode(document.data)
    if not hmac.compare_digest(_digest(secret), stored.digest):
        return None
    return stored.token, stored.token_digest


async def end(app: App, cookie: str) -> None:
    """End a session, if this is its cookie."""
    if await token_of(app, cookie) is not None:
        await (await app._ready()).documents.delete(KIND, [cookie.partition(".")[0]])


def check_change(request: Request, cookie: str, given: str | None = None) -> None:
    """Refuse a change by a browser unless a page of this server made it."""
    if request.method in _SAFE:
        return
    check_origin(request.headers)
    sent = request.headers.get(CSRF_HEADER) if given is None else given
    if sent is None or not hmac.compare_digest(sent.encode(), csrf_of(cookie).encode()):
        raise Refused(403, "csrf", f"send the CSRF token of the session: {CSRF_HEADER}")


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuse what a page of another site sends."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    same = site in _SAME_SITE if site else origin is None or origin.partition("://")[2] == headers.get("host")
    if not same:
        raise Refused(403, "cross_site", "this request comes from a page of another site")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
