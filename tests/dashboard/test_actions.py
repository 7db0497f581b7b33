"""What operators do, end to end in a real browser: each change asks first, with the count."""

from typing import Any

from tests.dashboard.browser import Browser
from tests.dashboard.site import Site, on_stores
from tests.support.addresses import on_sqlite
from tests.support.processes import until


def _dead(site: Site, how: str = "declined") -> str:
    id_ = site.enqueue("bill.charge", {"how": how})
    site.until_status(id_, "dead")
    return id_


@on_stores
def test_a_selection_is_cancelled_after_a_question_with_the_count(browser: Browser, site: Site) -> None:
    jobs = [site.enqueue("mail.welcome", {"payload": n}, delay="1h") for n in range(3)]
    browser.open("/jobs?status=scheduled&type=mail.welcome")
    for id_ in jobs[:2]:
        browser.find(f"input[value='{id_}']").click()
    browser.press("Cancel")
    assert "Cancel 2 jobs?" in browser.text
    assert site.app.jobs.get(jobs[0]).status == "scheduled", "nothing is done before the answer"
    browser.press("Cancel 2 jobs")
    assert "2 jobs cancelled." in browser.text
    assert browser.path.startswith("/jobs?status=scheduled&type=mail.welcome"), "the filter is kept"
    assert [site.app.jobs.get(id_).status for id_ in jobs] == ["cancelled", "cancelled", "scheduled"]


@on_stores
def test_a_selection_of_a_search_is_retried_and_the_search_is_kept(browser: Browser, site: Site) -> None:
    jobs = [_dead(site), _dead(site, "away")]
    browser.open("/jobs?status=dead&type=bill.*&error=declined")
    browser.find(f"input[value='{jobs[0]}']").click()
    browser.press("Retry")
    assert "Retry 1 job?" in browser.text
    browser.press("Retry 1 job")
    assert "1 job retried." in browser.text
    assert browser.path.startswith("/jobs?status=dead&type=bill.%2A&error=declined&said=")
    until(lambda: site.app.jobs.get(jobs[0]).attempt == 2, "it ran again")
    assert site.app.jobs.get(jobs[1]).attempt == 1


@on_stores
def test_all_that_match_are_retried_in_the_background(browser: Browser, site: Site) -> None:
    jobs = [_dead(site) for _ in range(3)]
    attempts = [site.app.jobs.get(id_).attempt for id_ in jobs]
    browser.open("/jobs?status=dead&type=bill.charge")
    browser.run("document.getElementById('which').value = 'matching'")
    browser.press("Retry")
    assert "Retry 3 jobs that match status:dead type:bill.charge?" in browser.text
    browser.press("Retry them")
    until(lambda: "done" in browser.text, "the page of the action shows its end, without a reload")
    assert "3" in browser.text
    until(lambda: [site.app.jobs.get(id_).attempt for id_ in jobs] != attempts, "they ran again")


@on_stores
def test_a_selection_is_changed_and_run_now(browser: Browser, site: Site) -> None:
    jobs = [site.enqueue("mail.welcome", {"payload": n}, delay="1h") for n in range(3)]
    browser.open("/jobs?status=scheduled")
    for id_ in jobs[:2]:
        browser.find(f"input[value='{id_}']").click()
    browser.press("Change")
    assert "Change 2 jobs?" in browser.text
    browser.press("Change 2 jobs")
    assert "give a queue, a priority or a time" in browser.text
    browser.enter("input[name=new_priority]", "high")
    browser.press("Change 2 jobs")
    assert browser.find("#wrong-new_priority").text == "must be a whole number, not 'high'"
    browser.enter("input[name=new_priority]", "-3")
    browser.press("Change 2 jobs")
    assert "2 jobs changed." in browser.text
    assert [site.app.jobs.get(id_).priority for id_ in jobs] == [-3, -3, 0]
    browser.find(f"input[value='{jobs[0]}']").click()
    browser.press("Run now")
    browser.press("Run 1 job now")
    assert "1 job made to run now." in browser.text
    site.until_status(jobs[0], "completed")


@on_stores
def test_all_that_match_are_changed_in_the_background(browser: Browser, site: Site) -> None:
    jobs = [site.enqueue("mail.welcome", {"payload": n}, delay="1h") for n in range(3)]
    browser.open("/jobs?status=scheduled&type=mail.welcome")
    browser.run("document.getElementById('which').value = 'matching'")
    browser.press("Change")
    browser.enter("input[name=new_queue]", "images")
    browser.press("Change them")
    until(lambda: "3 of 3 jobs, 100%" in browser.text, "the page of the action shows its progress")
    assert {site.app.jobs.get(id_).queue for id_ in jobs} == {"images"}


@on_stores
def test_a_large_number_must_be_typed(browser: Browser, site: Site) -> None:
    for n in range(101):
        site.enqueue("mail.welcome", {"payload": n}, delay="1h")
    browser.open("/jobs?status=scheduled")
    browser.run("document.getElementById('which').value = 'matching'")
    browser.press("Cancel")
    assert "Cancel 101 jobs that match" in browser.text
    browser.enter("input[name=typed]", "100")
    browser.press("Cancel them")
    assert "the number is 101; you typed 100" in browser.text
    assert site.app.stats.counts().totals["scheduled"] == 101
    browser.enter("input[name=typed]", "101")
    browser.press("Cancel them")
    until(lambda: site.app.stats.counts().totals["cancelled"] == 101, "all are cancelled")


@on_stores
def test_a_job_is_run_cancelled_changed_retried_and_deleted(browser: Browser, site: Site) -> None:
    later = site.enqueue("mail.welcome", {"payload": "a"}, delay="1h")
    browser.open(f"/jobs/{later}")
    browser.press("Run now")
    site.until_status(later, "completed")
    browser.open(f"/jobs/{later}")
    browser.press("Delete")
    browser.press("Delete 1 job")
    assert "1 job deleted." in browser.text
    assert site.app.jobs.count() == 0
    other = site.enqueue("mail.welcome", {"payload": "b"}, delay="1h")
    browser.open(f"/jobs/{other}")
    browser.find("#change summary").click()
    browser.enter("input[name=priority]", "7")
    browser.enter("textarea[name=payload]", '{"payload": "c"}')
    browser.press("Change")
    assert "The job was changed." in browser.text
    changed = site.app.jobs.get(other)
    assert (changed.priority, changed.payload, changed.queue) == (7, {"payload": "c"}, "mail")
    browser.press("Cancel")
    browser.press("Cancel 1 job")
    site.until_status(other, "cancelled")
    browser.open(f"/jobs/{other}")
    browser.press("Retry")
    browser.press("Retry 1 job")
    site.until_status(other, "completed")


@on_sqlite
def test_a_wrong_field_is_named_and_nothing_changes(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("img.resize", {"steps": 1}, delay="1h")
    fields: dict[str, Any] = {
        "input[name=priority]": ("many", "priority"),
        "input[name=queue]": ("no such/name", "queue"),
        "textarea[name=payload]": ('{"steps": "x"}', "steps"),
    }
    for selector, (value, name) in fields.items():
        browser.open(f"/jobs/{id_}")
        browser.find("#change summary").click()
        browser.enter(selector, value)
        browser.press("Change")
        assert "Nothing was changed: see the marked fields." in browser.text
        wrong = browser.find("[aria-invalid=true]")
        assert wrong.get_attribute("value") == value, "what was typed is kept"
        said = browser.find(f"#{wrong.get_attribute('aria-describedby')}").text
        assert name in said or name == wrong.get_attribute("name"), said
    job = site.app.jobs.get(id_)
    assert (job.priority, job.queue, job.payload) == (0, "images", {"steps": 1})
    browser.errors()  # 422 is in the console too


@on_stores
def test_a_job_that_changed_meanwhile_is_left_alone(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    browser.open(f"/jobs/{id_}")
    browser.press("Cancel")
    site.app.jobs.change(id_, priority=3)
    browser.press("Cancel 1 job")
    assert "It has been changed since you opened the page, last by" in browser.text
    assert browser.find("tr[data-key=priority]").text.split() == ["priority", "0", "3"]
    assert len(browser.all(".differences tbody tr")) == 1
    assert site.app.jobs.get(id_).status == "scheduled"
    browser.press("Open it again")
    assert browser.path == f"/jobs/{id_}"
    browser.errors()  # 412 is in the console too


@on_stores
def test_a_queue_is_paused_with_an_end_resumed_closed_opened_and_limited(browser: Browser, site: Site) -> None:
    site.until_status(site.enqueue("mail.welcome", {"payload": 1}), "completed")
    browser.open("/queues/mail")
    browser.run("document.getElementById('for').value = '1h'")
    browser.press("Pause")
    browser.press("Pause")
    queue = site.app.queues.get("mail")
    assert queue.paused
    assert queue.paused_until is not None
    assert "paused" in browser.find(".heading").text
    browser.press("Resume")
    browser.press("Close")
    browser.press("Close")
    assert site.app.queues.get("mail").closed
    browser.press("Open to new jobs")
    queue = site.app.queues.get("mail")
    assert (queue.paused, queue.closed) == (False, False)
    browser.enter("input[name=max_concurrency]", "3", send=True)
    assert site.app.queues.get("mail").rules.max_concurrency == 3
    assert "Use the code" in browser.text, "the page shows the change"
    row = browser.find("tr[data-key=max_concurrency]").text
    assert row.split()[:6] == ["Jobs", "at", "once", "max_concurrency", "3", "5"]
    browser.press("Use the code")
    assert site.app.queues.get("mail").rules.max_concurrency == 5


@on_stores
def test_a_group_of_dead_letters_is_retried_alone(browser: Browser, site: Site) -> None:
    declined, away = [_dead(site) for _ in range(2)], _dead(site, "away")
    browser.open("/dead")
    assert "3 jobs in 2 groups" in browser.text
    first = browser.find("tbody tr")
    assert "ValueError" in first.text
    assert "<b>declined</b>" in first.text, "shown as text"
    browser.press("Retry all")
    assert "Retry 2 dead jobs of bill.charge with ValueError?" in browser.text
    browser.press("Retry 2 dead jobs")
    until(lambda: all(site.app.jobs.get(id_).attempt == 2 for id_ in declined), "they ran again")
    assert site.app.jobs.get(away).attempt == 1


@on_stores
def test_a_schedule_is_run_paused_and_resumed(browser: Browser, site: Site) -> None:
    browser.open("/schedules")
    assert "At 03:00 every day" in browser.text
    browser.press("Run now")
    browser.press("Enqueue 1 job")
    assert browser.path.startswith("/jobs/")
    assert "nightly" in browser.text
    browser.open("/schedules")
    browser.press("Pause")
    browser.press("Pause 1 schedule")
    assert site.app.schedules.get("nightly").paused
    browser.press("Resume")
    assert not site.app.schedules.get("nightly").paused


@on_stores
def test_the_audit_names_the_operator_and_the_dashboard(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    browser.open(f"/jobs/{id_}")
    browser.press("Run now")
    browser.open("/audit")
    row = browser.find("tbody tr").text
    assert "operator" in row
    assert "dashboard" in row
    assert "job.run" in row
    assert id_ in row


@on_stores
def test_the_history_of_a_retried_job_says_how_long_it_was_dead(browser: Browser, site: Site) -> None:
    id_ = _dead(site)
    site.app.jobs.retry(id_)
    until(lambda: site.app.jobs.get(id_).attempt == 2, "it ran again")
    site.until_status(id_, "dead")
    browser.open(f"/jobs/{id_}")
    history = browser.find(".history").text
    assert "dead until it was retried" in history
    assert "until it was due" not in history
    assert not browser.all(".machine .failed")
    assert "2, with retries by operators; at most 1 each time" in browser.text
    other = site.enqueue("bill.charge", {"how": "away"})
    site.until_status(other, "dead")
    site.app.queues.pause("bills")
    site.app.jobs.retry(other)
    browser.open(f"/jobs/{other}")
    assert "dead until it was retried" in browser.find(".history").text
