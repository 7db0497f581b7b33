"""The pages of webhooks: list, last deliveries, failures; test, pause, resume, remove."""

from tests.dashboard.browser import Browser
from tests.dashboard.site import Site
from tests.support.addresses import on_sqlite
from tests.support.processes import until

pytestmark = on_sqlite


def test_webhooks_are_listed_with_their_failures_and_changed_after_a_question(browser: Browser, site: Site) -> None:
    browser.open("/webhooks")
    assert "There are no webhooks" in browser.text
    new = site.app.webhooks.add("ops", "https://example.com/<b>hook</b>", events=["job.dead"], queues=["mail"])
    browser.open("/webhooks/ops")
    assert browser.violations() == []
    browser.press("Send a test")
    until(lambda: "webhook.test" in browser.text, "the delivery is shown")
    (delivery,) = site.app.webhooks.deliveries("ops")
    site.app.jobs.cancel(delivery.id, reason="unwanted")
    until(lambda: "unwanted" in browser.text, "its end is shown")
    browser.press("Pause")
    assert site.app.webhooks.get("ops").paused
    browser.press("Resume")
    assert not site.app.webhooks.get("ops").paused
    browser.open("/webhooks")
    assert "https://example.com/<b>hook</b>" in browser.text
    assert browser.violations() == []
    browser.shoot("webhooks")
    assert new.secret not in browser.driver.page_source
    browser.open("/webhooks/ops")
    browser.press("Remove")
    assert site.app.webhooks.list() != [], "nothing is done before the answer"
    browser.press("Remove 1 webhook")
    assert site.app.webhooks.list() == []
    assert browser.path == "/webhooks"
