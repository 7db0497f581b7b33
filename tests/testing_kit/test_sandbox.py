"""The sandbox, and apps made for tests: nothing gets out, nothing stays."""

import threading
from pathlib import Path

import pytest

from windlass import App, ConfigError
from windlass.testing import ManualClock, arun_all, assert_enqueued, enqueued, run_all, sandbox


def test_in_the_sandbox_jobs_run_and_the_apps_own_store_is_not_even_made(real: App, tmp_path: Path) -> None:
    @real.task
    def work(n: int) -> int:
        return n

    with sandbox(real) as box:
        job = work.enqueue(1)
        assert_enqueued(real, work, 1)
        assert len(box.run_all().completed) == 1
        assert job.result(timeout=1) == 1
        assert real.store == "sqlite:///:memory:"
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_is_there_afterwards_and_was_not_touched(real: App) -> None:
    @real.task
    def work(n: int) -> None: ...

    address = real.store
    work.enqueue(1)
    with sandbox(real):
        assert enqueued(real) == []
        work.enqueue(2)
        run_all(real)
    assert real.store == address
    assert [(job.payload, job.status) for job in real.jobs.list().items] == [({"n": 1}, "pending")]
    with pytest.raises(ConfigError, match="is not under test"):
        _ = real.clock


def test_each_sandbox_is_empty(real: App) -> None:
    @real.task
    def work() -> None: ...

    for _ in range(2):
        with sandbox(real):
            assert enqueued(real) == []
            work.enqueue()


def test_a_sandbox_in_a_sandbox_gives_way_to_the_outer_one(real: App) -> None:
    @real.task
    def work(n: int) -> None: ...

    with sandbox(real):
        work.enqueue(1)
        with sandbox(real):
            work.enqueue(2)
            assert_enqueued(real, work, 2, count=1)
        assert [job.payload["n"] for job in enqueued(real)] == [1]


def test_a_test_that_fails_leaves_the_sandbox_too(real: App) -> None:
    address = real.store
    with pytest.raises(ZeroDivisionError), sandbox(real):
        _ = 1 / 0
    assert real.store == address


def test_declarations_of_the_code_hold_in_every_sandbox(real: App) -> None:
    real.queue("mail", max_attempts=7)
    for _ in range(2):
        with sandbox(real):
            assert real.queues.get("mail").rules.max_attempts == 7


def test_the_clock_can_be_given(real: App) -> None:
    clock = ManualClock()
    with sandbox(real, clock) as box:
        assert box.clock is real.clock is clock


async def test_it_can_be_left_on_a_running_loop(real: App) -> None:
    @real.task
    async def work() -> None: ...

    with sandbox(real) as box:
        await work.aenqueue()
        assert len((await box.arun_all()).completed) == 1
        await work.aenqueue()
        assert len((await arun_all(real)).completed) == 1


def test_no_thread_of_a_sandbox_outlives_it(real: App) -> None:
    @real.task
    def work() -> None: ...

    before = db_threads()
    for _ in range(5):
        with sandbox(real) as box:
            work.enqueue()
            box.run_all()
            assert len(db_threads()) == len(before) + 1
    assert db_threads() == before


def db_threads() -> list[threading.Thread]:
    """The threads of stores that are open in this process."""
    return [each for each in threading.enumerate() if each.name.startswith(("windlass-writer", "windlass-reader"))]


def test_apps_made_for_tests_share_nothing() -> None:
    first, second = App.testing(), App.testing()

    @first.task
    def work() -> None: ...

    work.enqueue()
    assert len(first.jobs.list().items) == 1
    assert len(second.jobs.list().items) == 0
    assert first.clock is not second.clock
    first.close()
    second.close()


def test_an_app_made_for_tests_reads_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_STORE", "nonsense://")
    app = App.testing()
    assert app.stats.counts().totals["pending"] == 0
    assert repr(app) == "App('sqlite:///:memory:', 0 tasks)"
    app.close()
