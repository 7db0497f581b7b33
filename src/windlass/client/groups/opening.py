"""What the store knows of a group that is stored before all of its members: a document with its size, once sealed.

It is made before the group, so a group without one has outlived it, and counts as sealed.
"""

from collections.abc import Callable

import msgspec

from windlass.core.ids import JobId
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
    """Whether it was sealed without its producer."""
    since: Micros = 0
    """When its time began anew, because it was retried; 0: with its enqueue."""


async def read_opening(store: Store, group: JobId) -> Opening | None:
    """None: it is not kept."""
    (found,) = await store.documents.get(KIND, [group])
    return None if found is None else msgspec.json.decode(found.data, type=Opening)


async def open_group(store: Store, group: JobId, *, anew: bool = False) -> Opening:
    """Before the group is stored; returns what another producer wrote, if one did.

    `anew`: the group is not stored, so a document that is there is that of an earlier group with this name.
    """
    opening = Opening(await _now(store))
    if anew:
        await store.documents.delete(KIND, [group])
    found = await store.documents.add(KIND, group, _text(opening), KEEP)
    return opening if found is None else msgspec.json.decode(found.data, type=Opening)


async def touch_group(store: Store, group: JobId) -> None:
    """Its producer is alive."""
    now = await _now(store)
    await _change(store, group, lambda known: msgspec.structs.replace(known, touched=now))


async def seal_group(store: Store, group: JobId, size: int, *, abandoned: bool = False) -> int:
    """No more members come from its producer; returns the size that holds now: the first seal wins."""
    sealed = {"size": size, "abandoned": abandoned}
    found = await _change(store, group, lambda known: msgspec.structs.replace(known, **sealed))
    return size if found.size is None else found.size


async def restart_time(store: Store, group: JobId, size: int | None) -> None:
    """Its time begins anew, and an abandoned group is open again.

    `size` is that of a group that has no document because it was never open.
    """
    now = await _now(store)
    await store.documents.add(KIND, group, _text(Opening(now, size)), KEEP)

    def restart(known: Opening) -> Opening:
        return Opening(touched=now, size=None if known.abandoned else known.size, since=now)

    await _change(store, group, restart, sealed=True)


async def _change(
    store: Store, group: JobId, change: Callable[[Opening], Opening], *, sealed: bool = False
) -> Opening:
    """Change the document, whatever others do meanwhile; a sealed one stays as it is, unless asked for."""
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


async def _now(store: Store) -> Micros:
    return (await store.operator.ended(None, None, 0)).now


def _text(opening: Opening) -> str:
    return msgspec.json.encode(opening).decode()
