"""A bulk of many kinds of jobs takes few round trips, however many they are."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.seed import new_job
from tests.support.stores import postgres_url, yugabyte_url
from windlass.core.jobs.job import NewJob
from windlass.store.open import open_store
from windlass.store.postgres.verbs.enqueue import MAX_KINDS, MIN_ALIKE

LARGE = MAX_KINDS + 2


def different(jobs: int) -> list[NewJob]:
    return [new_job(priority=n, fresh="here") for n in range(jobs)]


def with_dependents(jobs: int) -> list[NewJob]:
    return [
        job
        for first in different(jobs)
        for job in (first, new_job(parents=(first.id,), priority=first.priority, fresh="here"))
    ]


def with_large_kinds(jobs: int) -> list[NewJob]:
    """More kinds with a statement of their own than there may be, and others."""
    return [new_job(priority=n % LARGE, fresh="here") for n in range(LARGE * MIN_ALIKE)] + different(jobs)


@pytest.mark.parametrize("url", [postgres_url, yugabyte_url])
@pytest.mark.parametrize(
    ("bulk", "bound"),
    [(different, 5), (with_dependents, 7), (with_large_kinds, 5 + MAX_KINDS)],
    ids=["different", "with dependents", "with large kinds"],
)
async def test_round_trips_do_not_grow_with_the_kinds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: Callable[[Path], str],
    bulk: Callable[[int], list[NewJob]],
    bound: int,
) -> None:
    """BEGIN, queues, watermarks, jobs, a check of parents, dependencies, COMMIT; by kind it would be a hundred."""
    sent: Counter[str] = Counter()
    for verb in ("execute", "fetch"):
        plain = getattr(asyncpg.Connection, verb)

        async def counted(connection: Any, text: str, *values: Any, plain: Any = plain) -> Any:
            sent[text] += 1
            return await plain(connection, text, *values)

        monkeypatch.setattr(asyncpg.Connection, verb, counted)
    store = open_store(url(tmp_path))
    for kinds in (20, 100):
        jobs = bulk(kinds)
        await store.jobs.enqueue([new_job(fresh="here")])  # what only the first one sends
        sent.clear()
        assert [each.id for each in await store.jobs.enqueue(jobs)] == [job.id for job in jobs]
        assert sent.total() <= bound, sent
    await store.close()
