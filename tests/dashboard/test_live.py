"""Live updates: in place, held while users work, and a banner when the store or the server is away."""

import pytest

from tests.dashboard.browser import Browser
from tests.dashboard.site import Site
from tests.support.addresses import on_sqlite
from tests.support.processes import let_pass, until
from windlass.errors import StoreUnavailable


@on_sqlite
def test_a_list_updates_in_place_and_a_pause_holds(browser: Browser, site: Site) -> None:
    first = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    browser.open("/jobs")
    browser.run("document.getElementById('main').dataset.refresh = '0.2'; window.same = true")
    row = browser.find(f"tr[data-key='{first}']")
    second = site.enqueue("mail.welcome", {"payload": 2}, delay="1h")
    until(lambda: len(browser.all("tbody tr")) == 2, "the new job is shown")
    assert browser.run("return window.same"), "the page was not loaded again"
    assert browser.find(f"tr[data-key='{first}']") == row, "the row is the same element, moved"
    assert browser.find("tbody tr").get_attribute("data-key") == second
    browser.find("#live").click()
    assert browser.find("#live").text == "Paused"
    site.enqueue("mail.welcome", {"payload": 3}, delay="1h")
    let_pass(0.8)
    assert len(browser.all("tbody tr")) == 2
    browser.find("#live").click()
    until(lambda: len(browser.all("tbody tr")) == 3, "it goes on")


@on_sqlite
def test_nothing_changes_while_jobs_are_selected_and_details_stay_open(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": {"a": [1]}}, delay="1h")
    browser.open("/jobs")
    browser.run("document.getElementById('main').dataset.refresh = '0.2'")
    browser.find(f"input[value='{id_}']").click()
    site.enqueue("mail.welcome", {"payload": 2}, delay="1h")
    let_pass(0.8)
    assert len(browser.all("tbody tr")) == 1
    browser.open(f"/jobs/{id_}")
    browser.run("document.getElementById('main').dataset.refresh = '0.2'")
    browser.find(".tree summary").click()
    assert browser.find(".tree details").get_attribute("open") is None
    site.app.jobs.change(id_, priority=9)
    until(lambda: "9" in browser.find("dl.facts").text.split("Priority")[1].split()[:1], "the priority is shown")
    assert browser.find(".tree details").get_attribute("open") is None, "it stays as it was left"


@on_sqlite
def test_a_store_that_is_away_is_a_banner_and_a_page_that_says_so(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.until_status(site.enqueue("mail.welcome", {"payload": 1}), "completed")
    browser.open("/jobs")
    browser.run("document.getElementById('main').dataset.refresh = '0.2'")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("no connection to the store")

    with monkeypatch.context() as patch:
        patch.setattr(site.serving.jobs, "alist", away, raising=False)
        until(lambda: browser.find("#alarm").is_displayed(), "the banner")
        assert "The store does not answer" in browser.find("#alarm").text
        assert "mail.welcome" in browser.text, "what was shown stays"
        browser.driver.get(browser.url + "/jobs?status=completed")
        assert "The store does not answer" in browser.text
        assert "no connection to the store" in browser.text
        assert browser.all(".side a"), "never a white page"
        browser.run("document.getElementById('main').dataset.refresh = '0.2'")
    until(lambda: "mail.welcome" in browser.text, "it comes back by itself", 20)
    browser.errors()  # 503 is in the console too
