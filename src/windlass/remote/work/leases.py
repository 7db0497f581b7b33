"""Leases of a worker behind a server: one REST worker for each runner, renewed by beats."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from windlass.core.moments import SECOND, Micros
from windlass.errors import LeaseLost
from windlass.remote.work.elsewhere import Elsewhere
from windlass.remote.work.session import WorkSession
from windlass.server.workers.records import AttemptRef, BeatAnswer, BeatBody, ClaimAnswer, ClaimBody, EndBody
from windlass.store.clock import since_boot
from windlass.store.records import CancelRequest, LeaseRequest, Renewal, Rescued, RunnerEnd

CANCELS_EVERY: Micros = 2 * SECOND
"""How often a worker asks which attempts to cancel."""


class RestLeases(Elsewhere):
    """Leases whose length the server decides."""

    def __init__(self, session: WorkSession) -> None:
        super().__init__(session.connection.server)
        self._session = session
        self._beaten_at: Micros = 0

    async def open(self, request: LeaseRequest) -> None:
        info = self._session.info
        assert info is not None, "a worker registers before it opens a lease"
        body = ClaimBody(
            worker=request.runner,
            claim=0,
            queues=list(info.queues),
            types=list(info.types),
            limit=0,
            slots=info.slots // info.processes,
            host=info.host,
        )
        await self._session.call(request.runner, "/claims", ClaimAnswer, body)
        self._session.cancels[request.runner] = ()

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        kept = await asyncio.gather(*map(self._beat, runners))
        self._beaten_at = since_boot()
        return Renewal(
            tuple(runner for runner, is_kept in zip(runners, kept, strict=True) if is_kept),
            tuple(runner for runner, is_kept in zip(runners, kept, strict=True) if not is_kept),
        )

    async def _beat(self, runner: str) -> bool:
        try:
            answer = await self._session.call(runner, "/claims/beat", BeatAnswer, BeatBody(worker=runner))
        except LeaseLost:
            self._session.cancels.pop(runner, None)
            return False
        self._session.cancels[runner] = tuple(CancelRequest(each.id, each.attempt, runner) for each in answer.cancels)
        return True

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        """The cancellations of the last beat, which is at most two seconds old."""
        if since_boot() - self._beaten_at > CANCELS_EVERY:
            await self.renew(worker, tuple(self._session.cancels), 0)
        return tuple(each for found in self._session.cancels.values() for each in found)

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        """End the lease; the server reports the rescued jobs itself."""
        crashed = [AttemptRef(*key) for key in ended.started] if ended.crashed else []
        self._session.cancels.pop(ended.runner, None)
        with suppress(LeaseLost):  # then the server has put its jobs back
            await self._session.call(ended.runner, "/claims/end", type(None), EndBody(ended.runner, crashed))
        return []

    async def rescue(self, limit: int) -> list[Rescued]:
        """Nothing: servers and the coordinator rescue."""
        return []

    def hold_liveness_lock(self, holder: str) -> None:
        """No-op: liveness is lease expiry alone."""

    def release_liveness_lock(self, holder: str) -> None:
        """No-op."""
