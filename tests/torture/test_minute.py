"""A minute of faults, by a seed: kills, stalls, stops and cancellations, then peace, then the audit.

`make test` runs a quarter of it. TORTURE_SEED picks the order of faults, or TORTURE_SEEDS several; TORTURE_SECONDS
how long they go on; TORTURE_KINDS names the only kinds that come.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.limits.faults import Limits
from tests.support.limits.machine import LimitsProxy
from tests.support.limits.role import ROLE as LIMITED
from tests.support.limits.role import limit_database
from tests.support.servers.named_yugabyte import VARIABLE as NAMED
from tests.support.servers.named_yugabyte import is_named, named_yugabyte_place
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.stores import with_profile
from tests.torture.faults import rights_redis
from tests.torture.faults.choice import VARIABLE, Kind, wanted
from tests.torture.kinds import of_postgres, of_redis, of_sqlite
from tests.torture.nemesis import Nemesis, RemoteNemesis
from tests.torture.redis_nemesis import RedisNemesis
from tests.torture.roles import make_role
from tests.torture.rules import touched
from tests.torture.server_nemesis import ServerNemesis
from tests.torture.yard import Yard
from windlass.observe.history import HISTORY_FOLDER

SEEDS = os.environ.get("TORTURE_SEEDS") or os.environ.get("TORTURE_SEED")
SECONDS = float(os.environ.get("TORTURE_SECONDS", "35"))
SHORT_SECONDS = 9.0

LONG = [pytest.param(int(seed), SECONDS, marks=pytest.mark.extended) for seed in (SEEDS or "1").split(",")]
EVERY_SEED = pytest.mark.parametrize(("seed", "seconds"), LONG if SEEDS else [(1, SHORT_SECONDS), *LONG])


@EVERY_SEED
def test_a_minute_of_faults_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: float
) -> None:
    yard = Yard(tmp_path)
    # Our own cancellations belong into the history too.
    monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
    try:
        nemesis = Nemesis(yard, seed)
        spend(nemesis, of_sqlite(nemesis), seconds)
    finally:
        yard.close()


@EVERY_SEED
def test_a_minute_of_faults_of_a_server_too_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: float, postgres_server: PostgresServer
) -> None:
    # Longer leases: here only time tells who is dead, and on a busy machine a second is nothing.
    yard = Yard(tmp_path, url=make_role(postgres_server), lease="3s")
    monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
    try:
        yard.app.stats.counts()
        nemesis = ServerNemesis(yard, seed, postgres_server)
        with nemesis.old_snapshot():
            spend(nemesis, of_postgres(nemesis, postgres_server), seconds)
    finally:
        yard.close()


@pytest.mark.parametrize(("seed", "seconds"), LONG)
def test_a_minute_of_faults_under_the_limits_of_yugabytedb_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: float, postgres_server: PostgresServer
) -> None:
    """Meanwhile one statement of ten and one commit of ten fail, and every round trip takes 1 to 5 ms longer."""
    with LimitsProxy("127.0.0.1", postgres_server.port, Limits(seed=seed)) as proxy:
        url = with_profile(proxy.through(limit_database(postgres_server.dsn())))
        yard = Yard(tmp_path, url=url, lease="5s", tables=postgres_server.dsn())
        monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
        try:
            yard.app.stats.counts()
            nemesis = ServerNemesis(yard, seed, postgres_server, LIMITED)
            # Rights given back would be rights to the table.
            long = {
                name: kind for name, kind in of_postgres(nemesis, postgres_server).items() if "rights" not in name
            }
            with nemesis.old_snapshot():
                spend(nemesis, long, seconds)
        finally:
            yard.close()
        print(json.dumps(proxy.counts))
        assert min(proxy.counts[f"failed {what}"] for what in ("statements", "explicit commits", "implicit commits"))


@pytest.mark.skipif(not is_named(), reason=f"{NAMED} names no cluster")
@pytest.mark.parametrize(("seed", "seconds"), LONG)
def test_a_minute_of_faults_on_yugabyte_named_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: float
) -> None:
    """Faults of workers and producers only: its servers are not ours to stop."""
    yard = Yard(tmp_path, url=named_yugabyte_place(tmp_path), lease="5s")
    monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
    try:
        nemesis = RemoteNemesis(yard, seed)
        spend(nemesis, {}, seconds)
    finally:
        yard.close()


@pytest.mark.extended
@pytest.mark.parametrize(("seed", "seconds"), LONG)
def test_a_minute_of_faults_with_the_yugabytedb_profile_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: float, postgres_server: PostgresServer
) -> None:
    # With hints, which this server accepts: without them every step of a key waits for a poll.
    yard = Yard(tmp_path, url=f"{with_profile(make_role(postgres_server))}&notify=on", lease="3s")
    monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
    try:
        yard.app.stats.counts()
        nemesis = ServerNemesis(yard, seed, postgres_server)
        with nemesis.old_snapshot():
            spend(nemesis, of_postgres(nemesis, postgres_server), seconds)
    finally:
        yard.close()


@pytest.fixture
def faithful_redis() -> Iterator[RedisServer]:
    """One that has written what it answers for: `everysec` puts off a write while the disk is busy."""
    server = new_redis(f"appendfsync always\n{rights_redis.SETTING}")
    server.start()
    yield server
    server.remove()


@EVERY_SEED
def test_a_minute_of_faults_of_a_redis_too_breaks_no_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, seconds: float, faithful_redis: RedisServer
) -> None:
    yard = Yard(tmp_path, url=rights_redis.address(faithful_redis), lease="3s")
    monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
    try:
        nemesis = RedisNemesis(yard, seed, faithful_redis)
        spend(nemesis, of_redis(nemesis, faithful_redis), seconds)
    finally:
        yard.close()


def spend(nemesis: Nemesis, long: Mapping[str, Kind], seconds: float) -> None:
    """The minute, and the audit."""
    if not nemesis.torment(seconds, long):
        pytest.skip(f"this store has none of {VARIABLE}; its long ones: {', '.join(long)}")
    nemesis.heal()
    report = nemesis.yard.audit()
    print(json.dumps(report.figures))
    assert not report.violations, str(report)
    assert report.figures["runs"] > 100, "hardly anything happened"
    if wanted() is not None:
        return
    assert report.figures["faults"] > seconds / 5
    under_rules = touched(nemesis.yard.dump())
    print(json.dumps(under_rules))
    assert sum(under_rules.values()) > seconds, "hardly anything was limited"
    if seconds > SHORT_SECONDS:  # too short for some of every kind, whatever the faults do
        # How many there are of a kind depends on the machine's speed.
        assert min(under_rules.values()) > 0, "nothing was limited in one way"
