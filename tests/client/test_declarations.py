"""What the code declares is written with the first verb; what an operator changed stands beside it and wins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.labour import only_job
from tests.support.addresses import on_sqlite
from tests.support.seed import nothing
from windlass import App, Exponential, Fixed, Status
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import DAY


@pytest.fixture
def operator(address: str) -> Iterator[App]:
    """Another process."""
    made = App(address)
    yield made
    made.close()


def test_the_first_verb_writes_the_declarations(app: App, operator: App) -> None:
    app.queue("mail", max_attempts=7, retry=Fixed(base=5), retention={"completed": 86_400})
    assert operator.queues.list() == []
    app.jobs.list()
    (queue,) = operator.queues.list()
    assert queue.name == "mail"
    assert (queue.rules.max_attempts, queue.rules.retry) == (7, Fixed(base=5))
    assert queue.rules.retention[Status.COMPLETED] == DAY
    assert queue.changed == QueueSettings()


def test_a_declaration_after_the_first_verb_is_written_with_the_next(app: App, operator: App) -> None:
    app.jobs.list()
    app.queue("late", max_attempts=2)
    app.jobs.list()
    assert operator.queues.get("late").rules.max_attempts == 2


@on_sqlite
def test_what_is_known_is_not_written_again(app: App, path: Path, address: str) -> None:
    app.queue("mail", max_attempts=7)
    app.stats.counts()
    before = log_of(path).read_bytes()
    other = App(address)
    other.queue("mail", max_attempts=7)
    other.stats.counts()
    assert log_of(path).read_bytes() == before
    other.queue("more")
    other.stats.counts()
    assert log_of(path).read_bytes() != before
    other.close()


def log_of(path: Path) -> Path:
    """The write-ahead log: it changes with every commit that changes anything."""
    return path.with_name(path.name + "-wal")


def test_an_operators_change_wins_over_a_newer_declaration(app: App, operator: App, address: str) -> None:
    app.queue("default", max_attempts=7, retention={"dead": 60})
    app.jobs.list()
    operator.queues.set("default", max_attempts=2)
    newer = App(address)
    newer.queue("default", max_attempts=9, retention={"dead": 120})
    newer.task(type="t")(nothing).enqueue()
    assert only_job(newer).max_attempts == 2
    queue = operator.queues.get("default")
    assert (queue.declared.max_attempts, queue.changed.max_attempts, queue.rules.max_attempts) == (9, 2, 2)
    assert queue.rules.retention[Status.DEAD] == 120_000_000
    newer.close()


def test_undoing_the_change_brings_the_declaration_back(app: App, operator: App) -> None:
    app.queue("mail", max_attempts=7)
    app.jobs.list()
    operator.queues.set("mail", max_attempts=2)
    assert operator.queues.reset("mail").rules.max_attempts == 7


def test_the_budget_of_the_queue_is_that_of_its_policy_unless_said(app: App) -> None:
    app.queue("default", retry=Exponential(attempts=12))
    app.task(type="t")(nothing).enqueue()
    assert only_job(app).max_attempts == 12


def test_a_queue_of_the_app_that_is_not_used_yet_has_the_defaults(app: App) -> None:
    queue = app.queues.get("default")
    assert (queue.paused, queue.rules.max_attempts, queue.rules.retry) == (False, 3, Exponential())


async def test_declarations_can_be_written_by_themselves(app: App) -> None:
    app.queue("mail", max_attempts=7)
    await app.declare()
    assert [queue.name for queue in await app.queues.alist()] == ["mail"]
    await app.aclose()


def test_a_closed_app_opens_again_with_the_next_verb(app: App) -> None:
    app.queue("mail", max_attempts=7)
    app.jobs.list()
    app.close()
    assert app.queues.get("mail").rules.max_attempts == 7
