"""Leases: one per runner, in the global keys, by the server's clock. Lapsed ones are never renewed.

A queue keeps a copy of a lease's end, so that a claim is one call: copied at the runner's first claim there, and
again when it is over. The end of a runner is recorded in a queue before its jobs are put back, and prevents later
claims.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from windlass.core.moments import Micros
from windlass.errors import LeaseLost
from windlass.store.records import CancelRequest, LeaseRequest, Renewal
from windlass.store.redis.connection.access import Access

NO_LEASE = b"no lease"
"""The reply of a claim if the queue knows no lease of the runner: call `allow_runner`, and claim again."""

CANCELS_SECONDS = 1.0
"""Seconds for reading cancel requests, which is repeated: an unreachable queue is not waited for."""

Registrations = dict[str, list[str]]
"""Queue → runners that may hold jobs there."""

_EXPIRES = struct.Struct(">q")


async def open_lease(access: Access, request: LeaseRequest) -> None:
    """Create a lease for a new runner. Safe to repeat."""
    await access.call_global("open_lease", (request.runner, request.worker, request.length))


async def renew(access: Access, runners: Sequence[str], length: Micros) -> Renewal:
    """Extend the leases that hold; lapsed ones are lost for good."""
    held = await access.call_global("renew", (list(runners), length))
    kept = tuple(runner for runner, holds in zip(runners, held, strict=True) if holds)
    return Renewal(kept, tuple(runner for runner in runners if runner not in kept))


async def cancels(access: Access, worker: str) -> tuple[CancelRequest, ...]:
    """Cancel requests for running jobs of this worker's runners."""
    head = f"{worker}\0".encode()
    found = await access.command("ZRANGEBYLEX", "registrations", b"[" + head, b"(" + head + b"\xff")
    return await _cancels_at(access.background(CANCELS_SECONDS), registrations_of(found))


async def allow_runner(access: Access, runner: str, queues: Collection[str]) -> bool:
    """Let a runner claim in these queues, which replied NO_LEASE; False if its lease is over but may be renewed.

    Raises LeaseLost if it has none.
    """
    length: Micros = await access.call_global("register_runner", (runner, list(queues)))
    if length < 0:
        raise LeaseLost(runner)
    if length == 0:
        return False
    allowed = await access.call_queues("allow_runner", dict.fromkeys(queues, ((runner, length),)))
    if not all(allowed.values()):
        raise LeaseLost(runner)
    return True


async def check_lease(access: Access, runner: str) -> None:
    """Raises LeaseLost if the runner has none."""
    await allow_runner(access, runner, ())


async def lease_ends(access: Access, runners: Iterable[str]) -> dict[str, Micros]:
    """When the leases of these runners end, of those that have one."""
    wanted = sorted(set(runners))
    if not wanted:
        return {}
    found = await access.command("HMGET", "leases", *wanted)
    return {runner: _EXPIRES.unpack_from(value)[0] for runner, value in zip(wanted, found, strict=True) if value}


def registrations_of(members: Iterable[bytes]) -> Registrations:
    """Registrations by queue. The one that every runner has without a queue is left out."""
    registrations: Registrations = defaultdict(list)
    for member in members:
        _, runner, queue = member.decode().split("\0")
        if queue:
            registrations[queue].append(runner)
    return dict(registrations)


async def _cancels_at(access: Access, registrations: Registrations) -> tuple[CancelRequest, ...]:
    """The requests of reachable queues."""
    replies, _ = await access.call_reachable(
        "cancel_requests", {queue: (runners,) for queue, runners in registrations.items()}
    )
    return tuple(
        CancelRequest(id_.decode(), attempt, runner.decode())
        for found in replies.values()
        for id_, attempt, runner in found
    )
