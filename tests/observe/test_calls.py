"""One decorator round the contract: calls are timed, and what they did is counted, on every store."""

from typing import Any, cast

import msgspec
import pytest

from tests.services.parts import claimed
from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, enqueue, enqueue_one, new_job, open_lease, requeued, settle
from tests.support.timing import moment, said
from windlass import App
from windlass.client.groups.ends import GroupEnds
from windlass.core.events import HintsUnavailable, LeaseExpired, StoreRecovered
from windlass.core.graphs.ids import FLOW_TYPE
from windlass.core.groups.ids import GROUP_TYPE, Role, new_group_id, watcher_id
from windlass.core.moments import SECOND
from windlass.core.schedules.firing import firing
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.observe import process
from windlass.observe.calls import count_events, measure_calls, verb_name
from windlass.observe.families import process_families
from windlass.observe.figures import Figures
from windlass.store.contract import Store


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
def measured(store: Store, figures: Figures) -> Store:
    return measure_calls(store, figures)


def test_without_figures_nothing_is_wrapped(store: Store) -> None:
    assert measure_calls(store, None) is store


def test_a_measured_store_is_not_wrapped_again(measured: Store) -> None:
    assert measure_calls(measured, Figures()) is measured


async def test_only_new_jobs_count_as_enqueued(measured: Store, figures: Figures) -> None:
    await enqueue(measured, 3, queue="mail", type="welcome")
    await measured.jobs.enqueue([new_job(idempotency_key="k"), new_job(idempotency_key="l"), new_job()])
    await enqueue_one(measured, idempotency_key="k")
    read = figures.read()
    assert read.jobs["mail", "welcome"].counters["enqueued"] == 3
    assert read.jobs["default", "t"].counters["enqueued"] == 3
    assert read.calls["enqueue"].times.count == 3


async def test_jobs_of_schedules_count_as_enqueued(measured: Store, figures: Figures) -> None:
    await measured.schedules.declare({"s": said({"queue": "late"}, every=3600)})
    (schedule,) = await measured.schedules.list()
    await measured.schedules.fire([firing(schedule, moment(schedule))])
    await measured.schedules.fire([firing(schedule, moment(schedule))])
    assert sum(each.counters["enqueued"] for each in figures.read().jobs.values()) == 1


async def test_stale_and_requeued_settlements_count_by_queue(measured: Store, figures: Figures) -> None:
    runner = await open_lease(measured)
    await enqueue(measured, 2)
    first, second = await claim_one(measured, runner), await claim_one(measured, runner)
    await settle(measured, requeued(first))
    await measured.jobs.settle([completed(first), completed(second)])
    counters = figures.read().jobs["default", ""].counters
    assert (counters["requeued"], counters["stale"]) == (1, 1)


async def test_jobs_of_a_lost_runner_count_as_rescued(measured: Store, figures: Figures, clock: ManualClock) -> None:
    runner = await open_lease(measured)
    await enqueue(measured, 1, type="long")
    await claim_one(measured, runner, types=("long",))
    await measured.leases.renew("other", [], SECOND)
    for _ in range(40):
        clock.advance(10 * SECOND)
        await measured.leases.renew("other", [], SECOND)
        await measured.leases.rescue(10)
    assert figures.read().jobs["default", "long"].counters["rescued"] == 1


async def test_a_call_that_fails_counts_as_an_error_and_raises_what_it_raised(
    measured: Store, figures: Figures
) -> None:
    with pytest.raises(LeaseLost):
        await claim_one(measured, "nobody")
    call = figures.read().calls["claim"]
    assert (call.errors, call.times.count) == (1, 1)


async def test_a_store_with_another_time_limit_is_measured_too(measured: Store, figures: Figures) -> None:
    await measured.with_timeout(5).operator.counts()
    assert figures.read().calls["counts"].times.count == 1


def test_a_verb_that_several_roles_have_is_named_after_its_role() -> None:
    assert [verb_name("jobs", "claim"), verb_name("queues", "list")] == ["claim", "queues_list"]


def test_lost_leases_and_hints_are_counted_where_they_are_emitted(figures: Figures) -> None:
    seen: list[object] = []
    emit = count_events(seen.append, figures)
    for event in (LeaseExpired(runner="r"), HintsUnavailable(why="x"), LeaseExpired(runner="r")):
        emit(event)
    emit(StoreRecovered(doing="x"))
    assert {name: total for name, total in figures.read().totals.items() if total} == {
        "leases_lost": 2,
        "hints_lost": 1,
    }
    assert len(seen) == 4


def test_ends_of_flows_are_counted_by_status_and_those_of_other_watchers_are_not(figures: Figures) -> None:
    ends = GroupEnds(cast(Any, None), count_events(lambda event: None, figures))
    group, graph = new_group_id(), new_group_id()
    watcher = claimed(id=watcher_id(group, Role.ON_DEAD), type=GROUP_TYPE)
    for job, status in (
        (claimed(id=group, type=GROUP_TYPE), Status.COMPLETED),
        (claimed(id=graph, type=FLOW_TYPE), Status.CANCELLED),
        (watcher, Status.COMPLETED),
        (claimed(id=new_group_id(), type="t"), Status.DEAD),
    ):
        ends.note([(msgspec.structs.replace(job, flow=group), status)])
    (family,) = [each for each in process_families(figures.read()) if each.name == "windlass_flows_ended"]
    assert dict(family.values) == {("completed",): 1, ("dead",): 0, ("cancelled",): 1}


def test_an_app_that_is_open_counts_from_when_figures_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_wanted", False)
    monkeypatch.setattr(process, "_figures", {})
    app = App.testing()

    @app.task(type="t")
    def work() -> None: ...

    work.enqueue()
    figures = process.want_figures()
    work.enqueue()
    assert figures.read().jobs["default", "t"].counters["enqueued"] == 1
