"""Plans of what runs all day: by an index from its beginning to a limit, whatever the planner thinks it knows.

A plan is made once for each connection. It may have been made while the tables were empty and never analysed, and
must be as good with a backlog: so each is looked at before there are jobs, with them, and after ANALYZE.
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from windlass.store.contract import Store
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Texts
from windlass.store.postgres.connection.session import Session

BY_ID = ("jobs_pkey",)
BY_KEY = ("idempotency_keys_pkey",)
BY_NAME = ("schedules_pkey",)
USED: dict[str, tuple[str, ...]] = {
    "claim": ("claims_runner", "jobs_pending", "watermarks_pkey", "leases_pkey", "dirty_keys_queue"),
    "claimed": ("claims_runner",),
    "complete": (*BY_ID, *BY_KEY),
    "running": BY_ID,
    "finish": BY_ID,
    "requeue": BY_ID,
    "reschedule": BY_ID,
    "note_starts": BY_ID,
    "cancel": BY_ID,
    "enqueue": ("queues_pkey", "watermarks_pkey"),
    "enqueue_known": ("queues_pkey", "watermarks_pkey"),
    "enqueue_keyed": ("queues_pkey", "watermarks_pkey"),
    "enqueue_rows": ("queues_pkey", "watermarks_pkey"),
    "due_schedules": ("schedules_due",),
    "next_tick": ("schedules_due",),
    "named_schedules": BY_NAME,
    "lock_schedules": BY_NAME,
    "set_schedules": BY_NAME,
    "advance_schedules": BY_NAME,
    "drop_schedule": BY_NAME,
    "lock_queue_of_keys": ("queues_pkey",),
    "admit_waiting": (
        "dirty_keys_queue",
        "dirty_keys_key",
        "jobs_waiting_for_key",
        "jobs_key_slot",
        "watermarks_pkey",
    ),
    "queues_with_dirty_keys": ("dirty_keys_queue",),
    "mark_free_keys": ("jobs_waiting_for_key", "jobs_key_slot"),
    "admit": ("jobs_due", "jobs_pkey", "watermarks_pkey"),
    "has_work": ("jobs_pending", "jobs_due"),
    "raise_watermarks": ("jobs_pending", "watermarks_pkey", "meters_pkey"),
    "held": ("claims_runner",),
    "lock_held": ("claims_runner", *BY_ID),
    "lock_orphaned": ("claims_runner", *BY_ID),
    "lock_expired": ("jobs_expiring",),
    "is_any_expired": ("jobs_expiring",),
    "cancels": ("jobs_cancelling",),
    "take_keys": (),
    "release_keys": BY_KEY,
    "hold_keys_for_window": BY_KEY,
    "key_holders": BY_KEY,
    "lock_keys": BY_KEY,
    "take_over_keys": BY_KEY,
    "reassign_keys": BY_KEY,
    "renew": ("leases_pkey",),
    "orphans": ("claims_runner", "leases_pkey"),
    "drop_claims": ("claims_runner", *BY_ID),
    "request_cancel": BY_ID,
    "retry_failed": BY_ID,
    "run_now": BY_ID,
    "change": BY_ID,
    "drop_duplicates": BY_ID,
    "unpark": ("jobs_parked", *BY_ID),
    "is_any_parked": ("jobs_parked",),
    "census_parked": ("jobs_parked",),
    "queue_limits": (
        "queues_pkey",
        "quotas_pkey",
        "watermarks_pkey",
        "leases_pkey",
        "token_buckets_pkey",
        "claims_runner",
        "dirty_keys_queue",
    ),
    "count_held": ("claims_runner",),
    "candidates": ("jobs_pending",),
    "tenant_candidates": ("jobs_tenant_queue",),
    "tenants": ("jobs_tenant_queue",),
    "claim_best": ("jobs_pending", "leases_pkey"),
    "claim_candidates": (*BY_ID, "leases_pkey"),
    "throttled": ("jobs_key_slot",),
    "lock_token_buckets": ("token_buckets_pkey",),
    "count_quotas": ("claims_runner", "quotas_pkey"),
    "trim_quotas": ("claims_runner", "quotas_pkey"),
    "drop_quotas": ("claims_runner", "leases_pkey"),
    "queue_loads": ("queues_pkey", "claims_runner"),
    "assign_tenant_queues": ("jobs_pending",),
    "age": ("jobs_pending", *BY_ID),
    "enqueue_dependents": ("queues_pkey", "watermarks_pkey"),
    "lock_parents": BY_ID,
    "set_has_dependents": BY_ID,
    "descendants": (*BY_ID, "dependencies_pkey"),
    "cancelled_because_of": (*BY_ID, "dependencies_pkey"),
}
"""Statement → the indexes that it cannot do without."""
LARGE = (
    "jobs",
    "claims",
    "history",
    "idempotency_keys",
    "notes",
    "tombstones",
    "dirty_keys",
    "schedules",
    "dependencies",
)
BACKLOG = ("jobs_pending", "jobs_due", "jobs_tenant_queue", "schedules_due", "claims_runner", "jobs_expiring")
SMALL = ("jobs_cancelling",)
"""Has only the running jobs that were asked to stop."""
FILL = """
INSERT INTO windlass.queues (name, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead)
    SELECT q, 3, 0, 86400000000, 86400000000, 86400000000 FROM unnest(ARRAY['default', 'mail']) AS q;
INSERT INTO windlass.watermarks (queue, sort_priority)
    SELECT q, u FROM unnest(ARRAY['default', 'mail']) AS q, unnest(ARRAY[0, 1]) AS u;
INSERT INTO windlass.jobs (
    id, queue, type, payload, status, sort_priority, rank, run_at, max_attempts, created_at, updated_at, worker,
    claim, claimed_at, idempotency_key
)
SELECT gen_random_uuid(), CASE WHEN n % 10 = 0 THEN 'mail' ELSE 'default' END, 't', '{}',
    CASE WHEN n % 50 = 0 THEN 'running' WHEN n % 10 = 1 THEN 'scheduled' WHEN n % 10 = 2 THEN 'failed'
        ELSE 'pending' END,
    n % 2, n, n, 3, n, n, CASE WHEN n % 50 = 0 THEN 'r' || n % 7 END, CASE WHEN n % 50 = 0 THEN n / 100 END,
    CASE WHEN n % 50 = 0 THEN n END, 'key ' || n
FROM generate_series(1, 50000) AS n;
INSERT INTO windlass.claims (runner, claim, jobs)
    SELECT worker, claim, array_agg(id) FROM windlass.jobs WHERE status = 'running' GROUP BY worker, claim;
INSERT INTO windlass.jobs (
    id, queue, type, payload, status, reason, sort_priority, rank, run_at, max_attempts, created_at, updated_at,
    concurrency_key, key_slot
)
SELECT gen_random_uuid(), 'default', 't', '{}', CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'blocked' END,
    CASE WHEN n % 10 > 0 THEN 'waits for its concurrency key' END, n % 2, n, n, 3, n, n, 'key ' || n / 20,
    CASE WHEN n % 10 = 0 THEN n / 10 END
FROM generate_series(1, 30000) AS n;
INSERT INTO windlass.dirty_keys (queue, key)
    SELECT 'default', concurrency_key FROM windlass.jobs WHERE key_slot IS NOT NULL;
INSERT INTO windlass.schedules (name, declared, changed, paused, created_at, next_at, missed, skipped, revision)
    SELECT 's' || n, '{}', '{}', false, n, n % 100, 0, 0, 0 FROM generate_series(1, 10000) AS n;
INSERT INTO windlass.dependencies (parent, child)
    SELECT id, gen_random_uuid() FROM windlass.jobs WHERE sort_priority = 0;
INSERT INTO windlass.idempotency_keys (queue, hash, job) SELECT queue, md5(id::text), id FROM windlass.jobs;
"""

Plan = dict[str, Any]


class Planner:
    """A connection as the store has it, and the plans that it keeps."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._texts = Texts("windlass", None)

    async def prepare(self, name: str) -> None:
        statement = self._texts.named(name, self.session.prepare)
        await self.session.script(f"PREPARE {name} AS {statement.text}")

    async def plan(self, name: str) -> Plan:
        """Of a prepared statement: made now, or the one that it has."""
        values = self._texts.named(name, self.session.prepare).names
        call = f"{name}({', '.join(['NULL'] * len(values))})" if values else name
        (text,) = await self.session.connection.fetchrow(f"EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE {call}")
        plan: Plan = json.loads(text)[0]["Plan"]
        return plan


@pytest.fixture
async def planner(store: Store) -> AsyncIterator[Planner]:
    await store.operator.counts()
    session = await connect(store.address, 10, pooled=None)
    yield Planner(session)
    session.drop()


def nodes(plan: Plan, above: tuple[Plan, ...] = ()) -> Iterator[tuple[Plan, tuple[Plan, ...]]]:
    """Every node with those above it, the nearest last."""
    yield plan, above
    for child in plan.get("Plans", ()):
        yield from nodes(child, (*above, plan))


def check(name: str, plan: Plan) -> None:
    shown = f"{name}: {json.dumps(plan, indent=1)}"
    used = {node["Index Name"] for node, _ in nodes(plan) if "Index Name" in node}
    assert set(USED[name]) <= used, shown
    for node, above in nodes(plan):
        kind, index = node["Node Type"], node.get("Index Name", "")
        assert not (kind == "Seq Scan" and node["Relation Name"].startswith(LARGE)), shown
        if kind.startswith(("Index", "Bitmap Index")) and index.startswith(LARGE):
            # From a beginning that its values give, else it is a walk through all there is; or only up to a limit.
            assert "Index Cond" in node or index in SMALL or _until_limit(above), shown
        if index in BACKLOG[:4]:
            assert _until_limit(above) or _exists(above, node), shown


def _until_limit(above: tuple[Plan, ...]) -> bool:
    """Whether rows are taken one by one until there are enough: nothing collects or sorts them before."""
    for node in reversed(above):
        if node["Node Type"] == "Limit":
            return True
        if node["Node Type"] not in ("LockRows", "Subquery Scan", "Result"):
            return False
    return False


def _exists(above: tuple[Plan, ...], node: Plan) -> bool:
    """Whether only the first row is asked for: a subplan of EXISTS, or the inner side of a semi-join."""
    if node.get("Parent Relationship") in ("SubPlan", "InitPlan"):
        return True
    return above[-1].get("Join Type") == "Semi" and above[-1]["Node Type"] == "Nested Loop"


@pytest.mark.parametrize("name", USED)
async def test_a_plan_is_good_whenever_it_is_made(planner: Planner, name: str) -> None:
    await planner.prepare(name)
    check(name, await planner.plan(name))


async def test_plans_are_as_good_with_a_backlog_before_and_after_analyze(planner: Planner) -> None:
    for name in USED:
        await planner.prepare(name)
    settled = {name: await planner.plan(name) for name in USED}
    await planner.session.script(FILL)
    later = {name: await planner.plan(name) for name in USED}
    assert settled == later, "a plan was made anew although nothing asked for it"
    for before in ("SELECT 1", "ANALYZE"):
        await planner.session.script(before)
        for name in USED:
            await planner.session.script(f"DEALLOCATE {name}")
            await planner.prepare(name)
            check(name, await planner.plan(name))


@pytest.mark.parametrize("name", ["admit_waiting", "mark_free_keys", "queues_with_dirty_keys", "enqueue_keyed"])
async def test_lines_are_found_by_their_index_also_if_all_was_analysed_while_nothing_was_there(
    planner: Planner, name: str
) -> None:
    await planner.session.script(f"{FILL}; DELETE FROM windlass.jobs; DELETE FROM windlass.dirty_keys; ANALYZE")
    await planner.prepare(name)
    check(name, await planner.plan(name))
