"""The plans of one connection: discarded from time to time, and made anew by calls that no job waits for."""

import contextlib
from typing import Any

import asyncpg

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

REPLAN_EVERY: Micros = 10 * SECOND
"""A plan made while a table was empty would scan all that has come since, so plans are discarded from time to time.
"""
URGENT_FACTOR = 2
"""How much older plans may be for an urgent call."""
_PLAN = """
SELECT format('EXPLAIN EXECUTE %I', name)
    || coalesce('(' || (SELECT string_agg('NULL', ',') FROM unnest(parameter_types)) || ')', '')
FROM pg_prepared_statements WHERE statement = ANY($1::text[])
"""
"""Statements that plan these prepared ones without running them; the server keeps the plans."""
_SHORTLY = "SET LOCAL lock_timeout = '20ms'"
"""Planning locks the tables of a statement, which may be others than those of the call that makes the plans."""
_LEFT = (asyncpg.FeatureNotSupportedError, asyncpg.SyntaxOrAccessError, asyncpg.LockNotAvailableError)
"""Errors that leave a plan to the next use of its statement: a migration has changed what it reads, and the driver
prepares it anew; or its table is locked.
"""


class Plans:
    """Plans are renewed every ten seconds.

    Planning a claim takes longer than the claim. So an urgent call, for which a job waits, leaves it to others until
    the plans are twice as old.
    """

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._made = since_boot()
        self._recent: set[str] = set()
        """Statements since then."""

    def used(self, statement: str) -> None:
        """This statement is executed."""
        self._recent.add(statement)

    async def renew(self, *, urgent: bool) -> None:
        """Discard old plans; if this is not urgent, make those of recent statements anew."""
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
