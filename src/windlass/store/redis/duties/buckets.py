"""Gates: the buckets of tokens of queues and of their keys, as parts/gate.lua keeps them."""

import struct

from windlass.core.flow.rate import Bucket
from windlass.store.redis.connection.access import Access

QUEUE_BUCKET = ""
"""The name of a queue's own bucket; those of keys are kept under the digests of their lines."""
MAX_PAGES = 50
"""No more in one go; the next one begins where this one ended."""
_BUCKET = struct.Struct(">Iqqqq")


def to_bucket(value: bytes) -> Bucket:
    """A bucket as it is kept: whole tokens and a part, because a script's numbers cannot hold a large credit."""
    whole, part, period, at, _ = _BUCKET.unpack(value)
    return Bucket(whole * period + part, period, at)


async def refresh_buckets(access: Access) -> None:
    """Drop buckets that are full again, and turn back those from before the clock was set back."""
    cursors = access.server.claim_memory.gates
    names = await access.queue_names()
    for _ in range(MAX_PAGES):
        if not names:
            return
        replies, troubles = await access.call_reachable(
            "refresh_buckets", {name: (cursors.get(name, "0"),) for name in names}
        )
        cursors |= {name: reply.decode() for name, reply in replies.items()}
        names = [name for name in replies if cursors[name] != "0"]
    if troubles:
        raise troubles[0]
