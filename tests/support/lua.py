"""Parts of the scripts of the Redis store, run by themselves on the server of the run."""

from pathlib import Path
from typing import Any

import msgspec
import redis

from tests.support.servers.redis_places import redis_place
from windlass.store.redis.keys import KeyMap
from windlass.store.redis.script import put_together


class Lua:
    """A queue of a test's own, and texts that are run on it as scripts are; `request` is what they are given."""

    def __init__(self, folder: Path, queue: str = "default") -> None:
        address, _, prefix = redis_place(folder).partition("?prefix=")
        self._client = redis.Redis.from_url(address)
        self._map = KeyMap(prefix)
        self._queue = queue

    def run(self, body: str, request: Any) -> Any:
        """The answer of a text with headers as a script has: `-- uses: …`, `-- keys: …`."""
        script = put_together("test", body)
        keys = self._map.of_queue(self._queue, script.keys)
        return self._client.eval(script.text, len(keys), *keys, "", "", msgspec.msgpack.encode(request))

    def close(self) -> None:
        """Hang up."""
        self._client.close()
