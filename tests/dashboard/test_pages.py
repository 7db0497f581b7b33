"""Every page in a real browser, with real jobs."""

from selenium.webdriver.common.keys import Keys

from tests.dashboard.browser import Browser
from tests.dashboard.scene import fill
from tests.dashboard.site import Site, on_stores
from tests.support.addresses import on_sqlite
from tests.support.processes import until


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


@on_stores
def test_the_overview_counts_jobs_and_says_what_is_wrong(browser: Browser, site: Site) -> None:
    list(fill(site).values())
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


@on_stores
def test_a_job_shows_its_history_its_attempts_and_its_contents(browser: Browser, site: Site) -> None:
    done, dead, _, logged, later = list(fill(site).values())
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
    assert browser.find("time[data-form=ago]").text.startswith("in 1h")


@on_sqlite
def test_times_are_in_the_zone_of_the_viewer_and_exact_on_hover(browser: Browser, site: Site) -> None:
    id_ = fill(site)["completed"]
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    browser.open(f"/jobs/{id_}")
    shown = browser.find(".history time")
    assert "Asia/Tokyo" in str(shown.get_attribute("title"))
    assert str(shown.get_attribute("datetime")).endswith("+00:00")
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


@on_sqlite
def test_the_keyboard_reaches_search_help_rows_and_pages(browser: Browser, site: Site) -> None:
    jobs = list(fill(site).values())
    browser.open("/jobs")
    browser.type("/")
    assert browser.run("return document.activeElement.id") == "search"
    browser.enter("#search", "type:bill.charge status:dead", send=True)
    assert "status=dead" in browser.path
    assert {each.text.split()[0] for each in browser.all("tbody tr")} == {"bill.charge"}
    browser.type("?")
    assert browser.find("dialog").is_displayed()
    browser.type("\ue00c")  # Escape
    browser.type("jx")
    assert browser.find("#selected").text == "1 selected"
    browser.go("gq")
    assert browser.path == "/queues"
    browser.open("/")
    browser.enter("#search", jobs[0][-8:], send=True)
    assert browser.path == f"/jobs/{jobs[0]}", "the job by the end of its id"


@on_sqlite
def test_a_dead_job_is_found_read_and_retried_by_keyboard_alone(browser: Browser, site: Site) -> None:
    jobs = fill(site)
    attempts = {name: site.app.jobs.get(jobs[name]).attempt for name in ("dead", "dead-2")}
    browser.open("/")
    browser.go("gd")
    assert browser.path == "/dead"
    browser.type("j")
    browser.go(Keys.ENTER)
    assert "error=" in browser.path, "the jobs of a group"
    browser.type("jx")
    assert browser.find("#selected").text == "1 selected"
    browser.type("b")
    assert browser.run("return document.activeElement.textContent") == "Retry…"
    browser.go(Keys.ENTER)
    assert "Retry 1 job?" in browser.text
    assert browser.run("return document.activeElement.textContent") == "Retry 1 job", "its button has the focus"
    browser.go(Keys.ENTER)
    assert "1 job retried." in browser.text
    until(lambda: attempts != {name: site.app.jobs.get(jobs[name]).attempt for name in attempts}, "one ran again")
    browser.open(f"/jobs/{jobs['scheduled']}")
    seen = []
    for _ in range(60):
        browser.type(Keys.TAB)
        if browser.run("return document.activeElement === document.body"):
            continue  # between the last one and the first
        seen.append(browser.run("return document.activeElement.textContent.trim()"))
        outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"the focus is seen on {seen[-1]!r}"
    assert {"Skip to the content", "Run now", "Cancel…", "Enqueue a copy…", "Log out"} <= set(seen)


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


@on_stores
def test_a_search_finds_by_error_and_payload_and_stays_in_the_address(browser: Browser, site: Site) -> None:
    jobs = list(fill(site).values())
    browser.open("/jobs")
    browser.enter("#search", 'type:bill.* status:dead error:"<b>declined"', send=True)
    assert "error=" in browser.path
    assert [row.get_attribute("data-key") for row in browser.all("tbody tr")] == [jobs[1]]
    assert "No index covers this search. All jobs were searched." in browser.text
    browser.enter("#search", f"payload.payload.n:{2**63 - 1}", send=True)
    assert "payload.payload.n=" in browser.path
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


@on_sqlite
def test_the_overview_names_what_fails_and_what_no_worker_knows(browser: Browser, site: Site) -> None:
    for _ in range(6):
        site.enqueue("bill.charge", {"how": "declined"})
    site.app.enqueue("nothing.knows", {"x": 1}, queue="mail")
    until(lambda: site.app.stats.counts().totals["dead"] == 6, "they are dead")

    def says(words: str) -> bool:
        browser.open("/")
        return words in browser.text

    until(lambda: says("100% of 6 attempts of bill.charge failed in the last 5 minutes"), "the failures")
    until(lambda: says("No live worker knows type nothing.knows; its jobs are set aside"), "the type", 60)
    browser.press("100% of 6 attempts")
    assert browser.path == "/types/bill.charge"


@on_sqlite
def test_an_entry_of_the_audit_leads_to_what_it_is_about(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    site.app.jobs.change(id_, priority=3)
    site.app.queues.close("mail")
    site.app.schedules.pause("nightly")
    browser.open("/audit")
    links = [str(each.get_attribute("href")).removeprefix(browser.url) for each in browser.all("tbody td.mono a")]
    assert links == ["/schedules/nightly", "/queues/mail", f"/jobs/{id_}"]
