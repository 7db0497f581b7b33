"""Results of jobs that run in another process: a message of the end, or where none is sent, a look at the store."""

import asyncio

import msgspec
import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from windlass import Handle, JobCancelled, JobDead, NewJob
from windlass.client.runtime import result_waiter as result_waiter
from windlass.client.tasks.chain import ChainHandle

FOR_EVER = 10_000.0
FIRST_LOOKS = 0.5
"""Seconds; less than the retries of a test below take."""


def sums(count: int) -> list[NewJob]:
    """A chain of additions: each link adds one to what the link before it came to."""
    jobs = [Stage.make("add", a=0, b=1)]
    for _ in range(1, count):
        before = jobs[-1].id
        takes = (("a", before),)
        jobs.append(
            msgspec.structs.replace(Stage.make("add", b=1), parent=before, parents=(before,), result_params=takes)
        )
    return jobs


@pytest.fixture
def without_polling(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiter polls after its first looks, which see what was ending when it began to wait.

    Except on YugabyteDB: no message of an end is sent there.
    """
    if "yugabyte" not in stage.url:
        monkeypatch.setattr(
            result_waiter,
            "pause_after",
            lambda seconds, signalled: FIRST_LOOKS if seconds < FIRST_LOOKS else FOR_EVER,
        )


@on_every_store
@pytest.mark.usefixtures("without_polling")
def test_a_waiter_gets_the_result_through_retries_without_polling(stage: Stage) -> None:
    stage.worker()
    flaky, block = stage.app.enqueue_many([stage.make("flaky", failures=2), stage.make("block", gate="open")])

    async def both() -> list[str]:
        waiting = asyncio.gather(flaky.aresult(), block.aresult())
        await asyncio.to_thread(stage.until_started, [block.id])
        stage.open("open")
        return list(await waiting)

    assert asyncio.run(both()) == ["at last", "opened"]
    dead: Handle[str] = Handle(stage.app, stage.enqueue_one("decide", what="dead"))
    with pytest.raises(JobDead, match="hopeless"):
        dead.result()
    cancelled: Handle[str] = Handle(stage.app, stage.enqueue_one("decide", what="cancel"))
    with pytest.raises(JobCancelled, match="not needed"):
        cancelled.result()
    stage.close_down()


@on_every_store
@pytest.mark.usefixtures("without_polling")
def test_results_come_one_after_the_other_and_many_at_once(stage: Stage) -> None:
    stage.worker("--processes", "2")
    for number in range(20):
        one: Handle[int] = Handle(stage.app, stage.enqueue_one("add", a=number, b=1))
        assert one.result() == number + 1
    handles = stage.app.enqueue_many([stage.make("add", a=number, b=0) for number in range(300)])

    async def all_of_them() -> list[int]:
        return list(await asyncio.gather(*(each.aresult() for each in handles)))

    assert asyncio.run(all_of_them()) == list(range(300))
    stage.close_down()


@on_every_store
@pytest.mark.usefixtures("without_polling")
def test_a_chain_has_the_result_of_its_last_link(stage: Stage) -> None:
    stage.worker()
    handles = stage.app.enqueue_many(sums(30))
    whole: ChainHandle[int] = ChainHandle(stage.app, handles[-1].id, False, int, tuple(handles))
    assert whole.result() == 30
    stage.close_down()
