"""Flow control with real workers: limits over all of them, keys whose holders die, rules that change meanwhile."""

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any

import msgspec

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.checker.spans import most_at_once, spans
from tests.support.processes import Process, let_pass, until
from windlass import Job, NewJob
from windlass.core.flow.queue import QueueSettings
from windlass.store.open import open_store

MAX_BEFORE_A_NEW_TENANT = 100
"""Jobs of another tenant that may be claimed before a new tenant's: of thousands, those of a few claims."""


def rule(stage: Stage, **settings: Any) -> None:
    """What an operator tells the queue."""

    async def tell() -> None:
        store = open_store(stage.url)
        try:
            await store.queues.change("default", QueueSettings(**settings))
        finally:
            await store.close()

    asyncio.run(tell())


def make(stage: Stage, type: str, /, terms: dict[str, Any], **payload: Any) -> NewJob:
    return msgspec.structs.replace(stage.make(type, **payload), **terms)


def ran_at_once(jobs: list[Job]) -> int:
    """The most that were under leases at the same time, by the store's own record."""
    return most_at_once([span for job in jobs for span in spans(msgspec.to_builtins(job))])


def kill(worker: Process) -> None:
    """All of it at once: no process is left to report it."""
    for pid in worker.tree():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    worker.wait()


@on_every_store
def test_a_limit_holds_over_two_workers_while_one_of_them_is_killed(stage: Stage) -> None:
    rule(stage, max_concurrency=3)
    ids = stage.enqueue("anap", 60)
    first, second = stage.worker("--concurrency", "5"), stage.worker("--concurrency", "5")
    stage.until_started(ids[:9])
    kill(first)
    stage.until_finished()
    assert second.runners()
    assert 1 < ran_at_once(stage.all_jobs()) <= 3
    stage.check(again=ids)
    stage.close_down()


@on_every_store
def test_a_limit_that_is_lowered_kills_nothing_and_lets_nothing_start_until_it_fits(stage: Stage) -> None:
    rule(stage, max_concurrency=4)
    held = [stage.enqueue_one("ablock", gate=f"gate{number}") for number in range(4)]
    stage.worker("--concurrency", "10")
    stage.until_started(held)
    rule(stage, max_concurrency=1)
    waiting = stage.enqueue_one("quick")
    for number in range(3):
        stage.open(f"gate{number}")
        stage.until_status(held[number], "completed")
    let_pass(1.5)
    assert stage.job(waiting).status == "pending"
    assert stage.job(held[3]).attempt == 1
    stage.open("gate3")
    stage.until_finished()
    stage.check()
    stage.close_down()


@on_every_store
def test_a_limit_that_is_raised_is_used(stage: Stage) -> None:
    rule(stage, max_concurrency=1)
    held = stage.enqueue("ablock", 4, gate="gate")
    stage.worker("--concurrency", "5")
    stage.until_started(held[:1])
    rule(stage, max_concurrency=4)
    stage.until_started(held)
    stage.open("gate")
    stage.until_finished()
    stage.check()
    stage.close_down()


@on_every_store
def test_a_pause_with_an_end_ends_by_itself(stage: Stage) -> None:
    stage.worker()
    paused = stage.app.queues.pause("default", 1.5)
    id_ = stage.enqueue_one("quick")
    job = stage.until_status(id_, "completed")
    assert paused.paused_until is not None
    assert job.claimed_at is not None
    assert job.claimed_at >= paused.paused_until
    stage.check()
    stage.close_down()


@on_every_store
def test_strict_order_holds_through_a_job_that_fails_and_is_tried_again(stage: Stage) -> None:
    strict = {"concurrency_key": "account 7", "key_strict": True}
    types = [("quick", {}), ("flaky", {"failures": 2}), ("quick", {}), ("flaky", {"failures": 1}), ("quick", {})]
    ids = [stage.enqueue_all([make(stage, type_, strict, **payload)])[0] for type_, payload in types]
    others = stage.enqueue("quick", 5)
    stage.worker("--concurrency", "5", "--processes", "2")
    stage.until_finished()
    mine = [effect.job for effect in stage.history.starts() if effect.job in ids]
    first, second, third, fourth, fifth = ids
    assert mine == [first, second, second, second, third, fourth, fourth, fifth]
    assert ran_at_once([stage.job(id_) for id_ in ids]) == 1
    assert all(stage.job(id_).attempt == 1 for id_ in others)
    stage.check(again=[second, fourth])
    stage.close_down()


@on_every_store
def test_a_tenant_with_one_job_does_not_wait_for_the_thousands_of_another(stage: Stage) -> None:
    rule(stage, fair=True)
    crowd = stage.enqueue_all([make(stage, "anap", {"tenant": "A"}) for _ in range(3000)])
    worker = stage.worker("--concurrency", "5")
    until(lambda: len(stage.history.starts()) > 20, "the worker is busy with the crowd")
    (one,) = stage.enqueue_all([make(stage, "quick", {"tenant": "B"})])
    first_job = stage.until_status(one, "completed")
    assert first_job.claimed_at is not None
    began = [job.claimed_at for job in stage.all_jobs(("running", "completed")) if job.tenant == "A"]
    before = [at for at in began if at is not None and first_job.created_at <= at < first_job.claimed_at]
    assert len(before) <= MAX_BEFORE_A_NEW_TENANT
    assert len(began) < len(crowd) / 2, "the crowd was gone: this test does not test what it says"
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


@on_every_store
def test_when_the_holder_of_a_key_is_killed_its_key_goes_on(stage: Stage) -> None:
    key = {"concurrency_key": "k"}
    first = stage.worker("--concurrency", "3")
    (holder,) = stage.enqueue_all([make(stage, "ablock", key, gate="gate")])
    (behind,) = stage.enqueue_all([make(stage, "quick", key)])
    stage.until_started([holder])
    assert stage.job(behind).status == "blocked"
    second = stage.worker("--concurrency", "3")
    kill(first)
    until(lambda: len(stage.history.starts(holder)) == 2, "another worker takes it up")
    assert stage.job(behind).status == "blocked", "the key was given away"
    stage.open("gate")
    stage.until_finished()
    assert ran_at_once([stage.job(holder), stage.job(behind)]) == 1
    assert second.runners()
    stage.check(again=[holder])
    stage.close_down()
