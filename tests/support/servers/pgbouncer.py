"""PgBouncer in front of a server: in transaction mode, unless a test is about another."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from tests.support.processes import until
from tests.support.servers.account import unprivileged
from tests.support.servers.address import Address
from tests.support.servers.folder import new_folder
from tests.support.servers.ports import free_port

SETTINGS = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
pidfile = {folder}/pgbouncer.pid
pool_mode = {mode}
max_client_conn = 1000
default_pool_size = {pool}
server_idle_timeout = 2
{more}
"""


class PgBouncer:
    """One PgBouncer. Its address stands for the server's."""

    def __init__(self, folder: Path, port: int, server: Address) -> None:
        self.folder = folder
        self.port = port
        self._server = server
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> Address:
        parts = urlsplit(self._server.url)
        return Address(parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.port}").geturl())

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self._popen = unprivileged().start([program(), self.folder / "pgbouncer.ini"], self.folder, log)
        until(lambda: self._listens() or not self._running, "PgBouncer takes connections or ends")
        assert self._running, f"PgBouncer ended:\n{self.log}"

    def stop(self) -> None:
        """At once: clients lose their connections."""
        if self._popen is not None:
            self._popen.terminate()
            self._popen.wait()
            self._popen = None

    @property
    def _running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def _listens(self) -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def pgbouncer(server: Address, *, pool: int = 20, mode: str = "transaction", more: str = "") -> Iterator[PgBouncer]:
    """A running one, with so many connections to the server for each database, and `more` lines of settings."""
    bouncer = new_pgbouncer(server, pool=pool, mode=mode, more=more)
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.stop()


def new_pgbouncer(server: Address, *, pool: int = 20, mode: str = "transaction", more: str = "") -> PgBouncer:
    """One that is not started yet."""
    folder, port = new_folder("pgbouncer"), free_port()
    parts = urlsplit(server.url)
    whereto = {"host": parts.hostname, "port": parts.port or 5432}
    settings = SETTINGS.format(**whereto, listen=port, folder=folder, pool=pool, mode=mode, more=more)
    (folder / "pgbouncer.ini").write_text(settings)
    (folder / "users.txt").write_text(f'"{parts.username}" "{parts.password or ""}"\n')
    return PgBouncer(folder, port, server)


def program() -> str:
    """Where it is: Debian puts it where only root looks."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
    if found is None:
        missing()
    return found


def missing() -> NoReturn:
    """Skip, but fail where it could have been installed and everything is to be tested."""
    could = os.geteuid() == 0 and shutil.which("apt-get") is not None
    if os.environ.get("CI") == "true" and could:
        pytest.fail("pgbouncer is not installed, although apt-get could have done it: see `make` and its set-up")
    pytest.skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
