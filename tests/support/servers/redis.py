"""A Redis server that tests start, stop, kill, freeze and start again."""

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import redis

from tests.support.processes import until
from tests.support.servers.account import unprivileged
from tests.support.servers.folder import new_folder
from tests.support.servers.ports import OURS, free_port
from tests.support.servers.redis_programs import Program, find

SETTINGS = """
bind 127.0.0.1
port {port}
unixsocket {folder}/redis.sock
unixsocketperm 777
dir {folder}
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
repl-diskless-sync yes
repl-diskless-sync-delay 0
{more}
"""


class RedisServer:
    """One server with a folder and a port of its own, which stay the same from start to start."""

    def __init__(self, folder: Path, port: int, program: Program, kind: str = "") -> None:
        """`kind` is the word that makes it something else than a server: --sentinel."""
        self.folder = folder
        self.port = port
        self.program = program
        self.env: dict[str, str] = {}
        """What it finds in its environment besides ours."""
        self._kind = kind
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int:
        """Of a server that is running."""
        assert self._popen is not None, "the server is not running"
        return self._popen.pid

    def start(self, *, wait: bool = True) -> None:
        """Until it answers and has read what it kept, unless the caller does not `wait`."""
        words: list[str | Path] = [self.program.path, self.folder / "redis.conf"]
        words += [self._kind] if self._kind else []
        with (self.folder / "log").open("ab") as log:
            self._popen = unprivileged().start(words, self.folder, log, self.env)
        if not wait:
            return
        until(lambda: self._answers() or not self.running, "Redis answers or ends")
        assert self.running, f"Redis ended:\n{self.log}"

    def starts_with_tls(self) -> bool:
        """Start where only TLS is spoken; False if this program cannot."""
        with (self.folder / "log").open("ab") as log:
            self._popen = unprivileged().start([self.program.path, self.folder / "redis.conf"], self.folder, log)
        until(lambda: "Ready to accept" in self.log or not self.running, "Redis is ready or ends")
        return self.running

    def stop(self) -> None:
        """Ask it to end, and wait until it has: what it holds is written first."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As when the process crashes: what was given to the kernel is kept."""
        self._end(signal.SIGKILL)

    @property
    def appended(self) -> Path:
        """The file to which it adds what it was told: one up to Redis 6.2, since 7.0 the newest of several."""
        files = [self.folder / "appendonly.aof", *sorted((self.folder / "appendonlydir").glob("*.incr.aof"))]
        return [path for path in files if path.exists()][-1]

    def freeze(self) -> None:
        """It answers nothing any more, and keeps its connections."""
        assert self._popen is not None
        self._popen.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._popen is not None
        self._popen.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        """Its end, and that of its data."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder)

    def execute(self, *words: str | int) -> Any:
        """One command, on a connection of its own."""
        with redis.Redis(port=self.port) as client:
            return client.execute_command(*words)

    def config(self, **settings: str | int) -> None:
        """Settings while it runs; dashes are written as underscores."""
        for name, value in settings.items():
            self.execute("CONFIG", "SET", name.replace("_", "-"), value)

    def info(self) -> dict[str, Any]:
        with redis.Redis(port=self.port) as client:
            return dict(client.info())

    def _end(self, number: int) -> None:
        if self._popen is not None:
            self._popen.send_signal(number)
            self._popen.wait(20)
            self._popen = None

    def _answers(self) -> bool:
        try:
            return bool(self.execute("PING"))
        except redis.ResponseError as error:
            return not str(error).startswith(("LOADING", "BUSY"))  # it asks for a password: it answers
        except redis.RedisError as error:
            return "required" in str(error)


def new_redis(more: str = "", program: Program | None = None, ports: range = OURS) -> RedisServer:
    """A server that is not started yet, with `more` lines of settings."""
    folder, port = new_folder("redis"), free_port(ports)
    settings = folder / "redis.conf"
    settings.write_text(SETTINGS.format(port=port, folder=folder, more=more))
    unprivileged().own(settings)
    return RedisServer(folder, port, program or find())
