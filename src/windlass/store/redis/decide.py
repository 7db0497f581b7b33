"""What people do with jobs: all of them are looked up, decided about, and written together."""

from collections.abc import Awaitable, Callable, Sequence

from windlass.core.ids import JobId
from windlass.store.records import Moved
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import see_anywhere
from windlass.store.redis.heirs import follow, replace_and_tell
from windlass.store.redis.record import Flag, Record
from windlass.store.redis.replace import MOST_TRIES, Replaced, busy, by_queue
from windlass.store.redis.sight import MOST_SEEN, Seen

Decide = Callable[[Seen], Record | None]
"""The record as it shall be: the very one that was seen if it is so already, None if that may not be."""

Decided = Sequence[tuple[Seen, Record]]
Apply = Callable[[Access, Decided], Awaitable[dict[JobId, Replaced]]]
"""Write what was decided, each job on its own."""

Numbered = dict[int, JobId]


async def replace_decided(access: Access, decided: Decided) -> dict[JobId, Replaced]:
    """Where they are."""
    return await replace_and_tell(access, by_queue([(seen.queue, (seen.record, after)) for seen, after in decided]))


async def decide_all(
    access: Access, ids: Sequence[JobId], decide: Decide, apply: Apply = replace_decided
) -> list[Moved | None]:
    """The answer for each id. One that was changed meanwhile is decided again; one that comes twice, one by one."""
    asked = dict(enumerate(ids))
    answers: dict[int, Moved | None] = {}
    for _ in range(len(asked) + MOST_TRIES):
        turn = first_of_each({i: id_ for i, id_ in asked.items() if i not in answers})
        if not turn:
            return [answers[i] for i in asked]
        answers |= await _decide_some(access, turn, decide, apply)
    raise busy(access, next(id_ for i, id_ in asked.items() if i not in answers))


def first_of_each(waiting: Numbered) -> Numbered:
    """One for each id, as many as a call may take."""
    turn: dict[JobId, int] = {}
    for i, id_ in waiting.items():
        if id_ not in turn and len(turn) < MOST_SEEN:
            turn[id_] = i
    return {i: id_ for id_, i in turn.items()}


async def _decide_some(access: Access, turn: Numbered, decide: Decide, apply: Apply) -> dict[int, Moved | None]:
    """Each id once: the answers of those that nobody changed meanwhile."""
    sight = await see_anywhere(access, turn.values())
    answers: dict[int, Moved | None] = {}
    wanted: dict[int, tuple[Seen, Record]] = {}
    for i, id_ in turn.items():
        seen = sight.jobs.get(id_)
        after = None if seen is None else decide(seen)
        if seen is None:
            answers[i] = None
        elif after is None or after is seen.record:
            answers[i] = Moved(id_, seen.record.status, done=after is not None)
        else:
            wanted[i] = seen, after
    replaced = await apply(access, list(wanted.values()))
    # One that is so already may be so by a call whose reply was lost before others were told.
    settled = [sight.jobs[id_] for i, id_ in turn.items() if i not in wanted and id_ in sight.jobs]
    await follow(access, {seen.queue for seen in settled if seen.record.flags & Flag.HEIRS})
    for i, (seen, _) in wanted.items():
        answer = _moved(seen.record, replaced[seen.record.id])
        if answer is not None:
            answers[i] = answer
    return answers


def _moved(before: Record, replaced: Replaced) -> Moved | None:
    """None: it must be decided again."""
    if replaced.status is not None:
        return Moved(before.id, replaced.status, done=True)
    if replaced.holder is not None:
        return Moved(before.id, before.status, done=False, holder=replaced.holder)
    if replaced.parent is not None:
        return Moved(before.id, before.status, done=False, parent=replaced.parent)
    return None
