"""The store frozen, stopped and started again, under an open dashboard: a banner, never a white page."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.dashboard.browser import Browser
from tests.dashboard.site import Site
from tests.support.processes import children, until
from tests.support.servers.ports import free_port
from tests.support.servers.postgres import PostgresServer, new_server
from tests.support.servers.redis import RedisServer, new_redis

Server = PostgresServer | RedisServer
SECONDS = 60.0


def _servers() -> dict[str, Callable[[], Server]]:
    return {"postgres": new_server, "redis": new_redis}


@pytest.fixture(params=["postgres", pytest.param("redis", marks=pytest.mark.extended)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the store that belongs to the test."""
    made = _servers()[request.param]()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def site(server: Server) -> Iterator[Site]:
    """A dashboard on it."""
    made = Site(server.dsn() if isinstance(server, PostgresServer) else server.url, free_port())
    made.start()
    yield made
    made.stop()


def _signal(server: Server, number: int) -> None:
    for pid in [server.pid, *children(server.pid)]:
        os.kill(pid, number)


def _says(browser: Browser, *words: str) -> bool:
    return any(word in browser.find("body").text for word in words)


def _shows(browser: Browser, path: str, selector: str) -> bool:
    browser.open(path)
    return bool(browser.all(selector))


def test_an_open_page_shows_a_banner_and_comes_back_by_itself(browser: Browser, site: Site, server: Server) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": 1})
    site.until_status(id_, "completed")
    browser.open("/jobs")
    browser.run("document.getElementById('main').dataset.refresh = '0.5'")
    _signal(server, signal.SIGSTOP)
    try:
        until(lambda: browser.find("#alarm").is_displayed(), "the banner", SECONDS)
        assert browser.all(f"tr[data-key='{id_}']"), "what was shown stays"
        browser.open("/queues")
        assert _says(browser, "The store does not answer", "This did not work"), "a new page says it"
        assert browser.all(".brand"), "never a white page"
    finally:
        _signal(server, signal.SIGCONT)
    until(lambda: _shows(browser, "/queues", "main table"), "it goes on", SECONDS)
    until(lambda: _shows(browser, "/jobs", f"tr[data-key='{id_}']"), "the list is there", SECONDS)
    browser.run("document.getElementById('main').dataset.refresh = '0.5'")
    server.kill()
    until(lambda: browser.find("#alarm").is_displayed(), "the banner", SECONDS)
    assert browser.all(f"tr[data-key='{id_}']"), "what was shown stays"
    server.start()
    until(lambda: not browser.find("#alarm").is_displayed(), "the banner goes", SECONDS)
    browser.errors()  # 503 is in the console too
