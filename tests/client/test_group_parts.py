"""A group as a link of a chain, a chain as a member of a group, and members whose key another job has."""

from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import PREVIOUS, App, Context, Dead, InvalidOption, JobCancelled, Results, Status, chain, group
from windlass.testing import run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


def test_a_group_in_a_chain_starts_after_the_link_before_and_passes_its_results_on(shop: Shop) -> None:
    handle = chain(shop.square.job(2), group([shop.square.job(PREVIOUS), shop.square.job(3)]), shop.total).enqueue()
    assert [shop.status(each.id) for each in handle.links] == [Status.PENDING, Status.BLOCKED, Status.BLOCKED]
    run_all(shop.app)
    assert handle.result(timeout=5) == 25
    assert shop.seen == [[16, 9]]


def test_a_group_with_then_passes_the_result_of_then_on(shop: Shop) -> None:
    inner = group([shop.square.job(PREVIOUS), shop.square.job(1)], then=shop.stream)
    handle = chain(shop.square.job(2), inner, shop.square).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 17 * 17


def test_a_group_begins_and_ends_a_chain(shop: Shop) -> None:
    first = chain(group([shop.square.job(n) for n in range(3)]), shop.stream).enqueue()
    last = chain(shop.square.job(1), group([shop.square.job(PREVIOUS)], then=shop.total)).enqueue()
    run_all(shop.app)
    assert (first.result(timeout=5), last.result(timeout=5)) == (5, 1)
    results: Any = chain(shop.square.job(1), group([shop.square.job(PREVIOUS)])).enqueue()
    run_all(shop.app)
    assert list(results.links[-1].result(timeout=5)) == [1]


def test_an_empty_group_in_a_chain_passes_no_results_on(shop: Shop) -> None:
    handle = chain(shop.square.job(2), group([]), shop.total).enqueue()
    first = chain(group([]), shop.total).enqueue()
    run_all(shop.app)
    assert (handle.result(timeout=5), first.result(timeout=5), shop.seen) == (0, 0, [[], []])


def test_a_dead_link_cancels_the_group_after_it_with_its_members(shop: Shop) -> None:
    handle = chain(shop.fail.job(), group([shop.square.job(n) for n in range(3)], always=shop.clean), shop.total)
    ran = handle.enqueue()
    run_all(shop.app)
    flow = shop.app.flows.get(ran.links[1])
    assert (flow.status, flow.cancelled) == (Status.CANCELLED, 3)
    with pytest.raises(JobCancelled):
        ran.result(timeout=5)
    shop.hopeless = False
    shop.app.jobs.retry(ran.links[0])
    run_all(shop.app)
    assert ran.result(timeout=5) == 5


def test_a_lost_group_cancels_the_rest_of_its_chain_and_a_retry_brings_it_back(shop: Shop) -> None:
    ran = chain(shop.square.job(1), group([shop.fail.job(), shop.square.job(2)]), shop.total).enqueue()
    run_all(shop.app)
    assert shop.status(ran.id) is Status.CANCELLED
    shop.hopeless = False
    shop.app.flows.retry(ran.links[1])
    run_all(shop.app)
    assert ran.result(timeout=5) == 4


def test_cancelling_a_chain_cancels_the_members_of_the_group_it_is_at(shop: Shop) -> None:
    jobs = [shop.square.using(delay=3600).job(n) for n in range(3)]
    ran = chain(shop.square.job(1), group(jobs), shop.total).enqueue()
    run_all(shop.app)
    assert ran.cancel("enough").status is Status.CANCELLED
    assert shop.app.flows.get(ran.links[1]).cancelled == 3
    assert shop.status(ran.id) is Status.CANCELLED


def test_a_chain_is_a_member_with_the_result_of_its_last_link(shop: Shop) -> None:
    jobs: list[Any] = [chain(shop.square.job(2), shop.square, shop.square), shop.square.job(5)]
    for _ in range(2):
        handle = group(jobs, then=shop.total, id="import-7").enqueue()
        run_all(shop.app)
    assert handle.result(timeout=5) == 281
    assert shop.seen == [[256, 25]]


def test_a_dead_link_of_a_member_loses_the_group_and_a_retry_of_the_group_runs_it_again(shop: Shop) -> None:
    jobs: list[Any] = [chain(shop.square.job(2), shop.fail.job(), shop.square), shop.square.job(5)]
    handle = group(jobs, then=shop.total).enqueue()
    run_all(shop.app)
    assert shop.app.flows.get(handle).status is Status.CANCELLED
    shop.hopeless = False
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert handle.result(timeout=5) == 25


def test_cancelling_a_group_cancels_the_chains_that_are_its_members(shop: Shop) -> None:
    jobs: list[Any] = [chain(shop.square.using(delay=3600).job(2), shop.square), shop.square.using(delay=3600).job(5)]
    handle = group(jobs, then=shop.total).enqueue()
    shop.app.flows.cancel(handle)
    totals = shop.app.stats.counts().totals
    assert (totals[Status.CANCELLED], totals[Status.SCHEDULED], totals[Status.BLOCKED]) == (6, 0, 0)


def test_a_link_of_a_member_adds_members_to_the_group(shop: Shop) -> None:
    @shop.app.task
    def add(ctx: Context, number: int) -> int:
        ctx.group.add(shop.square.job(number))
        return 0

    handle = group([chain(shop.square.job(2), add)], then=shop.stream_blocking).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 16


def test_groups_in_members_are_refused(shop: Shop) -> None:
    inner: Any = group([shop.square.job(1)])
    with pytest.raises(InvalidOption, match=r"jobs\[0\]: must be a job made with task.job\(...\), or a chain"):
        group([inner])
    with pytest.raises(InvalidOption, match="a chain with a group cannot be a member of a group"):
        group([chain(inner, shop.stream)])


def test_a_member_whose_key_another_job_has_counts_as_that_job(shop: Shop) -> None:
    held = shop.square.using(idempotency_key="user:7", delay=3600).enqueue(7)
    group([shop.square.job(1), shop.square.using(idempotency_key="user:7").job(9)], then=shop.total).enqueue()
    run_all(shop.app)
    assert shop.seen == []
    shop.app.jobs.run_now(held)
    run_all(shop.app)
    assert shop.seen == [[1, 49]]


def test_a_key_that_is_free_again_runs_nothing_when_the_group_is_enqueued_again(shop: Shop) -> None:
    def enqueue() -> Any:
        later = shop.square.using(delay=3600).job(1)  # the group is not over when it is enqueued again
        return group(
            [shop.square.using(idempotency_key="user:7").job(9), later], then=shop.total, id="import-7"
        ).enqueue()

    shop.square.using(idempotency_key="user:7").enqueue(7)
    enqueue()
    run_all(shop.app)
    before = shop.app.stats.counts().totals
    enqueue()
    assert shop.app.stats.counts().totals == before


def test_a_member_whose_key_a_job_has_that_is_over_already_counts_at_once(shop: Shop) -> None:
    keyed = shop.square.using(idempotency_key="user:7", idempotency_window=3600)
    keyed.enqueue(7)
    run_all(shop.app)
    handle = group([keyed.job(9)], then=shop.total).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 49


def test_two_members_with_one_key_are_one_job(shop: Shop) -> None:
    keyed = shop.square.using(idempotency_key="user:7")
    handle = group([keyed.job(3), keyed.job(4)], then=shop.total).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 18


def test_a_job_of_another_that_dies_loses_the_group_and_cancelling_the_group_leaves_it_alone(shop: Shop) -> None:
    held = shop.fail.using(idempotency_key="user:7", delay=3600).enqueue()
    handle = group([shop.fail.using(idempotency_key="user:7").job()], then=shop.total).enqueue()
    other = group([shop.fail.using(idempotency_key="user:7").job()], then=shop.total).enqueue()
    shop.app.flows.cancel(other)
    assert shop.status(held.id) is Status.SCHEDULED
    shop.app.jobs.run_now(held)
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert shop.status(handle.id) is Status.CANCELLED


def test_results_of_members_of_several_kinds_stay_in_order(shop: Shop) -> None:
    @shop.app.task
    def name(parts: Results[Any]) -> list[Any]:
        return list(parts)

    @shop.app.task
    def doom() -> None:
        raise Dead("hopeless")

    keyed = shop.square.using(idempotency_key="a").job(2)
    handle = group([chain(shop.square.job(1)), keyed, doom.job(), shop.square.job(3)], then=name, need=3).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == [1, 4, 9]
