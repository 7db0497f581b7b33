"""The Redis store: a database, by number, for every run."""

import contextlib
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import redis

from bench.peer_entry import PeerEntry
from bench.stores.base import BareDrain, Counters, Pooler, Span
from bench.stores.loops import run_loops
from bench.stores.redis_bare import Bare
from bench.stores.redis_history import fill
from bench.targets import REDIS, REDIS_PEERS
from windlass.bench.process import BenchFailed
from windlass.core.jobs.job import DEFAULT_QUEUE
from windlass.core.stats.meter import INTERVAL
from windlass.errors import ConfigError
from windlass.store.contract import Store
from windlass.store.open import redact
from windlass.store.redis.connection.address import Kind, parse_address
from windlass.store.redis.records.keys import KeyMap
from windlass.store.redis.records.record import A
from windlass.store.redis.roles import RedisStats
from windlass.store.redis.verbs.samples import RedisSampleStore
from windlass.store.samples import SampleTables

CHUNK = 10_000
SLOT = struct.Struct(">q")
SECOND = 1_000_000
REWRITING = 60.0


class RedisBench:
    """Databases of one server: an empty one is used, and emptied afterwards."""

    targets = REDIS

    def __init__(self, template: str) -> None:
        if urlsplit(template).path.strip("/") != "{run}":
            raise ConfigError(f"--store {redact(template)}: write {{run}} as the database: each run takes its own")
        self._template = template
        # Invalid options are reported now, not in the middle of a run.
        if parse_address(self._at(1), redact(template)).kind is not Kind.SERVER:
            raise ConfigError(f"--store {redact(template)}: the bench runs on one server")

    @property
    def peer_entries(self) -> tuple[PeerEntry, ...]:
        """The peers that can run on this server."""
        with self._client(self._at(0)) as client:
            major = int(client.info("server")["redis_version"].partition(".")[0])
        return tuple(entry for entry in REDIS_PEERS if entry.server <= major)

    def facts(self) -> dict[str, str]:
        """Versions of server and driver, and the flush settings."""
        with self._client(self._at(0)) as client:
            info = client.info()
            settings = {name: client.config_get(name)[name] for name in ("appendonly", "appendfsync")}
        return {
            "store": "Redis",
            "Redis": info["redis_version"],
            "memory allocator": info["mem_allocator"],
            **settings,
            "redis-py": version("redis"),
            "hiredis": version("hiredis"),
        }

    def fresh(self) -> str:
        """The address of an empty database."""
        with self._client(self._at(0)) as client:
            try:
                databases = int(client.config_get("databases")["databases"])
            except redis.RedisError as error:
                raise ConfigError(f"--store {redact(self._template)}: {error}") from error
        for number in range(1, databases):
            with self._client(self._at(number)) as client:
                if client.dbsize() == 0:
                    # It belongs to this run from now on.
                    client.set("windlass-bench", 1)
                    return self._at(number)
        raise ConfigError(f"--store {redact(self._template)}: no database of {databases} is empty")

    def drop(self, address: str) -> None:
        """Empty the database, and rewrite the log, so that each run finds the server in the same state."""
        with self._client(address) as client:
            client.flushdb()
            client.bgrewriteaof()
            deadline = time.monotonic() + REWRITING
            while client.info("persistence")["aof_rewrite_in_progress"] and time.monotonic() < deadline:
                time.sleep(0.02)

    def bare_drain(self, jobs: int) -> BareDrain:
        """Batches of 100, one connection, no history."""
        with self._bare() as bare:
            bare.insert(jobs)
            return bare.drain()

    def bare_together(self, jobs: int) -> None:
        """None: the server has one thread, which two bare loops would only share."""

    def bare_wake(self, jobs: int) -> list[float]:
        """An enqueue and a notification by one process, BLPOP and a claim by another."""
        address = self.fresh()
        try:
            said = run_loops("bench.stores.redis_loops", _dsn(address), [("listen", jobs), ("produce", jobs)])
            return msgspec.json.decode(said[0], type=list[float])
        finally:
            self.drop(address)

    def bare_bulk(self, jobs: int, *, with_making: bool) -> float:
        """1,000 jobs per call."""
        with self._bare() as bare:
            whole, inserting = bare.insert(jobs)
            return jobs / (whole if with_making else inserting)

    def bare_commits(self, jobs: int) -> float:
        """A call for every job."""
        with self._bare() as bare:
            return jobs / bare.insert_one_by_one(jobs)

    def span(self, address: str) -> Span:
        """From the index of finished jobs; the first claim is among the jobs that ended first."""
        jobs = KeyMap().of_queue(DEFAULT_QUEUE, ("jobs",))[0]
        ends = self._ends(address)
        if not ends:
            raise BenchFailed("no job is in history")
        with self._client(address) as client:
            first: Any = client.hmget(jobs, [id_ for id_, _ in ends[:CHUNK]])
        claimed = min(A.unpack_from(record)[5] for record in first)
        return Span(len(ends), claimed / SECOND, ends[-1][1] / SECOND)

    def finishes(self, address: str) -> list[tuple[float, int]]:
        """From the same index, by hundredths of a second."""
        counted = Counter(int(end // 10_000) for _, end in self._ends(address))
        return [((hundredth + 1) / 100, jobs) for hundredth, jobs in sorted(counted.items())]

    def fill_history(self, address: str, jobs: int) -> None:
        """By a script; they look like completed no-ops with ids older than any other."""
        with self._client(address) as client:
            fill(client, jobs)

    def repeat_meters(self, address: str, intervals: int) -> None:
        """The places of meters begin with their interval."""
        meters, index = KeyMap().global_keys(("meters", "meter_index"))
        with self._client(address) as client:
            found: Any = client.hgetall(meters)
            newest = max(place[: SLOT.size] for place in found)
            last = {place[SLOT.size :]: value for place, value in found.items() if place.startswith(newest)}
            for back in range(1, intervals + 1):
                head = SLOT.pack(SLOT.unpack(newest)[0] - back * INTERVAL)
                client.hset(meters, mapping={head + name: value for name, value in last.items()})
                client.zadd(index, {head + name: 0 for name in last})

    def sample_tables(self, store: Store) -> SampleTables:
        """Those of its connection."""
        return RedisSampleStore(cast(RedisStats, store.stats)._access)

    def hold_snapshot(self, address: str) -> AbstractContextManager[None]:
        """There are none."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def pooler(self) -> Iterator[Pooler]:
        """There is none."""
        yield Pooler(skip_reason="there is no pooler for Redis")

    def counters(self, address: str) -> Counters:
        """Scripts that were run, and the growth of the log; nothing else may use the server."""
        with self._client(address) as client:
            scripts = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})
            return Counters(scripts["calls"], client.info("persistence")["aof_current_size"])

    def occupied(self, address: str) -> int:
        """The memory of the server's data, as it reports it."""
        with self._client(address) as client:
            return int(client.info("memory")["used_memory"])

    def longest_call(self) -> float | None:
        """From the server's log of slow calls; 0 if it is empty."""
        with self._client(self._at(0)) as client:
            noted = client.slowlog_get(1000)
            client.slowlog_reset()
        return max((each["duration"] / 1000 for each in noted if each["command"].startswith(b"EVALSHA")), default=0.0)

    def _ends(self, address: str) -> list[tuple[bytes, float]]:
        """Ids and the moments at which they were completed, in their order."""
        queue, ended = KeyMap().of_queue(DEFAULT_QUEUE, ("queue", "drop_times"))
        found: list[tuple[bytes, float]] = []
        with self._client(address) as client:
            keep = int(client.hget(queue, "keep_completed") or 0)
            while True:
                part: Any = client.zrange(ended, len(found), len(found) + CHUNK - 1, withscores=True)
                if not part:
                    return found
                found += [(id_, drop_at - keep) for id_, drop_at in part]

    @contextlib.contextmanager
    def _bare(self) -> Iterator[Bare]:
        address = self.fresh()
        bare = Bare(_dsn(address))
        try:
            yield bare
        finally:
            bare.close()
            self.drop(address)

    def _client(self, address: str) -> redis.Redis:
        return redis.Redis.from_url(_dsn(address))

    def _at(self, number: int) -> str:
        parts = urlsplit(self._template)
        return parts._replace(path=f"/{number}").geturl()


def _dsn(address: str) -> str:
    """The address for the driver, without Windlass's options."""
    return parse_address(address, redact(address)).dsn
