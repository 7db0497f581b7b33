"""What the roles of a store behind a server share: calls, and which lease holds which attempt.

Each runner is a REST worker of its own, under the id of its lease.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from windlass.core.ids import JobId
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.remote.connection import Connection
from windlass.remote.problems import NOT_WINDLASS, RemoteRefused, TokenRefused
from windlass.server.workers.records import HeldAnswer, HeldJob
from windlass.server.workers.rest_worker import WorkerNotFound
from windlass.store.records import CancelRequest, WorkerInfo

T = TypeVar("T")
AttemptKey = tuple[JobId, int]
CALL_SECONDS = 10.0


class WorkSession:
    """One process's view of its leases."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.info: WorkerInfo | None = None
        """The worker as it registered."""
        self.cancels: dict[str, tuple[CancelRequest, ...]] = {}
        """The attempts to cancel, by lease that this process opened."""
        self.holders: dict[AttemptKey, str] = {}
        """The lease of each attempt that is not settled."""

    async def call(
        self, runner: str, path: str, kind: type[T], body: Any = None, seconds: float | None = CALL_SECONDS
    ) -> T:
        """A call for one lease. Raises LeaseLost, TokenRefused, or StoreUnavailable for errors that may pass."""
        try:
            method = "GET" if body is None else "POST"
            return await self.connection.call(method, path, kind, body=body, seconds=seconds)
        except LeaseLost:
            raise self.lose(runner) from None
        except RemoteRefused as error:
            if error.problem.code == WorkerNotFound.code:
                raise self.lose(runner) from None
            raise understood(error) from None

    def lose(self, runner: str) -> LeaseLost:
        """Forget a lease that has ended, and its attempts."""
        self.holders = {key: holder for key, holder in self.holders.items() if holder != runner}
        return LeaseLost(runner)

    async def held(self, runner: str) -> list[HeldJob]:
        """The attempts that a lease holds, according to the server; none if it has ended."""
        try:
            found = await self.call(runner, f"/claims/{runner}", HeldAnswer)
        except LeaseLost:
            return []
        self.holders.update({(each.id, each.attempt): runner for each in found.jobs})
        return found.jobs

    async def find(self, keys: Iterable[AttemptKey]) -> None:
        """Ask the server which leases hold these attempts: a supervisor settles attempts that its runner claimed."""
        missing = {key for key in keys if key not in self.holders}
        for runner in list(self.cancels) if missing else ():
            await self.held(runner)


def understood(error: RemoteRefused) -> StoreUnavailable | RemoteRefused:
    """A refusal as an error of a store: StoreUnavailable to wait, TokenRefused to give up, else as it is."""
    problem = error.problem
    if problem.code == NOT_WINDLASS:  # a proxy whose server is away may answer 404 or 403
        return StoreUnavailable(problem.title, maybe_done=True, lasting=problem.status < 500)
    if problem.status in (401, 403):
        return TokenRefused(f"the server refuses the token: {problem.title}")
    if problem.status in (408, 429) or problem.status >= 500:
        return StoreUnavailable(problem.title, maybe_done=True)
    return error
