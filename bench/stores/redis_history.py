"""Write finished jobs into the Redis store directly, because draining them would take too long."""

import time
from typing import Any

import redis

from windlass.core.jobs.job import DEFAULT_QUEUE
from windlass.store.redis.records.keys import KeyMap
from windlass.store.redis.records.record import Fields, Letter, Record, pack

FILL = """
local records, ids, ended = {}, {}, {}
for i = 1, ARGV[2] do
  local id = string.format('00000000-0000-7000-8000-%012x', ARGV[1] + i)
  records[2 * i - 1], records[2 * i] = id, ARGV[3]
  ids[2 * i - 1], ids[2 * i] = 0, id
  ended[2 * i - 1], ended[2 * i] = ARGV[4] + redis.call('HGET', KEYS[1], 'keep_completed'), id
end
redis.call('HSET', KEYS[2], unpack(records))
redis.call('ZADD', KEYS[3], unpack(ids))
redis.call('ZADD', KEYS[4], unpack(ended))
redis.call('HINCRBY', KEYS[5], 'c', ARGV[2])
redis.call('HSETNX', KEYS[6], 'noop', redis.call('HLEN', KEYS[6]) + 1)
"""
KEYS = ("queue", "jobs", "ids", "drop_times", "counts", "types")
CHUNK = 1000


def fill(client: redis.Redis, jobs: int) -> None:
    """Write completed no-ops, all of the same moment, with ids older than any other; the queue must exist."""
    now = time.time_ns() // 1000
    record = Record(
        id="",
        letter=Letter.COMPLETED,
        version=2,
        attempt=1,
        claim=1,
        updated_at=now,
        claimed_at=now,
        started_at=now,
        runner="bench",
        type=1,
        rank=now,
        run_at=now,
        created_at=now,
        max_attempts=3,
        fields=Fields(type="noop"),
        payload='{"n":1,"s":"' + "x" * 64 + '"}',
        result="null",
    )
    script: Any = client.register_script(FILL)
    keys, packed = KeyMap().of_queue(DEFAULT_QUEUE, KEYS), pack(record)
    for start in range(0, jobs, CHUNK):
        # By its text, so that the log of slow calls has only the store's scripts.
        client.eval(script.script, len(keys), *keys, start, min(CHUNK, jobs - start), packed, now)
