"""What the driver says, in our words."""

from redis.exceptions import AuthenticationError, BusyLoadingError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import TimeoutError as TimedOut

from windlass.errors import StoreUnavailable

TROUBLE = (RedisError, OSError)
REFUSED = (AuthenticationError, BusyLoadingError, NoPermissionError)
"""The server answered, and did nothing."""


def translate(error: Exception, shown: str) -> StoreUnavailable:
    """What is wrong, without a secret, and whether the call may have taken effect."""
    maybe_done = isinstance(error, Disconnected | TimedOut | OSError) and not isinstance(error, REFUSED)
    lasting = isinstance(error, ResponseError) and not isinstance(error, BusyLoadingError)
    return StoreUnavailable(f"{shown}: {error}", maybe_done=maybe_done, lasting=lasting)
