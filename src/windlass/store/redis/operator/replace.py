"""replace: read records, decide in core, and replace each record by the decided one.

Operator verbs and every ending but a completion work like this. The decision is code that all stores share; a
script applies it only to records that have not changed since, else it is decided again. All are read in one round
trip, and written in one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import MAX_READ, MAX_WRITTEN, call_in_portions, first_portion
from windlass.store.redis.records.record import STATUS, Details, Flag, Record, encode, pack

MAX_TRIES = 50
MAX_REPLACED = 500

Pair = tuple[Record, Record]
"""A record as it was read, and the new one."""


Numbered = dict[int, JobId]
"""Ids by their place in a call."""


class Replaced(msgspec.Struct, frozen=True):
    """The outcome for one record: without a status it was not replaced."""

    status: Status | None
    holder: JobId | None = None
    """Another job that has its idempotency key."""
    parent: JobId | None = None
    """A parent that failed. Without either, a record that was not replaced has changed meanwhile."""


async def replace_all(access: Access, changes: Mapping[str, Sequence[Pair]]) -> dict[JobId, Replaced]:
    """Pairs by queue, each on its own: one round trip, more if texts are long. Each job at most once."""
    replaced: dict[JobId, Replaced] = {}
    async for _, some, answers in call_in_portions(access, "replace_records", changes, _request, _portion):
        replaced |= {before.id: _replaced(reply) for (before, _), reply in zip(some, answers, strict=True)}
    return replaced


def _portion(pairs: Sequence[Pair]) -> Sequence[Pair]:
    return first_portion(pairs, text_of, MAX_REPLACED, MAX_WRITTEN)


def text_of(pair: Pair) -> int:
    """About how many bytes its new record has."""
    _, after = pair
    texts = (after.payload, after.parent_results, after.result, after.details.attempts)
    return sum(len(text) for text in texts if text is not None)


def _replaced(reply: int | bytes) -> Replaced:
    if isinstance(reply, bytes):
        return Replaced(None, reply.decode())
    return Replaced(STATUS[reply] if reply else None)


def _request(pairs: Sequence[Pair]) -> tuple[Any, ...]:
    """The request of replace_records.lua, and its blobs."""
    entries, blobs = [], []
    for before, after in pairs:
        more = after.details != Details()
        after.flags = after.flags | Flag.HAS_DETAILS if more else after.flags & ~Flag.HAS_DETAILS
        had = bool(before.flags & Flag.HAS_DETAILS)
        change = int(more) if after.details != before.details else 0
        entries.append((before.id, before.version, 2 if had and not more else change))
        blobs.append(pack(after))
        if change == 1:
            blobs.append(encode(after.details))
    return entries, *blobs


def contended(access: Access, id_: JobId) -> StoreUnavailable:
    """The error for a job that changes between every read and write."""
    return StoreUnavailable(f"{access.server.shown}: job {id_} keeps being changed by other processes")


def pairs_by_queue(pairs: Sequence[tuple[str, Pair]]) -> dict[str, list[Pair]]:
    """Pairs by queue, for `replace_all`."""
    grouped: dict[str, list[Pair]] = defaultdict(list)
    for queue, pair in pairs:
        grouped[queue].append(pair)
    return grouped


def first_of_each(waiting: Numbered) -> Numbered:
    """The first place of each id, for up to MAX_READ ids."""
    portion: dict[JobId, int] = {}
    for i, id_ in waiting.items():
        if id_ not in portion and len(portion) < MAX_READ:
            portion[id_] = i
    return {i: id_ for id_, i in portion.items()}
