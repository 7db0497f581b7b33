"""A group with members in many queues of a cluster, of which a master is killed while they run."""

import asyncio

import pytest

from tests.support.processes import until
from tests.support.servers.redis_cluster import RedisCluster
from windlass import App, Results, group

QUEUES = tuple(f"q{number}" for number in range(8))


@pytest.mark.parametrize("lost_queue", ["q0", pytest.param("*", marks=pytest.mark.extended)])
async def test_a_group_ends_once_although_a_master_is_killed(redis_cluster: RedisCluster, lost_queue: str) -> None:
    """Every write waits for a replica, so nothing that was answered is lost."""
    app = App(f"{redis_cluster.url}?replicas=1", deadline=60)
    runs: list[str] = []
    begun = asyncio.Event()

    @app.task
    async def square(number: int) -> int:
        begun.set()
        await asyncio.sleep(0.02)
        return number * number

    @app.task(queue="q1")
    async def total(parts: Results[int]) -> int:
        found = sum([each async for each in parts])
        runs.append(f"total {found}")
        return found

    key = f"windlass:{{{lost_queue}}}:jobs"
    async with app.worker(concurrency=4, queues=["default", *QUEUES]):
        jobs = [square.using(queue=QUEUES[n % len(QUEUES)]).job(n) for n in range(80)]
        handle = await group(jobs, then=total).aenqueue()
        await begun.wait()
        lost = redis_cluster.master_of(key)
        await asyncio.to_thread(lost.kill)
        await asyncio.to_thread(until, lambda: redis_cluster.master_of(key) is not lost, "another is master")
        await asyncio.to_thread(lost.start)  # as a replica: without one nothing can be replicated
        assert await handle.aresult(timeout=120) == sum(n * n for n in range(80))
    # A claim whose answer was lost in the failover runs again; what it returned is the same.
    assert set(runs) == {f"total {sum(n * n for n in range(80))}"}
    await app.aclose()
