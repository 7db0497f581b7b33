"""Every page in a real browser, with real jobs."""

import re

import pytest

from tests.dashboard.browser import PHONE, WIDE, Browser
from tests.dashboard.site import Site
from tests.support.addresses import on_sql, on_sqlite
from tests.support.processes import until

PATHS = (
    *("/", "/jobs", "/queues", "/queues/mail", "/dead", "/schedules", "/schedules/nightly", "/workers", "/types"),
    *("/types/mail.welcome", "/actions", "/webhooks", "/audit", "/settings", "/enqueue", "/enqueue?type=order.place"),
    "/enqueue?type=elsewhere",
)
SCREENS = {"wide": WIDE, "phone": PHONE}
_more = [pytest.param(*each, marks=pytest.mark.extended) for each in (("wide", "dark"), ("phone", "light"))]


def _work(site: Site) -> list[str]:
    """Jobs that completed, died, wait, and have log lines."""
    jobs = [
        site.enqueue("mail.welcome", {"payload": {"n": 2**63 - 1, "x": 0.1}}, tags=["vip"], tenant="acme"),
        site.enqueue("bill.charge", {"how": "declined"}),
        site.enqueue("bill.charge", {"how": "away"}),
        site.enqueue("img.resize", {"steps": 3}),
        site.enqueue("mail.welcome", {"payload": None}, delay="2h"),
    ]
    for id_, status in zip(jobs, ("completed", "dead", "dead", "completed", "scheduled"), strict=True):
        site.until_status(id_, status)
    return jobs


@on_sqlite
@pytest.mark.parametrize(("screen", "theme"), [("wide", "light"), ("phone", "dark"), *_more])
def test_every_page_fits_on_every_screen_in_both_themes(
    browser: Browser, site: Site, screen: str, theme: str
) -> None:
    jobs = _work(site)
    browser.resize(SCREENS[screen], theme)
    names = ("job-completed", "job-dead", "job-dead-2", "job-logged", "job-scheduled")
    pages = {re.sub(r"[/?=.]+", "-", path.strip("/")) or "overview": path for path in PATHS}
    pages |= {name: f"/jobs/{id_}" for name, id_ in zip(names, jobs, strict=True)}
    for name, path in pages.items():
        browser.open(path)
        assert "did not work" not in browser.text, path
        wide = browser.run("return document.documentElement.scrollWidth") - SCREENS[screen][0]
        assert wide <= 0, f"{path} is {wide} px too wide for {screen}"
        browser.shoot(f"{name}-{screen}-{theme}")


@on_sqlite
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.extended)])
def test_axe_core_finds_nothing_on_any_page(browser: Browser, site: Site, theme: str) -> None:
    jobs = _work(site)
    browser.resize(WIDE, theme)
    for path in (*PATHS, *(f"/jobs/{id_}" for id_ in jobs), "/jobs/none", "/jobs?type=none"):
        browser.open(path)
        assert browser.violations() == [], path
    browser.errors()  # the page that does not exist


@on_sqlite
def test_empty_pages_say_what_to_do_next(browser: Browser, site: Site) -> None:
    for path, words in (
        ("/jobs", "windlass enqueue"),
        ("/dead", "until it is retried or deleted"),
        ("/actions", "act on all that match"),
        ("/jobs?status=dead", "Take a filter away"),
    ):
        browser.open(path)
        assert words in browser.text, path


@on_sql
def test_the_overview_counts_jobs_and_says_what_is_wrong(browser: Browser, site: Site) -> None:
    _work(site)
    site.enqueue("mail.welcome", {"payload": 1}, queue="unserved")
    browser.open("/")
    numbers = dict(each.text.split("\n") for each in browser.all(".statuses a"))
    assert (numbers["completed"], numbers["dead"], numbers["scheduled"], numbers["pending"]) == ("2", "2", "1", "1")
    assert "No live worker serves queue unserved; 1 job is pending" in browser.text
    assert "2 jobs are dead" in browser.text
    assert "0 of 4 slots in use" in browser.text
    assert [each.text for each in browser.all(".tabs a")] == ["hour", "day", "week"]
    for name in ("day", "week"):
        browser.press(name)
        assert browser.find(".tabs a[aria-current]").text == name
    assert browser.find(".environment").text == "test"


@on_sql
def test_a_job_shows_its_history_its_attempts_and_its_contents(browser: Browser, site: Site) -> None:
    done, dead, _, logged, later = _work(site)
    browser.open(f"/jobs/{done}")
    assert "9223372036854775807" in browser.text
    assert "0.1" in browser.text
    assert "attempt 1: completed" in browser.text
    browser.open(f"/jobs/{dead}")
    assert "ValueError: <b>declined</b>" in browser.text
    assert "Traceback (most recent call last)" in browser.text
    browser.open(f"/jobs/{logged}")
    assert "step 2" in browser.text
    assert "3 of 3" in browser.text
    browser.open(f"/jobs/{later}")
    assert "Why it does not run" in browser.text
    assert browser.find("time[data-form=ago]").text.startswith("in 1 h")


@on_sqlite
def test_times_are_in_the_zone_of_the_viewer_and_exact_on_hover(browser: Browser, site: Site) -> None:
    id_ = _work(site)[0]
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    browser.open(f"/jobs/{id_}")
    shown = browser.find(".history time")
    assert "Asia/Tokyo" in str(shown.get_attribute("title"))
    assert str(shown.get_attribute("datetime")).endswith("+00:00")
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


@on_sqlite
def test_the_keyboard_reaches_search_help_rows_and_pages(browser: Browser, site: Site) -> None:
    jobs = _work(site)
    browser.open("/jobs")
    browser.type("/")
    assert browser.run("return document.activeElement.id") == "search"
    browser.enter("#search", "type:bill.charge status:dead", send=True)
    until(lambda: "status=dead" in browser.path, "the list of dead jobs")
    assert {each.text.split()[0] for each in browser.all("tbody tr")} == {"bill.charge"}
    browser.type("?")
    assert browser.find("dialog").is_displayed()
    browser.type("\ue00c")  # Escape
    browser.type("jx")
    assert browser.find("#selected").text == "1 selected"
    browser.type("gq")
    until(lambda: browser.path == "/queues", "the queues")
    browser.open("/")
    browser.enter("#search", jobs[0][-8:], send=True)
    until(lambda: browser.path == f"/jobs/{jobs[0]}", "the job by the end of its id")


@on_sqlite
def test_the_theme_is_chosen_and_kept(browser: Browser, site: Site) -> None:
    browser.open("/")
    colour = "return getComputedStyle(document.body).backgroundColor"
    until(lambda: browser.run(colour) != "rgba(0, 0, 0, 0)", "the style sheet")
    light = browser.run(colour)
    browser.type("tt")
    assert browser.run(colour) != light
    browser.open("/jobs")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.type("t")
    until(lambda: browser.run(colour) == light, "the light theme")


@on_sql
def test_a_search_finds_by_error_and_payload_and_stays_in_the_address(browser: Browser, site: Site) -> None:
    jobs = _work(site)
    browser.open("/jobs")
    browser.enter("#search", 'type:bill.* status:dead error:"<b>declined"', send=True)
    until(lambda: "error=" in browser.path, "the search is in the address")
    assert [row.get_attribute("data-key") for row in browser.all("tbody tr")] == [jobs[1]]
    assert "No index covers this search. All jobs were searched." in browser.text
    browser.enter("#search", f"payload.payload.n:{2**63 - 1}", send=True)
    until(lambda: "payload.payload.n=" in browser.path, "the search is in the address")
    assert [row.get_attribute("data-key") for row in browser.all("tbody tr")] == [jobs[0]]
    browser.enter("#search", "queue:bi")
    until(
        lambda: (
            browser.run("return [...document.querySelectorAll('#suggestions option')].map((o) => o.value)")
            == ["queue:bills"]
        ),
        "the queue is suggested",
    )
    browser.open("/jobs?status=dead")
    newest = [str(row.get_attribute("data-key")) for row in browser.all("tbody tr")]
    assert set(newest) == set(jobs[1:3])
    site.app.jobs.retry(newest[-1])
    site.until_status(newest[-1], "dead")
    browser.open("/jobs?status=dead")
    assert [row.get_attribute("data-key") for row in browser.all("tbody tr")] == newest[::-1]
