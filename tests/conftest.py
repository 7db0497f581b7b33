"""Fixtures that every folder may use; helpers that are not fixtures live in tests/support."""

import gc
import logging
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.addresses import ADDRESSES
from tests.support.clock import ManualClock
from tests.support.stores import STORES
from windlass.observe import process
from windlass.store.contract import Store

CORE = ("test_claim", "test_enqueue", "test_leases", "test_store")
"""The files of `conformance` that every variant of a store runs in `make test`."""
ACROSS_QUEUES = ("test_chains_race", "test_fire", "test_groups", "test_queues", "test_signals")
"""The files that a cluster runs besides, because its queues are on several servers."""
AWAY = ("test_cut", "test_demo", "test_store_away")
"""The files of `e2e` that need a server."""
CALLS = (
    *("test_chains", "test_concurrency_keys", "test_eager_tasks", "test_embedded", "test_enqueue", "test_filters"),
    *(
        "test_failure_tables",
        "test_fan_in",
        "test_flow_races",
        "test_flows",
        "test_group_parts",
        "test_group_rivals",
        "test_groups",
        "test_handles",
        "test_job_policy",
        "test_location",
        "test_open_group_unknown",
        "test_result",
    ),
    *("test_schedules", "test_sharing"),
    *("test_sqlalchemy", "test_stats", "test_transactions", "test_trouble", "test_verbs", "test_waiting"),
)
"""The files of `client` that show more than how a call is checked before a store sees it."""
ROWS = ("test_accepted", "test_edited_rows")
VARIANTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("postgres-pgbouncer", "sqlite-memory", "sqlite-stdlib"), CORE),
    "redis-cluster": CORE + ACROSS_QUEUES,
    "yugabyte": (*CORE, "test_settle", "test_limits", "test_examine"),
    "yugabyte-limits": ("test_claim", "test_store"),
}
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "abuse_input": dict.fromkeys(("postgres", "redis"), ROWS),
    "blobs": {"postgres": ("test_attempt", "test_client", "test_sweep"), "redis": ("test_client", "test_sweep")},
    "client": dict.fromkeys(("postgres", "redis"), CALLS),
    "dashboard": {"postgres": ("test_actions", "test_forms", "test_pages", "test_hostile")},
    "server": dict.fromkeys(("postgres", "redis"), ("test_flow_events", "test_requests", "test_resources")),
    "services": {
        **dict.fromkeys(("postgres", "redis"), ("test_coordinator", "test_fire", "test_statements", "test_webhooks")),
        "redis-cluster": (),
    },
    "e2e": {
        "postgres": (*AWAY, "test_runner_killed"),
        "redis": (*AWAY, "test_results", "test_supervisor_killed"),
    },
}
"""Store → the files that `make test` runs on it: variants in every folder, and stores in these. Else it runs all."""

FIRST_FEW = 3
"""`make test` runs so many parameters of a conformance test on PostgreSQL, and every fourth of the rest."""

# What a shell starts in the background is deaf to SIGINT, and so would be every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# And what nohup starts to SIGHUP. A handler is not inherited; SIG_IGN is.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "extended: `make test` leaves it to `make test-all`")
    gc.disable()  # what is collected stays: looking for garbage among it took two fifths of the collection


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage again, but not among the tests."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what one store repeats after another."""
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        if _is_repetition(item) or _is_one_of_many(item, seen):
            item.add_marker("extended")


def _is_repetition(item: pytest.Item) -> bool:
    parts = VARIANTS | PARTS.get(item.path.parent.name, {})
    callspec = getattr(item, "callspec", None)
    texts = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
    return any(item.path.stem not in parts.get(text, (item.path.stem,)) for text in texts)


def _is_one_of_many(item: pytest.Item, seen: Counter[tuple[Path, str]]) -> bool:
    """Whether a conformance test has had enough parameters on PostgreSQL, where an empty store costs most."""
    callspec = getattr(item, "callspec", None)
    if item.path.parent.name != "conformance" or callspec is None or "postgres" not in callspec.params.values():
        return False
    function = (item.path, getattr(item, "originalname", item.name))
    seen[function] += 1
    return seen[function] > FIRST_FEW and seen[function] % 4 != 0


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


@pytest.fixture(autouse=True)
def process_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server or a command that runs in this process turns on figures and logs: not for the tests after it."""
    monkeypatch.setattr(process, "_wanted", False)
    monkeypatch.setattr(process, "_figures", {})
    logger = logging.getLogger("windlass")
    handlers, propagate, level = list(logger.handlers), logger.propagate, logger.level
    yield
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)
