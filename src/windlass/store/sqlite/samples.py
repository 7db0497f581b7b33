"""sample, course: what is made of meters, and what is kept of it."""

from collections.abc import Sequence

from windlass.core.course import Stretch, Window
from windlass.core.meter import Meter
from windlass.core.moments import Micros
from windlass.core.samples import KEPT_FOR, MINUTE, Depth, pruned_until
from windlass.store.meters import to_meter
from windlass.store.records import Counts
from windlass.store.samples import depth_values, sample_values, to_depth
from windlass.store.sqlite import look, meters
from windlass.store.sqlite.access import Access
from windlass.store.sqlite.db import Db


class SqliteShelves:
    """Looks in the lane of reads, writes in that of writes: nobody waits while minutes are added up."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Micros:
        return await self._access.read(lambda db: db.now)

    async def slots(self, since: Micros, until: Micros) -> list[Meter]:
        values = {"since": since, "until": until}
        return [to_meter(row) for row in await self._access.read(lambda db: db.rows("slots", values))]

    async def last(self, step: Micros, at_most: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "last_sampled", {"step": step, "at_most": at_most}))

    async def first(self, step: Micros, at_least: Micros) -> Micros | None:
        return await self._access.read(lambda db: _moment(db, "first_sampled", {"step": step, "at_least": at_least}))

    async def was_looked_at(self, minute: Micros) -> bool:
        return bool(await self._access.read(lambda db: db.rows("was_looked_at", {"step": MINUTE, "slot": minute})))

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await self._access.read(lambda db: (look.counts(db), meters.oldest(db)))

    async def stretch(self, window: Window) -> Stretch:
        return await self._access.read(lambda db: _stretch(db, window))

    async def sample(self, step: Micros, made: Sequence[Meter], looked: Sequence[Depth]) -> None:
        def work(db: Db) -> None:
            db.run_many("set_sample", [sample_values(step, meter) for meter in made])
            db.run_many("set_depth", [depth_values(step, depth) for depth in looked])

        await self._access.write(work)


def prune_samples(db: Db) -> None:
    """Drop minutes and hours that are kept no longer."""
    for step in KEPT_FOR:
        until = pruned_until(db.now, step, _moment(db, "first_sampled", {"step": step, "at_least": 0}))
        gone = {"step": step, "since": 0, "until": until}
        db.run("prune_samples", gone)
        db.run("prune_depths", gone)


def _stretch(db: Db, window: Window) -> Stretch:
    times = {"step": window.step, "since": window.since, "until": window.until, "queue": window.queue}
    return Stretch(
        tuple(to_meter(row) for row in db.rows("samples", {**times, "type": window.type})),
        tuple(to_depth(row) for row in db.rows("depths", times)),
    )


def _moment(db: Db, name: str, values: dict[str, Micros]) -> Micros | None:
    found: Micros | None = db.rows(name, values)[0][0]
    return found
