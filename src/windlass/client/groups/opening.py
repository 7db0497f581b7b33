"""The document of an open group, with its size once it is sealed; also of a retried group with a time limit.

The document is stored before the group, so a group without one has outlived it, and counts as sealed.
"""

from collections.abc import Callable

import msgspec

from windlass.client.groups.members import stored_size
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import DAY, Micros
from windlass.store.contract import Store

KIND = "group"
KEEP: Micros = 60 * DAY


class Opening(msgspec.Struct, frozen=True):
    """The state of an open group."""

    touched: Micros
    """When its producer last showed that it is alive, by the store's clock."""
    size: int | None = None
    """How many members its producer added; None: it is not sealed."""
    abandoned: bool = False
    """Whether a watching job sealed it for its producer."""
    since: Micros = 0
    """When a retry restarted its time; 0: its time began with its enqueue."""


async def read_opening(store: Store, group: JobId) -> Opening | None:
    """The document; None if it is not kept."""
    (found,) = await store.documents.get(KIND, [group])
    return None if found is None else msgspec.json.decode(found.data, type=Opening)


async def begin_group(store: Store, group: JobId) -> Job | None:
    """The job of the group, if it is stored; else the document is replaced by that of a new group.

    A seal is written after its group is stored. The document is read first, so one without a group is that of an
    earlier group with this name, or of a producer that begins the same group at this moment. Only what was read
    is replaced: if that producer has stored and sealed the group meanwhile, its seal stays.
    """
    while True:
        (known,) = await store.documents.get(KIND, [group])
        job = (await store.operator.get([group]))[0]
        if known is None:
            await open_group(store, group)
        if known is None or job is not None:
            return job
        if await store.documents.replace(KIND, group, _text(Opening(await store_time(store))), known.version, KEEP):
            return None


async def open_group(store: Store, group: JobId) -> Opening:
    """Add the document of a group that is not stored yet; returns another producer's document if there is one."""
    opening = Opening(await store_time(store))
    found = await store.documents.add(KIND, group, _text(opening), KEEP)
    return opening if found is None else msgspec.json.decode(found.data, type=Opening)


async def touch_group(store: Store, group: JobId) -> None:
    """Record that the producer is alive."""
    now = await store_time(store)
    await _change(store, group, lambda known: msgspec.structs.replace(known, touched=now))


async def seal_group(store: Store, group: JobId, size: int, *, abandoned: bool = False) -> int:
    """Seal the group: its producer adds no more members; returns the size that holds, as the first seal wins."""
    sealed = {"size": size, "abandoned": abandoned}
    found = await _change(store, group, lambda known: msgspec.structs.replace(known, **sealed))
    return size if found.size is None else found.size


async def close_group(store: Store, group: JobId) -> None:
    """Seal a cancelled group with the members that are stored; a retry opens it again for its producer."""
    opening = await read_opening(store, group)
    if opening is not None and opening.size is None:
        await seal_group(store, group, await stored_size(store.operator, group), abandoned=True)


async def restart_time(store: Store, group: JobId, size: int | None) -> None:
    """Restart the time of a group, and open an abandoned one again.

    `size` is that of a group that has no document because it was never open.
    """
    now = await store_time(store)
    await store.documents.add(KIND, group, _text(Opening(now, size)), KEEP)

    def restart(known: Opening) -> Opening:
        return Opening(touched=now, size=None if known.abandoned else known.size, since=now)

    await _change(store, group, restart, sealed=True)


async def _change(
    store: Store, group: JobId, change: Callable[[Opening], Opening], *, sealed: bool = False
) -> Opening:
    """Compare-and-set, repeated after a concurrent change; a sealed group stays as it is, unless `sealed`."""
    while True:
        (found,) = await store.documents.get(KIND, [group])
        if found is None:
            await open_group(store, group)
            continue
        known = msgspec.json.decode(found.data, type=Opening)
        if known.size is not None and not sealed:
            return known
        if await store.documents.replace(KIND, group, _text(change(known)), found.version):
            return change(known)


async def store_time(store: Store) -> Micros:
    """Now, by the store's clock."""
    return (await store.operator.ended(None, None, 0)).now


def _text(opening: Opening) -> str:
    return msgspec.json.encode(opening).decode()
