"""Jobs that complete in one call release their dependents, however these lie in the index of dependents."""

from collections import Counter
from collections.abc import Sequence

import pytest
import redis

from tests.support.chains import enqueue_jobs, statuses
from tests.support.key_queues import take
from tests.support.seed import completed, new_job
from windlass.core.ids import JobId
from windlass.core.jobs.job import DEFAULT_QUEUE, Claimed
from windlass.core.status import Status
from windlass.store.redis.store import RedisStore

BLOCKED, PENDING = Status.BLOCKED, Status.PENDING
PARENTS = 30
"""More than one portion of the script."""


class Family:
    """Parents, which run, and the jobs that wait for each: stored later, so they are in the index."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.running: list[Claimed] = []
        self.children: list[list[JobId]] = []

    async def enqueue(self, children: int) -> "Family":
        parents = await enqueue_jobs(self.store, [new_job() for _ in range(PARENTS)])
        for parent in parents:
            jobs = [new_job(parents=(parent,)) for _ in range(children)]
            self.children.append(await enqueue_jobs(self.store, jobs))
        by_id = {job.id: job for job in await take(self.store, limit=PARENTS)}
        self.running = [by_id[id_] for id_ in parents]
        return self

    async def complete(self, places: Sequence[int]) -> None:
        await self.store.jobs.settle([completed(self.running[place]) for place in places])

    async def blocked(self) -> list[int]:
        """The places of parents of which every child waits; none has children of which only some do."""
        found = [set(await statuses(self.store, each)) for each in self.children]
        assert all(each in ({BLOCKED}, {PENDING}) for each in found)
        return [place for place, each in enumerate(found) if each == {BLOCKED}]

    def listed(self) -> set[bytes]:
        """The members of the index of dependents."""
        server = self.store._access.server
        (key,) = server.keys.of_queue(DEFAULT_QUEUE, ("dependents",))
        with redis.Redis.from_url(server.address.dsn) as client:
            return set(client.zrange(key, 0, -1))

    def waiting(self, places: Sequence[int]) -> set[bytes]:
        """The members that these parents have there."""
        return {f"w{self.running[place].id}{child}".encode() for place in places for child in self.children[place]}


@pytest.mark.parametrize("children", [1, 3, 11])
@pytest.mark.parametrize(
    "places",
    [
        tuple(range(PARENTS)),
        tuple(reversed(range(PARENTS))),
        tuple(place for place in range(PARENTS) if place not in (7, 26)),
        (0, PARENTS - 1),
        (12, 3, 20, 4, 19),
    ],
    ids=["all", "from the last", "but two", "the outermost", "in disorder"],
)
async def test_only_dependents_of_completed_jobs_are_released(
    store: RedisStore, places: tuple[int, ...], children: int
) -> None:
    family = await Family(store).enqueue(children)
    await family.complete(places)
    others = sorted(set(range(PARENTS)) - set(places))
    assert await family.blocked() == others
    assert family.listed() == family.waiting(others)
    await family.complete(others)
    assert await family.blocked() == []
    assert family.listed() == set()


async def test_dependents_of_jobs_that_follow_each_other_are_read_and_removed_together(store: RedisStore) -> None:
    family = await Family(store).enqueue(1)
    before = _calls(store)
    await family.complete(range(PARENTS))
    calls = _calls(store) - before
    assert calls == Counter(zrangebylex=2, zremrangebylex=3), "by portion, and one for the claim"


def _calls(store: RedisStore) -> Counter[str]:
    """Commands that read or remove dependents so far."""
    with redis.Redis.from_url(store._access.server.address.dsn) as client:
        found = client.info("commandstats")
    names = ("zrangebylex", "zremrangebylex", "zrem")
    return Counter({name: found.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in names})
