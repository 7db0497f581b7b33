"""group(...): members side by side, callbacks that run once, and what each end of a member means for them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.client.labour import Labour, raised
from windlass import (
    PREVIOUS,
    App,
    Cancel,
    ConfigError,
    Context,
    Dead,
    InvalidInput,
    InvalidOption,
    InvalidPayload,
    Job,
    JobCancelled,
    KeyConflict,
    Results,
    ResultUnavailable,
    Status,
    UseAsync,
    group,
)
from windlass.client.groups import group as group_module
from windlass.client.groups import members, plan, results
from windlass.client.tasks.task import Task, TaskJob
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, member_id
from windlass.core.ids import new_id
from windlass.testing import run_all

AnyTask = Task[Any, Any, Any]


class Shop:
    """An app whose tasks note what they got."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.seen: list[Any] = []
        self.hopeless = True
        seen = self.seen

        @app.task
        def square(number: int) -> int:
            return number * number

        @app.task
        def fail() -> int:
            if self.hopeless:
                raise Dead("hopeless")
            return 0

        @app.task
        def stop() -> int:
            raise Cancel("not needed")

        @app.task
        def total(parts: list[int]) -> int:
            seen.append(parts)
            return sum(parts)

        @app.task
        async def stream(parts: Results[int]) -> int:
            return sum([each async for each in parts])

        @app.task
        def stream_blocking(parts: Results[int]) -> int:
            return sum(parts)

        @app.task
        def alert(parts: Results[int]) -> int:
            seen.append(("alert", [(each.index, each.status) for each in parts.failures()]))
            return len(parts)

        @app.task
        def clean() -> None:
            seen.append("clean")

        @app.task
        def sweep(what: str) -> None:
            seen.append(what)

        self.square, self.fail, self.stop, self.total = square, fail, stop, total
        self.stream, self.stream_blocking, self.alert = stream, stream_blocking, alert
        self.clean, self.sweep = clean, sweep

    def status(self, id_: str) -> Status:
        return self.app.jobs.get(id_).status

    def find(self, handle: Any) -> Job:
        return self.app.jobs.get(handle.id)


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


@pytest.mark.parametrize("name", ["total", "stream", "stream_blocking"])
def test_then_gets_all_results_when_the_last_member_has_completed(shop: Shop, name: str) -> None:
    handle = group([shop.square.job(n) for n in range(5)], then=getattr(shop, name)).enqueue()
    assert shop.status(callback_id(handle.id, Role.THEN)) is Status.BLOCKED
    run_all(shop.app)
    assert handle.result(timeout=5) == 30
    assert handle.then is not None
    assert (shop.find(handle).status, shop.find(handle.then).attempt) == (Status.COMPLETED, 1)


def test_results_come_in_the_order_in_which_the_members_were_given(shop: Shop) -> None:
    first, rest = shop.square.using(priority=-1).job(1), shop.square.job(2)
    late = shop.square.using(priority=-5).job(0)
    group([late, first, rest], then=shop.total).enqueue()
    run_all(shop.app)
    assert shop.seen == [[0, 1, 4]]


def test_without_a_callback_the_handle_gives_the_results(shop: Shop) -> None:
    handle = group([shop.square.job(n) for n in range(3)]).enqueue()
    run_all(shop.app)
    assert list(handle.result(timeout=5)) == [0, 1, 4]
    assert len(handle.result()) == 3
    assert handle.member(2).result() == 4
    with pytest.raises(IndexError):
        handle.member(3)


def test_an_empty_group_runs_then_with_no_results(shop: Shop) -> None:
    handle = group([], then=shop.total, on_dead=shop.alert, always=shop.clean).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 0
    assert shop.seen == [[], "clean"] or shop.seen == ["clean", []]


@pytest.mark.parametrize("name", ["fail", "stop"])
def test_a_lost_member_cancels_then_and_runs_on_dead_and_always_once(shop: Shop, name: str) -> None:
    lost = getattr(shop, name).job()
    jobs = [shop.square.job(1), lost, shop.square.job(2)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean).enqueue()
    run_all(shop.app)
    ended = Status.DEAD if name == "fail" else Status.CANCELLED
    assert sorted(shop.seen, key=str) == [("alert", [(1, ended)]), "clean"]
    assert shop.find(handle).reason == f"its member {member_id(handle.id, 1)} is {ended} (index 1)"
    with pytest.raises(JobCancelled, match=f"it began with {name} {member_id(handle.id, 1)}"):
        handle.result(timeout=5)


def test_a_member_that_is_cancelled_by_hand_wakes_its_group_at_once(shop: Shop) -> None:
    later = shop.square.using(delay=3600)
    one, many = (group([later.job(1), later.job(2)], always=shop.clean).enqueue() for _ in range(2))
    shop.app.jobs.cancel(one.member(0))
    assert shop.find(one).status is Status.PENDING
    assert shop.find(many).status is Status.SCHEDULED
    shop.app.jobs.cancel_all(type=shop.square, status="scheduled")
    assert shop.find(many).status is Status.PENDING
    run_all(shop.app)
    assert shop.seen == ["clean", "clean"]


def test_on_dead_does_not_wait_for_the_other_members_and_always_does(shop: Shop) -> None:
    jobs = [shop.square.using(delay=3600).job(1), shop.fail.job()]
    handle = group(jobs, on_dead=shop.alert, always=shop.clean).enqueue()
    run_all(shop.app)
    assert shop.seen == [("alert", [(1, Status.DEAD)])]
    shop.app.jobs.run_now(handle.member(0))
    run_all(shop.app)
    assert shop.seen == [("alert", [(1, Status.DEAD)]), "clean"]


def test_on_dead_is_cancelled_when_all_members_have_completed(shop: Shop) -> None:
    handle = group([shop.square.job(1)], on_dead=shop.alert).enqueue()
    run_all(shop.app)
    assert shop.seen == []
    assert handle.on_dead is not None
    assert shop.find(handle.on_dead).status is Status.CANCELLED


def test_a_job_as_callback_has_its_own_arguments_and_options(shop: Shop) -> None:
    @shop.app.task
    def note(parts: list[int], where: str) -> str:
        return f"{parts} {where}"

    then = note.using(queue="reports", priority=7).job(PREVIOUS, "here")
    handle = group([shop.square.job(2)], then=then, always=shop.sweep.job("swept")).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == "[4] here"
    assert shop.seen == ["swept"]
    assert (shop.find(handle.then).queue, shop.find(handle.then).priority) == ("reports", 7)
    assert shop.find(handle).queue == "reports"


def test_members_in_many_queues_end_one_group(shop: Shop) -> None:
    jobs = [shop.square.using(queue=f"q{n % 4}").job(n) for n in range(12)]
    handle = group(jobs, then=shop.total).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == sum(n * n for n in range(12))


def test_a_group_of_many_pages_is_counted_to_its_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PAGE", 4)
    monkeypatch.setattr(results, "PAGE", 4)
    handle = group([shop.square.job(1) for _ in range(21)], then=shop.stream_blocking).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 21


def test_a_member_has_its_group_as_parent_and_waited_for_nothing(shop: Shop) -> None:
    @shop.app.task
    def look(ctx: Context) -> list[Any]:
        return [ctx.job.parent, ctx.job.flow, list(ctx.job.parents)]

    handle = group([look.job()], then=shop.clean.job()).enqueue()
    run_all(shop.app)
    assert handle.member(0).result() == [handle.id, handle.id, []]


def test_a_group_with_an_id_is_stored_once(shop: Shop) -> None:
    def make(count: int = 3) -> Any:
        return group([shop.square.job(n) for n in range(count)], then=shop.total, id="import-7").enqueue()

    first = make()
    again = make()
    assert (first.existing, again.existing, again.id) == (False, True, first.id)
    run_all(shop.app)
    assert make().result(timeout=5) == 5
    run_all(shop.app)
    assert shop.seen == [[0, 1, 4]]
    with pytest.raises(InvalidOption, match="id: there is a group 'import-7' with 3 members, not 4"):
        make(4)


def test_enqueueing_the_same_group_twice_adds_nothing(shop: Shop) -> None:
    made = group([shop.square.job(1)], then=shop.total)
    assert made.enqueue().id == made.enqueue().id
    run_all(shop.app)
    assert shop.seen == [[1]]


def test_members_that_were_deleted_count_as_they_ended(shop: Shop) -> None:
    handle = group([shop.square.job(1), shop.square.using(delay=3600).job(2)], then=shop.clean.job()).enqueue()
    run_all(shop.app)
    shop.app.jobs.delete(handle.member(0))
    shop.app.jobs.run_now(handle.member(1))
    run_all(shop.app)
    assert shop.find(handle).status is Status.COMPLETED
    assert shop.seen == ["clean"]
    with pytest.raises(ResultUnavailable, match="not kept"):
        list(handle_results(shop, handle.id, 2))


def handle_results(shop: Shop, group_id: str, size: int) -> Results[int]:
    return Results(shop.app, group_id, size)


def test_a_dead_member_that_was_deleted_still_counts(shop: Shop) -> None:
    handle = group([shop.fail.job(), shop.square.using(delay=3600).job(2)], then=shop.total).enqueue()
    shop.app._portal().run(end_unseen(shop))
    shop.app.jobs.delete(handle.member(0))
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert shop.find(handle).status is Status.CANCELLED
    assert "is not kept any more (index 0)" in (shop.find(handle).reason or "")


async def end_unseen(shop: Shop) -> None:
    """The member that is due dies, and its runner is killed before it can wake the group."""
    await Labour(shop.app).aend(raised(Dead("hopeless")))


def test_a_group_that_no_runner_woke_looks_by_itself(shop: Shop) -> None:
    handle = group([shop.fail.job()], then=shop.total, on_dead=shop.alert).enqueue()
    shop.app._portal().run(end_unseen(shop))
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert shop.seen == [("alert", [(0, Status.DEAD)])]


def test_a_look_at_live_members_changes_nothing_and_keeps_what_it_counted(shop: Shop) -> None:
    jobs = [shop.square.job(1), shop.square.job(2), shop.square.using(delay=3600).job(3)]
    handle = group(jobs, then=shop.total).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    found = shop.find(handle)
    assert found.status is Status.SCHEDULED
    assert found.snoozes >= 1
    assert found.progress is not None
    assert (found.progress.done, found.progress.total) == (2, 3)


def test_a_group_that_is_completed_and_retried_runs_then_no_second_time(shop: Shop) -> None:
    handle = group([shop.square.job(1)], then=shop.total).enqueue()
    run_all(shop.app)
    shop.app.jobs.retry(handle.member(0))
    shop.app.jobs.retry(handle.id)
    run_all(shop.app)
    assert shop.seen == [[1]]


def test_a_key_that_another_job_has_refuses_the_whole_group(shop: Shop) -> None:
    held = shop.square.using(idempotency_key="user:7").enqueue(7)
    before = shop.app.stats.counts().totals
    strict = shop.square.using(idempotency_key="user:7", on_conflict="raise").job(7)
    with pytest.raises(KeyConflict, match=held.id):
        group([shop.square.job(1), strict]).enqueue()
    assert shop.app.stats.counts().totals == before


def test_results_that_are_too_large_for_a_list_say_so(shop: Shop) -> None:
    @shop.app.task
    def large() -> str:
        return "x" * 40_000

    @shop.app.task
    def join(parts: list[str]) -> int:
        return len(parts)

    handle = group([large.job(), large.job()], then=join).enqueue()
    run_all(shop.app)
    assert shop.find(handle).status is Status.DEAD
    assert "let the callback take Results[T]" in (shop.find(handle).reason or "")


def test_results_cannot_be_iterated_blocking_on_a_loop(shop: Shop) -> None:
    found = handle_results(shop, group([shop.square.job(1)]).id, 1)

    async def wrong() -> None:
        list(found)

    with pytest.raises(UseAsync):
        asyncio.run(wrong())


def wrong_groups(shop: Shop) -> dict[str, Callable[[], Any]]:
    @shop.app.task
    def takes_text(parts: str) -> None: ...

    square: AnyTask = shop.square
    bare: Any = shop.square
    return {
        r"jobs\[1\]: must be a job made with task.job": lambda: group([square.job(1), bare]),
        r"jobs: is empty, and there is no callback": lambda: group([]).enqueue(),
        r"jobs: must be an iterable of jobs": lambda: group(bare),
        r"jobs\[0\].id: cannot be given": lambda: group([square.using(id=new_id()).job(1)]),
        r"jobs\[0\].parent: cannot be given": lambda: group([square.using(parent=new_id()).job(1)]),
        r"number: is PREVIOUS": lambda: group([square.job(PREVIOUS)]).enqueue(),
        r"jobs\[0\].on_conflict: cannot be replace": lambda: group(
            [square.using(idempotency_key="k", on_conflict="replace").job(1)]
        ),
        r"then: must be a task, or a job": lambda: group([square.job(1)], then=lambda: None),  # type: ignore[call-overload]
        r"then: takes_text must take the results as parts: Results\[T\] or list\[T\]": lambda: group(
            [square.job(1)], then=takes_text
        ),
        r"on_dead: total must take the results as parts: Results\[T\]": lambda: group(
            [square.job(1)], on_dead=shop.total
        ),
        r"id: must be 1 to 200 bytes": lambda: group([square.job(1)], id="x" * 201),
        r"id: must be a string": lambda: group([square.job(1)], id=7),  # type: ignore[call-overload]
    }


def test_what_cannot_work_is_refused_with_the_field(shop: Shop) -> None:
    for reported, make in wrong_groups(shop).items():
        with pytest.raises((InvalidInput, InvalidPayload), match=reported):
            make()
    assert sum(shop.app.stats.counts().totals.values()) == 0


def test_limits_are_refused_before_anything_is_stored(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[TaskJob[int]] = [shop.square.job(n) for n in range(4)]
    monkeypatch.setattr(plan, "MAX_IN_LIST", 3)
    with pytest.raises(InvalidOption, match=r"then: takes a list, for at most 3 members"):
        group(jobs, then=shop.total)
    monkeypatch.setattr(group_module, "MAX_MEMBERS", 3)
    with pytest.raises(InvalidOption, match="jobs: has 4 members, the limit is 3"):
        group(jobs)


def test_the_type_of_groups_is_taken(app: App) -> None:
    with pytest.raises(ConfigError, match=r"two tasks have the type 'windlass\.group'"):
        app.task(type=GROUP_TYPE)(plain)


def plain() -> None:
    """A task."""
