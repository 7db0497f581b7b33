"""Flows in the browser: the list, a graph, its folding, hostile names, and what can be done."""

import pytest

from tests.dashboard.browser import PHONE, WIDE, Browser
from tests.dashboard.site import Site
from tests.support.addresses import on_sql, on_sqlite
from tests.support.processes import until
from windlass import App

HOSTILE = '<script>alert(1)</script>"\u202e]]>'


def order(app: App, name: str = "order-42") -> str:
    """A graph with a dead node, a node that compensates, a skipped one, and names of any kind; its id."""
    mail, bill = app.tasks["mail.welcome"], app.tasks["bill.charge"]
    with app.flow(name) as flow:
        start = flow.add(mail.job("start"), name="start")
        charge = flow.add(bill.job("declined"), name="charge", after=[start])
        flow.add(mail.job("ship"), name="ship", after=[charge])
        refund = flow.add(mail.job("refund"), name="refund", after=[charge], when="dead")
        flow.add(mail.job("alert"), name=HOSTILE, after=[refund], when="dead")
        many = [flow.add(mail.job(number), after=[start]) for number in range(20)]
        flow.add(mail.job("end"), name="end", after=[*many, refund], when="ended")
    return flow.id


def ended(site: Site, id_: str) -> None:
    site.until_status(id_, "cancelled")


@on_sqlite
@pytest.mark.parametrize(
    ("screen", "theme"),
    [
        (WIDE, "light"),
        (PHONE, "dark"),
        *(pytest.param(*each, marks=pytest.mark.extended) for each in ((WIDE, "dark"), (PHONE, "light"))),
    ],
)
def test_the_pages_of_flows_fit_on_every_screen(
    browser: Browser, site: Site, screen: tuple[int, int], theme: str
) -> None:
    id_ = order(site.app)
    ended(site, id_)
    browser.resize(screen, theme)
    for name, path in (("flows", "/flows"), ("flow", f"/flows/{id_}")):
        browser.open(path)
        assert "did not work" not in browser.text
        wide = browser.run("return document.documentElement.scrollWidth") - screen[0]
        assert wide <= 0, f"{path} is {wide} px too wide"
        assert browser.violations() == [], path
        browser.shoot(f"{name}-{screen[0]}-{theme}")


@on_sql
def test_a_graph_shows_each_node_once_and_folds_those_that_are_alike(browser: Browser, site: Site) -> None:
    id_ = order(site.app)
    ended(site, id_)
    browser.open("/flows")
    browser.press("order-42")
    drawn = [each.text.split("\n") for each in browser.all(".graph .node")]
    assert ["mail.welcome", "× 20: 20 completed"] in drawn
    assert {"start", "charge", "ship", "refund", "end"} <= {each[0] for each in drawn}
    assert len(drawn) == 7
    assert len(browser.all(".graph .edge.dead")) == 2
    assert "<script>alert(1)" in browser.text, "a hostile name is text"
    browser.submit(f'.graph a[href$="{site.app.flows.tree(id_).nodes[1].id}"]')
    assert "bill.charge" in browser.find("h1").text
    browser.submit(f'a[href="/flows/{id_}"]')
    assert browser.find("h1").text == "order-42"


@on_sqlite
def test_ten_thousand_nodes_are_one_readable_page(browser: Browser, site: Site) -> None:
    welcome = site.app.tasks["mail.welcome"].using(queue="unserved")
    with site.app.flow("large") as flow:
        first = flow.add(welcome.job(0), name="first")
        for number in range(9_998):
            flow.add(welcome.job(number), after=[first])
        flow.add(welcome.job(1), name="last", after=[first], when="ended")
    browser.open(f"/flows/{flow.id}")
    assert "× 9,998: 9,998 blocked" in browser.text
    assert len(browser.all("tbody tr")) == 100
    browser.press("Older")
    assert len(browser.all("tbody tr")) == 100


@on_sql
def test_a_flow_is_cancelled_and_retried_after_a_question(browser: Browser, site: Site) -> None:
    id_ = order(site.app)
    ended(site, id_)
    browser.open(f"/flows/{id_}")
    browser.press("Retry…")
    browser.press("Retry the flow")
    ended(site, id_)
    assert next(each.action for each in site.app.audit.list()) == "flow.retry"


@on_sqlite
def test_every_worker_knows_the_types_of_flows_and_newer_jobs_are_listed_before_them(
    browser: Browser, site: Site
) -> None:
    id_ = order(site.app)
    ended(site, id_)
    newest = site.enqueue("mail.welcome", {"payload": 1}, delay="1h")
    browser.open("/types/windlass.flow")
    assert "no live worker knows it" not in browser.text
    until(lambda: _opened(browser, "/types").all("tr[data-key='windlass.flow']"), "its meters are recorded")
    assert "none" not in browser.find("tr[data-key='windlass.flow']").text
    browser.open("/jobs")
    assert browser.find("tbody tr").get_attribute("data-key") == newest
    assert "Jobs of flows with a name" in browser.text
    browser.open("/jobs?status=scheduled")
    assert "Jobs of flows with a name" not in browser.text


@on_sqlite
def test_no_words_under_a_number_are_cut(browser: Browser, site: Site) -> None:
    site.until_status(site.enqueue("mail.welcome", {"payload": 1}), "completed")
    for screen in (WIDE, PHONE):
        browser.resize(screen)
        for path in ("/", "/queues/mail", "/types/mail.welcome"):
            browser.open(path)
            cut = "return [...document.querySelectorAll('.more')].filter((e) => e.scrollWidth > e.clientWidth).length"
            assert browser.run(cut) == 0, f"{path} on {screen}"


def _opened(browser: Browser, path: str) -> Browser:
    browser.open(path)
    return browser
