"""note: what running attempts say of themselves."""

from collections.abc import Sequence

from windlass.store.records import Note
from windlass.store.redis.access import Access


async def note(access: Access, notes: Sequence[Note]) -> None:
    raise NotImplementedError
