"""The slot of a queue moves from one server of a cluster to another, in two steps."""

from tests.support.processes import until
from tests.support.servers.redis import RedisServer
from tests.support.servers.redis_cluster import RedisCluster


class SlotMove:
    """The slot of a queue goes to another server, in two steps."""

    def __init__(self, cluster: RedisCluster, queue: str) -> None:
        self._cluster = cluster
        self._source = home_of(cluster, queue)
        self.target = next(node for node in cluster.masters() if node.port != self._source.port)
        self._slot = int(self._source.execute("CLUSTER", "KEYSLOT", f"{{{queue}}}"))

    def half(self) -> None:
        """Half of its keys are here, and half there."""
        source, target = (node.execute("CLUSTER", "MYID").decode() for node in (self._source, self.target))
        self.target.execute("CLUSTER", "SETSLOT", self._slot, "IMPORTING", source)
        self._source.execute("CLUSTER", "SETSLOT", self._slot, "MIGRATING", target)
        keys = self._keys()
        self._migrate(keys[: len(keys) // 2])

    def finish(self) -> None:
        self._migrate(self._keys())
        name = self.target.execute("CLUSTER", "MYID").decode()
        for node in self._cluster.masters():
            node.execute("CLUSTER", "SETSLOT", self._slot, "NODE", name)

    def _keys(self) -> list[bytes]:
        return list(self._source.execute("CLUSTER", "GETKEYSINSLOT", self._slot, 1000))

    def _migrate(self, keys: list[bytes]) -> None:
        for key in keys:
            self._source.execute("MIGRATE", "127.0.0.1", self.target.port, key.decode(), 0, 5000)


def home_of(cluster: RedisCluster, queue: str) -> RedisServer:
    """The master that has a queue, as soon as one has it."""
    return until(lambda: cluster.master_of(f"{{{queue}}}"), f"a master has {queue}")
