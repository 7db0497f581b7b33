"""Gates: the buckets of tokens of queues and of their keys, as parts/gate.lua keeps them."""

import struct

from windlass.core.rate import Bucket
from windlass.store.redis.access import Access

OWN = ""
"""The name of a queue's own bucket; those of keys are kept under the digests of their lines."""
MOST_PAGES = 10
"""No more in one go; the next one begins where this one ended."""
_GATE = struct.Struct(">Iqqqq")


def to_bucket(value: bytes) -> Bucket:
    """A bucket as it is kept: whole tokens and a part, because a script's numbers cannot hold a large credit."""
    whole, part, period, at, _ = _GATE.unpack(value)
    return Bucket(whole * period + part, period, at)


async def tend_gates(access: Access) -> None:
    """Drop buckets that are full again, and turn back those from before the clock was set back."""
    cursors = access.server.recall.gates
    names = await access.queue_names()
    for _ in range(MOST_PAGES):
        if not names:
            return
        replies = await access.calls("tend_gates", {name: (cursors.get(name, "0"),) for name in names})
        cursors |= {name: reply.decode() for name, reply in replies.items()}
        names = [name for name in names if cursors[name] != "0"]
