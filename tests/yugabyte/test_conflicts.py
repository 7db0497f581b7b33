"""Serialization failures: every call is repeated, as a whole, and nothing is done twice or lost."""

import random
from collections import Counter
from typing import Any

import asyncpg
import pytest

from tests.support.every_verb import every_verb
from tests.support.seed import completed, enqueue, failed, open_lease, request, settle
from windlass.core.flow.queue import settings
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.observe.calls import measure_calls
from windlass.observe.figures import Figures
from windlass.store.contract import Store
from windlass.store.postgres.connection import access, repeated_reads
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import is_conflict, translate
from windlass.store.postgres.store import PostgresStore
from windlass.store.records import Settled

SHARE = 0.1
RESTART = "Restart read required at: { read: 1 local_limit: 2 }"


class Unlucky:
    """A server that refuses some statements and commits, as one does whose nodes write the same rows."""

    def __init__(self, patch: pytest.MonkeyPatch, share: float, most: int | None = None) -> None:
        self._random, self._share, self._most = random.Random(1), share, most
        self.statements = self.commits = 0
        for name in ("rows", "run"):
            patch.setattr(Session, name, self._refusing(getattr(Session, name)))
        patch.setattr(asyncpg.Connection, "execute", self._refusing_commits(asyncpg.Connection.execute))

    def _refusing(self, original: Any) -> Any:
        async def call(session: Session, *arguments: Any) -> Any:
            if self.statements != self._most and self._random.random() < self._share:
                self.statements += 1
                raise asyncpg.SerializationError(RESTART)
            return await original(session, *arguments)

        return call

    def _refusing_commits(self, original: Any) -> Any:
        async def call(connection: Any, query: str, *arguments: Any, **named: Any) -> Any:
            if query == "COMMIT" and self._most is None and self._random.random() < self._share:
                self.commits += 1
                await original(connection, "ROLLBACK")
                raise asyncpg.SerializationError("could not serialize access")
            return await original(connection, query, *arguments, **named)

        return call


@pytest.fixture
def unlucky(store: Store, monkeypatch: pytest.MonkeyPatch) -> Unlucky:
    """From here on, one statement and one commit in ten fails."""
    return Unlucky(monkeypatch, SHARE)


async def test_every_verb_is_repeated_until_it_is_done(store: Store, unlucky: Unlucky) -> None:
    await every_verb(store)
    assert unlucky.statements > 3
    assert unlucky.commits > 0
    assert isinstance(store, PostgresStore)
    assert store._server.conflicts.repeated + store._renewals.conflicts.repeated >= unlucky.statements


@pytest.mark.parametrize("limits", [{}, {"max_concurrency": 20}, {"rate_limit": "1000/s"}, {"fair": True}])
async def test_no_job_is_run_twice_or_lost_and_no_outcome_either(
    store: Store, unlucky: Unlucky, limits: dict[str, Any]
) -> None:
    await store.queues.declare({"default": settings(**limits)})
    await open_lease(store)
    ids = await enqueue(store, 60)
    ids += [
        each for n in range(30) for each in await enqueue(store, idempotency_key=f"k{n}", concurrency_key=f"c{n % 5}")
    ]
    runs: Counter[str] = Counter()
    while len(runs) < len(ids):
        await store.jobs.admit(100)
        jobs = await store.jobs.claim(request(limit=9))
        runs.update(job.id for job in jobs)
        assert set(await store.jobs.settle([completed(job) for job in jobs])) <= {Settled.SETTLED}
    assert set(runs) == set(ids)
    assert set(runs.values()) == {1}
    counts = (await store.operator.counts()).queues["default"]
    assert (counts[Status.COMPLETED], sum(counts.values())) == (len(ids), len(ids))
    assert unlucky.statements > 10


async def test_a_failure_is_counted_once_however_often_its_commit_was_refused(store: Store, unlucky: Unlucky) -> None:
    await open_lease(store)
    ids = await enqueue(store, 20, max_attempts=5)
    for job in await store.jobs.claim(request()):
        await settle(store, failed(job))
    jobs = [job for job in await store.operator.get(ids) if job is not None]
    assert {(job.failures, len(job.attempts)) for job in jobs} == {(1, 1)}


async def test_after_a_bounded_number_of_tries_the_call_fails_and_says_that_nothing_was_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MAX_TRIES", 3)
    refusing = Unlucky(monkeypatch, 1.0)
    with pytest.raises(StoreUnavailable, match="Restart read required") as raised:
        await enqueue(store)
    assert raised.value.maybe_done is False
    assert refusing.statements == 3


async def test_a_long_transaction_is_repeated_more_often_than_it_has_statements(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_reads, "MAX_PAUSE", 0.0)
    refusing = Unlucky(monkeypatch, 1.0, most=60)
    (id_,) = await enqueue(store)
    assert refusing.statements == 60
    assert await store.operator.get([id_]) != [None]


async def test_conflicts_are_a_metric(store: Store, unlucky: Unlucky) -> None:
    figures = Figures()
    measured = measure_calls(store, figures)
    for _ in range(30):
        await enqueue(measured)
    assert figures.read().totals["conflicts"] == unlucky.statements + unlucky.commits > 0


@pytest.mark.parametrize(
    "words",
    [
        RESTART,
        "Catalog Version Mismatch: A DDL occurred while processing this query. Try again.",
        "The catalog snapshot used for this transaction has been invalidated: expected: 2, got: 1: MISMATCHED_SCHEMA",
        "schema version mismatch for table 000033e8: expected 2, got 1",
    ],
)
def test_the_words_of_a_restart_are_a_conflict_whatever_its_code(words: str) -> None:
    assert is_conflict(asyncpg.InternalServerError(words))


def test_serialization_failures_and_deadlocks_are_conflicts_and_other_errors_are_not() -> None:
    assert is_conflict(asyncpg.SerializationError("x"))
    assert is_conflict(asyncpg.DeadlockDetectedError("x"))
    assert not is_conflict(asyncpg.InternalServerError("x"))


def test_an_internal_error_during_a_commit_leaves_the_outcome_unknown_in_the_profile() -> None:
    error = asyncpg.InternalServerError("Timed out: Write RPC")
    reported = [translate(error, "it", maybe_done=True, lost=lost) for lost in ((), ("XX",))]
    assert [getattr(each, "maybe_done", None) for each in reported] == [False, True]
