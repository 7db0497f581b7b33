"""Samples made of meters, and queue depths."""

from collections.abc import Sequence
from typing import Any

from windlass.core.moments import Micros
from windlass.core.stats.meter import COUNTERS, Meter
from windlass.core.stats.samples import MINUTE, SAMPLE_RETENTION, Depth, pruned_until
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.history import meters
from windlass.store.postgres.verbs import read_jobs
from windlass.store.records import Counts
from windlass.store.rows import to_meter
from windlass.store.samples import depth_values, sample_values, to_depth

_SAMPLE = ("slot", "queue", "type", *COUNTERS, "wait", "run")
_DEPTH = ("slot", "queue", "looks", "jobs", "most", "oldest")


class PostgresSamples:
    """Each read is a statement of its own, so that no snapshot is held while minutes are summed up."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Micros:
        return await self._access.read(lambda db: db.now())

    async def slots(self, since: Micros, until: Micros) -> list[Meter]:
        rows = await self._access.read(lambda db: db.rows("meters_between", {"since": since, "until": until}))
        return [to_meter(tuple(row)) for row in rows]

    async def last(self, step: Micros, at_most: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "last_sampled", {"step": step, "at_most": at_most}))

    async def first(self, step: Micros, at_least: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "first_sampled", {"step": step, "at_least": at_least}))

    async def was_looked_at(self, minute: Micros) -> bool:
        return bool(await self._access.read(lambda db: db.rows("has_depths", {"step": MINUTE, "slot": minute})))

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await self._access.read(read_jobs.counts), await self._access.read(meters.oldest)

    async def stretch(self, window: SampleQuery) -> Samples:
        return await self._access.read(lambda db: _stretch(db, window))

    async def sample(self, step: Micros, made: Sequence[Meter], looked: Sequence[Depth]) -> None:
        samples = _columns(_SAMPLE, [sample_values(step, meter) for meter in made])
        depths = _columns(_DEPTH, [depth_values(step, depth) for depth in looked])

        async def work(db: Db) -> None:
            if made:
                await db.run("set_samples", {"step": step, **samples})
            if looked:
                await db.run("set_queue_depths", {"step": step, **depths})

        await self._access.write(work)


class SamplePruner:
    """Prunes samples, and remembers how far: an old snapshot keeps dead rows before that."""

    def __init__(self) -> None:
        self._gone = dict.fromkeys(SAMPLE_RETENTION, 0)

    async def prune(self, access: Access) -> None:
        """A part, if there is a lot."""
        for step in SAMPLE_RETENTION:
            self._gone[step] = await self._prune(access, step)

    async def _prune(self, access: Access, step: Micros) -> Micros:
        return await access.write(lambda db: _prune(db, step, self._gone[step]))


async def _prune(db: Db, step: Micros, since: Micros) -> Micros:
    now = await db.now()
    if pruned_until(now, step, None) < since:
        since = 0  # the clock was set back: newer samples are older than what was pruned
    until = pruned_until(now, step, await _moment(db, "first_sampled", {"step": step, "at_least": since}))
    if until > since:
        gone = {"step": step, "since": since, "until": until}
        await db.run("prune_samples", gone)
        await db.run("prune_queue_depths", gone)
    return max(since, until)


async def _stretch(db: Db, window: SampleQuery) -> Samples:
    times = {"step": window.step, "since": window.since, "until": window.until, "queue": window.queue}
    made = await db.rows("samples", {**times, "type": window.type})
    return Samples(
        tuple(to_meter(tuple(row)) for row in made),
        tuple(to_depth(tuple(row)) for row in await db.rows("queue_depths", times)),
    )


async def _moment(db: Db, name: str, values: dict[str, Micros]) -> Micros | None:
    found: Micros | None = (await db.rows(name, values))[0][0]
    return found


def _columns(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """One array per column, named by its plural."""
    plural = {"looks": "looks", "jobs": "jobs"}
    return {plural.get(name, f"{name}s"): [row[name] for row in rows] for name in names}
