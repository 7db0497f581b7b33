"""Election and duties.

Every worker campaigns; the leader does the duties until it resigns, dies or is replaced. Two leaders at once (one
was suspended, and has not campaigned since) do no harm: every duty is safe to do twice.
"""

import asyncio
import time

from windlass.blobs.offload import Offload
from windlass.coordinator.duties import Duty, duties
from windlass.core.events import ClockJumped, DutyFailed, Emit, LeadershipGained, LeadershipLost, StoreRecovered
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable, StoreUnusable
from windlass.store.clock import Clock, SystemClock
from windlass.store.contract import Store
from windlass.store.records import Campaign

TERM_SECONDS = 10.0
CAMPAIGN_SECONDS = 3.0
STAND_BY_SECONDS = 1.0
AFTER_FAILURE_SECONDS = 1.0
MIN_PAUSE = 0.01
CAMPAIGN = "campaign"
MIN_JUMP: Micros = 5 * SECOND
"""A clock that is slewed moves by far less between two measurements."""


class Coordinator:
    """One candidate, and its duties while it leads."""

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
        self._clock_jumps = ClockJumps(clock or SystemClock(), emit)
        self._due = dict.fromkeys((duty.name for duty in self._duties), 0.0)
        self._campaign_at = 0.0
        self._failing: dict[str, str] = {}
        """The problem of each duty's last run, if it failed."""
        self.term: int | None = None

    async def run(self) -> None:
        """Campaign and do the duties, until cancelled."""
        while True:
            await self.step(time.monotonic())
            await asyncio.sleep(self._pause(time.monotonic()))

    async def step(self, now: float) -> None:
        """Do the steps that are due: the campaign, and each duty."""
        self._clock_jumps.look()
        if now >= self._campaign_at:
            await self._campaign(now)
        if self.term is None:
            return
        for duty in self._duties:
            if now >= self._due[duty.name]:
                self._due[duty.name] = now + await self._perform(duty)

    def is_ready(self) -> bool:
        """Whether the store answered the last campaign."""
        return self._campaign_at > 0 and CAMPAIGN not in self._failing

    async def resign(self) -> None:
        """Give up leadership."""
        if self.term is not None:
            self._emit(LeadershipLost(worker=self._candidate, term=self.term))
            self.term = None
            await self._store.leader.resign(self._candidate)

    async def _campaign(self, now: float) -> None:
        try:
            term = await self._store.leader.campaign(Campaign(self._candidate, int(TERM_SECONDS * SECOND)))
        except StoreUnusable:
            raise
        except Exception as error:
            # Any error: a worker that cannot lead still runs jobs, and campaigns again.
            self._failed(CAMPAIGN, _describe_error(error))
            term = None
        else:
            if term is None:
                # The duties are another process's now: whether they fail there is not known here.
                self._failing = {name: problem for name, problem in self._failing.items() if name == CAMPAIGN}
            self._succeeded(CAMPAIGN)
        if term != self.term:
            if self.term is not None:
                self._emit(LeadershipLost(worker=self._candidate, term=self.term))
            if term is not None:
                self._emit(LeadershipGained(worker=self._candidate, term=term))
        self.term = term
        self._campaign_at = now + (STAND_BY_SECONDS if term is None else CAMPAIGN_SECONDS)

    async def _perform(self, duty: Duty) -> float:
        try:
            pause = await duty.run()
        except StoreUnusable:
            raise
        except Exception as error:
            # Any error: the other duties go on, and this one is tried again.
            self._failed(duty.name, _describe_error(error))
            return AFTER_FAILURE_SECONDS
        self._succeeded(duty.name)
        return pause

    def _failed(self, duty: str, problem: str) -> None:
        """Emit a problem once, even if several duties have it: an outage may take hours."""
        known = problem in self._failing.values()
        self._failing[duty] = problem
        if not known:
            self._emit(DutyFailed(duty=duty, problem=problem))

    def _succeeded(self, duty: str) -> None:
        problem = self._failing.pop(duty, None)
        if problem is not None and problem not in self._failing.values():
            self._emit(StoreRecovered(doing=f"duty {duty}"))

    def _pause(self, now: float) -> float:
        moments = [self._campaign_at] if self.term is None else [self._campaign_at, *self._due.values()]
        return max(MIN_PAUSE, min(moments) - now)


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, StoreUnavailable) else f"{type(error).__name__}: {error}"


class ClockJumps:
    """Detects jumps of the wall clock against the clock since boot."""

    def __init__(self, clock: Clock, emit: Emit) -> None:
        self._clock = clock
        self._emit = emit
        self._ahead = self._measure()

    def look(self) -> None:
        """Emit a jump since the last call."""
        before, self._ahead = self._ahead, self._measure()
        jump = self._ahead - before
        if abs(jump) >= MIN_JUMP:
            self._emit(ClockJumped(seconds=jump / SECOND))

    def _measure(self) -> Micros:
        return self._clock.wall() - self._clock.since_boot()
