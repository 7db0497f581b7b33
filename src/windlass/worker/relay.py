"""The relay: hints that reach only the supervisor are passed on to its runners."""

import asyncio

from windlass.core.events import HintsSilent
from windlass.worker.crew import Crew
from windlass.worker.link import Look

LISTEN_SECONDS = 60.0


async def relay(crew: Crew) -> None:
    """Until cancelled. If no hint can come, that is said once: an idle runner then looks for itself every second."""
    signals = crew.store.signals
    signals.attend(crew.queues)
    if signals.silence is not None:
        crew.emit(HintsSilent(why=signals.silence))
    while True:
        mark = signals.mark()
        if await signals.wait(mark, LISTEN_SECONDS):
            for child in crew.serving.values():
                child.link.say(Look())
        await asyncio.sleep(0)
