"""A prefix of its own for each test, on the Redis of this run."""

import functools
import os
import secrets
from pathlib import Path

from tests.support.servers.folder import at_end
from tests.support.servers.redis import new_redis

VARIABLE = "WINDLASS_TEST_REDIS"
"""The address of a server to test on instead of one that we start."""


@functools.cache
def shared_redis() -> str:
    """The server of this run: started at the first call, and only if no other is named."""
    if named := os.environ.get(VARIABLE):
        return named
    server = new_redis()
    server.start()
    at_end(server.stop)
    return server.url


def redis_place(folder: Path) -> str:
    """The address of what belongs to a test's folder."""
    return f"{shared_redis()}?prefix={redis_prefix(folder)}"


def redis_prefix(folder: Path) -> str:
    """The prefix that belongs to a folder."""
    return _prefix(folder.resolve())


@functools.cache
def _prefix(folder: Path) -> str:
    return f"t{secrets.token_hex(4)}"
