"""The dashboard of a server: routes, the caller of each request, its forms, and errors as pages."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from windlass.client.app import App
from windlass.client.verbs.audit import Actor, acting
from windlass.server.browser.session import cookie_of, drop_cookie
from windlass.server.dashboard import (
    audit,
    dead,
    flows,
    job,
    jobs,
    many_jobs,
    overview,
    queues,
    schedules,
    settings,
    suggest,
    types,
    webhooks,
    workers,
)
from windlass.server.dashboard.forms import enqueue, schedule
from windlass.server.dashboard.page import Download, Fields, Look, Moved, Page, Reply, Shown, View, link
from windlass.server.dashboard.render import make_templates
from windlass.server.decode import read_body
from windlass.server.dispatch import SAFE_HEADERS, logged_problem, refusal, request_id
from windlass.server.operation import Caller, Handler, Operation
from windlass.server.problem import Problem, Refused

PAGES: tuple[Page, ...] = (
    *overview.PAGES,
    *jobs.PAGES,
    *many_jobs.PAGES,
    *job.PAGES,
    *enqueue.PAGES,
    *queues.PAGES,
    *dead.PAGES,
    *flows.PAGES,
    *schedule.PAGES,
    *schedules.PAGES,
    *workers.PAGES,
    *types.PAGES,
    *audit.PAGES,
    *webhooks.PAGES,
    *suggest.PAGES,
    *settings.PAGES,
)
PAGE_SECONDS = 15.0
"""A page that takes longer is answered with an error page."""
MAX_FORM = 256 * 1024
MAX_FIELDS = 5_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
THEMES = ("light", "dark")


class Visitor(msgspec.Struct, frozen=True):
    """The caller of a page, and the CSRF token of its session."""

    caller: Caller
    csrf: str


Identify = Callable[[Request, str], Awaitable[Visitor]]
"""The visitor of a request; Refused without a valid token or session, or for a form with another CSRF token."""


class Dashboard:
    """Answers requests for pages."""

    def __init__(
        self,
        app: App,
        identify: Identify,
        operations: tuple[Operation, ...],
        state: Any,
        look: Look,
    ) -> None:
        self._app = app
        self._identify = identify
        self._operations: Mapping[Handler, Operation] = {each.handler: each for each in operations}
        self._state = state
        self._look = look
        self._templates = make_templates()
        self._files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in KINDS}

    def routes(self) -> list[Route]:
        """Routes of all pages and static files."""
        made = [Route(page.path, self._endpoint(page), methods=[page.method]) for page in PAGES]
        return [*made, Route("/static/{name}", self.static_file)]

    def _endpoint(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await self.run(page, request)

        return endpoint

    async def run(self, page: Page, request: Request) -> Response:
        """The page, or an error page."""
        visitor = None
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                form = await _form(request) if page.method == "POST" else {}
                visitor = await self._identify(request, next(iter(form.get("csrf", ())), ""))
                return self._response(request, visitor, await self._reply(page, request, visitor, form))
        except Refused as refused:
            if refused.problem.status == 401 and visitor is None and self._look.own_login:
                return _to_log_in(request)
            if refused.headers:  # of the surrounding app, which may redirect to its log-in
                return self._refused(request, refused)
            problem = refused.problem
        except TimeoutError:
            said, is_change = f"the store took more than {PAGE_SECONDS:g} s", page.method == "POST"
            problem = Problem(status=503, code="timeout", title=said, maybe_done=is_change)
        except Exception as error:
            problem = logged_problem(error, _id(request), request)
        return self.failed(request, problem, visitor)

    async def _reply(self, page: Page, request: Request, visitor: Visitor, form: Fields) -> Reply:
        visitor.caller.need(page.scope, changes=page.method == "POST")
        view = View(
            app=self._app,
            caller=visitor.caller,
            csrf=visitor.csrf,
            path=request.path_params,
            query=_fields(request.url.query),
            form=form,
            operations=self._operations,
            state=self._state,
            look=self._look,
        )
        address = request.client.host if request.client else None
        with acting(Actor(visitor.caller.name, "dashboard", address)), visitor.caller.hiding_others():
            return await page.handler(view)

    def failed(self, request: Request, problem: Problem, visitor: Visitor | None = None) -> Response:
        """An error page, with advice."""
        context = {"problem": problem, "request_id": _id(request), "here": _here(request)}
        context["is_change"] = request.method != "GET"
        title = "The store does not answer" if problem.status == 503 else "This did not work"
        return self._response(request, visitor, Shown("error.html", title, context, problem.status))

    def _refused(self, request: Request, refused: Refused) -> Response:
        if refused.problem.status < 400:
            return refusal(refused, _id(request))
        made = self.failed(request, refused.problem)
        made.headers.update(refused.headers)
        return made

    def _response(self, request: Request, visitor: Visitor | None, reply: Reply) -> Response:
        headers = {**SAFE_HEADERS, "content-security-policy": POLICY, "x-request-id": _id(request)}
        if isinstance(reply, Moved):
            return RedirectResponse(reply.to, 303, headers)
        if isinstance(reply, Download):
            headers["content-disposition"] = f'attachment; filename="{reply.name}"'
            return Response(reply.content, 200, headers, "application/json")
        theme = request.cookies.get("windlass_theme", "")
        text = self._templates.get_template(reply.template).render(
            reply.context,
            title=reply.title,
            caller=visitor.caller if visitor else None,
            csrf=visitor.csrf if visitor else "",
            environment=self._look.environment,
            own_login=self._look.own_login,
            page_path=request.url.path,
            theme=theme if theme in THEMES else "",
        )
        return Response(text, reply.status, headers, "text/html; charset=utf-8")

    async def static_file(self, request: Request) -> Response:
        """A style, script or picture of the package; nothing in it is secret."""
        name = request.path_params["name"]
        content = self._files.get(name)
        if content is None:
            return self.failed(request, Problem(status=404, code="not_found", title=f"there is no file {name[:80]}"))
        headers = {**SAFE_HEADERS, "cache-control": "no-cache"}
        return Response(content, 200, headers, KINDS[Path(name).suffix])


def _to_log_in(request: Request) -> Response:
    """Redirect to the log-in. The cookie of an ended session is deleted: an open page would keep sending it."""
    response = RedirectResponse(link("/login", next=_here(request)), 303, SAFE_HEADERS)
    if cookie_of(request) is not None:
        drop_cookie(request, response)
    return response


async def _form(request: Request) -> Fields:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "unsupported_media_type", "send a form")
    return _fields((await read_body(request, MAX_FORM)).decode("utf-8", "replace"))


def _fields(text: str) -> Fields:
    found: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS):
            found.setdefault(name, []).append(value)
    except ValueError:
        raise Refused(
            413, "too_many_fields", f"there are more than {MAX_FIELDS:,} fields", limit=MAX_FIELDS
        ) from None
    return found


def _here(request: Request) -> str:
    """The page of a request, or the page of its form."""
    if request.method == "GET":
        return request.url.path + (f"?{request.url.query}" if request.url.query else "")
    parts = request.url.path.split("/")[1:]
    return "/" + "/".join(parts[:2] if parts[0] in ("actions", "flows", "jobs", "queues", "schedules") else parts[:1])


def _id(request: Request) -> str:
    if not hasattr(request.state, "id"):
        request.state.id = request_id(request.headers)
    return str(request.state.id)
