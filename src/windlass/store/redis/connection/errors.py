"""Errors of the driver: their translation, what may have been done, and what can be tried again."""

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import TimeoutError as TimedOut

from windlass.errors import InvalidInput, KeyConflict, QueueClosed, StoreUnavailable
from windlass.store.redis.connection.driver import Unsent

DRIVER_ERRORS = (RedisError, OSError)


class NotReplicated(RedisError):
    """The change is made, but fewer replicas have it than `replicas=` asks for."""


class QueueErrors(list[StoreUnavailable]):
    """Errors of queues that could not be reached, to be raised after the others were handled."""

    @contextlib.contextmanager
    def collected(self) -> Iterator[None]:
        """Collect an error raised in this context."""
        try:
            yield
        except StoreUnavailable as error:
            self.append(error)

    def raise_first(self) -> None:
        """Raise the first of them, if there is any."""
        if self:
            raise self[0]


_PASSING = {
    "BUSY": "a script of another user runs for too long on this server",
    "CLUSTERDOWN": "a part of the cluster has no master yet; calls are repeated",
    "LOADING": "the server is loading its file, and answers when that is done",
    "MASTERDOWN": "this is a replica that has lost its master",
    "MISCONF": "the server cannot write its file: is the disk full?",
    "NOREPLICAS": "the server has fewer good replicas than min-replicas-to-write",
    "OOM": "the server's memory is full; raise maxmemory, or let workers finish and remove jobs",
    "READONLY": "this is a replica; name the master, or use redis+sentinel:// or redis+cluster://",
    "TRYAGAIN": "a hash slot of the cluster is being moved",
    "UNKILLABLE": "a script of another user runs for too long on this server",
    "max number of clients": "raise maxclients, or run fewer processes",
}
"""Temporary errors, by the beginning or a part of their message. The server did nothing: a script that has written
anything never gets one of these."""

_NO_RIGHT = "this user lacks a right; see the recipe for a user in the guide to Redis"
_LASTING = {
    "CROSSSLOT": "the server is a cluster; write redis+cluster://",
    "MOVED": "the server is a node of a cluster; write redis+cluster://",
    "DB index is out of range": "the server has fewer databases; see `databases` in its configuration",
    "NOAUTH": "the server wants a password; write it into the address",
    "NOPERM": _NO_RIGHT,
    "The user executing the script": _NO_RIGHT,
    "WRONGPASS": "check user and password in the address",
    "invalid username-password": "check user and password in the address",
    "unknown command": "is it a Redis server? The address of a Sentinel begins with redis+sentinel://",
    "cluster support disabled": "this server is not a cluster; write redis:// instead of redis+cluster://",
}

_TLS = {
    "CERTIFICATE_VERIFY_FAILED": "name its authority with ssl_ca_certs, and the host as the certificate does",
    "No such file": "do all files that the ssl_ options name exist?",
    "connecting to": "does the server speak TLS at this port? If not, it is redis://",
}
"""Causes of failures with TLS; the most specific first."""
_TLS_LASTING = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "No such file")


def translate(error: Exception, shown: str) -> StoreUnavailable:
    """The error without secrets, with advice, and whether the call may have taken effect."""
    message = message_of(error)
    passing, lasting = _advice(message, _PASSING), _advice(message, _LASTING)
    refused = passing is not None or lasting is not None or isinstance(error, ResponseError | AuthenticationError)
    stopped = passing is None and is_from_script(error)
    advice = passing or lasting or (_advice(message, _TLS) if shown.startswith("rediss") else None)
    return StoreUnavailable(
        f"{shown}: {message}" + (f"; {advice}" if advice else ""),
        maybe_done=isinstance(error, NotReplicated) or stopped or not (refused or is_unsent(error)),
        lasting=passing is None
        and (refused or (shown.startswith("rediss") and any(part in message for part in _TLS_LASTING))),
    )


def is_from_script(error: Exception) -> bool:
    """Whether it was raised within a script, which may have written before, unless the error passes."""
    return isinstance(error, ResponseError) and any(phrase in str(error) for phrase in _IN_SCRIPT)


def is_unsent(error: Exception) -> bool:
    """Whether the server was not reached: nothing was done, and another may be asked."""
    if isinstance(error, AuthenticationError | AuthorizationError | ConnectionRefusedError | Unsent):
        return True
    return isinstance(error, Disconnected | TimedOut) and "connecting to" in str(error)


def is_retryable(reply: Any) -> bool:
    """Whether nothing was done, and a retry, here or at another server, may succeed."""
    if not isinstance(reply, Exception):
        return False
    return (is_unsent(reply) and not isinstance(reply, AuthenticationError)) or message_of(reply).startswith(
        _ELSEWHERE
    )


def is_lost(error: Exception) -> bool:
    """Whether the server is unreachable, or no longer a master: another one may be the master."""
    return isinstance(error, Disconnected | TimedOut | OSError) or message_of(error).startswith(
        ("READONLY", "MASTERDOWN")
    )


def message_of(error: Exception) -> str:
    """The first line of the message, with the error code that the driver removes."""
    silent = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    message = str(error).partition("\n")[0].rstrip(" .") or silent
    if message.startswith("HELLO must be called"):
        return "NOAUTH authentication required"  # the server's own message has three lines
    code = _CODES.get(type(error).__name__)
    return message if code is None or message.startswith(code) else f"{code} {message}"


_IN_SCRIPT = ("user_script", "Error running script", "failure in script")
_ELSEWHERE = ("CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "READONLY", "TRYAGAIN")
_CODES = {
    "AskError": "ASK",
    "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}


def _advice(message: str, advices: dict[str, str]) -> str | None:
    return next((advice for start, advice in advices.items() if message.startswith(start) or start in message), None)


@contextlib.contextmanager
def after_storing(queues: Collection[str]) -> Iterator[None]:
    """Errors in this context come after these queues stored jobs of the same call; `queues` may grow meanwhile.

    The refusal of another queue, which says that nothing was stored, becomes an error that names these queues.
    """
    try:
        yield
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or bool(queues)
        raise
    except (KeyConflict, QueueClosed, InvalidInput) as error:
        if not queues:
            raise
        raise partly_stored(queues, error) from error


def partly_stored(queues: Collection[str], error: Exception) -> StoreUnavailable:
    """The error of a call over several queues: these have stored their jobs, another one refused."""
    message = str(error).removesuffix("; nothing was stored")
    names = ", ".join(map(repr, sorted(queues)))
    return StoreUnavailable(f"only a part is stored, in the queues {names}: {message}", maybe_done=True)
