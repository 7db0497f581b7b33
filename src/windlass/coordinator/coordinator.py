"""Election and duties.

Every worker campaigns; who holds the office does the duties until it resigns, dies or is replaced. Two holders at
once (one was asleep and does not know it yet) do no harm: the office only saves work.
"""

import asyncio
import time

from windlass.blobs.offload import Offload
from windlass.coordinator.duties import Duty, duties
from windlass.coordinator.timepiece import Timepiece
from windlass.core.events import DutyFailed, Emit, StoreBack, TermEnded, TermStarted
from windlass.core.moments import SECOND
from windlass.errors import SchemaMismatch, StoreUnavailable
from windlass.store.clock import Clock, SystemClock
from windlass.store.contract import Store
from windlass.store.records import Campaign

TERM_SECONDS = 10.0
CAMPAIGN_SECONDS = 3.0
STAND_BY_SECONDS = 1.0
AFTER_FAILURE_SECONDS = 1.0
SHORTEST_PAUSE = 0.01
CAMPAIGN = "campaign"


class Coordinator:
    """One candidate for the office, and its duties while it holds it."""

    def __init__(
        self,
        store: Store,
        candidate: str,
        emit: Emit,
        clock: Clock | None = None,
        *,
        blobs: Offload | None = None,
    ) -> None:
        self._store = store
        self._candidate = candidate
        self._emit = emit
        self._duties = duties(store, emit, blobs)
        self._timepiece = Timepiece(clock or SystemClock(), emit)
        self._due = dict.fromkeys((duty.name for duty in self._duties), 0.0)
        self._campaign_at = 0.0
        self._failing: dict[str, str] = {}
        """Duty → what is wrong, since it was last done."""
        self.term: int | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.step(time.monotonic())
            await asyncio.sleep(self._pause(time.monotonic()))

    async def step(self, now: float) -> None:
        """What is due at this moment: the campaign, and each duty."""
        self._timepiece.look()
        if now >= self._campaign_at:
            await self._campaign(now)
        if self.term is None:
            return
        for duty in self._duties:
            if now >= self._due[duty.name]:
                self._due[duty.name] = now + await self._perform(duty)

    async def resign(self) -> None:
        """Leave the office to somebody who stays."""
        if self.term is not None:
            self._emit(TermEnded(worker=self._candidate, term=self.term))
            self.term = None
            await self._store.leader.resign(self._candidate)

    async def _campaign(self, now: float) -> None:
        try:
            term = await self._store.leader.campaign(Campaign(self._candidate, int(TERM_SECONDS * SECOND)))
        except SchemaMismatch:
            raise
        except StoreUnavailable as error:
            self._tell(CAMPAIGN, str(error))
            term = None
        else:
            self._tell_done(CAMPAIGN)
        if term != self.term:
            if self.term is not None:
                self._emit(TermEnded(worker=self._candidate, term=self.term))
            if term is not None:
                self._emit(TermStarted(worker=self._candidate, term=term))
        self.term = term
        self._campaign_at = now + (STAND_BY_SECONDS if term is None else CAMPAIGN_SECONDS)

    async def _perform(self, duty: Duty) -> float:
        try:
            pause = await duty.run()
        except SchemaMismatch:
            raise
        except Exception as error:
            # Whatever it is, the other duties go on, and this one is tried again.
            known = isinstance(error, StoreUnavailable)
            self._tell(duty.name, str(error) if known else f"{type(error).__name__}: {error}")
            return AFTER_FAILURE_SECONDS
        self._tell_done(duty.name)
        return pause

    def _tell(self, duty: str, problem: str) -> None:
        """A problem is told once, however many duties meet it and however often: an outage may take hours."""
        known = problem in self._failing.values()
        self._failing[duty] = problem
        if not known:
            self._emit(DutyFailed(duty=duty, problem=problem))

    def _tell_done(self, duty: str) -> None:
        problem = self._failing.pop(duty, None)
        if problem is not None and problem not in self._failing.values():
            self._emit(StoreBack(doing=f"duty {duty}"))

    def _pause(self, now: float) -> float:
        moments = [self._campaign_at] if self.term is None else [self._campaign_at, *self._due.values()]
        return max(SHORTEST_PAUSE, min(moments) - now)
