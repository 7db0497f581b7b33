"""Parts of scripts, run on the server of the test run with what a test gives them."""

from functools import cache
from secrets import token_hex
from typing import Any

import msgspec
import redis

from tests.support.servers.redis_places import shared_redis
from windlass.store.redis.records.keys import KeyMap
from windlass.store.redis.scripts.loader import assemble

_keys = KeyMap(f"t{token_hex(4)}")
"""Others may be at work on the same server."""


@cache
def _server() -> redis.Redis:
    return redis.Redis.from_url(shared_redis())


def run(body: str, *given: Any) -> Any:
    """What a text answers: `given` is a table there, and the answer is packed with cmsgpack.

    The keys are those of a queue of this process: what was written is there at the next call.
    """
    script = assemble("test", f"local given = cmsgpack.unpack(ARGV[1])\n{body}")
    keys = _keys.of_queue("lua", script.keys)
    packed: bytes = _server().eval(script.text, len(keys), *keys, msgspec.msgpack.encode(given))
    return msgspec.msgpack.decode(packed)
