"""The crash test: it tells an idempotent handler from one that is not, and names the step."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass import App, Context, Dead
from windlass.testing import Effects, NotIdempotent, acrash_test, crash_test


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """A database of the program's own."""
    path = tmp_path / "bank.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE accounts (cents INTEGER); CREATE TABLE done (job TEXT PRIMARY KEY)")
    return path


def restart(bank: Path) -> None:
    with contextlib.closing(sqlite3.connect(bank)) as db, db:
        db.executescript("DELETE FROM done; DELETE FROM accounts; INSERT INTO accounts VALUES (0)")


def cents(bank: Path) -> int:
    with contextlib.closing(sqlite3.connect(bank)) as db:
        return int(db.execute("SELECT cents FROM accounts").fetchone()[0])


def test_a_handler_that_notes_its_job_in_the_same_transaction_is_safe_at_every_step(app: App, bank: Path) -> None:
    @app.task
    def pay_in(ctx: Context, amount: int) -> None:
        with contextlib.closing(sqlite3.connect(bank)) as db, db:
            if db.execute("INSERT OR IGNORE INTO done VALUES (?)", (ctx.job.id,)).rowcount:
                db.execute("UPDATE accounts SET cents = cents + ?", (amount,))

    report = crash_test(app, pay_in.job(5), check=lambda: cents(bank) == 5, reset=lambda: restart(bank))
    assert report.wrong == ()
    sources = [step.source for step in report.steps]
    assert sum("UPDATE accounts" in each for each in sources) == 1
    assert report.steps[-1].when == "after the handler, before its outcome is stored"


def test_a_handler_that_adds_twice_is_found_and_the_step_is_named(app: App, bank: Path) -> None:
    @app.task
    def pay_in(amount: int) -> None:
        with contextlib.closing(sqlite3.connect(bank)) as db:
            db.execute("UPDATE accounts SET cents = cents + ?", (amount,))
            db.commit()

    def check() -> None:
        assert cents(bank) == 5, f"{cents(bank)} cents"

    with pytest.raises(NotIdempotent) as caught:
        crash_test(app, pay_in.job(5), check=check, reset=lambda: restart(bank))
    report = caught.value.report
    right = [step.source for step in report.steps if step.problem is None]
    assert "db.commit()" in right, "killed before the commit, the change is undone, as after a real kill"
    assert {step.problem for step in report.wrong} == {"10 cents"}
    assert [step.when for step in report.wrong][-1] == "after the handler, before its outcome is stored"
    first, *lines = str(caught.value).splitlines()
    assert first.startswith("pay_in(amount=5) was killed at ")
    assert any("test_crash.py:" in line and "db.commit()" in line and line.endswith("right") for line in lines)
    assert any(line.endswith("WRONG  10 cents") for line in lines)


def test_it_is_killed_after_every_effect_also_in_a_loop(app: App) -> None:
    effects = Effects()

    @app.task(run_in="process")
    def notify() -> None:
        for number in range(5):
            effects("mail", number)

    with pytest.raises(NotIdempotent) as caught:
        crash_test(app, notify.job(), check=lambda: len(set(effects)) == len(effects), reset=effects.clear, visits=2)
    after = [step for step in caught.value.report.steps if step.when == "after the effect 'mail'"]
    assert [step.problem for step in after] == ["check() returned False"] * 2
    assert list(effects) == [("mail", number) for number in range(5)], "the last round kills nothing"


async def test_an_async_handler_is_killed_at_every_await(app: App) -> None:
    effects = Effects()

    async def charge() -> None:
        await asyncio.sleep(0)
        effects("charge")
        await asyncio.sleep(0)

    @app.task
    async def pay() -> None:
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        await charge()

    async def check() -> bool:
        await asyncio.sleep(0)
        return list(effects) == [("charge",)]

    with pytest.raises(NotIdempotent) as caught:
        await acrash_test(app, pay.job(), check=check, reset=effects.clear)
    steps = caught.value.report.steps
    awaits = [(step.source, step.problem is None) for step in steps if step.when == "while it awaits in"]
    assert awaits == [
        ("await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))", True),
        ("await asyncio.sleep(0)", True),
        ("await asyncio.sleep(0)", False),
    ]


def test_no_finally_runs_and_memory_is_lost_as_after_a_kill(app: App) -> None:
    effects = Effects()
    done: list[int] = []

    @app.task
    async def work() -> None:
        if done:
            effects("seen in memory")
        try:
            done.append(1)
            await asyncio.sleep(0)
        finally:
            effects("finally")

    with pytest.raises(NotIdempotent) as caught:
        crash_test(app, work.job(), check=lambda: list(effects) == [("finally",)], reset=effects.clear)
    wrong = caught.value.report.wrong
    assert [step.when for step in wrong] == ["after the effect 'finally'", wrong[-1].when]
    assert done == []


def test_a_retry_that_fails_is_a_wrong_state_too(app: App) -> None:
    effects = Effects()

    @app.task
    def once() -> None:
        if len(effects):
            raise Dead("there is one already")
        effects("made")

    with pytest.raises(NotIdempotent, match="the job is dead, there is one already"):
        crash_test(app, once.job(), check=lambda: True, reset=effects.clear)


def test_jobs_that_it_enqueues_run_too(app: App) -> None:
    effects = Effects()

    @app.task
    def child() -> None:
        effects("child")

    @app.task
    def parent(keyed: bool) -> None:
        made = child.using(idempotency_key="once", idempotency_window=3600) if keyed else child
        made.enqueue()

    def check() -> None:
        assert list(effects) == [("child",)]

    crash_test(app, parent.job(keyed=True), check=check, reset=effects.clear)
    with pytest.raises(NotIdempotent):
        crash_test(app, parent.job(keyed=False), check=check, reset=effects.clear)


def test_a_check_that_sees_nothing_without_a_kill_is_told_why(app: App) -> None:
    outbox: list[int] = []

    @app.task
    def work() -> None:
        outbox.append(1)

    with pytest.raises(AssertionError, match=r"even if nothing is killed.*\n.*a process of its own"):
        crash_test(app, work.job(), check=lambda: outbox == [1], reset=outbox.clear)


def test_the_apps_own_store_is_not_touched(real: App, tmp_path: Path) -> None:
    effects = Effects()

    @real.middleware
    def recorded(ctx: Context) -> Iterator[None]:
        effects("begun")
        yield

    @real.task
    def work() -> None: ...

    report = crash_test(real, work.job(), check=lambda: len(effects) in (1, 2), reset=effects.clear)
    assert "after the effect 'begun'" in [step.when for step in report.steps], "middleware is killed too"
    assert list(tmp_path.iterdir()) == []


def test_too_many_steps_and_a_check_without_an_answer_are_errors(app: App) -> None:
    @app.task
    def work() -> None:
        _ = 1
        _ = 2

    with pytest.raises(RuntimeError, match="more than 1 steps"):
        crash_test(app, work.job(), check=lambda: True, reset=lambda: None, limit=1)
    with pytest.raises(TypeError, match=r"must return True, False or None, or raise; not \[\]"):
        crash_test(app, work.job(), check=list, reset=lambda: None)


@pytest.mark.parametrize(
    ("error", "problem"), [(AssertionError(), "AssertionError"), (ValueError("\n"), "ValueError")]
)
def test_a_check_that_raises_without_a_message_is_reported(app: App, error: Exception, problem: str) -> None:
    @app.task
    def work() -> None: ...

    def check() -> None:
        raise error

    with pytest.raises(AssertionError, match=f"even if nothing is killed: {problem}\n"):
        crash_test(app, work.job(), check=check, reset=lambda: None)
