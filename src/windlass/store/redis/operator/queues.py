"""Queues: declared settings, the operator's changes, and whether they are paused.

A queue is one hash. It is read, decided in Python, and written only if it has not changed since; else decided
again.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.moments import Micros, to_datetime
from windlass.errors import StoreUnavailable
from windlass.store.queues import with_change
from windlass.store.redis.connection.access import Access
from windlass.store.redis.records.queue_settings import FIELDS, READ, kept_settings, queue_of

MAX_TRIES = 50


class QueueState(msgspec.Struct, frozen=True):
    """A queue as it was read."""

    queue: Queue
    version: int
    """Grows with every write."""
    now: Micros


Decide = Callable[[QueueState], Queue]


async def declare(access: Access, queues: dict[str, QueueSettings]) -> None:
    """Store what the code declares; the operator's change stays."""

    def to_declare(settings: QueueSettings) -> Decide:
        return lambda kept: msgspec.structs.replace(kept.queue, declared=settings)

    await _write(access, {name: to_declare(settings) for name, settings in queues.items()})


async def change(
    access: Access, name: str, changed: QueueSettings, was: QueueSettings | None = None, version: str | None = None
) -> Queue:
    """Replace the operator's changes, if they are still `was`."""
    return await _write_one(access, name, lambda kept: with_change(kept.queue, changed, was, version))


async def pause(access: Access, name: str, length: Micros | None, version: str | None = None) -> Queue:
    """Stop claims from it, for a time or until it is resumed."""

    def paused(kept: QueueState) -> Queue:
        kept.queue.check(version)
        until = None if length is None else to_datetime(kept.now + length)
        return msgspec.structs.replace(kept.queue, paused=True, paused_until=until)

    return await _write_one(access, name, paused)


async def resume(access: Access, name: str, version: str | None = None) -> Queue:
    """Allow claims again."""
    return await _set(access, name, version, paused=False, paused_until=None)


async def close(access: Access, name: str, version: str | None = None) -> Queue:
    """Refuse new jobs."""
    return await _set(access, name, version, closed=True)


async def open_(access: Access, name: str, version: str | None = None) -> Queue:
    """Accept new jobs again."""
    return await _set(access, name, version, closed=False)


async def _set(access: Access, name: str, version: str | None, **values: object) -> Queue:
    def decide(kept: QueueState) -> Queue:
        kept.queue.check(version)
        return msgspec.structs.replace(kept.queue, **values)

    return await _write_one(access, name, decide)


async def all_queues(access: Access) -> list[Queue]:
    """Every queue that was declared, changed or used."""
    kept = await read_queues(access, await access.queue_names())
    return [kept[name].queue for name in sorted(kept)]


async def read_queues(access: Access, names: Iterable[str]) -> dict[str, QueueState]:
    """The state of queues, in one round trip; a new one is created."""
    replies = await access.call_queues("read_queue", dict.fromkeys(names, (READ,)))
    return {
        name: QueueState(queue_of(name, values, int(now)), int(version), int(now))
        for name, (now, version, values) in replies.items()
    }


async def _write_one(access: Access, name: str, decide: Decide) -> Queue:
    return (await _write(access, {name: decide}))[name]


async def _write(access: Access, decisions: Mapping[str, Decide]) -> dict[str, Queue]:
    """Read, decide and write queues, in two round trips for all of them; unchanged ones are not written."""
    done: dict[str, Queue] = {}
    for _ in range(MAX_TRIES):
        kept = await read_queues(access, decisions.keys() - done.keys())
        decided = {name: decisions[name](each) for name, each in kept.items()}
        requests = {
            name: (_request(decided[name], each.version),)
            for name, each in kept.items()
            if decided[name] != each.queue
        }
        written = await access.call_queues("set_queue", requests)
        done |= {name: queue for name, queue in decided.items() if written.get(name, 1)}
        if len(done) == len(decisions):
            return done
    raise StoreUnavailable(f"{access.server.shown}: other processes keep changing the settings of a queue")


def _request(queue: Queue, version: int) -> tuple[int, list[str | int], list[str]]:
    values = kept_settings(queue)
    pairs = [each for pair in values.items() for each in pair]
    return version, pairs, [field for field in FIELDS if field not in values]
