"""Where jobs must be found, worked out from their records alone: what every index of a queue has to be."""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import redis

from tests.support.redis_books import claim_head
from windlass.core.status import WAITING
from windlass.store.redis.records.keys import KeyMap
from windlass.store.redis.records.record import NO_KEY_SLOT, Flag, Letter, Record, unpack
from windlass.store.redis.store import RedisStore

LEVEL = 32767
_DUE = (Letter.SCHEDULED, Letter.FAILED, Letter.THROTTLED)
_RARE = (Letter.FAILED, Letter.DEAD, Letter.CANCELLED)

Place = tuple[str, bytes, Any]
"""An index, a member or field of it, and its score or value (None: it says nothing)."""


class QueueKeys(msgspec.Struct, frozen=True):
    """All keys of one queue, as they are."""

    client: Any
    names: dict[str, str]

    @classmethod
    def of(cls, client: Any, keys: KeyMap, queue: str, wanted: tuple[str, ...]) -> "QueueKeys":
        return cls(client, dict(zip(wanted, keys.of_queue(queue, wanted), strict=True)))

    def mapping(self, name: str) -> dict[bytes, bytes]:
        return dict(self.client.hgetall(self.names[name]))

    def scores(self, name: str) -> dict[bytes, float]:
        return dict(self.client.zrange(self.names[name], 0, -1, withscores=True))

    def members(self, name: str) -> set[bytes]:
        return set(self.client.smembers(self.names[name]))


HASHES = ("counts", "pending_counts", "claim_counts")
BY_SCORE = ("due", "expiring", "failures")
BY_MEMBER = (
    "ids",
    "ready",
    "tenant_queues",
    "by_status",
    "waiting_for_key",
    "key_slots",
    "parked",
    "throttled",
    "drop_times",
    "children",
)
ALL = (*HASHES, *BY_SCORE, *BY_MEMBER, "queue", "jobs", "details", "held", "cancels", "idempotency_keys")


async def misplaced(store: RedisStore, queue: str = "default") -> list[str]:
    """What is in an index and must not be, or must be and is not; nothing if all is well."""
    server = store._access.server
    with redis.Redis.from_url(server.address.dsn) as client:
        return _faults(QueueKeys.of(client, server.keys, queue, ALL), queue)


def _faults(keys: QueueKeys, queue: str) -> list[str]:
    records = [unpack(id_.decode(), value) for id_, value in keys.mapping("jobs").items()]
    expected = set(_added_up(records)) | {place for each in records for place in _places(each)}
    found = set(_found(keys))
    missing = sorted(expected - found, key=repr)
    if not _in_tenant_queues(keys):
        missing = [place for place in missing if place[0] != "tenant_queues"]
    wrong = [f"{queue}: not in {place}" for place in missing]
    wrong += [f"{queue}: left in {place}" for place in sorted(found - expected, key=repr)]
    return wrong + _loose(keys, records)


def _in_tenant_queues(keys: QueueKeys) -> bool:
    """Whether the queue is fair, and all of its pending jobs have been moved to tenant queues since."""
    settings = keys.mapping("queue")
    return settings.get(b"fair") == b"1" and b"assigning_tenants" not in settings


def _found(keys: QueueKeys) -> Iterator[Place]:
    for name in HASHES:
        yield from ((name, field, int(value)) for field, value in keys.mapping(name).items() if int(value))
    for name in BY_SCORE:
        yield from ((name, member, int(score)) for member, score in keys.scores(name).items())
    for name in BY_MEMBER:
        yield from ((name, member, None) for member in keys.scores(name))
    yield from (("cancels", member, None) for member in keys.members("cancels"))


def _added_up(records: Iterable[Record]) -> Iterator[Place]:
    counts: Counter[tuple[str, bytes]] = Counter()
    for record in records:
        counts["counts", bytes([record.letter])] += 1
        if record.letter == Letter.PENDING:
            counts["pending_counts", str(record.type).encode()] += 1
        if record.letter == Letter.RUNNING:
            counts["claim_counts", claim_head(record)] += 1
    yield from ((name, field, count) for (name, field), count in counts.items())


def _places(record: Record) -> Iterator[Place]:
    id_, letter, fields = record.id.encode(), record.letter, record.fields
    line = (fields.concurrency_digest or "").encode()
    level, rank = struct.pack(">H", record.sort_priority + LEVEL), struct.pack(">Q", record.rank)
    type_ = struct.pack(">I", record.type)
    yield "ids", id_, None
    if letter == Letter.PENDING:
        yield "ready", type_ + level + rank + id_, None
        yield "tenant_queues", level + (fields.tenant or "").encode() + b"\0" + type_ + rank + id_, None
    if letter in _DUE:
        yield "due", id_, record.run_at
    if letter == Letter.THROTTLED:
        yield "throttled", line + level + rank + id_, None
    if letter == Letter.WAITING_FOR_KEY:
        strict = bool(record.flags & Flag.STRICT)
        yield "waiting_for_key", line + (struct.pack(">H", LEVEL) if strict else level) + rank + id_, None
    if letter == Letter.NO_WORKER:
        yield "parked", type_ + rank + id_, None
    if letter in _RARE:
        yield "by_status", bytes([letter]) + id_, None
    if letter in (Letter.FAILED, Letter.DEAD):
        yield "failures", id_, record.updated_at
    if record.finished:
        yield "drop_times", id_, None
    if record.key_slot != NO_KEY_SLOT:
        yield "key_slots", line + struct.pack(">H", record.key_slot) + id_, None
    if record.expires_at and record.status in WAITING:
        yield "expiring", id_, record.expires_at
    if letter == Letter.RUNNING and record.flags & Flag.CANCEL_REQUESTED:
        yield "cancels", id_, None
    if fields.parent is not None:
        yield "children", fields.parent.encode() + id_, None


def _loose(keys: QueueKeys, records: Iterable[Record]) -> list[str]:
    """What is kept of jobs elsewhere: more than no job has, claims without their jobs, keys without a holder."""
    jobs = {record.id: record for record in records}
    said = {id_.decode() for id_ in keys.mapping("details")}
    wrong = [
        f"`more` of {id_}" for id_ in said ^ {id_ for id_, each in jobs.items() if each.flags & Flag.HAS_DETAILS}
    ]
    held: dict[bytes, set[str]] = defaultdict(set)
    for member in keys.scores("held"):
        ids = member.index(b"\0") + 9
        held[member[:ids]] = {member[at : at + 36].decode() for at in range(ids, len(member), 36)}
    wrong += [
        f"{record.id} runs, and its claim does not hold it"
        for record in jobs.values()
        if record.letter == Letter.RUNNING and record.id not in held[claim_head(record)]
    ]
    holders = {digest.decode(): id_.decode() for digest, id_ in keys.mapping("idempotency_keys").items()}
    for record in jobs.values():
        digest = record.fields.key_digest
        if digest is not None and not record.finished and holders.get(digest) != record.id:
            wrong.append(f"{record.id} lives, and does not have its key")
    two = Counter(
        (record.fields.concurrency_digest, record.key_slot)
        for record in jobs.values()
        if record.key_slot != NO_KEY_SLOT
    )
    return wrong + [f"{count} in slot {place}" for place, count in two.items() if count > 1]
