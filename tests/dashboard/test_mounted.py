"""The dashboard under a prefix of another app, in a browser."""

from collections.abc import Iterator

import pytest

from tests.dashboard.browser import WIDE, Browser
from tests.dashboard.site import Site
from tests.support.addresses import on_sqlite
from tests.support.processes import until
from tests.support.servers.ports import free_port

pytestmark = on_sqlite
PREFIX = "/back/admin"


@pytest.fixture
def mounted(address: str) -> Iterator[Site]:
    made = Site(address, free_port(), PREFIX)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def visitor(chromium: Browser, mounted: Site) -> Iterator[Browser]:
    """A browser that the app around knows; its console must stay clean."""
    chromium.resize(WIDE)
    chromium.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chromium.url = mounted.url
    chromium.open("/")
    chromium.errors()
    yield chromium
    assert chromium.errors() == []


def test_every_page_works_and_no_link_leaves_the_prefix(visitor: Browser, mounted: Site) -> None:
    paths = [link.get_attribute("href") for link in visitor.all("nav.side a")]
    assert len(paths) > 8
    for path in paths:
        assert path is not None
        visitor.driver.get(path)
        assert visitor.all("main h1"), path
        links = visitor.run(
            "return [...document.querySelectorAll('a[href], form[action]')].map(e => e.href || e.action)"
        )
        assert [link for link in links if not link.startswith(mounted.url)] == []


def test_events_forms_keys_and_suggestions_know_the_prefix(visitor: Browser, mounted: Site) -> None:
    visitor.open("/jobs")
    until(lambda: visitor.run("return document.documentElement.dataset.events") == "open", "the stream is open")
    visitor.run("document.getElementById('main').dataset.refresh = '3600'")
    visitor.run("document.dispatchEvent(new Event('visibilitychange'))")
    first = mounted.enqueue("mail.welcome", {"payload": 1})
    until(lambda: visitor.all(f"tr[data-key='{first}']"), "the job is shown at once")
    waiting = mounted.enqueue("mail.welcome", {"payload": 2}, delay="1h")
    visitor.open(f"/jobs/{waiting}")
    visitor.press("Cancel")
    visitor.press("Cancel")
    mounted.until_status(waiting, "cancelled")
    visitor.type("gq")
    until(lambda: visitor.path == "/queues", "the key leads to the queues of this prefix")
    visitor.find("#search").send_keys("stat")
    until(lambda: visitor.all("#suggestions option"), "suggestions are there")
    (entry, *_) = mounted.app.audit.list()
    assert (entry.actor.name, entry.action) == ("guest", "job.cancel")
