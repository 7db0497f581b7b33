"""What can go wrong with the server, and the sentence that says what to do."""

import asyncio
from typing import Any

import asyncpg

from windlass.errors import SchemaMismatch, StoreUnavailable, WindlassError

RETRIED = ("40001", "40P01")
"""Serialization failures and deadlocks: nothing was done, and trying again helps."""

TROUBLE = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""What the driver raises when something is wrong with the server or the line; anything else is a mistake of ours.

An internal error of the driver is among them: if the server takes leave between two statements, it loses its thread.
"""

UNSENT = (asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What the driver raises without having sent the statement: it knows that the connection is over."""

READ_ONLY = "25006"
"""Another server may be the primary by now: a new connection finds it, this one never will."""

NOT_THERE = ("3F000", "42P01", "42703")
"""The schema, a table or a column is missing."""

_LASTING = ("28", "3D", "42")
"""Classes of errors that do not go away by themselves: not let in, no such database, not allowed."""

_ADVICE = {
    "28P01": "check the password in the address",
    "28000": "check user, host and pg_hba.conf",
    "3D000": "create the database first, for example with createdb",
    "42501": "grant it, or let `windlass migrate` be run by a user who may create a schema",
    "53300": "raise max_connections, use PgBouncer, or run fewer runners",
    "53100": "the server's disk is full",
    "25006": "this server is read-only; name the primary, or all hosts with target_session_attrs=read-write",
    "57014": "a statement_timeout of the server or of this role is too short",
}


_MODE = "every verb here is a transaction: set pool_mode = transaction (or session) for this database"
_REFUSAL = "statement pooling mode"
"""A pooler that ends every transaction after its first statement says so, in an error of no class of its own."""


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone with it."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state.startswith(("08", "57P")) or state == "25P03"
    return isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError | asyncio.TimeoutError)


def translate(error: BaseException, shown: str, *, maybe_done: bool = False) -> WindlassError:
    """What went wrong, in a sentence that says what to do about it; `shown` is the address without secrets.

    An error that the server itself reports is a refusal: it has rolled back. Only silence leaves a doubt.
    """
    if isinstance(error, WindlassError):
        return error
    if _REFUSAL in str(error):
        return StoreUnavailable(f"{shown}: {_said(error)}; {_MODE}", lasting=True)
    if state := state_of(error):
        if state in NOT_THERE:
            return SchemaMismatch(f"{shown}: {_said(error)}; run `windlass migrate`")
        advice = _ADVICE.get(state)
        sentence = f"{shown}: {_said(error)}" + (f"; {advice}" if advice else "")
        unsure = maybe_done and is_lost(error)
        return StoreUnavailable(sentence, maybe_done=unsure, lasting=state.startswith(_LASTING))
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{shown}: no answer in time", maybe_done=maybe_done)
    return StoreUnavailable(f"{shown}: {_said(error)}", maybe_done=maybe_done)


def state_of(error: BaseException) -> str:
    """The five characters by which PostgreSQL tells errors apart; empty if it is none of PostgreSQL's.

    Drivers call them by two names, and a library around a driver has the driver's error inside its own.
    """
    for each in (error, getattr(error, "orig", None), error.__cause__):
        state: Any = getattr(each, "sqlstate", None) or getattr(each, "pgcode", None)
        if isinstance(state, str):
            return state
    return ""


def _said(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
