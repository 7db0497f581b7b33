"""doctor on PostgreSQL: whatever is wrong with the server or with our tables is a finding, with what to do."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one, put
from tests.support.servers.address import Address as Place
from tests.support.servers.pgbouncer import PgBouncer
from tests.support.servers.postgres import PostgresServer
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.doctor import KEY_CHECK as KEYS
from windlass.store.doctor import Examination, Finding, Level
from windlass.store.open import examine, open_store
from windlass.store.postgres.connection.address import parse_address
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Texts
from windlass.store.postgres.doctor import contents
from windlass.store.postgres.doctor.server import check_snapshots

CHECKS = ("versions", "durability", "role", "connections", "vacuum", "wake-up", "schema", "rights", "retention")


def of(found: Examination, level: Level) -> dict[str, Finding]:
    """Findings of one level, by what was checked."""
    return {each.check: each for each in found.findings if each.level is level}


def trouble(found: Examination) -> dict[str, Finding]:
    return of(found, Level.PROBLEM) | of(found, Level.WARNING)


async def test_a_sound_store_is_praised_in_every_check(store: Store) -> None:
    await store.migrate()
    found = await examine(store.address)
    assert trouble(found) == {}
    assert set(of(found, Level.OK)) == set(CHECKS)
    assert found.census is not None


async def test_connections_of_windlass_are_counted(store: Store) -> None:
    await store.migrate()
    (before,) = [each.says for each in (await examine(store.address)).findings if each.check == "connections"]
    ours = int(before.split(", ")[1].split()[0])
    assert ours >= 2, "the store's own, and that of doctor"


async def test_a_database_without_our_tables_is_left_as_it_is(postgres_url: str) -> None:
    found = await examine(postgres_url)
    assert of(found, Level.PROBLEM) == {}
    assert "windlass migrate" in str(of(found, Level.WARNING)["schema"].advice)
    assert found.census is None
    assert Place(postgres_url).execute("SELECT 1 FROM pg_namespace WHERE nspname = 'windlass'") == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:secret@127.0.0.1:1/db", "Connect call failed"),
        ("postgresql://me:secret@nowhere.invalid/db", "not known"),
        ("postgresql://me:secret@a..b/db", "a..b"),
        ("postgresql://me:secret@127.0.0.1:1/db?sslmode=nonsense", "sslmode"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_a_problem_and_not_an_error(url: str, says: str) -> None:
    (finding,) = (await examine(url)).findings
    assert (finding.level, finding.check) == (Level.PROBLEM, "server")
    assert says in finding.says
    assert "secret" not in finding.says


async def test_a_database_that_does_not_exist_is_a_problem(postgres: Place) -> None:
    (finding,) = (await examine(postgres.dsn("no_such_database"))).findings
    assert finding.level is Level.PROBLEM
    assert "createdb" in finding.says


async def test_settings_that_lose_data_are_named(postgres_server: PostgresServer) -> None:
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        postgres_server.address.execute(f"ALTER SYSTEM SET {setting} = off")
    postgres_server.restart()
    findings = [each for each in (await examine(postgres_server.dsn())).findings if each.check == "durability"]
    assert [(each.level, each.says.partition(" =")[0]) for each in findings] == [
        (Level.PROBLEM, "fsync"),
        (Level.WARNING, "full_page_writes"),
        (Level.WARNING, "synchronous_commit"),
    ]


async def test_a_user_who_may_do_nothing_is_told_what_to_grant(postgres_server: PostgresServer) -> None:
    address = postgres_server.address
    address.execute("CREATE ROLE poor LOGIN")
    poor = postgres_server.dsn().replace("windlass@", "poor@")
    assert "GRANT CREATE" in str(of(await examine(poor), Level.PROBLEM)["rights"].advice)
    store = open_store(postgres_server.dsn())
    await store.migrate()
    await store.close()
    found = await examine(poor)
    assert "GRANT USAGE ON SCHEMA windlass TO poor" in str(of(found, Level.PROBLEM)["rights"].advice)
    assert "pg_read_all_stats TO poor" in str(of(found, Level.NOTE)["vacuum"].advice)
    address.execute("GRANT USAGE ON SCHEMA windlass TO poor")
    address.execute("GRANT SELECT ON ALL TABLES IN SCHEMA windlass TO poor")
    found = await examine(poor)
    assert "jobs" in of(found, Level.PROBLEM)["rights"].says
    assert found.census is not None
    address.execute("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA windlass TO poor")
    found = await examine(poor)
    assert "use history_day_* in the schema" in of(found, Level.PROBLEM)["rights"].says, "no day can be dropped"
    address.execute("GRANT ALL ON ALL TABLES IN SCHEMA windlass TO poor")
    assert "rights" in of(await examine(poor), Level.OK)
    address.execute("REVOKE SELECT ON windlass.held_jobs FROM poor")
    found = await examine(poor)
    assert "use held_jobs in the schema" in of(found, Level.PROBLEM)["rights"].says, "no runner could claim"


async def test_a_prepared_transaction_that_is_never_finished_is_named(postgres_server: PostgresServer) -> None:
    postgres_server.address.execute("ALTER SYSTEM SET max_prepared_transactions = 1")
    postgres_server.restart()
    with postgres_server.address.connect() as other:
        other.execute("BEGIN")
        other.execute("CREATE TABLE thing ()")
        other.execute("PREPARE TRANSACTION 'forgotten'")
    (finding,) = await _holders(postgres_server.dsn())
    assert "'forgotten'" in finding.says
    assert "ROLLBACK PREPARED 'forgotten'" in str(finding.advice)


async def test_a_transaction_that_stays_open_is_named(postgres_url: str) -> None:
    with Place(postgres_url).connect() as other:
        other.execute("SET application_name = 'the report'")
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        (finding,) = await _holders(postgres_url)
        assert f"process {other.info.backend_pid} " in finding.says
        assert "the report" in finding.says
        assert of(await examine(postgres_url), Level.WARNING).keys() == {"schema"}, "it has not been open for long"
        other.execute("COMMIT")
    assert await _holders(postgres_url) == []


async def _holders(url: str) -> list[Finding]:
    """Who holds vacuum back, however short."""
    session = await connect(url, 10, pooled=None)
    try:
        found = [each async for each in check_snapshots(Db(session, Texts("windlass", None)), limit=0)]
    finally:
        session.drop()
    return [each for each in found if each.level is Level.WARNING]


async def test_a_database_that_takes_no_writes_is_a_problem(store: Store, connection: Any) -> None:
    await store.migrate()
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    found = await examine(store.address)
    assert "default_transaction_read_only" in of(found, Level.PROBLEM)["role"].says
    assert found.census is not None


async def test_behind_a_pooler_workers_poll_and_all_else_is_examined(
    postgres_pgbouncer: PgBouncer, store: Store, tmp_path: Path
) -> None:
    await enqueue_one(store)
    through = postgres_pgbouncer.address.dsn(store.address.rpartition("/")[2])
    found = await examine(through)
    assert of(found, Level.PROBLEM) == {}
    assert {"pooler", "wake-up"} <= set(of(found, Level.NOTE))
    assert found.census is not None
    assert [each.jobs for each in found.census.waiting] == [1]


async def test_notifications_that_are_not_wanted_are_not_tried(postgres_url: str) -> None:
    assert "notify=off" in of(await examine(f"{postgres_url}?notify=off"), Level.NOTE)["wake-up"].says


@pytest.mark.parametrize(("breaking", "level"), [(True, Level.PROBLEM), (False, Level.NOTE)])
async def test_a_newer_schema_is_a_problem_only_if_it_breaks_us(
    store: Store, connection: Any, breaking: bool, level: Level
) -> None:
    await store.migrate()
    await connection.execute("INSERT INTO windlass.schema VALUES (999, '0999_future', $1)", breaking)
    found = await examine(store.address)
    assert "0999_future" in of(found, level)["schema"].says
    assert (found.census is None) is breaking


async def test_finished_jobs_that_are_not_dropped_are_noticed_after_a_day(store: Store, clock: ManualClock) -> None:
    await put(store, Status.COMPLETED)
    await put(store, Status.DEAD)
    for days, late in ((8, False), (2, True)):
        clock.advance(days * DAY)
        found = await examine(store.address, clock=clock)
        assert ("retention" in of(found, Level.WARNING)) is late


async def test_in_depth_everything_that_is_kept_twice_is_compared(
    store: Store, clock: ManualClock, connection: Any
) -> None:
    await put(store, Status.COMPLETED)
    await put(store, Status.PENDING)
    assert trouble(await examine(store.address, clock=clock, deep=True)) == {}
    await connection.execute("INSERT INTO windlass.history_counts VALUES ('default', 'completed', -1, 2)")
    await connection.execute("UPDATE windlass.watermarks SET rank = 9000000000000000000")
    found = await examine(store.address, clock=clock, deep=True)
    assert "has 1 completed jobs, and its counts say 3" in of(found, Level.PROBLEM)["contents"].says
    assert "1 pending job" in of(found, Level.WARNING)["contents"].says


async def test_tables_in_another_schema_are_examined_there(postgres_url: str) -> None:
    url = f"{postgres_url}?schema=elsewhere"
    store = open_store(url)
    await store.migrate()
    await store.close()
    assert trouble(await examine(url)) == {}
    assert "elsewhere" in of(await examine(url), Level.OK)["schema"].says
    assert parse_address(url, url).schema == "elsewhere"


async def test_damaged_rows_are_a_finding(store: Store, connection: Any) -> None:
    await store.migrate()
    now = "(extract(epoch FROM now()) * 1000000)::bigint"
    await connection.execute(f"INSERT INTO windlass.workers VALUES ('w', 'nonsense', {now}, {now})")
    found = await examine(store.address)
    assert "could not be checked" in of(found, Level.PROBLEM)["jobs"].says
    assert found.census is None


async def test_in_depth_keys_that_nothing_will_ever_free_are_found(
    store: Store, clock: ManualClock, connection: Any
) -> None:
    await enqueue_one(store, idempotency_key="alive")
    ended = await put(store, Status.CANCELLED)
    await connection.execute(f"INSERT INTO windlass.idempotency_keys VALUES ('default', 'ff', '{ended}')")
    for n in range(6):
        await connection.execute(f"INSERT INTO windlass.idempotency_keys VALUES ('gone', '{n}', gen_random_uuid())")
    found = [each for each in (await examine(store.address, clock=clock, deep=True)).findings if each.check == KEYS]
    assert [each.level for each in found] == [Level.PROBLEM] * 6
    assert f"queue 'default': job {ended} holds its key for ever" in found[0].says
    assert found[5].says == "2 more keys are held for ever"
    statement = str(found[0].advice).removeprefix("free the key: ")
    assert await connection.execute(statement) == "DELETE 1"


async def test_in_depth_keys_are_looked_at_in_portions(
    store: Store, clock: ManualClock, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "KEY_PORTION", 3)
    for n in range(7):
        await enqueue_one(store, idempotency_key=f"{n}", queue=f"q{n % 2}")
    await connection.execute("INSERT INTO windlass.idempotency_keys VALUES ('q0', '', gen_random_uuid())")
    found = [each for each in (await examine(store.address, clock=clock, deep=True)).findings if each.check == KEYS]
    assert [each.level for each in found] == [Level.PROBLEM]
    await connection.execute("DELETE FROM windlass.idempotency_keys WHERE hash = ''")
    found = [each for each in (await examine(store.address, clock=clock, deep=True)).findings if each.check == KEYS]
    assert [each.says for each in found] == ["each of 7 keys belongs to a live job, or to a window that is open"]
