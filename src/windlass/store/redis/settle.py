"""settle: record how attempts ended, fenced by (job, attempt)."""

from collections import defaultdict
from collections.abc import Sequence

from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.store.records import Settled
from windlass.store.redis.access import Access


async def settle(access: Access, settlements: Sequence[Settlement]) -> list[Settled]:
    """Plain completions go as one batch for each queue; what is unusual is looked at."""
    plain: dict[str, list[int]] = defaultdict(list)
    answers: dict[int, Settled] = {}
    for i, settlement in enumerate(settlements):
        if settlement.status is Status.COMPLETED and not settlement.keyed and settlement.concurrency_key is None:
            plain[settlement.queue].append(i)
    requests = {queue: (_completions([settlements[i] for i in places]),) for queue, places in plain.items()}
    replies = await access.calls("complete", requests)
    for queue, places in plain.items():
        answers |= {i: Settled.SETTLED for i, done in zip(places, replies[queue], strict=True) if done}
    for i, settlement in enumerate(settlements):
        if i not in answers:
            answers[i] = await _settle_one(access, settlement)
    return [answers[i] for i in range(len(settlements))]


def _completions(settlements: Sequence[Settlement]) -> tuple[list[str], list[int], list[int], list[str]]:
    return (
        [s.id for s in settlements],
        [s.attempt for s in settlements],
        [-1 if s.started_after is None else s.started_after for s in settlements],
        [s.result or "" for s in settlements],
    )


async def _settle_one(access: Access, settlement: Settlement) -> Settled:
    raise NotImplementedError
