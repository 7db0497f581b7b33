"""A PostgreSQL server that tests start, stop, kill and start again."""

import contextlib
import enum
import functools
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.support.processes import children, until
from tests.support.servers import binaries
from tests.support.servers.account import unprivileged
from tests.support.servers.address import Address
from tests.support.servers.folder import new_folder
from tests.support.servers.ports import free_port

USER = "windlass"
DATABASE = "postgres"
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{socket}'
port = {port}
max_connections = 300
fsync = on                          # the product refuses a server without it
dynamic_shared_memory_type = mmap   # in the data folder: a killed server leaves nothing elsewhere
min_wal_size = 80MB
max_wal_size = 512MB
log_line_prefix = '%m [%p] %a '
"""


class Mode(enum.Enum):
    """How a server is asked to stop."""

    SMART = signal.SIGTERM
    """When the last client has gone."""
    FAST = signal.SIGINT
    """Clients are thrown out, transactions rolled back."""
    IMMEDIATE = signal.SIGQUIT
    """Nothing is written any more: the next start recovers."""


class PostgresServer:
    """One server with a data folder and a port of its own, which stay the same from start to start."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        """The folder of its Unix socket: what a DSN may name as host."""
        return self.folder

    @property
    def log(self) -> str:
        """Everything that it has said."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def address(self) -> Address:
        return Address(f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}")

    def dsn(self, database: str = DATABASE) -> str:
        return self.address.dsn(database)

    @property
    def pid(self) -> int:
        """Of the postmaster, which must be running."""
        assert self._popen is not None, "the server is not running"
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        """Start, and wait until it takes connections. After a kill it first recovers."""
        until(self._start_once, f"PostgreSQL starts in {self.folder}")

    def stop(self, mode: Mode = Mode.FAST) -> None:
        """Stop, and wait until it has."""
        if self._popen is not None:
            self._popen.send_signal(mode.value)
            until(lambda: not self.running, f"PostgreSQL in {self.folder} stops")
            self._popen = None

    def restart(self, mode: Mode = Mode.FAST) -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """All of its processes at once, as when the machine stops."""
        for pid in [self.pid, *children(self.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.running, "the killed server is gone")
        self._popen = None

    def remove(self) -> None:
        """Its end, and that of its data."""
        self.stop(Mode.IMMEDIATE)
        shutil.rmtree(self.folder)

    def _start_once(self) -> bool:
        """False if it did not come up: what a killed server left may still be in use for a moment."""
        program = binaries.find().folder / "postgres"
        with (self.folder / "log").open("ab") as log:
            self._popen = unprivileged().start([program, "-D", self.data], self.folder, log)
        until(lambda: self._ready() or not self.running, f"PostgreSQL in {self.folder} takes connections or ends")
        return self.running

    def _ready(self) -> bool:
        """What pg_ctl looks at: the eighth line of the file that the postmaster writes for others."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(self.pid) and lines[7].strip() in ("ready", "standby")


def new_server() -> PostgresServer:
    """A server that is not started yet, with nothing in it."""
    folder = new_folder("postgres")
    server = PostgresServer(folder, free_port())
    # Copied with its owner: making one takes half a second, a copy a twentieth.
    subprocess.run(["cp", "-Rp", _template(), server.data], check=True)
    settings = SETTINGS.format(socket=server.socket, port=server.port)
    with (server.data / "postgresql.conf").open("a") as file:
        file.write(settings)
    return server


def new_standby(primary: PostgresServer) -> PostgresServer:
    """A server, not started yet, that follows another as soon as it is."""
    folder = new_folder("standby")
    standby = PostgresServer(folder, free_port())
    way: list[str | Path] = ["--host", "127.0.0.1", "--port", str(primary.port), "--username", USER]
    how: list[str | Path] = ["--pgdata", standby.data, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"]
    command = [binaries.find().folder / "pg_basebackup", *way, *how]
    with (folder / "log").open("wb") as log:
        status = unprivileged().start(command, folder, log).wait()
    assert status == 0, f"pg_basebackup ended with {status}:\n{standby.log}"
    with (standby.data / "postgresql.conf").open("a") as file:
        file.write(SETTINGS.format(socket=standby.socket, port=standby.port))
    return standby


@functools.cache
def _template() -> Path:
    """A data folder that was never used."""
    folder = new_folder("template")
    options = ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync"]
    command: list[str | Path] = [binaries.find().folder / "initdb", "--pgdata", folder / "data", *options]
    with (folder / "log").open("wb") as log:
        status = unprivileged().start(command, folder, log).wait()
    assert status == 0, f"initdb ended with {status}:\n{(folder / 'log').read_text()}"
    return folder / "data"
