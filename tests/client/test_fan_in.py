"""What fan-out and fan-in must not get wrong: each test states the rule, and runs on every store."""

import asyncio
from typing import Any

import pytest

from tests.client.test_groups import Shop
from tests.support.parts import in_part
from windlass import App, Context, Fixed, Results, Status, chain, group
from windlass.testing import run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


def live(app: App) -> int:
    """Jobs that have not ended."""
    totals = app.stats.counts().totals
    return sum(count for status, count in totals.items() if status not in ("completed", "dead", "cancelled"))


def run_and_look(app: App) -> None:
    """Run what is due, also what looks by itself within 30 s."""
    for _ in range(3):
        run_all(app)
        for job in app.jobs.list(status=["scheduled"]).items:
            if job.type.startswith("windlass."):
                app.jobs.run_now(job.id)
    run_all(app)


def test_a_member_that_an_operator_cancels_last_ends_the_group(shop: Shop) -> None:
    jobs = [shop.square.job(1), shop.square.using(delay=3600).job(2)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean).enqueue()
    run_all(shop.app)
    shop.app.jobs.cancel(handle.member(1), "not needed")
    for watcher in shop.app.jobs.list(status=["scheduled"]).items:
        shop.app.jobs.run_now(watcher.id)  # by itself it looks within 2 to 30 s
    run_all(shop.app)
    assert sorted(map(str, shop.seen)) == sorted(["clean", str(("alert", [(1, Status.CANCELLED)]))])
    assert (shop.status(handle.then.id if handle.then else ""), live(shop.app)) == (Status.CANCELLED, 0)


@pytest.mark.parametrize("name", ["fail", "stop"])
def test_no_job_waits_for_ever_behind_a_lost_member_deep_in_chains_and_groups(shop: Shop, name: str) -> None:
    lost = getattr(shop, name)
    inner = chain(shop.square.job(2), lost.job(), shop.square.job(3))
    chain(group([inner, shop.square.job(4)], always=shop.clean), shop.total).enqueue()
    run_all(shop.app)
    for each in shop.app.jobs.list(status=["scheduled"]).items:
        shop.app.jobs.run_now(each.id)
    run_all(shop.app)
    assert (shop.seen, live(shop.app)) == (["clean"], 0)


def test_in_a_chain_of_groups_each_member_and_each_link_runs_once(shop: Shop) -> None:
    ran: list[int] = []

    @shop.app.task
    def one(number: int) -> int:
        ran.append(number)
        return number

    @shop.app.task
    def between(parts: list[int]) -> int:
        ran.append(100 + sum(parts))
        return sum(parts)

    first = group([one.job(1), one.job(2)])
    chain(first, between, group([one.job(3), one.job(4)], then=shop.total), shop.sweep.job("end")).enqueue()
    run_all(shop.app)
    assert sorted(ran) == [1, 2, 3, 4, 103]
    assert shop.seen == [[3, 4], "end"]


def test_a_group_that_was_deleted_is_not_stored_again_and_leaves_nothing_that_waits(shop: Shop) -> None:
    made = [shop.square.job(1), shop.square.job(2)]
    handle = group(made, then=shop.total, id="import-7").enqueue()
    run_all(shop.app)
    assert handle.then is not None
    shop.app.jobs.delete(handle.then)
    shop.app.jobs.delete(handle.id)
    again = group(made, then=shop.total, id="import-7").enqueue()
    run_all(shop.app)
    assert (again.existing, shop.seen, live(shop.app)) == (True, [[1, 4]], 0)


def test_an_empty_group_in_a_graph_lets_what_is_below_it_run(shop: Shop) -> None:
    with shop.app.flow("order") as flow:
        before = flow.add(shop.sweep.job("before"), name="before")
        none = flow.add(group([], then=shop.total), name="none", after=[before])
        flow.add(shop.sweep.job("after"), name="after", after=[none])
    run_all(shop.app)
    assert shop.seen == ["before", [], "after"]
    assert shop.app.flows.get("order").status is Status.COMPLETED


def test_members_that_return_nothing_are_results_and_not_failures(shop: Shop) -> None:
    seen: list[Any] = []

    @shop.app.task
    def gather(parts: Results[None]) -> None:
        seen.append((list(parts), len(parts), parts.failures()))

    group([shop.sweep.job("a"), shop.sweep.job("b")], then=gather).enqueue()
    run_all(shop.app)
    assert seen == [([None, None], 2, [])]


def test_members_added_at_once_in_another_order_by_a_later_attempt_are_the_same(app: App) -> None:
    attempts: list[int] = []

    @app.task
    def leaf(number: int) -> int:
        return number

    @app.task(retry=Fixed(base=0, jitter=0))
    async def grow(ctx: Context) -> int:
        attempts.append(1)
        numbers = [1, 2, 3] if len(attempts) == 1 else [3, 1, 2]
        await asyncio.gather(*(ctx.group.add(leaf.job(number)) for number in numbers))
        if len(attempts) == 1:
            raise OSError("again")
        return 0

    @app.task
    def total(parts: list[int]) -> list[int]:
        return sorted(parts)

    handle = group([grow.job()], then=total).enqueue()
    run_all(app)
    assert len(attempts) == 2
    assert handle.result(timeout=5) == [0, 1, 2, 3]
    assert app.flows.get(handle).size == 4


def test_counts_of_a_group_stay_true_through_retries_of_its_members(shop: Shop) -> None:
    handle = group([shop.square.job(1), shop.fail.job(), shop.stop.job()], then=shop.total, need=1).enqueue()
    run_all(shop.app)
    for _ in range(3):
        for index in range(3):
            shop.app.jobs.retry(handle.member(index))
        run_all(shop.app)
        flow = shop.app.flows.get(handle)
        assert (flow.size, flow.completed, flow.dead, flow.cancelled, flow.live) == (3, 1, 1, 1, 0)
    assert shop.seen == [[1]]


def test_however_often_a_group_is_woken_its_callbacks_run_once(shop: Shop) -> None:
    jobs = [shop.square.using(queue=f"q{n}").job(n) for n in range(3)]
    handle = group(jobs, then=shop.total, always=shop.clean).enqueue()
    for n in range(3):
        shop.app.jobs.run_now(handle.id)
        run_all(shop.app, queues=["default", f"q{n}"])
    for _ in range(2):
        run_all(shop.app)
        shop.app.jobs.retry(handle.id)
    run_all(shop.app)
    assert sorted(map(str, shop.seen)) == sorted(["clean", str([0, 1, 4])])


@pytest.mark.parametrize("width", in_part([1_100, 5_000], [1_100]))
def test_a_map_of_thousands_of_elements_gives_all_results_in_order(app: App, width: int) -> None:
    @app.task
    def numbers() -> list[int]:
        return list(range(width))

    @app.task
    def double(number: int) -> int:
        return 2 * number

    seen: list[list[int]] = []

    @app.task
    def gather(parts: Results[int]) -> None:
        seen.append(list(parts))

    with app.flow("wide") as flow:
        doubled = flow.map(double, over=flow.add(numbers.job()).result)
        flow.add(gather.job(doubled.results))
    run_all(app)
    assert seen == [[2 * number for number in range(width)]]


def test_a_cancelled_chain_stops_the_callback_of_the_group_that_it_is_at(shop: Shop) -> None:
    members = group([shop.square.job(1)], then=shop.total.using(delay=3600).link())
    handle = chain(shop.sweep.job("first"), members, shop.sweep.job("last")).enqueue()
    run_all(shop.app)
    for watcher in shop.app.jobs.list(type="windlass.group", status=["scheduled"]).items:
        shop.app.jobs.run_now(watcher.id)
    run_all(shop.app)
    cancelled = handle.cancel("no longer wanted")
    assert (cancelled.type, cancelled.status, live(shop.app)) == ("total", Status.CANCELLED, 0)


def test_a_skipped_group_runs_neither_on_dead_nor_always(shop: Shop) -> None:
    refunds = group([shop.square.job(2)], then=shop.total, on_dead=shop.alert, always=shop.clean)
    with shop.app.flow("order") as flow:
        pay = flow.add(shop.sweep.job("pay"), name="pay")
        flow.add(refunds, name="refunds", after=[pay], when="dead")
    run_and_look(shop.app)
    assert shop.seen == ["pay"]
    assert (shop.app.flows.get("order").status, live(shop.app)) == (Status.COMPLETED, 0)


def test_always_of_an_empty_group_in_a_chain_waits_for_the_link_before(shop: Shop) -> None:
    chain(shop.sweep.using(delay=3600).job("first"), group([], always=shop.clean)).enqueue()
    run_and_look(shop.app)
    assert shop.seen == []
    (first,) = shop.app.jobs.list(type="sweep").items
    shop.app.jobs.run_now(first.id)
    run_and_look(shop.app)
    assert shop.seen == ["first", "clean"]
