"""PgBouncer in transaction mode, in a folder and on a port of its own, with the default pool."""

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bench.stores.base import Pooler
from bench.stores.postgres_server import MAX_SECONDS, NOBODY, free_port, give, start
from windlass.errors import ConfigError

SETTINGS = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {home}/users.txt
pool_mode = transaction
"""


@contextlib.contextmanager
def pool(template: str) -> Iterator[Pooler]:
    """In front of the server of these addresses."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
    parts = urlsplit(template)
    if program is None or not parts.hostname:
        yield Pooler(
            skip_reason="pgbouncer is not installed" if program is None else "the server is at no single host"
        )
        return
    user = NOBODY if os.geteuid() == 0 else None
    # A temporary folder: unlike a server's data, nothing here is measured.
    with tempfile.TemporaryDirectory(prefix="windlass-pgbouncer-") as name:
        home, port = Path(name), free_port()
        text = SETTINGS.format(host=parts.hostname, port=parts.port or 5432, listen=port, home=home)
        (home / "pgbouncer.ini").write_text(text)
        account = [unquote(each or "").replace('"', '""') for each in (parts.username, parts.password)]
        (home / "users.txt").write_text('"{}" "{}"\n'.format(*account))
        for path in (home / "pgbouncer.ini", home / "users.txt"):
            path.chmod(0o600)
            if user is not None:
                shutil.chown(path, user)
        give(home, user)
        served = start([program, str(home / "pgbouncer.ini")], home, user)
        try:
            _await(port, home)
            yield Pooler(route=lambda address: _through(address, port))
        finally:
            served.send_signal(signal.SIGTERM)  # at once
            served.wait(MAX_SECONDS)


def _through(address: str, port: int) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()


def _await(port: int, home: Path) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise ConfigError(f"pgbouncer did not start: {(home / 'log').read_text(errors='replace')[-1000:]}")
