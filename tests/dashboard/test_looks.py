"""Every page as people see it: on a phone and wide, light and dark, by axe-core, and without scripts."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from tests.dashboard.browser import PHONE, WIDE, Browser
from tests.dashboard.scene import fill_more, pages_of
from tests.dashboard.site import Site
from tests.support.addresses import sqlite_address
from tests.support.processes import until
from tests.support.servers.ports import free_port
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Meter, histogram
from windlass.core.stats.samples import MINUTE, start_of
from windlass.server.dashboard.render import span
from windlass.store.open import open_store

SCREENS = {"wide": WIDE, "phone": PHONE}
DRAWN = ("color-contrast", "scrollable-region-focusable")
"""Rules whose result depends on the screen or on the theme; all others are of the page's text."""
ALIKE = ("range-week", "queue-mail", "jobs-status-dead", "job-completed", "job-dead-2", "job-scheduled", "copy")
"""Pages whose parts are all on others: axe-core takes longest."""
WAITS = histogram([1_234_567] * 14)
_more = [
    pytest.param(*each, (), marks=pytest.mark.extended)
    for each in (("wide", "dark"), ("phone", "light"), ("phone", "dark"))
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[str, str]]]:
    """One server for all looks, with its jobs: no test changes anything."""
    site = Site(sqlite_address(tmp_path_factory.mktemp("shop")), free_port())
    site.start()
    jobs = fill_more(site)
    token = site.token("admin")
    headers = {"authorization": f"Bearer {token}"}
    action = {"verb": "cancel", "status": ["scheduled"], "type": "nothing.of.this.type"}
    done = httpx.post(f"{site.url}/api/v1/actions", json=action, headers=headers).json()
    pages = {**pages_of(jobs), "action": f"/actions/{done['id']}"}
    yield site, pages
    site.steps.release(9)
    site.stop()


@pytest.fixture
def looking(chromium: Browser, shop: tuple[Site, dict[str, str]]) -> Iterator[Browser]:
    """A browser that may see everything."""
    chromium.resize(WIDE)
    chromium.log_in(shop[0].url, shop[0].token("admin"))
    yield chromium
    chromium.resize(WIDE)


@pytest.mark.parametrize(("screen", "theme", "rules"), [("wide", "light", ()), ("phone", "dark", DRAWN), *_more])
def test_every_page_fits_its_screen_and_axe_core_finds_nothing(
    looking: Browser, shop: tuple[Site, dict[str, str]], screen: str, theme: str, rules: tuple[str, ...]
) -> None:
    looking.resize(SCREENS[screen], theme)
    for name, path in shop[1].items():
        looking.open(path)
        wide = looking.run("return document.documentElement.scrollWidth") - SCREENS[screen][0]
        assert wide <= 0, f"{path} is {wide} px too wide for {screen}"
        assert ("did not work" in looking.text) == (name == "missing"), path
        looking.shoot(f"{name}-{screen}-{theme}")
        if name not in ALIKE:
            assert looking.violations(*rules) == [], path


def test_every_page_can_be_read_without_scripts(looking: Browser, shop: tuple[Site, dict[str, str]]) -> None:
    with looking.without_scripts():
        for path in shop[1].values():
            looking.open(path)
            assert looking.find("h1").text, path
            assert len(looking.all("nav.side a")) > 8, path
            assert not looking.find("#live").is_displayed(), "what needs a script is not offered"
        looking.open(shop[1]["job-completed"])
        assert "9223372036854775807" in looking.text
        assert " UTC" in looking.find(".history time").text


def test_dialogs_and_the_log_in_fit_and_have_no_violations(
    looking: Browser, shop: tuple[Site, dict[str, str]]
) -> None:
    for screen, theme in (("wide", "light"), ("phone", "dark")):
        looking.resize(SCREENS[screen], theme)
        looking.open("/jobs?status=scheduled")
        looking.type("?")
        until(looking.find("dialog").is_displayed, "the help")
        looking.shoot(f"help-{screen}-{theme}")
        assert looking.violations() == []
        looking.open(shop[1]["job-scheduled"])
        looking.press("Cancel")
        looking.shoot(f"question-{screen}-{theme}")
        assert looking.violations() == []
    looking.forget()
    looking.open("/jobs")
    assert looking.path.startswith("/login")
    looking.shoot("log-in-phone-dark")
    assert looking.violations() == []


def test_a_plot_has_axes_with_units_and_times_of_the_viewer(
    looking: Browser, shop: tuple[Site, dict[str, str]]
) -> None:
    _sample(shop[0])
    looking.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    looking.open("/")
    titles = [each.text for each in looking.all(".plot figcaption b")]
    assert titles == [
        *("Attempts per 1m", "Failed attempts per 1m", "Waiting time", "Jobs by status", "Running jobs, 4 slots now"),
        "Oldest pending job",
    ]
    top, half, zero = (each.text for each in looking.all(".plot")[2].find_elements("css selector", ".axis span"))
    assert (top[-1], half[-1], zero) == ("s", "s", "0")
    ends = looking.all(".plot:nth-of-type(1) .ends time")
    assert "Asia/Tokyo" in str(ends[0].get_attribute("title"))
    hovers = looking.run("return [...document.querySelectorAll('.hover title')].map((each) => each.textContent)")
    (busy,) = [each for each in hovers if f"p50 {span(WAITS.quantile(0.5) / SECOND)}" in each]  # type: ignore[operator]
    assert "UTC" not in busy
    looking.open("/queues")
    spark = looking.find("tr[data-key=mail] .spark")
    assert str(spark.get_attribute("aria-label")).startswith("completed in 2 minutes: at most 1")
    assert looking.run("return arguments[0].getBoundingClientRect().height", spark) > 10
    looking.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def _sample(site: Site) -> None:
    """A busy minute, some minutes ago, as the coordinator would have made it."""

    async def write() -> None:
        store = open_store(site.address)
        minute = start_of((await store.stats.recent(1)).now, MINUTE) - 5 * MINUTE
        busy = Meter(queue="mail", type="mail.welcome", interval_start=minute, completed=14, wait=WAITS)
        made = Meter(queue="", type="", interval_start=minute)
        await store.stats.write_samples(MINUTE, [busy, made], [])  # type: ignore[attr-defined]
        await store.close()

    asyncio.run(write())
