"""Examine a server: every check, one after the other, whatever the others found. Nothing is made or changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from windlass.errors import StoreUnavailable
from windlass.store.clock import Clock
from windlass.store.doctor import Census, Examination, Finding, Level, problem
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.errors import translate
from windlass.store.redis.connection.server import Server
from windlass.store.redis.doctor.census import take_census
from windlass.store.redis.doctor.contents import (
    check_counts,
    check_idempotency_keys,
    check_jobs,
    check_keys,
    check_retention,
    check_rights,
    check_schedules,
)
from windlass.store.redis.doctor.read_only_access import ReadOnlyAccess
from windlass.store.redis.doctor.server import (
    Info,
    check_connections,
    check_durability,
    check_memory,
    check_role,
    check_versions,
)

SECONDS_TO_CHECK = 20.0
"""Each check; a deep one takes as long as it needs."""

OfServer = Callable[[Info, Address], Iterator[Finding]]
OfContents = Callable[[ReadOnlyAccess], AsyncIterator[Finding]]
_OF_SERVER: tuple[OfServer, ...] = (
    check_versions,
    check_durability,
    check_memory,
    check_role,
    check_connections,
)
_WORSE = list(Level)


async def examine(address: Address, shown: str, clock: Clock | None, *, deep: bool) -> Examination:
    """All findings about a server, reachable or not, with our keys or not."""
    server = Server(address, shown, clock)
    findings = Findings(ReadOnlyAccess(server), shown)
    try:
        infos = await findings.onlooker.infos()
        findings.findings += [each for check in _OF_SERVER for each in worst(check, infos, address)]
        return await _inside(findings, deep=deep)
    except StoreUnavailable as error:
        advice = "check host, port, user and password of the address, and whether the server runs"
        findings.findings.append(problem("server", str(error), advice))
        return Examination(tuple(findings.findings), None)
    finally:
        await server.wire.close()


def worst(check: OfServer, infos: Sequence[Info], address: Address) -> list[Finding]:
    """What a check finds at the server that is worst off, of several."""
    found = [list(check(info, address)) for info in infos]
    return max(found, key=lambda each: max(_WORSE.index(finding.level) for finding in each), default=[])


async def _inside(findings: "Findings", *, deep: bool) -> Examination:
    census = None
    await findings.look("rights", check_rights)
    if await findings.look("keys", check_keys):
        await findings.look("retention", check_retention)
        await findings.look("contents", check_counts)
        await findings.look("contents", check_schedules)
        if deep:
            await findings.look("contents", check_jobs, seconds=None)
            await findings.look("idempotency keys", check_idempotency_keys, seconds=None)
        census = await findings.count()
    return Examination(tuple(findings.findings), census)


class Findings:
    """What was found so far."""

    def __init__(self, access: ReadOnlyAccess, shown: str) -> None:
        self.onlooker = access
        self._shown = shown
        self.findings: list[Finding] = []

    async def look(self, name: str, check: OfContents, seconds: float | None = SECONDS_TO_CHECK) -> bool:
        """Do a check and write down what it finds: whether all of that is as it should be, or better to know."""
        found = []
        try:
            async with asyncio.timeout(seconds):
                found = [each async for each in check(self.onlooker)]
        except Exception as error:
            found.append(self._translate(name, error))
        self.findings += found
        return all(each.level in (Level.OK, Level.NOTE) for each in found)

    async def count(self) -> Census | None:
        """The census."""
        try:
            async with asyncio.timeout(SECONDS_TO_CHECK):
                return await take_census(self.onlooker)
        except Exception as error:
            self.findings.append(self._translate("jobs", error))
            return None

    def _translate(self, name: str, error: Exception) -> Finding:
        said = error if isinstance(error, StoreUnavailable) else translate(error, self._shown)
        return problem(
            name, f"could not be checked: {said}", "if no other finding explains that, look at the server's log"
        )
