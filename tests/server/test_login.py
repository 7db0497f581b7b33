"""The log-in of browsers: a token becomes a session, which is safe from other sites and ends with its token."""

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from windlass import App
from windlass.server import access
from windlass.server.browser.login import next_path
from windlass.server.browser.session import csrf_of


@pytest.fixture
async def browser(served: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A client that keeps cookies and sends no token."""
    transport = httpx.ASGITransport(served, raise_app_exceptions=False)
    headers = {"accept": "text/html"}
    async with httpx.AsyncClient(transport=transport, base_url="http://windlass", headers=headers) as made:
        yield made


async def log_in(browser: httpx.AsyncClient, text: str) -> str:
    """Log in; returns the cookie."""
    answer = await browser.post("/login", data={"token": text})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return browser.cookies["windlass"]


async def test_a_browser_is_led_to_the_log_in_and_then_reads_the_documentation(
    app: App, browser: httpx.AsyncClient
) -> None:
    token = await app.tokens.acreate("t", ["admin"])
    led = await browser.get("/api/v1/docs")
    assert (led.status_code, led.headers["location"]) == (303, "/login?next=/api/v1/docs")
    form = await browser.get(led.headers["location"])
    assert (form.status_code, "type='password'" in form.text) == (200, True)
    assert "form-action 'self'" in form.headers["content-security-policy"]
    assert (await browser.get("/static/windlass.css")).status_code == 200
    cookie = await log_in(browser, token.text)
    page = await browser.get("/api/v1/docs")
    assert page.status_code == 200
    assert "/api/v1/jobs/{id}/why" in page.text
    assert csrf_of(cookie) in page.text
    assert token.text not in page.text
    assert cookie not in page.text


async def test_the_cookie_is_for_this_site_alone_and_not_for_scripts(app: App, served: Starlette) -> None:
    token = await app.tokens.acreate("t", ["admin"])
    for scheme, name in (("http", "windlass"), ("https", "__Host-windlass")):
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(served), base_url=f"{scheme}://windlass"
        ) as client:
            set_cookie = (await client.post("/login", data={"token": token.text})).headers["set-cookie"]
            assert set_cookie.startswith(f"{name}=")
            for part in ("HttpOnly", "SameSite=strict", "Path=/"):
                assert part in set_cookie
            assert ("Secure" in set_cookie) == (scheme == "https")
            assert "Domain" not in set_cookie


async def test_a_wrong_token_is_refused_and_too_many_are_delayed(browser: httpx.AsyncClient) -> None:
    answers = [await browser.post("/login", data={"token": f"wl_{n:012x}_{'0' * 64}"}) for n in range(11)]
    assert [each.status_code for each in answers] == [401] * 10 + [429]
    assert "not valid" in answers[0].text
    assert "set-cookie" not in answers[0].headers
    assert int(answers[-1].headers["retry-after"]) >= 1


async def test_a_change_by_a_session_needs_a_page_of_this_server(app: App, browser: httpx.AsyncClient) -> None:
    cookie = await log_in(browser, (await app.tokens.acreate("t", ["admin"])).text)
    job, path = {"type": "mail.welcome", "payload": {"user_id": 1}}, "/api/v1/jobs"
    right = {"x-csrf-token": csrf_of(cookie)}
    for headers, code in (
        ({}, "csrf"),
        ({"x-csrf-token": "0" * 64}, "csrf"),
        ({**right, "sec-fetch-site": "cross-site"}, "cross_site"),
        ({**right, "sec-fetch-site": "same-site"}, "cross_site"),
        ({**right, "origin": "https://evil.example"}, "cross_site"),
    ):
        refused = await browser.post(path, json=job, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, code), headers
    assert (await browser.get(path)).json()["jobs"] == [], "nothing was stored"
    own = {**right, "origin": "http://windlass", "sec-fetch-site": "same-origin"}
    assert (await browser.post(path, json=job, headers=own)).status_code == 201
    assert (await browser.post("/login", data={"token": "x"}, headers={"origin": "https://evil.example"})).json()[
        "code"
    ] == "cross_site"


async def test_a_log_out_ends_the_session_on_every_server(app: App, browser: httpx.AsyncClient) -> None:
    cookie = await log_in(browser, (await app.tokens.acreate("t", ["read"])).text)
    assert (await browser.post("/logout", data={"csrf": "wrong"})).status_code == 403
    assert (await browser.get("/api/v1/jobs")).status_code == 200
    out = await browser.post("/logout", data={"csrf": csrf_of(cookie)})
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert "windlass" not in browser.cookies
    kept = await browser.get("/api/v1/jobs", headers={"cookie": f"windlass={cookie}"})
    assert kept.status_code == 401
    assert await (await app._ready()).documents.list("session", 10) == []


@pytest.mark.parametrize("way", ["revoke", "rotate"])
async def test_a_session_ends_with_its_token(
    app: App, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    new = await app.tokens.acreate("t", ["read"])
    await log_in(browser, new.text)
    assert (await browser.get("/api/v1/jobs")).status_code == 200
    monkeypatch.setattr(access, "FRESH", 0)
    await (app.tokens.arevoke(new.token.id) if way == "revoke" else app.tokens.arotate(new.token.id))
    assert (await browser.get("/api/v1/jobs")).status_code == 401


async def test_a_session_has_the_rights_of_its_token(app: App, browser: httpx.AsyncClient) -> None:
    cookie = await log_in(browser, (await app.tokens.acreate("t", ["read"], queues=["default"])).text)
    headers = {"x-csrf-token": csrf_of(cookie)}
    assert (await browser.post("/api/v1/queues/default/pause", headers=headers)).json()["code"] == "missing_scope"
    assert (await browser.get("/api/v1/queues/images")).status_code == 404


async def test_neither_secret_of_a_session_is_in_the_store(app: App, browser: httpx.AsyncClient) -> None:
    new = await app.tokens.acreate("t", ["read"])
    cookie = await log_in(browser, new.text)
    (kept,) = await (await app._ready()).documents.list("session", 10)
    assert cookie.partition(".")[2] not in kept.data
    assert new.text not in kept.data


@pytest.mark.parametrize("cookie", ["", "x", ".", "a.b", "01a1e959-d997-70d9-8b7b-43fd9fe3b0dc.00", '"; x="'])
async def test_a_forged_cookie_is_no_session(browser: httpx.AsyncClient, cookie: str) -> None:
    refused = await browser.get("/api/v1/jobs", headers={"cookie": f"windlass={cookie}"})
    assert refused.status_code == 401


async def test_a_token_is_no_cookie_and_a_cookie_no_token_while_either_is_known(
    app: App, browser: httpx.AsyncClient
) -> None:
    new = await app.tokens.acreate("t", ["admin"])
    cookie = await log_in(browser, new.text)
    assert (await browser.get("/api/v1/jobs")).status_code == 200
    browser.cookies.clear()
    for headers in ({"authorization": f"Bearer {cookie}"}, {"cookie": f"windlass={new.text}"}):
        assert (await browser.get("/api/v1/jobs", headers=headers)).status_code == 401, headers
    assert (await browser.get("/api/v1/jobs", headers={"authorization": f"Bearer {new.text}"})).status_code == 200


async def test_a_page_with_a_session_that_has_ended_does_not_hinder_the_next_log_in(
    app: App, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = await app.tokens.acreate("t", ["read"])
    await log_in(browser, new.text)
    await app.tokens.arevoke(new.token.id)
    monkeypatch.setattr(access, "FRESH", 0)
    for _ in range(12):
        assert (await browser.get("/jobs")).headers["location"] == "/login?next=%2Fjobs"
    assert "windlass" not in browser.cookies
    await log_in(browser, (await app.tokens.acreate("t", ["read"])).text)


@pytest.mark.parametrize("other", ['seen={"a":1}', "a[b]=1", "x=a b", "=1", "\u00e4=1"])
async def test_cookies_of_other_programs_do_not_hide_a_session(
    app: App, browser: httpx.AsyncClient, other: str
) -> None:
    cookie = await log_in(browser, (await app.tokens.acreate("t", ["read"])).text)
    browser.cookies.clear()
    answer = await browser.get("/jobs", headers={b"cookie": f"{other}; windlass={cookie}".encode()})
    assert answer.status_code == 200


@pytest.mark.parametrize("origin", ["http://[", "null", "http://windlass:99", "", "http://"])
async def test_an_origin_that_is_no_page_of_this_server_is_refused(browser: httpx.AsyncClient, origin: str) -> None:
    answer = await browser.post("/login", data={"token": "x"}, headers={"origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_site")


async def test_a_session_is_ended_by_its_own_cookie_alone(app: App, browser: httpx.AsyncClient) -> None:
    cookie = await log_in(browser, (await app.tokens.acreate("t", ["read"])).text)
    forged = f"{cookie.partition('.')[0]}.{'0' * 64}"
    browser.cookies.clear()
    headers = {"cookie": f"windlass={forged}"}
    assert (await browser.post("/logout", data={"csrf": csrf_of(forged)}, headers=headers)).status_code == 303
    kept = await browser.get("/api/v1/jobs", headers={"cookie": f"windlass={cookie}"})
    assert kept.status_code == 200


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/api/v1/docs", "/api/v1/docs"),
        ("/jobs/1", "/jobs/1"),
        (None, "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nset-cookie: x=1", "/"),
    ],
)
def test_a_log_in_leads_only_to_paths_of_this_server(given: str | None, path: str) -> None:
    assert next_path(given) == path
