"""The plans of one connection: discarded every ten seconds, and made again by calls that no job waits for."""

import contextlib
from typing import Any

import asyncpg

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

REPLAN_EVERY: Micros = 10 * SECOND
"""Plans are discarded, because a plan made while a table was empty would scan every row that was added since."""
URGENT_FACTOR = 2
"""An urgent call renews plans only when they are this many times as old."""
_PLAN = """
SELECT format('EXPLAIN EXECUTE %I', name)
    || coalesce('(' || (SELECT string_agg('NULL', ',') FROM unnest(parameter_types)) || ')', '')
FROM pg_prepared_statements WHERE statement = ANY($1::text[])
"""
"""Makes statements that plan the given prepared statements without running them; the server keeps those plans."""
_SHORTLY = "SET LOCAL lock_timeout = '20ms'"
"""Planning locks the tables of a statement, which the call that makes the plans may not need itself."""
_LEFT = (asyncpg.FeatureNotSupportedError, asyncpg.SyntaxOrAccessError, asyncpg.LockNotAvailableError)
"""Errors after which the next use of a statement makes its plan: a migration has changed a table, so that the driver
prepares the statement again; or a table is locked.
"""


class Plans:
    """Renews the plans every ten seconds.

    Planning a claim takes longer than the claim. So an urgent call, for which a job waits, leaves that to other calls
    until the plans are twice as old.
    """

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._made = since_boot()
        self._recent: set[str] = set()
        """Statements executed since then."""

    def used(self, statement: str) -> None:
        """Record that this statement is executed."""
        self._recent.add(statement)

    async def renew(self, *, urgent: bool) -> None:
        """Discard plans that are old; unless the call is urgent, make those of recent statements again."""
        if since_boot() - self._made < (URGENT_FACTOR * REPLAN_EVERY if urgent else REPLAN_EVERY):
            return
        recent, self._recent = self._recent, set()
        plans = [] if urgent or not recent else await self._connection.fetch(_PLAN, list(recent))
        await self._connection.execute("DISCARD PLANS")
        self._made = since_boot()
        if not plans:
            return
        with contextlib.suppress(*_LEFT):
            await self._connection.execute("; ".join([_SHORTLY, *(row[0] for row in plans)]))
