"""The books of a Redis store: every index in which jobs are found, held against what their records say."""

import struct
from collections import Counter
from typing import Any

import redis

from windlass.core.status import WAITING
from windlass.store.redis.records.record import NO_KEY_SLOT, Flag, Letter, Record, unpack
from windlass.store.redis.store import RedisStore

LEVEL = 32767
Indexes = dict[str, set[Any]]


class Books:
    """One queue as it is stored."""

    def __init__(self, store: RedisStore, queue: str) -> None:
        server = store._access.server
        self._client = redis.Redis.from_url(server.address.dsn)
        self._name = lambda name: server.keys.of_queue(queue, (name,))[0]
        self.fair = self._hash("queue").get(b"fair") == b"1"

    def _ask(self, command: str, name: str, *words: Any) -> Any:
        return self._client.execute_command(command, self._name(name), *words)  # type: ignore[no-untyped-call]

    def _hash(self, name: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self._ask("HGETALL", name)
        return found

    def _zset(self, name: str) -> dict[bytes, float]:
        found = self._ask("ZRANGE", name, 0, -1, "WITHSCORES")
        return {member: float(score) for member, score in found}

    def wrong(self) -> list[str]:
        """Where the indexes and the records disagree."""
        more = self._hash("details")
        jobs = {id_.decode(): unpack(id_.decode(), value, more.get(id_)) for id_, value in self._hash("jobs").items()}
        found = self._indexes() | self._numbers() | self._claims()
        expected = _indexes(jobs, self.fair) | _numbers(jobs) | _claims(jobs)
        wrong = [
            f"{name}: missing {expected[name] - found[name]}, too much {found[name] - expected[name]}"
            for name in expected
            if expected[name] != found[name]
        ]
        if more.keys() != {r.id.encode() for r in jobs.values() if r.flags & Flag.HAS_DETAILS}:
            wrong.append("more")
        return wrong + self._keys_wrong(jobs)

    def _indexes(self) -> Indexes:
        scored = ("due", "expiring", "failures")
        plain = (
            "ids",
            "ready",
            "tenant_queues",
            "drop_times",
            "by_status",
            "waiting_for_key",
            "key_slots",
            "parked",
            "throttled",
            "children",
        )
        indexes: Indexes = {name: set(self._zset(name).items()) for name in scored}
        indexes |= {name: set(self._zset(name)) for name in plain}
        indexes["cancels"] = set(self._ask("SMEMBERS", "cancels"))
        indexes["tenant_queues"] = indexes["tenant_queues"] if self.fair else set()
        return indexes

    def _numbers(self) -> Indexes:
        return {
            name: {(field, int(value)) for field, value in self._hash(name).items() if int(value)}
            for name in ("counts", "pending_counts")
        }

    def _claims(self) -> Indexes:
        """What runs by each claim; `held` may name others that ended since."""
        return {"claim_counts": {(field, int(value)) for field, value in self._hash("claim_counts").items()}}

    def _keys_wrong(self, jobs: dict[str, Record]) -> list[str]:
        """Every live job has its key, and no job has one that is neither live nor in its window."""
        windows = self._zset("key_windows")
        live = {r.fields.key_digest: r.id for r in jobs.values() if not r.finished and r.fields.key_digest}
        held = {
            key.decode(): id_.decode() for key, id_ in self._hash("idempotency_keys").items() if key not in windows
        }
        return [] if live == held else [f"keys: {live} are live, {held} are held"]


def _indexes(jobs: dict[str, Record], fair: bool) -> Indexes:
    names = "due expiring drop_times failures ids ready tenant_queues by_status waiting_for_key key_slots parked "
    names += "throttled children cancels"
    indexes: Indexes = {name: set() for name in names.split()}
    for r in jobs.values():
        indexes["ids"].add(r.id.encode())
        _add_waiting(indexes, r, fair)
        _add_others(indexes, r)
        if r.finished:
            indexes["drop_times"].add(r.id.encode())
    return indexes


def _add_waiting(indexes: Indexes, r: Record, fair: bool) -> None:
    id_, line = r.id.encode(), (r.fields.concurrency_digest or "").encode()
    order = struct.pack(">HQ", r.sort_priority + LEVEL, r.rank)
    match r.letter:
        case Letter.PENDING:
            indexes["ready"].add(struct.pack(">I", r.type) + order + id_)
            if fair:
                tenant = (r.fields.tenant or "").encode()
                prefix = (
                    struct.pack(">H", r.sort_priority + LEVEL) + tenant + b"\0" + struct.pack(">IQ", r.type, r.rank)
                )
                indexes["tenant_queues"].add(prefix + id_)
        case Letter.SCHEDULED | Letter.FAILED | Letter.THROTTLED:
            indexes["due"].add((id_, float(r.run_at)))
            if r.letter == Letter.THROTTLED:
                indexes["throttled"].add(line + order + id_)
        case Letter.WAITING_FOR_KEY:
            strict = struct.pack(">HQ", LEVEL, r.rank)
            indexes["waiting_for_key"].add(line + (strict if r.flags & Flag.STRICT else order) + id_)
        case Letter.NO_WORKER:
            indexes["parked"].add(struct.pack(">IQ", r.type, r.rank) + id_)
    if r.expires_at and r.status in WAITING:
        indexes["expiring"].add((id_, float(r.expires_at)))


def _add_others(indexes: Indexes, r: Record) -> None:
    id_ = r.id.encode()
    if r.letter in (Letter.FAILED, Letter.DEAD, Letter.CANCELLED):
        indexes["by_status"].add(bytes([r.letter]) + id_)
    if r.letter in (Letter.FAILED, Letter.DEAD):
        indexes["failures"].add((id_, float(r.updated_at)))
    if r.key_slot != NO_KEY_SLOT:
        indexes["key_slots"].add((r.fields.concurrency_digest or "").encode() + struct.pack(">H", r.key_slot) + id_)
    if r.fields.parent:
        indexes["children"].add(r.fields.parent.encode() + id_)
    if r.letter == Letter.RUNNING and r.flags & Flag.CANCEL_REQUESTED:
        indexes["cancels"].add(id_)


def _numbers(jobs: dict[str, Record]) -> Indexes:
    letters = Counter(bytes([r.letter]) for r in jobs.values())
    types = Counter(str(r.type).encode() for r in jobs.values() if r.letter == Letter.PENDING)
    return {"counts": set(letters.items()), "pending_counts": set(types.items())}


def _claims(jobs: dict[str, Record]) -> Indexes:
    running = Counter(claim_head(r) for r in jobs.values() if r.letter == Letter.RUNNING)
    return {"claim_counts": set(running.items())}


def claim_head(record: Record) -> bytes:
    """How a claim is named, as parts/claims/claims.lua has it."""
    return record.runner.encode() + b"\0" + struct.pack(">Q", record.claim)


async def wrong_books(store: RedisStore) -> list[str]:
    """All queues: where anything disagrees."""
    return [f"{queue}: {what}" for queue in await store._access.queue_names() for what in Books(store, queue).wrong()]
