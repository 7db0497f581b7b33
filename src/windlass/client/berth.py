"""An app's berth: where its jobs are, and the store there once this process has opened it."""

import asyncio
import os
import threading
from collections.abc import Callable

import msgspec

from windlass.client.here import this_process
from windlass.client.lookout import Lookout
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.observe.history import recorded
from windlass.store.contract import Store
from windlass.store.manual import ManualClock
from windlass.store.open import MEMORY_ADDRESS, open_memory, open_store


class Berth:
    """An address and what is open there; a test gives an app another berth for a while."""

    def __init__(self, address: str, opener: Callable[[], Store], clock: ManualClock | None = None) -> None:
        self.address = address
        self.clock = clock
        """Only in tests: everybody else has the machine's time."""
        self.written: int | None = None
        """The version of the declarations that this process has written there."""
        self.opened: tuple[int, Store] | None = None
        """By which process, and what."""
        self._opener = opener
        self._newest: JobId = ""
        self._borrowed = False
        self._left_behind: list[Store] = []
        self._guard, self._guard_of = threading.RLock(), os.getpid()
        self._lookouts: dict[asyncio.AbstractEventLoop, Lookout] = {}

    def connect(self) -> Store:
        """The store, opened by whoever comes first."""
        # A connection must never be shared over a fork: a child opens its own and leaves its parent's alone.
        with self._own_guard():
            if self.opened is None or self.opened[0] != os.getpid():
                if self.opened is not None:
                    # Kept, so that nobody closes it: it is the parent's, and we only have a copy of it.
                    self._left_behind.append(self.opened[1])
                self._borrowed = False
                self.opened = (os.getpid(), recorded(self._opener(), "client"))
                self.written = None
            return self.opened[1]

    def lookout(self, store: Store) -> Lookout:
        """Where those wait who wait on this event loop for jobs of the store."""
        with self._own_guard():
            for loop in [each for each, there in self._lookouts.items() if there.over]:
                del self._lookouts[loop]
            loop = asyncio.get_running_loop()
            found = self._lookouts.get(loop)
            if found is None or found.store is not store:
                found = self._lookouts[loop] = Lookout(store)
            return found

    def _own_guard(self) -> threading.RLock:
        # A lock that another thread held at a fork is held for ever in the child: it takes a new one.
        if self._guard_of != os.getpid():
            self._guard, self._guard_of = threading.RLock(), os.getpid()
        return self._guard

    def adopt(self, store: Store) -> None:
        """Use a store that is open already, and that somebody else will close."""
        self._borrowed = True
        self.opened = (os.getpid(), store)
        self.written = None

    def told(self, jobs: list[NewJob]) -> list[NewJob]:
        """The jobs, marked as no longer fresh if they may have been handed in before.

        Ids grow within a process: one that this process made, and that is larger than all such that were handed in,
        is handed in for the first time. Ids that callers give say nothing of those that come.
        """
        here, before = this_process(), self._newest
        made = [job.id for job in jobs if job.fresh == here]
        self._newest = max([before, *made])
        if len(set(made)) == len(jobs) and min(made, default="") > before:
            return jobs
        return [msgspec.structs.replace(job, fresh="") if job.fresh else job for job in jobs]

    async def close(self) -> None:
        """Close what this process has opened; the next to come opens it again."""
        if self.opened is not None and self.opened[0] == os.getpid():
            store, self.opened, self.written = self.opened[1], None, None
            for lookout in [each for each in self._lookouts.values() if not each.over]:
                await lookout.close()
            if not self._borrowed:
                await store.close()


def berth_at(address: str, deadline: float | None) -> Berth:
    """The berth of an app that works."""
    return Berth(address, lambda: open_store(address, deadline=deadline))


def berth_in_memory(clock: ManualClock | None = None) -> Berth:
    """The berth of an app under test: a store of its own in this process, and time that a test moves."""
    turned = clock or ManualClock()
    return Berth(MEMORY_ADDRESS, lambda: open_memory(clock=turned), turned)
