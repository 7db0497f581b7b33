"""windlass flows list, show, cancel, retry, and jobs why of a flow, on every store."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.cli.terminal import Terminal
from windlass import App, Dead, Flow, FlowNotFound, Results, Status, group
from windlass.cli.flows import progress_bar
from windlass.core.ids import JobId
from windlass.testing import run_all


@pytest.fixture
def shop(address: str) -> Iterator[App]:
    """A lost group, and a graph that waits."""
    app = App(address)

    @app.task
    def fail(number: int) -> int:
        raise Dead("hopeless")

    @app.task
    def total(parts: Results[int]) -> int:
        return len(parts)

    group([fail.job(1)], then=total, id="import-7").enqueue()
    run_all(app)
    with app.flow("order-42") as flow:
        pay = flow.add(fail.using(delay=3600).job(2), name="pay")
        flow.add(fail.job(3), name="ship", after=[pay])
    yield app
    app.close()


@pytest.mark.usefixtures("shop")
def test_flows_are_listed_and_shown_with_what_holds_them_up(terminal: Terminal, address: str) -> None:
    listed = terminal.ok("flows", "list", "--store", address).out
    assert "import-7" in listed
    assert "order-42" in listed
    group, graph = terminal.ok("flows", "list", "--store", address, "--json").json
    assert {each["name"] for each in (group, graph)} == {"import-7", "order-42"}
    shown = terminal.ok("flows", "show", "order-42", "--store", address).out
    assert "2 nodes: 2 live" in shown
    assert "waits for" in shown
    nodes = terminal.ok("flows", "show", "order-42", "--store", address, "--json").json["nodes"]
    assert [node["name"] for node in nodes] == ["pay", "ship"]


def test_a_flow_is_cancelled_and_retried(terminal: Terminal, shop: App, address: str) -> None:
    cancelled = terminal.ok("flows", "cancel", "order-42", "--reason", "enough", "--store", address).out
    assert "is cancelled: enough" in cancelled
    assert "2 nodes: 2 cancelled" in cancelled
    again = terminal.ok("flows", "retry", "order-42", "--store", address).out
    assert "2 nodes: 2 live" in again
    assert "1 members: 1 live" in terminal.ok("flows", "retry", "import-7", "--store", address).out


def test_why_of_a_lost_flow_leads_to_what_was_lost(terminal: Terminal, shop: App, address: str) -> None:
    flow = shop.flows.get("import-7")
    reported = terminal.ok("jobs", "why", flow.id, "--store", address).out
    assert "is dead (index 0)" in reported
    assert f"windlass flows retry {flow.id}" in reported


def test_a_part_of_the_id_of_a_flow_is_enough(terminal: Terminal, shop: App, address: str) -> None:
    """Its callbacks and members have ids that begin as its own."""
    task = shop.tasks["fail"]
    made = group([task.using(delay=3600).job(n) for n in (1, 2)], on_dead=shop.tasks["total"]).enqueue()
    for part in (made.id[:23], made.id[:20].upper(), f"{made.id[:13]}…", made.id[-12:]):
        assert f"flow {made.id} is" in terminal.ok("flows", "show", part, "--store", address).out
    assert "2 cancelled" in terminal.ok("flows", "cancel", made.id[:16], "--store", address).out
    assert "2 live" in terminal.ok("flows", "retry", made.id[-12:], "--store", address).out


def test_a_part_that_begins_two_flows_is_refused(terminal: Terminal, shop: App, address: str) -> None:
    task = shop.tasks["fail"]
    ids = sorted(group([task.using(delay=3600).job(n)]).enqueue().id for n in range(2))
    ran = terminal.run("flows", "cancel", ids[0][:8], "--store", address)
    assert ran.code != 0
    assert "flows have an id that begins with" in ran.err
    assert shop.flows.get(ids[0]).live == shop.flows.get(ids[1]).live == 1


def test_a_name_of_a_flow_comes_before_parts_of_ids(shop: App) -> None:
    task = shop.tasks["fail"]
    made = group([task.job(1)]).enqueue()
    named = group([task.job(2)], id=made.id[:18]).enqueue()
    assert shop.flows.find(made.id[:18]) == named.id
    assert shop.flows.find(made.id[:19]) == made.id
    with pytest.raises(FlowNotFound, match="no flow 'ffffffff'"):
        shop.flows.find("ffffffff")
    with pytest.raises(FlowNotFound):
        shop.flows.find(made.member(0).id)


@pytest.mark.usefixtures("shop")
def test_a_flow_that_is_not_there_is_an_error(terminal: Terminal, address: str) -> None:
    ran = terminal.run("flows", "show", "nothing", "--store", address)
    assert ran.code != 0
    assert "no flow 'nothing'" in ran.err


@pytest.mark.parametrize(
    ("completed", "dead", "skipped", "bar"),
    [
        (960, 40, 0, "#" * 28 + "xx"),
        (6, 0, 1, "#" * 25 + "-" * 5),
        (2, 1, 0, "#" * 20 + "x" * 10),
        (1, 0, 0, "#" * 30),
    ],
)
def test_the_bar_of_a_flow_whose_jobs_have_all_ended_is_full(
    completed: int, dead: int, skipped: int, bar: str
) -> None:
    flow = Flow(
        id=JobId("1"),
        status=Status.COMPLETED,
        size=completed + dead + skipped,
        completed=completed,
        dead=dead,
        skipped=skipped,
        created_at=datetime.now(UTC),
    )
    assert progress_bar(flow) == bar
