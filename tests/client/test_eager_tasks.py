"""Producers whose event loop starts tasks eagerly (`asyncio.eager_task_factory`, Python 3.12 and later)."""

import asyncio
import sys

import pytest

from tests.support.addresses import on_every_store
from tests.support.loops import LOOPS, run_on
from windlass import App

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no eager tasks before Python 3.12")


@on_every_store
# uvloop gives Python's own eager factory a word that the one of 3.13.0 does not know.
@pytest.mark.parametrize("loop", [loop for loop in sorted(LOOPS) if loop != "uvloop" or sys.version_info < (3, 13)])
def test_jobs_are_enqueued_and_awaited_on_a_loop_with_eager_tasks(address: str, loop: str) -> None:
    app = App(address)

    @app.task
    def add(number: int) -> int: ...  # type: ignore[empty-body]

    async def main() -> None:
        if sys.version_info >= (3, 12):
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        handles = await asyncio.gather(*(add.aenqueue(number) for number in range(20)))
        with pytest.raises(TimeoutError):
            await handles[0].aresult(timeout=0.05)
        jobs = [await app.jobs.aget(handle.id) for handle in handles]
        assert [job.payload for job in jobs] == [{"number": number} for number in range(20)]
        await app.aclose()

    run_on(loop, main())
