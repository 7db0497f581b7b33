"""A producer that enqueues many jobs, and is killed by itself at a given call of a given script.

python dying_producer.py ADDRESS JOBS SCRIPT NUMBER before|after
"""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any

from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob
from windlass.store.clock import ManualClock
from windlass.store.open import open_store
from windlass.store.redis.connection.access import Access


class DyingAccess(Access):
    """As it is, until that call."""

    point, number, side = sys.argv[3], int(sys.argv[4]), sys.argv[5]

    async def call(self, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        if name == self.point:
            type(self).number -= 1
        dies = name == self.point and self.number == 0
        if dies and self.side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        reply = await super().call(name, queue, request, *blobs)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return reply


async def main() -> None:
    store = open_store(sys.argv[1], clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))
    store.jobs._access.__class__ = DyingAccess  # type: ignore[attr-defined]
    await store.jobs.enqueue([NewJob(id=new_id(), type="t", payload=str(n)) for n in range(int(sys.argv[2]))])


asyncio.run(main())
