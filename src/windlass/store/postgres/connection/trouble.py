"""Errors of the server and the driver, and what to do about them."""

import asyncio
import ssl
from typing import Any

import asyncpg

from windlass.errors import SchemaMismatch, StoreUnavailable, WindlassError
from windlass.store.records import RowsHeld

RETRIED = ("40001", "40P01")
"""Serialization failures and deadlocks: nothing was done, and a retry helps."""

_CONFLICTS = (
    # A row was written at a time that may be before or after the statement's.
    "restart read required",
    # The schema was changed meanwhile, as by `windlass migrate --buckets`.
    "catalog version mismatch",
    "catalog snapshot used for this transaction has been invalidated",
    "schema version mismatch",
)
"""YugabyteDB's messages for conflicts whose SQLSTATE is 40001 in most versions, and XX000 in others."""

TROUBLE = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Errors of the server or the connection; any other is a bug of Windlass.

They include the driver's internal errors: it raises one if the server disconnects between two statements.
"""

UNSENT = (asyncpg.InterfaceError, asyncpg.InternalClientError)
"""Raised before the statement was sent: the connection is known to be closed."""

READ_ONLY = "25006"
"""The server is read-only. Another one may be the primary by now, which only a new connection finds."""

CANCELLED = "57014"
"""The statement was cancelled, by request or by a timeout of the server, and rolled back."""

LOCK_NOT_HAD = "55P03"
"""lock_timeout: the statement was rolled back."""

_TIMEOUTS = ("25P03", "25P04")
"""idle_in_transaction_session_timeout and transaction_timeout: the server closes the connection."""

NOT_THERE = ("3F000", "42P01", "42703")
"""The schema, a table or a column is missing."""

_LASTING = ("28", "3D", "42")
"""Classes of errors that no retry repairs: authentication, missing database, missing privilege."""

_ADVICE = {
    "28P01": "check the password in the address",
    "28000": "check user, host and pg_hba.conf",
    "3D000": "create the database first, for example with createdb",
    "42501": "grant it, or let `windlass migrate` be run by a user who may create a schema",
    "53300": "raise max_connections, use PgBouncer, or run fewer runners",
    "53100": "the server's disk is full",
    "25006": "this server is read-only; name the primary, or all hosts with target_session_attrs=read-write",
    LOCK_NOT_HAD: "another transaction holds rows that it needs; `windlass doctor` names open transactions",
    CANCELLED: "a statement_timeout of the server or of this role is too short",
}


_MODE = "every verb here is a transaction: set pool_mode = transaction (or session) for this database"
_REFUSAL = "statement pooling mode"
"""The error of a pooler in statement mode, which has no SQLSTATE of its own."""


def is_lost(error: BaseException) -> bool:
    """Whether the connection is lost."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state.startswith(("08", "57P")) or state in _TIMEOUTS
    return isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError | asyncio.TimeoutError)


def is_conflict(error: BaseException) -> bool:
    """Whether the transaction was rolled back because of a concurrent one, so that a retry helps."""
    if state_of(error) in RETRIED:
        return True
    message = str(error).lower()
    return any(words in message for words in _CONFLICTS) and not is_lost(error)


def translate(
    error: BaseException, shown: str, *, maybe_done: bool = False, lost: tuple[str, ...] = ()
) -> WindlassError:
    """A WindlassError that says what to do; `shown` is the address without secrets.

    If the server reports an error, it has rolled back. The outcome is unknown only after a lost connection and, in
    some profiles, after an error of the classes `lost`, in which the server itself got no answer from another one.
    """
    if isinstance(error, WindlassError):
        return error
    if _REFUSAL in str(error):
        return StoreUnavailable(f"{shown}: {_first_line(error)}; {_MODE}", lasting=True)
    if state := state_of(error):
        if state in NOT_THERE:
            return SchemaMismatch(f"{shown}: {_first_line(error)}; run `windlass migrate`")
        advice = _ADVICE.get(state)
        sentence = f"{shown}: {_first_line(error)}" + (f"; {advice}" if advice else "")
        if state == LOCK_NOT_HAD:
            return RowsHeld(sentence)
        unknown = maybe_done and (is_lost(error) or state[:2] in lost)
        return StoreUnavailable(sentence, maybe_done=unknown, lasting=state.startswith(_LASTING))
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{shown}: no answer in time", maybe_done=maybe_done)
    if (advice := _tls_advice(error)) is not None:
        return StoreUnavailable(f"{shown}: {_first_line(error)}; {advice}", lasting=True)
    return StoreUnavailable(f"{shown}: {_first_line(error)}", maybe_done=maybe_done)


def _tls_advice(error: BaseException) -> str | None:
    """What to do about a TLS handshake that failed; None if it is another error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "name the CA certificate with sslrootcert, and the host as in the server's certificate"
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error):
        return "the server does not speak TLS: set ssl = on there, or another sslmode in the address"
    return None


def state_of(error: BaseException) -> str:
    """The SQLSTATE; empty if the error is not one of PostgreSQL.

    Drivers have two names for the attribute, and libraries wrap the driver's error in their own.
    """
    for each in (error, getattr(error, "orig", None), error.__cause__):
        state: Any = getattr(each, "sqlstate", None) or getattr(each, "pgcode", None)
        if isinstance(state, str):
            return state
    return ""


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
