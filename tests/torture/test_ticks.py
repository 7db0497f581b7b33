"""Two coordinators, paused and killed in turn, on clocks that are set and stores that go away: each tick once (I10).

TORTURE_SEED picks the order of faults; TORTURE_SECONDS how long they go on.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.checker import read
from tests.support.servers.postgres import Mode, PostgresServer
from tests.support.servers.redis import RedisServer, new_redis
from tests.torture.timetable import SCHEDULES, Timetable

SEED = int(os.environ.get("TORTURE_SEED", "1"))
SECONDS = float(os.environ.get("TORTURE_SECONDS", "12"))


@pytest.fixture
def faithful_redis() -> Iterator[RedisServer]:
    """One that has written what it answers for."""
    server = new_redis("appendfsync always")
    server.start()
    yield server
    server.remove()


@pytest.mark.extended
def test_each_tick_is_fired_once_on_sqlite(tmp_path: Path) -> None:
    spend(tmp_path, f"sqlite:///{tmp_path}/jobs.db?durability=relaxed", None)


def test_each_tick_is_fired_once_on_postgres_that_is_restarted(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    spend(tmp_path, postgres_server.dsn(), lambda: postgres_server.restart(Mode.IMMEDIATE))


@pytest.mark.extended
def test_each_tick_is_fired_once_on_redis_that_is_restarted(tmp_path: Path, faithful_redis: RedisServer) -> None:
    def restart() -> None:
        faithful_redis.kill()
        faithful_redis.start()

    spend(tmp_path, faithful_redis.url, restart)


def spend(folder: Path, url: str, restart: Callable[[], None] | None) -> None:
    """A while of faults, peace, and the audit."""
    print(f"TORTURE_SEED={SEED} TORTURE_SECONDS={SECONDS:g}")
    timetable = Timetable(folder, url, SEED, restart)
    try:
        timetable.torment(SECONDS)
        report = timetable.audit()
    finally:
        timetable.processes.end()
    assert not report.violations, str(report)
    fired: Counter[str] = Counter()
    in_vain = 0
    for line in read(folder / "history"):
        for each in line.get("fired", []):
            in_vain += not each["done"]
        fired.update(each["name"] for each in line.get("firings", []))
    print(fired, f"{in_vain} in vain")
    assert min(fired[name] for name in SCHEDULES) > 0, "one of them was never due"
    assert fired.total() > 50, "hardly anything happened"
    assert in_vain > 3, "hardly ever did two decide the same"
