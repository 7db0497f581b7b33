"""Plans: what is looked at often is found by an index, in a plan that is made once and holds for any values."""

import re
from typing import Any

import pytest

from tests.support.seed import enqueue, put
from windlass.core.ids import new_id
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Statement, Texts
from windlass.store.postgres.connection.session import Session
from windlass.store.records import JobFilter
from windlass.store.sql import read_jobs

NAMED: dict[str, tuple[str, ...]] = {
    "counts": ("jobs_pending", "jobs_due", "claims_runner", "jobs_blocked"),
    "oldest": ("jobs_pending",),
    "unknown_types": ("jobs_pending",),
    "below_watermarks": ("jobs_pending",),
    "park": ("jobs_pending", "jobs_pkey"),
    "unpark": ("jobs_parked",),
    "workers": ("claims_runner",),
    "census_pending": ("jobs_pending",),
    "census_delayed": ("jobs_due",),
    "census_parked": ("jobs_parked",),
    "census_late": ("claims_runner",),
    "meters_between": ("meters_pkey",),
    "samples": ("samples_pkey",),
    "queue_depths": ("queue_depths_pkey",),
    "last_sampled": ("samples_pkey",),
    "first_sampled": ("samples_pkey",),
    "has_depths": ("queue_depths_pkey",),
    "prune_samples": ("samples_pkey",),
    "prune_queue_depths": ("queue_depths_pkey",),
    "sort_key": ("jobs_pkey",),
    "queue_position": ("jobs_pending", "jobs_tenant_queue", "jobs_waiting_for_key", "claims_runner", "jobs_key_slot"),
    "waiting_tenants": ("jobs_tenant_queue",),
    "longest_running": ("claims_runner",),
    "key_slot_holders": ("jobs_key_slot",),
}
LISTED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ("jobs_pkey", "history_day_00_pkey", "history_dead_pkey")),
    ({"status": (Status.DEAD,)}, ("history_dead_status_id_idx",)),
    ({"parent": new_id()}, ("jobs_parent", "history_day_00_parent_id_idx")),
    ({"type": "t", "status": (Status.PENDING,)}, ("jobs_pkey",)),
]


class Explaining:
    """A connection on which every statement is explained instead of executed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.prepare = session.prepare
        self.plans: list[str] = []

    async def rows(self, statement: Statement, values: Any) -> list[Any]:
        nulls = ", ".join(["NULL"] * len(statement.names))
        await self._session.script(f"PREPARE explained AS {statement.text}")
        try:
            call = f"explained({nulls})" if nulls else "explained"
            rows = await self._session.connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE {call}")
        finally:
            await self._session.script("DEALLOCATE explained")
        self.plans.append("\n".join(row[0] for row in rows))
        return []

    async def run(self, statement: Statement, values: Any) -> int:
        return len(await self.rows(statement, values))


@pytest.fixture
async def explaining(store: Store) -> Any:
    """A store with some jobs of each kind, whose statistics are known."""
    await enqueue(store, 300)
    for status in Status:
        await put(store, status)
    session = await connect(store.address, 10, pooled=None)
    await session.script("ANALYZE")
    yield Explaining(session)
    session.drop()


def check(plan: str, indexes: tuple[str, ...]) -> None:
    assert [index for index in indexes if not re.search(rf"\b{index}\b", plan)] == [], plan
    for table in ("jobs", "history", "history_day_00", "notes", "meters", "samples", "queue_depths"):
        assert not re.search(rf"Seq Scan on {table}\b", plan), plan


@pytest.mark.parametrize("name", NAMED)
async def test_a_statement_finds_what_it_looks_for_by_its_index(explaining: Explaining, name: str) -> None:
    await Db(explaining, Texts("windlass", None)).rows(name)
    check(explaining.plans[0], NAMED[name])


async def test_a_job_is_looked_up_by_its_id_in_every_partition(explaining: Explaining) -> None:
    await read_jobs.get(Db(explaining, Texts("windlass", None)), [new_id()])
    partitions = tuple(f"history_day_{day:02}_pkey" for day in range(32))
    check(explaining.plans[0], ("jobs_pkey", "notes_pkey", *partitions, "history_dead_pkey", "history_default_pkey"))


async def test_failures_are_found_newest_first(explaining: Explaining) -> None:
    await read_jobs.failures(Db(explaining, Texts("windlass", None)), 5)
    check(explaining.plans[0], ("jobs_failed", "history_dead_newest"))


async def test_ends_are_found_by_the_summaries_of_the_history(explaining: Explaining) -> None:
    session = explaining._session
    (ended,) = await session.connection.fetch("SELECT prosrc, proconfig FROM pg_proc WHERE proname = 'ended'")
    for setting in ended["proconfig"]:
        await session.script(f"SET {setting}")
    text = ended["prosrc"].partition("RETURN QUERY ")[2].partition(";")[0]
    for name, value in (("since", "1"), ("after", f"'{new_id()}'"), ("most", "5")):
        text = re.sub(rf"\b{name}\b", value, text)
    plan = "\n".join(row[0] for row in await session.connection.fetch(f"EXPLAIN (COSTS OFF) {text}"))
    check(plan, ("history_day_00_finished_at_idx", "history_default_finished_at_idx"))
    assert "Bitmap Index Scan on history_dead_" in plan, plan


@pytest.mark.parametrize(("wanted", "indexes"), LISTED, ids=lambda each: str(each)[:15])
async def test_a_page_walks_an_index(
    explaining: Explaining, wanted: dict[str, Any], indexes: tuple[str, ...]
) -> None:
    await read_jobs.list_jobs(Db(explaining, Texts("windlass", None)), JobFilter(**wanted), 5, new_id())
    for plan in explaining.plans:
        assert "->  Sort" not in plan, plan
    check("\n".join(explaining.plans), indexes)
