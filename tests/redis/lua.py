"""Parts of scripts, run on the server of the test run with what a test gives them."""

from functools import cache
from typing import Any

import msgspec

import redis
from tests.support.servers.redis_places import shared_redis
from windlass.store.redis.script import put_together


@cache
def _server() -> redis.Redis:
    return redis.Redis.from_url(shared_redis())


def run(body: str, *given: Any) -> Any:
    """What a text answers: `given` is a table there, and the answer is packed with cmsgpack."""
    text = put_together("test", f"local given = cmsgpack.unpack(ARGV[1])\n{body}").text
    packed: bytes = _server().eval(text, 0, msgspec.msgpack.encode(given))  # type: ignore[no-untyped-call, assignment]
    return msgspec.msgpack.decode(packed)
