"""The requirements of a profile on its server, checked before anything is created there."""

import re

import asyncpg
import msgspec

from windlass.errors import StoreUnavailable
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.db import Texts
from windlass.store.postgres.connection.profile import PLAIN
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import is_conflict

MIN_POSTGRES = 15
"""The PostgreSQL that YugabyteDB is based on; before v2025.1 it is PostgreSQL 11."""
WANTED_ISOLATION = "read committed"
FLAG = "yb_enable_read_committed_isolation"
_VERSION = re.compile(r"PostgreSQL (\d+)\S*-YB-(\S+)")
_PROBE = "windlass_probe"


def is_cluster(version: str) -> bool:
    """Whether this is the `version()` of YugabyteDB."""
    return _VERSION.search(version) is not None


async def check_server(session: Session, address: Address, shown: str) -> None:
    """Refuse a server on which the profile's promises would not hold."""
    if not address.profile.name:
        return
    version = str(await session.connection.fetchval("SELECT version()"))
    problem = version_problem(version, named=address.cluster)
    if problem is None and is_cluster(version):
        problem = isolation_problem(
            str(await session.connection.fetchval("SELECT yb_get_effective_transaction_isolation_level()"))
        )
    if problem is not None:
        raise StoreUnavailable(f"{shown}: {problem}", lasting=True)


def version_problem(version: str, *, named: bool) -> str | None:
    """The problem with the version, if any; `named` is whether the address says yugabyte://."""
    found = _VERSION.search(version)
    if found is None:
        product = version.partition(" on ")[0]
        return f"this is not YugabyteDB but {product}: write postgresql:// for PostgreSQL" if named else None
    if int(found[1]) < MIN_POSTGRES:
        return (
            f"YugabyteDB {found[2]} is based on PostgreSQL {found[1]}, and Windlass needs {MIN_POSTGRES}: "
            "upgrade it to v2025.1 or newer"
        )
    return None


def isolation_problem(effective: str) -> str | None:
    """The problem with the effective isolation level, if any."""
    if effective.lower() == WANTED_ISOLATION:
        return None
    return (
        f"transactions that ask for {WANTED_ISOLATION} get {effective}: set the flag {FLAG}=true on every "
        "YB-TServer, and restart it"
    )


async def learn_notify(session: Session, address: Address, texts: Texts) -> bool:
    """Find out whether hints are on; in a profile, they also need a server that accepts LISTEN and NOTIFY."""
    if not address.notify or not address.profile.name:
        return address.notify
    if session.pooled or not await can_notify(session):
        return False
    texts.profile = msgspec.structs.replace(address.profile, notify=PLAIN.notify)
    return True


async def can_notify(session: Session) -> bool:
    """Whether the server accepts LISTEN and NOTIFY; raises a conflict, after which that is unknown."""
    try:
        await session.connection.execute(f"LISTEN {_PROBE}")
        await session.connection.execute(f"UNLISTEN {_PROBE}")
        await session.connection.fetchval("SELECT pg_notify($1, '')", _PROBE)
    except asyncpg.PostgresError as error:
        if is_conflict(error):
            raise
        return False
    return True
