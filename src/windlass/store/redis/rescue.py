"""rescue: what a gone runner held is put back. The lease goes first, the jobs after it.

The office lets the lease go, and remembers the runner as a wreck; each queue then notes that it is gone, so that no
claim of it comes later, and what it held there is put back in portions. If the rescuer dies in between, whoever comes
next is told of the wreck. Several may be at it at the same time: a job is put back by one of them.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from windlass.core.moments import SECOND, Micros
from windlass.core.outcome import LOST, Fate
from windlass.store.clock import since_boot
from windlass.store.ending import Running, fate_of, fated
from windlass.store.records import Rescued, RunnerEnd
from windlass.store.redis.access import Access
from windlass.store.redis.ending import end, running_of
from windlass.store.redis.heirs import replace_and_tell
from windlass.store.redis.leases import Berths, berths_of
from windlass.store.redis.record import Record, unpack

PORTION = 100
"""Jobs put back by one call of a script."""
STRAYS_EVERY: Micros = 5 * SECOND
"""They are rare, and every queue is asked for them."""


class Rescuer:
    """Looks for the gone, and puts back what they held."""

    def __init__(self) -> None:
        self._strays_on: Micros = 0

    async def rescue(self, access: Access, limit: int) -> list[Rescued]:
        """Of up to `limit` runners whose leases lapsed; now and then also of those that the office never heard of."""
        rescued: list[Rescued] = []
        more = 1
        while more and limit > 0:
            runners, berths, more = await access.office("sink", (limit,))
            rescued += await _put_back(access, berths_of(berths), lambda _: LOST)
            if runners:
                await access.office("salvaged", [runner.decode() for runner in runners])
            limit -= len(runners)
        now = since_boot()
        if now - self._strays_on >= STRAYS_EVERY:
            self._strays_on = now
            rescued += await _put_back(access, await _strays(access), lambda _: LOST)
        return rescued


async def end_runner(access: Access, ended: RunnerEnd) -> list[Rescued]:
    """The supervisor saw its runner end, and knows which jobs had started."""
    berths = await access.office("end_runner", (ended.runner,))
    rescued = await _put_back(access, berths_of(berths), lambda job: fate_of(job, ended))
    await access.office("salvaged", (ended.runner,))
    return rescued


async def _strays(access: Access) -> Berths:
    """Runners that queues know and the office does not: of a cluster one server may have lost its last second."""
    aboard = await access.calls("aboard", dict.fromkeys(await access.queue_names(), ((),)))
    known = set(await access.command("HKEYS", "leases"))
    strays: Berths = defaultdict(list)
    for queue, runners in aboard.items():
        strays[queue] += [runner.decode() for runner in runners if runner not in known]
    return {queue: runners for queue, runners in strays.items() if runners}


async def _put_back(access: Access, berths: Berths, fate: Callable[[Running], Fate]) -> list[Rescued]:
    """All that these runners hold in these queues, each queue in so many portions as it takes."""
    rescued: list[Rescued] = []
    while berths:
        replies = await access.calls("desert", {queue: ((runners, PORTION),) for queue, runners in berths.items()})
        held = {queue: (now, _records(rows)) for queue, (now, _, *rows) in replies.items() if rows}
        rescued += await _end(access, held, fate)
        berths = {queue: berths[queue] for queue, (_, more, *rows) in replies.items() if more or rows}
    return sorted(rescued, key=lambda each: each.id)


async def _end(
    access: Access, held: dict[str, tuple[Micros, list[Record]]], fate: Callable[[Running], Fate]
) -> list[Rescued]:
    """Those that nobody has ended meanwhile."""
    endings = {
        record.id: fated(fate(running_of(record, queue)))
        for queue, (_, records) in held.items()
        for record in records
    }
    changes = {
        queue: [(record, end(record, queue, endings[record.id], now)) for record in records]
        for queue, (now, records) in held.items()
    }
    replaced = await replace_and_tell(access, changes)
    return [
        Rescued(old.id, old.fields.type, queue, old.attempt, status, endings[old.id].outcome, old.runner)
        for queue, pairs in changes.items()
        for old, _ in pairs
        if (status := replaced[old.id].status) is not None
    ]


def _records(rows: Sequence[tuple[bytes, bytes, bytes]]) -> list[Record]:
    return [unpack(id_.decode(), value, more) for id_, value, more in rows]
