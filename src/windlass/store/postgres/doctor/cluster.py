"""Checks for YugabyteDB, or for its profile on PostgreSQL: version, isolation, buckets, conflicts."""

from collections.abc import AsyncIterator

from windlass.store.doctor import Finding, note, ok, problem, warning
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.connection.profile import MAX_BUCKETS, SKEW
from windlass.store.postgres.connection.requirements import is_cluster, isolation_problem, version_problem
from windlass.store.postgres.connection.session import Session

UPGRADE = "see https://docs.yugabyte.com for upgrades; the profile needs one that is based on PostgreSQL 15"
PORT = "or check host and port: YugabyteDB listens on 5433"
UNEVEN = 4
"""A warning is given if a bucket has this many times its share of the jobs."""
MIN_COUNTED = 1000
MANY_CONFLICTS = 36_000
"""Conflicts in an hour: ten a second."""


async def check_cluster(address: Address, session: Session) -> AsyncIterator[Finding]:
    """Whether this server is a YugabyteDB on which the profile works."""
    version = str(await session.connection.fetchval("SELECT version()"))
    says = version_problem(version, named=address.cluster)
    if says is not None:
        yield problem("cluster", says, UPGRADE if is_cluster(version) else PORT)
        return
    if not is_cluster(version):
        yield note("cluster", "the YugabyteDB profile on plain PostgreSQL: for tests, and slower than without it")
        return
    effective = str(await session.connection.fetchval("SELECT yb_get_effective_transaction_isolation_level()"))
    if says := isolation_problem(effective):
        yield problem("cluster", says, "without it claims and settlements fail instead of waiting for each other")
        return
    margin = f"clocks of its nodes may differ by {SKEW / 1_000_000:g} s"
    yield ok("cluster", f"{version.partition(' on ')[0]}, {effective}; {margin}")


async def check_conflicts(db: Db) -> AsyncIterator[Finding]:
    """How often workers repeated a call in the last hour, which is normal at times if several nodes write."""
    conflicts, waits = (await db.rows("examine_conflicts"))[0]
    says = (
        f"in the last hour workers repeated {conflicts:,} calls after a conflict, and {waits:,} claims waited for "
        "another"
    )
    if conflicts > MANY_CONFLICTS:
        advice = "larger claims (--concurrency), more buckets (windlass migrate --buckets), or ?order=loose"
        yield warning("conflicts", says, advice)
    else:
        yield ok("conflicts", says)


async def check_buckets(db: Db) -> AsyncIterator[Finding]:
    """How many buckets there are, and whether every queue has a watermark in each."""
    buckets, pairs, lacking, largest, counted = (await db.rows("examine_buckets", {"most": MIN_COUNTED}))[0]
    if lacking:
        yield warning(
            "buckets",
            f"{lacking} of {pairs} queues and priorities lack watermarks in some of the {buckets} buckets",
            "the next enqueue adds them; or: windlass migrate",
        )
    elif counted >= MIN_COUNTED and largest * buckets > UNEVEN * counted:
        yield warning(
            "buckets",
            f"one of {buckets} buckets has {largest:,} of {counted:,} jobs: the last bytes of the ids are not random",
            "let Windlass make the ids, or use UUIDs whose last two bytes are random",
        )
    else:
        yield ok("buckets", f"{buckets} of at most {MAX_BUCKETS}")
