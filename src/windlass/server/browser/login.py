"""GET and POST /login, the link of `windlass dev`, POST /logout."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from windlass.client.app import App
from windlass.core.moments import DAY, SECOND
from windlass.core.tokens import Token, link_code
from windlass.errors import WindlassError
from windlass.server.access import Access
from windlass.server.browser import session
from windlass.server.browser.pages import html_response, login_page
from windlass.server.decode import read_body
from windlass.server.dispatch import SAFE_HEADERS, address_of, answer_problem, refusal, request_id
from windlass.server.problem import Refused

MAX_FORM = 4096
HOME = "/"
LINK_KIND = "login_link"
"""The documents that keep which links of `windlass dev` were used."""
_PATH = re.compile(r"/(?:[A-Za-z0-9_.~-][A-Za-z0-9_./~-]*)?(?:\?[A-Za-z0-9_.~%&=+:,-]*)?")
Endpoint = Callable[[Request], Awaitable[Response]]


class LogIn:
    """The log-in by a token."""

    def __init__(self, app: App, access: Access, development: str | None = None) -> None:
        self._app = app
        self._access = access
        self._development = development

    @property
    def routes(self) -> list[Route]:
        """Its paths."""
        return [
            Route("/login", _guarded(self.form), methods=["GET"]),
            Route("/login", _guarded(self.log_in), methods=["POST"]),
            Route("/login/{code}", _guarded(self.log_in_once), methods=["GET"]),
            Route("/logout", _guarded(self.log_out), methods=["POST"]),
        ]

    async def form(self, request: Request) -> Response:
        """The form."""
        return html_response(login_page(next_path(request.query_params.get("next"))))

    async def log_in(self, request: Request) -> Response:
        """Begin a session with the token of the form."""
        session.check_origin(request.headers)
        form = await _form(request)
        text, following = form.get("token", "").strip(), next_path(form.get("next"))
        try:
            token = await self._access.log_in(text, address_of(request))
        except Refused as refused:
            return html_response(login_page(following, str(refused)), refused.problem.status, refused.retry_after)
        return await self._begin(request, text, token, following)

    async def log_in_once(self, request: Request) -> Response:
        """Begin a session by the link of `windlass dev`, and redirect; a second use is refused."""
        text = self._development
        if request.method == "HEAD":
            return Response(status_code=204, headers=SAFE_HEADERS)
        if text is None or not await self._spend(text, request.path_params["code"]):
            said = "this link has been used, or is of another run: log in with the token, or start again"
            return html_response(login_page(HOME, said), 403)
        return await self._begin(request, text, await self._access.log_in(text, address_of(request)), HOME)

    async def _spend(self, development: str, code: str) -> bool:
        """Whether this is the code of this run, used for the first time. The store keeps its use over a restart."""
        if not hmac.compare_digest(link_code(development).encode(), code.encode()):
            return False
        documents = (await self._app._ready()).documents
        return await documents.add(LINK_KIND, hashlib.sha256(code.encode()).hexdigest(), "{}", DAY) is None

    async def _begin(self, request: Request, text: str, token: Token, following: str) -> Response:
        response = RedirectResponse(following, 303, SAFE_HEADERS)
        secure = session.is_secure(request)
        response.set_cookie(
            session.cookie_name(secure),
            await session.begin(self._app, text, token),
            max_age=session.LENGTH // SECOND,
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        response = RedirectResponse("/login", 303, SAFE_HEADERS)
        if cookie := session.cookie_of(request):
            session.check_change(request, cookie, (await _form(request)).get(session.CSRF_FIELD))
            await session.end(self._app, cookie)
            self._access.forget(cookie)
            session.drop_cookie(request, response)
        return response


def next_path(given: str | None) -> str:
    """Where to go after a log-in: a path of this server."""
    return given if given and _PATH.fullmatch(given) else HOME


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Errors as problems."""

    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            return refusal(refused, request_id(request.headers))
        except (WindlassError, TimeoutError) as error:
            return answer_problem(error, request_id(request.headers), request)

    return guarded


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "unsupported_media_type", "send a form")
    try:
        found = parse_qs((await read_body(request, MAX_FORM)).decode(), max_num_fields=10)
    except ValueError:
        raise Refused(400, "invalid_form", "the body is not a form") from None
    return {name: values[0] for name, values in found.items()}
