"""The server under a prefix of another app: its callers are that app's, its links have the prefix."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi import HTTPException as FastAPIError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from tests.support.addresses import on_sqlite
from windlass import App, ConfigError
from windlass.core.flow.rate import parse_rate
from windlass.server import asgi
from windlass.server.mount import host as host_module
from windlass.server.mount.host import HostAccess

pytestmark = on_sqlite
PREFIX = "/admin/jobs"
PEOPLE: dict[str, tuple[str, list[str], list[str]]] = {
    "ada": ("ada", ["admin"], []),
    "bob": ("bob", ["read"], []),
    "mia": ("mia", ["operate"], ["mail"]),
}


def auth(request: Request) -> tuple[str, Iterable[str], Iterable[str]] | None:
    return PEOPLE.get(request.cookies.get("user", ""))


def starlette_host(served: Any) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with served.lifespan():
            yield

    async def home(request: Request) -> Response:
        return PlainTextResponse("home")

    return Starlette(routes=[Route("/", home), Mount(PREFIX, served)], lifespan=lifespan)


def fastapi_host(served: Any) -> Any:
    host = FastAPI(lifespan=lambda _: served.lifespan())
    host.mount(PREFIX, served)
    return host


def bare_host(served: Any) -> Any:
    """An app that sets the prefix as ASGI says, such as a dispatcher beside Django."""

    async def host(scope: Any, receive: Any, send: Any) -> None:
        await served({**scope, "root_path": PREFIX}, receive, send)

    return host


@asynccontextmanager
async def visiting(host: Any, user: str = "ada", **more: Any) -> AsyncIterator[httpx.AsyncClient]:
    cookies = {"user": user} if user else {}
    transport = httpx.ASGITransport(host, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://host", cookies=cookies, **more) as made:
        yield made


@pytest.mark.parametrize("host", [starlette_host, fastapi_host, bare_host])
async def test_pages_links_files_redirects_and_the_api_have_the_prefix(app: App, host: Any) -> None:
    async with visiting(host(asgi(app, auth=auth)), headers={"accept": "text/html"}) as browser:
        page = await browser.get(f"{PREFIX}/")
        assert page.status_code == 200
        links = re.findall(r"""(?:href|src|action)=["'](/[^"']*)""", page.text)
        assert links
        assert [link for link in links if not link.startswith(f"{PREFIX}/")] == []
        assert int(page.headers["content-length"]) == len(page.content)
        files = [link for link in links if "/static/" in link]
        assert {(await browser.get(each)).status_code for each in files} == {200}
        assert f'data-root="{PREFIX}"' in page.text
        assert "/logout" not in page.text
        made = await enqueue(browser, page.text)
        assert made.headers["location"].startswith(f"{PREFIX}/jobs/")
        assert (await browser.get(made.headers["location"])).status_code == 200
        described = (await browser.get(f"{PREFIX}/api/v1/openapi.json")).json()
        assert described["servers"] == [{"url": PREFIX}]
        assert (await browser.get(f"{PREFIX}/api/v1/stats")).status_code == 200
        assert (await browser.get(f"{PREFIX}/healthz")).status_code == 200
        assert (await browser.get(f"{PREFIX}/login")).status_code == 404
    names = [entry.actor.name for entry in await app.audit.alist()]
    assert set(names) <= {"ada"}


async def enqueue(browser: httpx.AsyncClient, page: str) -> httpx.Response:
    """Enqueue a job by the form of the page."""
    form = {
        "csrf": csrf_in(await browser.get(f"{PREFIX}/enqueue?type=mail.welcome")),
        "type": "mail.welcome",
        "payload": '{"user_id": 1}',
    }
    return await browser.post(f"{PREFIX}/enqueue", data=form)


def csrf_in(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found, page.text
    return found[1]


async def test_without_auth_mounting_is_refused(app: App) -> None:
    async with visiting(starlette_host(asgi(app))) as browser:
        for path in ("/", "/api/v1/stats", "/healthz", "/static/dashboard.css"):
            answer = await browser.get(PREFIX + path)
            assert (answer.status_code, answer.json()["code"]) == (500, "mounted_without_auth")
            assert "auth=" in answer.json()["title"]
    with pytest.raises(ConfigError, match="auth should be a function"):
        asgi(app, auth="admin")  # type: ignore[arg-type]


async def test_the_app_around_names_a_caller_and_what_it_may_do(app: App) -> None:
    await app.aenqueue("img.resize", {"path": "a"})
    host = starlette_host(asgi(app, auth=auth))
    async with visiting(host, "") as stranger:
        assert (await stranger.get(f"{PREFIX}/api/v1/jobs")).status_code == 401
        page = await stranger.get(f"{PREFIX}/", headers={"accept": "text/html"})
        assert (page.status_code, "Log in to the app" in page.text) == (401, True)
    async with visiting(host, "mia") as mia:
        assert (await mia.get(f"{PREFIX}/api/v1/jobs")).json()["jobs"] == []
    async with visiting(host, "bob") as bob:
        assert len((await bob.get(f"{PREFIX}/api/v1/jobs")).json()["jobs"]) == 1
        assert (await bob.get(f"{PREFIX}/api/v1/audit")).status_code == 403


async def test_an_e_mail_address_is_a_name(app: App) -> None:
    grant: tuple[str, list[str], list[str]] = ("Ada <ada@example.org>", ["admin"], [])
    async with visiting(starlette_host(asgi(app, auth=lambda request: grant))) as browser:
        page = await browser.get(f"{PREFIX}/queues", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "Ada &lt;ada@example.org&gt;" in page.text


async def test_a_wrong_answer_of_auth_is_an_error_of_the_server_and_gives_no_access(app: App) -> None:
    async with visiting(starlette_host(asgi(app, auth=lambda request: ("ada", ["everything"], [])))) as browser:
        answer = await browser.get(f"{PREFIX}/api/v1/jobs")
        assert answer.status_code == 500


async def test_an_async_auth_may_read_the_session_of_the_app_around(app: App) -> None:
    async def by_session(request: Request) -> Any:
        await asyncio.sleep(0)
        return (request.session["user"], ["read"], []) if "user" in request.session else None

    async def enter(request: Request) -> Response:
        request.session["user"] = "eve"
        return PlainTextResponse("hello")

    served = asgi(app, auth=by_session)
    routes = [Route("/enter", enter), Mount(PREFIX, served)]
    host = Starlette(routes=routes, middleware=[Middleware(SessionMiddleware, secret_key="s")])
    async with visiting(host, "") as browser:
        assert (await browser.get(f"{PREFIX}/api/v1/jobs")).status_code == 401
        await browser.get("/enter")
        assert (await browser.get(f"{PREFIX}/api/v1/jobs")).status_code == 200


async def test_a_change_needs_the_token_of_a_page_and_comes_from_this_site(app: App) -> None:
    host = starlette_host(asgi(app, auth=auth))
    body = {"type": "mail.welcome", "payload": {"user_id": 1}}
    async with visiting(host) as browser:
        assert (await browser.post(f"{PREFIX}/api/v1/jobs", json=body)).json()["code"] == "csrf"
        page = await browser.get(f"{PREFIX}/enqueue?type=mail.welcome")
        assert "HttpOnly; SameSite=Strict" in page.headers["set-cookie"]
        assert f"Path={PREFIX}" in page.headers["set-cookie"]
        token = {"x-csrf-token": csrf_in(page)}
        other = {**token, "sec-fetch-site": "cross-site"}
        assert (await browser.post(f"{PREFIX}/api/v1/jobs", json=body, headers=other)).json()["code"] == "cross_site"
        assert (await browser.post(f"{PREFIX}/api/v1/jobs", json=body, headers=token)).status_code == 201
        form = {"csrf": "0" * 64, "type": "mail.welcome", "payload": "{}"}
        assert (await browser.post(f"{PREFIX}/enqueue", data=form)).status_code == 403
        browser.cookies.set("user", "mia")  # the same browser, another person
        assert (await browser.post(f"{PREFIX}/api/v1/jobs", json=body, headers=token)).json()["code"] == "csrf"


async def test_a_token_of_ours_works_without_the_app_around(app: App) -> None:
    new = await app.tokens.acreate("t", ["enqueue"])
    async with visiting(starlette_host(asgi(app, auth=auth)), "") as program:
        headers = {"authorization": f"Bearer {new.text}"}
        body = {"type": "mail.welcome", "payload": {"user_id": 1}}
        assert (await program.post(f"{PREFIX}/api/v1/jobs", json=body, headers=headers)).status_code == 201
        assert (await program.get(f"{PREFIX}/api/v1/jobs", headers=headers)).status_code == 403


async def test_its_lifespan_closes_what_it_opened(app: App) -> None:
    served = asgi(app, auth=auth)
    host = starlette_host(served)
    async with host.router.lifespan_context(host), visiting(host) as browser:
        assert (await browser.get(f"{PREFIX}/readyz")).status_code == 200
    assert served.state.probes.stopping


@pytest.mark.parametrize("error", [RuntimeError("the users are away"), TimeoutError("the users do not answer")])
async def test_a_stream_ends_when_the_app_around_no_longer_admits_its_caller(
    app: App, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(host_module, "FRESH", 0)
    answers: list[Any] = [("ada", ["read"], []), ("ada", ["read"], []), error]

    def moody(request: Request) -> Any:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with visiting(starlette_host(asgi(app, auth=moody))) as browser:
        stream = await browser.get(f"{PREFIX}/api/v1/events?seconds=5")
    assert (stream.status_code, '"reason":"revoked"' in stream.text) == (200, True)


async def test_an_auth_that_hangs_ends_its_stream(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "ASK_SECONDS", 0.01)
    asked: list[Request] = []

    async def hanging(request: Request) -> Any:
        asked.append(request)
        if len(asked) > 1:
            await asyncio.Event().wait()
        return "ada", ["read"], []

    async with visiting(starlette_host(asgi(app, auth=hanging))) as browser:
        stream = await browser.get(f"{PREFIX}/api/v1/events?seconds=5")
    assert (stream.status_code, '"reason":"revoked"' in stream.text) == (200, True)


async def test_requests_that_share_the_state_of_a_connection_are_of_their_own_callers(app: App) -> None:
    access = HostAccess(auth, app, parse_rate("10/s", "rate"))
    state: dict[str, Any] = {}
    found = [
        await access.recheck(Request({"type": "http", "headers": [(b"cookie", b"user=" + user)], "state": state}))
        for user in (b"ada", b"bob")
    ]
    assert [each.name for each in found] == ["ada", "bob"]


REFUSALS = [
    (403, "not on Sundays", {}),
    (401, "log in first", {"WWW-Authenticate": 'Basic realm="host"'}),
    (303, "See Other", {"Location": "/login?next=jobs"}),
    (503, "our directory is away", {"Retry-After": "9"}),
]


@pytest.mark.parametrize(("status", "detail", "headers"), REFUSALS)
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/openapi.json", "/jobs", "/metrics"])
async def test_an_http_error_of_the_app_around_is_its_answer(
    app: App, status: int, detail: str, headers: dict[str, str], is_async: bool, path: str
) -> None:
    def plain(request: Request) -> None:
        raise HTTPException(status, detail, headers)

    async def later(request: Request) -> None:
        plain(request)

    made = fastapi_host(asgi(app, auth=later if is_async else plain))
    async with visiting(made, headers={"accept": "text/html"}) as browser:
        answer = await browser.get(f"{PREFIX}{path}")
    assert answer.status_code == status
    assert {name: answer.headers[name] for name in headers} == headers
    if path.startswith("/api"):
        assert (answer.json()["status"], answer.json()["title"]) == (status, detail)


async def test_details_that_are_no_text_and_other_errors_of_the_app_around(app: App) -> None:
    def refuse(request: Request) -> None:
        if "x-broken" in request.headers:
            raise ValueError("secret")
        raise FastAPIError(422, {"reason": "blocked"})

    async with visiting(fastapi_host(asgi(app, auth=refuse))) as client:
        answer = await client.get(f"{PREFIX}/api/v1/jobs")
        assert (answer.status_code, answer.json()["title"]) == (422, '{"reason":"blocked"}')
        broken = await client.get(f"{PREFIX}/api/v1/jobs", headers={"x-broken": "1"})
        assert (broken.status_code, "secret" in broken.text) == (500, False)
