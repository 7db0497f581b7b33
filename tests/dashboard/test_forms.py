"""Forms: made from schemas, errors beside their fields, and two operators at once."""

import json

from tests.dashboard.browser import PHONE, WIDE, Browser
from tests.dashboard.site import Site, on_stores
from tests.dashboard.test_hostile import PAYLOADS, check_tame
from tests.support.addresses import on_sqlite


def _field(name: str) -> str:
    return f"[name='arg.{name}']"


def _error(browser: Browser, name: str) -> str:
    return browser.find(f"[id='wrong-arg.{name}']").text


@on_stores
def test_a_job_is_enqueued_by_a_form_made_from_the_schema(browser: Browser, site: Site) -> None:
    browser.open("/jobs")
    browser.press("Enqueue")
    browser.enter("#type", "order.place")
    browser.press("Choose")
    assert [each.text.split()[0] for each in browser.all(".argument label")] == [
        *("amount", "note", "express", "size", "price", "lines")
    ]
    browser.enter(_field("amount"), "seven")
    browser.enter(_field("price"), "NaN")
    browser.enter(_field("lines"), "[1, 2")
    browser.press("Enqueue 1 job")
    assert "Nothing was enqueued: see the marked fields." in browser.text
    assert _error(browser, "amount").startswith("is not JSON")
    assert _error(browser, "lines").startswith("is not JSON")
    assert browser.find(_field("amount")).get_attribute("value") == "seven", "what was typed is kept"
    browser.enter(_field("amount"), "1.5")
    browser.enter(_field("lines"), '[1, "x"]')
    browser.enter(_field("price"), "")
    browser.press("Enqueue 1 job")
    assert _error(browser, "amount") == "must be a whole number, not 1.5"
    browser.enter(_field("amount"), str(2**63 - 1))
    browser.press("Enqueue 1 job")
    assert "lines[1]: expected int, got str" in _error(browser, "lines"), "checked as the task checks it"
    assert site.app.jobs.count() == 0
    browser.enter(_field("lines"), "[1, 2]")
    browser.enter(_field("note"), "<b>two\nlines</b>")
    browser.run("document.querySelector(\"[name='arg.size']\").value = 'm'")
    browser.find("summary").click()
    browser.enter("[name=delay]", "1h")
    browser.press("Enqueue 1 job")
    job = site.app.jobs.list().items[0]
    assert browser.path == f"/jobs/{job.id}"
    assert job.payload == {"amount": 2**63 - 1, "note": "<b>two\nlines</b>", "size": "m", "lines": [1, 2]}
    assert (job.status, job.queue) == ("scheduled", "mail")
    browser.errors()  # 422 is in the console too


@on_sqlite
def test_a_copy_of_a_job_is_enqueued_with_its_payload_as_it_was(browser: Browser, site: Site) -> None:
    payload = {"amount": 3, "note": "a\u202eb\x85 ", "price": 0.1, "lines": [2**53 + 1]}
    id_ = site.enqueue("order.place", payload, delay="1h", tags=["vip"])
    browser.open(f"/jobs/{id_}")
    browser.press("Enqueue a copy")
    browser.press("Enqueue 1 job")
    copy = site.app.jobs.get(browser.path.removeprefix("/jobs/"))
    assert (copy.id != id_, copy.payload, copy.tags) == (True, payload, ("vip",))


@on_stores
def test_a_dead_job_is_retried_with_another_payload_and_both_are_shown(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("bill.charge", {"how": "declined"})
    site.until_status(id_, "dead")
    browser.open(f"/jobs/{id_}")
    browser.find("#change summary").click()
    browser.enter("textarea[name=payload]", '{"how": 7}')
    browser.press("Retry with this payload")
    assert "how: expected str, got int" in browser.find("#wrong-payload").text
    assert site.app.jobs.get(id_).attempt == 1
    browser.enter("textarea[name=payload]", '{"how": "away"}')
    browser.press("Retry with this payload")
    site.until_status(id_, "dead")
    browser.open(f"/jobs/{id_}")
    assert site.app.jobs.get(id_).payload == {"how": "away"}
    assert '"declined"' in browser.find("[aria-labelledby=earlier]").text.replace("declined", '"declined"')
    assert "changed by operator (dashboard)" in browser.text
    assert "payload changed by operator" in browser.find(".history").text
    assert browser.find(".machine .now").text.split()[0] == "dead"
    browser.errors()  # 422 is in the console too


@on_stores
def test_a_schedule_is_changed_beside_what_the_code_says(browser: Browser, site: Site) -> None:
    browser.open("/schedules/nightly")
    assert "At 03:00 every day" in browser.text
    browser.enter("input[name=cron]", "every now and then")
    browser.submit("tr[data-key=cron] form button")
    assert "fields" in browser.find("#wrong-cron").text
    assert browser.find("input[name=cron]").get_attribute("value") == "every now and then"
    browser.enter("input[name=cron]", "30 4 * * *")
    browser.submit("tr[data-key=cron] form button")
    assert "At 04:30 every day" in browser.text
    assert [each.text for each in browser.all("tr[data-key=cron] td")][1:4] == [
        "30 4 * * *",
        "0 3 * * *",
        "30 4 * * *",
    ]
    browser.enter("textarea[name=payload]", '{"other": 1}')
    browser.press("Change the arguments")
    assert "other" in browser.find("#wrong-payload").text
    browser.enter("textarea[name=payload]", '{"payload": "tock"}')
    browser.press("Change the arguments")
    assert json.loads(site.app.schedules.get("nightly").rules.job.payload) == {"payload": "tock"}
    browser.press("Use the code")
    assert "At 03:00 every day" in browser.text
    browser.press("Run now")
    browser.press("Enqueue 1 job")
    browser.open("/schedules/nightly")
    assert "run by hand" in browser.find("[aria-labelledby=last]").text
    browser.errors()  # 422 is in the console too


@on_sqlite
def test_a_setting_that_is_wrong_is_said_beside_it(browser: Browser, site: Site) -> None:
    site.until_status(site.enqueue("mail.welcome", {"payload": 1}), "completed")
    browser.open("/queues/mail")
    for name, value in (("max_concurrency", "many"), ("rate_limit", "often"), ("timeout", "-1s")):
        browser.enter(f"input[name={name}]", value)
        browser.submit(f"tr[data-key={name}] form button")
        assert browser.find(f"#wrong-{name}").text
        assert browser.find(f"input[name={name}]").get_attribute("value") == value
    assert site.app.queues.get("mail").rules.max_concurrency == 5
    browser.errors()  # 422 is in the console too


@on_stores
def test_two_operators_are_told_what_the_other_changed(browser: Browser, site: Site) -> None:
    site.until_status(site.enqueue("mail.welcome", {"payload": 1}), "completed")
    browser.open("/queues/mail")
    site.app.queues.set("mail", max_concurrency=2)
    site.app.queues.close("mail")
    browser.enter("input[name=rate_limit]", "10/s")
    browser.submit("tr[data-key=rate_limit] form button")
    assert "Queue mail was changed meanwhile" in browser.text
    found = {row.text for row in browser.all(".differences tbody tr")}
    assert found == {"closed no yes", "max concurrency 5 2"}
    assert site.app.queues.get("mail").rules.rate_limit is None
    site.app.queues.open("mail")
    browser.open("/schedules/nightly")
    site.app.schedules.set("nightly", cron="0 5 * * *")
    browser.press("Pause")
    browser.press("Pause 1 schedule")
    assert [row.text for row in browser.all(".differences tbody tr")] == ["cron 0 3 * * * 0 5 * * *"]
    assert not site.app.schedules.get("nightly").paused
    assert browser.violations() == []
    id_ = site.enqueue("mail.welcome", {"payload": "<i>old</i>"}, delay="1h")
    browser.open(f"/jobs/{id_}")
    browser.find("#change summary").click()
    site.app.jobs.change(id_, payload={"payload": "new"})
    browser.enter("input[name=priority]", "5")
    browser.press("Change")
    assert [row.text for row in browser.all(".differences tbody tr")] == ["payload as you saw it another one"]
    assert site.app.jobs.get(id_).priority == 0
    browser.resize(PHONE, "dark")
    assert browser.violations() == []
    browser.resize(WIDE)
    browser.errors()  # 412 is in the console too


@on_sqlite
def test_no_payload_breaks_a_form_or_what_it_replaced(browser: Browser, site: Site) -> None:
    browser.resize(PHONE)
    for name, payload in PAYLOADS.items():
        id_ = site.enqueue("mail.welcome", {"payload": payload}, delay="1h")
        site.app.jobs.change(id_, payload={"payload": "y" * 60_000} if name == "word" else {"payload": [payload]})
        site.app.schedules.add(name, site.app.tasks["mail.welcome"].job(payload), every=3600)
        for path in (f"/jobs/{id_}", f"/enqueue?job={id_}", f"/schedules/{name}"):
            browser.open(path)
            check_tame(browser, f"{name} on {path}")
    for path in ("/audit", "/schedules", "/workers", "/types", "/settings"):
        browser.open(path)
        check_tame(browser, path)
    browser.resize(WIDE)
