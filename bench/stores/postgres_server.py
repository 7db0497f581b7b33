"""A PostgreSQL server for as long as the bench runs: own folder, own port, every commit flushed."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from windlass.errors import ConfigError

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # The defaults, written out because every figure depends on them.
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}
INSTALLED = Path("/usr/lib/postgresql")
NOBODY = "nobody"
MAX_SECONDS = 60.0


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Make a server in a folder of its own below the given one; the template of addresses of its databases.

    PostgreSQL refuses to run as root: then it runs as `nobody`.
    """
    programs = find_programs()
    user = NOBODY if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="postgres-", dir=folder))
    try:
        give(home, user)
        data, port = home / "data", free_port()
        command = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
        ]
        made = start(command, home, user).wait()
        if made != 0:
            raise ConfigError(f"initdb ended with code {made}: {_log(home)}")
        flags = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        server = start([str(programs / "postgres"), "-D", str(data), "-p", str(port), *flags], home, user)
        try:
            _await(server, data, home)
            yield f"postgresql://postgres@127.0.0.1:{port}/{{run}}"
        finally:
            # Fast: connections are ended, what is committed is kept.
            server.send_signal(signal.SIGINT)
            server.wait(MAX_SECONDS)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_programs() -> Path:
    """The folder with initdb and postgres: Debian's of the latest version, else that of the search path."""
    versions = [path for path in INSTALLED.glob("*/bin") if (path / "initdb").exists()]
    if versions:
        return max(versions, key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    if found is None or not (Path(found).resolve().parent / "postgres").exists():
        raise ConfigError(
            "--store postgres: no initdb and postgres here; install PostgreSQL, or give a server: "
            "--store postgresql://user@host/{run}"
        )
    return Path(found).resolve().parent


def give(home: Path, user: str | None) -> None:
    """Give the folder to that user; every parent must be accessible to it."""
    if user is None:
        return
    shutil.chown(home, user)
    for parent in home.resolve().parents:
        if not parent.stat().st_mode & 0o001:
            raise ConfigError(
                f"--store postgres: as root the server runs as {user}, which may not enter {parent}; "
                "give another folder by --out, or run as an ordinary user"
            )


def start(command: list[str], home: Path, user: str | None) -> subprocess.Popen[bytes]:
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=home,
            user=user,
            extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # The bench handles Ctrl-C: it ends the users of the server first.
            start_new_session=True,
        )


def _await(server: subprocess.Popen[bytes], data: Path, home: Path) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        state = data / "postmaster.pid"
        if state.exists() and "ready" in state.read_text():
            return
        time.sleep(0.02)
    raise ConfigError(f"--store postgres: the server did not start: {_log(home)}")


def _log(home: Path) -> str:
    return (home / "log").read_text(errors="replace")[-1000:]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
