"""The store contract, the part of those who keep things going: leases, workers, the office, hints, statistics.

The same holds as for the other roles: see contract.py.
"""

from collections.abc import Sequence
from typing import Protocol

from windlass.core.course import Stretch, Window
from windlass.core.meter import Meter, Recent
from windlass.core.moments import Micros
from windlass.core.samples import Sampled
from windlass.store.records import (
    Campaign,
    CancelRequest,
    LeaseRequest,
    Renewal,
    Rescued,
    RunnerEnd,
    WorkerInfo,
)
from windlass.store.vigil import Tell, Vigil


class LeaseStore(Protocol):
    """Leases: one per runner, renewed by its supervisor, never renewed once lapsed."""

    async def open(self, request: LeaseRequest) -> None:
        """A lease for a new runner."""

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        """Extend leases that hold. The first renewal after a general silence gives every lease a grace."""

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        """Delete a gone runner's lease, then put back what it held."""

    async def rescue(self, limit: int) -> list[Rescued]:
        """Delete lapsed leases, then put back what they held."""

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        """Running jobs under this worker's leases that somebody wants stopped."""

    def vouch(self, holder: str) -> None:
        """Prove, as far as the store can see it, that this process lives for as long as it does.

        Where a store shares the machine with its workers, death is then seen at once and a stall is never
        taken for death; elsewhere only time tells, and this does nothing.
        """

    def unvouch(self, holder: str) -> None:
        """End the proof."""


class WorkerStore(Protocol):
    """The registry of workers."""

    async def beat(self, worker: WorkerInfo) -> None:
        """Register or refresh; jobs parked for want of its types are freed."""

    async def forget(self, worker: str) -> None:
        """Sign off."""

    async def list(self) -> list[WorkerInfo]:
        """The workers that are alive, each with the number of jobs that its runners hold at this moment."""


class LeaderStore(Protocol):
    """The coordinator's term: an optimisation, since every duty is safe to do twice."""

    async def campaign(self, bid: Campaign) -> int | None:
        """Take or keep the office: the term's number, or None if another holds it."""

    async def resign(self, candidate: str) -> None:
        """Give the office up."""


class SignalStore(Protocol):
    """Wake-up hints. They may be lost; polling is always enough."""

    @property
    def relayed(self) -> bool:
        """Whether hints reach only supervisors, which pass them on to their runners."""

    @property
    def telling(self) -> bool:
        """Whether a hint tells of work in the queues that one attends to: then the claim itself is the look.

        Otherwise it says that something was written, and everybody looks whether it concerns him.
        """

    @property
    def silence(self) -> str | None:
        """Why hints of other processes do not come here, in words; None if they do, as far as is known.

        Where they are relayed, known since the first verb of a store that a supervisor opened; else since it attends.
        """

    def attend(self, queues: Sequence[str]) -> None:
        """This process serves these queues only: it need not be told of others."""

    def hear(self) -> None:
        """A hint was passed on to this process."""

    def mark(self) -> int:
        """Where things stand. Taken before one looks: then nothing that comes between look and wait is missed."""

    async def wait(self, mark: int, seconds: float) -> bool:
        """Until something may have changed in the store since the mark, or the time is over: whether it has.

        It ends too when a rate that has kept claims of this process short lets jobs start again.
        """

    async def work(self, queues: Sequence[str], types: Sequence[str] | None) -> bool:
        """Whether anything in these queues and of these types may be claimed, or anything is due.

        Not from queues that are paused, full or without tokens. A cheap look, without a lock. None: of any type, and
        then also whether a child whose parents have completed there is still to be told so.
        """

    def vigil(self, tell: Tell) -> Vigil:
        """Somebody on this event loop waits for jobs: he is told when they end, whoever ends them, and wherever.

        Jobs that nobody waits for cost nothing for it.
        """


class StatsStore(Protocol):
    """How it goes: meters, added up as runners hand them in, and samples of those. Cheap at any number of jobs.

    Statistics are not guarantees. A runner that dies takes the last seconds of its own along; one that repeats a
    call after a lost reply counts twice.
    """

    async def record(self, meters: Sequence[Meter]) -> None:
        """Add these to the slot of this moment."""

    async def recent(self, length: Micros) -> Recent:
        """The meters of the slots that reach into so much of the past: one for each slot, queue and type."""

    async def oldest(self) -> dict[str, Micros]:
        """How long the pending job that waits longest has waited, for each queue that has any."""

    async def sample(self) -> Sampled:
        """Make the minutes and hours that are over from what was recorded, and count the jobs once in a minute.

        Doing it again, or two at once, makes the same. Minutes that nobody made are made up as long as their slots
        are kept, hours as long as their minutes are; how many jobs there were then is not known any more.
        """

    async def course(self, window: Window) -> Stretch:
        """The samples of a window, in the order of time; a minute or hour that nobody made has none at all."""
