"""Groups and maps within a graph: skipped, cancelled and retried with it, with all that belongs to them."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.client.test_graphs import Shop
from windlass import App, Context, Dead, InvalidOption, Status, chain, group
from windlass.client.graphs import map as map_module
from windlass.core.groups.ids import member_id
from windlass.testing import arun_all, run_all


@pytest.fixture
def shop() -> Shop:
    return Shop(App.testing())


def settled(shop: Shop) -> None:
    """Also what looks by itself has looked."""
    run_all(shop.app, until=60)


def test_a_flow_completes_although_a_group_or_a_map_in_it_is_skipped(shop: Shop) -> None:
    with shop.app.flow("order") as flow:
        pay = flow.add(shop.step.job("pay"), name="pay")
        flow.add(group([shop.step.job("a")], then=shop.stream), name="refunds", after=[pay], when="dead")
        plan = flow.add(shop.numbers.job(3), name="plan", after=[pay], when="dead")
        undone = flow.map(shop.double, over=plan.result, name="undone")
        flow.add(shop.add_up.job(undone.result), name="sum")
        flow.add(shop.step.job("alert"), name="alert", after=[undone], when="dead")
    settled(shop)
    skipped = dict.fromkeys(("refunds", "plan", "undone", "sum", "alert"), "skipped")
    assert shop.statuses("order") == {"pay": "completed", **skipped}
    found = shop.app.flows.get("order")
    assert (found.status, found.completed, found.skipped, found.cancelled) == (Status.COMPLETED, 1, 5, 0)


def test_a_cancelled_flow_runs_what_waits_for_ends_also_with_results_many_parents_or_members(shop: Shop) -> None:
    with shop.app.flow("order") as flow:
        count = flow.add(shop.double.job(1), name="count")
        slow = flow.add(shop.step.using(delay=3600).job("slow"), name="slow")
        many = [flow.add(shop.step.using(delay=3600).job(str(n)), name=f"many {n}") for n in range(101)]
        flow.add(shop.double.job(count.result), name="takes", after=[slow], when="ended")
        flow.add(shop.step.job("last"), name="last", after=many, when="ended")
        flow.add(group([shop.step.job("member")]), name="members", after=[slow], when="ended")
        flow.add(shop.double.job(count.result), name="needs", after=[slow])
    edges = {node.name: node.after for node in shop.app.flows.tree("order").nodes}
    assert [(edge.node, edge.when) for edge in edges["takes"]] == [("count", "completed"), ("slow", "ended")]
    run_all(shop.app)
    shop.app.flows.cancel("order")
    settled(shop)
    assert sorted(shop.ran) == ["last", "member"]
    ends = shop.statuses("order")
    assert [ends[name] for name in ("takes", "last", "members")] == ["completed"] * 3
    assert ends["needs"] == "cancelled"


def test_a_retry_of_a_flow_runs_chains_and_added_members_of_its_groups_again(shop: Shop) -> None:
    broken = True

    @shop.app.task
    def fragile(number: int) -> int:
        if broken:
            raise Dead("odd")
        return number

    @shop.app.task
    async def adder(ctx: Context) -> int:
        await ctx.group.add(fragile.job(7))
        return 1

    with shop.app.flow("order") as flow:
        chains = flow.add(group([chain(fragile.job(5), shop.double)]), name="chains")
        added = flow.add(group([adder.job()]), name="added")
        flow.add(shop.stream.job(chains.result), name="doubled")
        flow.add(shop.stream.job(added.result), name="all")
    settled(shop)
    assert shop.app.flows.get("order").status is Status.CANCELLED
    broken = False
    shop.app.flows.retry("order")
    settled(shop)
    assert flow.handle.node("doubled").result(timeout=0) == [10]
    assert flow.handle.node("all").result(timeout=0) == [1, 7]
    assert shop.app.flows.get("order").status is Status.COMPLETED


def test_a_retry_of_a_flow_gives_its_groups_their_time_again(shop: Shop) -> None:
    with shop.app.flow("order") as flow:
        flow.add(group([shop.step.using(delay=7200).job("late")], within="1h"), name="some")
    run_all(shop.app, until=3700)
    assert shop.app.flows.get("order").status is Status.CANCELLED
    shop.app.flows.retry("order")
    settled(shop)
    assert shop.app.flows.get("order").status is Status.COMPLETED
    assert shop.ran == ["late"]


def test_cancelling_a_flow_cancels_the_callback_that_a_group_in_it_waits_for(shop: Shop) -> None:
    late: Any = shop.step.using(delay=3600)
    with shop.app.flow("order") as flow:
        flow.add(group([shop.double.job(1)], then=late.job("late")), name="some")
        flow.add(shop.step.job("after"), after=["some"])
    run_all(shop.app)
    shop.app.flows.cancel("order")
    run_all(shop.app, until=3700)
    assert shop.ran == []
    shop.app.flows.retry("order")
    run_all(shop.app, until=3700)
    assert shop.ran == ["late", "after"]


def test_a_group_and_a_graph_cannot_have_the_same_name(shop: Shop) -> None:
    with shop.app.flow("order") as flow:
        flow.add(shop.double.job(1))
    for jobs in ([shop.double.job(2)], (shop.double.job(n) for n in range(2))):
        with pytest.raises(InvalidOption, match="there is a flow 'order', which is no group"):
            group(jobs, then=shop.stream, id="order").enqueue()
    with (
        pytest.raises(InvalidOption, match="there is a flow 'order', which is no group"),
        shop.app.group("order") as g,
    ):
        g.add(shop.double.job(2))
    assert len(shop.app.jobs.list(type="double")) == 1
    group([shop.double.job(2)], id="batch").enqueue()
    with (
        pytest.raises(InvalidOption, match="there is a flow 'batch' with other nodes"),
        shop.app.flow("batch") as flow,
    ):
        flow.add(shop.double.job(1))


def test_a_flow_is_found_by_a_name_that_looks_like_an_id(shop: Shop) -> None:
    name = "0190A5C0-7b3e-7c11-9d2a-2f6f0c1e8a55"
    with shop.app.flow(name) as flow:
        flow.add(shop.double.job(1))
    assert shop.app.flows.get(name).id == flow.id
    assert shop.app.flows.get(flow.id).name == name


async def test_a_map_that_is_cancelled_while_it_adds_members_leaves_none_to_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_module, "PORTION", 2)
    enqueue, portions, ran = shop.app._enqueue_jobs, 0, []

    @shop.app.task
    def noted(number: int) -> None:
        ran.append(number)

    async def watched(jobs: Any, *more: Any) -> Any:
        nonlocal portions
        portions += 1
        if portions == 2:
            await shop.app.flows.acancel("order")
        return await enqueue(jobs, *more)

    async with shop.app.flow("order") as flow:
        count = flow.add(shop.numbers.job(8))
        flow.map(noted, over=count.result)
    monkeypatch.setattr(shop.app, "_enqueue_jobs", watched)
    await arun_all(shop.app, until=60)
    assert portions == 2
    assert ran == []
    assert (await shop.app.flows.aget("order")).status is Status.CANCELLED


@pytest.mark.parametrize("known", [False, True])
def test_members_of_a_map_have_the_limits_and_times_of_its_task(shop: Shop, known: bool) -> None:
    due, over = datetime(2100, 1, 1, tzinfo=UTC), datetime(2100, 1, 2, tzinfo=UTC)
    double = shop.double.using(run_at=due, expires=over, concurrency_key="api", key_rate="4/h", rate_cost=2)
    with shop.app.flow("order") as flow:
        doubled = flow.map(double, over=flow.add(shop.numbers.job(1)).result)
    if not known:
        del shop.app._tasks["double"]
    run_all(shop.app)
    job = shop.app.jobs.get(member_id(doubled.members, 0))
    assert (job.run_at, job.expires_at, job.key_rate, job.rate_cost) == (due, over, "4/h", 2)


def test_the_handles_of_nodes_decode_results_by_the_annotations_of_their_tasks() -> None:
    app = App.testing()

    @app.task
    def day(number: int) -> date:
        return date(2026, 1, number)

    @app.task
    def days() -> list[int]:
        return [1, 2]

    @app.task
    def last(found: list[date]) -> date:
        return max(found)

    with app.flow("order") as flow:
        one = flow.add(day.job(3), name="one")
        each = flow.map(day, over=flow.add(days.job()).result, name="each")
        flow.add(group([day.job(1), day.job(2)], then=last), name="ends", after=[one, each])
    run_all(app, until=60)
    handle = flow.handle
    assert (handle.node(one).result(), handle.node("one").result()) == (date(2026, 1, 3), date(2026, 1, 3))
    assert handle.node("ends").result() == date(2026, 1, 2)
    assert app.jobs.get(handle.node(each)).status is Status.COMPLETED


def test_why_names_the_node_that_holds_a_flow_up_and_none_that_has_ended(app: App) -> None:
    @app.task
    def step() -> None: ...

    with app.flow("order") as flow:
        done = flow.add(step.job())
        lost = flow.add(step.using(delay=3600).job())
        late = flow.add(step.using(delay=3600).job())
        last = flow.add(step.job(), after=[done, flow.add(step.job(), after=[done, late])])
        end = flow.add(step.job(), after=[lost, late], when="ended")
    app.jobs.cancel(lost.id)
    run_all(app)
    for node in (last, end):
        (reason,) = [each for each in app.jobs.why(node.id).reasons if each.code == "awaits_parent"]
        assert f"Its flow is at step {late.id}, which is scheduled." in reason.text
        assert reason.do == f"to see what holds it up: windlass jobs why {late.id}"
