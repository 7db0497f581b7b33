"""settle: record how attempts ended, fenced by (job, attempt)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.store.ending import is_repeat, settled
from windlass.store.records import Settled
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import see_anywhere
from windlass.store.redis.ending import end
from windlass.store.redis.heirs import follow, hand_on, replace_and_tell
from windlass.store.redis.portion import first_portion
from windlass.store.redis.record import Letter
from windlass.store.redis.replace import MOST_TRIES, Pair, busy, by_queue
from windlass.store.redis.sight import MOST_SEEN, Sight, see

DONE, NOT_YET = 1, -1
"""What complete.lua says of a job."""
MOST_COMPLETED = 500

Numbered = dict[int, Settlement]
"""Settlements by their place among those that were asked for."""


async def settle(access: Access, settlements: Sequence[Settlement]) -> list[Settled]:
    """Completions go as one batch for each queue; the others are decided here, all in two trips."""
    asked = dict(enumerate(settlements))
    answers = await _complete(access, {i: each for i, each in asked.items() if each.status is Status.COMPLETED})
    await _settle_others(access, {i: each for i, each in asked.items() if i not in answers}, answers)
    return [answers[i] for i in asked]


async def _complete(access: Access, asked: Numbered) -> dict[int, Settled]:
    """Those that ran as they say; for the others nothing is answered yet."""
    answers: dict[int, Settled] = {}
    waiting: dict[str, list[int]] = defaultdict(list)
    for i, each in asked.items():
        waiting[each.queue].append(i)
    while waiting:
        batches = {
            queue: first_portion(places, lambda i: len(asked[i].result or ""), MOST_COMPLETED)
            for queue, places in waiting.items()
        }
        requests = {queue: (_completions([asked[i] for i in places]),) for queue, places in batches.items()}
        replies = await access.calls("complete", requests)
        more: dict[str, list[Any]] = {}
        for queue, places in batches.items():
            reply = replies[queue]
            if len(reply) > len(places):
                more[queue], reply = reply[len(places) :], reply[: len(places)]
            answers |= {i: Settled.SETTLED for i, done in zip(places, reply, strict=True) if done == DONE}
            left = [i for i, done in zip(places, reply, strict=True) if done == NOT_YET]
            waiting[queue] = left + waiting[queue][len(places) :]
        if more:
            await hand_on(access, more)
        waiting = {queue: places for queue, places in waiting.items() if places}
    return answers


def _completions(settlements: Sequence[Settlement]) -> tuple[list[str], list[int], list[int], list[str]]:
    return (
        [s.id for s in settlements],
        [s.attempt for s in settlements],
        [-1 if s.started_after is None else s.started_after for s in settlements],
        [s.result or "" for s in settlements],
    )


async def _settle_others(access: Access, asked: Numbered, answers: dict[int, Settled]) -> None:
    """Of several for one job the first is settled first; who was changed meanwhile is decided again."""
    for _ in range(len(asked) + MOST_TRIES):
        waiting = {i: each for i, each in asked.items() if i not in answers}
        if not waiting:
            return
        turn = _first_of_each(waiting)
        sight = await see(access, _ids_by_queue(turn.values()))
        pairs: dict[int, tuple[str, Pair]] = {}
        for i, each in turn.items():
            seen = sight.jobs.get(each.id)
            if seen is None or seen.record.letter != Letter.RUNNING or seen.record.attempt != each.attempt:
                continue
            pairs[i] = seen.queue, (seen.record, end(seen.record, seen.queue, settled(each), seen.now))
        late = {i: each for i, each in turn.items() if i not in pairs}
        answers |= await _already(access, late, sight)
        replaced = await replace_and_tell(access, by_queue(list(pairs.values())))
        answers |= {i: Settled.SETTLED for i in pairs if replaced[turn[i].id].status is not None}
    raise busy(access, next(iter(asked.values())).id)


def _first_of_each(waiting: Numbered) -> Numbered:
    """One for each job, as many as a call may take."""
    turn: Numbered = {}
    ids: set[JobId] = set()
    for i, each in waiting.items():
        if each.id not in ids and len(ids) < MOST_SEEN:
            turn[i] = each
            ids.add(each.id)
    return turn


def _ids_by_queue(settlements: Iterable[Settlement]) -> dict[str, list[JobId]]:
    ids: dict[str, list[JobId]] = defaultdict(list)
    for each in settlements:
        ids[each.queue].append(each.id)
    return ids


async def _already(access: Access, late: Numbered, sight: Sight) -> dict[int, Settled]:
    """A repeat finds its own outcome recorded; anything else is stale. A job may have been moved since.

    Who repeats it may have lost the reply before others were told.
    """
    known = sight.jobs.keys() | sight.tombs.keys()
    elsewhere = {each.id for each in late.values()} - known
    anywhere = await see_anywhere(access, elsewhere) if elsewhere else sight
    answers = {
        i: Settled.ALREADY if _recorded(each, sight) or _recorded(each, anywhere) else Settled.STALE
        for i, each in late.items()
    }
    await follow(access, {late[i].queue for i, answer in answers.items() if answer is Settled.ALREADY})
    return answers


def _recorded(settlement: Settlement, sight: Sight) -> bool:
    seen, tomb = sight.jobs.get(settlement.id), sight.tombs.get(settlement.id)
    if seen is not None:
        record = seen.record
        return is_repeat(settlement, record.attempt, record.status, record.more.attempts)
    return tomb is not None and (tomb.attempt, tomb.outcome) == (settlement.attempt, settlement.outcome)
