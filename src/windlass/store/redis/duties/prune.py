"""prune: drop finished jobs whose retention is over, a bounded number at a time."""

import struct
from collections.abc import Iterable, Sequence

from windlass.core.flow.rate import TokenBucket
from windlass.core.ids import JobId
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.operator.documents import prune_documents
from windlass.store.redis.schedules.write_schedules import forget_removed
from windlass.store.redis.verbs.samples import prune_stats

MAX_ROUNDS = 100
"""Rounds for tombstones and windows: a minute adds more than one call clears."""
MAX_PRUNED = 250
"""Jobs of one queue in one call."""


async def prune(access: Access, limit: int) -> Sequence[JobId]:
    """Each queue drops its share of the limit; those with more to drop are called again while the limit allows.

    Unreachable queues do not delay the others. Full token buckets, old statistics and old plans of removed schedules
    are dropped too.
    """
    dropped: list[JobId] = []
    troubles = QueueErrors()
    more: set[str] = set()
    waiting = await access.queue_names()
    while waiting and (left := limit - len(dropped)) > 0:
        asked, waiting = waiting[:left], waiting[left:]
        share = min(MAX_PRUNED, left // len(asked))
        replies, unreached = await access.call_reachable("prune", dict.fromkeys(asked, ([share],)))
        troubles += unreached
        dropped += [id_.decode() for _, *ids in replies.values() for id_ in ids]
        waiting += [queue for queue, (_, *ids) in replies.items() if len(ids) == share]
        more |= {queue for queue, (any_left, *_) in replies.items() if any_left}
    troubles += await _clear_more(access, more)
    for clean_up in (prune_stats, prune_documents, refresh_token_buckets, forget_removed):
        with troubles.collected():
            await clean_up(access)
    if troubles and not dropped:  # else the caller needs the ids of dropped jobs, and calls again
        raise troubles[0]
    return dropped


async def _clear_more(access: Access, queues: Iterable[str]) -> QueueErrors:
    """Tombstones and windows of keys that are over, where one call did not clear all of them."""
    troubles = QueueErrors()
    for _ in range(MAX_ROUNDS):
        if not queues:
            break
        replies, unreached = await access.call_reachable("prune", dict.fromkeys(queues, ([0],)))
        troubles += unreached
        queues = [queue for queue, (any_left, *_) in replies.items() if any_left]
    return troubles


QUEUE_TOKEN_BUCKET = ""
"""The name of a queue's own token bucket; those of concurrency keys are named by their digests."""
MAX_PAGES = 50
"""Pages of one call; the next call continues from there."""
_TOKEN_BUCKET = struct.Struct(">Iqqqq")


def to_token_bucket(value: bytes) -> TokenBucket:
    """From its stored form: whole tokens and a part, because a script's numbers cannot hold a large credit."""
    whole, part, period, at, _ = _TOKEN_BUCKET.unpack(value)
    return TokenBucket(whole * period + part, period, at)


async def refresh_token_buckets(access: Access) -> None:
    """Drop token buckets that are full again, and turn back those from before the clock was set back."""
    cursors = access.server.claim_memory.token_bucket_cursors
    names = await access.queue_names()
    for _ in range(MAX_PAGES):
        if not names:
            return
        replies, troubles = await access.call_reachable(
            "refresh_token_buckets", {name: (cursors.get(name, "0"),) for name in names}
        )
        cursors |= {name: reply.decode() for name, reply in replies.items()}
        names = [name for name in replies if cursors[name] != "0"]
    troubles.raise_first()
