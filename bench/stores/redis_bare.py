"""The bare Redis loop: a sorted set of ids and a hash for each job, moved by three scripts.

Scripts and steps are those of the shared raw benchmark (`redis_raw.py`, "zset+hash Lua": redis-py with hiredis, one
connection, no history). Change them there first, or not at all.
"""

import json
import time
from typing import Any

import redis

from bench.stores.base import BareDrain

ENQUEUE = """
local seq = redis.call('INCRBY', KEYS[2], #ARGV)
local base = seq - #ARGV
for i, p in ipairs(ARGV) do local id = base + i
  redis.call('HSET', 'j:'..id, 'kind', 'noop', 'payload', p, 'attempts', 0)
  redis.call('ZADD', KEYS[1], id, id) end
return seq"""
CLAIM = """
local ids = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
if #ids == 0 then return {} end
redis.call('ZREM', KEYS[1], unpack(ids))
local out, za = {}, {}
for i, id in ipairs(ids) do
  za[2*i-1] = ARGV[2]; za[2*i] = id
  local h = redis.call('HMGET', 'j:'..id, 'kind', 'payload', 'attempts')
  out[#out+1] = id; out[#out+1] = h[1]; out[#out+1] = h[2]; out[#out+1] = h[3] end
redis.call('ZADD', KEYS[2], unpack(za))
return out"""
COMPLETE = """
redis.call('ZREM', KEYS[1], unpack(ARGV))
local ks = {}
for i, id in ipairs(ARGV) do ks[i] = 'j:'..id end
redis.call('UNLINK', unpack(ks))
return #ARGV"""
PAYLOAD = {"n": 1, "s": "x" * 64}
BATCH = 100
CHUNK = 1000
LEASE = 60


class Bare:
    """One connection to an empty database."""

    def __init__(self, dsn: str) -> None:
        self._client = redis.Redis.from_url(dsn)
        self._enqueue = self._client.register_script(ENQUEUE)
        self._claim = self._client.register_script(CLAIM)
        self._complete = self._client.register_script(COMPLETE)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def insert(self, jobs: int) -> tuple[float, float]:
        """In bulk, 1,000 per call: seconds with and without the creation of the payloads."""
        began = time.perf_counter()
        payloads = [json.dumps(PAYLOAD) for _ in range(jobs)]
        made = time.perf_counter()
        for start in range(0, jobs, CHUNK):
            self._enqueue(["z", "seq"], payloads[start : start + CHUNK])
        ended = time.perf_counter()
        return ended - began, ended - made

    def insert_one_by_one(self, jobs: int) -> float:
        """A call for every job: seconds."""
        payload = json.dumps(PAYLOAD)
        began = time.perf_counter()
        for _ in range(jobs):
            self._enqueue(["z", "seq"], [payload])
        return time.perf_counter() - began

    def drain(self) -> BareDrain:
        """Claim a batch and complete it, until nothing is left."""
        began, cpu, done = time.perf_counter(), time.process_time(), 0
        while ids := self.claim()[::4]:
            self.complete(ids)
            done += len(ids)
        return BareDrain(done / (time.perf_counter() - began), (time.process_time() - cpu) / done)

    def claim(self) -> Any:
        """The next batch: id, kind, payload, attempts, alternately."""
        return self._claim(["z", "run"], [BATCH, int(time.time()) + LEASE])

    def complete(self, ids: list[Any]) -> None:
        """Complete a batch."""
        self._complete(["run"], ids)

    def enqueue(self, payload: str) -> None:
        """One job and a notification: one round trip."""
        trip = self._client.pipeline(transaction=False)
        self._enqueue(["z", "seq"], [payload], client=trip)
        trip.rpush("marker", 1)
        trip.execute()

    def wait(self) -> None:
        """Wait for a notification."""
        self._client.blpop(["marker"], timeout=0)
