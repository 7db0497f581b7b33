"""Unexpected errors, in parts beside the settler: each is told once, and nothing that runs is broken off."""

import asyncio
from typing import Any

import pytest

from tests.services.parts import Listener, table_of
from tests.services.test_claim_loop import Rig, rig_of
from tests.services.test_supervision import Post, post
from tests.support.seed import enqueue_one, look, open_lease
from windlass import Status
from windlass.coordinator.coordinator import Coordinator
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.retry import Fixed
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest
from windlass.worker.config import WorkerConfig
from windlass.worker.runner.queue_rules import QueueRetryRules
from windlass.worker.stacks import GONE, Stacks
from windlass.worker.store_retry import MAX_UNEXPECTED

__all__ = ("post",)


async def fail(*_: object) -> None:
    raise RuntimeError("a bug")


async def test_the_watch_goes_on(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.worker.supervisor.watch.EVERY_SECONDS", 0.001)
    await post.leases.open(post.child)
    post.child.table.prefetch("01a1e689-0248-70c8-8d1b-d74d24518803", 1, since_boot(), since_boot() + 60_000_000)
    watching = asyncio.create_task(post.watch.run())
    with monkeypatch.context() as patch:
        patch.setattr(post.store.leases, "cancels", fail)
        await asyncio.sleep(0.1)
    async with asyncio.timeout(20):
        while "StoreRecovered" not in post.listener.names:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not watching.done()
    watching.cancel()
    assert post.listener.names == ["RunnerStarted", "StoreFailed", "StoreRecovered"]


async def test_a_runner_may_end_while_it_is_asked_where_it_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.kill", lambda *_: None)
    stacks = Stacks.create()
    asking = asyncio.create_task(stacks.ask(4242))
    await asyncio.sleep(0)
    stacks.close()
    assert await asking == GONE


async def test_a_runner_that_has_ended_is_not_asked_anything(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process id may be that of another process by now."""
    killed: list[object] = []
    monkeypatch.setattr("os.kill", lambda *asked: killed.append(asked))
    await post.leases.open(post.child)
    index = post.child.table.prefetch("01a1e689-0248-70c8-8d1b-d74d24518803", 1, 1, since_boot() + 60_000_000)
    post.child.table.start(index, 1, 2)
    post.child.table.tick = 1
    process: Any = post.child.process
    process.returncode = -9
    await post.watch._check_all()
    assert killed == []


async def test_a_candidate_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Listener()
    candidate = Coordinator(store, "a", heard)
    with monkeypatch.context() as patch:
        patch.setattr(store.leader, "campaign", fail)
        for now in range(3):
            await candidate.step(now)
    await candidate.step(10)
    assert candidate.term == 1
    assert heard.names == ["DutyFailed", "StoreRecovered", "LeadershipGained"]


async def test_the_rules_from_before_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Listener()
    rules = QueueRetryRules(store, WorkerConfig(app=""), ["default"], heard)
    before = rules.retry("default")
    with monkeypatch.context() as patch:
        patch.setattr(store.queues, "list", fail)
        for _ in range(3):
            await rules.refresh()
    assert heard.names == ["StoreFailed"]
    await rules.refresh()
    assert rules.retry("default") == before != Fixed(attempts=1)


async def test_what_failing_claims_have_claimed_is_requeued_though_every_claim_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.worker.runner.claim_loop.MAX_POLL", 0.05)
    id_ = await enqueue_one(store)

    async with rig_of(store) as rig:
        claim = store.jobs.claim

        async def claim_and_fail(request: ClaimRequest) -> None:
            await claim(request)
            raise RuntimeError("a bug")

        monkeypatch.setattr(rig.jobs, "claim", claim_and_fail)
        async with asyncio.timeout(20):
            while (found := await look(store, id_)).requeues == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert found.status in (Status.PENDING, Status.RUNNING)
    assert rig.ran == []
    assert rig.listener.names == ["StoreFailed"]


async def test_a_claim_loop_that_never_has_memory_ends_so_that_its_runner_is_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few such errors may pass. What handlers have kept does not: a new process has it again."""
    monkeypatch.setattr("windlass.worker.runner.claim_loop.MAX_POLL", 0.001)
    claims: list[int] = []

    async def claim(_: ClaimRequest) -> list[Claimed]:
        claims.append(1)
        if len(claims) == MAX_UNEXPECTED + 1:
            return []  # enough for one
        raise MemoryError

    await open_lease(store)
    with table_of() as table:
        rig = Rig(store, table, (), reconcile_every=0.01)  # so that it asks again though there is no job
        monkeypatch.setattr(rig.jobs, "claim", claim)
        rig.loop.serve("r1")
        with pytest.raises(MemoryError):
            await asyncio.wait_for(rig.loop.run({"default": None}, ("t",)), 20)
    assert len(claims) == 2 * (MAX_UNEXPECTED + 1)
    assert rig.listener.names == ["StoreFailed", "StoreFailed"]  # one after the claim that succeeded
