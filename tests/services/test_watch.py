"""The supervisor's watch: cancel requests that it forwards, runners that it ends."""

import pytest

from tests.services.test_supervision import Post, post, refuse
from tests.support.seed import claim_one, enqueue_one
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.worker.channel import Cancel
from windlass.worker.shared_table import MAX_STEP
from windlass.worker.supervisor.runner_process import RunnerProcess

__all__ = ("post",)
START, HOUR = 1_000 * SECOND, 3_600 * SECOND


@pytest.mark.parametrize(("suspended", "ended"), [(True, False), (False, True)])
async def test_a_runner_is_not_ended_for_time_in_which_the_worker_stood_still(
    post: Post, monkeypatch: pytest.MonkeyPatch, suspended: bool, ended: bool
) -> None:
    killed: list[RunnerProcess] = []
    monkeypatch.setattr(post.child, "kill", lambda: killed.append(post.child))
    monkeypatch.setattr("windlass.worker.supervisor.watch.since_boot", lambda: START + HOUR)
    await post.leases.open(post.child)
    id_ = await enqueue_one(post.store)
    job, table = await claim_one(post.store, post.runner), post.child.table
    table.keep_time(START)
    table.tick = table.active_time(START)
    table.start(table.prefetch(id_, job.attempt, START, START), START, table.active_time(START) + 5 * SECOND)
    if not suspended:
        for moment in range(START, START + HOUR, MAX_STEP):
            table.keep_time(moment)
    monkeypatch.setattr(post.child.stacks, "ask", where)
    await post.watch._check_hung(post.child)
    table.keep_time(START + HOUR)
    await post.watch._check_hung(post.child)
    assert bool(killed) is ended
    assert ("RunnerHung" in post.listener.names) is ended
    assert "RunnerBlocked" not in post.listener.names


async def where(_: int) -> str:
    return "somewhere"


async def test_a_round_of_the_watch_that_comes_late_is_skipped(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second pause is one in which everything stood still."""
    moments = iter([SECOND, SECOND, HOUR, HOUR, HOUR + SECOND, HOUR + SECOND])
    rounds: list[int] = []

    async def look() -> None:
        rounds.append(1)

    monkeypatch.setattr("windlass.worker.supervisor.watch.since_boot", lambda: next(moments))
    monkeypatch.setattr(post.watch, "_check_all", look)
    for _ in range(3):
        await post.watch._round()
    assert len(rounds) == 2


async def test_a_cancel_request_that_comes_before_the_claims_reply_is_forwarded_after_it(post: Post) -> None:
    """The runner ignores a request for an attempt that it does not hold yet."""
    await post.leases.open(post.child)
    held, coming = await enqueue_one(post.store), await enqueue_one(post.store)
    for claim in (1, 2):
        await claim_one(post.store, post.runner, claim=claim)
    post.child.table.prefetch(held, 1, 1_000_000, 1_000_000 + 2_000_000)
    await post.store.operator.cancel([coming], "enough")
    await post.watch._forward_cancels()
    assert post.line.sent[1:] == []
    post.child.table.prefetch(coming, 1, 1_000_000, 1_000_000 + 2_000_000)
    await post.watch._forward_cancels()
    await post.watch._forward_cancels()
    assert post.line.sent[1:] == [Cancel(coming, 1)]


async def test_a_hung_runner_is_reported_once_while_the_store_is_away(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[RunnerProcess] = []
    monkeypatch.setattr(post.child, "kill", lambda: killed.append(post.child))
    monkeypatch.setattr(post.child.stacks, "ask", where)
    await post.leases.open(post.child)
    id_ = await enqueue_one(post.store)
    job, table = await claim_one(post.store, post.runner), post.child.table
    table.tick = 1
    table.start(table.prefetch(id_, job.attempt, 1, 1), 1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(post.store.operator, "get", refuse)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await post.watch._check_hung(post.child)
    await post.watch._check_hung(post.child)
    assert (post.listener.names.count("RunnerHung"), len(killed), len(post.child.overdue)) == (1, 1, 1)
