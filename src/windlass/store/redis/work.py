"""work: whether anything may be claimed or is due. Looks, one in each queue, in one trip."""

from collections.abc import Sequence

from windlass.store.redis.access import Access


async def has_work(access: Access, queues: Sequence[str], types: Sequence[str] | None) -> bool:
    """Whether anything is due, or jobs wait in queues that are not paused, full or without tokens.

    Of any type: also whether a child may go on, and only has not been told yet.
    """
    replies = await access.calls("work", dict.fromkeys(queues, ((types,),)))
    soon = any(due or telling for _, due, *_, telling in replies.values())
    return soon or bool(_opened(access, replies))


async def open_queues(access: Access, queues: Sequence[str], types: Sequence[str]) -> set[str]:
    """Those of which a claim may get anything."""
    return _opened(access, await access.calls("work", dict.fromkeys(queues, ((types,),))))


def _opened(access: Access, replies: dict[str, tuple[int, int, int, int, bytes, int]]) -> set[str]:
    """Those in which jobs wait that can start now. When the others have tokens again is remembered."""
    openings, opened = access.server.recall.openings, set()
    for queue, (now, _, waiting, wait, rate, _) in replies.items():
        if wait >= 0:
            openings.note(queue, now, wait, rate.decode())
        elif waiting and not openings.is_shut(queue, now, rate.decode()):
            opened.add(queue)
    return opened
