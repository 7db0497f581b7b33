"""Whatever is done with jobs in whatever order: every index says what the records say, after every step."""

import pytest

from tests.conformance.test_slots_walk import QUEUES, TYPES, Walk
from tests.redis.places import misplaced
from tests.support.clock import ManualClock
from tests.support.key_queues import look_again
from tests.support.parts import extended
from tests.support.runners import rule
from tests.support.seed import ENDINGS, enqueue, let_lapse
from windlass.core.flow.rate import Rate
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.redis.store import RedisStore

STEPS = 120


class LongWalk(Walk):
    """All that can be said of a job at once, and all verbs that move one."""

    def __init__(self, store: Store, clock: ManualClock, seed: int) -> None:
        super().__init__(store, clock, seed)
        self.verbs += [self.enqueue_anything] * 6
        self.verbs += [self.settle_all, self.delete, self.age, self.prune, self.rule, self.recall, self.end_of_all]

    async def enqueue_anything(self) -> None:
        chosen = self.random.choice
        keyed, line = chosen([None, None, "a", "b"]), chosen([None, "one", "rated"])
        self.ids += await enqueue(
            self.store,
            1 if keyed else self.random.randint(1, 4),
            concurrency_key=line,
            key_limit=chosen([None, 1, 3]) if line else None,
            key_rate=chosen([None, Rate(2, 10 * SECOND, 2)]) if line else None,
            tenant=chosen([None, "x", "y", "ё"]),
            idempotency_key=keyed,
            idempotency_window=chosen([None, 9 * SECOND]) if keyed else None,
            on_conflict=chosen([OnConflict.EXISTING, OnConflict.REPLACE]),
            queue=chosen(QUEUES),
            type=chosen(TYPES),
            priority=chosen([-32768, -1, 0, 1, 32767]),
            delay=chosen([0, 0, 5 * SECOND]),
            expires=chosen([None, 20 * SECOND]),
        )

    async def settle_all(self) -> None:
        held, self.held = self.held, []
        await self.store.jobs.settle([self.random.choice(list(ENDINGS.values()))(job) for job in held])

    async def delete(self) -> None:
        await self.store.operator.delete(self.some())

    async def age(self) -> None:
        await self.store.jobs.age(self.random.choice([1, 100]))

    async def prune(self) -> None:
        self.clock.advance(self.random.choice([SECOND, DAY]))
        await self.store.operator.prune(100)

    async def rule(self) -> None:
        random = self.random
        keep = random.choice([0, 30 * SECOND, DAY])
        await rule(
            self.store,
            random.choice(QUEUES),
            fair=random.random() < 0.5,
            ageing=5 * SECOND,
            retention={Status.COMPLETED: keep, Status.DEAD: DAY},
            max_concurrency=random.choice([2, 50]),
        )

    async def recall(self) -> None:
        await self.store.operator.cancel([job.id for job in self.held[:2]], "")

    async def end_of_all(self) -> None:
        self.clock.advance(30 * SECOND)
        await let_lapse(self.store, self.clock)
        await self.store.leases.rescue(100)


@pytest.mark.parametrize("seed", [0, *extended(range(1, 8))])
async def test_indexes_say_what_records_say(store: RedisStore, clock: ManualClock, seed: int) -> None:
    walk = LongWalk(store, clock, seed)
    done = []
    for _ in range(STEPS):
        verb = walk.random.choice(walk.verbs)
        await verb()
        done.append(verb.__name__)
        if walk.random.random() < 0.5:
            await look_again(store)
        assert [fault for queue in QUEUES for fault in await misplaced(store, queue)] == [], done[-5:]
