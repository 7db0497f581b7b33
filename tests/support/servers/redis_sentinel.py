"""A master and its replica, watched by three Sentinels that make the replica master if the master is silent."""

from concurrent.futures import ThreadPoolExecutor

import redis

from tests.support.processes import until
from tests.support.servers.account import unprivileged
from tests.support.servers.folder import new_folder
from tests.support.servers.ports import free_port
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_programs import find

SERVICE = "jobs"
QUORUM, WATCHERS = 2, 3
SETTINGS = """
bind 127.0.0.1
port {port}
dir {folder}
sentinel monitor {service} 127.0.0.1 {master} {quorum}
sentinel down-after-milliseconds {service} 1000
sentinel failover-timeout {service} 4000
"""


class RedisSentinels:
    """Two servers and who watches them; which of the two is master changes."""

    def __init__(self, servers: list[RedisServer]) -> None:
        self.servers = servers
        self.watchers = [_watcher(servers[0].port) for _ in range(WATCHERS)]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{watcher.port}" for watcher in self.watchers)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def start(self) -> None:
        """Until every watcher knows the others and the replica."""
        for server in self.servers:
            server.start()
        until(lambda: self.servers[1].info()["master_link_status"] == "up", "the replica is up to date")
        with ThreadPoolExecutor(WATCHERS) as pool:
            list(pool.map(RedisServer.start, self.watchers))
        until(lambda: all(_sees_all(watcher) for watcher in self.watchers), "the Sentinels know each other")

    def master(self) -> RedisServer:
        """Who the Sentinels say it is."""
        port = self._said()
        return next(server for server in self.servers if server.port == port)

    def await_failover(self, old: RedisServer) -> RedisServer:
        """Until another than `old` is master."""
        until(lambda: self._said() != old.port and self.master().info()["role"] == "master", "there is a new master")
        return self.master()

    def remove(self) -> None:
        for server in (*self.watchers, *self.servers):
            server.remove()

    def _said(self) -> int:
        _, port = self.watchers[0].execute("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return int(port)


def new_sentinels() -> RedisSentinels:
    """Not started yet."""
    master = new_redis()
    return RedisSentinels([master, new_redis(f"replicaof 127.0.0.1 {master.port}")])


def _watcher(master: int) -> RedisServer:
    folder, port = new_folder("sentinel"), free_port()
    settings = folder / "redis.conf"
    settings.write_text(SETTINGS.format(port=port, folder=folder, service=SERVICE, master=master, quorum=QUORUM))
    unprivileged().own(settings)
    return RedisServer(folder, port, find(), "--sentinel")


def _sees_all(watcher: RedisServer) -> bool:
    with redis.Redis(port=watcher.port) as client:
        state = client.sentinel_master(SERVICE)
    return bool(state["num-other-sentinels"] == WATCHERS - 1 and state["num-slaves"] == 1)
