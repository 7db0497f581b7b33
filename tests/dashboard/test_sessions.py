"""Sessions: what a browser may do, and what another site cannot make it do."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.dashboard.browser import Browser
from tests.dashboard.site import Site
from tests.support.addresses import on_sqlite
from windlass.server import access

pytestmark = on_sqlite


@contextmanager
def _session(site: Site, *scopes: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url) as client:
        answer = client.post("/login", data={"token": site.token(*scopes), "next": "/jobs?status=dead"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?status=dead")
        yield client


def _csrf(client: httpx.Client) -> str:
    return client.get("/jobs").text.partition('name="csrf" value="')[2].partition('"')[0]


def test_a_change_needs_the_token_of_its_own_session(site: Site) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    with _session(site, "admin") as client, _session(site, "admin") as other:
        for csrf in ("", "0" * 64, _csrf(other)):
            answer = client.post(f"/jobs/{id_}/run", data={"csrf": csrf})
            assert answer.status_code == 403
            assert site.app.jobs.get(id_).status == "scheduled"
        foreign = {"sec-fetch-site": "cross-site"}
        assert client.post(f"/jobs/{id_}/run", data={"csrf": _csrf(client)}, headers=foreign).status_code == 403
        assert client.post(f"/jobs/{id_}/run", data={"csrf": _csrf(client)}).status_code == 303
    site.until_status(id_, "completed")


def test_the_cookie_is_hidden_from_scripts_and_from_other_sites(browser: Browser, site: Site) -> None:
    browser.forget()
    browser.open("/queues")
    assert browser.path.startswith("/login?next=")
    browser.enter("input[name=token]", site.token("admin"), send=True)
    assert browser.path == "/queues", "the page that was asked for"
    assert "windlass=" not in browser.run("return document.cookie")
    cookie = browser.driver.get_cookie("windlass")
    assert cookie is not None
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_a_log_out_ends_the_session(browser: Browser, site: Site) -> None:
    browser.open("/")
    browser.submit("form[action='/logout'] button")
    assert browser.path.startswith("/login")
    browser.open("/jobs")
    assert browser.path.startswith("/login?next=")


def test_a_revoked_token_ends_its_sessions(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "FRESH", 0)
    with _session(site, "read") as client:
        assert client.get("/jobs").status_code == 200
        for token in site.app.tokens.list():
            site.app.tokens.revoke(token.id)
        assert client.get("/jobs").status_code == 303


def test_no_one_is_sent_to_another_site_after_a_log_in(site: Site) -> None:
    for following in ("//evil.example", "https://evil.example", "/\\evil.example", "/jobs?x=//e\r\nset-cookie: a=b"):
        with httpx.Client(base_url=site.url) as client:
            answer = client.post("/login", data={"token": site.token("read"), "next": following})
            assert answer.headers["location"] == "/"
