"""settle: record how attempts ended, fenced by (job, attempt)."""

from collections.abc import Sequence
from operator import attrgetter

from windlass.core.ids import JobId
from windlass.core.outcome import Settlement
from windlass.core.queue import DEFAULT_RETENTION, TOMBSTONE
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.ending import Running, is_repeat, settled
from windlass.store.keys import Keyed
from windlass.store.postgres import packing
from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db
from windlass.store.postgres.ending import end
from windlass.store.postgres.heirs import follow
from windlass.store.postgres.keys import release
from windlass.store.postgres.trouble import state_of
from windlass.store.records import Settled

_THERE_ALREADY = "23505"


async def settle(access: Access, settlements: Sequence[Settlement]) -> tuple[list[Settled], bool]:
    """What became of each, and whether others may run now because of that.

    One that cannot be settled must not keep the others of its batch from it, again and again.
    """
    try:
        return await _settle(access, settlements)
    except StoreUnavailable as error:
        if error.__cause__ is None or state_of(error.__cause__) != _THERE_ALREADY:
            raise
    await access.write(lambda db: _drop_twins(db, [s.id for s in settlements]))
    return await _settle(access, settlements)


async def _drop_twins(db: Db, ids: list[JobId]) -> None:
    """Jobs that have ended before, and were handed in again where nobody could see that: what is recorded stands."""
    rows = await db.rows("drop_twins", {"ids": ids})
    await release(db, [Keyed(*row[:4]) for row in rows])
    if awaited := [row[0] for row in rows if row[4]]:
        await follow(db, {row[0]: Status(row[1]) for row in await db.rows("lock_finished", {"ids": awaited})})


async def _settle(access: Access, settlements: Sequence[Settlement]) -> tuple[list[Settled], bool]:
    """Completions go by one statement; the others, and what was not as it said, by a transaction after it."""
    # In the order of their ids, in which everybody locks jobs: so nobody waits in a circle.
    plain = sorted((s for s in settlements if s.status is Status.COMPLETED), key=attrgetter("id"))
    if len({s.id for s in settlements}) != len(settlements):
        plain = []
    missing = await access.once(lambda db: _complete(db, plain)) if plain else set()
    # Among those that are missing is nobody, if heirs of others may run.
    ready = None in missing
    done = {s.id for s in plain if s.id not in missing}
    rest = [s for s in settlements if s.id not in done] if len(done) < len(settlements) else []
    answers = dict.fromkeys(range(len(settlements)), Settled.SETTLED)
    if rest:
        found = iter(await _after(access, rest, doubtful=bool(done)))
        answers |= {i: next(found) for i, s in enumerate(settlements) if s.id not in done}
        ready = ready or any(s.status in (Status.COMPLETED, Status.PENDING) for s in rest)
    return list(answers.values()), ready


async def _after(access: Access, rest: Sequence[Settlement], *, doubtful: bool) -> list[Settled]:
    """The others. Though they cannot be settled, completions before them are: nobody may say that nothing is done."""
    try:
        return await access.write(lambda db: _settle_others(db, rest))
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or doubtful
        raise


async def _complete(db: Db, settlements: Sequence[Settlement]) -> set[JobId | None]:
    """Move them into history: those that are not running as they say are left out, and answered.

    None is among the answers if heirs of theirs may run now.
    """
    values = {
        "ids": packing.ids([s.id for s in settlements]),
        "attempts": packing.numbers([s.attempt for s in settlements]),
        "started": packing.numbers([s.started_after for s in settlements]),
        "results": packing.texts([s.result for s in settlements]),
        "keep": DEFAULT_RETENTION[Status.COMPLETED],
        "tombstone": TOMBSTONE,
    }
    return {row[0] for row in await db.rows("complete", values)}


async def _settle_others(db: Db, settlements: Sequence[Settlement]) -> list[Settled]:
    ids, attempts = [s.id for s in settlements], [s.attempt for s in settlements]
    rows = await db.rows("running", {"ids": ids, "attempts": attempts})
    running = {(row[0], row[3]): Running(*row) for row in rows}
    endings, answers = [], []
    for settlement in settlements:
        # Taken out: a settlement that comes twice in one call is a repeat of itself.
        job = running.pop((settlement.id, settlement.attempt), None)
        answers.append(None if job is None else Settled.SETTLED)
        if job is not None:
            endings.append((job, settled(settlement)))
    await end(db, endings)
    unsettled = [s for s, answer in zip(settlements, answers, strict=True) if answer is None]
    repeats = await _repeats(db, unsettled)
    return [
        answer or (Settled.ALREADY if (s.id, s.attempt, s.outcome) in repeats else Settled.STALE)
        for s, answer in zip(settlements, answers, strict=True)
    ]


async def _repeats(db: Db, settlements: Sequence[Settlement]) -> set[tuple[JobId, int, str]]:
    """Those that find their own outcome recorded; anything else is stale."""
    if not settlements:
        return set()
    values = {"ids": [s.id for s in settlements]}
    recorded = {row[0]: row[1:] for row in await db.rows("recorded", values)}
    buried = {tuple(row) for row in await db.rows("buried", values)}
    repeats = {(s.id, s.attempt, s.outcome) for s in settlements if (s.id, s.attempt, s.outcome) in buried}
    return repeats | {
        (s.id, s.attempt, s.outcome) for s in settlements if s.id in recorded and is_repeat(s, *recorded[s.id])
    }
