"""A Redis Cluster of three masters, each with a replica or all without."""

from concurrent.futures import ThreadPoolExecutor

import redis

from tests.support.processes import until
from tests.support.servers.ports import OF_CLUSTERS
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_programs import Program

MASTERS, SLOTS = 3, 16_384
NODE_TIMEOUT = 1000
"""Milliseconds after which a silent node is voted down: as short as a busy machine allows."""
SETTINGS = f"""
cluster-enabled yes
cluster-config-file nodes.conf
cluster-node-timeout {NODE_TIMEOUT}
cluster-replica-validity-factor 0
"""


class RedisCluster:
    """The nodes; which of them are masters changes."""

    def __init__(self, nodes: list[RedisServer]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"redis+cluster://{hosts}"

    def start(self) -> None:
        """Start them all, and make one cluster of them."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(RedisServer.start, self.nodes))
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            node.execute("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if node is not first:
                node.execute("CLUSTER", "MEET", "127.0.0.1", first.port)
        for number, node in enumerate(self.nodes[:MASTERS]):
            node.execute("CLUSTER", "ADDSLOTS", *range(number * SLOTS // MASTERS, (number + 1) * SLOTS // MASTERS))
        until(lambda: all(_knows(node, len(self.nodes)) for node in self.nodes), "the nodes know each other")
        for master, replica in zip(self.nodes[:MASTERS], self.nodes[MASTERS:], strict=False):
            name = master.execute("CLUSTER", "MYID").decode()
            until(lambda r=replica, n=name: _replicates(r, n), "the node is a replica")  # type: ignore[misc]
        self.settle()

    def settle(self) -> None:
        """Until every node that runs says that all is well, and every replica is up to date."""
        until(self._well, "the cluster is well")

    def masters(self) -> list[RedisServer]:
        return [node for node in self.nodes if node.running and node.info()["role"] == "master"]

    def master_of(self, key: str) -> RedisServer:
        """Who keeps this key now."""
        slot = int(self._alive().execute("CLUSTER", "KEYSLOT", key))
        for start, end, (_, port, *_), *_ in self._alive().execute("CLUSTER", "SLOTS"):
            if start <= slot <= end:
                return next(node for node in self.nodes if node.port == port)
        raise LookupError(f"slot {slot} is served by no node")

    def await_failover(self, key: str, old: RedisServer) -> None:
        """Until another than `old` keeps this key. A subscriber may notice the loss long before."""
        until(lambda: self._has_moved(key, old), "there is a new master")

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def remove(self) -> None:
        for node in self.nodes:
            node.remove()

    def _alive(self) -> RedisServer:
        return next(node for node in self.nodes if node.running)

    def _has_moved(self, key: str, old: RedisServer) -> bool:
        try:
            return self.master_of(key) is not old
        except LookupError:
            return False  # neither of the two serves it yet

    def _well(self) -> bool:
        alive = [node for node in self.nodes if node.running]
        return all(_says_ok(node) for node in alive) and all(_up_to_date(node) for node in alive)


def new_cluster(program: Program | None = None, *, replicas: bool = True) -> RedisCluster:
    """Six nodes that are not started yet, or three."""
    count = 2 * MASTERS if replicas else MASTERS
    return RedisCluster([new_redis(SETTINGS, program, OF_CLUSTERS) for _ in range(count)])


def new_cluster_without_replicas() -> RedisCluster:
    """Three nodes that are not started yet: where one is away, the others answer for what they have."""
    settings = f"{SETTINGS}cluster-require-full-coverage no\n"
    return RedisCluster([new_redis(settings, None, OF_CLUSTERS) for _ in range(MASTERS)])


def _knows(node: RedisServer, others: int) -> bool:
    return f"cluster_known_nodes:{others}".encode() in node.execute("CLUSTER", "INFO")


def _says_ok(node: RedisServer) -> bool:
    return b"cluster_state:ok" in node.execute("CLUSTER", "INFO")


def _up_to_date(node: RedisServer) -> bool:
    info = node.info()
    return bool(info["role"] == "master" or info["master_link_status"] == "up")


def _replicates(node: RedisServer, master: str) -> bool:
    try:
        node.execute("CLUSTER", "REPLICATE", master)
    except redis.ResponseError:
        return False  # it has not heard of its master yet
    return True
