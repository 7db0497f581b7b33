"""Live updates: in place, held while users work, and a banner when the store or the server is away."""

import pytest

from tests.dashboard.browser import Browser
from tests.dashboard.site import Site, on_stores
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
def test_an_answer_that_breaks_off_does_not_end_live_updates(browser: Browser, site: Site) -> None:
    browser.open("/jobs")
    browser.run(
        "document.getElementById('main').dataset.refresh = '0.2'; const whole = Response.prototype.text;"
        "Response.prototype.text = function () { Response.prototype.text = whole; window.broke = true;"
        " return Promise.reject(new TypeError('network error')) }"
    )
    until(lambda: browser.run("return window.broke"), "an answer breaks off")
    id_ = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    until(lambda: browser.all(f"tr[data-key='{id_}']"), "the next one is shown")


def _only_by_events(browser: Browser) -> None:
    """From now on the page's timer rests."""
    until(lambda: browser.run("return document.documentElement.dataset.events") == "open", "the stream is open")
    browser.run("document.getElementById('main').dataset.refresh = '3600'; window.same = true")
    browser.run("document.dispatchEvent(new Event('visibilitychange'))")


@on_stores
def test_events_update_a_page_at_once_and_a_pause_holds(browser: Browser, site: Site) -> None:
    browser.open("/jobs?status=completed")
    _only_by_events(browser)
    first = site.enqueue("mail.welcome", {"payload": 1})
    until(lambda: browser.all(f"tr[data-key='{first}']"), "the completed job is shown")
    assert browser.run("return window.same"), "the page was not loaded again"
    browser.find("#live").click()
    second = site.enqueue("mail.welcome", {"payload": 2})
    site.until_status(second, "completed")
    let_pass(1.5)
    assert not browser.all(f"tr[data-key='{second}']")
    browser.find("#live").click()
    until(lambda: browser.all(f"tr[data-key='{second}']"), "it goes on")


@on_stores
def test_log_lines_and_progress_of_a_running_job_come_as_they_are_written(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("img.follow", {"count": 3})
    site.until_status(id_, "running")
    browser.open(f"/jobs/{id_}")
    _only_by_events(browser)
    for step in range(3):
        assert f"step {step}" not in browser.text
        site.steps.release()
        until(lambda text=f"step {step}": text in browser.text, f"line {step} is shown")  # type: ignore[misc]
    until(lambda: "completed" in browser.find(".heading").text, "its end is shown")
    assert browser.run("return window.same"), "the page was not loaded again"


@on_sqlite
def test_without_a_stream_a_page_is_read_again_by_its_timer(browser: Browser, site: Site) -> None:
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/api/v1/events*"]})
    try:
        browser.open("/jobs")
        browser.run("document.getElementById('main').dataset.refresh = '0.2'")
        id_ = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
        until(lambda: browser.all(f"tr[data-key='{id_}']"), "the job is shown")
    finally:
        browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    browser.errors()  # the blocked stream


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
        assert "the store is not available; the server's log has the cause" in browser.text
        assert browser.all(".side a"), "never a white page"
        browser.run("document.getElementById('main').dataset.refresh = '0.2'")
    until(lambda: "mail.welcome" in browser.text, "it comes back by itself", 20)
    browser.errors()  # 503 is in the console too


PRESS_WHEN_IT_MOVES = """
const box = arguments[0].getBoundingClientRect();
new MutationObserver((_, observer) => {
  observer.disconnect();
  window.under = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).closest("tr");
  const press = new MouseEvent("click", { bubbles: true, cancelable: true, detail: 1 });
  window.under.querySelector("input").dispatchEvent(press);
}).observe(document.querySelector("tbody"), { childList: true });
"""


@on_sqlite
def test_a_press_right_after_the_list_moved_is_not_taken(browser: Browser, site: Site) -> None:
    first = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    browser.open("/jobs")
    row = browser.find(f"tr[data-key='{first}']")
    browser.point_at(row)
    browser.run("const main = document.getElementById('main'); main.dataset.refresh = '0.2'; main.dataset.hold = '0'")
    browser.run(PRESS_WHEN_IT_MOVES, row)
    second = site.enqueue("mail.welcome", {"payload": 2}, delay="1h")
    until(lambda: len(browser.all("tbody tr")) == 2, "the new job is shown above")
    until(lambda: browser.run("return window.under?.dataset.key") == second, "another row is under the pointer")
    assert browser.run("return document.querySelectorAll('input[name=id]:checked').length") == 0
    browser.find(f"input[value='{second}']").send_keys(" ")
    assert browser.find("#selected").text == "1 selected", "the keyboard is not held back"
    until(lambda: browser.find("#live").text == "Held", "the page says that it is held")


@on_sqlite
def test_a_log_follows_its_end_until_someone_scrolls_up(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("img.follow", {"count": 90})
    site.steps.release(60)
    until(lambda: len(site.app.jobs.get(id_).logs) >= 60, "60 lines are written")
    browser.open(f"/jobs/{id_}")
    browser.run("document.getElementById('main').dataset.refresh = '0.2'")
    below = "const box = document.querySelector('.logs'); return box.scrollHeight - box.scrollTop - box.clientHeight"
    assert browser.run(below) < 8
    site.steps.release(5)
    until(lambda: "step 64" in browser.text, "the lines are shown")
    assert browser.run(below) < 8, "it follows"
    browser.run("document.querySelector('.logs').scrollTop = 40")
    site.steps.release(25)
    until(lambda: "step 89" in browser.text, "the lines are shown")
    assert browser.run("return document.querySelector('.logs').scrollTop") == 40, "it stays where it was put"


@on_sqlite
def test_a_worker_shows_what_it_runs_since_when_and_its_memory(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("img.follow", {"count": 2})
    site.until_status(id_, "running")
    browser.open("/workers")
    until(lambda: "img.follow begun" in browser.find("td.runs").text, "what it runs")
    assert browser.find("td.runs a").get_attribute("href") == f"{browser.url}/jobs/{id_}"
    until(lambda: "MiB" in browser.find("[data-label=memory]").text, "its memory")
    site.steps.release(2)
    site.until_status(id_, "completed")
    until(lambda: "no job" in browser.find("td.runs").text, "its end, without a reload")
