"""Groups with real workers: the callback runs once, in whichever process the last member ends, and through kills."""

import shutil
import signal
from typing import Any

import pytest

from tests.e2e.stage import SHOP, Stage, free_port
from tests.e2e.test_metrics import Scraper
from tests.support.addresses import on_every_store
from tests.support.parts import in_part
from tests.support.processes import until
from windlass import App, GroupHandle, Results, Status, group

MEMBERS = 60


@pytest.fixture
def grouped(stage: Stage) -> Stage:
    """A stage with the app of this file's tests."""
    shutil.copy(SHOP.with_name("grouped.py"), stage.folder / "grouped.py")
    return stage


def enqueue(stage: Stage, count: int = MEMBERS) -> GroupHandle[int]:
    """A group of so many squares, and their sum."""
    app = stage.app

    @app.task
    def square(number: int) -> int:
        return number

    @app.task
    async def total(parts: Results[int]) -> int:
        return len(parts)

    @app.task
    def clean() -> None: ...

    return group([square.job(n) for n in range(count)], then=total, always=clean).enqueue()


def check(stage: Stage, handle: GroupHandle[int], count: int = MEMBERS) -> None:
    """`then` and `always` have run, each once."""
    expected = sum(n * n for n in range(count))
    assert handle.result(timeout=60) == expected
    stage.until_finished()
    notes = (stage.folder / "notes").read_text().splitlines()
    assert sorted(notes) == ["clean", f"total {expected}"]


@on_every_store
def test_the_last_members_end_in_different_processes_and_the_callback_runs_once(grouped: Stage) -> None:
    for _ in range(2):
        grouped.worker("--processes", "2", "--concurrency", "4", app="grouped:app")
    handle = enqueue(grouped, 200)
    check(grouped, handle, 200)
    grouped.close_down()


@on_every_store
@pytest.mark.parametrize(
    "place",
    in_part(["before the wake", "after the wake", "before the look", "after the look"], ["before the wake"]),
)
def test_a_runner_that_is_killed_delays_the_callback_and_never_doubles_it(grouped: Stage, place: str) -> None:
    grouped.worker("--concurrency", "4", app="grouped:app", environment={"KILL_AT": place})
    handle = enqueue(grouped)
    check(grouped, handle)
    assert (grouped.folder / "killed").exists(), "nothing was killed: this test does not test what it says"
    grouped.close_down()


@on_every_store
@pytest.mark.parametrize("point", in_part(["settle.after_commit", "settle.before_commit"], ["settle.after_commit"]))
def test_a_runner_killed_at_the_commit_of_the_last_end_loses_no_callback(grouped: Stage, point: str) -> None:
    once = grouped.folder / "once"
    once.mkdir()
    environment = {"WINDLASS_FAILPOINTS": f"{point}=kill", "WINDLASS_FAILPOINTS_ONCE": str(once)}
    grouped.worker(app="grouped:app", environment=environment)
    handle = enqueue(grouped, 1)
    check(grouped, handle, 1)
    assert list(once.iterdir()), "nothing was killed: this test does not test what it says"
    grouped.close_down()


@on_every_store
@pytest.mark.parametrize("how", in_part(["killed", "exits"], ["killed"]))
def test_a_member_that_ends_its_process_every_time_is_lost_and_leaves_no_callback_waiting(
    grouped: Stage, how: str
) -> None:
    app = grouped.app
    square, total = tasks(grouped)

    @app.task(max_attempts=2)
    def crash(how: str) -> int:
        raise NotImplementedError

    @app.task
    def alert(parts: Results[int]) -> None: ...

    @app.task
    def clean() -> None: ...

    jobs = [square.job(2), crash.job(how)]
    lost = group(jobs, then=total, on_dead=alert, always=clean).enqueue()
    enough = group(jobs, then=total, on_dead=alert, need=1).enqueue()
    grouped.worker("--concurrency", "2", app="grouped:app")
    assert enough.result(timeout=60) == 4
    grouped.until_finished()
    assert sorted((grouped.folder / "notes").read_text().splitlines()) == ["alert", "clean", "total 4"]
    assert [app.flows.get(each).dead for each in (lost, enough)] == [1, 1]
    grouped.close_down()


@on_every_store
def test_a_producer_that_is_killed_goes_on_when_it_runs_again(grouped: Stage) -> None:
    grouped.worker("--concurrency", "4", app="grouped:app")
    first = grouped.processes.start("producer", "grouped.py", "1000", "550")
    assert first.wait() == -signal.SIGKILL
    assert grouped.app.flows.get("import-7").sealed is False
    again = grouped.processes.start("producer", "grouped.py", "1000", "550")
    assert again.wait() == 0
    grouped.until_finished()
    assert (grouped.folder / "notes").read_text().splitlines() == [f"total {sum(n * n for n in range(1000))}"]
    flow = grouped.app.flows.get("import-7")
    assert (flow.size, flow.completed, flow.status) == (1000, 1000, Status.COMPLETED)
    grouped.close_down()


@on_every_store
def test_groups_that_are_sealed_while_their_last_member_ends_end_once(grouped: Stage) -> None:
    grouped.worker("--processes", "2", "--concurrency", "4", app="grouped:app")
    square, total = tasks(grouped)
    handles = []
    for number in range(30):
        with grouped.app.group(then=total) as opened:
            last = opened.add(square.job(number))
            if number % 3:
                last.result(timeout=60)
        handles.append(opened.handle)
    assert [handle.result(timeout=60) for handle in handles] == [n * n for n in range(30)]
    notes = (grouped.folder / "notes").read_text().splitlines()
    assert sorted(notes) == sorted(f"total {n * n}" for n in range(30))
    grouped.close_down()


LAST = 600
"""Members that are live when the group is cancelled, however fast the others were. Two runners hold at most 408 of
them: 4 in slots each, and 50 ms of work of 4 slots in which a member takes a millisecond."""


@on_every_store
@pytest.mark.parametrize("count", in_part([2_000, 100_000], [2_000]))
def test_members_are_cancelled_while_others_are_claimed_and_each_ends_once(grouped: Stage, count: int) -> None:
    grouped.worker("--processes", "2", "--concurrency", "4", app="grouped:app")
    app = grouped.app

    @app.task
    def slow(number: int) -> int:
        return number

    @app.task
    def clean() -> None: ...

    @app.task
    def alert(parts: Results[int]) -> None: ...

    jobs = (slow.job(number if number < count - LAST else -number) for number in range(count))
    handle = group(jobs, then=clean, on_dead=alert, always=clean).enqueue()
    handle.member(0).result(timeout=60)
    app.flows.cancel(handle, "enough")
    (grouped.folder / "cancelled").touch()
    grouped.until_finished()
    flow = app.flows.get(handle)
    assert flow.completed + flow.cancelled == count
    assert flow.cancelled > 0
    assert (flow.status, flow.live) == (Status.CANCELLED, 0)
    assert (grouped.folder / "notes").read_text().splitlines() == ["clean"]
    grouped.close_down()


def tasks(stage: Stage) -> Any:
    """The tasks of the app of this file's tests, for its producer."""
    app = stage.app

    @app.task
    def square(number: int) -> int:
        return number

    @app.task
    async def total(parts: Results[int]) -> int:
        return len(parts)

    return square, total


@on_every_store
def test_the_group_is_counted_and_listed_and_shown_by_commands(grouped: Stage) -> None:
    port = free_port()
    grouped.worker("--health", f"127.0.0.1:{port}", app="grouped:app")
    handle = enqueue(grouped, 3)
    check(grouped, handle, 3)
    scraper = Scraper(port)
    until(lambda: scraper.value("windlass_flows_ended_total", status="completed") == 1, "its end is counted")
    assert handle.id in grouped.command("flows", "list", "--store", grouped.url)
    shown = grouped.command("flows", "show", handle.id, "--store", grouped.url)
    assert f"flow {handle.id} is completed" in shown
    assert "3 members: 3 completed" in shown
    assert "then     total" in shown
    grouped.close_down()


def test_an_app_is_not_changed_by_the_type_of_groups() -> None:
    app = App()
    assert app.registry.types == ()
    assert "0 tasks" in repr(app)
