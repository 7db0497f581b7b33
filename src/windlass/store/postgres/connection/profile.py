"""Profiles: databases that speak PostgreSQL's protocol and lack some of it, as data.

A profile has its own migrations, its own text of some statements (store/sql/statements.py), and these settings.
YugabyteDB: docs/decisions/0079-yugabytedb-as-a-profile.md.
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
"""By how much the clocks of a cluster's nodes may differ: YugabyteDB tolerates as much."""
MAX_TRANSACTION: Micros = 10 * SECOND
"""How long a transaction may be idle."""
LOOKBACK: Micros = 2 * MAX_TRANSACTION + SKEW
"""Jobs of a transaction that is open for longer may be found late. It is a caller's, or a bulk of 40,000 jobs or more
(`Access.for_many`), or a call of an app with a longer deadline.
"""

_SERVER_MICROS = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_PLACE = re.compile(r"(?<![:\w]):(horizon|transaction|notify|skew)\b")
_BUCKET = re.compile(r":bucket\b")
_EACH = re.compile(r"/\*each\*/(.*?)/\*end\*/", re.DOTALL)


class Profile(msgspec.Struct, frozen=True):
    """What differs from PostgreSQL."""

    name: str = ""
    horizon: str = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    """Expression: every transaction below it has ended."""
    transaction: str = "pg_current_xact_id()::text::bigint"
    """Expression: an id above all transactions that have begun."""
    notify: str = "pg_notify"
    skew: Micros = 0
    rescan_every: Micros = 1 * SECOND
    """How often a claim from unlimited queues rescans from the watermark, however well jobs flow."""
    partitions: bool = True
    """Whether history is dropped by whole partitions."""
    advisory_locks: bool = True
    lock_timeouts: bool = True
    """Whether a lock_timeout ends waits for rows; else the client does (connection/access.py)."""
    settings: Mapping[str, str] = {}
    """Session settings in addition to those of every profile."""
    lost: tuple[str, ...] = ()
    """Error classes after which the outcome of a commit is unknown, besides those of a lost connection."""

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
        return _PLACE.sub(lambda found: values[found[1]], text)


PLAIN = Profile()
YUGABYTEDB = Profile(
    name=YUGABYTE,
    horizon=f"(SELECT {_SERVER_MICROS} - {LOOKBACK})",
    transaction=f"(SELECT {_SERVER_MICROS})",
    # It takes the same arguments, and does nothing: NOTIFY is an error where it is not turned on.
    notify="concat",
    skew=SKEW,
    # Watermarks are behind by the lookback: a rescan reads all that ended in that time.
    rescan_every=LOOKBACK // 2,
    partitions=False,
    advisory_locks=False,
    lock_timeouts=False,
    settings={"idle_in_transaction_session_timeout": str(MAX_TRANSACTION // 1000)},
    lost=("XX",),
)
PROFILES = {"": PLAIN, YUGABYTE: YUGABYTEDB}


def for_each_bucket(text: str, buckets: int) -> str:
    """The text with its part for each bucket once per bucket, as one ordered union."""

    def union(found: re.Match[str]) -> str:
        return " UNION ALL ".join(_BUCKET.sub(str(bucket), found[1]) for bucket in range(buckets))

    return _EACH.sub(union, text)
