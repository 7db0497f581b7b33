"""python -m tests.torture.coordinate STORE CLOCK: a coordinator that does nothing but fire, and does not lead.

Between its look and its decision it hesitates: others have fired by then, or it is stopped, or killed.
"""

import asyncio
import random
import sys
from pathlib import Path
from typing import Any, cast

from tests.torture.shared_clock import SharedClock
from windlass.coordinator.duties import Fire
from windlass.core.events import silent
from windlass.errors import StoreUnavailable
from windlass.observe.history import record_calls
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.schedules import DueSchedules

MAX_DOUBT = 0.05
MAX_PAUSE = 0.02
"""The clock may be set at any time."""


class Hesitant:
    """A store that takes its time to say what is due."""

    def __init__(self, store: Store) -> None:
        self._schedules = store.schedules

    @property
    def schedules(self) -> "Hesitant":
        return self

    async def due(self, limit: int) -> DueSchedules:
        found = await self._schedules.due(limit)
        await asyncio.sleep(random.uniform(0, MAX_DOUBT))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedules, name)


async def main(url: str, clock: Path) -> None:
    store = record_calls(open_store(url, clock=SharedClock(clock)), "coordinator")
    fire = Fire(cast(Store, Hesitant(store)), silent)
    while True:
        try:
            pause = await fire.run()
        except StoreUnavailable as error:
            print(error, file=sys.stderr)
            pause = MAX_PAUSE
        await asyncio.sleep(min(pause, MAX_PAUSE))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
