"""What a job may contain: nothing of it is rendered as HTML, and no page grows beyond its bounds."""

from typing import Any

import pytest

from tests.dashboard.browser import PHONE, Browser
from tests.dashboard.scene import pages_of
from tests.dashboard.site import Site, on_stores
from windlass.client.verbs.audit import Actor

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
MAX_PAGE = 300 * 1024
PAYLOADS: dict[str, Any] = {
    "markup": {SCRIPT: SCRIPT, "x\"'><svg onload=alert(1)>": "javascript:alert(1)"},
    "controls": "a\x1b[31mred\x1b[0m\r\n\x07\x7f\x85\u2028b\x9f",
    "direction": "user\u202egpj.exe\u2066\u200f\ufeff",
    "word": "x" * 64_000,
    "markup_word": "<" * 15_000,
    "list": list(range(10_000)),
    "numbers": [2**63 - 1, -(2**63) + 1, 0.1, 1e308, 5e-324, -0.0],
    "deep": eval("[" * 60 + "1" + "]" * 60),
    "empty": [{}, [], "", None, True],
}


def check_tame(browser: Browser, where: str) -> None:
    """Nothing of a job is markup, reorders text, widens the page, or makes it large."""
    assert "owned" not in browser.run("return document.title"), where
    assert browser.all("main script, main img, main [onerror], main svg[onload]") == [], where
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0], where
    assert len(browser.driver.page_source) < MAX_PAGE, where
    text = browser.run("return document.querySelector('main').textContent")
    assert not set(text) & set("\x1b\x07\x7f\x85\x9f\u2028\u202e\u2066\u200f\ufeff"), where


@on_stores
def test_no_payload_is_rendered_as_html_or_breaks_the_page(browser: Browser, site: Site) -> None:
    for name, payload in PAYLOADS.items():
        id_ = site.enqueue("mail.welcome", {"payload": payload}, tags=["t"])
        site.until_status(id_, "completed")
        browser.resize(PHONE)
        browser.open(f"/jobs/{id_}")
        assert browser.run("return document.title").startswith("mail.welcome"), name
        check_tame(browser, name)
    browser.open("/jobs")
    assert browser.run("return document.title").startswith("Jobs")


@on_stores
def test_numbers_are_exact_and_what_is_cut_says_so(browser: Browser, site: Site) -> None:
    id_ = site.enqueue("mail.welcome", {"payload": PAYLOADS["numbers"]}, delay="1h")
    browser.open(f"/jobs/{id_}")
    for number in ("9223372036854775807", "-9223372036854775807", "0.1", "1e+308", "5e-324", "-0.0"):
        assert number in browser.text
    id_ = site.enqueue("mail.welcome", {"payload": PAYLOADS["list"]}, delay="1h")
    browser.open(f"/jobs/{id_}")
    text = browser.run("return document.querySelector('main').textContent")
    assert "[10,000 elements]" in text
    assert "9,900 more; download to see all" in text
    id_ = site.enqueue("mail.welcome", {"payload": PAYLOADS["word"]}, delay="1h")
    browser.open(f"/jobs/{id_}")
    assert "(64,000 characters)" in browser.text


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_text_of_errors_tags_and_searches_is_shown_as_text(browser: Browser, site: Site) -> None:
    browser.open("/jobs?q=" + "%3Cscript%3Ealert(1)%3C/script%3E:x")
    assert browser.all("main script") == []
    for address in (
        "/jobs?type={}",
        "/jobs?status={}",
        "/jobs?said={}.1.1",
        "/?range={}",
        "/?queue={}",
        "/audit?cursor={}",
    ):
        browser.open(address.format("%3Cimg%20src=x%3E"))
        assert browser.all("main img") == [], address
        assert "the server failed" not in browser.text, address
    browser.open("/jobs/%3Cimg%20src=x%3E")
    assert browser.all("main img") == []
    browser.errors()  # a page that does not exist


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_a_changed_payload_keeps_invisible_characters(browser: Browser, site: Site) -> None:
    payload = {"payload": "a\u202eb\x85\xa0\U000e0001\n"}
    id_ = site.enqueue("mail.welcome", payload, delay="1h")
    browser.open(f"/jobs/{id_}")
    browser.find("#change summary").click()
    browser.enter("input[name=priority]", "1")
    browser.press("Change")
    assert site.app.jobs.get(id_).payload == payload
    browser.find("#change summary").click()
    field = browser.find("textarea[name=payload]")
    field.send_keys(" ")
    browser.press("Change")
    assert site.app.jobs.get(id_).payload == payload, "the form has the same value in other letters"


@on_stores
def test_hostile_words_break_no_page(browser: Browser, site: Site) -> None:
    words = f"{SCRIPT} {PAYLOADS['controls']} {PAYLOADS['direction']}"
    dead = [site.enqueue("odd.words", {"text": text}) for text in (words, "y" * 60_000, "<" * 20_000)]
    numbers = [site.enqueue("odd.numbers", {"name": name}) for name in ("nan", "infinity", "2^63")]
    for id_ in (*dead, *numbers):
        site.until_status(id_, "dead" if id_ in dead else "completed")
    later = site.enqueue("mail.welcome", {"payload": words}, delay="1h", meta={SCRIPT[:60]: words})
    site.app.actor = Actor(words, "python")
    site.app.jobs.change(later, payload={"payload": [words]})
    running = site.enqueue("img.follow", {"count": 1})
    site.until_status(running, "running")
    site.app.schedules.add("odd", site.app.tasks["mail.welcome"].job(words), every=3600)
    jobs = {
        "completed": later,
        **{f"dead-{number}": id_ for number, id_ in enumerate((*dead, *numbers))},
        "running": running,
    }
    searches = ("/jobs?status=dead&error=script", "/jobs?tag=%3Cb%3Evip%3C/b%3E")
    browser.resize(PHONE)
    for path in (*pages_of(jobs).values(), "/schedules/odd", "/types/odd.words", *searches):
        browser.open(path)
        check_tame(browser, path)
    browser.open("/dead")
    browser.press("Delete")
    check_tame(browser, "the question about a group")
    browser.open(f"/jobs/{later}")
    browser.press("Cancel")
    site.app.jobs.change(later, payload={"payload": words[::-1]})
    browser.press("Cancel 1 job")
    assert "meanwhile" in browser.text
    check_tame(browser, "what changed meanwhile")
    site.steps.release()
    browser.errors()  # a page that does not exist, and 412
