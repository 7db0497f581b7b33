"""sample, course: what is made of meters, and what is kept of it."""

from collections.abc import Sequence
from typing import Any

from windlass.core.course import Stretch, Window
from windlass.core.meter import COUNTERS, Meter
from windlass.core.moments import Micros
from windlass.core.samples import KEPT_FOR, MINUTE, Depth, pruned_until
from windlass.store.meters import to_meter
from windlass.store.postgres import look, meters
from windlass.store.postgres.access import Access
from windlass.store.postgres.db import Db
from windlass.store.records import Counts
from windlass.store.samples import depth_values, sample_values, to_depth

_SAMPLE = ("slot", "queue", "type", *COUNTERS, "wait", "run")
_DEPTH = ("slot", "queue", "looks", "jobs", "most", "oldest")


class PostgresShelves:
    """Each look is a statement of its own, so that no snapshot is held while minutes are added up."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Micros:
        return await self._access.read(lambda db: db.now())

    async def slots(self, since: Micros, until: Micros) -> list[Meter]:
        rows = await self._access.read(lambda db: db.rows("slots", {"since": since, "until": until}))
        return [to_meter(tuple(row)) for row in rows]

    async def last(self, step: Micros, at_most: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "last_sampled", {"step": step, "at_most": at_most}))

    async def first(self, step: Micros, at_least: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "first_sampled", {"step": step, "at_least": at_least}))

    async def was_looked_at(self, minute: Micros) -> bool:
        return bool(await self._access.read(lambda db: db.rows("was_looked_at", {"step": MINUTE, "slot": minute})))

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await self._access.read(look.counts), await self._access.read(meters.oldest)

    async def stretch(self, window: Window) -> Stretch:
        return await self._access.read(lambda db: _stretch(db, window))

    async def sample(self, step: Micros, made: Sequence[Meter], looked: Sequence[Depth]) -> None:
        samples = _columns(_SAMPLE, [sample_values(step, meter) for meter in made])
        depths = _columns(_DEPTH, [depth_values(step, depth) for depth in looked])

        async def work(db: Db) -> None:
            if made:
                await db.run("set_samples", {"step": step, **samples})
            if looked:
                await db.run("set_depths", {"step": step, **depths})

        await self._access.write(work)


class SamplePruner:
    """Drops what is kept no longer, and remembers how far: a held snapshot keeps the dead rows before that."""

    def __init__(self) -> None:
        self._gone = dict.fromkeys(KEPT_FOR, 0)

    async def prune(self, access: Access) -> None:
        """Some of it, if there is a lot."""
        for step in KEPT_FOR:
            self._gone[step] = await self._prune(access, step)

    async def _prune(self, access: Access, step: Micros) -> Micros:
        return await access.write(lambda db: _prune(db, step, self._gone[step]))


async def _prune(db: Db, step: Micros, since: Micros) -> Micros:
    now = await db.now()
    if pruned_until(now, step, None) < since:
        since = 0  # The clock was set back; what was made since then is older than what we have seen.
    until = pruned_until(now, step, await _moment(db, "first_sampled", {"step": step, "at_least": since}))
    if until > since:
        gone = {"step": step, "since": since, "until": until}
        await db.run("prune_samples", gone)
        await db.run("prune_depths", gone)
    return max(since, until)


async def _stretch(db: Db, window: Window) -> Stretch:
    times = {"step": window.step, "since": window.since, "until": window.until, "queue": window.queue}
    made = await db.rows("samples", {**times, "type": window.type})
    return Stretch(
        tuple(to_meter(tuple(row)) for row in made),
        tuple(to_depth(tuple(row)) for row in await db.rows("depths", times)),
    )


async def _moment(db: Db, name: str, values: dict[str, Micros]) -> Micros | None:
    found: Micros | None = (await db.rows(name, values))[0][0]
    return found


def _columns(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """One array for each column, called by its plural."""
    plural = {"looks": "looks", "jobs": "jobs"}
    return {plural.get(name, f"{name}s"): [row[name] for row in rows] for name in names}
