"""Groups as nodes of a graph: members wait for what the node waits for, and the node passes on the group's result."""

from typing import Any

import pytest

from tests.client.test_graphs import Shop
from windlass import App, Dead, InvalidOption, Results, Status, group
from windlass.coordinator.cancels import Cancels
from windlass.core.events import silent
from windlass.core.graphs.ids import map_id
from windlass.testing import run_all


@pytest.fixture
def shop() -> Shop:
    return Shop(App.testing())


def test_the_members_of_a_node_wait_for_it_and_its_result_is_that_of_the_group(shop: Shop) -> None:
    @shop.app.task
    async def sum_up(parts: Results[int]) -> int:
        return sum([each async for each in parts])

    with shop.app.flow("order") as flow:
        pay = flow.add(shop.step.job("pay"), name="pay")
        pack = flow.add(shop.step.job("pack"), name="pack")
        picks = flow.add(group([shop.double.job(n) for n in range(5)]), name="picks", after=[pay, pack])
        flow.add(sum_up.job(picks.result), name="total")
        again = flow.add(group([shop.double.job(n) for n in range(3)], then=sum_up), after=[picks])
        flow.add(shop.double.job(again.result), name="last")
    members = [job for job in shop.app.jobs.list(type="double", limit=100) if job.parent != flow.id]
    assert {job.status for job in members} == {Status.BLOCKED}
    run_all(shop.app)
    assert flow.handle.node("total").result(timeout=0) == 20
    assert flow.handle.node("last").result(timeout=0) == 12
    found = {node.name: [edge.node for edge in node.after] for node in shop.app.flows.tree("order").nodes}
    assert found["picks"] == ["pay", "pack"]
    assert found["total"] == ["picks"]
    assert found["group#4"] == ["picks"]
    assert found["last"] == ["group#4"]
    assert shop.app.flows.get("order").status is Status.COMPLETED


@pytest.mark.parametrize("when", ["dead", "ended"])
def test_a_group_may_wait_for_a_death_or_an_end(shop: Shop, when: Any) -> None:
    shop.broken = {"pay"}
    with shop.app.flow() as flow:
        pay = flow.add(shop.step.job("pay"))
        flow.add(group([shop.step.job("a"), shop.step.job("b")]), after=[pay], when=when)
    run_all(shop.app)
    assert sorted(shop.ran) == ["a", "b", "pay"]


def test_a_lost_member_cancels_the_node_and_a_retry_of_the_flow_goes_on(shop: Shop) -> None:
    broken = True

    @shop.app.task
    def fragile(number: int) -> int:
        if number == 1 and broken:
            raise Dead("odd")
        return number

    with shop.app.flow("order") as flow:
        some = flow.add(group([fragile.job(n) for n in range(3)]), name="some")
        flow.add(shop.stream.job(some.result), name="list")
        flow.add(shop.step.job("alert"), after=[some], when="dead")
    run_all(shop.app)
    assert shop.ran == ["alert"]
    assert shop.app.flows.get("order").status is Status.CANCELLED
    broken = False
    shop.app.flows.retry("order")
    run_all(shop.app)
    assert flow.handle.node("list").result(timeout=0) == [0, 1, 2]
    assert shop.app.flows.get("order").status is Status.COMPLETED


def test_cancelling_the_flow_cancels_the_members_of_its_groups(shop: Shop) -> None:
    with shop.app.flow("order") as flow:
        flow.add(group([shop.step.job(str(n)) for n in range(4)]), name="some")
    shop.app.flows.cancel("order")
    run_all(shop.app)
    assert shop.ran == []
    assert {job.status for job in shop.app.jobs.list(type="step")} == {Status.CANCELLED}


def test_a_retry_of_a_cancelled_flow_runs_the_members_of_its_groups(shop: Shop) -> None:
    """The coordinator has not finished the cancel yet."""
    with shop.app.flow("order") as flow:
        flow.add(group([shop.step.job(str(n)) for n in range(4)]), name="some")
        flow.add(shop.step.job("after"), after=["some"])
    shop.app.flows.cancel("order")
    shop.app.flows.retry("order")
    shop.app._portal().run(_finish_cancels(shop.app))
    run_all(shop.app)
    assert sorted(shop.ran) == ["0", "1", "2", "3", "after"]


@pytest.mark.parametrize("how", ["flow", "job"])
def test_a_retry_of_a_group_of_a_cancelled_flow_is_not_taken_back(shop: Shop, how: str) -> None:
    with shop.app.flow("order") as flow:
        some = flow.add(group([shop.step.job(str(n)) for n in range(2)]), name="some")
        flow.add(shop.step.job("other"))
    shop.app.flows.cancel("order")
    shop.app._portal().run(_finish_cancels(shop.app))
    if how == "flow":
        shop.app.flows.retry(map_id(flow.id, some.number))
    else:
        shop.app.jobs.retry(map_id(flow.id, some.number))
    shop.app._portal().run(_finish_cancels(shop.app))
    found = shop.app.jobs.get(map_id(flow.id, some.number)).status
    assert found is Status.PENDING
    run_all(shop.app)
    assert sorted(shop.ran) == (["0", "1"] if how == "flow" else [])


async def _finish_cancels(app: App) -> None:
    await Cancels(await app._ready(), silent).run()


def test_a_group_with_an_id_or_results_as_a_node_is_refused(shop: Shop) -> None:
    flow = shop.app.flow()
    one = flow.add(shop.double.job(1))
    with pytest.raises(InvalidOption, match=r"node 'g'\.id: cannot be given"):
        flow.add(group([shop.double.job(1)], id="x"), name="g")
    with pytest.raises(InvalidOption, match=r"node 'g'\.jobs\[0\]: takes a result"):
        flow.add(group([shop.double.job(one.result)]), name="g")


def test_the_results_of_a_group_without_then_are_taken_as_a_list_or_one_by_one(app: App) -> None:
    shop = Shop(app)
    broken = True

    @app.task
    def fragile(number: int) -> int:
        if number == 1 and broken:
            raise Dead("odd")
        return number

    @app.task
    def both(listed: list[int], streamed: Results[int], plain: Any) -> list[Any]:
        return [listed, list(streamed), plain]

    with app.flow("order") as flow:
        some = flow.add(group([fragile.job(n) for n in range(3)]), name="some")
        flow.add(shop.add_up.job(some.result), name="sum", after=[some])  # type: ignore[arg-type]
        flow.add(both.job(some.result, some.result, some.result), name="both")  # type: ignore[arg-type]
    run_all(app)
    assert shop.statuses("order") == {"some": "cancelled", "sum": "cancelled", "both": "cancelled"}
    broken = False
    app.flows.retry("order")
    run_all(app)
    assert flow.handle.node("sum").result(timeout=0) == 3
    assert flow.handle.node("both").result(timeout=0) == [[0, 1, 2]] * 3
    assert list(flow.handle.node(some).result(timeout=0)) == [0, 1, 2]
    tree = app.flows.tree("order").nodes
    assert [[edge.node for edge in node.after] for node in tree] == [[], ["some"], ["some"]]


def test_a_map_over_the_results_of_a_group_is_refused(shop: Shop) -> None:
    flow = shop.app.flow()
    some = flow.add(group([shop.double.job(1)]))
    with pytest.raises(InvalidOption, match=r"node 'm'\.over: must be node\.result, and a list"):
        flow.map(shop.double, over=some.result, name="m")  # type: ignore[arg-type]
