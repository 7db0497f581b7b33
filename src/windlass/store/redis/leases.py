"""Leases: one per runner, kept in the office, by the server's clock. Lapsed ones are never renewed.

A queue keeps a copy of when a lease ends, so that a claim is one call: made when the runner first claims there, and
renewed by asking the office when it is over. Who is gone is noted in the queue before what it held is put back, and
can claim nothing there from then on.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from windlass.core.moments import Micros
from windlass.errors import LeaseLost
from windlass.store.records import CancelRequest, LeaseRequest, Renewal
from windlass.store.redis.access import Access

NO_LEASE = b"no lease"
"""What a claim answers if the queue does not know that the runner has a lease: `embark`, and ask again."""

Berths = dict[str, list[str]]
"""Queue → runners that may hold jobs there."""

_EXPIRES = struct.Struct(">q")


async def open_lease(access: Access, request: LeaseRequest) -> None:
    """A lease for a new runner; asking twice for the same one is the same as asking once."""
    await access.office("open_lease", (request.runner, request.worker, request.length))


async def renew(access: Access, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
    """Extend the leases that hold; the others are gone for good."""
    held, berths = await access.office("renew", (worker, list(runners), length))
    kept = tuple(runner for runner, holds in zip(runners, held, strict=True) if holds)
    lost = tuple(runner for runner in runners if runner not in kept)
    return Renewal(kept, lost, await _cancels_at(access, berths_of(berths)))


async def cancels(access: Access, worker: str) -> tuple[CancelRequest, ...]:
    """Running jobs under this worker's leases that somebody wants stopped."""
    head = f"{worker}\0".encode()
    found = await access.command("ZRANGEBYLEX", "berths", b"[" + head, b"(" + head + b"\xff")
    return await _cancels_at(access, berths_of(found))


async def embark(access: Access, runner: str, queues: Collection[str]) -> None:
    """Let a runner claim in these queues, which said NO_LEASE; raises LeaseLost if it may not."""
    length: Micros = await access.office("berth", (runner, list(queues)))
    if length <= 0:
        raise LeaseLost(runner)
    aboard = await access.calls("embark", dict.fromkeys(queues, ((runner, length),)))
    if not all(aboard.values()):
        raise LeaseLost(runner)


async def check_lease(access: Access, runner: str) -> None:
    """Raises LeaseLost if the runner has none that holds."""
    await embark(access, runner, ())


async def lease_ends(access: Access, runners: Iterable[str]) -> dict[str, Micros]:
    """When the leases of these runners end, of those that have one."""
    wanted = sorted(set(runners))
    if not wanted:
        return {}
    found = await access.command("HMGET", "leases", *wanted)
    return {runner: _EXPIRES.unpack_from(value)[0] for runner, value in zip(wanted, found, strict=True) if value}


def berths_of(members: Iterable[bytes]) -> Berths:
    """As the office keeps them: worker, runner, queue. Every runner has one in no queue, which is left out."""
    berths: Berths = defaultdict(list)
    for member in members:
        _, runner, queue = member.decode().split("\0")
        if queue:
            berths[queue].append(runner)
    return dict(berths)


async def _cancels_at(access: Access, berths: Berths) -> tuple[CancelRequest, ...]:
    replies = await access.calls("cancels", {queue: (runners,) for queue, runners in berths.items()})
    return tuple(
        CancelRequest(id_.decode(), attempt, runner.decode())
        for found in replies.values()
        for id_, attempt, runner in found
    )
