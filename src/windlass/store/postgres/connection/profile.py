"""Profiles: what differs on databases that speak PostgreSQL's protocol but lack some of its features.

A profile has its own migrations, its own text of some statements (store/sql/statements.py), and the settings below.
For YugabyteDB see docs/decisions/0079-yugabytedb-as-a-profile.md.
"""

import re
from collections.abc import Mapping

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.sql.statements import statements_of

YUGABYTE = "yugabyte"
MAX_BUCKETS = 64
DEFAULT_BUCKETS = 16

SKEW: Micros = SECOND // 2
"""How far the clocks of a cluster's nodes may differ; YugabyteDB tolerates no more."""
MAX_TRANSACTION: Micros = 10 * SECOND
"""How long a transaction of Windlass may be idle."""
LOOKBACK: Micros = 2 * MAX_TRANSACTION + SKEW
"""How far behind the clock watermarks stay. Jobs of a transaction that is open for longer may be found late: of a
caller's, of a bulk of 40,000 jobs or more (`Access.for_many`), or of an app with a longer deadline.
"""

_SERVER_MICROS = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_PLACEHOLDER = re.compile(r"(?<![:\w]):(horizon|transaction|notify|skew)\b")
_BUCKET = re.compile(r":bucket\b")
_EACH = re.compile(r"/\*each\*/(.*?)/\*end\*/", re.DOTALL)


class Profile(msgspec.Struct, frozen=True):
    """What differs from PostgreSQL."""

    name: str = ""
    horizon: str = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    """An SQL expression: all transactions with a lower id have ended."""
    transaction: str = "pg_current_xact_id()::text::bigint"
    """An SQL expression: an id above those of all transactions that have begun."""
    notify: str = "pg_notify"
    skew: Micros = 0
    rescan_every: Micros = 1 * SECOND
    """How often a claim from unlimited queues rescans from the watermarks, even if it gets all jobs it asks for."""
    partitions: bool = True
    """Whether history is dropped by whole partitions."""
    advisory_locks: bool = True
    lock_timeouts: bool = True
    """Whether a lock_timeout ends waits for rows; if not, the client ends them (connection/access.py)."""
    settings: Mapping[str, str] = {}
    """Session settings in addition to those for every profile."""
    lost: tuple[str, ...] = ()
    """Classes of SQLSTATE after which the outcome of a commit is unknown, besides those of a lost connection."""

    @property
    def has_buckets(self) -> bool:
        """Whether jobs are in buckets."""
        return self.name == YUGABYTE

    def statement(self, name: str) -> str:
        """The text of a statement."""
        return statements_of("postgres", self.name)[name]

    def filled(self, text: str) -> str:
        """The text with the expressions of this profile."""
        values = {
            "horizon": self.horizon,
            "transaction": self.transaction,
            "notify": self.notify,
            "skew": str(self.skew),
        }
        return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


PLAIN = Profile()
YUGABYTEDB = Profile(
    name=YUGABYTE,
    horizon=f"(SELECT {_SERVER_MICROS} - {LOOKBACK})",
    transaction=f"(SELECT {_SERVER_MICROS})",
    # A function with the same arguments that does nothing: NOTIFY is an error on servers on which it is off.
    notify="concat",
    skew=SKEW,
    # Less often, because a rescan reads the entries of all jobs that ended within the lookback.
    rescan_every=LOOKBACK // 2,
    partitions=False,
    advisory_locks=False,
    lock_timeouts=False,
    settings={"idle_in_transaction_session_timeout": str(MAX_TRANSACTION // 1000)},
    lost=("XX",),
)
PROFILES = {"": PLAIN, YUGABYTE: YUGABYTEDB}


def for_each_bucket(text: str, buckets: int) -> str:
    """The text, in which the part for each bucket is repeated for every bucket, as a union."""

    def union(found: re.Match[str]) -> str:
        return " UNION ALL ".join(_BUCKET.sub(str(bucket), found[1]) for bucket in range(buckets))

    return _EACH.sub(union, text)
