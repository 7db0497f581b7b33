"""Fixtures that every folder may use; helpers that are not fixtures live in tests/support."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.addresses import ADDRESSES
from tests.support.clock import ManualClock
from tests.support.stores import STORES
from windlass.store.contract import Store

POOLED = ("test_claim", "test_enqueue", "test_examine", "test_leases", "test_rescue", "test_settle", "test_store")
SPREAD = (
    *POOLED,
    *("test_chains", "test_chains_again", "test_chains_race", "test_counts", "test_fire", "test_get", "test_leader"),
    *("test_list", "test_moves", "test_queues", "test_schedules", "test_signals", "test_vigil"),
)
"""What spans queues, besides."""
IN_PART = {
    "[postgres-pgbouncer": ("WINDLASS_TEST_POOLER", POOLED),
    "[redis-cluster": ("WINDLASS_TEST_CLUSTER", SPREAD),
}
"""Kinds of stores of which a part of the tests is enough, the variable that asks for all, and that part."""

# What a shell starts in the background is deaf to SIGINT, and so would be every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester", "tests.support.servers.fixtures"]

# Derandomised, so that a red run is red again; print_blob gives the line that replays a failure.
settings.register_profile(
    "windlass",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# For hunting: HYPOTHESIS_PROFILE=hunt, fresh examples and many more of them.
settings.register_profile("hunt", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("windlass")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Behind the pooler and on a cluster the same is done in other frames: a part of the tests shows that."""
    passed_over = {item for item in items if _is_passed_over(item)}
    config.hook.pytest_deselected(items=list(passed_over))
    items[:] = [item for item in items if item not in passed_over]


def _is_passed_over(item: pytest.Item) -> bool:
    for mark, (variable, part) in IN_PART.items():
        if mark in item.name and item.path.stem not in part and os.environ.get(variable) != "all":
            return True
    return False


@pytest.fixture
def clock() -> ManualClock:
    """The clock of the `store` fixture."""
    return ManualClock()


@pytest.fixture(params=sorted(STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty store of every kind that there is."""
    opened = STORES[request.param].open(tmp_path, clock)
    yield opened
    await opened.close()


@pytest.fixture(params=sorted(ADDRESSES))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an app may keep its jobs; nothing is there yet."""
    return ADDRESSES[request.param](tmp_path)
