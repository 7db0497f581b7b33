"""Leases: one per runner and queue, renewed by fan-out."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.store.records import CancelRequest, LeaseRequest, Renewal
from windlass.store.redis.access import Access


async def open_lease(access: Access, request: LeaseRequest) -> None:
    await access.be_known()


async def renew(access: Access, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
    raise NotImplementedError


async def cancels(access: Access, worker: str) -> tuple[CancelRequest, ...]:
    raise NotImplementedError
