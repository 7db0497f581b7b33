"""One browser for all tests of a process, and a dashboard for each test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.browser import CHROMIUM, DRIVER, MISSING, WIDE, Browser, browsing
from tests.dashboard.site import Site
from tests.support.servers.ports import free_port

SHOTS = Path(os.environ.get("WINDLASS_TEST_SHOTS", "build/screenshots"))
"""Where screenshots are kept."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser; a machine without one says so."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip(MISSING)
    with browsing(SHOTS) as made:
        yield made


@pytest.fixture
def site(address: str) -> Iterator[Site]:
    """A served dashboard, with a worker."""
    made = Site(address, free_port())
    made.start()
    yield made
    made.stop()


@pytest.fixture
def browser(chromium: Browser, site: Site) -> Iterator[Browser]:
    """A browser that is logged in and may do everything; its console must stay clean."""
    chromium.resize(WIDE)
    chromium.log_in(site.url, site.token("admin"))
    chromium.errors()
    yield chromium
    assert chromium.errors() == []
