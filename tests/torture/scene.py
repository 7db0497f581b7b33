"""A scene: what was there before, and the one call that is interrupted.

Ids, clocks and claim numbers are fixed, so that a scene played twice leaves the same rows to the last byte.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tests.support.clock import ManualClock
from tests.support.processes import PATIENCE
from tests.support.seed import let_lapse
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.open import open_store

JOBS = [f"0198c000-0000-7000-8000-00000000000{n}" for n in range(4)]
LEASE = 30 * SECOND


def _now(clock: ManualClock) -> None:
    clock.advance(SECOND)


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A verb, what it needs, and the call; `again` compares a repeat's answer with the one that was lost."""

    verb: str
    name: str = ""
    """Where a verb has several scenes."""
    act: Callable[[Store], Awaitable[Any]]
    before: Callable[[Store], Awaitable[Any]] | None = None
    later: Callable[[ManualClock], None] = _now
    lapsed: bool = False
    """Whether leases have lapsed by then, while another lease was renewed."""
    again: Callable[[Any, Any], bool] = lambda first, second: True
    adds_up: bool = False
    """Whether a repeat counts again: only statistics may do that."""
    piecemeal: bool = False
    """Whether it may be committed in several steps, each of them whole: a repeat does what is left."""
    by_servers: bool = False
    """Whether it is so by a server only."""
    tells: bool = False
    """Whether others are told of it who wait: on Redis that is a step of its own."""

    def opened(self, url: str) -> Store:
        """The store at the time of the call."""
        clock = ManualClock()
        self.later(clock)
        return open_store(url, clock=clock, deadline=PATIENCE)

    async def prepare(self, url: str) -> None:
        """What was there before."""
        clock = ManualClock()
        store = open_store(url, clock=clock, deadline=PATIENCE)
        await store.migrate()
        if self.before is not None:
            await self.before(store)
        if self.lapsed:
            await let_lapse(store, clock)
        await store.close()

    async def play(self, url: str) -> Any:
        """The call, on a store that is opened for it."""
        store = self.opened(url)
        try:
            return await self.act(store)
        finally:
            await store.close()
