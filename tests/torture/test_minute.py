"""A minute of faults, by a seed: kills, stalls, stops and cancellations, then peace, then the audit.

TORTURE_SEED picks the order of faults, or TORTURE_SEEDS several; TORTURE_SECONDS how long they go on.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.postgres import PostgresServer
from tests.support.servers.redis import RedisServer, new_redis
from tests.torture.nemesis import Nemesis
from tests.torture.redis_nemesis import RedisNemesis
from tests.torture.rules import touched
from tests.torture.server_nemesis import ServerNemesis
from tests.torture.yard import Yard
from windlass.observe.history import SWITCH

SEEDS = os.environ.get("TORTURE_SEEDS") or os.environ.get("TORTURE_SEED") or "1"
SECONDS = float(os.environ.get("TORTURE_SECONDS", "35"))


EVERY_SEED = pytest.mark.parametrize("seed", [int(seed) for seed in SEEDS.split(",")])


@EVERY_SEED
def test_a_minute_of_faults_breaks_no_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    yard = Yard(tmp_path)
    # Our own cancellations belong into the history too.
    monkeypatch.setenv(SWITCH, str(yard.histories))
    try:
        spend(Nemesis(yard, seed), yard, seed)
    finally:
        yard.close()


@EVERY_SEED
def test_a_minute_of_faults_of_a_server_too_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, postgres_server: PostgresServer
) -> None:
    # Longer leases: here only time tells who is dead, and on a busy machine a second is nothing.
    yard = Yard(tmp_path, url=postgres_server.dsn(), lease="3s")
    monkeypatch.setenv(SWITCH, str(yard.histories))
    try:
        yard.app.stats.counts()
        nemesis = ServerNemesis(yard, seed, postgres_server)
        with nemesis.old_snapshot():
            spend(nemesis, yard, seed)
    finally:
        yard.close()


@pytest.fixture
def faithful_redis() -> Iterator[RedisServer]:
    """One that has written what it answers for: `everysec` puts off a write while the disk is busy."""
    server = new_redis("appendfsync always")
    server.start()
    yield server
    server.remove()


@EVERY_SEED
def test_a_minute_of_faults_of_a_redis_too_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, faithful_redis: RedisServer
) -> None:
    yard = Yard(tmp_path, url=faithful_redis.url, lease="3s")
    monkeypatch.setenv(SWITCH, str(yard.histories))
    try:
        spend(RedisNemesis(yard, seed, faithful_redis), yard, seed)
    finally:
        yard.close()


def spend(nemesis: Nemesis, yard: Yard, seed: int) -> None:
    """The minute, and the audit."""
    print(f"TORTURE_SEED={seed} TORTURE_SECONDS={SECONDS:g}")
    nemesis.torment(SECONDS)
    nemesis.heal()
    report = yard.audit()
    print(json.dumps(report.figures))
    assert not report.violations, str(report)
    assert report.figures["runs"] > 100, "hardly anything happened"
    assert report.figures["faults"] > SECONDS / 5
    under_rules = touched(yard.dump())
    print(json.dumps(under_rules))
    assert min(under_rules.values()) > 3, "hardly anything was limited"
