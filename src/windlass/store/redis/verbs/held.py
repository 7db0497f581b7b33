"""held: what a runner runs, as far as the store knows; how many jobs each has. Some claims of a queue at a time."""

from collections import Counter
from collections.abc import Iterable

from windlass.store.records import Held
from windlass.store.redis.connection.access import Access


async def held(access: Access, runner: str) -> list[Held]:
    """In all queues that can be reached, which are asked together."""
    found: list[Held] = []
    after = dict.fromkeys(await access.queue_names(), -1)
    while after:
        replies, troubles = await access.call_reachable(
            "held", {queue: ((runner, claim),) for queue, claim in after.items()}
        )
        if troubles and not replies:
            raise troubles[0]
        found += [
            Held(id_.decode(), attempt, queue) for queue, (_, *jobs) in replies.items() for id_, attempt in jobs
        ]
        after = {queue: claim for queue, (claim, *_) in replies.items() if claim >= 0}
    return found


async def held_by_runner(access: Access, queues: Iterable[str]) -> Counter[str]:
    """How many jobs each runner has in these queues. Those that come and go meanwhile may be missed."""
    found: Counter[str] = Counter()
    after = dict.fromkeys(queues, ("", 0))
    while after:
        replies = await access.call_queues("held_counts", {queue: (place,) for queue, place in after.items()})
        for _, _, *pairs in replies.values():
            for runner, jobs in zip(pairs[::2], pairs[1::2], strict=True):
                found[runner.decode()] += jobs
        after = {queue: (runner.decode(), claim) for queue, (runner, claim, *_) in replies.items() if runner}
    return found
