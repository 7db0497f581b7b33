"""settle: record how attempts ended, fenced by (job, attempt)."""

from collections.abc import Sequence
from typing import Any

from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.store.ending import is_repeat
from windlass.store.records import Settled
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import by_queue, first_portion
from windlass.store.redis.dependencies.dependents import continue_completion, notify_dependents, replace_and_notify
from windlass.store.redis.operator.read_records import JobView, read_anywhere, read_records
from windlass.store.redis.operator.replace import MAX_TRIES, Pair, contended, first_of_each, pairs_by_queue
from windlass.store.redis.records.ending import end_attempt
from windlass.store.redis.records.record import Letter

DONE, NOT_YET = 1, -1
"""Replies of complete.lua for a job."""
MAX_COMPLETED = 500

Numbered = dict[int, Settlement]
"""Settlements by their index in the call."""


async def settle(access: Access, settlements: Sequence[Settlement]) -> list[Settled]:
    """Completions are one batch for each queue; the others are decided here, in two round trips."""
    asked = dict(enumerate(settlements))
    answers = await _complete(access, {i: each for i, each in asked.items() if each.status is Status.COMPLETED})
    await _settle_others(access, {i: each for i, each in asked.items() if i not in answers}, answers)
    return [answers[i] for i in asked]


async def _complete(access: Access, asked: Numbered) -> dict[int, Settled]:
    """Record completions of running attempts; the others have no answer yet."""
    answers: dict[int, Settled] = {}
    waiting = by_queue(asked, lambda i: asked[i].queue)
    while waiting:
        batches = {
            queue: first_portion(indexes, lambda i: len(asked[i].result or ""), MAX_COMPLETED)
            for queue, indexes in waiting.items()
        }
        requests = {queue: (_completions([asked[i] for i in indexes]),) for queue, indexes in batches.items()}
        replies = await access.call_queues("complete", requests)
        more: dict[str, list[Any]] = {}
        for queue, indexes in batches.items():
            reply = replies[queue]
            if len(reply) > len(indexes):
                more[queue], reply = reply[len(indexes) :], reply[: len(indexes)]
            answers |= {i: Settled.SETTLED for i, done in zip(indexes, reply, strict=True) if done == DONE}
            left = [i for i, done in zip(indexes, reply, strict=True) if done == NOT_YET]
            waiting[queue] = left + waiting[queue][len(indexes) :]
        if more:
            await continue_completion(access, more)
        waiting = {queue: indexes for queue, indexes in waiting.items() if indexes}
    return answers


def _completions(settlements: Sequence[Settlement]) -> tuple[list[str], list[int], list[int], list[str]]:
    return (
        [s.id for s in settlements],
        [s.attempt for s in settlements],
        [-1 if s.started_after is None else s.started_after for s in settlements],
        [s.result or "" for s in settlements],
    )


async def _settle_others(access: Access, asked: Numbered, answers: dict[int, Settled]) -> None:
    """Settle the rest. Several for one job are settled in order; a job that changed meanwhile is decided again."""
    for _ in range(len(asked) + MAX_TRIES):
        waiting = {i: each for i, each in asked.items() if i not in answers}
        if not waiting:
            return
        portion = {i: waiting[i] for i in first_of_each({i: each.id for i, each in waiting.items()})}
        indexes = by_queue(portion.values(), lambda each: each.queue)
        view = await read_records(access, {queue: [each.id for each in mine] for queue, mine in indexes.items()})
        pairs: dict[int, tuple[str, Pair]] = {}
        for i, each in portion.items():
            seen = view.jobs.get(each.id)
            if seen is None or seen.record.letter != Letter.RUNNING or seen.record.attempt != each.attempt:
                continue
            pairs[i] = seen.queue, (seen.record, end_attempt(seen.record, seen.queue, each, seen.now))
        late = {i: each for i, each in portion.items() if i not in pairs}
        answers |= await _settled_before(access, late, view)
        replaced = await replace_and_notify(access, pairs_by_queue(list(pairs.values())))
        answers |= {i: Settled.SETTLED for i in pairs if replaced[portion[i].id].status is not None}
    raise contended(access, next(iter(asked.values())).id)


async def _settled_before(access: Access, late: Numbered, view: JobView) -> dict[int, Settled]:
    """The answer for an attempt that is not running: a repeat finds its outcome recorded, anything else is stale.

    The first call may have lost its reply before dependents were notified.
    """
    known = view.jobs.keys() | view.tombstones.keys()
    elsewhere = {each.id for each in late.values()} - known
    anywhere = await read_anywhere(access, elsewhere) if elsewhere else view
    answers = {
        i: Settled.ALREADY if _recorded(each, view) or _recorded(each, anywhere) else Settled.STALE
        for i, each in late.items()
    }
    await notify_dependents(access, {late[i].queue for i, answer in answers.items() if answer is Settled.ALREADY})
    return answers


def _recorded(settlement: Settlement, view: JobView) -> bool:
    seen, tomb = view.jobs.get(settlement.id), view.tombstones.get(settlement.id)
    if seen is not None:
        record = seen.record
        return is_repeat(settlement, record.attempt, record.status, record.details.attempts)
    return tomb is not None and (tomb.attempt, tomb.outcome) == (settlement.attempt, settlement.outcome)
