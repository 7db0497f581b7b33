"""Where an app keeps its jobs: tests that say something about every store run on each of these, through `address`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.limits.faults import FEW_FAIL
from tests.support.servers.named_yugabyte import has_hints, is_named, named_yugabyte_place
from tests.support.servers.redis_places import redis_place
from tests.support.stores import postgres_url, yugabyte_limits_url


def sqlite_address(folder: Path) -> str:
    """A file of its own, which is not there yet. Relaxed, because no test here cuts the power."""
    return f"sqlite:///{folder}/jobs.db?durability=relaxed"


def yugabyte_limits_address(folder: Path) -> str:
    """Under the limits of YugabyteDB, where one statement in a hundred fails and is repeated."""
    return yugabyte_limits_url(folder, FEW_FAIL)


ADDRESSES: dict[str, Callable[[Path], str]] = {
    "postgres": postgres_url,
    "redis": redis_place,
    "sqlite": sqlite_address,
    "yugabyte-limits": yugabyte_limits_address,
}

WITHOUT_HINTS = {"yugabyte-limits"}
"""Under the limits there is neither LISTEN nor NOTIFY."""

if is_named():
    ADDRESSES["yugabyte-named"] = named_yugabyte_place
    if not has_hints():
        WITHOUT_HINTS.add("yugabyte-named")

on_every_store = pytest.mark.parametrize("address", sorted(ADDRESSES), indirect=True)
"""For a test of those that run on a file unless they say so, only because each takes seconds."""
on_stores_with_hints = pytest.mark.parametrize("address", sorted(ADDRESSES.keys() - WITHOUT_HINTS), indirect=True)
"""For a test that shows what a hint does."""
on_sql = pytest.mark.parametrize("address", ["postgres", "sqlite"], indirect=True)
"""For a test that reaches into tables."""
on_sqlite = pytest.mark.parametrize("address", ["sqlite"], indirect=True)
"""For a test about the file itself, or about what has nothing to do with the store."""
