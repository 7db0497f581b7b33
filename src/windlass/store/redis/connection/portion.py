"""Portions: how much one call of a script handles, since a script blocks the server."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from windlass.store.redis.connection.access import Access

MAX_READ = 100
"""Ids in one call that reads or replaces records."""
MAX_TEXT = 100_000
"""Bytes: some 8 ms of a script that copies results. A longer item is a portion of its own."""
MAX_WRITTEN = 1_000_000
"""Bytes: some 10 ms of a script that writes records."""

Item = TypeVar("Item")


def by_queue(items: Iterable[Item], queue_of: Callable[[Item], str]) -> dict[str, list[Item]]:
    """Items by queue, in their order."""
    found: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        found[queue_of(item)].append(item)
    return found


def first_portion(
    items: Sequence[Item], text_of: Callable[[Item], int], most: int = MAX_READ, most_text: int = MAX_TEXT
) -> Sequence[Item]:
    """The first items, for one call: at most `most` of them, with at most `most_text` bytes, but at least one."""
    some, text = items[:most], 0
    for index, item in enumerate(some):
        text += text_of(item)
        if text > most_text and index:
            return some[:index]
    return some


async def call_in_portions(
    access: Access,
    name: str,
    items: Mapping[str, Sequence[Item]],
    request: Callable[[Sequence[Item]], tuple[Any, ...]] = lambda some: (some,),
    portion: Callable[[Sequence[Item]], Sequence[Item]] = lambda left: left[:MAX_READ],
    done: Callable[[Sequence[Item], Any], int] = lambda some, _: len(some),
) -> AsyncIterator[tuple[str, Sequence[Item], Any]]:
    """Call a script for items by queue, all queues together, in portions: queue, items and reply of each call.

    `done`: how many of its items a call has taken, by its reply.
    """
    left = {queue: mine for queue, mine in items.items() if mine}
    while left:
        some = {queue: portion(mine) for queue, mine in left.items()}
        replies = await access.call_queues(name, {queue: request(mine) for queue, mine in some.items()})
        for queue, reply in replies.items():
            yield queue, some[queue], reply
        left = {queue: rest for queue, reply in replies.items() if (rest := left[queue][done(some[queue], reply) :])}
