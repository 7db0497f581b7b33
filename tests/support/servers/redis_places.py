"""A prefix of its own for each test, on the Redis or the cluster of this run, removed when the test is over."""

import functools
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import redis

from tests.support.servers.folder import at_end
from tests.support.servers.redis import new_redis
from tests.support.servers.redis_cluster import RedisCluster, new_cluster

VARIABLE = "WINDLASS_TEST_REDIS"
"""The address of a server to test on instead of one that we start."""
KEPT = 32
"""Places that stay although a later test has begun: of folders whose end is not reported."""


class Places:
    """The prefixes of this run, known by folder."""

    def __init__(self, url: str, servers: Callable[[], list[str]]) -> None:
        """`servers` tells all addresses at which keys may lie."""
        self._url = url
        self._servers = servers
        self._of: dict[Path, str] = {}

    def of(self, folder: Path) -> str:
        """Made at the first call; the latest called is dropped last."""
        prefix = self._of.pop(folder, None) or f"t{secrets.token_hex(4)}"
        for older in list(self._of)[: max(0, len(self._of) - KEPT)]:
            self.drop(older)
        self._of[folder] = prefix
        return f"{self._url}{'&' if '?' in self._url else '?'}prefix={prefix}"

    def drop(self, folder: Path) -> None:
        """Remove what a test left there and below: a run must not need memory for all that it ever did."""
        prefixes = {self._of.pop(each) for each in list(self._of) if each.is_relative_to(folder)}
        for server in self._servers() if prefixes else []:
            with redis.Redis.from_url(server) as client, client.pipeline(transaction=False) as pipe:
                for key in client.scan_iter(count=10_000):
                    if key.decode().partition(":")[0] in prefixes:
                        pipe.unlink(key)  # one by one: in a cluster each may be of another slot
                pipe.execute()


@functools.cache
def shared_redis() -> str:
    """The server of this run: started at the first call, and only if no other is named."""
    if named := os.environ.get(VARIABLE):
        return named
    server = new_redis()
    server.start()
    at_end(server.kill)
    return server.url


@functools.cache
def shared_cluster() -> RedisCluster:
    """The three nodes of this run: started at the first call. No test kills one, so they need no replicas."""
    cluster = new_cluster(replicas=False)
    cluster.start()
    at_end(cluster.kill)
    return cluster


def redis_place(folder: Path) -> str:
    """The address of what belongs to a test's folder."""
    return _on_server().of(folder.resolve())


def redis_prefix(folder: Path) -> str:
    """The prefix of what belongs to a test's folder."""
    return redis_place(folder).rpartition("prefix=")[2]


def redis_cluster_place(folder: Path) -> str:
    """The same, on the cluster of this run."""
    return _on_cluster().of(folder.resolve())


def drop_redis_places(folder: Path) -> None:
    """A test is over: so is what it kept."""
    for places in (_on_server, _on_cluster):
        if places.cache_info().currsize:
            places().drop(folder.resolve())


@functools.cache
def _on_server() -> Places:
    return Places(shared_redis(), lambda: [shared_redis()])


@functools.cache
def _on_cluster() -> Places:
    cluster = shared_cluster()
    return Places(cluster.url, lambda: [node.url for node in cluster.masters()])
