"""app.flow(...): nodes that wait for each other, conditions, results by name, and what is refused before storing."""

from collections.abc import Callable
from typing import Any

import pytest

from windlass import PREVIOUS, App, Dead, InvalidInput, InvalidOption, JobCancelled, Results, Status, UseAsync, group
from windlass.client.graphs import graph as graph_module
from windlass.client.graphs.node import Node
from windlass.core.graphs.ids import JOIN_TYPE
from windlass.testing import run_all


class Shop:
    """An app whose tasks note that they ran; those in `broken` die."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.ran: list[str] = []
        self.broken: set[str] = set()

        @app.task
        def step(name: str) -> str:
            self.ran.append(name)
            if name in self.broken:
                raise Dead("broken")
            return name

        @app.task
        def double(number: int) -> int:
            return 2 * number

        @app.task
        def total(first: int, second: int) -> int:
            return first + second

        @app.task
        def numbers(count: int) -> list[int]:
            return list(range(count))

        @app.task
        def add_up(parts: list[int]) -> int:
            return sum(parts)

        @app.task
        def stream(parts: Results[int]) -> list[int]:
            return list(parts)

        self.step, self.double, self.total = step, double, total
        self.numbers, self.add_up, self.stream = numbers, add_up, stream

    def statuses(self, name: str) -> dict[str, str]:
        return {
            node.name: "skipped" if node.skipped else str(node.status) for node in self.app.flows.tree(name).nodes
        }


@pytest.fixture
def shop() -> Shop:
    return Shop(App.testing())


def order(shop: Shop, name: str = "order") -> dict[str, Node[Any]]:
    """A diamond with a node for each condition."""
    with shop.app.flow(name) as flow:
        pay = flow.add(shop.step.job("pay"), name="pay")
        pick = flow.add(shop.step.job("pick"), name="pick", after=[pay])
        pack = flow.add(shop.step.job("pack"), name="pack", after=["pay"])
        ship = flow.add(shop.step.job("ship"), name="ship", after=[pick, pack])
        refund = flow.add(shop.step.job("refund"), name="refund", after=[pay, pick, pack], when="dead")
        flow.add(shop.step.job("alert"), name="alert", after=[refund], when="dead")
        flow.add(shop.step.job("clean"), name="clean", after=[ship, refund], when="ended")
    return {"ship": ship, "refund": refund}


def test_nodes_run_after_those_that_they_wait_for(shop: Shop) -> None:
    order(shop)
    run_all(shop.app)
    assert shop.ran[0] == "pay"
    assert set(shop.ran[1:3]) == {"pick", "pack"}
    assert shop.ran[3:] == ["ship", "clean"]
    assert shop.statuses("order") | {"refund": "skipped", "alert": "skipped"} == shop.statuses("order")
    flow = shop.app.flows.get("order")
    assert (flow.status, flow.kind, flow.size) == (Status.COMPLETED, "graph", 7)
    assert (flow.completed, flow.skipped, flow.live) == (5, 2, 0)


@pytest.mark.parametrize("broken", ["pay", "pick", "pack"])
def test_a_dead_node_cancels_below_it_and_runs_what_waits_for_a_death_or_an_end(shop: Shop, broken: str) -> None:
    shop.broken = {broken}
    order(shop)
    run_all(shop.app)
    assert "ship" not in shop.ran
    assert shop.ran[-2:] == ["refund", "clean"]
    found = shop.statuses("order")
    assert (found["ship"], found["refund"], found["alert"]) == ("cancelled", "completed", "skipped")
    flow = shop.app.flows.get("order")
    assert flow.status is Status.CANCELLED
    assert flow.reason is not None
    assert "is dead" in flow.reason


def test_the_reason_of_a_skipped_node_leads_to_the_node_that_completed(shop: Shop) -> None:
    order(shop)
    run_all(shop.app)
    refund = next(node for node in shop.app.flows.tree("order").nodes if node.name == "refund")
    (reason,) = shop.app.jobs.why(refund.id).reasons
    assert "It was skipped" in reason.text
    assert "pay" in str(shop.app.jobs.get(reason.jobs[0]).payload)


def test_a_retry_of_the_flow_runs_what_was_lost_and_not_what_ran(shop: Shop) -> None:
    shop.broken = {"pick"}
    order(shop)
    run_all(shop.app)
    shop.broken = set()
    shop.ran.clear()
    shop.app.flows.retry("order")
    run_all(shop.app)
    assert shop.ran == ["pick", "ship"]
    assert shop.app.flows.get("order").status is Status.COMPLETED


def test_a_cancelled_flow_still_runs_what_waits_for_ends_and_a_retry_runs_the_rest(shop: Shop) -> None:
    order(shop)
    shop.app.flows.cancel("order", "no longer wanted")
    run_all(shop.app)
    assert shop.ran == ["clean"]
    found = shop.app.flows.get("order")
    assert (found.status, found.cancelled, found.completed) == (Status.CANCELLED, 6, 1)
    shop.app.flows.retry("order")
    run_all(shop.app)
    assert shop.ran[1] == "pay"
    assert sorted(shop.ran[1:]) == ["pack", "pay", "pick", "ship"]
    shop.app.clock.advance(60)
    run_all(shop.app)
    assert shop.app.flows.get("order").status is Status.COMPLETED


def test_results_reach_the_parameters_that_they_are_given_for(shop: Shop) -> None:
    with shop.app.flow() as flow:
        one = flow.add(shop.double.job(1))
        two = flow.add(shop.double.job(one.result))
        both = flow.add(shop.total.job(one.result, second=two.result), name="both")
    run_all(shop.app)
    assert flow.handle.node(both).result(timeout=0) == 6
    assert flow.handle.node("both").result(timeout=0) == 6
    assert flow.handle.result(timeout=0) is None


def test_the_handle_of_a_flow_that_did_not_go_well_says_why(shop: Shop) -> None:
    shop.broken = {"a"}
    with shop.app.flow() as flow:
        flow.add(shop.step.job("a"))
    run_all(shop.app)
    with pytest.raises(JobCancelled, match="is dead: broken"):
        flow.handle.result(timeout=0)


def test_an_exception_in_the_block_stores_nothing(shop: Shop) -> None:
    def leave() -> None:
        with shop.app.flow("order") as flow:
            flow.add(shop.step.job("a"))
            raise KeyError

    with pytest.raises(KeyError):
        leave()
    assert list(shop.app.jobs.list()) == []


def test_a_flow_with_a_name_is_stored_once(shop: Shop) -> None:
    order(shop)
    jobs = len(shop.app.jobs.list(limit=100))
    run_all(shop.app)
    order(shop)
    run_all(shop.app)
    assert shop.ran.count("pay") == 1
    assert len(shop.app.jobs.list(limit=100)) == jobs


def test_another_graph_with_the_name_of_one_is_refused(shop: Shop) -> None:
    order(shop)
    with (
        pytest.raises(InvalidOption, match="there is a flow 'order' with other nodes"),
        shop.app.flow("order") as flow,
    ):
        flow.add(shop.step.job("a"))


def test_a_map_runs_a_job_for_each_element_and_gives_the_results_in_order(shop: Shop) -> None:
    with shop.app.flow("docs") as flow:
        count = flow.add(shop.numbers.job(5), name="numbers")
        doubled = flow.map(shop.double, over=count.result, name="double")
        flow.add(shop.add_up.job(doubled.result), name="sum")
        flow.add(shop.stream.job(doubled.results), name="list")
    run_all(shop.app)
    assert flow.handle.node("sum").result(timeout=0) == 20
    assert flow.handle.node("list").result(timeout=0) == [0, 2, 4, 6, 8]
    found = {node.name: (node.type, [edge.node for edge in node.after]) for node in shop.app.flows.tree("docs").nodes}
    assert found["double"] == ("double", ["numbers"])
    assert found["sum"][1] == found["list"][1] == ["double"]


def test_a_map_over_nothing_gives_nothing(shop: Shop) -> None:
    with shop.app.flow() as flow:
        none = flow.add(shop.numbers.job(0))
        flow.add(shop.add_up.job(flow.map(shop.double, over=none.result).result), name="sum")
    run_all(shop.app)
    assert flow.handle.node("sum").result(timeout=0) == 0


def test_a_member_of_a_map_that_dies_cancels_it_and_a_retry_of_the_flow_goes_on(shop: Shop) -> None:
    broken = True

    @shop.app.task
    def fragile(number: int) -> int:
        if number == 3 and broken:
            raise Dead("odd")
        return number

    with shop.app.flow("docs") as flow:
        count = flow.add(shop.numbers.job(5))
        every = flow.map(fragile, over=count.result, name="every")
        flow.add(shop.add_up.job(every.result), name="sum")
        flow.add(shop.step.job("alert"), after=[every], when="dead")
    run_all(shop.app)
    assert shop.statuses("docs")["every"] == "cancelled"
    assert shop.ran == ["alert"]
    assert shop.app.flows.get("docs").status is Status.CANCELLED
    broken = False
    shop.app.flows.retry("docs")
    run_all(shop.app)
    assert flow.handle.node("sum").result(timeout=0) == 10
    assert shop.app.flows.get("docs").status is Status.COMPLETED


def test_an_element_that_does_not_fit_the_task_adds_no_member(shop: Shop) -> None:
    @shop.app.task
    def words() -> list[Any]:
        return [1, "two"]

    with shop.app.flow() as flow:
        every = flow.map(shop.double, over=flow.add(words.job()).result, name="every")
    run_all(shop.app)
    adds = shop.app.jobs.get(every.members)
    assert adds.status is Status.DEAD
    assert "element 1" in (adds.reason or "")
    assert not [job for job in shop.app.jobs.list() if job.type == "double"]


def test_a_node_may_wait_for_thousands(shop: Shop) -> None:
    with shop.app.flow("wide") as flow:
        many = [flow.add(shop.double.job(number)) for number in range(250)]
        flow.add(shop.step.job("last"), name="last", after=many)
        flow.add(shop.step.job("end"), name="end", after=many, when="ended")
    run_all(shop.app)
    assert sorted(shop.ran) == ["end", "last"]
    tree = shop.app.flows.tree("wide")
    assert {len(node.after) for node in tree.nodes[-2:]} == {250}
    assert {job.type for job in shop.app.jobs.list(limit=500)} >= {JOIN_TYPE}


def refused(shop: Shop, match: str, add: Callable[[Any, Any], object]) -> None:
    def enqueue() -> None:
        with shop.app.flow() as flow:
            pay = flow.add(shop.step.job("pay"), name="pay")
            flow.add(shop.step.job("refund"), name="refund", after=[pay], when="dead")
            add(flow, pay)

    with pytest.raises(InvalidInput, match=match):
        enqueue()
    assert list(shop.app.jobs.list()) == []


def test_what_cannot_be_is_refused_with_the_name_of_the_node(shop: Shop) -> None:
    with shop.app.flow() as other:
        stranger = other.add(shop.double.job(1), name="pay")
    step, double = shop.step, shop.double
    shop.app.flows.cancel(other.id)
    run_all(shop.app)
    for job in shop.app.jobs.list():
        shop.app.jobs.delete(job.id)
    cases: list[tuple[str, Any]] = [
        (
            "node 'b'.after: 'pay' is a node of another flow",
            lambda f, p: f.add(step.job("b"), name="b", after=[stranger]),
        ),
        (
            "node 'b'.number: is the result of a node of another",
            lambda f, p: f.add(double.job(stranger.result), name="b"),
        ),
        ("node 'b'.after: 'c' is no node that was added", lambda f, p: f.add(step.job("b"), name="b", after=["c"])),
        ("node 'pay': exists already", lambda f, p: f.add(step.job("b"), name="pay")),
        (
            "node 'b'.when: must be completed, dead or ended",
            lambda f, p: f.add(step.job("b"), name="b", after=[p], when="x"),
        ),
        ("node 'b'.when: dead has no effect without after", lambda f, p: f.add(step.job("b"), name="b", when="dead")),
        ("node 'b'.after: must be nodes", lambda f, p: f.add(step.job("b"), name="b", after=[7])),
        ("node 'b': must be a job made with", lambda f, p: f.add("b", name="b")),
        ("node 'b'.name: is PREVIOUS", lambda f, p: f.add(step.job(PREVIOUS), name="b")),
        ("node 'b'.id: cannot be given", lambda f, p: f.add(step.using(id=stranger.id).job("b"), name="b")),
        ("node 'b'.parent: cannot be given", lambda f, p: f.add(step.using(parent=stranger.id).job("b"), name="b")),
        (
            "node 'b'.name: takes the result of 'pay', which cannot",
            lambda f, p: f.add(step.job(p.result), name="b", after=[p], when="dead"),
        ),
        ("node 'b'.over: must be node.result", lambda f, p: f.map(double, over=[1, 2], name="b")),
        ("node 'b'.number: cannot be given", lambda f, p: f.map(double, over=p.result, name="b", number=5)),
        ("node 'b'.connection: cannot be", lambda f, p: f.add(step.using(connection=object()).job("b"), name="b")),
        (
            "node 'b'.connection: cannot be",
            lambda f, p: f.map(double.using(connection=object()), over=p.result, name="b"),
        ),
        ("node 'b#1': may not end with # and a number", lambda f, p: f.add(step.job("b"), name="b#1")),
        ("node 'b'.after: cannot all be met", lambda f, p: f.add(step.job("b"), name="b", after=["pay", "refund"])),
    ]
    for match, add in cases:
        refused(shop, match, add=add)


def test_a_result_needs_its_node_to_complete_even_through_others(shop: Shop) -> None:
    def add(flow: Any, pay: Any) -> None:
        ship = flow.add(shop.step.job("ship"), after=[pay])
        flow.add(shop.step.job(ship.result), name="b", after=["refund"])

    refused(shop, "node 'b'.name: takes the result of 'step#2', which cannot be there", add=add)


def test_limits_are_checked_before_anything_is_stored(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "MAX_NODES", 3)

    def too_many(flow: Any, _: Any) -> None:
        flow.add(shop.step.job("a"))
        flow.add(shop.step.job("b"), name="b")

    refused(shop, "node 'b': is one too many: the limit is 3 nodes", add=too_many)
    monkeypatch.undo()
    monkeypatch.setattr(graph_module, "MAX_DATA_PARENTS", 1)
    refused(
        shop,
        "node 'b': takes the results of more than 1 nodes",
        add=lambda flow, pay: flow.add(shop.total.job(pay.result, flow.add(shop.double.job(1)).result), name="b"),
    )


def test_an_empty_flow_is_refused(shop: Shop) -> None:
    with pytest.raises(InvalidOption, match="has no nodes"), shop.app.flow():
        pass


def test_the_result_of_a_node_outside_of_its_flow_is_refused(shop: Shop) -> None:
    with shop.app.flow() as flow:
        one = flow.add(shop.double.job(1))
    with pytest.raises(InvalidInput, match="is the result of a node, which only jobs of the same flow can take"):
        shop.double.enqueue(one.result)
    with pytest.raises(InvalidInput, match="is a whole argument"):
        shop.add_up.job([one.result])


def test_a_stored_flow_takes_no_more_nodes(shop: Shop) -> None:
    with shop.app.flow() as flow:
        flow.add(shop.double.job(1))
    with pytest.raises(InvalidOption, match="is stored already"):
        flow.add(shop.double.job(2))


async def test_in_a_coroutine_a_flow_is_an_async_block(shop: Shop) -> None:
    with pytest.raises(UseAsync):
        shop.app.flow().__enter__()
    async with shop.app.flow("a") as flow:
        flow.add(shop.double.job(1))
    assert (await shop.app.flows.aget("a")).size == 1


def test_groups_and_graphs_are_listed_together(shop: Shop) -> None:
    order(shop)
    group([shop.double.job(1)], id="g").enqueue()
    assert {(flow.name, flow.kind) for flow in shop.app.flows.list()} == {("order", "graph"), ("g", "group")}
    tree = shop.app.flows.tree("g")
    assert [node.name for node in tree.nodes] == ["double#0"]


def test_a_graph_is_stored_whole_on_every_store(app: App) -> None:
    shop = Shop(app)
    for _ in range(2):
        with app.flow("order") as flow:
            pay = flow.add(shop.step.using(queue="money").job("pay"), name="pay")
            flow.add(shop.step.using(queue="goods").job(pay.result), name="ship")
            flow.add(shop.step.job("refund"), name="refund", after=[pay], when="dead")
            flow.add(shop.step.job("clean"), after=[pay, "refund"], when="ended")
    assert shop.statuses("order") == {"pay": "pending", "ship": "blocked", "refund": "blocked", "step#3": "blocked"}
    edges = {node.name: [(edge.node, edge.when) for edge in node.after] for node in app.flows.tree("order").nodes}
    assert edges["ship"] == [("pay", "completed")]
    assert edges["refund"] == [("pay", "dead")]
    assert sorted(edges["step#3"]) == [("pay", "ended"), ("refund", "ended")]
    flow_now = app.flows.cancel("order")
    assert (flow_now.status, flow_now.cancelled, flow_now.live) == (Status.CANCELLED, 3, 1)
    assert app.flows.retry("order").cancelled == 0
